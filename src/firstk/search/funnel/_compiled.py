"""The three operations of a search, compiled: choosing happens while nearness is still in registers.

Four queries and 64 rows share every load. A row that does not exceed its query's threshold costs nothing more, and
the threshold rises as better rows are found, from one that a sample of the store suggests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numba
import numpy as np

from firstk._base.simd import LANES, above, fma, load, load_wide, lowest_bit, prefetch, splat, store, sub, sum_lanes
from firstk.search.funnel import _numpy as _plain
from firstk.search.funnel.arrays import REMAINDER_ROUNDING, FunnelArrays, Queries, Scan
from firstk.search.funnel.byte_prefixes import BytePrefixes
from firstk.search.funnel.prefixes import GROUP, Bits, Tiles

# Queries that share a load of a row, and queries that share a tile.
_TOGETHER, _QUERIES = 4, 64
# Rows are far apart in memory: the first lines of one are asked for this many rows ahead.
_AHEAD, _LINES = 12, 4
# Rows collected at a time: bounds the memory of a scan that excludes nothing.
_CHUNK = 1 << 15
Arrays: TypeAlias = tuple[np.ndarray, ...]
Lanes: TypeAlias = np.ndarray  # inside a kernel: one vector of the processor
jit = numba.njit(nogil=True, cache=True, error_model="numpy")


def queries_at_once(n: int) -> int:
    """How many queries share a pass over n rows."""
    return _QUERIES


@jit
def _keep_nearest(near: np.ndarray, rows: np.ndarray, count: int, size: int) -> np.float32:
    """Move the `size` nearest to the front, ties to the lowest row, and return the worst of them (quickselect)."""
    left, right, k = 0, count - 1, size - 1
    while left < right:
        pivot, pivot_row = near[(left + right) // 2], rows[(left + right) // 2]
        i, j = left, right
        while i <= j:
            while near[i] > pivot or (near[i] == pivot and rows[i] < pivot_row):
                i += 1
            while near[j] < pivot or (near[j] == pivot and rows[j] > pivot_row):
                j -= 1
            if i <= j:
                near[i], near[j] = near[j], near[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break
    return near[k]


@jit
def _take(bits: np.uint32, values: Lanes, base: int, q: int, found: Arrays, size: int) -> None:
    """Note the lanes that passed; when a query's list is full, keep its nearest and raise its threshold."""
    near, rows, counts, thresholds, lanes = found
    store(lanes, 0, values)
    count, threshold = counts[q], thresholds[q]
    while bits:
        lane = lowest_bit(bits)
        bits &= bits - np.uint32(1)
        if lanes[lane] > threshold:
            near[q, count] = lanes[lane]
            rows[q, count] = base + lane
            count += 1
            if size and count == near.shape[1]:
                threshold = _keep_nearest(near[q], rows[q], count, size)
                count = size
    counts[q], thresholds[q] = count, threshold


@jit
def _take_four(values: tuple[Lanes, ...], base: int, q: int, found: Arrays, size: int) -> None:
    bound = splat(found[3][q])
    for i, lanes in enumerate(values):
        bits = above(lanes, bound)
        if bits:
            _take(bits, lanes, base + LANES * i, q, found, size)


@jit
def _scan_tile(
    tile: np.ndarray,
    offset: int,
    width: int,
    base: int,
    queries: np.ndarray,
    extras: Arrays,
    found: Arrays,
    size: int,
) -> None:
    """Nearness of one tile of `width` rows to all queries; whatever exceeds a threshold goes to `found`."""
    bias, remainder, lift = extras
    m, k = queries.shape
    for q in range(0, m, _TOGETHER):
        q1, q2, q3 = q + 1, q + 2, q + 3
        for c in range(0, width, GROUP):
            at = base + c
            a0, a1, a2, a3 = load(bias, at), load(bias, at + 16), load(bias, at + 32), load(bias, at + 48)
            b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3 = a0, a1, a2, a3, a0, a1, a2, a3, a0, a1, a2, a3
            if lift.size:
                r0, r1 = load(remainder, at), load(remainder, at + 16)
                r2, r3 = load(remainder, at + 32), load(remainder, at + 48)
                x, y, z, w = splat(lift[q]), splat(lift[q1]), splat(lift[q2]), splat(lift[q3])
                a0, a1, a2, a3 = fma(x, r0, a0), fma(x, r1, a1), fma(x, r2, a2), fma(x, r3, a3)
                b0, b1, b2, b3 = fma(y, r0, b0), fma(y, r1, b1), fma(y, r2, b2), fma(y, r3, b3)
                c0, c1, c2, c3 = fma(z, r0, c0), fma(z, r1, c1), fma(z, r2, c2), fma(z, r3, c3)
                d0, d1, d2, d3 = fma(w, r0, d0), fma(w, r1, d1), fma(w, r2, d2), fma(w, r3, d3)
            p = offset + c
            for j in range(k):
                r0, r1, r2, r3 = load(tile, p), load(tile, p + 16), load(tile, p + 32), load(tile, p + 48)
                p += width
                x, y, z, w = splat(queries[q, j]), splat(queries[q1, j]), splat(queries[q2, j]), splat(queries[q3, j])
                a0, a1, a2, a3 = fma(x, r0, a0), fma(x, r1, a1), fma(x, r2, a2), fma(x, r3, a3)
                b0, b1, b2, b3 = fma(y, r0, b0), fma(y, r1, b1), fma(y, r2, b2), fma(y, r3, b3)
                c0, c1, c2, c3 = fma(z, r0, c0), fma(z, r1, c1), fma(z, r2, c2), fma(z, r3, c3)
                d0, d1, d2, d3 = fma(w, r0, d0), fma(w, r1, d1), fma(w, r2, d2), fma(w, r3, d3)
            x, y, z, w = splat(found[3][q]), splat(found[3][q1]), splat(found[3][q2]), splat(found[3][q3])
            if above(a0, x) | above(a1, x) | above(a2, x) | above(a3, x):
                _take_four((a0, a1, a2, a3), at, q, found, size)
            if above(b0, y) | above(b1, y) | above(b2, y) | above(b3, y):
                _take_four((b0, b1, b2, b3), at, q1, found, size)
            if above(c0, z) | above(c1, z) | above(c2, z) | above(c3, z):
                _take_four((c0, c1, c2, c3), at, q2, found, size)
            if above(d0, w) | above(d1, w) | above(d2, w) | above(d3, w):
                _take_four((d0, d1, d2, d3), at, q3, found, size)


@jit
def _scan_floats(
    tiles: np.ndarray, span: tuple[int, int], queries: np.ndarray, extras: Arrays, found: Arrays, size: int
) -> None:
    """Scan tiles span[0] to span[1]."""
    flat, width = tiles.reshape(-1), tiles.shape[2]
    for t in range(span[0], span[1]):
        _scan_tile(flat, t * tiles.shape[1] * width, width, t * width, queries, extras, found, size)


@jit
def _scan_bytes(
    tiles: np.ndarray, span: tuple[int, int], queries: np.ndarray, extras: Arrays, found: Arrays, size: int
) -> None:
    """Scan int8 tiles: each is spread out to float32 once for all queries."""
    k, width = queries.shape[1], tiles.shape[2]
    spread = np.empty(k * width, np.float32)
    for t in range(span[0], span[1]):
        for j in range(k):
            for i in range(width):
                spread[j * width + i] = tiles[t, j, i]
        _scan_tile(spread, 0, width, t * width, queries, extras, found, size)


@jit
def _scan_bits(words: np.ndarray, queries: np.ndarray, found: Arrays, size: int) -> None:
    """Like `_scan` for signs: nearness is minus the number of bits that differ."""
    m, w = queries.shape
    n = words.shape[1]
    near = np.empty(GROUP, np.float32)
    for start in range(0, n, GROUP):
        stop = min(start + GROUP, n)
        for q in range(m):
            near[:] = 0
            for j in range(w):
                for i in range(start, stop):
                    near[i - start] -= _popcount(queries[q, j] ^ words[j, i])
            near[stop - start :] = -np.inf
            for c in range(0, GROUP, LANES):
                values = load(near, c)
                bits = above(values, splat(found[3][q]))
                if bits:
                    _take(bits, values, start + c, q, found, size)


@jit
def _popcount(x: np.uint64) -> np.float32:
    """Bits that are set, by halves; LLVM knows the pattern and uses the machine's own instruction."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.float32((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@jit
def _nearest_rows(found: Arrays, size: int, out: np.ndarray) -> None:
    near, rows, counts, thresholds, _ = found
    for q in range(len(out)):
        thresholds[q] = _keep_nearest(near[q], rows[q], counts[q], size)
        out[q] = rows[q, :size]


def _lists(m: int, capacity: int, thresholds: np.ndarray | None) -> Arrays:
    """Return empty lists for the results of each query: nearness, rows, counts, thresholds; and a scratch array."""
    padded = -(-m // _TOGETHER) * _TOGETHER
    bound = np.full(padded, np.inf, np.float32)  # nothing exceeds it: queries that fill up a group find nothing
    bound[:m] = -np.inf if thresholds is None else thresholds
    return (
        np.empty((padded, capacity), np.float32),
        np.empty((padded, capacity), np.int64),
        np.zeros(padded, np.int64),
        bound,
        np.empty(LANES, np.float32),
    )


def _run(scan: Scan, found: Arrays, size: int, span: tuple[int, int] | None = None) -> None:
    """Scan all tiles, or those of a span."""
    columns, m = scan.columns, len(scan.queries)
    prefixes = columns.prefixes
    if isinstance(prefixes, Bits):
        _scan_bits(prefixes.words, scan.queries, found, size)
        return
    queries = np.zeros((len(found[2]), scan.queries.shape[1]), np.float32)
    queries[:m] = scan.queries
    lift = np.zeros(0 if scan.lift is None else len(queries), np.float32)
    if scan.lift is not None:
        lift[:m] = scan.lift
    assert isinstance(prefixes, Tiles)  # bytes have a scan of their own
    whole = (0, len(prefixes.tiles))
    run = _scan_floats if prefixes.tiles.dtype == np.float32 else _scan_bytes
    run(prefixes.tiles, span or whole, queries, (columns.bias, columns.remainder, lift), found, size)


def shortlist(layout: FunnelArrays, queries: Queries, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `size` nearest rows of each query by the first stage, and the multiply-adds."""
    m, n = len(queries), len(layout.codes)
    if size == n:
        return _plain.every_row(m, n)
    if isinstance(layout.first.prefixes, BytePrefixes):
        from firstk.search.codes._compiled import nearest  # which takes its own from here

        return layout.first.prefixes.shortlist(queries.codes, size, nearest)
    scan = layout.estimate(queries)
    spent = np.full(m, scan.spent)
    thresholds = None
    if layout.sample is not None and 8 * size < n:
        trial = layout.estimate(queries, sampled=True)
        thresholds = _suggested(trial, size * trial.columns.prefixes.n / n)
        spent += trial.spent
    capacity = max(4 * size, 256)
    found = _lists(m, capacity, thresholds)
    _run(scan, found, size)
    short = np.flatnonzero(found[2][:m] < size)
    if len(short):  # the sample's thresholds were too high: scan again without one
        spent[short] += scan.spent
        again = _lists(len(short), capacity, None)
        _run(scan.only(short), again, size)
        for part, fresh in zip(found[:3], again[:3], strict=True):
            part[short] = fresh[: len(short)]
    rows = np.empty((m, size), np.int64)
    _nearest_rows(found, size, rows)
    return rows, spent


def _suggested(trial: Scan, expected: float) -> np.ndarray:
    """Return thresholds that about `expected` rows of the sample exceed, or some more to be on the safe side."""
    m = len(trial.queries)
    enough = min(trial.columns.prefixes.n, int(expected + 3 * np.sqrt(expected)) + 1)
    found = _lists(m, max(2 * enough, 64), None)
    _run(trial, found, enough)
    _nearest_rows(found, enough, np.empty((m, enough), np.int64))
    # One step lower, so that a whole group of equal rows passes.
    return np.nextafter(found[3][:m], np.float32(-np.inf))


def collect(scan: Scan, thresholds: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield arrays (query, row), sorted by query, of all pairs whose nearness exceeds the query's threshold."""
    prefixes, m = scan.columns.prefixes, len(scan.queries)
    tiles = len(prefixes.data)
    width = prefixes.padded // tiles
    step = max(1, _CHUNK // width)
    for start in range(0, tiles, step):
        span = (start, min(start + step, tiles))
        found = _lists(m, step * width, thresholds)
        _run(scan, found, 0, span)
        counts = found[2][:m]
        rows = [found[1][q, :count] for q, count in enumerate(counts.tolist())]
        yield np.repeat(np.arange(m), counts), np.concatenate(rows)


@jit
def _sum_between(Q: np.ndarray, X: np.ndarray, q: int, x: int, span: tuple[int, int], euclidean: bool) -> float:
    """Squared difference or minus the product of Q[q] and X[x] over a span of coordinates, in float64."""
    start, stop = span
    whole = start + (stop - start) // LANES * LANES
    lanes = splat(0.0)
    for j in range(start, whole, LANES):
        a, b = load_wide(Q, q, j), load_wide(X, x, j)
        if euclidean:
            a = sub(a, b)
            lanes = fma(a, a, lanes)
        else:
            lanes = fma(a, b, lanes)
    total = sum_lanes(lanes)
    for j in range(whole, stop):
        u, v = np.float64(Q[q, j]), np.float64(X[x, j])
        total += (u - v) * (u - v) if euclidean else u * v
    return total if euclidean else -total


@jit
def _excluded(cost: float, left: float, right: float, limit: float, euclidean: bool) -> bool:
    """Tell whether the bound of a partial cost exceeds the limit."""
    if euclidean:
        gap = abs(left - right) - REMAINDER_ROUNDING * (left + right)
        return cost + max(gap, 0.0) ** 2 > limit
    return cost - left * right * (1 + REMAINDER_ROUNDING) > limit


@jit
def _grow(
    codes: Arrays,
    left: Arrays,
    euclidean: bool,
    edges: np.ndarray,
    first: int,
    pairs: Arrays,
    costs: np.ndarray,
    limits: np.ndarray,
) -> np.ndarray:
    """Add the coordinates between `edges`, the first of which is edge number `first`; return the multiply-adds."""
    spent = np.zeros(len(codes[0]), np.int64)
    near = min(edges[-1], edges[0] + _LINES * LANES)
    for i in range(len(costs)):
        if i + _AHEAD < len(costs):
            for j in range(edges[0], near, LANES):
                prefetch(codes[1], pairs[1][i + _AHEAD], j)
        q, x = pairs[0][i], pairs[1][i]
        cost, work = costs[i], 0
        for e in range(len(edges) - 1):
            if limits.size and first + e > 0:
                work += 1
                if _excluded(cost, left[0][q, first + e], left[1][x, first + e], limits[q], euclidean):
                    cost = np.inf
                    break
            work += edges[e + 1] - edges[e]
            cost += _sum_between(codes[0], codes[1], q, x, (edges[e], edges[e + 1]), euclidean)
        costs[i] = cost
        spent[q] += work
    return spent


def grow(
    layout: FunnelArrays,
    queries: Queries,
    pairs: tuple[np.ndarray, np.ndarray],
    costs: np.ndarray,
    span: tuple[int, int],
    limits: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Add coordinates to costs: see `_plain.grow`."""
    spent = _grow(
        (queries.codes, layout.codes),
        (queries.remainders, layout.remainders),
        layout.euclidean,
        np.array(layout.edges[span[0] : span[1] + 1]),
        span[0],
        pairs,
        costs,
        np.empty(0) if limits is None else limits,
    )
    return costs, spent
