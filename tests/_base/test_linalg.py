"""The rules for rank, order, signs and shrinkage, each against what it says."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk._base.linalg import (
    leading_eigh,
    ordered_eigh,
    rank_tolerance,
    row_space,
    shrunk,
    signed,
    single_eigh,
    symmetrised,
    whitener,
)
from slow_reference import EPS, correlated


def psd(rank, p, seed=0):
    F = np.random.default_rng(seed).standard_normal((p, rank))
    return F @ F.T


def test_eigenvalues_descend_and_rebuild_the_matrix():
    S = psd(6, 6)
    values, vectors = ordered_eigh(S)
    assert (np.diff(values) < 0).all()
    np.testing.assert_allclose(vectors * values @ vectors.T, S, atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-14)


@pytest.mark.parametrize("rank", [1, 3, 7])
@pytest.mark.parametrize("scale", [np.ones(7), 10.0 ** np.arange(-6, 8, 2)])
def test_whitener_spans_the_range_in_any_units(rank, scale):
    N = scale[:, None] * psd(rank, 7) * scale
    R = whitener(N, EPS)
    assert R.shape == (7, rank)
    np.testing.assert_allclose(R.T @ N @ R, np.eye(rank), atol=1e-9)


def test_whitener_leaves_columns_without_variance_out():
    N = psd(3, 3)
    wide = np.zeros((5, 5))
    wide[np.ix_([0, 2, 4], [0, 2, 4])] = N
    R = whitener(wide, EPS)
    assert R.shape == (5, 3)
    assert not R[[1, 3]].any()


def test_whitener_of_nothing_is_empty():
    assert whitener(np.zeros((4, 4)), EPS).shape == (4, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rank_rule_separates_rounding_from_signal(dtype):
    """Products of rank-deficient rows: rounding falls below the rule; a hundred times the rule stands above it."""
    eps = float(np.finfo(dtype).eps)
    rng = np.random.default_rng(1)
    for p in (20, 200):
        rows = (rng.standard_normal((1000, p // 2)) @ rng.standard_normal((p // 2, p))).astype(dtype)
        exact = rows.astype(np.float64)  # rounding the rows to `dtype` is itself noise of full rank
        basis = np.linalg.svd(exact, full_matrices=False)[2][: p // 2]
        rows = (exact @ basis.T @ basis).astype(dtype)
        values = np.linalg.eigvalsh((rows.T @ rows).astype(np.float64))[::-1]
        kept = values > rank_tolerance(p, eps) * values[0]
        assert kept.sum() == p // 2
    assert rank_tolerance(100, eps) == pytest.approx(20 * eps)


def test_shrinkage_is_the_formula_of_the_table():
    S = psd(4, 4)
    np.testing.assert_allclose(shrunk(S, 0.3, 4), 0.7 * S + 0.3 * np.trace(S) / 4 * np.eye(4), rtol=1e-14)
    np.testing.assert_allclose(shrunk(S, 1.0, 4), np.trace(S) / 4 * np.eye(4), rtol=1e-14)
    assert shrunk(S, None, 4) is S
    assert shrunk(S, 0.0, 4) is S


def test_shrinkage_in_a_basis_is_shrinkage_in_full_coordinates():
    basis = np.linalg.qr(np.random.default_rng(2).standard_normal((9, 4)))[0]
    S = psd(4, 4)
    inside = shrunk(S, 0.4, 9)
    full = shrunk(basis @ S @ basis.T, 0.4, 9)
    np.testing.assert_allclose(basis.T @ full @ basis, inside, atol=1e-13)


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("rank", [3, 20])
@pytest.mark.parametrize("seed", range(5))
def test_row_space_is_orthonormal_and_holds_every_row(offset, rank, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, rank)) @ correlated(rng, rank, 60, decay=0.97) + offset
    basis = row_space(X)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-13)
    np.testing.assert_allclose(X @ basis @ basis.T, X, rtol=0, atol=1e-12 * max(1.0, offset))
    # One direction for the mean where it adds one, and none for the rounding that is left where rows add up to zero.
    assert basis.shape[1] == min(rank, 19) + (1 if offset or rank == 20 else 0)


def test_signs_follow_the_largest_entry():
    rows = np.array([[0.1, -3.0, 2.0], [3.0, -1.0, 2.0], [-1.0, 1.0, 0.5]])
    np.testing.assert_array_equal(signed(rows), [-1.0, 1.0, -1.0])


def test_signs_of_ties_do_not_follow_rounding():
    tie = np.array([1.0, -1.0, 0.0])
    for wobble in (1e-12, -1e-12):
        np.testing.assert_array_equal(signed(tie[None] + [[wobble, 0, 0]]), [1.0])


def test_symmetric_part():
    S = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(symmetrised(S), [[0, 2, 4], [2, 4, 6], [4, 6, 8]])


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e10, 1e12])
def test_fewer_rows_than_columns_with_an_offset(offset):
    X = np.random.default_rng(0).normal(size=(30, 200)) + offset
    centred = X - X.mean(axis=0)
    centred -= centred.mean(axis=0)
    _, s, V = np.linalg.svd(centred, full_matrices=False)
    enc = PrefixEncoder().fit(X)
    assert enc.n_components_ == 29
    np.testing.assert_allclose(enc.spectrum_, s[:29] ** 2 / 30, rtol=1e-13)
    np.testing.assert_allclose(np.abs((enc.components_ * V[:29]).sum(axis=1)), 1, rtol=1e-13)


@pytest.mark.parametrize("count", [1, 20, 64, 65])
def test_leading_eigenvectors_are_those_of_the_whole_decomposition(count):
    rng = np.random.default_rng(count)
    X = rng.normal(size=(900, 256)) * np.geomspace(1, 0.01, 256)
    S = X.T @ X / 900
    values, vectors = ordered_eigh(S)
    few, axes = leading_eigh(S, count)
    np.testing.assert_allclose(few, values[:count], rtol=1e-9)
    # Projectors, as axes are known up to their sign.
    np.testing.assert_allclose(axes @ axes.T, vectors[:, :count] @ vectors[:, :count].T, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30])
def test_single_precision_finds_the_same_axes(scale):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    values = np.linspace(1, 0.02, 40)
    found, vectors = single_eigh(scale * (Q * values) @ Q.T)
    np.testing.assert_allclose(found, scale * values, rtol=1e-5)
    np.testing.assert_allclose(np.abs(np.sum(vectors * Q, axis=0)), 1, atol=1e-4)
