"""The scan of packed bytes: bits move and come back, tables are what decoding gives, engines agree."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk._base.checks import numba_may_compile
from firstk.bits.codebooks import Codebooks
from firstk.search.codes import scan
from firstk.search.codes.packing import BYTE, Packing
from firstk.search.codes.scan import PackedRows, nearest

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
    queries = rng.normal(size=(m, quantizer.k)) * 0.8 ** np.arange(quantizer.k)
    return quantizer, codes, Packing.of(quantizer, metric), queries


def rows_of(packing, codes, ids=None):
    packed = packing.packed(codes)
    norms = None if packing.metric == "inner_product" else packing.norms(packed)
    return PackedRows(packed, np.arange(len(codes)) if ids is None else ids, norms, packing.metric == "cosine")


DEPTHS = st.lists(st.integers(0, 8), min_size=1, max_size=30).filter(lambda depths: sum(depths) > 0)


@given(DEPTHS, st.integers(0, 100), st.sampled_from(METRICS), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_bits_move_and_come_back_and_tables_are_what_decoding_gives(depths, n, metric, levels):
    quantizer, codes, packing, queries = made(depths, n, metric=metric, levels=levels)
    assert np.array_equal(packing.unpacked(packing.packed(codes)), codes)
    near, found = nearest(rows_of(packing, codes), *packing.tables(queries), max(n, 1))
    expected = quantizer.nearness(codes, queries)
    for q in range(len(queries)):
        assert sorted(found[q].tolist()) == list(range(n)) or n == 0
        assert np.allclose(near[q, :n], expected[q, found[q, :n]], rtol=1e-5, atol=1e-6)


@given(DEPTHS)
@settings(max_examples=60, deadline=None)
def test_bytes_hold_whole_coordinates(depths):
    quantizer = Cells(depths, np.random.default_rng(0))
    packing = Packing.of(quantizer, "cosine")
    owner = np.append(quantizer.order, -1)[packing.source].reshape(-1, BYTE)
    for c, depth in enumerate(quantizer.bits):
        byte, _ = np.nonzero(owner == c)
        assert len(byte) == depth
        assert len(set(byte.tolist())) <= 1
    assert packing.planes >= quantizer.n_bytes


def _fewest(sizes):
    """Return the fewest bytes that hold coordinates of so many bits: all ways to fill one, largest first."""
    if not sizes:
        return 0
    first, rest = sizes[0], sizes[1:]
    fewest = len(sizes)
    for count in range(min(len(rest), BYTE - first) + 1):
        for taken in set(combinations(rest, count)):
            if first + sum(taken) <= BYTE:
                left = list(rest)
                for each in taken:
                    left.remove(each)
                fewest = min(fewest, 1 + _fewest(left))
    return fewest


@given(st.lists(st.integers(1, 8), min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_few_packings_are_shorter(depths):
    """Best-fit decreasing needs at most 11/9 OPT + 6/9 bytes (Dósa, 2007)."""
    quantizer = Cells(depths, np.random.default_rng(0))
    fewest = _fewest(sorted((int(b) for b in quantizer.bits if b), reverse=True))
    assert fewest <= Packing.of(quantizer, "cosine").planes <= (11 * fewest + 6) // 9


def test_many_single_bits_leave_nothing_unused():
    cells = Cells([8, 7, 6, 5, 5, 4, 3, 3, 3] + [2] * 10 + [1] * 64, np.random.default_rng(0))
    assert Packing.of(cells, "l2").planes == cells.n_bytes


@COMPILED
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("levels", [0, 1, 6])
@pytest.mark.parametrize("depths", [[8, 6, 5, 4, 3, 3, 2, 1, 1, 1], [4] * 6, [1] * 40, [2, 0, 3, 0, 3], [0, 0]])
def test_engines_agree_bit_for_bit(metric, depths, levels):
    from firstk.search.codes import _compiled

    if not (levels or any(depths)):
        return
    for n, m, size, scale in ((1, 1, 1, 1), (33, 2, 5, 1), (700, 5, 12, 1e150), (5001, 3, 300, 1e-150), (90, 2, 9, 0)):
        quantizer, codes, packing, queries = made(depths, n, m, metric, levels=levels)
        ids = np.random.default_rng(1).permutation(n).astype(np.int64)
        tables = packing.tables(queries * scale)
        # Sorted by nearness, with ties, and in part.
        order = np.argsort(quantizer.nearness(codes, queries)[0])
        for codes_ in (codes, codes[order], np.repeat(codes[:1], n, axis=0)):
            rows = rows_of(packing, codes_, ids)
            for some in (rows, rows.part(n // 2, n)):
                (near, found), (near2, found2) = (
                    one.nearest(some, *tables, min(size, len(some))) for one in (scan, _compiled)
                )
                assert np.array_equal(near, near2)
                assert np.array_equal(found, found2)
