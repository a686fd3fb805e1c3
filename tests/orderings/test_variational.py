"""Ordering "variational", the linear VAE: axes up to order, and collapse below the noise.

Bao et al. 2020 appendix F.
"""

import numpy as np
import pytest

from firstk import Gradient, PrefixEncoder, Variational
from firstk.metrics import paired_cosines

pytest.importorskip("torch")


def test_axes_are_principal_once_sorted_and_have_the_stated_size(known):
    enc = PrefixEncoder(4, ordering=Variational(0.5), init="random", random_state=0).fit(known.X)
    assert paired_cosines(enc.decoder_.T, known.axes).min() > 0.999
    # Probabilistic PCA: |a_k|^2 = sigma_k^2 - noise.
    np.testing.assert_allclose(np.square(enc.decoder_).sum(axis=0), known.spectrum - 0.5, rtol=1e-2)


def test_axes_below_the_noise_collapse(known):
    enc = PrefixEncoder(4, ordering=Variational(2.5), init="random", random_state=0).fit(known.X)
    size = np.square(enc.decoder_).sum(axis=0)
    np.testing.assert_allclose(size[:3], known.spectrum[:3] - 2.5, rtol=2e-2)
    assert size[3] < 1e-4


def test_drawing_the_code_estimates_the_same_loss(known):
    solver = Gradient(batch_size=256, epochs=60)
    enc = PrefixEncoder(4, ordering=Variational(0.5, sampled=True), solver=solver, random_state=0).fit(known.X)
    assert paired_cosines(enc.decoder_.T, known.axes).min() > 0.97


def test_drawing_needs_rows_whatever_the_batches(known):
    drawn, expected = (
        PrefixEncoder(4, ordering=Variational(0.5, sampled=sampled), solver=Gradient(epochs=60), random_state=0).fit(
            known.X
        )
        for sampled in (True, False)
    )
    assert np.abs(drawn.components_ - expected.components_).max() > 1e-6
    assert paired_cosines(drawn.decoder_.T, known.axes).min() > 0.97
