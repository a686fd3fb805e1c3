"""Names of PCA and LDA: equal to scikit-learn's where the objective defines them, and absent elsewhere."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from firstk import Fisher, PrefixEncoder, Similarity
from firstk.data import load_digits
from firstk.exceptions import InvalidInputError

PCA_NAMES = ("explained_variance_", "explained_variance_ratio_", "singular_values_")
LDA_NAMES = ("means_", "priors_", "coef_", "intercept_", "explained_variance_ratio_")


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.mark.parametrize("d", [1, 3, None])
@pytest.mark.parametrize("shape", [(30, 7), (6, 20)])
def test_those_of_pca(d, shape):
    X = np.random.default_rng(0).normal(size=shape) @ np.diag(np.linspace(3, 1, shape[1])) + 5
    enc = PrefixEncoder("rank" if d is None else d).fit(X)
    pca = PCA(enc.n_components_).fit(X)
    for name in (*PCA_NAMES, "noise_variance_"):
        np.testing.assert_allclose(getattr(enc, name), getattr(pca, name), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("dead", [0, 3])
def test_those_of_truncated_svd(dead):
    X = np.random.default_rng(0).normal(size=(40, 9)) @ np.diag(np.linspace(3, 1, 9)) + 2
    X[:, :dead] = 0
    enc = PrefixEncoder(4, objective=Similarity(keep="dot_products")).fit(X)
    svd = TruncatedSVD(4, algorithm="arpack").fit(X)
    for name in PCA_NAMES:
        np.testing.assert_allclose(getattr(enc, name), getattr(svd, name), rtol=1e-7)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9, 0.99])
def test_a_share_of_the_variance_as_pca_keeps_it(share, digits):
    enc = PrefixEncoder(share).fit(digits.X_train)
    assert enc.n_components_ == PCA(share).fit(digits.X_train).n_components_
    assert enc.explained_variance_ratio_.sum() > share
    batches = PrefixEncoder(share)
    for part in np.array_split(digits.X_train, 3):
        batches.partial_fit(part)
    assert batches.n_components_ == enc.n_components_


def test_a_share_survives_saving(tmp_path, digits):
    enc = PrefixEncoder(0.9).fit(digits.X_train)
    loaded = PrefixEncoder.load(enc.save(tmp_path / "model"))
    assert loaded.get_params()["n_components"] == 0.9
    assert loaded.n_components_ == enc.n_components_


@pytest.mark.parametrize("width", [0.0, 1.0, -0.5, 1.5, float("nan")])
def test_other_floats_are_no_width(width, digits):
    with pytest.raises(InvalidInputError, match="a share in"):
        PrefixEncoder(width).fit(digits.X_train)


@pytest.mark.parametrize("classes", [2, 4])
def test_those_of_lda(classes):
    rng = np.random.default_rng(classes)
    y = rng.integers(classes, size=400)
    X = rng.normal(size=(400, 6)) + 2 * rng.normal(size=(classes, 6))[y]
    enc, lda = PrefixEncoder(objective=Fisher(None)).fit(X, y), LinearDiscriminantAnalysis().fit(X, y)
    for name in ("means_", "priors_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(enc, name), getattr(lda, name), rtol=1e-9)
    assert enc.coef_.shape == lda.coef_.shape
    assert enc.intercept_.shape == lda.intercept_.shape
    scores = enc.decision_function(X)
    assert scores.shape == lda.decision_function(X).shape
    linear = X @ enc.coef_.T + enc.intercept_
    np.testing.assert_allclose(scores, linear[:, 0] if classes == 2 else linear, rtol=1e-9, atol=1e-9)
    theirs = lda.decision_function(X)
    if classes > 2:  # scores are determined up to one number per row
        scores, theirs = (part - part.mean(axis=1, keepdims=True) for part in (scores, theirs))
    np.testing.assert_allclose(scores, theirs, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(enc.predict_proba(X), lda.predict_proba(X), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(np.exp(enc.predict_log_proba(X)), enc.predict_proba(X), rtol=1e-12)
    assert np.isfinite(enc.predict_log_proba(1e4 * X)).all()


def test_names_are_absent_where_they_mean_nothing(digits, tmp_path):
    X, y = digits.X_train, digits.y_train
    pca, lda = PrefixEncoder(8).fit(X), PrefixEncoder(objective="fisher").fit(X, y)
    assert not any(hasattr(pca, name) for name in ("means_", "priors_", "coef_", "decision_function"))
    assert not any(hasattr(lda, name) for name in ("explained_variance_", "singular_values_", "noise_variance_"))
    assert not hasattr(lda[:3], "explained_variance_ratio_")
    assert not hasattr(PrefixEncoder(objective=Fisher(reconstruction=0.5)).fit(X, y), "explained_variance_ratio_")
    loaded = PrefixEncoder.load(lda.save(tmp_path / "model"))
    assert not hasattr(loaded, "means_")
    np.testing.assert_array_equal(loaded.coef_, lda.coef_)
