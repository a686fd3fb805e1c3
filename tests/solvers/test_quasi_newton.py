"""Quasi-Newton steps over rotations: the gradient through QR, the completion, and what it cannot solve."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import ErrorBound, PrefixEncoder, QuasiNewton
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.solvers.quasi_newton import prefix_qr, through_qr


def test_the_gradient_through_qr_is_that_of_differences():
    rng = np.random.default_rng(0)
    W, G = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    Q, R = prefix_qr(W)
    np.testing.assert_allclose(Q @ R, W, atol=1e-12)
    assert (np.diag(R) > 0).all()
    found = through_qr(Q, R, G)
    for place in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[place] = 1e-6
        slope = np.sum(G * (prefix_qr(W + step)[0] - prefix_qr(W - step)[0])) / 2e-6
        assert found[place] == pytest.approx(slope, abs=1e-7)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(1)
    y = np.arange(900) % 9
    return rng.standard_normal((900, 12)) + 2 * rng.standard_normal((9, 12))[y], y


def test_coordinates_after_the_rotated_ones_stay_in_the_span_of_the_discriminants(classes):
    X, y = classes
    short = PrefixEncoder(objective=ErrorBound(0.2), solver=QuasiNewton(most=3)).fit(X, y)
    assert short.n_components_ == 8
    every = PrefixEncoder(objective=ErrorBound(0.2)).fit(X, y)
    # Both have eight axes of one span: the rows of one are combinations of the rows of the other.
    coefficients, residual, *_ = np.linalg.lstsq(every.components_.T, short.components_.T, rcond=None)
    assert residual.max(initial=0.0) < 1e-16
    assert np.abs(coefficients).max() > 0.1


def test_two_runs_give_the_same_bytes_and_settings_are_recorded(classes):
    X, y = classes
    one, two = (PrefixEncoder(objective="error_bound", solver=QuasiNewton(max_iter=7)).fit(X, y) for _ in range(2))
    assert one.components_.tobytes() == two.components_.tobytes()
    record = one.encoder_.record
    assert (record.ended, record.steps) == ("max_iter", 7)
    assert record.solver_settings == {"max_iter": 7, "tolerance": 1e-8, "most": 128}
    assert PrefixEncoder(objective="error_bound").fit(X, y).encoder_.record.ended == "tolerance"


def test_rounding_in_the_data_moves_the_axes_little(classes):
    X, y = classes
    rng = np.random.default_rng(2)
    tight = QuasiNewton(max_iter=5000, tolerance=1e-13)
    plain = PrefixEncoder(objective="error_bound", solver=tight).fit(X, y)
    other = PrefixEncoder(objective="error_bound", solver=tight)
    other.fit(X * (1 + 1e-12 * rng.standard_normal(X.shape)), y)
    np.testing.assert_allclose(other.components_, plain.components_, atol=1e-3)


def test_wrong_settings_and_combinations_are_errors(classes):
    X, y = classes
    for wrong in (QuasiNewton(max_iter=0), QuasiNewton(tolerance=0.0), QuasiNewton(most=1.5)):
        with pytest.raises(InvalidInputError, match="QuasiNewton must be"):
            PrefixEncoder(objective="error_bound", solver=wrong).fit(X, y)
    with pytest.raises(IllegalCombinationError, match="error_bound"):
        PrefixEncoder(objective="fisher", solver="quasi_newton").fit(X, y)
    with pytest.raises(IllegalCombinationError, match="full_prefix"):
        PrefixEncoder(objective="error_bound", solver="quasi_newton", ordering="nested_dropout").fit(X, y)
