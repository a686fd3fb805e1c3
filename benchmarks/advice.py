"""Whether the advice holds: promised shares against rows that nothing has seen, and what another choice would have won.

``python -m benchmarks.advice``: the queries of SciFact and the rows of Banking77 are split at random into a part that
the recommendation is made from and a part that is kept unseen.

- Calibration: how often the promised interval, widened by the noise of the unseen part, covers the share measured
  there, and how far the promise lies above it on average.
- Regret: what the recommended choice loses against the best choice of no more bytes, known afterwards; and, for
  shares, its bytes over those of the cheapest choice that would have kept the share.

Encoders are fitted on documents alone (SciFact), on training rows that are in no part (Banking77, several draws), and
on the judgements of a third of SciFact's queries (several draws). Of the last, both parts are of the other queries for
new documents, of which no relevant one was learned from, as advice is given on those; what is required of the other
two is shown for it, but not required: parts of about 200 queries differ by more than 0.01.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from firstk import Evaluation, PrefixEncoder, Rows, Search
from firstk.advice.baselines import baselines_of
from firstk.advice.evaluate import Measured, _Grid, default_bytes, default_lengths, told_apart
from firstk.data.precision import PRECISIONS
from firstk.data.task import Data
from firstk.metrics.bootstrap import MeanScore, PerRowScores, resampled_scores
from firstk.objectives import Fisher, Similarity
from firstk.quality.choice import Limits, Point, choose
from firstk.quality.evaluation import Packed
from firstk.quality.paired import DEVIATIONS, DRAWS
from firstk_papers.datasets import data_folder

ASKED = (Limits(keep=0.95), Limits(keep=0.99), Limits(bytes_per_vector=32), Limits(bytes_per_vector=64))
# What is required: coverage, optimism, loss, and bytes over the least that would have done.
COVERAGE, OPTIMISM, LOSS, BYTES = (0.90, 0.99), 0.01, 0.01, 1.25
CASES = ("scifact", "banking77", "judgements")
REQUIRED = ("scifact", "banking77")


@dataclass(frozen=True)
class Scores:
    """Scores of every point by row; the raw vectors' are those of `raw`."""

    points: tuple[Point, ...]
    values: np.ndarray
    raw: int
    metric: str
    unit: str

    def table(self, rows: np.ndarray) -> Evaluation:
        """Return the evaluation of some rows, as one on those alone would make it."""
        part = self.values[rows]
        draws = resampled_scores(MeanScore(part), resamples=DRAWS)
        scores = part.mean(axis=0)
        return Evaluation(
            tuple(replace(point, score=float(score)) for point, score in zip(self.points, scores, strict=True)),
            self.metric,
            input_score=float(scores[self.raw]),
            n_evaluated=len(rows),
            unit=self.unit,
            draws=Packed.of(draws.T),
        )


@dataclass(frozen=True, eq=False)
class ByRow(_Grid):
    """Scores codes as `evaluate` does, and keeps what each row scores."""

    rows: dict[Point, np.ndarray] = field(default_factory=dict)

    def _measured(self, points: Sequence[Point], scores: PerRowScores) -> list[Measured]:
        assert isinstance(scores, MeanScore)
        values = np.asarray(scores.values / scores.out_of, dtype=np.float64)
        self.rows.update(zip(points, values.T, strict=True))
        return super()._measured(points, scores)


def kept_scores(folder: Path | None, name: str, make: Callable[[], Scores]) -> Scores:
    """Return scores that an earlier run left in a folder, else make them and leave them there."""
    path = None if folder is None else folder / f"{name}.npz"
    if path is not None and path.exists():
        with np.load(path) as held:
            facts = json.loads(str(held["facts"]))
            points = tuple(Point(**point) for point in facts["points"])
            return Scores(points, held["values"], facts["raw"], facts["metric"], facts["unit"])
    found = make()
    if path is not None:
        points = [asdict(point) for point in found.points]
        facts = {"points": points, "raw": found.raw, "metric": found.metric, "unit": found.unit}
        np.savez(path, values=found.values, facts=json.dumps(facts))
    return found


def scores_of(encoder: PrefixEncoder, data: Data, metric: str, training: np.ndarray) -> Scores:
    """Score every point on all rows."""
    fitted = encoder.encoder_
    others = {name: code for name, code in baselines_of(training).items() if name in ("PCA", "uncentred SVD")}
    names, sizes = list(PRECISIONS.values()), default_bytes(fitted)
    grid = ByRow(fitted, data, metric, default_lengths(fitted), names, every=False, n_draws=1, sizes=sizes)

    def quiet(what: str) -> None:
        pass

    for score in (grid.curves, grid.rounded):
        score(others, quiet)
    grid.product_quantizers(quiet)
    grid.as_they_came()
    points = tuple(sorted(grid.rows, key=lambda point: point.key))
    values = np.column_stack([grid.rows[point] for point in points])
    return Scores(points, values, next(i for i, point in enumerate(points) if point.raw), metric, data.unit)


def divided(n: int, chosen_on: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows in two parts at random: halves, or so many to choose on and the others."""
    order = np.random.default_rng(seed).permutation(n)
    size = n // 2 if chosen_on is None else chosen_on
    return order[:size], order[size:]


def scifact(
    splits: int, chosen_on: int | None = None, draws: int = 1, folder: Path | None = None
) -> Iterator[tuple[Scores, np.ndarray, np.ndarray]]:
    """Yield splits of the queries in two halves; the encoder is fitted on the documents."""
    held = np.load(data_folder() / "retrieval-scifact" / "scifact_minilm.npz")
    documents, queries = held["D"].astype(np.float32), held["Q"].astype(np.float32)
    relevance = np.concatenate([held["qrels_train"], held["qrels_test"]])
    data = Search(queries, documents, relevance)

    def scored() -> Scores:
        encoder = PrefixEncoder(objective=Similarity()).fit(documents)
        return scores_of(encoder, data, "ndcg@10", documents)

    scores = kept_scores(folder, "scifact", scored)
    for seed in range(splits):
        yield scores, *divided(len(scores.values), chosen_on, seed)


def judgements(
    splits: int, chosen_on: int | None = None, draws: int = 4, folder: Path | None = None
) -> Iterator[tuple[Scores, np.ndarray, np.ndarray]]:
    """Yield splits of the queries for new documents, for several draws of queries that an encoder learns from."""
    held = np.load(data_folder() / "retrieval-scifact" / "scifact_minilm.npz")
    documents, queries = held["D"].astype(np.float32), held["Q"].astype(np.float32)
    relevance = np.concatenate([held["qrels_train"], held["qrels_test"]])
    for draw in range(draws):
        order = np.random.default_rng(1000 + draw).permutation(len(queries))
        learned = np.isin(relevance[:, 0], order[: len(order) // 3])
        pairs = relevance[learned & (relevance[:, 2] > 0)]
        data = Search(queries, documents, relevance[~learned])

        def scored(pairs: np.ndarray = pairs, data: Search = data) -> Scores:
            encoder = PrefixEncoder(objective=Similarity()).fit_pairs(queries[pairs[:, 0]], documents[pairs[:, 1]])
            apart = told_apart(data, encoder.encoder_.learned)
            assert isinstance(apart, Search)
            assert apart.new is not None
            return scores_of(encoder, apart.new, "ndcg@10", documents)

        scores = kept_scores(folder, f"judgements-{draw}", scored)
        for seed in range(draw, splits, draws):
            yield scores, *divided(len(scores.values), chosen_on, seed)


def banking77(
    splits: int, chosen_on: int | None = None, draws: int = 5, folder: Path | None = None
) -> Iterator[tuple[Scores, np.ndarray, np.ndarray]]:
    """Yield splits of rows that no fit has seen, 2,000 and 2,000, for several draws of training rows."""
    held = np.load(data_folder() / "banking77" / "banking77_minilm.npz")
    X = np.concatenate([held["X_train"], held["X_test"]]).astype(np.float32)
    y = np.concatenate([held["y_train"], held["y_test"]])
    for draw in range(draws):
        order = np.random.default_rng(1000 + draw).permutation(len(X))
        fit, new = order[:5000], order[5000:9000]
        data = Rows(X[new], y[new], reference=Rows(X[fit], y[fit]))

        def scored(fit: np.ndarray = fit, data: Data = data) -> Scores:
            encoder = PrefixEncoder(objective=Fisher(shrinkage="auto")).fit(X[fit], y[fit])
            return scores_of(encoder, data, "1nn_accuracy", X[fit])

        scores = kept_scores(folder, f"banking77-{draw}", scored)
        for seed in range(draw, splits, draws):
            yield scores, *divided(len(new), chosen_on, seed)


@dataclass
class Outcome:
    """What came of one choice in one split."""

    covered: bool
    optimism: float
    loss: float
    bytes: float | None


def outcome(scores: Scores, seen: np.ndarray, unseen: np.ndarray, table: Evaluation, limits: Limits) -> Outcome | None:
    """Choose on one part, and measure on the other; None where nothing was chosen."""
    advised = choose(table, limits).advised
    if advised is None or advised.low is None:
        return None
    names = [(p.code, p.stored_as, p.k, p.bytes) for p in scores.points]
    point = advised.point
    place = names.index((point.code, point.stored_as, point.k, point.bytes))
    measured = scores.values[unseen].mean(axis=0)
    shares, size = measured / measured[scores.raw], np.array([p.bytes for p in scores.points])
    allowed = np.array([p.queries == "float32" for p in scores.points])
    widened = advised.noise * np.sqrt(1 + len(seen) / len(unseen))
    kept = allowed & (shares >= (limits.keep or 0))
    return Outcome(
        covered=abs(shares[place] - advised.share) <= widened,
        optimism=advised.share - shares[place],
        loss=float(measured[allowed & (size <= point.bytes)].max() - measured[place]),
        bytes=None if limits.keep is None else point.bytes / size[kept].min(),
    )


def report(case: str, splits: int, chosen_on: int | None, draws: int | None, folder: Path | None) -> bool:
    """Print the table of a case, and return whether all of it is as required."""
    given = {} if draws is None else {"draws": draws}
    parts = [(*part, part[0].table(part[1])) for part in _SPLITS[case](splits, chosen_on, folder=folder, **given)]
    print(f"\n{case}: {len(parts)} splits, {len(parts[0][1]):,} seen and {len(parts[0][2]):,} unseen")
    print(f"{'asked for':<16}{'covered':>9}{'optimism':>10}{'loss':>8}{'bytes':>8}{'chosen':>8}")
    fine = True
    for limits in ASKED:
        found = [o for o in (outcome(*part, limits) for part in parts) if o is not None]
        covered, optimism, loss = (
            float(np.mean([getattr(o, name) for o in found])) for name in ("covered", "optimism", "loss")
        )
        size = None if limits.keep is None else float(np.mean([o.bytes for o in found]))
        name = f"{limits.bytes_per_vector} bytes" if limits.keep is None else f"{100 * limits.keep:g} %"
        shown = "" if size is None else f"{size:8.2f}"
        print(f"{name:<16}{covered:9.3f}{optimism:10.4f}{loss:8.4f}{shown:>8}{len(found):8}")
        fine &= COVERAGE[0] <= covered <= COVERAGE[1] and optimism <= OPTIMISM and loss <= LOSS
        fine &= size is None or size <= BYTES
    return fine


_SPLITS = {"scifact": scifact, "banking77": banking77, "judgements": judgements}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases asked for; 1 where something is not as required."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--chosen-on", type=int, help="rows or queries to choose on; half if not given")
    parser.add_argument("--draws", type=int, help="fits of Banking77 and of judgements; 5 and 4 if not given")
    parser.add_argument("--scores", type=Path, metavar="FOLDER", help="keep scores there, for runs that are cut short")
    given = parser.parse_args(arguments)
    print(
        f"Intervals of {DEVIATIONS} standard deviations, widened by the unseen part. Required: covered in "
        f"{COVERAGE[0]:.0%} to {COVERAGE[1]:.0%}, optimism at most {OPTIMISM}, loss at most {LOSS}, bytes at most "
        f"{BYTES} times the least."
    )
    fine = {
        case: report(case, given.splits, given.chosen_on, given.draws, given.scores)
        for case in CASES
        if given.only in (None, case)
    }
    return 0 if all(fine[case] for case in fine if case in REQUIRED) else 1


if __name__ == "__main__":
    sys.exit(main())
