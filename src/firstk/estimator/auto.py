"""What "auto" stands for: settings chosen on held-out parts of the training data, by the objective's own curve.

The sample behind the choice does not depend on how the data arrived, and neither do the folds, so nor does the choice.
Candidates race over the folds: those that are clearly beaten drop out, and it ends when one is left (Maron and Moore
1994, Hoeffding races; here the error of a difference is that of the bootstrap). Nothing is drawn anew, and no clock is
read. Folds share what they can: moments of a fold are those of the sample less those of what is held out, neighbors are
mined once, and pencils that differ in their shrinkage share eigenvectors (:mod:`firstk.solvers.closed_form`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from firstk._base.concurrency import cores, ordered_map
from firstk._base.prefix_weights import OmegaLike, resolve_omega
from firstk._base.progress import Verbose, progress_bar
from firstk._base.rows import as_dense, distinct_rows
from firstk.contracts import Columns, Objective
from firstk.data.task import Data, Pairs, Rows, of_columns
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics.bootstrap import resampled_scores
from firstk.metrics.curve import per_row_scores, settled_metric
from firstk.moments.moments import Moments
from firstk.moments.pairs import PairMoments
from firstk.moments.statistics import PartOf, RowSample, Statistics
from firstk.quality.paired import DRAWS, OFTEN, TOLERANCE, select

N_FOLDS = 5
# Rows or pairs that a choice looks at: enough to rank settings, few enough to take seconds.
MOST_ROWS = 4096
# Recall that unseen documents may lose for the sake of seen ones, and how many held-out queries for seen documents a
# fold needs to speak for them.
UNSEEN_LOSS = 0.02
FEWEST_SEEN = 10
# Held-out rows that tell candidates apart.
FEWEST_ROWS = 100
# Memory that candidates which are solved at the same time may take, and how many p x p matrices one of them takes.
_WORK_BYTES, _MATRICES = 2**28, 6

Accumulate = Callable[[Columns], Moments | PairMoments]
Prepare = Callable[[Objective, Statistics], object]
Solve = Callable[[Objective, Statistics], FittedEncoder]
# Rows to fit on, and rows to evaluate on.
Fold = tuple[np.ndarray, np.ndarray]
Folds = list[Fold]
# Score of each candidate on a fold, shape (C,), and on resamples of its rows, shape (C, B), the same ones for all.
Scores = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class AutoChoice:
    """The settings chosen, and each candidate's mean held-out score over the folds in which it took part."""

    objective: Objective
    scores: tuple[tuple[Objective, float], ...]


def choose(
    objective: Objective,
    statistics: Statistics,
    accumulate: Accumulate,
    prepare: Prepare,
    solve: Solve,
    omega: OmegaLike | None = None,
    verbose: Verbose = False,
) -> AutoChoice:
    """Return the best of the objective's candidates.

    Rows and scored pairs are evaluated by cross-validation, pairs on documents that none of the training pairs has, and
    `quality` chooses: of the settings that are level with the best, the one that shrinks most. Positives answer
    to two kinds of queries, for documents that no pair names and for those that one does: of the settings that lose
    little on the first, the best on the second wins. `Objective.tie_break` says how much a setting shrinks, so the
    choice depends neither on the order of candidates nor on the last digit.

    Parameters
    ----------
    objective : Objective
        With something left to "auto".
    statistics : Statistics
        Of the training data, with a sample of its rows or pairs.
    accumulate : callable
        From rows to moments.
    prepare, solve : callable
        From an objective and statistics to what candidates share, which the statistics keep; and to an encoder.
    omega : str, array-like or mapping, optional
        Weights of the prefixes in a curve's mean; the objective's own if not given.
    verbose : bool or "auto"
        Whether progress over folds is shown.
    """
    sample = statistics.sample
    n = min(len(sample), MOST_ROWS)
    pairs = objective.supervision == "pairs"
    few = n < 4 * N_FOLDS
    folds: tuple[Folds, Folds] = ([], []) if few else _pair_folds(sample, n) if pairs else (_row_folds(sample, n), [])
    if few or not (pairs or _all_have_two_classes(sample, folds[0])):
        if (settled := _shrunk_by_formula(objective, statistics)) is not None:
            return AutoChoice(settled, ())
        raise InvalidInputError(
            f"Choosing 'auto' settings of {type(objective).__name__} needs at least {4 * N_FOLDS} rows or pairs. "
            f"Got {n}: set shrinkage (and neighbor_weight) to numbers."
        )
    candidates = objective.candidates()
    omega = objective.conventions.omega if omega is None else omega
    total = sum(map(len, folds))
    with statistics.sharing(), progress_bar(total * len(candidates), "choosing settings", "fit", verbose) as done:
        trial = _Trial(statistics, n, accumulate, prepare, solve, omega, done, len(candidates), total)
        race = Race(candidates, folds[0], trial.scores, UNSEEN_LOSS if folds[1] else TOLERANCE)
        # Of what loses little on unseen documents, the best on seen ones: nothing is given up there.
        chosen = Race(race.within(), folds[1], trial.scores, 0.0).won() if folds[1] else race.won()
    return AutoChoice(chosen, tuple(zip(candidates, race.means().tolist(), strict=True)))


def _shrunk_by_formula(objective: Objective, statistics: Statistics) -> Objective | None:
    """Return the objective with Ledoit and Wolf's (2004) shrinkage; None for pairs, and where more is "auto".

    For rows that are too few for folds. About the class means for labels, else about the mean; every weight counts as
    so many rows.
    """
    sample = statistics.sample
    if objective.supervision == "pairs" or getattr(objective, "shrinkage", None) != "auto":
        return None
    X = as_dense(sample["X"]).astype(np.float64)
    w = np.asarray(sample["weight"], dtype=np.float64) if "weight" in sample else np.ones(len(X))
    labels = np.asarray(sample["y"]) if "y" in sample else np.zeros(len(X), dtype=int)
    if labels.ndim > 1 or labels.dtype.kind == "f":
        labels = np.zeros(len(X), dtype=int)
    for label in np.unique(labels):
        of_class = (labels == label) & (w > 0)
        if of_class.any():
            X[of_class] -= np.average(X[of_class], axis=0, weights=w[of_class])
    n, lengths, gram = w.sum(), np.square(X).sum(axis=1), X @ X.T
    squared = float(w @ np.square(gram) @ w) / n**2  # |S|^2
    spread = squared - float(w @ lengths / n) ** 2 / statistics.n_features
    noise = (float(w @ np.square(lengths)) / n - squared) / n
    shrinkage = min(1.0, max(0.0, noise / spread)) if spread > 0 else 1.0
    settled: Objective = replace(objective, shrinkage=shrinkage)  # type: ignore[type-var]
    return None if settled.candidates() else settled


class Race:
    """Held-out scores of candidates, fold by fold, of those that matter.

    A candidate drops out when it is behind by three standard errors more than may be lost: so a race ends in the choice
    that all folds of all candidates lead to, but for differences that their noise would explain.

    Parameters
    ----------
    candidates : sequence of Objective
    folds : list of (rows to fit on, rows to evaluate on)
    score : callable
        From some candidates and a fold to their scores.
    most : float
        What may be lost against the best.

    Attributes
    ----------
    running : list of int
        Places of the candidates that took part in all folds: those that may be chosen.
    scores : ndarray of shape (folds, candidates)
        NaN where a candidate did not take part.
    """

    def __init__(
        self,
        candidates: Sequence[Objective],
        folds: Folds,
        score: Callable[[Sequence[Objective], Fold], Scores],
        most: float = TOLERANCE,
    ):
        self.candidates, self.most = candidates, most
        # Those that shrink most are the simplest; of equal ones, as good as one another, those with most of the rest.
        self.running = sorted(range(len(candidates)), key=lambda i: -candidates[i].tie_break[1])
        self.scores = np.full((len(folds), len(candidates)), np.nan)
        self._draws: list[np.ndarray] = []
        rows = 0
        for number, fold in enumerate(folds):
            found, drawn = score([candidates[i] for i in self.running], fold)
            self.scores[number, self.running] = found
            self._draws = [*self._draws, drawn]
            rows += len(fold[1])
            if rows >= FEWEST_ROWS:
                # Those that are clearly beaten drop out.
                means, draws = self.means()[self.running], np.mean(self._draws, axis=0)
                best = int(means.argmax())
                error = (draws - draws[best]).std(axis=1)
                kept = np.flatnonzero(means[best] - means <= self.most + OFTEN * error)
                self.running = [self.running[int(i)] for i in kept]
                self._draws = [drawn[kept] for drawn in self._draws]
                if len(self.running) == 1:
                    break

    def won(self) -> Objective:
        """Return the simplest of the candidates that are level with the best."""
        order = [-self.candidates[i].tie_break[0] for i in self.running]
        found = select(self.means()[self.running], np.mean(self._draws, axis=0), order=order, most=self.most)
        return self.candidates[self.running[found.chosen]]

    def within(self) -> list[Objective]:
        """Return the candidates that lose no more than may be lost, clearly or not."""
        means = self.means()[self.running]
        return [
            self.candidates[i] for i, mean in zip(self.running, means, strict=True) if mean >= means.max() - self.most
        ]

    def means(self) -> np.ndarray:
        """Return the mean score of each candidate over the folds in which it took part."""
        return np.asarray(np.nanmean(self.scores[: len(self._draws)], axis=0))


@dataclass(eq=False)
class _Trial:
    """Fit candidates on some rows of a sample and score them on others."""

    statistics: Statistics
    n: int
    accumulate: Accumulate
    prepare: Prepare
    solve: Solve
    omega: OmegaLike
    done: Callable[..., None]  # tells a bar of fits; those of candidates that dropped out count as done
    candidates: int
    folds: int
    fold: int = 0

    def scores(self, candidates: Sequence[Objective], fold: Fold) -> Scores:
        """Return the score of each candidate on one fold, and its scores on resampled rows.

        A fold is the rows to fit on and the rows to evaluate on.
        """
        kept, held = fold
        # The statistics of some rows of the sample: those of all that a choice looks at, less the others.
        whole, sample = self.statistics, self.statistics.sample
        every = np.arange(self.n)
        moments = whole.shared("moments of the sample", lambda: self.accumulate(sample.take(every)))
        rest = moments.without(self.accumulate(sample.take(np.setdiff1d(every, kept))))  # type: ignore[arg-type]
        statistics = Statistics(rest, sample.part(kept), whole.n_features, part_of=PartOf(whole, kept))
        data = _evaluation_data(statistics.sample.columns, sample.take(held))

        def share(candidate: Objective) -> None:
            self.prepare(candidate, statistics)

        def scored(candidate: Objective) -> tuple[float, np.ndarray]:
            encoder = self.solve(candidate, statistics)
            return weighted_score(encoder, data, settled_metric(encoder, data), self.omega)

        p = statistics.moments.p
        workers = min(cores(), len(candidates), _WORK_BYTES // (8 * _MATRICES * p * p))
        with statistics.sharing():
            if workers > 1:  # what candidates share; in the first fold neighbors are mined, by all cores together
                deque(ordered_map(share, candidates, workers) if self.fold else map(share, candidates), 0)
            self.fold += 1
            self.done(0, fold=f"{self.fold} of {self.folds}")
            found = []
            # More cores than one each solve a candidate: eigensolvers gain little from several threads of BLAS.
            for result in ordered_map(scored, candidates, workers) if workers > 1 else map(scored, candidates):
                found.append(result)
                self.done()
            self.done(self.candidates - len(candidates))
        scores, resampled = zip(*found, strict=True)
        return np.array(scores), np.array(resampled)


def _row_folds(sample: RowSample, n: int) -> Folds:
    """Return random folds in which copies of a row stay together: apart, they would be their own answers.

    Where that would leave a fold empty, or a class out of what is fitted on, as with one row a hundred times, rows are
    dealt out one by one.
    """
    first, which = distinct_rows(sample["X"][:n])
    number = np.arange(n) % N_FOLDS
    if len(first) == n or len(first) < N_FOLDS:
        return _folds(number)
    sizes, place = np.zeros(N_FOLDS, dtype=int), np.empty(len(first), dtype=int)
    for row, copies in enumerate(np.bincount(which)):  # each to the fold that is smallest so far
        place[row] = sizes.argmin()
        sizes[place[row]] += copies
    together = _folds(place[which])
    y = np.asarray(sample["y"][:n]) if "y" in sample else np.zeros(n, dtype=int)
    labelled = y.ndim == 1 and y.dtype.kind != "f"
    if labelled and any(len(np.unique(y[kept])) < len(np.unique(y)) for kept, _ in together):
        return _folds(number)
    return together


def _all_have_two_classes(sample: RowSample, folds: Folds) -> bool:
    """Return whether the rows to fit on hold at least two classes in every fold, where rows have labels."""
    y = np.asarray(sample["y"]) if "y" in sample else np.zeros(0)
    return y.ndim != 1 or y.dtype.kind == "f" or not len(y) or all((y[kept] != y[kept[0]]).any() for kept, _ in folds)


def _folds(number: np.ndarray) -> Folds:
    """Return the rows to fit on and to evaluate on, for rows numbered by fold."""
    return [(np.flatnonzero(number != f), np.flatnonzero(number == f)) for f in range(N_FOLDS)]


def _pair_folds(sample: RowSample, n: int) -> tuple[Folds, Folds]:
    """Return folds that hold documents out, and folds of queries for documents that are fitted on.

    The second are empty where there are too few such queries, and for scored pairs.
    """
    # A number for each pair's document, by first appearance in the sample, whose order is a hash.
    first, document = distinct_rows(sample["right"][:n])
    if len(first) < N_FOLDS:
        raise InvalidInputError(
            f"Choosing 'auto' settings holds documents out and needs at least {N_FOLDS} different right sides. "
            f"Got {len(first)}: set shrinkage and neighbor_weight to numbers."
        )
    unseen = _folds(document % N_FOLDS)
    by_row = _folds(np.arange(n) % N_FOLDS)  # the order of a sample is a hash, so these are random folds
    seen = [(kept, held[np.isin(document[held], document[kept])]) for kept, held in by_row]
    speaks = "scores" not in sample and min(len(held) for _, held in seen) >= FEWEST_SEEN
    return unseen, seen if speaks else []


def _evaluation_data(kept: Columns, held: Columns) -> Data:
    data = of_columns({name: part for name, part in held.items() if name != "weight"})
    return data if isinstance(data, Pairs) else replace(data, reference=Rows(kept["X"], kept.get("y")))


def weighted_score(encoder: FittedEncoder, held_out: Data, metric: str, omega: OmegaLike) -> tuple[float, np.ndarray]:
    """Return the mean of the curve weighted by omega, read at 2, 4, 8, ... and the full width, and its resamples.

    Each of these lengths speaks for the prefixes since the one before it, so it weighs what they weigh together.
    """
    ks = np.unique([min(2**i, encoder.d) for i in range(1, encoder.d.bit_length() + 1)])
    up_to = np.cumsum(resolve_omega(omega, encoder.d).omega)[ks - 1]
    weights = np.diff(up_to, prepend=0.0)
    rows = per_row_scores(encoder, held_out, metric, ks)
    resampled = resampled_scores(rows, resamples=DRAWS)
    return float(np.average(rows.score(), weights=weights)), np.average(resampled, weights=weights, axis=1)
