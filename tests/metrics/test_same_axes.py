"""Whether two fits share axes, whether a code is ordered, and whether its basis is privileged."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics import basis_kurtosis, first_k_against_best_k, principal_angles, same_axes


@pytest.fixture
def Z():
    return np.random.default_rng(0).normal(size=(300, 4)) * [4, 3, 2, 1] + 5


def turned(d, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda Z: -3 * Z + 1, "axes"),
        (lambda Z: Z[:, [2, 0, 3, 1]], "axes in another order"),
        (lambda Z: (Z - Z.mean(axis=0)) / [4, 3, 2, 1] @ turned(4), "subspace"),
        (lambda Z: np.random.default_rng(2).normal(size=Z.shape), "nothing"),
    ],
)
def test_the_verdict_names_what_is_shared(Z, change, verdict):
    found = same_axes(Z, change(Z))
    assert found.verdict == verdict
    assert all(0 <= level.low <= level.high <= 1 for level in found.levels.values())


def test_levels_and_angles_are_those_of_slow_code(Z):
    other = Z @ turned(4) + np.random.default_rng(3).normal(size=Z.shape)
    found = same_axes(Z, other)
    r = np.abs(np.corrcoef(Z.T, other.T)[:4, 4:])
    np.testing.assert_allclose(found.correlations, r, rtol=1e-9)
    assert found.levels["axes"].value == pytest.approx(np.diag(r).mean())
    assert found.levels["axes in another order"].value == pytest.approx(r[tuple(found.match.T)].mean())
    a, b = ((part - part.mean(axis=0)).T for part in (Z, other))
    canonical = np.cos(np.radians(principal_angles(a, b)))
    assert found.levels["subspace"].value == pytest.approx(canonical.mean())
    np.testing.assert_allclose(found.angles[-1], principal_angles(a, b).mean())


def test_an_interval_about_the_bound_is_undecided(Z):
    other = Z + np.random.default_rng(3).normal(size=Z.shape)
    level = same_axes(Z, other).levels["axes"]
    assert level.low < level.value < level.high
    assert same_axes(Z, other, least=level.value).verdict == "undecided"


def test_fits_of_other_rows_and_widths(Z):
    half = Z[:150], Z[150:]
    a, b = (PrefixEncoder(3).fit(part) for part in half)
    found = same_axes(a, b.encoder_, Z)
    assert found.verdict == "axes"
    assert found.cosines.min() > 0.9
    assert same_axes(a, b.transform(Z), Z).cosines is None
    narrow = same_axes(a, b.transform(Z)[:, :2], Z)
    assert narrow.correlations.shape == (3, 2)
    assert narrow.match.shape == (2, 2)


def test_a_coordinate_that_does_not_vary_agrees_with_none(Z):
    dead = Z * [1, 1, 1, 0]
    assert same_axes(dead, dead).levels["axes"].value == pytest.approx(3 / 4)
    assert same_axes(dead, dead).levels["subspace"].value == pytest.approx(3 / 4)


def test_inputs_are_checked(Z):
    with pytest.raises(InvalidInputError, match="'X' parameter of same_axes"):
        same_axes(PrefixEncoder(2).fit(Z), Z)
    with pytest.raises(InvalidInputError, match="least"):
        same_axes(Z, Z, least=2)
    with pytest.raises(InvalidInputError, match="300"):
        same_axes(Z, Z[:10])
    with pytest.raises(InvalidInputError, match="at least 3 rows"):
        same_axes(Z[:2], Z[:2])
    with pytest.raises(InvalidInputError, match="rows that vary"):
        basis_kurtosis(np.ones((5, 3)))


def test_first_k_lose_to_the_best_k_where_the_order_is_wrong():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    noise = rng.normal(size=(600, 3))
    means = np.array([[0, 0, 3], [0, 1, -3], [0, -1, 0]])
    Z = means[y] + noise  # the last coordinate tells the classes, the first nothing
    scores = first_k_against_best_k(Z[:300], y[:300], Z[300:], y[300:])
    assert scores["probe"][0] - scores["first"][0] > 0.3
    ordered = first_k_against_best_k(Z[:300, ::-1], y[:300], Z[300:, ::-1], y[300:])
    assert max(float((ordered[how] - ordered["first"]).max()) for how in ("size", "variance", "probe")) < 0.05
    np.testing.assert_allclose([scores[how][-1] for how in scores], scores["first"][-1])


def test_a_basis_of_sparse_coordinates_is_privileged_and_a_turned_one_is_not():
    Z = np.random.default_rng(0).laplace(size=(400, 6))
    assert basis_kurtosis(Z).p_value == 0.01
    turned_code = basis_kurtosis(np.random.default_rng(1).normal(size=(400, 6)))
    assert turned_code.p_value > 0.05
    np.testing.assert_allclose(turned_code.rotated.mean(), 3 * 6 / 8, rtol=0.05)  # of uniform directions


@pytest.mark.parametrize(("n", "d"), [(100, 32), (50, 40)])
def test_few_rows_of_many_coordinates_are_judged_rightly(n, d):
    """Draws repeat rows, which raises correlations of independent codes and lowers those of equal subspaces."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(n, d))
    assert same_axes(a, a @ np.linalg.qr(rng.normal(size=(d, d)))[0]).verdict == "subspace"
    assert same_axes(a, rng.normal(size=(n, d))).levels["subspace"].low < 0.95
