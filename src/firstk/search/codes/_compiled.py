"""Search on packed bytes, compiled: bounds from look-ups in registers, exact sums for the few rows that pass.

Tables rounded up to bytes give an upper bound of a row's sum with one instruction for 32 look-ups, as in the fast scan
of faiss (André, Kermarrec and Le Scouarnec, 2015). The few bytes of codebooks, whose tables have 256 entries, are
looked up one by one and not rounded: a bound by halves of them would be far too high. Unlike in fast scans, rows whose
bound reaches the threshold are summed again in float64, so the result is that of the reference in `code_scan`, bit for
bit. Two queries share every load.
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np

from firstk._base.simd import LANES, above, fma, load, lowest_bit, splat
from firstk.search.codes._simd_bytes import (
    WIDTH,
    add_bytes,
    add_odd,
    add_pairs,
    as_floats,
    even,
    high_half,
    load_bytes,
    load_table,
    look_up,
    low_half,
    no_words,
)
from firstk.search.codes.scan import PackedRows, Tables

Arrays: TypeAlias = tuple[np.ndarray, ...]
Lanes: TypeAlias = np.ndarray  # inside a kernel: one vector of the processor
# Tiles that stay in the first-level cache while all queries pass over them.
_TILES = 16
# Room for rows beyond those that are kept: the threshold rises whenever it is full.
_ROOM = 64
# A sample of tiles gives a threshold to start with: so many of them, and from so many rows that are looked for more.
_FEW, _MANY, _SAMPLE = 64, 128, 2048
# Share by which the float32 comparison of a bound with its threshold may be off, with much to spare.
_ROUNDING = 2.0**-20
# Bytes of the tables of one byte: two halves of sixteen.
_TABLES = 32
Sums: TypeAlias = tuple[Lanes, Lanes]
Some: TypeAlias = tuple[int, int, int]  # tiles: start, stop, stride
Norm: TypeAlias = tuple[float, bool]  # the largest norm, and whether sums are divided by norms or these subtracted
Rows: TypeAlias = tuple[np.ndarray, np.ndarray, int, Norm]  # tiles, ids, number, norms
Absent: TypeAlias = np.ndarray | None  # None is a type of its own, for which other code is compiled
# Vectors stay in registers only where a function is part of its caller.
jit = numba.njit(nogil=True, cache=True, error_model="numpy")
inlined = numba.njit(nogil=True, cache=True, error_model="numpy", forceinline=True)


@inlined
def _four(v: Lanes, w: Lanes, x: Lanes, y: Lanes, tables: np.ndarray, at: int) -> Lanes:
    """Sum the look-ups of two bytes, given as halves."""
    low = add_bytes(look_up(load_table(tables, at), v), look_up(load_table(tables, at + 16), w))
    high = add_bytes(look_up(load_table(tables, at + 32), x), look_up(load_table(tables, at + 48), y))
    return add_bytes(low, high)


@inlined
def _two(v: Lanes, w: Lanes, tables: np.ndarray, at: int) -> Lanes:
    """Sum the look-ups of one byte, given as halves."""
    return add_bytes(look_up(load_table(tables, at), v), look_up(load_table(tables, at + 16), w))


@inlined
def _sums(tiles: np.ndarray, at: int, planes: int, tables: np.ndarray, p: int, odd: Absent) -> Sums:
    """Sum the look-ups of a tile by the tables of one query: of its first and of its last sixteen rows."""
    a, b = no_words(), no_words()
    for _ in range(planes // 2):
        one, two = load_bytes(tiles, at), load_bytes(tiles, at + WIDTH)
        s = _four(low_half(one), high_half(one), low_half(two), high_half(two), tables, p)
        a, b = add_pairs(a, s), add_odd(b, s)
        at, p = at + 2 * WIDTH, p + 2 * _TABLES
    if odd is not None:
        one = load_bytes(tiles, at)
        s = _two(low_half(one), high_half(one), tables, p)
        a, b = add_pairs(a, s), add_odd(b, s)
    return as_floats(even(a, b)), as_floats(b)


@inlined
def _sums_of_two(
    tiles: np.ndarray, at: int, planes: int, tables: np.ndarray, p: int, q: int, odd: Absent
) -> tuple[Sums, Sums]:
    """Do what `_sums` does for two queries, which share the loads of the rows."""
    a, b, c, d = no_words(), no_words(), no_words(), no_words()
    for _ in range(planes // 2):
        one, two = load_bytes(tiles, at), load_bytes(tiles, at + WIDTH)
        v, w, x, y = low_half(one), high_half(one), low_half(two), high_half(two)
        s, t = _four(v, w, x, y, tables, p), _four(v, w, x, y, tables, q)
        a, b, c, d = add_pairs(a, s), add_odd(b, s), add_pairs(c, t), add_odd(d, t)
        at, p, q = at + 2 * WIDTH, p + 2 * _TABLES, q + 2 * _TABLES
    if odd is not None:
        one = load_bytes(tiles, at)
        v, w = low_half(one), high_half(one)
        s, t = _two(v, w, tables, p), _two(v, w, tables, q)
        a, b, c, d = add_pairs(a, s), add_odd(b, s), add_pairs(c, t), add_odd(d, t)
    return (as_floats(even(a, b)), as_floats(b)), (as_floats(even(c, d)), as_floats(d))


@jit
def _exact(
    tiles: np.ndarray,
    norms: Absent,
    divides: bool,
    some: Some,
    reaching: np.ndarray,
    n: int,
    places: np.ndarray,
    tables: np.ndarray,
    constant: float,
    rows: np.ndarray,
    near: np.ndarray,
) -> int:
    """Sum the look-ups of the rows that passed in float64, byte by byte; return how many there are.

    See `Packing.places` for what a byte adds.
    """
    planes, count = len(places), 0
    for i, t in enumerate(range(some[0], some[1], some[2])):
        bits = reaching[i]
        while bits:
            lane = lowest_bit(bits)
            bits &= bits - np.uint32(1)
            row = t * WIDTH + lane
            if row < n:
                at = t * planes * WIDTH + (2 * lane if lane < LANES else 2 * (lane - LANES) + 1)
                total = constant
                for j in range(planes):
                    value = np.int64(tiles[at + j * WIDTH])
                    low = np.uint64(places[j, 0] + (value & places[j, 1]))
                    high = np.uint64(places[j, 2] + (value >> places[j, 3]))
                    total += tables[low] + tables[high]
                rows[count], near[count] = row, total
                count += 1
    if norms is not None:
        for i in range(count):
            norm = np.float64(norms[rows[i]])
            near[i] = near[i] / norm if divides else near[i] - norm
    return count


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
def _set_threshold(q: int, bound: Arrays, norm: Norm) -> None:
    """Express the threshold in steps: a row may belong to the nearest if its look-ups exceed slope * norm + offset."""
    threshold, base, step, slope, offset, books = bound
    largest, divides = norm
    by_norm = threshold[q] / step[q]
    by_base = base[q] / step[q]
    slack = abs(by_base) + books[q] / step[q] + 65536
    if largest and divides:
        slope[q], offset[q] = by_norm, -by_base - _ROUNDING * (slack + abs(by_norm) * largest)
    else:
        slope[q] = 1 / step[q] if largest else 0
        offset[q] = by_norm - by_base - _ROUNDING * (slack + abs(by_norm) + largest / step[q])
    if not (np.isfinite(slope[q]) and np.isfinite(offset[q])):
        slope[q], offset[q] = 0, -np.inf  # every row passes


@jit
def _set_thresholds(bound: Arrays, norm: Norm) -> None:
    for q in range(len(bound[0])):
        _set_threshold(q, bound, norm)


@jit
def _take(
    q: int, rows: np.ndarray, values: np.ndarray, ids: np.ndarray, found: Arrays, bound: Arrays, size: int, norm: Norm
) -> None:
    """Note rows that are near enough; when a query's list is full, keep its nearest and raise its threshold."""
    near, named, counts, worst = found
    threshold, last, count = bound[0][q], worst[q], counts[q]
    for i in range(len(rows)):
        value, name = values[i], ids[rows[i]]
        if value > threshold or (value == threshold and name < last):
            near[q, count], named[q, count] = value, name
            count += 1
            if count == near.shape[1]:
                threshold = _keep_nearest(near[q], named[q], count, size)
                last, count = named[q, size - 1], size
    if threshold > bound[0][q] or last < worst[q]:
        bound[0][q], worst[q] = threshold, last
        _set_threshold(q, bound, norm)
    counts[q] = count


@inlined
def _reaching(
    sums: Sums,
    first: int,
    norms: Absent,
    slope: np.float32,
    offset: np.float32,
    books: Absent,
    added: np.ndarray,
    at: int,
) -> np.uint32:
    """Return which rows of a tile reach the threshold, as bits; codebooks, if any, add what is in `added` from `at`."""
    low = high = splat(offset)
    if norms is not None:
        steep = splat(slope)
        low, high = fma(steep, load(norms, first), low), fma(steep, load(norms, first + LANES), high)
    if books is not None:
        less = splat(np.float32(-1))
        low, high = fma(less, load(added, at), low), fma(less, load(added, at + LANES), high)
    return above(sums[0], low) | (above(sums[1], high) << np.uint32(LANES))


@inlined
def _add_books(tiles: np.ndarray, at: int, levels: int, tables: np.ndarray, q: int, out: np.ndarray) -> None:
    """Look up what the bytes of codebooks add to each row of a tile, in the order of rows.

    Four rows at a time: additions of one wait for each other. Indices are unsigned: of signed ones numba would ask each
    time whether they count from the end.
    """
    one, two, three, plane, entries = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(WIDTH), np.uint64(256)
    half = np.uint64(LANES)
    for lane in range(0, LANES, 2):
        place, table, to = np.uint64(at + 2 * lane), np.uint64(q * levels * 256), np.uint64(lane)
        a = b = c = d = np.float32(0)
        for _ in range(levels):
            a += tables[table + np.uint64(tiles[place])]
            b += tables[table + np.uint64(tiles[place + one])]
            c += tables[table + np.uint64(tiles[place + two])]
            d += tables[table + np.uint64(tiles[place + three])]
            place += plane
            table += entries
        out[to], out[to + half], out[to + one], out[to + half + one] = a, b, c, d


@inlined
def _add_books_of_two(tiles: np.ndarray, at: int, levels: int, tables: np.ndarray, q: int, out: np.ndarray) -> None:
    """Do the same for queries q and q + 1, which share the loads of the rows: two rows at a time."""
    one, plane, entries = np.uint64(1), np.uint64(WIDTH), np.uint64(256)
    half, other = np.uint64(LANES), np.uint64(levels * 256)
    for lane in range(LANES):
        place, table, to = np.uint64(at + 2 * lane), np.uint64(q * levels * 256), np.uint64(lane)
        a = b = c = d = np.float32(0)
        for _ in range(levels):
            first, second = table + np.uint64(tiles[place]), table + np.uint64(tiles[place + one])
            a += tables[first]
            b += tables[second]
            c += tables[first + other]
            d += tables[second + other]
            place += plane
            table += entries
        out[to], out[to + half], out[to + plane], out[to + plane + half] = a, b, c, d


@jit
def _bound_one(
    tiles: np.ndarray,
    norms: Absent,
    some: Some,
    planes: tuple[int, int],
    odd: Absent,
    tables: np.ndarray,
    q: int,
    slope: np.float32,
    offset: np.float32,
    books: Absent,
    added: np.ndarray,
    reaching: np.ndarray,
) -> None:
    """Note which rows of some tiles may belong to the nearest of one query."""
    levels, others = planes
    for i, t in enumerate(range(some[0], some[1], some[2])):
        at = t * (levels + others) * WIDTH
        if books is not None:
            _add_books(tiles, at, levels, books, q, added)
        sums = _sums(tiles, at + levels * WIDTH, others, tables, q * others * _TABLES, odd)
        reaching[0, i] = _reaching(sums, t * WIDTH, norms, slope, offset, books, added, 0)


@jit
def _bound_two(
    tiles: np.ndarray,
    norms: Absent,
    some: Some,
    planes: tuple[int, int],
    odd: Absent,
    tables: np.ndarray,
    q: int,
    slopes: tuple[np.float32, np.float32],
    offsets: tuple[np.float32, np.float32],
    books: Absent,
    added: np.ndarray,
    reaching: np.ndarray,
) -> None:
    """Do the same for queries q and q + 1.

    Nothing in these loops may touch the reference count of an array, which would cost more than the look-ups: arrays
    are used in no branch, and what is None is known when the loop is compiled.
    """
    levels, others = planes
    own = others * _TABLES
    for i, t in enumerate(range(some[0], some[1], some[2])):
        at = t * (levels + others) * WIDTH
        if books is not None:
            _add_books_of_two(tiles, at, levels, books, q, added)
        ours, theirs = _sums_of_two(tiles, at + levels * WIDTH, others, tables, q * own, q * own + own, odd)
        reaching[0, i] = _reaching(ours, t * WIDTH, norms, slopes[0], offsets[0], books, added, 0)
        reaching[1, i] = _reaching(theirs, t * WIDTH, norms, slopes[1], offsets[1], books, added, WIDTH)


@jit
def _scan(
    rows: Rows,
    norms: Absent,
    tiles_of: Some,
    odd: Absent,
    queries: int,
    tables: np.ndarray,
    books: Absent,
    added: np.ndarray,
    levels: int,
    exact: Arrays,
    found: Arrays,
    bound: Arrays,
    size: int,
) -> None:
    """Pass all queries, two by two, over tiles from start to stop in strides."""
    tiles, ids, n, norm = rows
    places, constant, sums = exact
    planes = (levels, len(places) - levels)
    slope, offset = bound[3], bound[4]
    begin, end, stride = tiles_of
    reaching = np.zeros((2, _TILES), np.uint32)
    numbers, values = np.empty(_TILES * WIDTH, np.int64), np.empty(_TILES * WIDTH)
    for start in range(begin, end, _TILES * stride):
        some = (start, min(start + _TILES * stride, end), stride)
        for q in range(0, queries, 2):
            together = min(2, queries - q)
            if together == 2:
                slopes, offsets = (slope[q], slope[q + 1]), (offset[q], offset[q + 1])
                _bound_two(tiles, norms, some, planes, odd, tables, q, slopes, offsets, books, added, reaching)
            else:
                _bound_one(tiles, norms, some, planes, odd, tables, q, slope[q], offset[q], books, added, reaching)
            for k in range(together):
                if reaching[k].any():
                    p = q + k
                    count = _exact(
                        tiles, norms, norm[1], some, reaching[k], n, places, sums[p], constant[p], numbers, values
                    )
                    _take(p, numbers[:count], values[:count], ids, found, bound, size, norm)
                    reaching[k] = 0
    for q in range(queries):
        if found[2][q] > size:
            _keep_nearest(found[0][q], found[1][q], found[2][q], size)
            found[2][q] = size


def nearest(
    rows: PackedRows, queries: Tables, size: int, ids: np.ndarray, span: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and nearness of the nearest rows of some tiles: see `code_scan.nearest`."""
    tables, thresholds = queries.bounds(), None
    tiles = span[1] - span[0]
    step = max(1, tiles // _SAMPLE) if size >= _MANY else max(1, tiles // _FEW)
    if step > 1 and size < tiles * WIDTH // 8:
        thresholds = _suggested(rows, queries, tables, size, ids, (*span, step))
        if not rows.cosine:
            least = float(rows.norms[: rows.n].min()) if rows.norms.size else 0.0
            tables = queries.bounds(thresholds + least)
    named, near, counts = _run(rows, queries, tables, size, ids, (*span, 1), thresholds)
    short = np.flatnonzero(counts < size)
    if thresholds is not None and len(short):  # the sample's thresholds were too high
        again = _run(rows, queries.only(short), tuple(part[short] for part in tables), size, ids, (*span, 1), None)
        named[short], near[short] = again[:2]
    return named, near


def _suggested(
    rows: PackedRows, queries: Tables, tables: Arrays, size: int, ids: np.ndarray, tiles: Some
) -> np.ndarray:
    """Return thresholds that enough rows reach, from a sample of tiles: `size` of the sample, if they are few.

    Of many rows about as many as are looked for reach it, or some more to be on the safe side.
    """
    expected = size / tiles[2]
    enough = size if size < _MANY else int(expected + 3 * np.sqrt(expected)) + 1
    near = _run(rows, queries, tables, enough, ids, tiles, None)[1]
    # One step lower, so that a whole group of equal rows passes.
    return np.nextafter(near.min(axis=1), -np.inf)


def _run(
    rows: PackedRows,
    queries: Tables,
    tables: Arrays,
    size: int,
    ids: np.ndarray,
    tiles: Some,
    thresholds: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scan tiles (start, stop, stride) and return ids, nearness and the number of rows found, at most `size`."""
    m, (rounded, base, step) = len(queries), tables
    near = np.full((m, max(2 * size, size + _ROOM)), -np.inf)
    found = (near, np.zeros(near.shape, np.int64), np.zeros(m, np.int64), np.full(m, np.iinfo(np.int64).max))
    # A threshold that nothing has reached yet lets every row pass.
    slope, offset = np.zeros(m, np.float32), np.full(m, -np.inf, np.float32)
    bound = (np.full(m, -np.inf), base, step, slope, offset, queries.book_reach)
    norm = (float(rows.norms.max(initial=0)), rows.cosine)
    if thresholds is not None:
        bound[0][:] = thresholds
        _set_thresholds(bound, norm)
    exact = (queries.packing.places, queries.constant, queries.flat)
    norms = rows.norms if rows.norms.size else None
    data = (rows.tiles.reshape(-1), ids, rows.n, norm)
    levels = rows.packing.levels
    odd = np.empty(0) if (rows.packing.planes - levels) % 2 else None
    books = (queries.books / step[:, None, None]).astype(np.float32).reshape(-1) if levels else None
    added = np.empty(2 * WIDTH, np.float32)
    _scan(data, norms, tiles, odd, m, rounded.reshape(-1), books, added, levels, exact, found, bound, size)
    return found[1][:, :size], near[:, :size], found[2]
