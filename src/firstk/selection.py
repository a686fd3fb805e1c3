"""What "auto" stands for: settings chosen on held-out parts of the training data, by the objective's own curve.

The sample behind the choice does not depend on how the data arrived, and neither do the folds, so nor does the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._checks import InvalidInput
from firstk.contracts import Objective, Statistics
from firstk.evaluation import Evidence, prefix_scores, settled_metric
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


def choose(
    objective: Objective, sample: RowSample, measure: Measure, solve: Solve, omega: Any = None, progress: Any = iter
) -> Choice:
    """Return the best of the objective's candidates.

    Rows are judged by cross-validation, and the best mean score wins. Pairs are judged on documents that none of the
    training pairs has: all settings within one standard error of the best there are good enough for unseen documents,
    and among them the one that serves the documents of the pairs best wins.

    Parameters
    ----------
    objective : Objective
        With something left to "auto".
    sample : RowSample
        Rows or pairs of the training data.
    measure, solve : callable
        From rows to statistics, and from an objective and statistics to an encoder.
    omega : str, array-like or mapping, optional
        Weights of the prefixes in a curve's mean; the objective's own if not given.
    progress : callable
        Wraps the iterable of folds.
    """
    candidates = objective.candidates()
    omega = objective.line.omega if omega is None else omega
    n = min(len(sample), MOST_ROWS)
    if n < 4 * N_FOLDS:
        raise InvalidInput(
            f"Choosing 'auto' settings of {type(objective).__name__} needs at least {4 * N_FOLDS} rows or pairs. "
            f"Got {n}: set shrinkage (and neighbours) to numbers."
        )
    by_row = np.arange(n) % N_FOLDS  # the order of a sample is a hash, so this is a random fold
    if objective.takes != "pairs":
        means = _held_out(candidates, by_row, sample, measure, solve, omega, progress).mean(axis=0)
        return Choice(candidates[int(means.argmax())], tuple(zip(candidates, means.tolist(), strict=True)))
    by_document = _fold_of_documents(sample["right"][:n])
    unseen = _held_out(candidates, by_document, sample, measure, solve, omega, progress)
    means = unseen.mean(axis=0)
    best = int(means.argmax())
    error = unseen[:, best].std(ddof=1) / np.sqrt(N_FOLDS)
    good = [candidates[i] for i in np.flatnonzero(means >= means[best] - error)]
    seen = _held_out(good, by_row, sample, measure, solve, omega, progress).mean(axis=0)
    return Choice(good[int(seen.argmax())], tuple(zip(candidates, means.tolist(), strict=True)))


def _held_out(
    candidates: Sequence[Objective],
    fold: np.ndarray,
    sample: RowSample,
    measure: Measure,
    solve: Solve,
    omega: Any,
    progress: Any,
) -> np.ndarray:
    """Score every candidate on every fold after fitting on the others, shape (folds, candidates)."""
    table = np.empty((N_FOLDS, len(candidates)))
    for f in progress(range(N_FOLDS)):
        kept, held = sample.take(np.flatnonzero(fold != f)), sample.take(np.flatnonzero(fold == f))
        statistics, evidence = measure(kept), _evidence(kept, held)
        table[f] = [_score(solve(candidate, statistics), evidence, omega) for candidate in candidates]
    return table


def _fold_of_documents(right: np.ndarray) -> np.ndarray:
    """Put all pairs of a document into one fold: pairs are to be judged on documents they have not seen."""
    _, first, document = np.unique(right, axis=0, return_index=True, return_inverse=True)
    if len(first) < N_FOLDS:
        raise InvalidInput(
            f"Choosing 'auto' settings holds documents out and needs at least {N_FOLDS} different right sides. "
            f"Got {len(first)}: set shrinkage and neighbours to numbers."
        )
    rank = np.argsort(np.argsort(first))  # by first appearance in the sample, whose order is a hash
    return (rank % N_FOLDS)[document.ravel()]


def _evidence(kept: dict[str, np.ndarray], held: dict[str, np.ndarray]) -> Evidence:
    if "left" in held:
        return Evidence(left=held["left"], right=held["right"], scores=held.get("scores"))
    return Evidence(X=held["X"], y=held.get("y"), X_ref=kept["X"], y_ref=kept.get("y"))


def _score(encoder: FittedEncoder, held_out: Evidence, omega: Any) -> float:
    """Mean of the curve weighted by omega, read at 2, 4, 8, ... and the full width.

    Each of these speaks for the prefixes since the one before it, so it weighs what they weigh together.
    """
    ks = np.unique([min(2**i, encoder.d) for i in range(1, encoder.d.bit_length() + 1)])
    up_to = np.cumsum(resolve_omega(omega, encoder.d).omega)[ks - 1]
    scores = prefix_scores(encoder, held_out, settled_metric(encoder, held_out), ks)
    return float(np.average(scores, weights=np.diff(up_to, prepend=0.0)))
