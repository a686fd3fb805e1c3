"""What "auto" stands for: settings chosen on held-out parts of the training data, by the objective's own curve.

The sample behind the choice does not depend on how the data arrived, and neither do the folds, so nor does the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._checks import InvalidInput
from firstk.contracts import Objective, Statistics
from firstk.evaluation import Evidence, prefix_curve
from firstk.fitted import FittedEncoder
from firstk.omega import resolve_omega
from firstk.sampling import RowSample

N_FOLDS = 5
# Rows or pairs that a choice looks at: enough to rank settings, few enough to take seconds.
MOST_ROWS = 4096

Measure = Callable[[dict[str, np.ndarray]], Statistics]
Solve = Callable[[Objective, Statistics], FittedEncoder]


@dataclass(frozen=True)
class Choice:
    """The settings chosen, and the held-out score of every candidate."""

    objective: Objective
    scores: tuple[tuple[Objective, float], ...]


def choose(objective: Objective, sample: RowSample, measure: Measure, solve: Solve, progress: Any = iter) -> Choice:
    """Return the best of the objective's candidates.

    Within a group of candidates the best mean score over folds wins. The first group wins whose winner is within one
    standard error of the best of all, the error being that of the difference over folds.

    Parameters
    ----------
    objective : Objective
        With something left to "auto".
    sample : RowSample
        Rows of the training data.
    measure, solve : callable
        From rows to statistics, and from an objective and statistics to an encoder.
    progress : callable
        Wraps the iterable of folds.
    """
    groups = objective.candidates()
    flat = [candidate for group in groups for candidate in group]
    table = np.array([
        [_score(solve(candidate, statistics), held_out, objective.line.omega) for candidate in flat]
        for statistics, held_out in _measured_folds(objective, sample, measure, progress)
    ])  # (folds, candidates)
    means = table.mean(axis=0)
    best = int(means.argmax())
    start = 0
    for group in groups:
        winner = start + int(means[start : start + len(group)].argmax())
        behind = table[:, best] - table[:, winner]
        if behind.mean() <= behind.std(ddof=1) / np.sqrt(len(behind)):
            break
        start += len(group)
    return Choice(flat[winner], tuple(zip(flat, means.tolist(), strict=True)))


def _measured_folds(
    objective: Objective, sample: RowSample, measure: Measure, progress: Any
) -> Iterator[tuple[Statistics, Evidence]]:
    n = min(len(sample), MOST_ROWS)
    fold = _fold_of_documents(sample["right"][:n]) if objective.takes == "pairs" else np.arange(n) % N_FOLDS
    if n < 4 * N_FOLDS or len(np.unique(fold)) < N_FOLDS:
        raise InvalidInput(
            f"Choosing 'auto' settings of {type(objective).__name__} needs at least {4 * N_FOLDS} rows or pairs, and "
            f"{N_FOLDS} distinct documents. Got {n}: set shrinkage (and neighbours) to numbers."
        )
    for f in progress(range(N_FOLDS)):
        kept, held = sample.take(np.flatnonzero(fold != f)), sample.take(np.flatnonzero(fold == f))
        yield measure(kept), _evidence(kept, held)


def _fold_of_documents(right: np.ndarray) -> np.ndarray:
    """Put all pairs of a document into one fold: pairs are to be judged on documents they have not seen."""
    _, first, document = np.unique(right, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # by first appearance in the sample, whose order is a hash
    return (rank % N_FOLDS)[document.ravel()]


def _evidence(kept: dict[str, np.ndarray], held: dict[str, np.ndarray]) -> Evidence:
    if "left" in held:
        return Evidence(left=held["left"], right=held["right"], scores=held.get("scores"))
    return Evidence(X=held["X"], y=held.get("y"), X_ref=kept["X"], y_ref=kept.get("y"))


def _score(encoder: FittedEncoder, held_out: Evidence, omega: str) -> float:
    """Mean of the curve at 2, 4, 8, ... and the full width, weighted by the objective's omega."""
    ks = np.unique([min(2**i, encoder.d) for i in range(1, encoder.d.bit_length() + 1)])
    weights = resolve_omega(omega, encoder.d).omega[ks - 1]
    curve = prefix_curve(encoder, held_out, ks=ks)
    return float(np.average(curve.score, weights=weights))
