"""Ridge in both directions against least squares on stacked rows."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.upgrade.methods import Ridge
from upgrade.pairs import centred, moments_of, pairs, to_scale


def stacked(A, B, shrinkage, target=None):
    """Minimize (1 - a) E|W^T a - b|^2 + a c |W - target|^2 as one least-squares problem."""
    n, p = A.shape
    c = np.trace(A.T @ A / n) / p
    fit, pull = np.sqrt((1 - shrinkage) / n), np.sqrt(shrinkage * c)
    target = np.zeros((p, B.shape[1])) if target is None else target
    return np.linalg.lstsq(np.vstack([fit * A, pull * np.eye(p)]), np.vstack([fit * B, pull * target]), rcond=None)[0]


@pytest.mark.parametrize("shrinkage", [0.0, 0.03, 0.5, 0.99])
@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
def test_both_directions_are_the_stacked_least_squares(shrinkage, p, q):
    old, new = pairs(p=p, q=q)
    A, B = centred(old, new)
    solution = Ridge(shrinkage).solve(moments_of(old, new))
    there, back = to_scale(A, B, stacked(A, B, shrinkage)), to_scale(B, A, stacked(B, A, shrinkage))
    np.testing.assert_allclose(solution.old_to_new.weight.T, there, atol=1e-9)
    np.testing.assert_allclose(solution.new_to_old.weight.T, back, atol=1e-9)
    np.testing.assert_allclose(solution.old_to_new(old, "test"), A @ there + new.mean(axis=0), atol=1e-9)


def test_fewer_rows_than_columns_and_no_shrinkage_is_the_shortest_solution():
    old, new = pairs(n=5, p=8, q=3)
    A, B = centred(old, new)
    expected = np.linalg.lstsq(A, B, rcond=None)[0]
    np.testing.assert_allclose(Ridge(0.0).translation(moments_of(old, new)), expected, atol=1e-7)
