"""The synthetic sets: their stated answers against large samples and against exact decompositions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from firstk.exceptions import InvalidInputError
from firstk_papers.datasets import evenly_spaced, two_blocks


def scatters(X, y):
    means = np.stack([X[y == c].mean(axis=0) for c in np.unique(y)])
    within = X - means[y]
    centred = means - means.mean(axis=0)
    return within.T @ within / len(X), centred.T @ centred / len(means)


@pytest.fixture(scope="module")
def large():
    # Few columns and steep spectra: every axis is resolved by this many rows.
    return two_blocks(3, n_classes=5, per_class=40_000, p_noise=4, rho_noise=0.8, tau_sig=0.3, rho_sig=0.6)


def test_defaults_are_the_paper():
    blocks = two_blocks()
    assert blocks.X.shape == (10_000, 69)
    assert np.bincount(blocks.y).tolist() == [500] * 20
    np.testing.assert_allclose(blocks.pca_spectrum[:2], [25.0, 25.0 * 0.81])
    np.testing.assert_allclose(blocks.lda_spectrum, 0.7 ** (2 * np.arange(19)) / 20 / 0.01)
    # 29 noise columns, then the first signal axis: the claim of the notes.
    assert blocks.pca_axes.argmax(axis=1)[:30].tolist() == [*range(29), 50]


@pytest.mark.parametrize("seed", [0, 1])
def test_answers_are_sorted_orthonormal_and_complete(seed):
    blocks = two_blocks(seed)
    assert (np.diff(blocks.pca_spectrum) < 0).all()
    assert (np.diff(blocks.lda_spectrum) < 0).all()
    np.testing.assert_array_equal(blocks.pca_axes @ blocks.pca_axes.T, np.eye(69))
    assert blocks.lda_axes.shape == (19, 69)
    assert not blocks.lda_axes[:, :50].any()


def test_population_covariance_matches_a_large_sample(large):
    St = np.cov(large.X.T, bias=True)
    population = large.pca_axes.T * large.pca_spectrum @ large.pca_axes
    scale = np.sqrt(np.outer(np.diag(population), np.diag(population)))
    assert np.abs((St - population) / scale).max() < 0.02


def test_pca_of_a_large_sample_finds_the_axes_in_order(large):
    spectrum, vectors = np.linalg.eigh(np.cov(large.X.T, bias=True))
    cosines = np.abs((vectors[:, ::-1].T * large.pca_axes).sum(axis=1))
    assert cosines.min() > 0.99
    np.testing.assert_allclose(spectrum[::-1], large.pca_spectrum, rtol=0.02)


def test_lda_of_a_large_sample_finds_the_axes_in_order(large):
    Sw, Sb = scatters(large.X, large.y)
    ratios, vectors = scipy.linalg.eigh(Sb, Sw)
    ratios, vectors = ratios[::-1][:4], vectors[:, ::-1][:, :4].T
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs((vectors * large.lda_axes).sum(axis=1)).min() > 0.99
    np.testing.assert_allclose(ratios, large.lda_spectrum, rtol=0.05)


def test_between_scatter_is_exact_when_nothing_else_is_there():
    """Talukder et al. 2026: S_BC = diag(beta^2)/C in the signal block, and the grand mean is zero."""
    quiet = two_blocks(1, n_classes=6, per_class=2, p_noise=3, tau_sig=1e-9)
    signal = quiet.X[:, 3:]
    np.testing.assert_allclose(signal.mean(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(signal.T @ signal / len(signal), np.diag(0.49 ** np.arange(5)) / 6, atol=1e-8)


def test_noise_carries_no_class(large):
    _, Sb = scatters(large.X, large.y)
    assert np.diag(Sb)[:4].max() < 1e-3


@pytest.mark.parametrize("make", [two_blocks, lambda seed: evenly_spaced(seed, n=30, p=7)])
def test_same_seed_same_bytes(make):
    a, b, other = make(5), make(5), make(6)
    assert a.X.tobytes() == b.X.tobytes()
    assert a.pca_axes.tobytes() == b.pca_axes.tobytes()
    assert a.X.tobytes() != other.X.tobytes()
    assert make(np.random.default_rng(5)).X.tobytes() == a.X.tobytes()
    assert make(np.random.RandomState(5)).X.tobytes() == make(np.random.RandomState(5)).X.tobytes() != a.X.tobytes()


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    two_blocks(0, per_class=2)
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002


def test_evenly_spaced_of_the_appendix_is_exact():
    even = evenly_spaced()
    assert even.X.shape == (5000, 1000)
    assert np.abs(even.X.mean(axis=0)).max() < 1e-15
    St = even.X.T @ even.X / 5000
    # The axes are eigenvectors with the stated eigenvalues, to rounding.
    residual = even.pca_axes @ St - even.pca_spectrum[:, None] * even.pca_axes
    assert np.abs(residual).max() < 1e-13 * even.pca_spectrum[0] * 10
    assert np.abs(even.pca_axes @ even.pca_axes.T - np.eye(1000)).max() < 1e-12
    np.testing.assert_allclose(np.sqrt(even.pca_spectrum * 5000), np.linspace(100, 1, 1000), rtol=1e-12)


@pytest.mark.parametrize(("n", "p", "low", "high"), [(11, 10, 1.0, 10.0), (200, 30, 0.5, 1000.0), (5, 1, 1.0, 2.0)])
def test_singular_values_of_the_centred_data(n, p, low, high):
    even = evenly_spaced(2, n=n, p=p, low=low, high=high)
    centred = even.X - even.X.mean(axis=0)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(singular, np.linspace(high, low, p), rtol=1e-10)
    np.testing.assert_allclose(np.abs((axes * even.pca_axes).sum(axis=1)), 1, rtol=1e-8)
    assert (even.pca_axes.max(axis=1) >= -even.pca_axes.min(axis=1)).all()
    assert even.y is None
    assert even.lda_axes is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: two_blocks(n_classes=1),
            "'n_classes' parameter of two_blocks must be an int of at least 2. Got 1",
        ),
        (lambda: two_blocks(per_class=0), "'per_class'"),
        (lambda: two_blocks(per_class=2.0), "'per_class'"),
        (lambda: two_blocks(p_noise=True), "'p_noise'"),
        (lambda: two_blocks(tau_sig=0), "'tau_sig'"),
        (lambda: two_blocks(tau_noise=np.nan), "'tau_noise'"),
        (lambda: two_blocks(rho_noise=1.1), "above 0 and at most 1. Got 1.1"),
        (lambda: two_blocks(rho_sig=-0.5), "'rho_sig'"),
        (lambda: two_blocks(-1), "'random_state'"),
        (lambda: two_blocks("seed"), "'random_state'"),
        (
            lambda: evenly_spaced(n=10, p=10),
            "'n' parameter of evenly_spaced must be an int of at least 11. Got 10",
        ),
        (lambda: evenly_spaced(n=10, p=0), "'p'"),
        (lambda: evenly_spaced(n=10, p=2, low=3.0, high=3.0), "larger than 'low'"),
        (lambda: evenly_spaced(n=10, p=2, low=0.0), "'low'"),
    ],
)
def test_bad_arguments_raise_errors(call, message):
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert message in str(caught.value)
