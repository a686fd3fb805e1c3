"""Resolution: which columns are rounding beside the others, the same for any partition of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from firstk import Moments
from firstk._base.rows import DOUBLE, SINGLE, Resolution


@pytest.fixture
def single():
    return np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("make", "eps"),
    [
        (lambda X: X, SINGLE),
        (lambda X: X.astype(np.float16), SINGLE),
        (lambda X: X.astype(np.float64), SINGLE),  # converted: no digit was gained
        (lambda X: sparse.csr_matrix(X.astype(np.float64)), SINGLE),
        (lambda X: X.astype(np.float64) / 3, DOUBLE),
        (lambda X: np.vstack([X.astype(np.float64), np.full((1, 3), 0.1)]), DOUBLE),  # seen in the last row only
        (lambda X: np.rint(100 * X).astype(np.float64), DOUBLE),  # whole numbers are exact
        (lambda X: np.rint(100 * X).astype(np.int64), DOUBLE),
    ],
)
def test_resolution_is_that_of_the_numbers(single, make, eps):
    assert Resolution.of(make(single)).eps == eps


def test_any_partition_has_the_same_resolution(single):
    rows = np.vstack([single.astype(np.float64), np.ones((5, 3)), np.full((1, 3), 0.1)])
    for cut in (1, 40, 45):
        assert Resolution.of(rows[:cut]) + Resolution.of(rows[cut:]) == Resolution.of(rows)
        parts = Moments().update(rows[:cut]).merge(Moments().update(rows[cut:]))
        assert parts.resolution.eps == DOUBLE


@pytest.mark.parametrize(("size", "constant"), [(1e-7, True), (1e-6, True), (2e-6, False), (1e-3, False)])
def test_a_column_below_ten_roundings_of_the_largest_is_constant(size, constant):
    X = (np.random.default_rng(1).standard_normal((500, 3)) * [1.0, size, 0.5]).astype(np.float32)
    for rows in (X, X.astype(np.float64)):
        moments = Moments().update(rows)
        assert np.any(moments.St[1]) != constant
        assert (moments.variances()[1] == 0) == constant
    assert Moments().update(X.astype(np.float64) * (1 / 3)).variances()[1] > 0  # columns in units of their own


def test_a_column_that_tells_classes_apart_is_never_rounding():
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=400)
    X = np.column_stack([2 * y - 1 + 5e-7 * rng.standard_normal(400), rng.standard_normal((400, 2))])
    moments = Moments().update(X.astype(np.float32), y)
    assert moments.Sw[0, 0] > 0
    assert Moments.from_arrays(moments.to_arrays()).resolution == moments.resolution
