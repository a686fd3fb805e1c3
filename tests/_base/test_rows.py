"""Rows that are equal."""

import numpy as np
import pytest

from firstk._base.rows import distinct_rows, projected


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8, bool])
def test_distinct_rows_of_any_numbers(dtype):
    first, which = distinct_rows(np.array([[2, 1], [0, 1], [2, 1], [3, 0]]).astype(dtype))
    np.testing.assert_array_equal(first, [0, 1, 3])
    np.testing.assert_array_equal(which, [0, 1, 0, 2])


def test_rows_without_columns_are_equal():
    first, which = distinct_rows(np.zeros((3, 0)))
    np.testing.assert_array_equal(first, [0])
    np.testing.assert_array_equal(which, [0, 0, 0])


def test_equal_rows_stay_equal_in_one_set_and_in_two():
    rng = np.random.default_rng(0)
    rows, matrix, centre = rng.normal(size=(3, 33)), rng.normal(size=(33, 7)), rng.normal(size=33)
    found = projected({"left": rows[[0, 1, 0, 2, 1]], "right": rows[[2, 2, 0]]}, matrix, centre)
    np.testing.assert_allclose(found["left"], (rows[[0, 1, 0, 2, 1]] - centre) @ matrix, atol=1e-13)
    np.testing.assert_array_equal(found["left"][0], found["left"][2])
    np.testing.assert_array_equal(found["left"][3], found["right"][1])
    np.testing.assert_array_equal(found["left"][0], found["right"][2])
    assert projected({}, matrix) == {}


@pytest.mark.parametrize("width", [1, 7, 8, 9, 40])
def test_distinct_rows_are_those_of_a_loop(width):
    rng = np.random.default_rng(width)
    X = rng.integers(0, 2, (200, width)).astype(np.float32)
    X[50:100, 1:] = rng.normal(size=(50, width - 1))  # alike in the first column alone
    X[100:150] = X[rng.integers(0, 100, 50)]
    X[3, 0] = -0.0
    seen: dict[tuple[float, ...], int] = {}
    expected = [seen.setdefault(tuple(row + 0.0), len(seen)) for row in X.tolist() for row in [np.array(row)]]
    first, which = distinct_rows(X)
    np.testing.assert_array_equal(which, expected)
    np.testing.assert_array_equal(first, [expected.index(number) for number in range(len(seen))])
