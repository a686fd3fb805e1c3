"""Canonical correlations against the generalized eigenproblem."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from firstk.upgrade.methods import CCA, Procrustes
from upgrade.pairs import centred, cosines, moments_of, pairs


def shrunk(S, a):
    return (1 - a) * S + a * np.trace(S) / len(S) * np.eye(len(S))


def slow(old, new, shrinkage):
    """Solve [[0, X], [X^T, 0]] v = rho [[C_a, 0], [0, C_b]] v."""
    A, B = centred(old, new)
    n, (p, q) = len(A), (A.shape[1], B.shape[1])
    Ca, Cb, X = shrunk(A.T @ A / n, shrinkage), shrunk(B.T @ B / n, shrinkage), (1 - shrinkage) * A.T @ B / n
    M = np.block([[np.zeros((p, p)), X], [X.T, np.zeros((q, q))]])
    N = np.block([[Ca, np.zeros((p, q))], [np.zeros((q, p)), Cb]])
    values, vectors = eigh(M, N)
    d = min(p, q)
    return values[::-1][:d], np.sqrt(2) * vectors[:p, ::-1][:, :d], np.sqrt(2) * vectors[p:, ::-1][:, :d]


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
def test_correlations_and_directions_are_those_of_the_eigenproblem(shrinkage, power, p, q):
    old, new = pairs(p=p, q=q)
    rho, left, right = slow(old, new, shrinkage)
    solution = CCA(shrinkage, power, center=True).solve(moments_of(old, new))
    np.testing.assert_allclose(solution.spectrum, rho, atol=1e-9)
    assert (np.diff(solution.spectrum) <= 0).all()
    for weight, expected in ((solution.encode_old.weight, left), (solution.encode_new.weight, right)):
        np.testing.assert_allclose(np.abs(weight), np.abs(expected * rho**power).T, atol=1e-6)
    # The two sides of a coordinate point the same way.
    A, B = centred(solution.encode_old(old, "test"), solution.encode_new(new, "test"))
    assert (np.einsum("ij,ij->j", A, B) > 0).all()
    largest = np.take_along_axis(
        solution.encode_new.weight, np.abs(solution.encode_new.weight).argmax(axis=1)[:, None], axis=1
    )
    assert (largest > 0).all()


def test_translations_predict_one_side_from_the_code_of_the_other():
    old, new = pairs()
    A, B = centred(old, new)
    solution = CCA(0.0, 0.5, center=True).solve(moments_of(old, new))
    # Without shrinkage and with all coordinates that is least squares.
    expected = np.linalg.lstsq(A, B, rcond=None)[0]
    np.testing.assert_allclose(solution.old_to_new.weight.T, expected, atol=1e-8)
    back = CCA(0.0, 0.5, center=True).solve(moments_of(new, old))
    np.testing.assert_allclose(solution.new_to_old.weight, back.old_to_new.weight, atol=1e-8)


def test_full_shrinkage_and_no_power_is_procrustes_of_centred_vectors():
    old, new = pairs(p=5, q=5)
    A, B = centred(old, new)
    moments = moments_of(old, new)
    solution = CCA(1.0, 0.0, center=True).solve(moments)
    R = Procrustes().translation(moments)
    np.testing.assert_allclose(
        cosines(solution.encode_new(new, "test"), solution.encode_old(old, "test")), cosines(B, A @ R), atol=1e-9
    )


def test_fewer_pairs_than_columns_leave_as_many_coordinates_as_there_are():
    old, new = pairs(n=4, p=9, q=8)
    solution = CCA(0.3, 0.5, center=True).solve(moments_of(old, new))
    assert len(solution.spectrum) == 3
    assert np.isfinite(solution.encode_old.weight).all()


def test_by_default_second_moments_about_zero_take_the_place_of_covariances():
    old, new = pairs()
    mirrored = np.vstack([old, -old]), np.vstack([new, -new])  # of mean zero, with these second moments
    ours, theirs = CCA(0.2, 0.5).solve(moments_of(old, new)), CCA(0.2, 0.5, center=True).solve(moments_of(*mirrored))
    np.testing.assert_allclose(ours.spectrum, theirs.spectrum, atol=1e-10)
    np.testing.assert_allclose(ours.encode_old(old, "test"), theirs.encode_old(old, "test"), atol=1e-8)
    np.testing.assert_allclose(ours.encode_new(new, "test"), theirs.encode_new(new, "test"), atol=1e-8)
    np.testing.assert_allclose(ours.old_to_new(old, "test"), theirs.old_to_new(old, "test"), atol=1e-8)
