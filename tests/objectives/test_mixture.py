"""Mixture: Balestriero and LeCun 2024's theorem 1, its two limits, and that nothing beats it in between."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import Mixture, PrefixEncoder
from slow_reference import correlated, cosines, perturbations, residual


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = correlated(rng, 120, 7) + 2.0
    Y = X[:, ::-1] @ rng.standard_normal((7, 3)) * [2, 1, 0.5] + rng.standard_normal((120, 3))
    return X, Y, X - X.mean(axis=0), Y - Y.mean(axis=0)


def fit(X, Y, lam, d=None):
    return PrefixEncoder(d, objective=Mixture(lam=lam)).fit(X, Y)


@pytest.mark.parametrize("lam", [0.0, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_no_perturbation_does_better(data, lam, k):
    X, Y, Xc, Yc = data
    enc = fit(X, Y, lam, 7)

    def loss(B):  # Balestriero and LeCun 2024 (3), with the best W and Z for every encoder
        Z = Xc @ B.swapaxes(-1, -2)
        return residual(Yc, Z) + lam * residual(Xc, Z)

    best = loss(enc.components_[:k])
    others = loss(perturbations(enc.components_[:k], np.random.default_rng(1)))
    assert others.min() >= best - 1e-10
    assert others.max() > best + 1e-3
    own = np.sum((Y - enc.predict(X, k=k)) ** 2) + lam * np.sum((X - enc.inverse_transform(enc.transform(X, k))) ** 2)
    assert own / len(X) == pytest.approx(best, abs=1e-9)


def test_theorem_1_word_for_word(data):
    """V spans P D^-1/2 P_H with H = D^-1/2 P^T A P D^-1/2 and A = X (Y^T Y + lam X^T X) X^T.

    Balestriero and LeCun 2024 (4) to (6).
    """
    X, Y, Xc, Yc = data
    lam, n = 0.7, len(X)
    D, P = np.linalg.eigh(Xc.T @ Xc)
    whiten = P / np.sqrt(D)
    A = Xc.T @ (Yc @ Yc.T + lam * Xc @ Xc.T) @ Xc
    H, PH = np.linalg.eigh(whiten.T @ A @ whiten)
    V = (whiten @ PH[:, ::-1]).T * np.sqrt(n)
    enc = fit(X, Y, lam)
    assert cosines(enc.components_, V).min() > 1 - 1e-10
    np.testing.assert_allclose(enc.spectrum_, H[::-1] / n, rtol=1e-10)
    for k in (1, 3, 7):
        Z = Xc @ enc.components_[:k].T
        W = np.linalg.solve(Z.T @ Z, Z.T @ Yc)  # (5)
        np.testing.assert_allclose(enc.encoder_.head.weight[:, :k].T, W, atol=1e-10)
        decoder = np.linalg.solve(Z.T @ Z, Z.T @ Xc)  # (6)
        np.testing.assert_allclose(enc.decoder_[:, :k].T, decoder, atol=1e-10)


@pytest.mark.parametrize("lam", [0.0, 1e-9])
def test_lambda_to_zero_is_least_squares(data, lam):
    X, Y, Xc, Yc = data
    enc = fit(X, Y, lam, 3)  # d = rank Sxy
    expected = Xc @ np.linalg.lstsq(Xc, Yc, rcond=None)[0]
    np.testing.assert_allclose(enc.predict(X) - Y.mean(axis=0), expected, atol=1e-5)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("lam", [0.0, 1e-9])
def test_lambda_to_zero_is_reduced_rank_below_the_rank_of_the_targets(data, lam, d):
    X, Y, Xc, Yc = data
    fitted = Xc @ np.linalg.lstsq(Xc, Yc, rcond=None)[0]
    U, s, Vt = np.linalg.svd(fitted, full_matrices=False)
    expected = (U[:, :d] * s[:d]) @ Vt[:d]
    np.testing.assert_allclose(fit(X, Y, lam, d).predict(X) - Y.mean(axis=0), expected, atol=1e-5)
    # And not least squares itself, which needs all three coordinates.
    assert np.abs(expected - fitted).max() > 0.1


def test_lambda_to_zero_converges_and_does_not_jump(data):
    X, Y, _, _ = data
    limit = fit(X, Y, 0.0, 3).predict(X)
    errors = [np.abs(fit(X, Y, lam, 3).predict(X) - limit).max() for lam in (1e-1, 1e-3, 1e-5)]
    assert errors[0] > 10 * errors[1] > 100 * errors[2] > 0


def test_lambda_to_infinity_is_pca(data):
    X, Y, _, _ = data
    pca = PrefixEncoder().fit(X)
    enc = fit(X, Y, 1e9)
    assert cosines(enc.components_, pca.components_).min() > 1 - 1e-8
    for k in (1, 3, 6):  # Z^T V^T of corollary 1.1
        np.testing.assert_allclose(
            enc.inverse_transform(enc.transform(X, k)), pca.inverse_transform(pca.transform(X, k)), atol=1e-5
        )
    assert cosines(fit(X, Y, 1.0).components_, pca.components_).min() < 0.99


def test_labels_are_one_hot_targets(data):
    X, _, _, _ = data
    y = np.array(["b", "a", "c"])[np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.6]))]
    one_hot = (y[:, None] == ["a", "b", "c"]).astype(float)
    by_label, by_target = fit(X, y, 0.5), fit(X, one_hot, 0.5)
    np.testing.assert_allclose(by_label.components_, by_target.components_, atol=1e-9)
    np.testing.assert_array_equal(by_label.predict(X), np.array(["a", "b", "c"])[by_target.predict(X).argmax(axis=1)])


def test_the_curve_shows_both_parts(data):
    X, Y, Xc, Yc = data
    enc = fit(X, Y, 2.0)
    curve = enc.curve(X, Y)
    k = 3
    Z = enc.transform(X, k)
    r2, ev = 1 - residual(Yc, Z) * 120 / np.sum(Yc**2), 1 - residual(Xc, Z) * 120 / np.sum(Xc**2)
    assert curve.details["r2"][k - 1] == pytest.approx(r2, abs=1e-9)
    assert curve.details["explained_variance"][k - 1] == pytest.approx(ev, abs=1e-9)
    whole = np.sum(Yc**2) + 2.0 * np.sum(Xc**2)
    expected = (r2 * np.sum(Yc**2) + 2.0 * ev * np.sum(Xc**2)) / whole
    assert curve.at(k) == pytest.approx(expected, abs=1e-9)
