"""The residual MLP: it starts from Procrustes, bends where the data do, and runs on numpy as it was trained."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.contracts import AlignmentRows
from firstk.upgrade.methods import ResidualMLP, Ridge
from firstk.upgrade.methods.procrustes import scaled_rotation
from upgrade.methods.test_low_rank_affine import error
from upgrade.pairs import cosines, moments_of, pairs

pytest.importorskip("torch")


def bent(n=1200, seed=0):
    """Return pairs that no linear map explains."""
    rng = np.random.default_rng(seed)
    old = rng.normal(size=(n, 4))
    return old, np.column_stack([np.abs(old[:, 0]), old[:, 1], np.abs(old[:, 2]), old[:, 3], old[:, 0] * 0.5])


def test_before_training_it_is_procrustes():
    old, new = pairs()
    moments = moments_of(old, new)
    still = ResidualMLP(epochs=1, learning_rate=1e-12).trained(moments, AlignmentRows(old, new))
    expected = (old - old.mean(axis=0)) @ scaled_rotation(moments) + new.mean(axis=0)
    np.testing.assert_allclose(still(old, "test"), expected, atol=1e-5)


def test_it_explains_what_a_linear_map_cannot():
    old, new = bent()
    train, test = slice(1000), slice(1000, None)
    moments = moments_of(old[train], new[train])
    trained = ResidualMLP().solve(moments, AlignmentRows(old[train], new[train]))
    linear = Ridge(0.0).solve(moments)
    assert error(trained.old_to_new, old[test], new[test]) < 0.5 * error(linear.old_to_new, old[test], new[test])
    # The whole shared code has the cosines of translated and new vectors.
    translated = trained.old_to_new(old[test], "test")
    codes = trained.encode_old(old[test], "test"), trained.encode_new(new[test], "test")
    np.testing.assert_allclose(cosines(*codes), cosines(translated, new[test]), atol=1e-10)


def test_the_numpy_map_is_its_formula():
    old, new = bent(300)
    made = ResidualMLP(hidden=8, epochs=3).trained(moments_of(old, new), AlignmentRows(old, new))
    (W1, W2), (b1, b2) = made.network.weights, made.network.biases
    x = old[7] - made.mean
    expected = made.weight @ x + made.offset + W2 @ np.maximum(W1 @ x + b1, 0) + b2
    np.testing.assert_allclose(made(old[7:8], "test")[0], expected, atol=1e-12)
