"""What "auto" stands for: settings chosen on held-out parts of the training data, by the objective's own curve.

The sample behind the choice does not depend on how the data arrived, and neither do the folds, so nor does the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._base.prefix_weights import OmegaLike, resolve_omega
from firstk._base.rows import distinct_rows
from firstk.contracts import Objective, Rows
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import EvaluationData, prefix_scores, settled_metric
from firstk.moments.statistics import RowSample, Statistics

N_FOLDS = 5
# Rows or pairs that a choice looks at: enough to rank settings, few enough to take seconds.
MOST_ROWS = 4096
# Recall that unseen documents may lose for the sake of seen ones, and how many held-out queries for seen documents a
# fold needs to speak for them.
UNSEEN_LOSS = 0.02
FEWEST_SEEN = 10
# Mean correlations of scored pairs that differ by less are the luck of the folds.
TIE = 0.005
# Mean scores that differ by less are equal: a neighbor found on one processor and not on another changes as much.
ROUNDING = 5e-4
# Rows: standard errors, of the paired difference over folds, by which a setting must lose to count as worse.
SURE = 1.0

Folds = list[tuple[np.ndarray, np.ndarray]]
Accumulate = Callable[[Rows], Statistics]
Progress = Callable[[Iterable[Any]], Iterable[Any]]
Solve = Callable[[Objective, Statistics], FittedEncoder]


@dataclass(frozen=True)
class Choice:
    """The settings chosen, and the held-out score of every candidate."""

    objective: Objective
    scores: tuple[tuple[Objective, float], ...]


def choose(
    objective: Objective,
    sample: RowSample,
    accumulate: Accumulate,
    solve: Solve,
    omega: OmegaLike | None = None,
    progress: Progress = iter,
) -> Choice:
    """Return the best of the objective's candidates.

    Rows and scored pairs are evaluated by cross-validation, pairs on documents that none of the training pairs has, and
    the best mean score wins. Positives answer to two kinds of queries, for documents that no pair names and for those
    that one does: of the settings that lose little on the first, the best on the second wins. Of settings that tie (for
    rows, by a standard error of the difference over folds) `Objective.tie_break` decides: the one that shrinks most
    wins; of equal shrinkage, the better one. So the choice depends neither on the order of candidates nor on the last
    digit.

    Parameters
    ----------
    objective : Objective
        With something left to "auto".
    sample : RowSample
        Rows or pairs of the training data.
    accumulate, solve : callable
        From rows to statistics, and from an objective and statistics to an encoder.
    omega : str, array-like or mapping, optional
        Weights of the prefixes in a curve's mean; the objective's own if not given.
    progress : callable
        Wraps the iterable of folds.
    """
    n = min(len(sample), MOST_ROWS)
    if n < 4 * N_FOLDS:
        raise InvalidInputError(
            f"Choosing 'auto' settings of {type(objective).__name__} needs at least {4 * N_FOLDS} rows or pairs. "
            f"Got {n}: set shrinkage (and neighbor_weight) to numbers."
        )
    candidates = objective.candidates()
    trial = _Trial(sample, accumulate, solve, objective.conventions.omega if omega is None else omega, progress)
    if objective.supervision != "pairs":
        table = trial.scores(candidates, _row_folds(sample, n))
        return _choice(candidates, table, _best(candidates, table, sure=SURE))
    by_row = _folds(np.arange(n) % N_FOLDS)  # the order of a sample is a hash, so these are random folds
    document = _documents(sample["right"][:n])
    table = trial.scores(candidates, _folds(document % N_FOLDS))
    chosen = _best(candidates, table, TIE)
    again = [(kept, held[np.isin(document[held], document[kept])]) for kept, held in by_row]
    if "scores" not in sample and min(len(held) for _, held in again) >= FEWEST_SEEN:
        good = _near(candidates, table.mean(axis=0), UNSEEN_LOSS)
        chosen = _best(good, trial.scores(good, again))
    return _choice(candidates, table, chosen)


def _choice(candidates: Sequence[Objective], table: np.ndarray, chosen: Objective) -> Choice:
    return Choice(chosen, tuple(zip(candidates, table.mean(axis=0).tolist(), strict=True)))


def _near(candidates: Sequence[Objective], means: np.ndarray, loss: float) -> list[Objective]:
    """Return the candidates whose score is within `loss` of the best, in their order."""
    return [each for each, mean in zip(candidates, means, strict=True) if mean >= means.max() - loss]


def _best(candidates: Sequence[Objective], table: np.ndarray, tie: float = ROUNDING, sure: float = 0.0) -> Objective:
    """Return the candidate with the best mean over folds (rows of `table`); of those that tie with it, by rule."""
    means = table.mean(axis=0)
    loss = table[:, [int(means.argmax())]] - table
    error = loss.std(axis=0, ddof=1) / np.sqrt(len(table))
    tied = loss.mean(axis=0) <= np.maximum(tie, sure * error)
    first, second = np.array([each.tie_break for each in candidates]).T
    tied &= first == first[tied].max()
    tied &= means >= means[tied].max() - ROUNDING
    return candidates[int(np.flatnonzero(tied)[second[tied].argmax()])]


@dataclass(frozen=True)
class _Trial:
    """Fit candidates on some rows of a sample and score them on others."""

    sample: RowSample
    accumulate: Accumulate
    solve: Solve
    omega: OmegaLike
    progress: Progress

    def scores(self, candidates: Sequence[Objective], folds: Folds) -> np.ndarray:
        """Every candidate's score on every fold, shape (folds, candidates).

        A fold is the rows to fit on and the rows to evaluate on.
        """
        table = np.empty((len(folds), len(candidates)))
        for f, (kept, held) in enumerate(self.progress(folds)):
            fit, validation = self.sample.take(kept), self.sample.take(held)
            statistics, data = self.accumulate(fit), _evaluation_data(fit, validation)
            table[f] = [_score(self.solve(each, statistics), data, self.omega) for each in candidates]
        return table


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


def _folds(number: np.ndarray) -> Folds:
    """Return the rows to fit on and to evaluate on, for rows numbered by fold."""
    return [(np.flatnonzero(number != f), np.flatnonzero(number == f)) for f in range(N_FOLDS)]


def _documents(right: np.ndarray) -> np.ndarray:
    """Return a number for each pair's document, by first appearance in the sample, whose order is a hash."""
    first, document = distinct_rows(right)
    if len(first) < N_FOLDS:
        raise InvalidInputError(
            f"Choosing 'auto' settings holds documents out and needs at least {N_FOLDS} different right sides. "
            f"Got {len(first)}: set shrinkage and neighbor_weight to numbers."
        )
    return document


def _evaluation_data(kept: Rows, held: Rows) -> EvaluationData:
    if "left" in held:
        return EvaluationData(left=held["left"], right=held["right"], scores=held.get("scores"))
    return EvaluationData(X=held["X"], y=held.get("y"), X_ref=kept["X"], y_ref=kept.get("y"))


def _score(encoder: FittedEncoder, held_out: EvaluationData, omega: OmegaLike) -> float:
    """Mean of the curve weighted by omega, read at 2, 4, 8, ... and the full width.

    Each of these speaks for the prefixes since the one before it, so it weighs what they weigh together.
    """
    ks = np.unique([min(2**i, encoder.d) for i in range(1, encoder.d.bit_length() + 1)])
    up_to = np.cumsum(resolve_omega(omega, encoder.d).omega)[ks - 1]
    scores = prefix_scores(encoder, held_out, settled_metric(encoder, held_out), ks)
    return float(np.average(scores, weights=np.diff(up_to, prepend=0.0)))
