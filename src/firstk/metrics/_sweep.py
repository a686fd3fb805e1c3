"""Cosines of all queries to all references at every prefix length, from one pass over the coordinates.

The similarity at k is that at k - 1 plus the part of coordinate k (docs/theory.md, 4.5 and 4.6), so all d
prefixes cost d rank-one updates of a block that stays in the cache, instead of d matrix products.

BLAS rounds differently on every processor, and even in every lane of one. So fast similarities only screen: where
several references are nearer than rounding can tell apart, they are compared again in float64 in a fixed order of
summation, and those that the precision of the codes cannot tell apart are ties, which go to the lowest row.

`nearest` takes the compiled sweep of `_sweep_compiled` where there is much to do and numba is installed. Here is the
same in numpy, which says what is right: both decide by the same rule, and find the same rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from firstk._base.checks import numba_may_compile
from firstk._base.rows import distinct_rows

# One block of similarities: small enough for a cache, large enough to outweigh the calls.
BLOCK_BYTES = 1 << 21
# How many times as large it is where there is one prefix length.
_ONE_LENGTH = 4
# References are padded to a multiple of this: no remainders in BLAS kernels, and groups of equal size.
LANES = 64
# Prefixes up to this length are compared in float64.
FINE = 8
# Codes are good to a few roundings: references whose angle or distance to a query differs by no more are ties.
_CODE_ROUNDINGS = 4.0
# Relative difference below which two similarities summed in float64 are equal.
_EXACT_TIE = 1e-12
# Similarities from which on a compiled sweep is worth loading, for which numpy takes two seconds, and compiling it for
# the first time seven. Once it is loaded, it pays for less.
_LARGE, _LOADED_SHARE = 2_000_000_000, 0.01
# A prefix whose norm is below this share of its row's largest entry is not swept in float32: products would underflow.
_FAINT = 2.0**-50
# Numbers that comparing again may hold at one time: candidates, and coordinates of their pairs.
_CANDIDATES, _COORDINATES = 1_000_000, 4_000_000


@dataclass(frozen=True, eq=False)
class Block:
    """Similarities of a block of queries to all references at one prefix length.

    Attributes
    ----------
    rows : slice
        The queries of this block.
    i : int
        Position of the prefix length in `ks`.
    k : int
        That prefix length.
    T : ndarray of shape (len(rows), w), w >= n
        Larger is nearer, comparable along a row only. Columns from n on are padding and hold -inf. The next
        step overwrites it.
    """

    rows: slice
    i: int
    k: int
    T: np.ndarray
    kind: _Cosines

    def nearest(self, n: int, *, ordered: bool = True) -> np.ndarray:
        """Return the n nearest references of each query, nearest first; ties go to the lowest row.

        Unless `ordered`, close calls are decided only where they are about who belongs to the n.

        Two references tie when the nearer of them leads by no more than the codes' own rounding. A group of ties is
        led by its nearest member: whoever is within the rounding of the leader belongs to it.
        """
        if self.kind.exact_at(self.k):
            return self.T.argmax(axis=1)[:, None] if n == 1 else largest(self.T, n)
        found, lowest, closest = _first(self.T) if n == 1 else _leading(self.T, n, ordered)
        margin = 2.0 * self.kind.rounding(self.rows, self.k, lowest)
        contested = np.flatnonzero(closest <= margin)
        if len(contested):
            found[contested] = self._decided(contested, (lowest - margin)[contested], n)
        return found

    def _decided(self, queries: np.ndarray, bound: np.ndarray, n: int) -> np.ndarray:
        """Rank again, exactly, what reaches `bound`."""
        row, column = np.nonzero(self.T[queries] >= bound[:, None])
        ends = np.searchsorted(row, np.arange(len(queries) + 1))
        found = np.empty((len(queries), n), dtype=np.intp)
        step = max(1, _CANDIDATES // int(np.diff(ends).max()))
        for start in range(0, len(queries), step):
            stop = min(start + step, len(queries))
            part = slice(ends[start], ends[stop])
            found[start:stop] = self._ranked(queries[start:stop], row[part] - start, column[part], n)
        return found

    def _ranked(self, queries: np.ndarray, row: np.ndarray, column: np.ndarray, n: int) -> np.ndarray:
        """Return the n nearest of each query's candidates: pairs of a position in `queries` and a reference."""
        asked = self.rows.start + queries
        counts = np.bincount(row, minlength=len(queries))
        values = np.full((len(queries), int(counts.max())), -np.inf)
        columns = np.zeros(values.shape, dtype=np.intp)
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        values[row, place] = self._exact(asked[row], column)
        columns[row, place] = column
        group = np.full(values.shape, n)
        for number in range(n):  # each round takes at least one candidate of every query that has any left
            left = np.where(group == n, values, -np.inf)
            best = left.max(axis=1)
            tie = self.kind.tie(asked, self.k, best)
            group[np.isfinite(left) & (left >= (best - tie)[:, None])] = number
        order = np.lexsort((columns, group), axis=1)[:, :n]
        return np.take_along_axis(columns, order, axis=1)

    def _exact(self, asked: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Exact similarities of pairs; where there are many, references with equal prefixes are compared once."""
        step = max(1, _COORDINATES // self.k)
        if len(column) <= step:
            return self.kind.exact(asked, column, self.k)
        width = self.kind.R.shape[1]
        first, which = distinct_rows(self.kind.R[: self.k].T)
        pairs, back = np.unique(asked * width + first[which[column]], return_inverse=True)
        parts = (pairs[start : start + step] for start in range(0, len(pairs), step))
        return np.concatenate([self.kind.exact(*np.divmod(part, width), self.k) for part in parts])[back]


def nearest(
    Z_ref: np.ndarray,
    Z: np.ndarray,
    ks: np.ndarray,
    n: int,
    *,
    exclude: np.ndarray | None = None,
    ordered: bool = True,
) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Yield the n nearest references of blocks of queries at every prefix length in `ks`; ties go to the lowest row.

    Parameters
    ----------
    Z_ref, Z, ks, exclude
        As in `sweep`.
    n : int
        How many, at most as many as there are references that are not excluded.
    ordered : bool
        Nearest first. Otherwise close calls are decided only where they are about who belongs to the n.

    Yields
    ------
    rows : slice
        The queries of this block.
    places : slice
        Positions in `ks` of the lengths of this block.
    found : ndarray of shape (len(rows), len(places), n)
        Rows of the references.
    """
    pays = n <= len(Z_ref) - (exclude is not None) and _compiled_pays(len(Z_ref) * len(Z) * len(ks))
    if pays and not any(_faint(side) for side in (Z_ref, Z)):
        from firstk.metrics import _sweep_compiled

        rule = _sweep_compiled.Rule(_CODE_ROUNDINGS * float(np.finfo(Z.dtype).eps), _EXACT_TIE)
        roundings = np.array([_sum_rounding(k, Z.dtype) for k in ks.tolist()])
        for rows, found in _sweep_compiled.nearest(Z_ref, Z, ks, n, rule, roundings, exclude, ordered):
            yield rows, slice(0, len(ks)), found
        return
    for block in sweep(Z_ref, Z, ks, exclude):
        yield block.rows, slice(block.i, block.i + 1), block.nearest(n, ordered=ordered)[:, None]


def _compiled_pays(similarities: int) -> bool:
    loaded = "firstk.metrics._sweep_kernels" in sys.modules
    return similarities >= _LARGE * (_LOADED_SHARE if loaded else 1) and numba_may_compile()


def _faint(Z: np.ndarray) -> bool:
    """Tell whether some row starts with an entry that is next to nothing beside its largest."""
    first = np.ldexp(Z[np.arange(len(Z)), (Z != 0).argmax(axis=1)], -_exponents(Z))
    return bool(((first != 0) & (np.abs(first) < _FAINT)).any())


def sweep(Z_ref: np.ndarray, Z: np.ndarray, ks: np.ndarray, exclude: np.ndarray | None = None) -> Iterator[Block]:
    """Yield the cosines, taken after truncation, of blocks of queries to all references at every prefix length in `ks`.

    Parameters
    ----------
    Z_ref, Z : ndarray of shape (n, d) and (m, d), of one dtype
        Codes of references and queries.
    ks : ndarray
        Increasing prefix lengths.
    exclude : ndarray of shape (m,), optional
        One reference per query that is never its neighbor (itself); -1 for a query that has none.

    Yields
    ------
    Block
    """
    n, m = len(Z_ref), len(Z)
    # Cosines of float32 tell angles apart down to 3e-4, which short codes of many rows do not respect.
    fine = int(np.searchsorted(ks, FINE, side="right")) if Z.dtype == np.float32 else 0
    resolution = _CODE_ROUNDINGS * float(np.finfo(Z.dtype).eps)
    for first, lengths, dtype in ((0, ks[:fine], np.float64), (fine, ks[fine:], Z.dtype)):
        if not len(lengths):
            continue
        width = int(lengths[-1])
        short_ref, short = (side[:, :width].astype(dtype, copy=False) for side in (Z_ref, Z))
        kind = _Cosines(short_ref, short, lengths, resolution)
        w, itemsize = kind.R.shape[1], kind.R.dtype.itemsize
        # A single product needs no block that stays in the cache, and gains from a larger one.
        room = BLOCK_BYTES if len(lengths) > 1 else _ONE_LENGTH * BLOCK_BYTES
        size = max(1, min(m, room // (w * itemsize)))
        S_all, T_all = np.empty((2, size, w), dtype=kind.R.dtype)
        for start in range(0, m, size):
            rows = slice(start, min(start + size, m))
            S, T = S_all[: rows.stop - start], T_all[: rows.stop - start]
            S[:] = 0
            before = 0
            for i, k in enumerate(lengths.tolist()):
                kind.grow(S, T, rows, before, k)
                kind.read(S, T, rows, i)
                T[:, n:] = -np.inf
                if exclude is not None:
                    own = np.flatnonzero(exclude[rows] >= 0)
                    T[own, exclude[rows][own]] = -np.inf
                yield Block(rows, first + i, k, T, kind)
                before = k


def _first(T: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Column of the largest entry of each row, as one column, that entry, and its lead over the second."""
    rows, best = np.arange(len(T)), T.argmax(axis=1)
    value = T[rows, best].astype(np.float64)
    T[rows, best] = -np.inf
    lead = value - T.max(axis=1)
    T[rows, best] = value
    return best[:, None], value, lead


def _leading(T: np.ndarray, n: int, ordered: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of the n largest entries of each row, the n-th of them, and the smallest gap down to the one after it.

    Unless `ordered`, that is the gap between the n-th and the one after it.
    """
    more = min(n + 1, T.shape[1])
    order = largest(T, more)
    values = np.take_along_axis(T, order, axis=1).astype(np.float64)
    with np.errstate(invalid="ignore"):  # padding less padding
        gaps = np.nan_to_num(values[:, :-1] - values[:, 1:], nan=np.inf, posinf=np.inf)
    gaps = gaps if ordered else gaps[:, n - 1 :]
    closest = gaps.min(axis=1) if gaps.shape[1] else np.full(len(T), np.inf)
    return order[:, :n], values[:, n - 1], closest


def largest(T: np.ndarray, n: int) -> np.ndarray:
    """Columns of the n largest entries of each row, largest first; equal entries in order of columns.

    Groups of columns are first reduced to their maxima: the n-th largest maximum is a lower bound of the n-th
    largest entry, and few entries exceed it, so only those are sorted.
    """
    count, w = T.shape
    groups = next((g for g in (32, 16, 8, 4, 2) if w % g == 0 and w // g >= 4 * n), 1)
    maxima = T.reshape(count, groups, w // groups).max(axis=1)
    bound = np.partition(maxima, -n, axis=1)[:, -n]
    # Ascending, so that a stable sort leaves ties in order of columns.
    flat = np.flatnonzero(np.greater_equal(T, bound[:, None]))
    rows, columns = np.divmod(flat, w)
    order = np.lexsort((-T.ravel()[flat], rows))
    first = np.searchsorted(rows, np.arange(count))
    return columns[order[first[:, None] + np.arange(n)]]


class _Cosines:
    """Running dot products over the norms of reference prefixes; a query's own norm changes no order."""

    def __init__(self, Z_ref: np.ndarray, Z: np.ndarray, ks: np.ndarray, resolution: float):
        self.R = _transposed(balanced(Z_ref))
        self.Q = np.ascontiguousarray(balanced(Z).T)
        self.ks, self.resolution = ks, resolution
        self.norms = {int(k): row for k, row in zip(ks, _prefix_norms(self.Q, ks), strict=True)}
        norms = _prefix_norms(self.R, ks)
        self.inverse_norms = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0).astype(Z.dtype)
        # Dot products of signs are whole numbers, and their norms are all the same: nothing is rounded apart.
        self.signs = _of_one_size(Z_ref) and _of_one_size(Z)

    def grow(self, S: np.ndarray, T: np.ndarray, rows: slice, start: int, stop: int) -> None:
        # Numpy's products let other threads run, which those of scipy's BLAS do not. T is scratch until it is read.
        if stop - start == 1:
            np.multiply.outer(self.Q[start, rows], self.R[start], out=T)
        else:
            np.matmul(self.Q[start:stop, rows].T, self.R[start:stop], out=T)
        np.add(S, T, out=S)

    def read(self, S: np.ndarray, T: np.ndarray, rows: slice, i: int) -> None:
        if self.ks[i] == 1:
            # Every cosine of single numbers is -1, 0 or 1: say so exactly, or rounding decides among ties.
            np.multiply.outer(np.sign(self.Q[0, rows]), np.sign(self.R[0]), out=T)
        else:
            np.multiply(S, self.inverse_norms[i], out=T)

    def exact_at(self, k: int) -> bool:
        """Tell whether a prefix is read without rounding, so that ties are ties already."""
        return k == 1 or self.signs

    def exact(self, queries: np.ndarray, references: np.ndarray, k: int) -> np.ndarray:
        """Return the similarities of pairs in float64, to the same last bit on every processor."""
        q, r = (
            np.ascontiguousarray(columns[:k, places].T, dtype=np.float64)
            for columns, places in ((self.Q, queries), (self.R, references))
        )
        # A cumulative sum adds from the first number to the last, in that order everywhere.
        products, squares = (np.cumsum(part, axis=1)[:, -1] for part in (q * r, r * r))
        return np.divide(products, np.sqrt(squares), out=np.zeros(len(q)), where=squares > 0)

    def rounding(self, rows: slice | np.ndarray, k: int, best: np.ndarray) -> np.ndarray:
        """Return how far a fast similarity near `best` may be from the exact one, for each query."""
        return _sum_rounding(k, self.R.dtype) * self.norms[k][rows] + self.tie(rows, k, best)

    def tie(self, queries: slice | np.ndarray, k: int, best: np.ndarray) -> np.ndarray:
        """Return the difference to `best` that the precision of the codes cannot tell from none."""
        # Turning a reference by the resolution moves the cosine by at most resolution times sine, in first order.
        norms = self.norms[k][queries]
        sine = np.sqrt(np.maximum(norms**2 - best**2, 0.0))
        return self.resolution * sine + (self.resolution**2 / 2 + _EXACT_TIE) * norms


def _of_one_size(Z: np.ndarray) -> bool:
    """Tell whether all entries are 1 or -1."""
    return bool((np.abs(Z) == 1).all())


def _sum_rounding(k: int, dtype: DTypeLike) -> float:
    """Relative error of a sum of k products in any order, with a margin above what is seen."""
    return (4.0 + np.sqrt(k)) * float(np.finfo(dtype).eps)


def _transposed(Z_ref: np.ndarray) -> np.ndarray:
    """Lay references out by coordinate, padded with zeros to whole vector registers.

    Without a remainder every reference goes through the same instructions of any BLAS kernel, so equal
    references get equal similarities to the last bit, and ties are ties.
    """
    R = np.zeros((Z_ref.shape[1], -(-len(Z_ref) // LANES) * LANES), dtype=Z_ref.dtype)
    R[:, : len(Z_ref)] = Z_ref.T
    return R


def balanced(Z: np.ndarray) -> np.ndarray:
    """Rows scaled by powers of two to entries of order 1: exact, and their squares cannot overflow."""
    return np.ldexp(Z, -_exponents(Z)[:, None])


def _exponents(Z: np.ndarray) -> np.ndarray:
    """Return the binary exponent of the largest entry of each row."""
    exponents: np.ndarray = np.frexp(np.maximum(Z.max(axis=1), -Z.min(axis=1)))[1]
    return exponents


def _prefix_norms(columns: np.ndarray, ks: np.ndarray) -> np.ndarray:
    """Norm of each vector's first k coordinates in float64, by row for each k, of vectors laid out by coordinate."""
    norms = np.empty((len(ks), columns.shape[1]))
    squares = np.zeros(columns.shape[1])
    start = 0
    for i, k in enumerate(ks.tolist()):
        for j in range(start, k):
            squares += columns[j].astype(np.float64) ** 2
        start = k
        np.sqrt(squares, out=norms[i])
    return norms
