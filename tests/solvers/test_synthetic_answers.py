"""Closed forms on data whose answer is known: the sample's own optimum exactly, the population's where n resolves it.

Which population axes a sample of n rows resolves follows from perturbation theory. The sample scatter differs from the
population's by noise whose entry between axes i and j has standard deviation sqrt(l_i l_j / n) (Gaussian rows), so
axis i turns towards j by t_ij = sqrt(l_i l_j / n) / |l_i - l_j|. An axis is *clear* when the sum of t_ij^2 over all j
is below TURN^2: its cosine is then 1 - TURN^2 / 2 in expectation, and the test allows four times that loss.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from firstk import PrefixEncoder
from firstk.metrics import paired_cosines
from firstk_papers.datasets import evenly_spaced, two_blocks
from slow_reference import class_scatters, scatter

TURN = 0.1
LEAST = 1 - 4 * TURN**2 / 2


@pytest.fixture(scope="module")
def blocks():
    return two_blocks(0)


def turns(spectrum, n):
    """Expected squared turn of each axis of a covariance with this spectrum, from n Gaussian rows."""
    gaps = spectrum[:, None] - spectrum
    np.fill_diagonal(gaps, np.inf)
    return np.sum(np.outer(spectrum, spectrum) / n / gaps**2, axis=1)


def test_reconstruction_is_the_sample_optimum_on_every_axis(blocks):
    values, vectors = np.linalg.eigh(scatter(blocks.X))
    enc = PrefixEncoder("rank").fit(blocks.X)
    assert enc.n_components_ == 69
    assert paired_cosines(enc.components_, vectors.T[::-1]).min() >= 1 - 1e-8
    np.testing.assert_allclose(enc.spectrum_, values[::-1], rtol=1e-10)


def test_fisher_is_the_sample_optimum_on_every_axis(blocks):
    Sw, Sb = class_scatters(blocks.X, blocks.y)
    values, vectors = scipy.linalg.eigh(Sb, Sw)
    enc = PrefixEncoder(objective="fisher").fit(blocks.X, blocks.y)
    assert enc.n_components_ == 19
    assert paired_cosines(enc.components_, vectors.T[::-1][:19]).min() >= 1 - 1e-8
    assert paired_cosines(enc.components_, vectors.T[::-1][:19], metric=Sw).min() >= 1 - 1e-8
    np.testing.assert_allclose(enc.spectrum_, values[::-1][:19], rtol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_reconstruction_finds_the_population_where_the_gap_is_clear(seed):
    blocks = two_blocks(seed)
    enc = PrefixEncoder("rank").fit(blocks.X)
    clear = turns(blocks.pca_spectrum, len(blocks.X)) < TURN**2
    assert clear[:20].all()
    assert 25 <= clear.sum() < 69  # the rule selects a fair number of the 69 axes, and not all of them
    cosine = paired_cosines(enc.components_, blocks.pca_axes)
    assert cosine[clear].min() >= LEAST
    assert cosine[~clear].min() < LEAST  # and it is needed: some of the others are lost


@pytest.mark.parametrize("seed", [0, 1])
def test_fisher_finds_the_population_where_the_gap_is_clear(seed):
    """In the Sw metric, in which sampling noise is the same on all axes.

    There the class means carry noise of variance (C - 1) / n spread evenly, an axis of ratio g turns towards one of
    ratio h by sqrt((g + h + g h + 1 / n) / n) / |g - h|, and there are 50 noise columns of ratio zero besides.
    """
    blocks = two_blocks(seed)
    n = len(blocks.X)
    Sw, _ = class_scatters(blocks.X, blocks.y)
    enc = PrefixEncoder(objective="fisher").fit(blocks.X, blocks.y)
    ratio = np.append(blocks.lda_spectrum, np.zeros(50))
    gaps = ratio[:, None] - ratio
    gaps[gaps == 0] = np.inf
    noise = (ratio[:, None] + ratio + np.outer(ratio, ratio) + 1 / n) / n
    clear = (np.sum(noise / gaps**2, axis=1) < TURN**2)[:19]
    assert clear.sum() >= 3
    assert not clear.all()
    cosine = paired_cosines(enc.components_, blocks.lda_axes, metric=Sw)
    assert cosine[clear].min() >= LEAST
    assert cosine[~clear].min() < LEAST


@pytest.mark.parametrize(("n", "p", "high"), [(500, 60, 100.0), (300, 100, 1000.0)])
def test_evenly_spaced_is_recovered_exactly(n, p, high):
    even = evenly_spaced(0, n=n, p=p, high=high)
    enc = PrefixEncoder("rank").fit(even.X)
    assert enc.n_components_ == p
    assert paired_cosines(enc.components_, even.pca_axes).min() >= 1 - 1e-8
    np.testing.assert_allclose(enc.components_, even.pca_axes, atol=1e-5)  # signs too: the rule is the same
    np.testing.assert_allclose(enc.spectrum_, even.pca_spectrum, rtol=1e-8)


def test_the_leading_axes_of_pca_and_lda_share_nothing_here(blocks):
    pca = PrefixEncoder(10).fit(blocks.X)
    lda = PrefixEncoder(5, objective="fisher").fit(blocks.X, blocks.y)
    unit = lda.components_ / np.linalg.norm(lda.components_, axis=1, keepdims=True)
    assert np.abs(pca.components_ @ unit.T).max() < 0.05
