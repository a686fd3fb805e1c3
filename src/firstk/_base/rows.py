"""Rows of a matrix: dense, in single precision, of unit norm; which of them are equal, and how finely they were given.

BLAS may give two copies of a row other last bits, depending on their place in the matrix. So compare rows before the
product, or multiply each distinct row once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.memory import scratch_array

if TYPE_CHECKING:
    from scipy import sparse

# Rows as they are given: anything that numpy takes for an array, or a sparse matrix.
Rows: TypeAlias = "ArrayLike | sparse.spmatrix | sparse.sparray"
SINGLE, DOUBLE = (float(np.finfo(kind).eps) for kind in (np.float32, np.float64))
# Numbers that are looked at together: few at first, as most arrays of float64 show what they are in the first row.
_FIRST, _BLOCK = 64, 1_000_000
# Columns by which most rows that differ are told apart.
_LOOKED_AT = 8


def distinct_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first place of each distinct row, ascending, and for every row which of these it is.

    Zeros of both signs are equal.

    Examples
    --------
    >>> import numpy as np
    >>> distinct_rows(np.array([[2.0, 1.0], [0.0, 1.0], [2.0, 1.0], [-0.0, 1.0]]))
    (array([0, 1]), array([0, 1, 0, 1]))
    """
    rows = np.ascontiguousarray(X + 0.0)
    if not rows.shape[1]:
        return np.arange(min(1, len(rows))), np.zeros(len(rows), dtype=np.intp)
    # Rows that differ in a few of their columns are different: the rest is compared only where those are alike.
    few = _items(np.ascontiguousarray(rows[:, :: -(-rows.shape[1] // _LOOKED_AT)]))
    _, inverse, counts = np.unique(few, return_inverse=True, return_counts=True)
    alike = np.flatnonzero(counts[inverse.ravel()] > 1)
    leader = np.arange(len(rows))
    if len(alike):
        _, first, inverse = np.unique(_items(rows[alike]), return_index=True, return_inverse=True)
        leader[alike] = alike[first[inverse.ravel()]]
    leads = leader == np.arange(len(rows))
    return np.flatnonzero(leads), (np.cumsum(leads) - 1)[leader]


def _items(rows: np.ndarray) -> np.ndarray:
    """Return each row as one item of bytes: compared quicker than number by number."""
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()


def is_sparse(part: object) -> TypeGuard[sparse.csr_matrix]:
    """Tell whether rows are a sparse matrix of any kind."""
    # Nobody has one unless scipy made it, and a command that reads a model need not load scipy.
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(part))


def sliceable(part: Rows) -> np.ndarray | sparse.csr_matrix:
    """Return rows as an array, or as a sparse matrix from which rows can be cut."""
    return part.tocsr() if is_sparse(part) else np.asarray(part)


def as_dense(part: Rows) -> np.ndarray:
    """Return rows, which may be sparse, as an array."""
    return part.toarray() if is_sparse(part) else np.asarray(part)


def half_as_single(part: ArrayLike) -> np.ndarray:
    """Return half precision as single: numpy has no fast arithmetic for it."""
    part = np.asarray(part)
    if part.dtype != np.float16:
        return part
    single = scratch_array(part.shape, np.float32)
    single[...] = part
    return single


def unit_rows(Z: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return rows divided by their norms, written into `out` where it is given; a row of zeros stays."""
    norms = np.linalg.norm(Z, axis=1, keepdims=True)
    return np.divide(Z, norms, out=np.zeros_like(Z) if out is None else out, where=norms > 0)


def projected(
    columns: Mapping[str, Rows], matrix: np.ndarray, centre: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return ``(X - centre) @ matrix`` for several sets of rows; rows that are equal, in one set or two, stay equal."""
    parts = {name: as_dense(part) for name, part in columns.items()}
    if not parts:
        return {}
    stacked = np.vstack([np.asarray(part, dtype=np.float64) for part in parts.values()])
    first, inverse = distinct_rows(stacked)
    distinct = stacked[first] if centre is None else stacked[first] - centre
    ends = np.cumsum([len(part) for part in parts.values()])[:-1]
    return dict(zip(parts, np.split((distinct @ matrix)[inverse], ends), strict=True))


# -- resolution -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resolution:
    """How finely the numbers of some rows were given; the sum of two is that of all rows together.

    Numbers of float64 have the resolution of float64. But an array of float64 whose numbers are all float32 numbers,
    some of them fractions, was float32 before somebody converted it, and counts as float32. Whole numbers are exact.

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
    >>> import numpy as np
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
