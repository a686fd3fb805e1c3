"""Codebooks: by definition, the same bytes in any company, nothing learned where there is little, damage named."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.bits import codebooks
from firstk.bits.codebooks import ENTRIES, FEWEST_ROWS, Codebooks, wrong_codebooks
from firstk.bits.embedded import Embedded, read_embedded
from firstk.bits.k_means import as_integers, k_means

RNG = np.random.default_rng(0)
GROUPS = RNG.normal(size=(7, 9))
Z = RNG.normal(size=(FEWEST_ROWS, 9)) * np.linspace(3, 0.5, 9) + GROUPS[RNG.integers(0, 7, FEWEST_ROWS)]
NEW = RNG.normal(size=(FEWEST_ROWS, 9)) * np.linspace(3, 0.5, 9) + GROUPS[RNG.integers(0, 7, FEWEST_ROWS)]
BOOKS, LEFT = Codebooks.fit(Z)
BITS = np.full(len(codebooks.WIDTHS), 6.5)


def slow_codes(books, rows):
    """The nearest centroid of each codebook to what is left, one row after the other."""
    codes = np.empty((len(rows), books.levels), int)
    for i, row in enumerate(rows):
        left = row.astype(np.float64)
        for level, (start, stop) in enumerate(books.windows):
            book = np.zeros((ENTRIES, len(row)))
            book[:, start:stop] = books.books[level][1]
            codes[i, level] = np.argmin(((left - book) ** 2).sum(axis=1))
            left = left - book[codes[i, level]]
    return codes


def slow_beam(books, row, effort):
    """The bytes of the path that leaves least, when the best few are kept after each byte."""
    paths = [(0.0, (), row)]
    for level, (start, stop) in enumerate(books.windows):
        book = np.zeros((ENTRIES, len(row)))
        book[:, start:stop] = books.books[level][1]
        longer = [(path, left - entry, c) for _, path, left in paths for c, entry in enumerate(book)]
        paths = sorted(((left @ left, (*path, c), left) for path, left, c in longer), key=lambda one: one[:2])[:effort]
    return paths[0][1]


@pytest.mark.parametrize("effort", [2, 5])
def test_effort_keeps_the_best_candidates_after_each_byte(effort, monkeypatch):
    rows, books = Z[:40], BOOKS.first(5)  # those after them differ by less than the grid
    codes, left = books.encode(rows, effort=effort)
    np.testing.assert_array_equal(codes, [slow_beam(books, row, effort) for row in rows])
    np.testing.assert_allclose(rows - left, books.sums(codes), rtol=1e-5, atol=1e-5)
    assert np.square(left).sum() < np.square(books.encode(rows)[1]).sum()
    monkeypatch.setattr(codebooks, "_ROWS", 11)
    off = rows + RNG.uniform(-1, 1, rows.shape) * 1e-13
    again = books.encode(off, np.full(len(off), 1e-12), lambda some: rows[some], effort)[0]
    np.testing.assert_array_equal(again, codes)


def test_bytes_and_what_is_left_by_definition():
    rows = Z[:300]
    codes, left = BOOKS.encode(rows)
    assert codes.dtype == np.uint8
    np.testing.assert_array_equal(codes, slow_codes(BOOKS, rows))
    np.testing.assert_allclose(rows - left, BOOKS.sums(codes), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(BOOKS.errors[0], Z.var(axis=0))
    assert (np.diff(BOOKS.errors.sum(axis=1)) < 0).all()
    np.testing.assert_allclose(BOOKS.errors[-1], np.square(LEFT).mean(axis=0), rtol=1e-6)


def test_errors_are_those_of_rows_that_were_left_out():
    """Those of rows of the fit are smaller, and those of rows drawn anew nearer to what is expected."""
    for level in (1, 2, 4):
        some = BOOKS.first(level)
        own, other = (np.square(rows - some.sums(some.encode(rows)[0])).sum(axis=1).mean() for rows in (Z, NEW))
        expected = BOOKS.errors[level].sum()
        assert own < 0.99 * expected
        assert abs(other - expected) < 0.65 * (other - own)


def test_what_a_centroid_leaves_of_a_row_that_it_was_not_fitted_on():
    """The mean of the other rows, or the nearest mean of others where there are none."""
    rows = np.array([[0.0], [2.0], [7.0], [100.0]])
    centroids, owner = np.array([[3.0], [100.0], [1e6]]), np.array([0, 0, 0, 1])
    left = codebooks._left_over(rows, centroids, owner, np.full(4, 0.25))
    np.testing.assert_allclose(left[:, 0], [0 - 4.5, 2 - 3.5, 7 - 1.0, 100 - 3.0])
    weighted = codebooks._left_over(rows[:3], np.array([[4.0], [1e6]]), np.zeros(3, int), np.array([0.25, 0.25, 0.5]))
    np.testing.assert_allclose(weighted[:, 0], [0 - 16 / 3, 2 - 14 / 3, 7 - 1.0])
    nothing = codebooks._left_over(rows[:3], np.array([[4.0], [9.0]]), np.zeros(3, int), np.zeros(3))
    np.testing.assert_array_equal(nothing, rows[:3] - 9.0)  # a mean of rows without weight leaves what another leaves


def slow_gain(v, w, bits, rows):
    """What 256 centroids gain for new rows; the water level by bisection of its rate."""
    low, high = 0.0, v.max()
    for _ in range(200):
        t = (low + high) / 2
        low, high = (t, high) if 0.5 * np.log2(v / np.minimum(v, t)).sum() > bits else (low, t)
    left = np.minimum(v, t)
    return w @ (v - left) - 256 / rows * (w @ left)


@pytest.mark.parametrize(("bits", "rows", "shared_by"), [(6.5, 5e3, np.inf), (6.5, 1e6, np.inf), (20, 5e3, 5e4)])
def test_the_window_is_the_one_of_the_largest_gain_per_byte(bits, rows, shared_by):
    v = np.sort(RNG.exponential(size=50))[::-1] ** 2 * np.linspace(1, 0.01, 50)
    w = v ** (1 / 3)
    windows = {(max(0, min(s, 50 - x)), x) for x in (8, 16, 32, 50) for s in range(0, 50, max(8, x // 4))}
    gains = {at: slow_gain(v[at[0] : sum(at)], w[at[0] : sum(at)], bits, rows) for at in windows}
    per_byte = {at: gain / (1 + 256 * at[1] / shared_by) for at, gain in gains.items()}
    start, width = max(per_byte, key=per_byte.get)
    assert codebooks.best_window(v, w, np.full(6, bits), rows, shared_by) == slice(start, start + width)


def test_windows_are_wider_where_rows_are_many_and_none_where_bytes_are_shared_by_few():
    v = np.linspace(1, 0.01, 256) ** 2
    widths = [np.ptp((w.start, w.stop)) for n in (5e3, 5e4, 5e5) for w in [codebooks.best_window(v, v**0, BITS, n)]]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]
    assert codebooks.best_window(v, v**0, BITS, 5e3, shared_by=1e3) is None
    assert Codebooks.fit(Z, shared_by=100)[0].levels == 0


def test_bits_worth_are_those_of_the_error():
    v = np.linspace(3, 0.1, 20)
    for bits in (0.5, 6.5, 30.0):
        left = np.minimum(v, codebooks._water_level(v[None], bits)).sum()
        assert codebooks.bits_worth(v, left) == pytest.approx(bits, abs=1e-6)


def test_codebooks_see_the_coordinates_of_the_largest_error():
    wide = RNG.normal(size=(FEWEST_ROWS, 40)) * np.repeat([1.0, 0.1, 3.0, 0.1, 2.0], 8)
    books, _ = Codebooks.fit(wide)
    assert {0, 8} >= set(np.abs(books.windows[:, 0] - 16)) - {16}
    for cut in (4, 20, 24):
        part = books.cut(cut)
        assert wrong_codebooks(part, cut) == ""
        assert part.width == cut
        assert (part.windows[:, 0] < cut).all()
    codes = books.encode(wide[:100])[0]
    for i in (0, 17, 39):
        np.testing.assert_allclose(books.sums_of(codes, i), books.sums(codes)[:, i], rtol=1e-5, atol=1e-6)


def test_bytes_do_not_depend_on_the_rows_beside_them(monkeypatch):
    codes, left = BOOKS.encode(Z)
    parts = [BOOKS.encode(Z[i : i + 37]) for i in range(0, 500, 37)]
    np.testing.assert_array_equal(np.concatenate([part[0] for part in parts])[:500], codes[:500])
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts])[:500], left[:500])
    monkeypatch.setattr(codebooks, "_ROWS", 11)
    np.testing.assert_array_equal(BOOKS.encode(Z[:200])[0], codes[:200])


def test_rows_between_two_centroids_are_decided_in_a_fixed_order():
    """Products that are off by their rounding, as on another processor, change no byte."""
    book = BOOKS.books[0][1].astype(np.float64)
    between = (book[:-1] + book[1:]) / 2
    codes = BOOKS.encode(between)[0]
    np.testing.assert_array_equal(codes, slow_codes(BOOKS, between))
    off = between + RNG.uniform(-1, 1, between.shape) * 1e-13
    doubt = np.full(len(between), 1e-12)
    np.testing.assert_array_equal(BOOKS.encode(off, doubt, lambda rows: between[rows])[0], codes)


def test_the_fit_does_not_depend_on_last_bits_of_products():
    """k-means adds up integers, so a factor of two, and rounding of the rows below the grid, change nothing."""
    twice, _ = Codebooks.fit(2 * Z)
    np.testing.assert_array_equal(twice.centroids, BOOKS.centroids)
    np.testing.assert_array_equal(twice.steps, 2 * BOOKS.steps)
    rounded = np.rint(Z * 2**16) / 2**16
    first = Codebooks.fit(rounded)[0].centroids
    np.testing.assert_array_equal(Codebooks.fit(rounded + RNG.uniform(-1, 1, Z.shape) * 1e-12)[0].centroids, first)


def test_few_rows_and_rows_that_are_all_alike_have_no_codebooks():
    assert Codebooks.fit(Z[:-1])[0].levels == 0
    assert Codebooks.fit(np.zeros((5000, 3)))[0].levels == 0
    few = np.rint(Z[:5] * 8) / 8
    repeated = np.repeat(few, 1000, axis=0)
    books, left = Codebooks.fit(repeated)
    assert books.levels <= 3  # one byte says all there is to say but for its rounding
    assert not left.any()
    np.testing.assert_allclose(books.sums(books.encode(repeated)[0]), repeated, atol=1e-5)


def test_centroids_are_rounded_means_and_residuals_know_it():
    for (window, book), part, step in zip(BOOKS.books, BOOKS.in_steps, BOOKS.steps, strict=True):
        assert np.abs(part).max() == 127
        np.testing.assert_array_equal(book, part.astype(np.float64) * step)  # no rounding in float32
        assert book.shape[1] == window.stop - window.start
    # The first centroids are those of k-means, up to half a step.
    rows, scale = as_integers(Z)
    means = k_means(rows, np.full(len(Z), 1 / len(Z)))[0] / scale
    assert np.abs(BOOKS.books[0][1] - means).max() <= 0.5001 * BOOKS.steps[0]
    assert BOOKS.steps[0] <= 1.0001 * np.abs(means).max() / 127 + 1 / scale


def test_trees_see_what_codebooks_leave_over():
    cells = Embedded.fitted(Z)
    np.testing.assert_allclose(cells.trees.distortion[:, 0], cells.all_books.errors[-1], rtol=1e-3)
    np.testing.assert_allclose(cells.coordinate_variances, Z.var(axis=0))
    again = Embedded.from_arrays(cells.arrays(), 9)
    np.testing.assert_array_equal(again.all_books.centroids, cells.all_books.centroids)
    trees_alone = {name: part for name, part in cells.arrays().items() if name.startswith("trees.")}
    assert Embedded.from_arrays(trees_alone, 9).codebooks.levels == 0


def test_every_prefix_of_a_string_is_a_code_and_errors_are_as_expected():
    embedded = Embedded().fit(Z)
    whole = embedded.quantise(Z)
    for size in range(1, embedded.n_bytes + 1):
        cut = embedded.at(size)
        assert cut.levels == min(size, BOOKS.levels)
        np.testing.assert_array_equal(cut.quantise(Z[:200]), whole[:200, :size])
        restored = embedded.restore(whole[:, :size])
        np.testing.assert_array_equal(restored, cut.restore(whole[:, :size]))
        own, new = (np.square(X - cut.restore(cut.quantise(X))).sum(axis=1).mean() for X in (Z, NEW))
        assert own < 1.001 * cut.expected_error < 1.4 * new
        # E|z|^2 = |E z|^2 + Var, on the rows of the fit.
        cells, squares = cut.named_cells(whole[:, :size]), np.square(restored, dtype=float).sum(axis=1)
        for i, table in enumerate(cut.variances):
            squares += table[cells[:, i]] if len(table) > 1 else table[0]
        np.testing.assert_allclose(squares.mean(), np.square(Z).sum(axis=1).mean(), rtol=5e-2)


def test_records_hold_the_codebooks_that_their_bytes_need():
    embedded = Embedded().fit(Z)
    for size in (1, 3, 6, 8):
        cut = embedded.at(size)
        again, codes = read_embedded(cut.record()), cut.quantise(Z[:50])
        assert (again.n_bytes, again.levels) == (size, min(size, BOOKS.levels))
        np.testing.assert_array_equal(again.restore(codes), cut.restore(codes))
        np.testing.assert_array_equal(again.quantise(Z[:50]), codes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: {"centroids": b.centroids[:100]}, "of shape"),
        (lambda b: {"centroids": np.repeat(b.centroids, 2, axis=1)}, "of shape"),
        (lambda b: {"windows": b.windows + 1}, "within 9 coordinates"),
        (lambda b: {"windows": b.windows.astype(np.int32)}, "windows are int32"),
        (lambda b: {"errors": b.errors[1:]}, "errors are of shape"),
        (lambda b: {"centroids": b.centroids.astype(np.float64)}, "int8 and float64"),
        (lambda b: {"steps": b.steps * np.float32(np.nan)}, "finite float32 numbers"),
        (lambda b: {"steps": -b.steps}, "finite float32 numbers"),
        (lambda b: {"steps": b.steps[1:]}, "finite float32 numbers"),
        (lambda b: {"errors": -b.errors}, "negative"),
    ],
)
def test_damaged_codebooks_are_named(change, said):
    assert wrong_codebooks(BOOKS, 9) == ""
    assert said in wrong_codebooks(Codebooks(**BOOKS.arrays() | change(BOOKS)), 9)
