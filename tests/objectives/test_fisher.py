"""Fisher: no other code has a larger ratio trace at any prefix, regularised or not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from firstk import Fisher, PrefixEncoder
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from slow_reference import class_scatters, classes_of, correlated, perturbations


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = classes_of(rng, 150, 4)
    return correlated(rng, 150, 7) + rng.standard_normal((4, 7))[y] + 5.0, y


def ratio_trace(B, Sb, N):
    return np.trace(np.linalg.solve(B @ N @ B.swapaxes(-1, -2), B @ Sb @ B.swapaxes(-1, -2)), axis1=-2, axis2=-1)


@pytest.mark.parametrize("shrinkage", [None, 0.3, 1.0])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_no_perturbation_separates_better(data, shrinkage, k):
    X, y = data
    Sw, Sb = class_scatters(X, y)
    a = shrinkage or 0.0
    N = (1 - a) * Sw + a * np.trace(Sw) / 7 * np.eye(7)
    enc = PrefixEncoder(6, objective=Fisher(shrinkage=shrinkage)).fit(X, y)
    best = ratio_trace(enc.components_[:k], Sb, N)
    others = ratio_trace(perturbations(enc.components_[:k], np.random.default_rng(1)), Sb, N)
    assert others.max() <= best + 1e-10
    assert others.min() < best - 1e-2
    assert best == pytest.approx(enc.spectrum_[:k].sum(), rel=1e-10)


def test_probabilities_are_the_posterior_of_gaussians_with_one_covariance(data):
    X, y = data
    labels = np.array(["d", "b", "c", "a"])[y]
    enc = PrefixEncoder(objective=Fisher(None)).fit(X, labels)
    assert enc.classes_.tolist() == ["a", "b", "c", "d"]
    found = enc.predict_proba(X)
    np.testing.assert_allclose(
        found, LinearDiscriminantAnalysis(solver="eigen").fit(X, labels).predict_proba(X), atol=1e-8
    )
    for k in (1, 2):
        Z, shares = enc.transform(X, k), np.array([np.mean(labels == c) for c in enc.classes_])
        means = np.array([Z[labels == c].mean(axis=0) for c in enc.classes_])
        density = shares * np.exp(-np.square(Z[:, None] - means).sum(axis=2) / 2)
        found = enc.predict_proba(X, k=k)
        np.testing.assert_allclose(found, density / density.sum(axis=1, keepdims=True), atol=1e-8)
        np.testing.assert_array_equal(enc.classes_[found.argmax(axis=1)], enc.predict(X, k=k))


def test_none_keeps_as_many_as_there_are_classes_less_one(data):
    X, y = data
    assert PrefixEncoder(objective="fisher").fit(X, y).n_components_ == 3
    assert PrefixEncoder(objective="fisher").fit(X, y == 0).n_components_ == 1


@pytest.mark.parametrize(
    "labels", [np.array(["d", "a", "c", "b"]), np.array([30, -1, 7, 2]), np.array([1.0, 2.0, 3.0, 4.0])]
)
def test_labels_of_any_kind(data, labels):
    X, y = data
    settled = Fisher(shrinkage=0.1)  # the folds of "auto" depend on the labels' bits
    enc = PrefixEncoder(objective=settled).fit(X, labels[y])
    plain = PrefixEncoder(objective=settled).fit(X, y)
    np.testing.assert_allclose(enc.components_, plain.components_, atol=1e-10)
    np.testing.assert_array_equal(enc.predict(X), labels[plain.predict(X)])
    assert enc.predict(X).dtype == labels.dtype


def test_auto_settles_a_shrinkage_that_can_be_read(data):
    X, y = data
    enc = PrefixEncoder(objective="fisher").fit(X, y)
    assert enc.objective_.shrinkage in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
    tried = enc.encoder_.record.auto
    assert [row["shrinkage"] for row in tried] == [0.0, 0.1, 0.3, 0.5, 0.7, 0.9]
    chosen = next(row for row in tried if row["shrinkage"] == enc.objective_.shrinkage)
    assert chosen["score"] >= max(row["score"] for row in tried) - 0.02  # within a standard error of the best
    again = PrefixEncoder(objective=Fisher(shrinkage=enc.objective_.shrinkage)).fit(X, y)
    np.testing.assert_array_equal(again.components_, enc.components_)


def test_auto_regularises_where_that_is_needed():
    """Spherical classes and few rows a column: the more Sw is drawn to the sphere, the better on held-out rows."""
    rng = np.random.default_rng(2)
    y = np.arange(120) % 6
    X = rng.standard_normal((120, 90)) + (rng.standard_normal((6, 90)) * 0.35)[y]
    enc = PrefixEncoder(objective=Fisher(shrinkage="auto")).fit(X, y)
    scores = {row["shrinkage"]: row["score"] for row in enc.encoder_.record.auto}
    assert enc.objective_.shrinkage >= 0.3
    assert scores[enc.objective_.shrinkage] > scores[0.1]


def test_axes_beyond_the_classes_keep_their_digits_beside_a_nearly_constant_column():
    """Past C - 1: N-orthogonal to the discriminants, most within-class variance per unit length first."""
    rng = np.random.default_rng(3)
    y = np.arange(600) % 3
    X = rng.normal(size=(600, 12)) * np.geomspace(2, 0.5, 12) + rng.normal(size=(3, 12))[y]
    X[:, 11] = 0.1 + 3e-9 * rng.normal(size=600)
    enc = PrefixEncoder(8, objective=Fisher(None)).fit(X, y)
    centred = X - np.stack([X[y == c].mean(axis=0) for c in range(3)])[y]
    Sw, V = centred.T @ centred / 600, enc.components_
    np.testing.assert_allclose(V @ Sw @ V.T, np.eye(8), atol=1e-9)
    # On the complement of Sw times the discriminants, Sw has these axes as its leading eigenvectors.
    free = scipy.linalg.null_space(V[:2] @ Sw)
    _values, vectors = np.linalg.eigh(free.T @ Sw @ free)
    wanted = (free @ vectors[:, ::-1]).T[:6]
    cosines = np.abs((V[2:] * wanted).sum(axis=1)) / np.linalg.norm(V[2:], axis=1)
    np.testing.assert_allclose(cosines, 1, atol=1e-10)


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize(("shrinkage", "r"), [(None, 0.2), (0.3, 0.5), (None, 1.0)])
def test_with_a_share_for_the_vectors_no_perturbation_is_better(data, shrinkage, r, k):
    X, y = data
    Sw, Sb = class_scatters(X, y)
    a, size = shrinkage or 0.0, np.trace(Sw) / 7 * np.eye(7)
    N = (1 - r) * ((1 - a) * Sw + a * size) + r * size
    M = (1 - r) * Sb + r * np.trace(Sb) / np.trace(Sw + Sb) * (Sw + Sb)
    enc = PrefixEncoder(6, objective=Fisher(shrinkage=shrinkage, reconstruction=r)).fit(X, y)
    best = ratio_trace(enc.components_[:k], M, N)
    others = ratio_trace(perturbations(enc.components_[:k], np.random.default_rng(1)), M, N)
    assert others.max() <= best + 1e-10
    assert others.min() < best - 1e-2
    assert best == pytest.approx(enc.spectrum_[:k].sum(), rel=1e-10)
    assert enc.encoder_.pinned == 6  # the vectors determine what the labels leave open


def test_the_whole_share_for_the_vectors_is_principal_components(data):
    X, y = data
    enc = PrefixEncoder(objective=Fisher(reconstruction=1.0)).fit(X, y)
    axes = enc.components_ / np.linalg.norm(enc.components_, axis=1, keepdims=True)
    np.testing.assert_allclose(axes, PrefixEncoder().fit(X).components_, atol=1e-8)


def test_settings_of_the_share_that_mean_nothing(data):
    X, y = data
    with pytest.raises(InvalidInputError, match=r"reconstruction.*Got 1.5"):
        PrefixEncoder(objective=Fisher(reconstruction=1.5)).fit(X, y)
    with pytest.raises(IllegalCombinationError, match="code_eps"):
        PrefixEncoder(objective=Fisher(code_eps=0.1, reconstruction=0.5)).fit(X, y)


def test_training_finds_the_same_axes_and_networks_are_refused(data):
    torch = pytest.importorskip("torch")
    X, y = data
    objective = Fisher(reconstruction=0.5)
    solved = PrefixEncoder(3, objective=objective).fit(X, y)
    trained = PrefixEncoder(3, objective=objective, solver="gradient", init="random", random_state=0).fit(X, y)
    np.testing.assert_allclose(trained.components_, solved.components_, atol=1e-3)
    with pytest.raises(IllegalCombinationError, match=r"reconstruction=0.5 and a nonlinear network"):
        PrefixEncoder(3, objective=objective, network=torch.nn.Linear(7, 3)).fit(X, y)
