"""The one statistics: when one score is better than another.

Everything that is compared is scored on the same units (rows, pairs, queries) and on the same resamples of them, so
that every difference is paired. One confidence, one tolerance and one number of draws hold in the whole library.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
