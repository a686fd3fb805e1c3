"""Ranks of neighbors by a prefix, compiled: products of rows and queries are read once, and compared to all limits."""

from __future__ import annotations

import numpy as np

from firstk._base.simd import LANES, above, add, fma, load, splat, store, sub
from firstk.search.funnel._compiled import Arrays, Lanes, _popcount, jit


def padded(n: int) -> int:
    """Return the next multiple of `LANES`."""
    return -(-n // LANES) * LANES


@jit
def _count(lanes: Lanes, mask: np.uint32, limits: np.ndarray, counts: np.ndarray) -> None:
    """Count the lanes that exceed each limit; they ascend, so that what is below one is below all that follow."""
    bits = above(lanes, splat(limits[0])) & mask
    for j in range(len(limits)):
        if j:
            bits &= above(lanes, splat(limits[j]))
        if not bits:
            return
        counts[j] += np.int64(_popcount(np.uint64(bits)))


@jit
def count_block(near: np.ndarray, more: np.ndarray, rows: Arrays, queries: Arrays, counts: np.ndarray) -> int:
    """Add products to those of shorter prefixes, and count the rows that come before each neighbor of each query.

    Parameters
    ----------
    near, more : ndarray of shape (m, n)
        Products of the queries with the rows over a shorter prefix, and over what is new; n is a multiple of `LANES`.
        Their sum is left in `near`.
    rows : tuple of ndarray of shape (n,)
        What is added to the products, the norm of what lies past the prefix, and half its square.
    queries : tuple of ndarray
        Limits of shape (m, neighbors), ascending; what the norm past the prefix counts, (m,) or empty; the norm past
        the prefix and what the bound must exceed, (m,) or empty; and the query's own row.
    counts : ndarray of shape (m, neighbors)
        Added to.

    Returns
    -------
    kept : int
        Number of pairs that the bound does not exclude.
    """
    bias, left, half = rows
    limits, lift, rest, floor, own = queries
    m, n = near.shape
    flat, new, kept = near.reshape(-1), more.reshape(-1), np.int64(0)
    for q in range(m):
        for at in range(0, n, LANES):
            total = add(load(flat, q * n + at), load(new, q * n + at))
            store(flat, q * n + at, total)
            mask, inside = np.uint32(0xFFFF), own[q] - at
            if 0 <= inside < LANES:  # a row is not its own neighbor
                mask ^= np.uint32(1) << np.uint32(inside)
            value = add(total, load(bias, at))
            if len(floor):
                bound = fma(splat(rest[q]), load(left, at), sub(value, load(half, at)))
                kept += np.int64(_popcount(np.uint64(above(bound, splat(floor[q])) & mask)))
            if len(lift):
                value = fma(splat(lift[q]), load(left, at), value)
            _count(value, mask, limits[q], counts[q])
    return int(kept)
