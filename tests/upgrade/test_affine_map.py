"""Affine maps: their formula, their composition and their cuts."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.exceptions import InvalidInputError
from firstk.upgrade.contract import AffineMap

rng = np.random.default_rng(0)
X = rng.normal(size=(7, 4))


@pytest.fixture
def made():
    return AffineMap(np.arange(4.0), rng.normal(size=(5, 4)), np.arange(5.0))


def test_formula_composition_and_cut(made):
    expected = np.array([made.weight @ (x - made.mean) + made.offset for x in X])
    np.testing.assert_allclose(made(X, "test"), expected, atol=1e-12)
    M = rng.normal(size=(2, 5))
    np.testing.assert_allclose(made.then(M)(X, "test"), expected @ M.T, atol=1e-12)
    np.testing.assert_allclose(made.cut(2)(X, "test"), expected[:, :2], atol=1e-12)
    assert (made.p, made.d, made.cut(2).d) == (4, 5, 2)
    assert made(X.astype(np.float32), "test").dtype == np.float32


def test_rows_of_another_width_are_an_error(made):
    with pytest.raises(InvalidInputError, match=r"somebody takes 'Q' with 4 columns\. Got 3"):
        made(X[:, :3], "somebody", "Q")
