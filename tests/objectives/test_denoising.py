"""Denoising: Balestriero and LeCun 2024's theorem 3 against enumerated and simulated noise, and corollary 3.1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from firstk import Denoising, GaussianNoise, Masking, PrefixEncoder, image_patches
from firstk.exceptions import InvalidInputError
from slow_reference import correlated, cosines, perturbations, scatter

PATCHES = (0, 0, 1, 1, 2, 2)


def all_masks(noise, p):
    """Every pattern of kept coordinates with its probability, from the definition of the noise."""
    ids = noise.patch_ids(p)
    names = np.unique(ids)
    for kept in itertools.product([0, 1], repeat=len(names)):
        if noise.exact:
            m = round(noise.keep * len(names))
            total = sum(1 for other in itertools.product([0, 1], repeat=len(names)) if sum(other) == m)
            chance = (sum(kept) == m) / total
        else:
            chance = np.prod([noise.keep if one else 1 - noise.keep for one in kept])
        if chance:
            yield np.array([kept[np.searchsorted(names, i)] for i in ids], dtype=float), float(chance)


def enumerated_moments(noise, Xc):
    """G = E[x' x'^T] and S = E[x' x^T], mask by mask and row by row."""
    p = Xc.shape[1]
    G, S = np.zeros((p, p)), np.zeros((p, p))
    for mask, chance in all_masks(noise, p):
        noisy = Xc * mask
        G += chance * noisy.T @ noisy / len(Xc)
        S += chance * noisy.T @ Xc / len(Xc)
    return G, S


MASKINGS = [
    Masking(0.5),
    Masking(0.8),
    Masking(0.3, PATCHES),
    Masking(1 / 3, PATCHES, exact=True),
    Masking(2 / 3, PATCHES, exact=True),
    Masking(0.5, exact=True),
    Masking(0.5, (0, 1, 2, 0, 1, 2)),
]


@pytest.fixture(scope="module")
def X():
    return correlated(np.random.default_rng(0), 90, 6) + 4.0


@pytest.mark.parametrize("noise", MASKINGS, ids=str)
def test_masked_moments_are_those_of_every_mask(X, noise):
    G, S = noise.second_moments(scatter(X))
    expected = enumerated_moments(noise, X - X.mean(axis=0))
    np.testing.assert_allclose(G, expected[0], atol=1e-12)
    np.testing.assert_allclose(S, expected[1], atol=1e-12)


@pytest.mark.parametrize("noise", MASKINGS, ids=str)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_no_perturbation_denoises_better(X, noise, k):
    Xc = X - X.mean(axis=0)
    G, S = enumerated_moments(noise, Xc)
    enc = PrefixEncoder(objective=Denoising(noise)).fit(X)

    def loss(B):  # E |A B x' - x|^2 with the best decoder A = S^T B^T (B G B^T)^-1
        Bt = B.swapaxes(-1, -2)
        A = S.T @ Bt @ np.linalg.inv(B @ G @ Bt)
        return (
            np.trace(scatter(X))
            - 2 * np.trace(A @ B @ S, axis1=-2, axis2=-1)
            + np.trace(A @ B @ G @ Bt @ A.swapaxes(-1, -2), axis1=-2, axis2=-1)
        )

    best = loss(enc.components_[:k])
    others = loss(perturbations(enc.components_[:k], np.random.default_rng(1)))
    assert others.min() >= best - 1e-11
    assert others.max() > best + 1e-3
    own = sum(
        chance * np.mean(np.sum((Xc * mask @ enc.components_[:k].T @ enc.decoder_[:, :k].T - Xc) ** 2, axis=1))
        for mask, chance in all_masks(noise, 6)
    )
    assert own == pytest.approx(best, abs=1e-10)
    assert best == pytest.approx(np.trace(scatter(X)) - enc.spectrum_[:k].sum(), abs=1e-10)


@pytest.mark.parametrize("noise", [Masking(0.4, PATCHES), Masking(2 / 3, PATCHES, exact=True)], ids=str)
def test_masked_closed_form_is_the_monte_carlo_one(X, noise):
    """Draw masks, estimate G and S, solve: the axes agree to what 400,000 draws resolve."""
    rng = np.random.default_rng(2)
    Xc = X - X.mean(axis=0)
    rows = Xc[rng.integers(0, len(Xc), 400_000)]
    uniform = rng.random((len(rows), 3))
    draws = uniform.argsort(axis=1) < 2 if noise.exact else uniform < noise.keep
    noisy = rows * draws[:, PATCHES]
    G, S = noisy.T @ noisy / len(rows), noisy.T @ rows / len(rows)
    values, vectors = np.linalg.eig(np.linalg.solve(G, S @ S.T))
    order = np.argsort(-values.real)
    enc = PrefixEncoder(objective=Denoising(noise)).fit(X)
    np.testing.assert_allclose(enc.spectrum_, values.real[order], rtol=0.03)
    assert cosines(enc.components_[:3], vectors.real[:, order].T[:3]).min() > 0.995


@pytest.mark.parametrize("sigma", [0.0, 0.3, 5.0])
def test_gaussian_moments_are_those_of_simulated_noise(X, sigma):
    rng = np.random.default_rng(3)
    Xc = X - X.mean(axis=0)
    rows = np.repeat(Xc, 3000, axis=0)
    noisy = rows + sigma * rng.standard_normal(rows.shape)
    G, S = GaussianNoise(sigma).second_moments(scatter(X))
    tolerance = 0.01 * (1 + sigma**2)
    np.testing.assert_allclose(G, noisy.T @ noisy / len(rows), atol=tolerance)
    np.testing.assert_allclose(S, noisy.T @ rows / len(rows), atol=tolerance)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_gaussian_noise_never_changes_the_supervised_model(X, k):
    """Corollary 3.1, with the readout fitted on clean codes."""
    Y = X[:, ::-1] @ np.random.default_rng(4).standard_normal((6, 2))

    def model(sigma, clean=True):
        enc = PrefixEncoder(objective=Denoising(GaussianNoise(sigma))).fit(X)
        B = enc.components_[:k]
        Z = (X - X.mean(axis=0)) @ B.T
        noise = 0.0 if clean else sigma**2 * B @ B.T * len(X)
        return np.linalg.solve(Z.T @ Z + noise, Z.T @ (Y - Y.mean(axis=0))).T @ B

    for sigma in (0.1, 1.0, 30.0):
        np.testing.assert_allclose(model(sigma), model(0.0), atol=1e-9)
    # The readout of noisy codes does change, so the clean one is what the corollary speaks of.
    assert np.abs(model(1.0, clean=False) - model(0.0)).max() > 1e-2


def test_gaussian_noise_keeps_the_axes_of_reconstruction(X):
    pca = PrefixEncoder().fit(X)
    enc = PrefixEncoder(objective=Denoising(GaussianNoise(2.0))).fit(X)
    assert cosines(enc.components_, pca.components_).min() > 1 - 1e-9
    np.testing.assert_allclose(enc.spectrum_, pca.spectrum_**2 / (pca.spectrum_ + 4.0), rtol=1e-9)


def test_masking_does_change_the_axes(X):
    pca = PrefixEncoder().fit(X)
    enc = PrefixEncoder(objective=Denoising(Masking(0.3, PATCHES))).fit(X)
    assert cosines(enc.components_, pca.components_).min() < 0.99


def test_keeping_everything_is_reconstruction(X):
    pca = PrefixEncoder().fit(X)
    for noise in (Masking(1.0), Masking(1.0, PATCHES, exact=True), GaussianNoise(0.0)):
        enc = PrefixEncoder(objective=Denoising(noise)).fit(X)
        assert cosines(enc.components_, pca.components_).min() > 1 - 1e-9
        np.testing.assert_allclose(
            enc.inverse_transform(enc.transform(X, 2)), pca.inverse_transform(pca.transform(X, 2)), atol=1e-9
        )


@pytest.mark.parametrize("noise", [Masking(0.5), GaussianNoise(0.5)], ids=str)
def test_more_columns_than_rows(noise):
    X = correlated(np.random.default_rng(5), 12, 20, decay=0.95)
    Xc = X - X.mean(axis=0)
    G, S = noise.second_moments(Xc.T @ Xc / 12)
    enc = PrefixEncoder(5, objective=Denoising(noise)).fit(X)
    for v, gamma in zip(enc.components_, enc.spectrum_, strict=True):
        np.testing.assert_allclose(S @ S.T @ v, gamma * G @ v, atol=1e-9)
    np.testing.assert_allclose(enc.components_ @ G @ enc.components_.T, np.eye(5), atol=1e-9)


def test_image_patches_are_blocks_of_the_image():
    ids = np.array(image_patches((5, 4, 3), (2, 3))).reshape(5, 4, 3)
    for row, column in itertools.product(range(5), range(4)):
        expected = (row // 2) * 2 + column // 3
        assert (ids[row, column] == expected).all()
    assert image_patches((2, 2), (1, 1)) == (0, 1, 2, 3)
    assert len(set(image_patches((28, 28), (4, 4)))) == 49


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Masking(0.0), r"'keep' parameter of Masking must be a number in \(0, 1\]. Got 0.0 instead"),
        (lambda: Masking(1.5), r"must be a number in \(0, 1\]. Got 1.5"),
        (lambda: Masking(0.5, (0.5, 1.5)), "'patches' parameter of Masking must be one integer per coordinate"),
        (
            lambda: GaussianNoise(-1.0),
            "'sigma' parameter of GaussianNoise must be a finite number that is not negative",
        ),
        (lambda: "blur", r"'noise' parameter of Denoising must be GaussianNoise\(...\) or Masking\(...\). Got 'blur'"),
        (lambda: Masking(0.5, (0, 1)), "patches for 2 coordinates, and the data have 6"),
        (lambda: Masking(0.05, PATCHES, exact=True), "would keep none of 3 patches at keep=0.05: raise it to 0.333"),
    ],
)
def test_noises_that_mean_nothing(X, make, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        PrefixEncoder(objective=Denoising(make())).fit(X)


@pytest.mark.parametrize(
    "arguments", [((4,), (2, 2)), ((4, 4), (0, 2)), ((4, 4.0), (2, 2)), ((4, 4), (2,)), ((4, 4), 2)]
)
def test_patches_that_mean_nothing(arguments):
    with pytest.raises(InvalidInputError, match="image_patches must be"):
        image_patches(*arguments)
