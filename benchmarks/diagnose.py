"""Regret of `diagnose`: what its first choice loses on the test part against the best objective in hindsight.

The diagnosis sees the training part alone. Every objective that it ranked is then fitted on the whole training part,
as its command says, and evaluated on the test part at k = 16 and 32. Regret is the best mean score less that of the
choice. Of searches, the test part is that which the diagnosis ranks for: queries of which no relevant document is in
the training part; scores and regret on all queries are printed beside it. Test rows are a sample of at most 2,000,
training images one of at most 6,000.

    python -m benchmarks.diagnose [SET ...]           the exit code says whether regret is at most 0.01 on every set
    python -m benchmarks.diagnose SciFact --splits 8  SciFact's 1,109 queries divided anew so many times

One division of SciFact has about a hundred test queries for new documents, which cannot tell 0.01. Over several of them
the mean regret has an interval: draws of divisions, and of test queries in each.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk import PrefixEncoder, diagnose, objectives
from firstk.advice.diagnosis import Ranking, Trial
from firstk.advice.evaluate import told_apart
from firstk.data import load_digits
from firstk.data.task import Data, Pairs, Rows, Search
from firstk.metrics.bootstrap import PerRowScores, resampled_scores
from firstk.metrics.curve import per_row_scores
from firstk.moments.fingerprint import document_hashes
from firstk_papers.datasets import data_folder, load_fashion_mnist, load_scifact, load_stsb

KS = (16, 32)
MOST = 0.01
# Rows of a test part that are evaluated: enough to tell 0.01, as objectives are compared on the same rows.
MOST_TESTED = 2_000
# Images of a training part: fits on 60,000 of them take longer than all the rest.
MOST_TRAINED = 6_000
# Queries of SciFact that are learned from, where they are divided anew: as many as in its own division.
TRAINED_QUERIES = 809


@dataclass(frozen=True, eq=False)
class Case:
    """A data set: arguments of the diagnosis, what full fits learn from, and the test part."""

    diagnosed: Mapping[str, Any]
    rows: tuple[np.ndarray, ...]  # X, or X and y
    pairs: tuple[np.ndarray, ...]  # left and right, and perhaps scores
    metric: str
    test: Data
    everything: Data | None = None  # all queries, where `test` is those for new documents


def labelled(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Case:
    """Return a case of labels, by 1-NN accuracy among all training rows."""
    some = np.sort(np.random.default_rng(0).permutation(len(X_test))[:MOST_TESTED])
    test = Rows(X_test[some], y_test[some], reference=Rows(X, y))
    return Case({"X": X, "y": y}, (X, y), (), "1nn_accuracy", test)


def banking77(model: str) -> Case:
    """Return Banking77, embedded by one of the models in the data folder."""
    folder = data_folder() / "banking77"
    # Labels are beside the vectors of the first model.
    with np.load(folder / f"banking77_{model}.npz") as z, np.load(folder / "banking77_minilm.npz") as labels:
        X, X_test = z["X_train"].astype(np.float32), z["X_test"].astype(np.float32)
        return labelled(X, labels["y_train"], X_test, labels["y_test"])


def images(load: Callable[[], Any]) -> Case:
    """Return a set of images; of a large one, 6,000 training images drawn at random are the training part."""
    data = load()
    some = np.sort(np.random.default_rng(1).permutation(len(data.X_train))[:MOST_TRAINED])
    return labelled(data.X_train[some], data.y_train[some], data.X_test, data.y_test)


def stsb() -> Case:
    """Return the STS benchmark: rows are the sentences of its training pairs."""
    sts = load_stsb()
    left, right, scores = sts.part("test")
    X = sts.vectors[np.unique(sts.pairs_train)]
    pairs = sts.part("train")
    return Case({"X": X, "pairs": pairs}, (X,), pairs, "spearman", Pairs(left, right, scores))


def scifact(seed: int | None = None) -> Case:
    """Return SciFact: all documents are searched by the queries of each part, divided anew where a seed is given."""
    sets = load_scifact()
    parts = [sets.judgements_train, sets.judgements_test]
    if seed is not None:
        both = np.concatenate(parts)
        queries = np.random.default_rng(seed).permutation(np.unique(both[:, 0]))
        learned = np.isin(both[:, 0], queries[:TRAINED_QUERIES])
        parts = [both[learned], both[~learned]]
    known = parts[0][parts[0][:, 2] > 0]
    training, test = (Search(sets.queries, sets.documents, j) for j in parts)
    right = sets.documents[known[:, 1]]
    new = told_apart(test, document_hashes(right)).new
    assert new is not None
    return Case({"search": training}, (sets.documents,), (sets.queries[known[:, 0]], right), "ndcg@10", new, test)


CASES: dict[str, Callable[[], Case]] = {
    "Banking77 (MiniLM)": lambda: banking77("minilm"),
    "Banking77 (potion)": lambda: banking77("potion"),
    "Banking77 (mpnet)": lambda: banking77("mpnet"),
    "STS": stsb,
    "SciFact": scifact,
    "digits": lambda: images(load_digits),
    "Fashion-MNIST": lambda: images(load_fashion_mnist),
}


def fitted_scores(trial: Trial, case: Case) -> list[PerRowScores]:
    """Fit an objective on the whole training part, and score it on the test part, and on all queries of a search.

    Scores are kept by row. Short codes are scored at their full width.
    """
    objective = objectives.PUBLIC[trial.objective](**trial.settings)
    encoder = PrefixEncoder(trial.components, objective=objective, solver=trial.solver, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if trial.pairs:
            encoder.fit_pairs(*case.pairs)
        else:
            encoder.fit(*(case.rows if trial.objective not in ("reconstruction", "similarity") else case.rows[:1]))
    found = encoder.encoder_
    ks = np.array(sorted({min(k, found.d) for k in KS}))
    parts = [case.test] if case.everything is None else [case.test, case.everything]
    return [per_row_scores(found, part, case.metric, ks) for part in parts]


@dataclass(frozen=True)
class Regret:
    """What a choice loses against the best objective: as measured, and in draws of the test part."""

    value: float
    draws: np.ndarray
    best: str

    def __str__(self) -> str:
        low, high = np.quantile(self.draws, [0.025, 0.975])
        return f"{self.value:.4f}, against {self.best}; 95 % interval {low:.4f} to {high:.4f}"


def regrets_of(name: str, case: Case) -> list[Regret]:
    """Print the ranking beside the test scores, and return the regret of the choice: on test, then on all queries."""
    began = time.process_time()
    found = diagnose(**case.diagnosed)
    ranking: Ranking = found.ranking  # type: ignore[assignment]
    seconds = time.process_time() - began
    print(f"\n{name}: {ranking.curves[0].metric}; {seconds:.0f} s of processor time")
    print(f"  {'objective':<40}{'diagnosis':<10}{case.metric} on test at k = {', '.join(map(str, KS))}")
    scores = {}
    for trial in ranking.trials:
        scores[trial.name] = fitted_scores(trial, case)
        mark = "  <- chosen" if trial.name == ranking.choice else ""
        shown, *rest = ("  ".join(f"{score:.4f}" for score in part.score()) for part in scores[trial.name])
        beside = f"   all queries {rest[0]}" if rest else ""
        print(f"  {trial.name:<40}{trial.mean:<10.4f}{shown}{beside}{mark}", flush=True)
    for left_out, reason in ranking.left_out.items():
        print(f"  {left_out}: not tried ({reason})")
    regrets = []
    for i, part in enumerate(("test", "all queries")[: len(next(iter(scores.values())))]):
        means = {trial: float(values[i].score().mean()) for trial, values in scores.items()}
        best = max(means, key=lambda trial: means[trial])
        # The same draws for both, so that the difference is paired.
        draws = [resampled_scores(scores[name][i], resamples=1000).mean(axis=1) for name in (best, str(ranking.choice))]
        regrets.append(Regret(means[best] - means[str(ranking.choice)], draws[0] - draws[1], best))
        print(f"  regret on {part}: {regrets[-1]}", flush=True)
    return regrets


def over_splits(splits: int) -> bool:
    """Print the regret over divisions of SciFact's queries; return whether it is at most 0.01 on new documents."""
    found = [regrets_of(f"SciFact, division {seed}", scifact(seed)) for seed in range(splits)]
    rng = np.random.default_rng(0)
    fine = True
    for i, part in enumerate(("new documents", "all queries")):
        values = [regrets[i].value for regrets in found]
        drawn = rng.integers(splits, size=(1000, splits))
        means = [np.mean([rng.choice(found[j][i].draws) for j in draw]) for draw in drawn]
        low, high = np.quantile(means, [0.025, 0.975])
        print(f"\nMean regret over {splits} divisions, {part}: {np.mean(values):.4f} ({low:.4f} to {high:.4f})")
        fine &= i > 0 or float(np.mean(values)) <= MOST
    return fine


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each set, then all regrets; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(CASES))
    parser.add_argument("--splits", type=int, help="divide the queries of SciFact anew so many times")
    given = parser.parse_args(arguments)
    if given.splits is not None:
        return int(not over_splits(given.splits))
    regrets = {
        name: regrets_of(name, make())[0].value for name, make in CASES.items() if not given.sets or name in given.sets
    }
    print(f"\nRegret, mean over k = {' and '.join(map(str, KS))} (at most {MOST} is promised)")
    for name, regret in regrets.items():
        print(f"  {name:<28}{regret:.4f}  {'met' if regret <= MOST else 'NOT MET'}")
    return int(any(regret > MOST for regret in regrets.values()))


if __name__ == "__main__":
    raise SystemExit(main())
