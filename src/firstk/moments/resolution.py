"""The resolution of numbers: a column that varies by less, beside the others, is rounding and not signal.

The **resolution rule**: with float32 numbers, a column counts as constant when its standard deviation is at most ten
roundings (10 x 1.2e-7) of the largest column's. A closed form divides by standard deviations: an output that is dead in
the model that made the vectors, and holds rounding errors, would get a weight of ten million, and the rounding of a
query would decide its neighbors. Moments leave such columns out of every scatter, which makes it one rule for all
objectives. Directions that are no columns need none: the scatter rank rule
(:func:`firstk._base.linalg.rank_tolerance`) drops them.

Numbers of float64 have the resolution of float64, where the rule hardly ever applies: columns in other units are
information. But an array of float64 whose numbers are all float32 numbers, some of them fractions, was float32 before
somebody converted it, and is treated as float32. Whole numbers are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firstk._base.rows import Rows, is_sparse, sliceable

SINGLE, DOUBLE = (float(np.finfo(kind).eps) for kind in (np.float32, np.float64))
# Roundings that do not count as variation.
ROUNDINGS = 10
# Numbers that are looked at together: few at first, as most arrays of float64 show what they are in the first row.
_FIRST, _BLOCK = 64, 1_000_000


@dataclass(frozen=True)
class Resolution:
    """How finely the numbers of some rows were given; that of two sets of rows is the same for any partition.

    Attributes
    ----------
    coarse : bool
        Whether some were stored as float32 or less.
    single : bool
        Whether all of them are float32 numbers, whatever they were stored as.
    fractions : bool
        Whether some of them are not whole; only looked at while `single` holds.

    Examples
    --------
    >>> X = np.array([[0.1, 3.0]])
    >>> [Resolution.of(part).eps > 1e-10 for part in (X, X.astype(np.float32), X.astype(np.float32).astype(float))]
    [False, True, True]
    """

    coarse: bool = False
    single: bool = True
    fractions: bool = False

    @classmethod
    def of(cls, rows: Rows) -> Resolution:
        """Look at the numbers of rows, dense or sparse."""
        rows = sliceable(rows)
        numbers = rows.data if is_sparse(rows) else rows
        if numbers.dtype.kind != "f":
            return cls(single=False)
        if numbers.dtype.itemsize <= 4:
            return cls(coarse=True)
        fractions = False
        for block in _blocks(numbers):
            with np.errstate(over="ignore", invalid="ignore"):
                if not np.array_equal(block.astype(np.float32), block):
                    return cls(single=False)
            fractions = fractions or bool((block != np.trunc(block)).any())
        return cls(fractions=fractions)

    def __add__(self, other: Resolution) -> Resolution:
        single = self.single and other.single
        return Resolution(self.coarse or other.coarse, single, single and (self.fractions or other.fractions))

    @property
    def eps(self) -> float:
        """Relative size of a rounding."""
        return SINGLE if self.coarse or (self.single and self.fractions) else DOUBLE


def _blocks(numbers: np.ndarray) -> Iterator[np.ndarray]:
    """Cut the first axis of an array, the first piece short."""
    per_row = max(1, numbers.size // max(1, len(numbers)))
    first, step = max(1, _FIRST // per_row), max(1, _BLOCK // per_row)
    yield numbers[:first]
    for start in range(first, len(numbers), step):
        yield numbers[start : start + step]
