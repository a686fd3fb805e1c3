"""The rows of an index and their ids; rows are added and removed by making another store.

Rows keep the order in which they were added, so a store after adds and removals is the one built from what is left.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.checks import check_finite, check_matrix, is_int
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from firstk._base.array_types import MatrixLike

# Squares and sums of squares of such norms stay finite in float32.
_LARGEST_NORM = 1e18
# How far from one the norm of a unit vector may be: far more than the rounding of float32, whatever the width.
_UNIT_TOLERANCE = 1e-3
METRICS: Collection[str] = ("cosine", "inner_product", "l2")


def as_codes(Z: MatrixLike, metric: str, owner: str, name: str, width: int | None = None) -> np.ndarray:
    """Return codes as float32 rows, of unit norm for "cosine"; raise for rows that have no distance."""
    rows = check_matrix(Z, owner, name, width=width)
    norms = _norms(rows)
    if (large := np.flatnonzero(~(norms < _LARGEST_NORM))).size:
        raise InvalidInputError(
            f"{owner} computes in float32; row {large[0]} of '{name}' has norm {norms[large[0]]:.1e}, too large for "
            "its squares. Scale the codes down."
        )
    if metric != "cosine":
        return np.ascontiguousarray(rows, dtype=np.float32)
    if (zero := np.flatnonzero(norms == 0)).size:
        raise InvalidInputError(
            f"{owner} with metric 'cosine' takes rows that have a direction; row {zero[0]} of '{name}' is all zeros. "
            "Drop such rows."
        )
    unit: np.ndarray = rows / norms[:, None]
    return unit.astype(np.float32)


class WriteLock:
    """A lock among the writers of an index; a copy or a pickle of the index has a lock of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[WriteLock], tuple[()]]:
        return WriteLock, ()


class RowsAndIds:
    """float32 rows and their int64 ids, which do not change while the store is read.

    Additions write past the rows of this store, into memory that the next one shares, under a lock. Only the latest
    store of that memory does so: an addition to an earlier one, such as that of a copied index, gets memory of its own.
    """

    def __init__(self, rows: np.ndarray, ids: np.ndarray, n: int | None = None, used: list[int] | None = None):
        self._rows, self._ids, self._n = rows, ids, len(rows) if n is None else n
        self._used = [self._n] if used is None else used  # rows of the memory that are taken, by whichever store

    def __len__(self) -> int:
        return self._n

    @property
    def d(self) -> int:
        """Width of the codes."""
        return self._rows.shape[1]

    @property
    def rows(self) -> np.ndarray:
        """The codes, in the order in which they were added."""
        return self._rows[: self._n]

    @property
    def ids(self) -> np.ndarray:
        """Their ids."""
        return self._ids[: self._n]

    def appended(self, rows: np.ndarray, ids: np.ndarray) -> RowsAndIds:
        """Return a store with rows at the end; capacity doubles, so that many small additions cost what one does."""
        needed, held, names, used = self._n + len(rows), self._rows, self._ids, self._used
        if needed > len(held) or used[0] != self._n:
            capacity, used = max(needed, 2 * self._n), [0]
            held, names = _enlarged(held, self._n, capacity), _enlarged(names, self._n, capacity)
        held[self._n : needed] = rows
        names[self._n : needed] = ids
        used[0] = needed
        return RowsAndIds(held, names, needed, used)

    def kept(self, mask: np.ndarray) -> RowsAndIds:
        """Return a store of the rows of a mask, in their order."""
        return RowsAndIds(self.rows[mask], self.ids[mask])


def _enlarged(array: np.ndarray, used: int, capacity: int) -> np.ndarray:
    larger = np.empty((capacity, *array.shape[1:]), dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


def new_ids(ids: ArrayLike | None, count: int, next_id: int, present: np.ndarray, owner: str) -> np.ndarray:
    """Return one id per new row: those given, checked, or the next free numbers."""
    if ids is None:
        if next_id + count > 2**63:
            raise InvalidInputError(f"{owner} takes ids below 2^63, and the next free one is {next_id}. Give 'ids'.")
        return np.arange(count, dtype=np.int64) + np.int64(next_id)
    given = as_ids(ids, owner)
    if len(given) != count:
        raise InvalidInputError(f"{owner} needs as many ids as rows. Got {len(given)} and {count}.")
    distinct, counts = np.unique(given, return_counts=True)
    if (counts > 1).any():
        raise InvalidInputError(f"{owner} takes every id once; id {distinct[counts > 1][0]} is there several times.")
    if (known := np.intersect1d(given, present)).size:
        raise InvalidInputError(
            f"{owner} takes new ids; id {known[0]} is in the index already ({known.size} of {count} are). "
            "Remove those rows first, or leave 'ids' out."
        )
    return given


def known_ids(ids: ArrayLike, present: np.ndarray, owner: str) -> np.ndarray:
    """Return ids that are in the index, or name the first that is not."""
    given = as_ids(ids, owner)
    if (unknown := np.setdiff1d(given, present)).size:
        raise InvalidInputError(
            f"{owner} takes ids of the index; id {unknown[0]} is not in it ({unknown.size} of {len(given)} are not). "
            "Nothing was removed."
        )
    return given


def as_ids(ids: ArrayLike, owner: str) -> np.ndarray:
    """Return a vector of int64, without rounding anything."""
    numbers = np.atleast_1d(np.asarray(ids))
    if numbers.ndim != 1 or (numbers.size and not np.issubdtype(numbers.dtype, np.integer)):
        raise InvalidInputError(f"{owner} takes ids as a list of ints. Got {numbers.dtype} of shape {numbers.shape}.")
    if numbers.size and numbers.dtype.kind == "u" and numbers.max() > np.iinfo(np.int64).max:
        raise InvalidInputError(f"{owner} takes ids below 2^63. Got {numbers.max()}.")
    return numbers.astype(np.int64)


def check_stored(rows: np.ndarray, ids: np.ndarray, d: int, next_id: int, metric: str, owner: str) -> None:
    """Raise for arrays read from a file that cannot be a store."""
    if not is_int(d) or rows.ndim != 2 or rows.shape[1] != d or rows.dtype != np.float32 or not rows.shape[1]:
        raise InvalidInputError(
            f"{owner}: codes are {rows.dtype}{rows.shape}, and float32 of width {d!r} was expected."
        )
    check_stored_ids(ids, len(rows), next_id)
    if rows.size:
        check_finite(rows, owner, "codes")
        norms = _norms(rows)
        if not norms.max() < _LARGEST_NORM or (metric == "cosine" and np.abs(norms - 1).max() > _UNIT_TOLERANCE):
            raise InvalidInputError(f"{owner}: codes have norms from {norms.min():.3g} to {norms.max():.3g}.")


def check_stored_ids(ids: np.ndarray, rows: int, next_id: object) -> None:
    """Raise for ids read from a file that cannot be those of so many rows."""
    if ids.shape != (rows,) or ids.dtype != np.int64 or len(np.unique(ids)) != len(ids):
        raise InvalidInputError("ids are not one distinct int64 for each row")
    if not is_int(next_id) or abs(next_id) > 2**63 or (ids.size and next_id <= int(ids.max())):
        raise InvalidInputError(f"the next id, {next_id!r:.40}, is not above all ids")


def _norms(Z: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", Z, Z, dtype=np.float64))
