"""Order-blind metrics against scipy, against the papers' formulas, and where the answer is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orth, subspace_angles

from firstk.exceptions import InvalidInputError
from firstk.metrics import axis_distance, mean_principal_angles, principal_angles, subspace_distance


def rotated_plane(angle, p=6):
    """Two axes in p dimensions, the second tilted by `angle` radians out of the first plane."""
    U = np.eye(p)[:2]
    W = U.copy()
    W[1] = np.cos(angle) * U[1] + np.sin(angle) * np.eye(p)[2]
    return W, U


@pytest.mark.parametrize(("a", "b", "p"), [(3, 3, 8), (2, 5, 8), (5, 2, 8), (4, 4, 4), (1, 1, 3)])
def test_angles_equal_scipy(a, b, p):
    rng = np.random.default_rng(0)
    Q, E = rng.normal(size=(a, p)), rng.normal(size=(b, p))
    expected = np.degrees(subspace_angles(Q.T, E.T))[::-1]
    np.testing.assert_allclose(principal_angles(Q, E), expected, atol=1e-10)


@pytest.mark.parametrize("angle", [1e-12, 1e-9, 1e-5, 0.3, 1.2, np.pi / 2])
def test_small_angles_keep_their_digits(angle):
    W, U = rotated_plane(angle)
    mixed = np.array([[2.0, 0.3], [-0.4, 5.0]]) @ W
    np.testing.assert_allclose(np.radians(principal_angles(mixed, U)[1]), angle, rtol=1e-3, atol=0)


def test_mean_angles_equal_the_paper_formula_at_every_k():
    rng = np.random.default_rng(1)
    # 5 + 5 < 12: subspaces that must intersect have an angle 0, where the arccosine is off by 1e-6.
    Q, E = rng.normal(size=(5, 12)), rng.normal(size=(5, 12))
    for k, value in enumerate(mean_principal_angles(Q, E), start=1):
        eta = np.linalg.svd(orth(Q[:k].T).T @ orth(E[:k].T), compute_uv=False)
        assert value == pytest.approx(np.degrees(np.arccos(np.clip(eta, -1, 1))).mean(), abs=1e-10)


def test_mean_angles_stop_at_the_shorter_basis():
    assert len(mean_principal_angles(np.eye(5)[:2], np.eye(5))) == 2


def test_a_row_that_adds_nothing_counts_as_a_right_angle():
    E = np.eye(4)[:3]
    Q = np.array([[1.0, 0, 0, 0], [2, 0, 0, 0], [0, 0, 1, 0]])
    # k = 2: e1 is found, e2 is not. k = 3: e1 and e3 are found.
    np.testing.assert_allclose(mean_principal_angles(Q, E), [0, 45, 30], atol=1e-10)
    np.testing.assert_allclose(mean_principal_angles(np.zeros((1, 4)), E), [90])


def test_a_dependent_row_does_not_take_from_later_rows():
    rng = np.random.default_rng(2)
    Q = rng.normal(size=(4, 7))
    Q[1] = -3 * Q[0]
    np.testing.assert_allclose(principal_angles(Q, Q), [0, 0, 0, 90], atol=1e-10)


def test_more_rows_than_columns():
    rng = np.random.default_rng(3)
    np.testing.assert_allclose(
        mean_principal_angles(rng.normal(size=(4, 2)), np.eye(2)[[0, 1, 0, 1]])[1:], [0, 30, 45], atol=1e-10
    )


@given(st.integers(0, 2**32 - 1))
def test_angles_are_blind_to_the_basis_of_each_prefix(seed):
    rng = np.random.default_rng(seed)
    Q, E = rng.normal(size=(4, 6)), rng.normal(size=(4, 6))
    T = np.tril(rng.normal(size=(4, 4)), -1) + np.diag(rng.uniform(0.5, 2, 4) * rng.choice([-1, 1], 4))
    np.testing.assert_allclose(mean_principal_angles(T @ Q, E), mean_principal_angles(Q, E), atol=1e-8)


def test_subspace_distance_equals_definition():
    rng = np.random.default_rng(4)
    W, U = rng.normal(size=(3, 8)), orth(rng.normal(size=(8, 3))).T
    left = np.linalg.svd(W.T, full_matrices=False)[0]
    expected = 1 - np.trace(U.T @ U @ left @ left.T) / 3
    assert subspace_distance(W, U) == pytest.approx(expected, abs=1e-12)


def test_subspace_distance_of_a_tiny_tilt_is_its_squared_sine():
    W, U = rotated_plane(1e-10)
    assert subspace_distance(W, U) == pytest.approx(1e-20 / 2, rel=1e-3)


def test_subspace_distance_of_collapsed_axes():
    U = np.eye(5)[:2]
    assert subspace_distance(np.array([[1.0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]), U) == pytest.approx(0.5)
    assert subspace_distance(U, U[[0, 0]]) == pytest.approx(0.5)
    assert subspace_distance(np.eye(5), U) == pytest.approx(0)


def test_axis_distance_equals_definition():
    rng = np.random.default_rng(5)
    W, U = rng.normal(size=(4, 6)), rng.normal(size=(3, 6))
    best = [max((u @ w) ** 2 / (u @ u) / (w @ w) for w in W) for u in U]
    assert axis_distance(W, U) == pytest.approx(1 - np.mean(best), abs=1e-12)


def test_axis_distance_sees_rotations_and_not_order():
    U = np.eye(4)[:2]
    assert axis_distance(-7 * U[::-1], U) == pytest.approx(0, abs=1e-15)
    turned = np.array([[1.0, 1, 0, 0], [1, -1, 0, 0]])
    assert subspace_distance(turned, U) == pytest.approx(0, abs=1e-15)
    assert axis_distance(turned, U) == pytest.approx(0.5)
    assert axis_distance(np.zeros((2, 4)), U) == 1.0


def test_extreme_scales_change_nothing():
    rng = np.random.default_rng(6)
    W, U = rng.normal(size=(3, 6)), rng.normal(size=(3, 6))
    scaled = W * np.array([[1e-200], [1.0], [1e200]])
    assert axis_distance(scaled, U) == pytest.approx(axis_distance(W, U), abs=1e-12)
    np.testing.assert_allclose(mean_principal_angles(scaled, U), mean_principal_angles(W, U), atol=1e-9)


@pytest.mark.parametrize("metric", [principal_angles, mean_principal_angles, subspace_distance, axis_distance])
def test_widths_must_agree(metric):
    with pytest.raises(InvalidInputError, match=r"with 3 columns. Got 4"):
        metric(np.eye(4), np.eye(3))
