"""One selection: of candidates scored on the same held-out units, the simplest that is level with the best.

Settings left to "auto", objectives of a diagnosis and methods of an alignment are chosen here. Whoever asks fits the
candidates on folds, scores them on what each fold holds out, and brings the scores along with their draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from firstk.quality.paired import SAME, TOLERANCE, Difference


@dataclass(frozen=True, eq=False)
class Selection:
    """Who is best, who is level with it, and which of these is chosen.

    Attributes
    ----------
    best, chosen : int
        Places among the candidates.
    ahead : tuple of Difference
        How far each candidate is ahead of the best: at most 0.
    level : ndarray of bool
        Who is level with the best, itself among them.
    """

    best: int
    chosen: int
    ahead: tuple[Difference, ...]
    level: np.ndarray


def select(
    scores: ArrayLike, draws: ArrayLike, *, order: Sequence[float] | None = None, most: float = TOLERANCE
) -> Selection:
    """Select the simplest of the candidates that are level with the best.

    Parameters
    ----------
    scores : array-like of shape (C,)
        Of each candidate, over all folds.
    draws : array-like of shape (C, B)
        Its scores on resampled units, the same resamples for all: differences are paired.
    order : sequence of numbers, optional
        How simple each is, the lowest first; as they are given if there is none. Of equally simple ones the best wins,
        and of equally good ones the first.
    most : float
        What may be lost for the sake of simplicity, where the loss is not clear.

    Returns
    -------
    selection : Selection

    Examples
    --------
    >>> noise = np.linspace(-0.01, 0.01, 200)
    >>> found = select([0.801, 0.804, 0.750], [0.801 - noise, 0.804 + noise, 0.750 + noise])
    >>> found.best, found.chosen, found.level.tolist()
    (1, 0, [True, True, False])
    """
    means, drawn = np.asarray(scores, dtype=np.float64), np.asarray(draws, dtype=np.float64)
    best = int(means.argmax())
    ahead = tuple(Difference.of(*pair) for pair in zip(means - means[best], drawn - drawn[best], strict=True))
    level = np.array([one.value >= -SAME or one.within(most) for one in ahead])
    rank = np.arange(len(means)) if order is None else np.asarray(order)
    simplest = level & (rank == rank[level].min())
    chosen = int(np.flatnonzero(simplest & (means >= means[simplest].max() - SAME))[0])
    return Selection(best, chosen, ahead, level)
