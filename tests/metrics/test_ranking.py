"""Spearman at every prefix length against scipy and loops over k."""

import warnings

import numpy as np
import pytest
from scipy.stats import spearmanr

from firstk.exceptions import InvalidInputError
from firstk.metrics import pair_spearman


def cosines(A, B):
    norms = np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)
    return np.divide((A * B).sum(axis=1), norms, out=np.zeros(len(A)), where=norms > 0)


def test_spearman_equals_scipy_with_ties():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(50, 6)), rng.normal(size=(50, 6))
    A[10:15], B[10:15] = A[10], B[10]
    A[20] = 0
    scores = rng.integers(0, 6, 50)
    expected = [spearmanr(cosines(A[:, :k], B[:, :k]), scores)[0] for k in range(1, 7)]
    np.testing.assert_allclose(pair_spearman(A, B, scores), expected, atol=1e-10)


def test_spearman_in_float32_and_at_extreme_scales():
    rng = np.random.default_rng(1)
    A, B, scores = rng.normal(size=(40, 5)), rng.normal(size=(40, 5)), rng.normal(size=40)
    expected = pair_spearman(A, B, scores)
    np.testing.assert_allclose(pair_spearman(A * 1e200, B * 1e-200, scores), expected, atol=1e-12)
    small = pair_spearman(A.astype(np.float32), B.astype(np.float32), scores)
    np.testing.assert_allclose(small, expected, atol=1e-3)


def test_spearman_of_equal_cosines_is_zero_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = pair_spearman([[1.0, 0], [2, 0], [3, 0]], np.zeros((3, 2)), [1, 2, 3])
    np.testing.assert_array_equal(curve, [0, 0])


def test_spearman_refuses():
    Z = np.eye(3)
    with pytest.raises(InvalidInputError, match="All 3 are 1; for positives"):
        pair_spearman(Z, Z, [1, 1, 1])
    with pytest.raises(InvalidInputError, match=r"shape \(3,\). Got \(2,\)"):
        pair_spearman(Z, Z, [1, 2])
    with pytest.raises(InvalidInputError, match="NaN or infinity in 1 of 3"):
        pair_spearman(Z, Z, [1, 2, np.nan])
