"""Kernels of the sweep over all prefix lengths: similarities stay in registers, and few are looked at twice.

Four queries and sixteen references share every load. Sixty-four similarities grow by one coordinate, are scaled by the
norms of the references' prefixes and compared with what their queries have found so far at that length; what may
belong to the nearest is noted.

The rule is that of `_sweep`: fast similarities screen, close calls are decided in float64. Both find the same rows.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numba
import numpy as np

from firstk._base.simd import LANES, above, fma, larger, load, lowest_bit, mul, splat, splat_at, store

# Queries that share a load of references.
TOGETHER = 4
# Notes are sorted out when they are a power of two, from this one on.
_OFTEN = 32
# Notes are kept down to this many margins below the last that counts, so that no rounding loses one.
_SAFETY = 2.5
Lanes: TypeAlias = np.ndarray  # inside a kernel: one vector of the processor
jit = numba.njit(nogil=True, cache=True, error_model="numpy")


class Rule(NamedTuple):
    """How close calls are decided: see `_sweep`."""

    resolution: float  # relative difference of codes that is none
    exact_tie: float  # relative difference of sums in float64 that is none


class Notes(NamedTuple):
    """What may belong to the nearest of each query and length."""

    near: np.ndarray  # (queries, lengths, room) similarities
    rows: np.ndarray  # (queries, lengths, room) their references
    counts: np.ndarray  # (queries, lengths) how many; -1 where there was no room for all that are alike
    bounds: np.ndarray  # (queries / 4, lengths, 4) minus the similarity above which more are noted
    own: np.ndarray  # (queries,) the reference that is left out, or -1
    lanes: np.ndarray  # (LANES,) scratch


class Bounds(NamedTuple):
    """What the margins of similarities depend on."""

    norms: np.ndarray  # (queries, lengths) of the prefixes of queries
    roundings: np.ndarray  # (lengths,) relative error of a fast sum
    n_rows: int  # number of references, without those that fill up a tile


# -- margins --------------------------------------------------------------------------------------------------------


@jit
def _tie(best: float, norm: float, rule: Rule) -> float:
    """Return the difference to `best` that the precision of the codes cannot tell from none."""
    sine = np.sqrt(max(norm * norm - best * best, 0.0))
    return rule.resolution * sine + (rule.resolution * rule.resolution / 2 + rule.exact_tie) * norm


@jit
def _margin(best: float, at: int, i: int, limits: Bounds, rule: Rule) -> float:
    """Return how far apart two fast similarities must be, one of them `best`, to be told apart."""
    norm = limits.norms[at, i]
    return 2.0 * (limits.roundings[i] * norm + _tie(best, norm, rule))


@jit
def _bound(best: float, at: int, i: int, limits: Bounds, rule: Rule) -> float:
    """Return minus the similarity that may still belong to the nearest, the last of which reaches `best`."""
    # The last term keeps what is equal where there is no margin: codes of zeros.
    return _SAFETY * _margin(best, at, i, limits, rule) - best + 1e-30


# -- notes ----------------------------------------------------------------------------------------------------------


@jit
def _nth(values: np.ndarray, rows: np.ndarray, count: int, n: int) -> float:
    """Move the n largest values to the front, and return the smallest of them (quickselect)."""
    left, right, k = 0, count - 1, n - 1
    while left < right:
        pivot = values[(left + right) // 2]
        i, j = left, right
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break
    return values[k]


@jit
def _kept(values: np.ndarray, rows: np.ndarray, count: int, bound: float) -> int:
    """Drop what is below `bound`, and return how many are left."""
    left = 0
    for i in range(count):
        if values[i] >= bound:
            values[left], rows[left] = values[i], rows[i]
            left += 1
    return left


@jit
def _take(
    bits: np.uint32, values: Lanes, t: int, at: int, i: int, notes: Notes, limits: Bounds, n: int, rule: Rule
) -> None:
    """Note the lanes that passed. The bound rises with the best one, or when there is no room left."""
    near, rows = notes.near[at, i], notes.rows[at, i]
    g, q = at // TOGETHER, at % TOGETHER
    store(notes.lanes, 0, values)
    count, bound = notes.counts[at, i], notes.bounds[g, i, q]
    number = notes.bounds.dtype.type
    while bits:
        lane = lowest_bit(bits)
        bits &= bits - np.uint32(1)
        value, row = notes.lanes[lane], t * LANES + lane
        if value <= -bound or row >= limits.n_rows or row == notes.own[at]:
            continue
        near[count], rows[count] = value, row
        count += 1
        if n == 1 and value >= near[0]:
            near[count - 1], rows[count - 1] = near[0], rows[0]
            near[0], rows[0] = value, row
            bound = min(bound, number(_bound(value, at, i, limits, rule)))
        if count == len(near) or (count & (count - 1) == 0 and count >= _OFTEN and count > n):
            if n > 1:
                lowest = _nth(near, rows, count, n)
                bound = min(bound, number(_bound(lowest, at, i, limits, rule)))
            count = _kept(near, rows, count, -bound)
            if count == len(near):  # `_exhaustive` ranks them
                count, bound = -1, number(-np.inf)
                break
    notes.counts[at, i], notes.bounds[g, i, q] = count, bound


@jit
def _take_four(
    sums: tuple[Lanes, ...], scale: Lanes, t: int, g: int, i: int, notes: Notes, limits: Bounds, n: int, rule: Rule
) -> None:
    """Note what passes the bounds of four queries."""
    zero = splat(notes.bounds.dtype.type(0))
    for q, values in enumerate(sums):
        bits = above(fma(values, scale, splat(notes.bounds[g, i, q])), zero)
        if bits:
            _take(bits, mul(values, scale), t, g * TOGETHER + q, i, notes, limits, n, rule)


# -- the sweep ------------------------------------------------------------------------------------------------------


@jit
def _stride(count: int) -> int:
    """Return a step near the golden section that visits all of `count` places."""
    step = max(1, int(0.618 * count))
    while True:
        a, b = step, count
        while b:
            a, b = b, a % b
        if a == 1:
            return step
        step += 1


@jit
def scan(
    tiles: np.ndarray,
    scales: np.ndarray,
    queries: np.ndarray,
    lengths: np.ndarray,
    notes: Notes,
    limits: Bounds,
    n: int,
    rule: Rule,
) -> None:
    """Grow the products of all references with a block of queries through all lengths; `scales` makes them cosines."""
    count, d, _ = tiles.shape
    flat, asked, bounds = tiles.reshape(-1), queries.reshape(-1), notes.bounds.reshape(-1)
    scale = scales.reshape(-1)
    groups, width = len(queries), len(lengths)
    zero = splat(tiles.dtype.type(0))
    stride = _stride(count)  # references may come sorted, so that each is nearer than the one before
    for step in range(count):
        t = step * stride % count
        for g in range(groups):
            s0, s1, s2, s3 = zero, zero, zero, zero
            j = 0
            for i in range(width):
                stop = lengths[i]
                while j < stop:
                    r, a = load(flat, (t * d + j) * LANES), (g * d + j) * TOGETHER
                    x, y = splat_at(asked, a), splat_at(asked, a + 1)
                    z, w = splat_at(asked, a + 2), splat_at(asked, a + 3)
                    s0, s1, s2, s3 = fma(x, r, s0), fma(y, r, s1), fma(z, r, s2), fma(w, r, s3)
                    j += 1
                a = (g * width + i) * TOGETHER
                x, y = splat_at(bounds, a), splat_at(bounds, a + 1)
                z, w = splat_at(bounds, a + 2), splat_at(bounds, a + 3)
                r = load(scale, (t * width + i) * LANES)
                x, y, z, w = fma(s0, r, x), fma(s1, r, y), fma(s2, r, z), fma(s3, r, w)
                if above(larger(larger(x, y), larger(z, w)), zero):
                    _take_four((s0, s1, s2, s3), r, t, g, i, notes, limits, n, rule)


@jit
def _added(
    tiles: np.ndarray,
    queries: np.ndarray,
    at: int,
    row: int,
    start: int,
    stop: int,
    sums: tuple[float, float],
) -> tuple[float, float]:
    """Add coordinates of one pair to its product and the reference's square, in float64, from the first to the last."""
    t, lane, g, q = row // LANES, row % LANES, at // TOGETHER, at % TOGETHER
    total, square = sums
    for j in range(start, stop):
        x, r = np.float64(queries[g, j, q]), np.float64(tiles[t, j, lane])
        total += x * r
        square += r * r
    return total, square


@jit
def _similarity(total: float, square: float) -> float:
    return total / np.sqrt(square) if square > 0 else 0.0


@jit
def hints(notes: Notes, n: int, hints: np.ndarray) -> None:
    """Write n rows that are about the nearest of each query and length; -1 where fewer were noted."""
    for at in range(hints.shape[0]):
        for i in range(hints.shape[1]):
            near, rows, count = notes.near[at, i], notes.rows[at, i], notes.counts[at, i]
            count = len(near) if count < 0 else count
            if count >= n:
                _nth(near, rows, count, n)
            for c in range(n):
                hints[at, i, c] = rows[c] if count >= n else -1


@jit
def seed(
    tiles: np.ndarray,
    queries: np.ndarray,
    lengths: np.ndarray,
    grid: np.ndarray,
    hints: np.ndarray,
    bounds: np.ndarray,
    limits: Bounds,
    rule: Rule,
) -> None:
    """Bound each length by what the nearest at the next lengths of the grid, above and below, reach there.

    The n-th largest of some similarities, at least n of them, is no larger than the n-th largest of all.
    """
    n = hints.shape[2]
    rows, totals, squares = np.empty(2 * n, np.int64), np.empty(2 * n), np.empty(2 * n)
    values, places = np.empty(2 * n), np.empty(2 * n, np.int64)
    for at in range(hints.shape[0]):
        for p in range(len(grid)):
            count, start = 0, 0
            for part in range(max(p - 1, 0), p + 1):
                for c in range(n):
                    row, known = hints[at, part, c], False
                    for other in range(count):
                        known |= rows[other] == row
                    if row >= 0 and not known:
                        rows[count], totals[count], squares[count] = row, 0.0, 0.0
                        count += 1
            if count < n:
                continue
            for i in range(grid[p - 1] + 1 if p else 0, grid[p] + 1):
                for c in range(count):
                    sums = (totals[c], squares[c])
                    sums = _added(tiles, queries, at, rows[c], start, lengths[i], sums)
                    totals[c], squares[c] = sums
                    values[c] = _similarity(sums[0], sums[1])
                start = lengths[i]
                best = _nth(values, places, count, n)
                bounds[at // TOGETHER, i, at % TOGETHER] = _bound(best, at, i, limits, rule)


# -- decisions ------------------------------------------------------------------------------------------------------


@jit
def _by_groups(values: np.ndarray, rows: np.ndarray, count: int, norm: float, rule: Rule, found: np.ndarray) -> None:
    """Write the nearest of candidates, which come in order of rows: groups of ties, each led by its nearest member."""
    taken = 0
    while taken < len(found):
        best = -np.inf
        for c in range(count):
            best = max(best, values[c])
        bound = best - _tie(best, norm, rule)
        for c in range(count):
            if values[c] >= bound and values[c] > -np.inf:
                values[c] = -np.inf
                if taken < len(found):
                    found[taken] = rows[c]
                    taken += 1


@jit
def _exhaustive(
    tiles: np.ndarray, scales: np.ndarray, queries: np.ndarray, k: int, at: int, i: int, own: int, limits: Bounds,
    rule: Rule, found: np.ndarray,
) -> None:  # fmt: skip
    """Rank in float64 all references that may be among the nearest: for a query with more equals than can be noted."""
    n, norm, number = len(found), limits.norms[at, i], tiles.dtype.type
    (count, d, _), width = tiles.shape, scales.shape[1]
    flat, asked, scale = tiles.reshape(-1), queries.reshape(-1), scales.reshape(-1)
    first, zero = at // TOGETHER * d * TOGETHER + at % TOGETHER, splat(number(0))
    values, rows = np.empty(limits.n_rows), np.empty(limits.n_rows, np.int32)
    totals, squares = np.empty(LANES), np.empty(LANES)
    # More than what ties with the n-th nearest, and than rounding. The bound rises whenever twice as many are kept.
    room = 2.0 * (_tie(0.0, norm, rule) + limits.roundings[i] * norm) + 1e-30
    kept, most, bound = 0, _OFTEN * n, splat(number(np.inf))
    for t in range(count):
        sums = zero
        for j in range(k):
            sums = fma(splat_at(asked, first + j * TOGETHER), load(flat, (t * d + j) * LANES), sums)
        bits = above(fma(sums, load(scale, (t * width + i) * LANES), bound), zero)
        if not bits:
            continue
        for lane in range(LANES):
            totals[lane] = squares[lane] = 0.0
        for j in range(k):
            x = np.float64(asked[first + j * TOGETHER])
            for lane in range(LANES):
                r = np.float64(tiles[t, j, lane])
                totals[lane] += x * r
                squares[lane] += r * r
        while bits:
            lane = lowest_bit(bits)
            bits &= bits - np.uint32(1)
            if t * LANES + lane < limits.n_rows and t * LANES + lane != own:
                values[kept], rows[kept] = _similarity(totals[lane], squares[lane]), t * LANES + lane
                kept += 1
        if kept >= most:
            lowest = _nth(values[:kept].copy(), rows[:kept].copy(), kept, n)
            kept, bound = _kept(values, rows, kept, lowest - room), splat(number(room - lowest))
            most = 2 * kept + _OFTEN * n
    _by_groups(values, rows, kept, norm, rule, found)


@jit
def _sort(values: np.ndarray, rows: np.ndarray, count: int) -> None:
    """Sort by value, largest first."""
    for i in range(1, count):
        value, row, j = values[i], rows[i], i
        while j and values[j - 1] < value:
            values[j], rows[j] = values[j - 1], rows[j - 1]
            j -= 1
        values[j], rows[j] = value, row


@jit
def decide(
    tiles: np.ndarray,
    scales: np.ndarray,
    queries: np.ndarray,
    lengths: np.ndarray,
    notes: Notes,
    limits: Bounds,
    ordered: bool,
    rule: Rule,
    found: np.ndarray,
) -> None:
    """Write the nearest of each query and length from what was noted; close calls are decided exactly."""
    n = found.shape[2]
    exact, backward = np.empty(notes.near.shape[2]), np.empty(notes.near.shape[2], np.int32)
    for at in range(found.shape[0]):
        for i in range(found.shape[1]):
            k, count, norm = lengths[i], notes.counts[at, i], limits.norms[at, i]
            near, rows, answer = notes.near[at, i], notes.rows[at, i], found[at, i]
            if count < n:
                _exhaustive(tiles, scales, queries, k, at, i, notes.own[at], limits, rule, answer)
                continue
            lowest = np.float64(_nth(near, rows, count, n))
            margin = _margin(lowest, at, i, limits, rule)
            count = _kept(near, rows, count, lowest - margin)
            contested = count > n
            if ordered and not contested:
                _sort(near, rows, n)
                for c in range(n - 1):
                    contested |= np.float64(near[c]) - np.float64(near[c + 1]) <= margin
            if not contested:
                for c in range(n):
                    answer[c] = rows[c]
                continue
            for c in range(count):
                backward[c] = -rows[c]
            _sort(backward, rows, count)
            for c in range(count):
                total, square = _added(tiles, queries, at, rows[c], 0, k, (0.0, 0.0))
                exact[c] = _similarity(total, square)
            _by_groups(exact, rows, count, norm, rule, answer)


@jit
def prefix_norms(codes: np.ndarray, lengths: np.ndarray, norms: np.ndarray) -> None:
    """Write the norm of the first k coordinates of each row, summed in float64, for each length."""
    for row in range(len(codes)):
        square, start = 0.0, 0
        for i in range(len(lengths)):
            for j in range(start, lengths[i]):
                square += np.float64(codes[row, j]) * np.float64(codes[row, j])
            start = lengths[i]
            norms[row, i] = np.sqrt(square)
