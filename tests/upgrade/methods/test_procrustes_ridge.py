"""Ridge towards the scaled rotation: the stacked problem, and both ends of the path."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.upgrade.methods import Procrustes, ProcrustesRidge, Ridge
from upgrade.methods.test_ridge import stacked
from upgrade.pairs import centred, cosines, moments_of, pairs, to_scale


@pytest.mark.parametrize("shrinkage", [0.05, 0.5, 0.95])
@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4), (5, 5)])
def test_it_is_the_stacked_least_squares_towards_the_scaled_rotation(shrinkage, p, q):
    old, new = pairs(p=p, q=q)
    A, B = centred(old, new)
    U, S, Vt = np.linalg.svd(A.T @ B, full_matrices=False)
    R = U @ Vt
    scale = S.sum() / np.square(A @ R).sum()
    # The scale of least squares: no other is better.
    for other in (0.99, 1.01):
        assert np.square(scale * A @ R - B).sum() < np.square(other * scale * A @ R - B).sum()
    W = ProcrustesRidge(shrinkage).translation(moments_of(old, new))
    np.testing.assert_allclose(W, to_scale(A, B, stacked(A, B, shrinkage, scale * R)), atol=1e-9)


def test_the_ends_are_least_squares_and_procrustes():
    moments = moments_of(*pairs())
    np.testing.assert_allclose(ProcrustesRidge(0.0).translation(moments), Ridge(0.0).translation(moments), atol=1e-10)
    ours, rotation = ProcrustesRidge(1.0).translation(moments), Procrustes().translation(moments)
    assert cosines(ours.reshape(1, -1), rotation.reshape(1, -1))[0, 0] == pytest.approx(1.0, abs=1e-12)
