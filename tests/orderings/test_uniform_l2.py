"""Uniform l2 does not align: the optimal subspace, shrunk, in an arbitrary rotation."""

import numpy as np
import pytest

from firstk import PrefixEncoder, UniformL2
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.metrics import axis_distance, subspace_distance

pytest.importorskip("torch")


def test_uniform_l2_finds_the_subspace_and_does_not_align(known):
    enc = PrefixEncoder(4, ordering=UniformL2(0.5), init="random", random_state=0).fit(known.X)
    A = enc.decoder_.T
    assert subspace_distance(A, known.axes) < 1e-6
    assert axis_distance(A, known.axes) > 0.1
    np.testing.assert_allclose(enc.components_, A, atol=1e-4)  # Bao et al. 2020 theorem 1: transposes of one another
    shrunk = np.linalg.eigvalsh(A @ A.T)[::-1]
    np.testing.assert_allclose(shrunk, 1 - 0.5 / known.spectrum, atol=1e-4)


def test_it_means_nothing_where_scale_means_nothing(known):
    with pytest.raises(IllegalCombinationError, match="does not depend on the scale"):
        PrefixEncoder(2, objective="fisher", ordering="uniform_l2").fit(known.X, np.arange(2000) % 4)
    with pytest.raises(InvalidInputError, match="a positive number"):
        PrefixEncoder(2, ordering=UniformL2(0.0)).fit(known.X)
