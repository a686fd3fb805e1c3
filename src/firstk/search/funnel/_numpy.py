"""The three operations of a search in numpy: choose a shortlist, collect all rows above a threshold, add coordinates.

`_compiled` has the same three, for large stores; both give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from firstk.search.codes.scan import nearest
from firstk.search.funnel.arrays import REMAINDER_ROUNDING, FunnelArrays, Queries, Scan
from firstk.search.funnel.byte_prefixes import BytePrefixes

# Numbers held at once while coordinates are added.
_BLOCK = 1 << 20
# Queries of a block times rows of the store.
BLOCK_PAIRS = 1 << 23


def queries_at_once(n: int) -> int:
    """How many queries share a pass over n rows."""
    return max(1, min(64, BLOCK_PAIRS // n))


def nearness(scan: Scan) -> np.ndarray:
    """Nearness of every row to every query, shape (m, n)."""
    columns = scan.columns
    N = np.empty((len(scan.queries), columns.prefixes.n), dtype=np.float32)
    for rows, S in columns.prefixes.similarities(scan.queries):
        np.add(S, columns.bias[rows], out=N[:, rows])
        if scan.lift is not None:
            N[:, rows] += scan.lift[:, None] * columns.remainder[rows]
    return N


def shortlist(layout: FunnelArrays, queries: Queries, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `size` nearest rows of each query by the first stage, in order of rows, and the multiply-adds."""
    m, n = len(queries), len(layout.codes)
    if size == n:
        return every_row(m, n)
    if isinstance(layout.first.prefixes, BytePrefixes):
        return layout.first.prefixes.shortlist(queries.codes, size, nearest)
    scan = layout.estimate(queries)
    N = nearness(scan)
    worst = np.partition(N, n - size, axis=1)[:, n - size, None]
    beyond, equal = worst < N, worst == N
    free = size - beyond.sum(axis=1, keepdims=True)
    chosen = beyond | (equal & (equal.cumsum(axis=1) <= free))
    return np.nonzero(chosen)[1].reshape(m, size), np.full(m, scan.spent)


def every_row(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the shortlist that needs no scan: every row."""
    return np.tile(np.arange(n), (m, 1)), np.zeros(m, np.int64)


def collect(scan: Scan, thresholds: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield arrays (query, row), sorted by query, of all pairs whose nearness exceeds the query's threshold."""
    yield np.nonzero(nearness(scan) > thresholds[:, None])


def grow(
    layout: FunnelArrays,
    queries: Queries,
    pairs: tuple[np.ndarray, np.ndarray],
    costs: np.ndarray,
    span: tuple[int, int],
    limits: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Add coordinates from edge span[0] to edge span[1] to the costs of pairs (query, row), in float64.

    With `limits`, a pair whose bound exceeds the limit of its query is abandoned at the edge where that shows: its
    cost becomes infinite. Costs are changed in place. Returns them, and the multiply-adds of each query.
    """
    spent = np.zeros(len(queries), dtype=np.int64)
    alive = np.arange(len(costs))
    for e in range(*span):
        if limits is not None and e > 0 and len(alive):
            q, x = pairs[0][alive], pairs[1][alive]
            spent += np.bincount(q, minlength=len(queries))
            out = _lower_bound(layout, queries, q, x, costs[alive], e) > limits[q]
            costs[alive[out]] = np.inf
            alive = alive[~out]
        start, stop = layout.edges[e], layout.edges[e + 1]
        spent += (stop - start) * np.bincount(pairs[0][alive], minlength=len(queries))
        step = max(1, _BLOCK // (stop - start))
        for i in range(0, len(alive), step):
            some = alive[i : i + step]
            a = queries.codes[pairs[0][some], start:stop].astype(np.float64)
            b = layout.codes[pairs[1][some], start:stop].astype(np.float64)
            if layout.euclidean:
                a -= b
                costs[some] += np.einsum("ij,ij->i", a, a)
            else:
                costs[some] -= np.einsum("ij,ij->i", a, b)
    return costs, spent


def _lower_bound(
    layout: FunnelArrays, queries: Queries, q: np.ndarray, x: np.ndarray, costs: np.ndarray, e: int
) -> np.ndarray:
    left, right = queries.remainders[q, e], layout.remainders[x, e].astype(np.float64)
    if layout.euclidean:
        gap = np.abs(left - right) - REMAINDER_ROUNDING * (left + right)
        return costs + np.maximum(gap, 0) ** 2
    return costs - left * right * (1 + REMAINDER_ROUNDING)
