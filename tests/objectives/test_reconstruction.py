"""Reconstruction: nothing rebuilds the rows better from any prefix."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder
from slow_reference import correlated, perturbations, residual


@pytest.mark.parametrize("k", [1, 2, 4, 6])
@pytest.mark.parametrize("n", [80, 5])
def test_no_perturbation_rebuilds_better(k, n):
    rng = np.random.default_rng(0)
    X = correlated(rng, n, 8) + 3.0
    enc = PrefixEncoder().fit(X)
    k = min(k, enc.n_components_)
    Xc = X - X.mean(axis=0)
    best = residual(Xc, Xc @ enc.components_[:k].T)
    others = residual(Xc, Xc @ perturbations(enc.components_[:k], rng).swapaxes(1, 2))
    assert others.min() >= best - 1e-12
    assert others.max() > best + 1e-3 or k == enc.n_components_ < 8
    # What the encoder's own decoder leaves is that same least error, and the tail of the spectrum.
    own = np.sum((X - enc.inverse_transform(enc.transform(X, k))) ** 2) / n
    assert own == pytest.approx(best, abs=1e-12)
    assert own == pytest.approx(enc.spectrum_[k:].sum(), abs=1e-12)


def test_weights_count_rows():
    rng = np.random.default_rng(1)
    X, times = correlated(rng, 50, 4), rng.integers(0, 4, 50)
    weighted = PrefixEncoder().fit(X, sample_weight=times)
    repeated = PrefixEncoder().fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-11)
    np.testing.assert_allclose(weighted.spectrum_, repeated.spectrum_, rtol=1e-12)
