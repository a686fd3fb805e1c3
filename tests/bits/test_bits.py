"""Trees of thresholds, the order of bits, and bits as bytes, against slow and obvious references."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from firstk.bits.allocation import bit_order, bits_of, depths_of, lower_hull
from firstk.bits.bit_string import packed, unpacked
from firstk.bits.embedded import Embedded, read_embedded
from firstk.bits.trees import FEWEST_ROWS, Trees, wrong_trees
from firstk.data.precision import Precision
from firstk.exceptions import InvalidInputError


def draw(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) ** 3 * np.linspace(3, 0.5, d) + np.arange(d)


# -- trees ---------------------------------------------------------------------------------------------------------


def best_split(z, w):
    """Try every split of sorted numbers; return the number of those below, or None."""
    best, place = None, None
    for i in range(1, len(z)):
        if z[i] == z[i - 1] or len(z) < FEWEST_ROWS:
            continue
        error = sum(
            np.sum(W * (part - np.average(part, weights=W)) ** 2) for part, W in ((z[:i], w[:i]), (z[i:], w[i:]))
        )
        if best is None or error < best - 1e-12:
            best, place = error, i
    return place


def slow_tree(z, w, depth):
    """Grow one tree cell by cell: centroids, squares and errors."""
    order = np.argsort(z)
    cells = [(z[order], w[order])]
    centroids, squares, errors = [], [], []
    inherited = [None]
    for _ in range(depth + 1):
        means = [
            np.average(part, weights=weight) if len(part) else above
            for (part, weight), above in zip(cells, inherited, strict=True)
        ]
        centroids += means
        squares += [np.average(part**2, weights=weight) if len(part) else np.nan for part, weight in cells]
        errors.append(sum(np.sum(W * (part - m) ** 2) for (part, W), m in zip(cells, means, strict=True)) / w.sum())
        halves, inherited = [], []
        for (part, weight), mean in zip(cells, means, strict=True):
            i = best_split(part, weight)
            i = len(part) if i is None else i
            halves += [(part[:i], weight[:i]), (part[i:], weight[i:])]
            inherited += [mean, mean]
        cells = halves
    return np.array(centroids), np.array(squares), np.array(errors)


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_split_cells_where_the_error_falls_most(weighted):
    Z = draw(90, 3)
    Z[:, 2] = np.round(Z[:, 2])  # equal numbers stay together
    weight = np.random.default_rng(1).integers(1, 4, len(Z)).astype(float) if weighted else np.ones(len(Z))
    trees = Trees.fit(Z, weight if weighted else None, depth=4)
    for i in range(3):
        centroids, squares, errors = slow_tree(Z[:, i], weight, 4)
        np.testing.assert_allclose(trees.centroids[i], centroids, rtol=1e-5, atol=1e-6)
        known = ~np.isnan(squares)
        np.testing.assert_allclose(trees.squares[i][known], squares[known], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(trees.distortion[i], errors, atol=1e-10)


def test_weights_are_numbers_of_copies():
    Z, counts = draw(60, 2), np.arange(60) % 3 + 1
    copies = Trees.fit(np.repeat(Z, counts, axis=0), depth=2)
    np.testing.assert_allclose(Trees.fit(Z, counts, depth=2).centroids, copies.centroids, rtol=1e-6)


def test_thresholds_are_halfway_and_ascend():
    trees = Trees.fit(draw(3000, 5), depth=8)
    assert trees.thresholds.shape == (5, 255)
    np.testing.assert_allclose(trees.thresholds[:, 0], (trees.centroids[:, 1] + trees.centroids[:, 2]) / 2, rtol=1e-6)
    for bits in range(1, 9):
        for i in range(5):
            # From left to right in the tree they ascend, so a sorted list of them names the same cells.
            walls = trees.sorted_thresholds(i, bits)
            for z in draw(20, 5, seed=bits)[:, i].astype(np.float32):
                node = 0
                for _ in range(bits):
                    node = 2 * node + 1 + int(z > trees.thresholds[i, node])
                assert node - (2**bits - 1) == np.searchsorted(walls, z)
            assert np.isin(trees.values(i, bits), trees.centroids[i]).all()


def test_a_cell_that_is_not_split_does_not_depend_on_last_digits():
    Z = np.array([[0.0], [1.0], [2.0], [10.0], [20.0], [21.0]])
    trees = Trees.fit(Z, depth=3)
    for bits in (1, 2, 3):
        walls = trees.sorted_thresholds(0, bits)
        assert np.abs(walls - Z).min() > 0.1  # no row of the fit is on a wall
    assert np.searchsorted(walls, 1e30) % 2 == 0  # below, in the cell beyond the last wall


def test_the_sample_lies_in_the_cells_it_was_split_into():
    Z = draw(500, 3)
    trees = Trees.fit(Z, depth=5)
    for i, bits in product(range(3), range(6)):
        cell = np.searchsorted(trees.sorted_thresholds(i, bits), Z[:, i])
        error = np.mean((Z[:, i] - trees.values(i, bits)[cell]) ** 2)
        assert error == pytest.approx(trees.distortion[i, bits], rel=1e-4, abs=1e-9)


def test_a_coordinate_that_does_not_vary_gains_nothing():
    Z = draw(50, 3)
    Z[:, 1] = 7.25
    trees = Trees.fit(Z)
    assert (trees.distortion[1] == trees.distortion[1, 0]).all()
    assert (trees.centroids[1] == np.float32(7.25)).all()
    assert 1 not in bit_order(trees.distortion)


@pytest.mark.parametrize("n", range(1, 8))
def test_few_rows(n):
    trees = Trees.fit(draw(n, 2))
    assert wrong_trees(trees, 2) == ""
    assert (trees.distortion[:, 0] > trees.distortion[:, -1]).all() == (n >= FEWEST_ROWS)


def test_an_offset_costs_no_digits():
    Z = draw(400, 2)
    near, far = Trees.fit(Z, depth=4), Trees.fit(Z + 1e6, depth=4)
    np.testing.assert_allclose(far.distortion, near.distortion, rtol=1e-6)


def test_trees_do_not_depend_on_blocks_or_the_order_of_rows(monkeypatch):
    Z = draw(100, 7)
    whole = Trees.fit(Z, depth=5)
    monkeypatch.setattr("firstk.bits.trees._BLOCK_NUMBERS", 100)
    for other in (Trees.fit(Z, depth=5), Trees.fit(Z[::-1], depth=5)):
        assert all(np.array_equal(part, other.arrays()[name]) for name, part in whole.arrays().items())


def test_numbers_whose_squares_are_too_large_raise():
    with pytest.raises(InvalidInputError, match=r"hold numbers up to 1\.84e"):
        Trees.fit(draw() * 1e30)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: {"centroids": t.centroids[:, :-1]}, "'centroids' is float32"),
        (lambda t: {"squares": t.squares.astype(np.float64)}, "'squares' is float64"),
        (lambda t: {"squares": np.full_like(t.squares, np.nan)}, "NaN"),
        (lambda t: {"squares": -t.squares}, "negative"),
        (lambda t: {"distortion": t.distortion[:, ::-1].copy()}, "grows"),
        (lambda t: {"centroids": t.centroids[:, ::-1].copy()}, "ascend"),
        (lambda t: {"distortion": t.distortion[:, :1]}, "depth 0"),
    ],
)
def test_damaged_trees_are_named(change, said):
    trees = Trees.fit(draw(), depth=3)
    assert said in wrong_trees(Trees(**trees.arrays() | change(trees)), 4)


# -- allocation ----------------------------------------------------------------------------------------------------


def slow_hull(errors):
    """Walk along the hull from vertex to vertex."""
    points = [(0, errors[0])]
    for x, y in enumerate(errors[1:], start=1):
        while len(points) > 1:
            (x0, y0), (x1, y1) = points[-2:]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            points.pop()
        points.append((x, y))
    return np.interp(np.arange(len(errors)), *zip(*points, strict=True))


def falling(rng, d, depth):
    return np.cumsum(rng.uniform(0, 1, (d, depth + 1))[:, ::-1], axis=1)[:, ::-1].copy()


def test_hull_against_walking_along_it():
    for seed in range(20):
        errors = falling(np.random.default_rng(seed), 5, 8)
        np.testing.assert_allclose(lower_hull(errors), [slow_hull(row) for row in errors], atol=1e-12)


def test_every_allocation_is_the_best_of_its_size():
    depth = 3
    for seed in range(20):
        rng = np.random.default_rng(seed)
        errors, weights = lower_hull(falling(rng, 3, depth)), rng.uniform(0.5, 2, 3)
        order = bit_order(errors, weights)
        assert len(order) == 3 * depth
        for count in range(len(order) + 1):
            choices = [bits for bits in product(range(depth + 1), repeat=3) if sum(bits) == count]
            best = min(sum(weights[i] * errors[i, b] for i, b in enumerate(bits)) for bits in choices)
            given = bits_of(order[:count], 3)
            assert sum(weights * errors[np.arange(3), given]) == pytest.approx(best)


def test_bits_are_given_one_by_one():
    errors = falling(np.random.default_rng(3), 6, 8)
    hull, given, order = lower_hull(errors), np.zeros(6, dtype=int), []
    while (given < 8).any():
        gain = [hull[i, b] - hull[i, b + 1] if b < 8 else -1.0 for i, b in enumerate(given)]
        order.append(int(np.argmax(gain)))
        given[order[-1]] += 1
    np.testing.assert_array_equal(bit_order(errors), order)


def test_ties_go_to_the_lower_coordinate():
    errors = np.array([[4.0, 2.0, 1.0]] * 3)
    np.testing.assert_array_equal(bit_order(errors), [0, 1, 2, 0, 1, 2])


def test_bits_that_lower_nothing_are_not_given():
    errors = np.array([[4.0, 2.0, 2.0], [3.0, 3.0, 3.0], [1.0, 0.5, 0.0]])
    np.testing.assert_array_equal(bit_order(errors), [0, 2, 2])
    np.testing.assert_array_equal(bit_order(errors, np.array([0.0, 1.0, 1.0])), [2, 2])


def test_depths():
    order = np.random.default_rng(0).integers(0, 5, 40)
    np.testing.assert_array_equal(depths_of(order), [np.sum(order[:i] == c) for i, c in enumerate(order)])


# -- bytes ---------------------------------------------------------------------------------------------------------


def test_bits_lie_in_their_order(monkeypatch):
    rng = np.random.default_rng(0)
    order = bit_order(falling(rng, 5, 8))
    order = order[: len(order) // 8 * 8]
    bits = bits_of(order, 5)
    cells = np.stack([rng.integers(0, 2**b, 30) for b in bits], axis=1).astype(np.uint8)
    codes = packed(cells, order)
    for row, code in zip(cells, codes, strict=True):
        strings = [iter(format(cell, f"0{b}b")) if b else iter("") for cell, b in zip(row, bits, strict=True)]
        assert "".join(next(strings[i]) for i in order) == "".join(format(byte, "08b") for byte in code)
    np.testing.assert_array_equal(unpacked(codes, order, 5), cells)
    monkeypatch.setattr("firstk.bits.bit_string._BLOCK_BITS", 3 * len(order))  # rows in threes
    np.testing.assert_array_equal(unpacked(codes, order, 5), cells)


# -- the precision -------------------------------------------------------------------------------------------------


def test_every_cut_is_the_code_of_that_length():
    Z = draw(300, 6)
    whole = Embedded().fit(Z)
    stored = whole.quantise(Z)
    assert stored.shape == (300, whole.n_bytes)
    for bytes in range(1, whole.n_bytes + 1):
        short = whole.at(bytes)
        np.testing.assert_array_equal(short.quantise(Z), stored[:, :bytes])
        np.testing.assert_array_equal(short.restore(stored[:, :bytes]), whole.restore(stored[:, :bytes]))
        np.testing.assert_array_equal(Embedded(bytes).fit(Z).quantise(Z), stored[:, :bytes])


def test_codes_are_restored_as_the_means_of_their_cells():
    Z = draw(300, 6)
    embedded = Embedded(2).fit(Z)
    restored = embedded.restore(embedded.quantise(Z))
    for i in range(6):
        for value in np.unique(restored[:, i]):  # a cell that is not split has one value for both halves
            np.testing.assert_allclose(Z[restored[:, i] == value, i].mean(), value, rtol=1e-4, atol=1e-5)
    assert embedded.bits.min() == 0  # some coordinate has no bit, and is its mean


def test_blocks_do_not_matter(monkeypatch):
    Z = draw(300, 6)
    embedded = Embedded(3).fit(Z)
    stored = embedded.quantise(Z)
    restored = embedded.restore(stored)
    monkeypatch.setattr("firstk.bits.embedded._BLOCK_NUMBERS", 50)
    np.testing.assert_array_equal(embedded.quantise(Z), stored)
    np.testing.assert_array_equal(embedded.restore(stored), restored)


def test_it_is_a_precision():
    embedded: Precision = Embedded(2)
    assert embedded.bytes_per_vector(64) == 2
    assert Embedded().bytes_per_vector(64) == 64
    assert embedded.clipped(draw()) == 0
    with pytest.raises(InvalidInputError, match="must be fitted before use"):
        embedded.quantise(draw())


def test_a_record_restores_the_same_codes():
    Z = draw(300, 6)
    embedded = Embedded(2).fit(Z)
    stored = embedded.quantise(Z)
    again = read_embedded(json.loads(json.dumps(embedded.record())))
    np.testing.assert_array_equal(again.quantise(Z), stored)
    for bytes in (1, 2):
        np.testing.assert_array_equal(again.restore(stored[:, :bytes]), embedded.restore(stored[:, :bytes]))


@pytest.mark.parametrize(
    "change",
    [
        {"order": [0] * 7},
        {"order": [9] * 16},
        {"order": [0] * 16},
        {"order": "all"},
        {"d": 0},
        {"centroids": "AAAA"},
        {"centroids": "not base64"},
        {"squares": None},
        {"distortion": [1, 2]},
    ],
)
def test_damaged_records_raise(change):
    record = Embedded(2).fit(draw(300, 6)).record()
    with pytest.raises(InvalidInputError, match="not a record of the precision 'embedded'"):
        read_embedded(record | change)
    with pytest.raises(InvalidInputError, match="not a record of the precision 'embedded'"):
        read_embedded({name: value for name, value in record.items() if name not in change})


def test_errors_name_the_number_and_the_way_out():
    Z = draw(300, 3)
    embedded = Embedded().fit(Z)
    most = embedded.n_bytes
    for bytes in (0, -1, 2.0, True, "8", most + 1):
        with pytest.raises(InvalidInputError, match=rf"an int in \[1, {most}\] \(the bytes that the code has\)"):
            embedded.at(bytes)
    stored = embedded.quantise(Z)
    for wrong in (stored.astype(np.int16), stored[0], np.hstack([stored, stored]), stored[:, :0]):
        with pytest.raises(InvalidInputError, match="codes stored as uint8"):
            embedded.restore(wrong)
    with pytest.raises(InvalidInputError, match="takes 'Z' with 3 columns"):
        embedded.quantise(Z[:, :2])
    Z[0, 0] = np.nan
    with pytest.raises(InvalidInputError, match="NaN"):
        embedded.quantise(Z)
    with pytest.raises(InvalidInputError, match="a byte has 8"):
        Embedded().fit(np.ones((20, 3)))
