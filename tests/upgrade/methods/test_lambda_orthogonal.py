"""Lambda-orthogonality: its ends, its constraint, its gradient, and a solver that knows nothing of it."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.upgrade.lambda_orthogonal import LambdaOrthogonal, _beyond
from scipy.optimize import check_grad, minimize

from firstk.upgrade.methods import Ridge
from firstk.upgrade.methods.procrustes import scaled_rotation
from upgrade.pairs import centred, moments_of, pairs


def gap(W, scale):
    V = W / scale
    gram = V.T @ V if len(V) >= V.shape[1] else V @ V.T
    return np.linalg.norm(gram - np.eye(len(gram))) / np.sqrt(len(gram))


def scale_of(moments):
    start = scaled_rotation(moments)
    return np.linalg.norm(start) / np.sqrt(min(start.shape))


def test_the_ends_are_the_scaled_rotation_and_least_squares():
    moments = moments_of(*pairs(p=4, q=3))
    np.testing.assert_allclose(LambdaOrthogonal(0.0).translation(moments), scaled_rotation(moments), atol=1e-12)
    np.testing.assert_allclose(
        LambdaOrthogonal(1e6, max_iter=2000).translation(moments), Ridge(0.0).translation(moments), atol=1e-3
    )


@pytest.mark.parametrize(("p", "q"), [(3, 2), (2, 3), (3, 3)])
def test_it_is_the_constrained_minimum(p, q):
    old, new = pairs(p=p, q=q)
    A, B = centred(old, new)
    moments, threshold = moments_of(old, new), 0.2
    scale = scale_of(moments)
    W = LambdaOrthogonal(threshold, max_iter=500).translation(moments)
    assert gap(W, scale) <= threshold + 0.02

    def error(flat):
        return np.square(A @ flat.reshape(p, q) - B).sum() / np.square(B).sum()

    slow = minimize(
        error,
        scaled_rotation(moments).ravel(),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda flat: threshold - gap(flat.reshape(p, q), scale)},
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert slow.success
    assert error(W.ravel()) == pytest.approx(slow.fun, abs=0.01)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
def test_the_gradient_of_the_constraint(shape):
    V = np.random.default_rng(0).normal(size=shape)
    assert (
        check_grad(
            lambda v: _beyond(v.reshape(shape), 0.1)[0], lambda v: _beyond(v.reshape(shape), 0.1)[1].ravel(), V.ravel()
        )
        < 1e-5
    )
