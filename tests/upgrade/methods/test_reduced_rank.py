"""Reduced-rank regression against alternating least squares."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.upgrade.methods import ReducedRank, Ridge
from upgrade.pairs import centred, moments_of, pairs, to_scale


def alternating(A, B, rank, shrinkage, steps=500):
    """Minimize over W = M N^T, one factor at a time."""
    n, p = A.shape
    c = np.trace(A.T @ A / n) / p
    G = (1 - shrinkage) * A.T @ A / n + shrinkage * c * np.eye(p)
    X = (1 - shrinkage) * A.T @ B / n
    N = np.random.default_rng(0).normal(size=(B.shape[1], rank))
    for _ in range(steps):
        N = np.linalg.qr(N)[0]
        M = np.linalg.solve(G, X @ N)
        N = X.T @ M @ np.linalg.inv(M.T @ G @ M)
    return M @ N.T


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
def test_it_is_what_alternating_least_squares_converges_to(rank, shrinkage, p, q):
    old, new = pairs(p=p, q=q)
    A, B = centred(old, new)
    W = ReducedRank(rank, shrinkage).translation(moments_of(old, new))
    assert np.linalg.matrix_rank(W) == rank
    slow = alternating(A, B, rank, shrinkage)
    np.testing.assert_allclose(W, to_scale(A, B, slow), atol=1e-6)


def test_full_rank_is_ridge():
    moments = moments_of(*pairs())
    np.testing.assert_allclose(ReducedRank(100, 0.1).translation(moments), Ridge(0.1).translation(moments), atol=1e-10)
