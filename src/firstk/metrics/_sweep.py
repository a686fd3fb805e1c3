"""Similarities of all queries to all references at every prefix length, from one pass over the coordinates.

The similarity at k is that at k - 1 plus the part of coordinate k (docs/theory.md, 4.5 and 4.6), so all d
prefixes cost d rank-one updates of a block that stays in the cache, instead of d matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy.linalg import blas

from firstk._checks import check_choice

# One block of similarities: small enough for a cache, large enough to outweigh the calls.
BLOCK_BYTES = 1 << 21
# References are padded to a multiple of this: no remainders in BLAS kernels, and groups of equal size.
LANES = 64
# Prefixes up to this length are compared in float64.
FINE = 8


class _Similarity(Protocol):
    """How a block of similarities grows by coordinates, and how it is read at a prefix."""

    def grow(self, S: np.ndarray, T: np.ndarray, rows: slice, start: int, stop: int) -> None: ...

    def read(self, S: np.ndarray, T: np.ndarray, rows: slice, i: int) -> None: ...


def sweep(
    Z_ref: np.ndarray, Z: np.ndarray, ks: np.ndarray, similarity: str, exclude: np.ndarray | None = None
) -> Iterator[tuple[slice, int, np.ndarray]]:
    """Yield the similarities of blocks of queries to all references, at every prefix length in `ks`.

    Parameters
    ----------
    Z_ref, Z : ndarray of shape (n, d) and (m, d), of one dtype
        Codes of references and queries.
    ks : ndarray
        Increasing prefix lengths.
    similarity : str
        "cosine", taken after truncation, or "euclidean".
    exclude : ndarray of shape (m,), optional
        One reference per query that is never its neighbour (itself).

    Yields
    ------
    rows : slice
        The queries of this block.
    i : int
        Position in `ks`.
    T : ndarray of shape (len(rows), w), w >= n
        Larger is nearer, comparable along a row only. Columns from n on are padding and hold -inf. The next
        step overwrites it.
    """
    # Cosines of float32 tell angles apart down to 3e-4, which short codes of many rows do not respect.
    fine = int(np.searchsorted(ks, FINE, side="right")) if similarity == "cosine" and Z.dtype == np.float32 else 0
    if fine:
        short = Z_ref[:, :FINE].astype(np.float64), Z[:, :FINE].astype(np.float64)
        yield from _sweep(*short, ks[:fine], similarity, exclude)
    if fine < len(ks):
        for rows, i, T in _sweep(Z_ref, Z, ks[fine:], similarity, exclude):
            yield rows, i + fine, T


def _sweep(
    Z_ref: np.ndarray, Z: np.ndarray, ks: np.ndarray, similarity: str, exclude: np.ndarray | None
) -> Iterator[tuple[slice, int, np.ndarray]]:
    """Do the work of `sweep` in the precision of the codes."""
    n, m = len(Z_ref), len(Z)
    kind = SIMILARITIES[similarity](Z_ref, Z, ks)
    w = _padded(n)
    size = max(1, min(m, BLOCK_BYTES // (w * Z.itemsize)))
    S_all, T_all = np.empty((2, size, w), dtype=Z.dtype)
    starts = np.concatenate([[0], ks[:-1]])
    for first in range(0, m, size):
        rows = slice(first, min(first + size, m))
        count = rows.stop - rows.start
        S, T = S_all[:count], T_all[:count]
        S[:] = 0
        for i, (start, stop) in enumerate(zip(starts.tolist(), ks.tolist(), strict=True)):
            kind.grow(S, T, rows, start, stop)
            kind.read(S, T, rows, i)
            T[:, n:] = -np.inf
            if exclude is not None:
                T[np.arange(count), exclude[rows]] = -np.inf
            yield rows, i, T


def largest(T: np.ndarray, n: int) -> np.ndarray:
    """Columns of the n largest entries of each row, largest first; ties go to the lowest column.

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


class _Cosine:
    """Running dot products over the norms of reference prefixes; a query's own norm changes no order."""

    def __init__(self, Z_ref: np.ndarray, Z: np.ndarray, ks: np.ndarray):
        self.R = _transposed(_balanced(Z_ref))
        self.Q = np.ascontiguousarray(_balanced(Z).T)
        self.ks = ks
        self.inverse_norms = _inverse_norms(self.R, ks)
        self.ger, self.gemm = blas.get_blas_funcs(("ger", "gemm"), dtype=Z.dtype)

    def grow(self, S: np.ndarray, T: np.ndarray, rows: slice, start: int, stop: int) -> None:
        # S is contiguous by rows, so S.T is the Fortran array that BLAS updates in place.
        if stop - start == 1:
            self.ger(1.0, self.R[start], self.Q[start, rows], a=S.T, overwrite_a=True)
        else:
            part = slice(start, stop)
            self.gemm(1.0, self.R[part].T, self.Q[part, rows], beta=1.0, c=S.T, overwrite_c=True)

    def read(self, S: np.ndarray, T: np.ndarray, rows: slice, i: int) -> None:
        if self.ks[i] == 1:
            # Every cosine of single numbers is -1, 0 or 1: say so exactly, or rounding decides among ties.
            np.multiply.outer(np.sign(self.Q[0, rows]), np.sign(self.R[0]), out=T)
        else:
            np.multiply(S, self.inverse_norms[i], out=T)


class _Euclidean:
    """Running sums of squared differences: no subtraction of large norms, so near neighbours stay exact."""

    def __init__(self, Z_ref: np.ndarray, Z: np.ndarray, ks: np.ndarray):
        self.R = _transposed(Z_ref)
        self.Q = np.ascontiguousarray(Z.T)

    def grow(self, S: np.ndarray, T: np.ndarray, rows: slice, start: int, stop: int) -> None:
        for j in range(start, stop):
            np.subtract(self.R[j], self.Q[j, rows, None], out=T)
            np.multiply(T, T, out=T)
            np.subtract(S, T, out=S)

    def read(self, S: np.ndarray, T: np.ndarray, rows: slice, i: int) -> None:
        np.copyto(T, S)


SIMILARITIES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], _Similarity]] = {
    "cosine": _Cosine,
    "euclidean": _Euclidean,
}


def check_similarity(similarity: Any, owner: str) -> str:
    """Return the name of a known similarity."""
    return check_choice(similarity, SIMILARITIES, "similarity", owner)


def _padded(n: int) -> int:
    return -(-n // LANES) * LANES


def _transposed(Z_ref: np.ndarray) -> np.ndarray:
    """Lay references out by coordinate, padded with zeros to whole vector registers.

    Without a remainder every reference goes through the same instructions of any BLAS kernel, so equal
    references get equal similarities to the last bit, and ties are ties.
    """
    R = np.zeros((Z_ref.shape[1], _padded(len(Z_ref))), dtype=Z_ref.dtype)
    R[:, : len(Z_ref)] = Z_ref.T
    return R


def _balanced(Z: np.ndarray) -> np.ndarray:
    """Rows scaled by powers of two to entries of order 1: exact, and their squares cannot overflow."""
    exponents = np.frexp(np.abs(Z).max(axis=1, keepdims=True))[1]
    return np.ldexp(Z, -exponents)


def _inverse_norms(R: np.ndarray, ks: np.ndarray) -> np.ndarray:
    """One over the norm of each reference's first k coordinates, by row for each k; 0 for a norm of 0."""
    inverse = np.zeros((len(ks), R.shape[1]), dtype=R.dtype)
    squares = np.zeros(R.shape[1])
    start = 0
    for i, k in enumerate(ks.tolist()):
        for j in range(start, k):
            squares += R[j].astype(np.float64) ** 2
        start = k
        np.divide(1.0, np.sqrt(squares), out=inverse[i], where=squares > 0, casting="same_kind")
    return inverse
