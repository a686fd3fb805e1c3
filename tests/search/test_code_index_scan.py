"""The scan of packed bytes: bits move and come back, tables are what decoding gives, bounds hold, engines agree."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk._base.checks import numba_may_compile
from firstk.bits.codebooks import Codebooks
from firstk.search.codes.packing import HALF, packing_of
from firstk.search.codes.scan import TILE, PackedRows, Tables, best, nearest

COMPILED = pytest.mark.skipif(not numba_may_compile(), reason="needs numba, of the extra 'search'")
METRICS = ("cosine", "inner_product", "l2")


class Cells:
    """What a packing asks of embedded bits, with any number of bits for each coordinate, in any order."""

    def __init__(self, depths, rng, metric="cosine", levels=0):
        depths = np.asarray(depths)
        self.metric, self.k = metric, len(depths)
        order = rng.permutation(np.repeat(np.arange(self.k), depths))
        # The last byte is filled up with a coordinate of its own.
        spare = -len(order) % 8
        if spare:
            depths, self.k = np.append(depths, spare), self.k + 1
            order = np.append(order, np.full(spare, self.k - 1))
        self.bits, self.order, self.n_bytes = depths, order, levels + len(order) // 8
        # Each codebook sees some coordinates, from anywhere on.
        starts = rng.integers(0, self.k, levels)
        windows = np.stack([starts, np.minimum(starts + 5, self.k)], axis=1)
        centroids = np.int8(rng.integers(-127, 128, (256, np.diff(windows).sum())))
        self.codebooks = Codebooks(centroids, np.float32(0.7**starts / 50), windows, np.zeros((levels + 1, self.k)))
        values = [np.sort(rng.normal(size=2**b) * 0.7**i).astype(np.float32) for i, b in enumerate(depths)]
        self.cell_tables = [(each, rng.uniform(0, 0.1, len(each)).astype(np.float32)) for each in values]

    def cells(self, codes):
        cells = np.zeros((len(codes), self.k), int)
        for place, c in enumerate(self.order, start=8 * self.codebooks.levels):
            cells[:, c] = 2 * cells[:, c] + ((codes[:, place // 8] >> (7 - place % 8)) & 1)
        return cells

    def nearness(self, codes, queries):
        """Slow and obvious, in float64."""
        cells = self.cells(codes)
        Z, V = (
            np.stack(
                [tables[part].astype(np.float64)[cells[:, i]] for i, tables in enumerate(self.cell_tables)], axis=1
            )
            for part in (0, 1)
        )
        for level, (window, book) in enumerate(self.codebooks.books):
            Z[:, window] += book[codes[:, level]]
        if self.metric == "l2":
            return 2 * queries @ Z.T - (Z**2 + V).sum(axis=1)
        return queries @ Z.T / (np.linalg.norm(Z, axis=1) if self.metric == "cosine" else 1)


def made(depths, n=70, m=5, metric="cosine", seed=0, levels=0):
    rng = np.random.default_rng(seed)
    quantizer = Cells(depths, rng, metric, levels)
    codes = rng.integers(0, 256, (n, quantizer.n_bytes), dtype=np.uint8)
    rows = PackedRows(packing_of(quantizer, quantizer.metric), codes)
    queries = rng.normal(size=(m, quantizer.k)) * 0.8 ** np.arange(quantizer.k)
    return quantizer, codes, rows, queries


DEPTHS = st.lists(st.integers(0, 8), min_size=1, max_size=30).filter(lambda depths: sum(depths) > 0)


@given(DEPTHS, st.integers(0, 100), st.sampled_from(METRICS), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_bits_move_and_come_back_and_tables_are_what_decoding_gives(depths, n, metric, levels):
    quantizer, codes, rows, queries = made(depths, n, metric=metric, levels=levels)
    assert np.array_equal(rows.codes(), codes)
    assert np.array_equal(rows.codes(np.arange(n)[::-2]), codes[::-2])
    tables = Tables.of(rows.packing, queries)
    ids = np.arange(n)
    found, near = nearest(rows, tables, max(n, 1), ids, (0, len(rows.tiles)))
    expected = quantizer.nearness(codes, queries)
    for q in range(len(queries)):
        assert sorted(found[q].tolist()) == ids.tolist() or n == 0
        assert np.allclose(near[q, :n], expected[q, found[q, :n]], rtol=1e-5, atol=1e-6)


@given(DEPTHS)
@settings(max_examples=60, deadline=None)
def test_bytes_hold_whole_coordinates(depths):
    quantizer = Cells(depths, np.random.default_rng(0))
    packing = packing_of(quantizer, quantizer.metric)
    owner = np.append(quantizer.order, -1)[packing.source].reshape(-1, 8)
    for c, depth in enumerate(quantizer.bits):
        byte, bit = np.nonzero(owner == c)
        assert len(byte) == depth
        assert len(set(byte.tolist())) <= 1
        if depth and depth <= HALF:
            assert len(set((bit // HALF).tolist())) == 1
    assert packing.planes >= quantizer.n_bytes


def _halves(sizes):
    """Return the fewest halves that hold coordinates of at most four bits: all ways to fill one, largest first."""
    if not sizes:
        return 0
    first, rest = sizes[0], sizes[1:]
    fewest = len(sizes)
    for count in range(min(len(rest), HALF - first) + 1):
        for taken in {tuple(c) for c in _choices(rest, count) if first + sum(c) <= HALF}:
            left = list(rest)
            for each in taken:
                left.remove(each)
            fewest = min(fewest, 1 + _halves(left))
    return fewest


def _choices(sizes, count):
    available = {size: sizes.count(size) for size in set(sizes)}
    for choice in combinations_with_replacement(sorted(available), count):
        if all(choice.count(size) <= available[size] for size in choice):
            yield choice


@given(st.lists(st.integers(1, 4), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_no_packing_of_halves_is_shorter(depths):
    quantizer = Cells(depths, np.random.default_rng(0))
    wide = [b for b in quantizer.bits if b > HALF]
    if not wide:
        halves = _halves(sorted((int(b) for b in quantizer.bits if b), reverse=True))
        assert packing_of(quantizer, quantizer.metric).planes == -(-halves // 2)


def test_many_single_bits_leave_nothing_unused():
    assert (
        packing_of(Cells([8, 7, 6, 5, 5, 4, 3, 3, 3] + [2] * 10 + [1] * 64, np.random.default_rng(0)), "l2").planes
        == 16
    )


@given(DEPTHS, st.sampled_from(METRICS), st.integers(0, 1000), st.none() | st.floats(-3, 3), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_bounds_hold_and_fit_into_their_types(depths, metric, seed, threshold, levels):
    _, _, rows, queries = made(depths, 40, metric=metric, seed=seed, levels=levels)
    tables = Tables.of(rows.packing, queries)
    rounded, base, step = tables.bounds(None if threshold is None else np.full(len(queries), threshold))
    packed, planes = rows.rows(), rows.packing.planes - levels
    places = np.stack([packed & 15, packed >> 4], axis=2)[:, levels:]
    looked_up = np.zeros((len(queries), 40, planes), int)
    for q in range(len(queries)):
        for j in range(planes):
            looked_up[q, :, j] = sum(rounded[q, j, half].astype(int)[places[:, j, half]] for half in (0, 1))
    pairs = np.add.reduceat(looked_up, np.arange(0, planes, 2), axis=2)
    assert pairs.max() <= 255
    assert pairs.sum(axis=2).max() < 2**16
    books, sums = np.zeros((2, len(queries), 40))
    for j in range(rows.packing.planes):
        sums += tables.joined[:, j, packed[:, j]]
        books += tables.joined[:, j, packed[:, j]] if j < levels else 0
    sums += tables.constant[:, None]
    upper = base[:, None] + books + step[:, None] * looked_up.sum(axis=2)
    assert (upper >= sums - 1e-9 * np.abs(sums).max()).all()


@COMPILED
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("levels", [0, 1, 6])
@pytest.mark.parametrize(
    "depths", [[8, 6, 5, 4, 3, 3, 2, 1, 1, 1], [4] * 6, [1] * 40, [8, 8, 8], [2, 0, 3, 0, 3], [0, 0]]
)
def test_engines_agree_bit_for_bit(metric, depths, levels):
    from firstk.search.codes import _compiled as _compiled_codes

    for n, m, size in ((1, 1, 1), (33, 2, 5), (700, 5, 12), (5000, 3, 300)):
        if not (levels or any(depths)):
            continue
        _, _, rows, queries = made(depths, n, m, metric, levels=levels)
        tables = Tables.of(rows.packing, queries)
        ids = np.random.default_rng(1).permutation(n).astype(np.int64)
        for span in {(0, len(rows.tiles)), (0, 1), (len(rows.tiles) // 2, len(rows.tiles))}:
            here = min(size, min(n, span[1] * TILE) - span[0] * TILE)
            answers = [operations(rows, tables, here, ids, span) for operations in (nearest, _compiled_codes.nearest)]
            (near, found), (near2, found2) = (best(near, found, here) for found, near in answers)
            assert np.array_equal(near, near2)
            assert np.array_equal(found, found2)


@COMPILED
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize("many", [2, 1000])
def test_thresholds_from_a_sample_lose_nothing(metric, many, levels, monkeypatch):
    from firstk.search.codes import _compiled as _compiled_codes

    quantizer, codes, _, queries = made([4, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1], 4000, 6, metric, levels=levels)
    # Sorted by nearness to the first query: whatever tiles are sampled, they are not like the others.
    order = np.argsort(quantizer.nearness(codes, queries)[0])
    monkeypatch.setattr(_compiled_codes, "_MANY", many)
    monkeypatch.setattr(_compiled_codes, "_SAMPLE", 10)
    monkeypatch.setattr(_compiled_codes, "_FEW", 10)
    for codes_ in (codes, codes[order], codes[order][::-1], np.repeat(codes[:1], 4000, axis=0)):
        rows = PackedRows(packing_of(quantizer, quantizer.metric), codes_)
        tables = Tables.of(rows.packing, queries)
        for size in (2, 40, 400):
            answers = [
                operations(rows, tables, size, np.arange(4000), (0, len(rows.tiles)))
                for operations in (nearest, _compiled_codes.nearest)
            ]
            (near, found), (near2, found2) = (best(near, found, size) for found, near in answers)
            assert np.array_equal(near, near2)
            assert np.array_equal(found, found2)


@COMPILED
@pytest.mark.parametrize("scale", [0.0, 1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("levels", [0, 2])
def test_queries_of_any_size(scale, metric, levels):
    from firstk.search.codes import _compiled as _compiled_codes

    _, _, rows, queries = made([5, 4, 3, 2, 1, 1], 500, 3, metric, levels=levels)
    tables = Tables.of(rows.packing, queries * scale)
    answers = [
        operations(rows, tables, 9, np.arange(500), (0, len(rows.tiles)))
        for operations in (nearest, _compiled_codes.nearest)
    ]
    (near, found), (near2, found2) = (best(near, found, 9) for found, near in answers)
    assert np.array_equal(near, near2)
    assert np.array_equal(found, found2)


@given(st.lists(st.integers(0, 70), max_size=5), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_rows_that_come_in_pieces_and_go(counts, seed):
    rng = np.random.default_rng(seed)
    quantizer = Cells([5, 4, 2, 2, 1, 1, 1], rng)
    codes = rng.integers(0, 256, (sum(counts), 2), dtype=np.uint8)
    rows = PackedRows(packing_of(quantizer, quantizer.metric), codes[:0])
    for part in np.split(codes, np.cumsum(counts)[:-1]) if counts else []:
        rows = rows.appended(part)
    whole = PackedRows(rows.packing, codes)
    kept = rng.random(len(codes)) < 0.4
    for _ in range(2):
        assert np.array_equal(rows.codes(), codes)
        assert np.array_equal(rows.tiles, whole.tiles)
        assert np.array_equal(rows.norms[: len(codes)], whole.norms[: len(codes)])
        rows = rows.kept(kept)
        codes = codes[kept]
        whole, kept = PackedRows(rows.packing, codes), np.ones(len(codes), bool)


@COMPILED
def test_look_ups_spelled_out_are_those_of_the_instruction():
    import numba

    from firstk._base.simd import store
    from firstk.search.codes import _simd_bytes
    from firstk.search.codes._simd_bytes import (
        BYTES,
        add_bytes,
        add_odd,
        add_pairs,
        as_floats,
        even,
        intrinsic,
        no_words,
    )

    @intrinsic
    def spelled_out(typing, table, places):
        return BYTES(BYTES, BYTES), lambda context, builder, signature, args: _simd_bytes._one_by_one(builder, *args)

    def by(look_up):
        @numba.njit
        def sums(tables, bytes_, out):
            pairs, odd = no_words(), no_words()
            values = _simd_bytes.load_bytes(bytes_, 0)
            low = look_up(_simd_bytes.load_table(tables, 0), _simd_bytes.low_half(values))
            high = look_up(_simd_bytes.load_table(tables, 16), _simd_bytes.high_half(values))
            found = add_bytes(low, high)
            pairs, odd = add_pairs(pairs, found), add_odd(odd, found)
            store(out, 0, as_floats(even(pairs, odd)))
            store(out, 16, as_floats(odd))

        return sums

    rng = np.random.default_rng(0)
    tables, bytes_ = rng.integers(0, 128, 32, dtype=np.uint8), rng.integers(0, 256, 32, dtype=np.uint8)
    expected = tables[bytes_ & 15].astype(np.float32) + tables[16 + (bytes_ >> 4)]
    for look_up in (_simd_bytes.look_up, spelled_out):
        out = np.zeros(32, np.float32)
        by(look_up)(tables, bytes_, out)
        assert np.array_equal(out, np.concatenate([expected[::2], expected[1::2]]))


def test_a_threshold_makes_bounds_closer():
    _, _, rows, queries = made([8, 6, 5, 4, 3, 3, 2, 1], 400, metric="inner_product")
    tables = Tables.of(rows.packing, queries)
    near = np.sort(nearest(rows, tables, 400, np.arange(400), (0, len(rows.tiles)))[1], axis=1)
    assert (tables.bounds(near[:, -10])[2] < tables.bounds()[2]).all()
