"""The one statistics: when one score is better than another.

Everything that is compared is scored on the same units (rows, pairs, queries) and on the same resamples of them, so
that every difference is paired. One confidence, one tolerance and one number of draws hold in the whole library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# Of every interval, and the ends of a normal one in standard deviations of the draws.
CONFIDENCE, DEVIATIONS = 0.95, 1.96
# Resamples of the units: enough for a standard deviation to 5 %.
DRAWS = 200
# Scores, or shares of one score, that differ by no more are level, unless one is clearly ahead.
TOLERANCE = 0.005
# Numbers that differ by less are equal: codes of float32 are summed to 1e-7, on each processor its own.
ROUNDING = 1e-6
# Mean scores that differ by no more are the same: a neighbor found on one processor and not on another changes as much.
SAME = 5e-4
# Deviations of a difference that is looked at again and again, as in a race, and of one difference among hundreds.
OFTEN, OF_MANY = 3.0, 3.7


@dataclass(frozen=True)
class Difference:
    """How far one score is ahead of another, with its interval.

    Attributes
    ----------
    value : float
        As measured.
    low, high : float
        Ends of the interval; equal to `value` where nothing was resampled.

    Examples
    --------
    >>> ahead = Difference.of(0.02, [0.01, 0.02, 0.03, 0.02])
    >>> ahead.clear, ahead.level, Difference(-0.02, -0.03, -0.01).level
    (True, True, False)
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, draws: object) -> Difference:
        """Return a difference from its value, and from its values on resamples."""
        found = np.asarray(draws, dtype=np.float64)
        noise = DEVIATIONS * float(found.std()) if found.size else 0.0
        return cls(float(value), float(value) - noise, float(value) + noise)

    @property
    def clear(self) -> bool:
        """Whether it is above 0 beyond its noise."""
        return self.low > ROUNDING

    @property
    def level(self) -> bool:
        """Whether it is below 0 neither clearly nor by more than the tolerance."""
        return self.within(TOLERANCE)

    def within(self, most: float) -> bool:
        """Tell whether it is below 0 neither clearly nor by more than `most`."""
        return self.value >= -most - ROUNDING and self.high >= -ROUNDING


def interval(draws: np.ndarray, confidence: float = CONFIDENCE) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentile interval of scores, from their draws along the first axis."""
    outside = (1 - confidence) / 2
    low, high = np.quantile(draws, [outside, 1 - outside], axis=0)
    return low, high


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
