"""The supervised model over a denoising code, against regressions on clean and on noisy rows."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from firstk_papers.balestriero2024 import gaussian_noise
from firstk_papers.balestriero2024.gaussian_noise import denoised, measure, supervised
from fixtures.small_task import CELL, one_hot, small_task


@pytest.fixture
def rows(monkeypatch):
    found = small_task()
    monkeypatch.setattr(gaussian_noise, "task", lambda cell: found)
    return found


def test_clean_readout_is_a_regression_on_the_code(rows):
    V = denoised(rows, 2.0, 5)
    X, Y = rows.X - rows.X.mean(axis=0), one_hot(rows.y)
    Y = Y - Y.mean(axis=0)
    found = supervised(V, X.T @ X / len(X), X.T @ Y / len(X))
    np.testing.assert_allclose(X @ found.T, LinearRegression().fit(X @ V.T, Y).predict(X @ V.T), atol=1e-9)


def test_noisy_readout_is_a_regression_on_noisy_codes(rows):
    """In the limit of many noisy copies of each row."""
    V, sigma, rng = denoised(rows, 2.0, 3), 2.0, np.random.default_rng(0)
    X, Y = rows.X - rows.X.mean(axis=0), one_hot(rows.y)
    Y = Y - Y.mean(axis=0)
    G = X.T @ X / len(X) + sigma**2 * np.eye(X.shape[1])
    found = supervised(V, G, X.T @ Y / len(X))
    many = np.tile(X, (2000, 1))
    codes = (many + sigma * rng.standard_normal(many.shape)) @ V.T
    fitted = np.linalg.lstsq(codes, np.tile(Y, (2000, 1)), rcond=None)[0].T @ V
    np.testing.assert_allclose(found, fitted, atol=0.02 * np.abs(found).max())


def test_gaussian_noise_moves_the_noisy_readout_only(rows):
    found = measure({**CELL, "sigmas": [0.1, 3.0], "k": [2, 6]})
    assert np.max(found["clean"]) < 1e-9
    assert np.min(found["noisy"][1]) > 0.1
