"""Closed forms against independent implementations of the same thing, on data of every awkward shape.

An axis counts where its eigengap is *clear*. A symmetric eigenproblem solved in float64 perturbs the matrix by a few
eps * |S|, which turns axis i by about eps * |S| / gap_i; a turn of 1e-4 is a cosine of 1 - 5e-9. So an axis is clear
when its gap to both neighbors (and, for the last one kept, to the next eigenvalue) exceeds GAP * eps * |S|. Every case
states how many axes must be clear, so that the rule cannot empty the test.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from firstk import Fisher, PrefixEncoder
from slow_reference import EPS, class_scatters, classes_of, clear_gaps, correlated, cosines, scatter

GAP = 1e5
CLOSE = 1 - 1e-8


def tall(rng):
    return correlated(rng, 400, 12)


def wide(rng):
    return correlated(rng, 30, 80, decay=0.97)


def rank_deficient(rng):
    return correlated(rng, 200, 5) @ rng.standard_normal((5, 15))


def collinear(rng):
    X = correlated(rng, 200, 8)
    return np.hstack([X, X[:, :2], X[:, 2:3] - 3 * X[:, 3:4], np.full((200, 1), 4.0)])


def badly_scaled(rng):
    return rng.standard_normal((400, 13)) @ (np.eye(13) + 0.3 * rng.standard_normal((13, 13))) * np.logspace(-3, 3, 13)


def very_badly_scaled(rng):
    X = rng.standard_normal((400, 13)) @ (np.eye(13) + 0.3 * rng.standard_normal((13, 13)))
    return X * np.logspace(-6, 6, 13)


def offset(rng):
    return correlated(rng, 400, 12) + 1e6 * rng.choice([-1, 1], 12)


def wide_offset(rng):
    return correlated(rng, 30, 80, decay=0.97) + 1e6


PCA_CASES = {  # data, axes that exist, how many must be clear
    "tall": (tall, 12, 12),
    "wide": (wide, 29, 27),
    "rank deficient": (rank_deficient, 5, 5),
    "collinear": (collinear, 8, 8),
    "badly scaled": (badly_scaled, 13, 10),
    "offset": (offset, 12, 12),
    "wide offset": (wide_offset, 29, 27),
}


@pytest.mark.parametrize("case", PCA_CASES)
def test_reconstruction_is_sklearn_pca(case):
    make, rank, n_clear = PCA_CASES[case]
    X = make(np.random.default_rng(0))
    pca = PCA(svd_solver="full").fit(X)
    enc = PrefixEncoder().fit(X)
    assert enc.n_components_ == rank
    spectrum = pca.singular_values_**2 / len(X)
    clear = clear_gaps(spectrum, GAP * EPS * spectrum[0])[:rank]
    assert clear.sum() >= n_clear
    assert cosines(enc.components_, pca.components_[:rank])[clear].min() > CLOSE
    # Eigenvalues, in the 1/n convention; sklearn's explained variance divides by n - 1.
    np.testing.assert_allclose(enc.spectrum_, spectrum[:rank], rtol=1e-9, atol=20 * EPS * spectrum[0])
    np.testing.assert_allclose(
        enc.spectrum_ * len(X) / (len(X) - 1), pca.explained_variance_[:rank], rtol=1e-9, atol=20 * EPS * spectrum[0]
    )
    np.testing.assert_allclose(enc.components_ @ enc.components_.T, np.eye(rank), atol=1e-12)
    np.testing.assert_allclose(enc.mean_, X.mean(axis=0), rtol=1e-12, atol=1e-12)
    scale = np.abs(X - X.mean(axis=0)).max()
    signs = np.sign(np.sum(enc.components_ * pca.components_[:rank], axis=1))
    np.testing.assert_allclose(
        enc.transform(X)[:, clear], (pca.transform(X)[:, :rank] * signs)[:, clear], atol=1e-3 * CLOSE * scale
    )
    np.testing.assert_allclose(enc.inverse_transform(enc.transform(X)), X, rtol=0, atol=1e-8 * max(1.0, scale))


@pytest.mark.parametrize("case", ["tall", "wide", "rank deficient", "offset"])
def test_explained_variance_is_the_share_of_the_eigenvalues(case):
    X = PCA_CASES[case][0](np.random.default_rng(1))
    enc = PrefixEncoder().fit(X)
    share = np.cumsum(enc.spectrum_) / np.trace(scatter(X))
    np.testing.assert_allclose(enc.curve(X).score, share, atol=1e-9)
    assert enc.curve(X).full == pytest.approx(1.0, abs=1e-9)


def test_the_signs_follow_the_rule():
    for case in PCA_CASES.values():
        enc = PrefixEncoder().fit(case[0](np.random.default_rng(2)))
        peaks = np.take_along_axis(enc.components_, np.abs(enc.components_).argmax(axis=1)[:, None], axis=1)
        assert (peaks > 0).all()


# -- Fisher ------------------------------------------------------------------------------------------------------


def labelled(make, rng, n_classes=5):
    X = make(rng)
    y = classes_of(rng, len(X), n_classes)
    # Class means that are far apart in some directions and close in others, inside the span of the rows.
    centred = X - X.mean(axis=0)
    inside = scipy.linalg.orth(centred.T, rcond=1e-13)
    shifts = rng.standard_normal((n_classes, 4)) * 0.7 ** np.arange(4) @ rng.standard_normal((4, X.shape[1]))
    return X + (shifts * centred.std(axis=0) @ inside @ inside.T)[y], y


FULL_RANK = {"tall": tall, "badly scaled": badly_scaled, "very badly scaled": very_badly_scaled, "offset": offset}


@pytest.mark.parametrize("case", FULL_RANK)
def test_fisher_is_the_generalised_eigenproblem(case):
    rng = np.random.default_rng(3)
    X, y = labelled(FULL_RANK[case], rng)
    Sw, Sb = class_scatters(X, y)
    # scipy's solver takes Sw as it is: a unit diagonal keeps it accurate and changes the answer by known factors.
    unit = 1 / np.sqrt(np.diag(Sw))
    values, vectors = scipy.linalg.eigh(unit[:, None] * Sb * unit, unit[:, None] * Sw * unit)
    values, axes = values[::-1][:4], (vectors.T * unit)[::-1][:4]
    enc = PrefixEncoder(objective=Fisher(None)).fit(X, y)
    assert enc.n_components_ == 4
    condition = np.linalg.cond(unit[:, None] * Sw * unit)
    assert clear_gaps(np.append(values, 0.0), GAP * EPS * condition * values[0])[:4].all()
    assert cosines(enc.components_, axes).min() > CLOSE
    assert cosines(enc.components_, axes, metric=Sw).min() > CLOSE
    np.testing.assert_allclose(enc.spectrum_, values, rtol=1e-8)
    np.testing.assert_allclose(enc.components_ @ Sw @ enc.components_.T, np.eye(4), atol=1e-8)


# scikit-learn's eigen solver refuses a singular within-class scatter.
@pytest.mark.parametrize(
    ("case", "solver"),
    [(case, solver) for case in ("tall", "badly scaled", "offset") for solver in ("eigen", "svd")]
    + [("rank deficient", "svd"), ("collinear", "svd")],
)
def test_fisher_is_sklearn_lda(case, solver):
    make = (FULL_RANK | {"rank deficient": rank_deficient, "collinear": collinear})[case]
    singular = case in ("rank deficient", "collinear")
    X, y = labelled(make, np.random.default_rng(4))
    Sw, _ = class_scatters(X, y)
    enc = PrefixEncoder(objective=Fisher(None)).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver=solver).fit(X - X.mean(axis=0), y)
    d = 4
    assert enc.n_components_ == d
    # With a singular scatter an axis is free off the range of the data: what it does to the data is what counts.
    assert cosines(enc.components_, lda.scalings_.T[:d], metric=Sw).min() > CLOSE
    if not singular:
        assert cosines(enc.components_, lda.scalings_.T[:d]).min() > CLOSE
    ratio = enc.spectrum_ / enc.spectrum_.sum()
    np.testing.assert_allclose(lda.explained_variance_ratio_[:d], ratio, rtol=1e-7)


def test_fisher_on_rank_deficient_data_stays_in_the_range():
    X, y = labelled(rank_deficient, np.random.default_rng(5))
    enc = PrefixEncoder(objective=Fisher(None)).fit(X, y)
    Sw, Sb = class_scatters(X, y)
    basis = scipy.linalg.orth((X - X.mean(axis=0)).T, rcond=1e-10)
    values = scipy.linalg.eigh(basis.T @ Sb @ basis, basis.T @ Sw @ basis, eigvals_only=True)[::-1]
    np.testing.assert_allclose(enc.spectrum_, values[:4], rtol=1e-8)


@pytest.mark.parametrize("make", [wide, wide_offset])
@pytest.mark.parametrize("shrinkage", [0.2, 0.9])
def test_fisher_with_more_columns_than_rows(make, shrinkage):
    """With shrinkage Sw is regular, and the route through the row space must equal the one through p x p matrices."""
    X, y = labelled(make, np.random.default_rng(6), n_classes=4)
    Sw, Sb = class_scatters(X, y)
    p = X.shape[1]
    N = (1 - shrinkage) * Sw + shrinkage * np.trace(Sw) / p * np.eye(p)
    values, vectors = scipy.linalg.eigh(Sb, N)
    enc = PrefixEncoder(objective=Fisher(shrinkage=shrinkage)).fit(X, y)
    np.testing.assert_allclose(enc.spectrum_, values[::-1][:3], rtol=1e-8)
    assert cosines(enc.components_, vectors.T[::-1][:3]).min() > CLOSE
    assert cosines(enc.components_, vectors.T[::-1][:3], metric=N).min() > CLOSE
    np.testing.assert_allclose(enc.components_ @ N @ enc.components_.T, np.eye(3), atol=1e-8)


def test_unregularised_fisher_on_wide_data_keeps_only_what_varies_within_classes():
    X, y = labelled(wide, np.random.default_rng(7), n_classes=4)
    Sw, Sb = class_scatters(X, y)
    enc = PrefixEncoder(objective=Fisher(None)).fit(X, y)
    values, vectors = np.linalg.eigh(Sw)
    kept = vectors[:, values > 1e-10 * values[-1]]
    assert kept.shape[1] == len(X) - 4
    expected = scipy.linalg.eigh(kept.T @ Sb @ kept, kept.T @ Sw @ kept, eigvals_only=True)[::-1][:3]
    np.testing.assert_allclose(enc.spectrum_, expected, rtol=1e-7)


@pytest.mark.parametrize("make", [tall, offset, badly_scaled])
def test_fisher_continues_past_the_classes(make):
    """Past C - 1: Sw-orthogonal to everything before, and by descending v^T Sw v / v^T v (docs/theory.md, 5)."""
    X, y = labelled(make, np.random.default_rng(8))
    p = X.shape[1]
    Sw, _ = class_scatters(X, y)
    enc = PrefixEncoder(p, objective=Fisher(None)).fit(X, y)
    assert enc.n_components_ == p
    assert enc.encoder_.pinned == 4
    V = enc.components_
    unit = np.sqrt(np.einsum("ki,ij,kj->k", V, Sw, V))
    np.testing.assert_allclose(unit, 1.0, atol=1e-8)
    np.testing.assert_allclose(V @ Sw @ V.T, np.eye(p), atol=1e-6)
    np.testing.assert_array_equal(enc.spectrum_[4:], 0.0)
    # The slow way: all v with V_4 Sw v = 0, and in that space the principal axes of Sw.
    free = scipy.linalg.null_space(V[:4] @ Sw / np.linalg.norm(V[:4] @ Sw, axis=1, keepdims=True))
    values, vectors = np.linalg.eigh(free.T @ Sw @ free)
    values, axes = values[::-1], (free @ vectors).T[::-1]
    carried = 1.0 / np.sum(V[4:] ** 2, axis=1)  # v^T Sw v = 1
    np.testing.assert_allclose(carried, values, rtol=1e-3, atol=GAP * EPS * values[0])
    clear = clear_gaps(values, GAP * EPS * values[0])
    assert clear.sum() >= (p - 4) - 3
    assert cosines(V[4:], axes)[clear].min() > CLOSE


def test_predict_of_fisher_is_lda():
    rng = np.random.default_rng(9)
    X, y = labelled(tall, rng)
    new = X + rng.standard_normal(X.shape) * X.std()
    enc = PrefixEncoder(objective=Fisher(None)).fit(X, y)
    # Shares of the classes differ here, and scikit-learn's eigen solver divides by n as firstk does.
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    np.testing.assert_array_equal(enc.predict(new), lda.predict(new))
    assert len(np.unique(enc.predict(new))) == 5
    assert np.mean(enc.predict(new) == y) < 1.0  # some rows are contested, or the comparison would be easy


def test_predict_of_fisher_is_lda_by_svd_when_classes_are_balanced():
    # scikit-learn's svd solver divides by n - C, which weighs distances against shares differently; with equal
    # shares the two rules are one.
    rng = np.random.default_rng(10)
    y = np.arange(400) % 5
    X = tall(rng) + (rng.standard_normal((5, 12)) * 0.3)[y]
    new = X + rng.standard_normal(X.shape) * X.std()
    lda = LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    np.testing.assert_array_equal(PrefixEncoder(objective=Fisher(None)).fit(X, y).predict(new), lda.predict(new))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_predict_at_a_prefix_is_lda_refitted_on_the_prefix(k):
    rng = np.random.default_rng(11)
    X, y = labelled(tall, rng)
    new = X + rng.standard_normal(X.shape) * X.std()
    enc = PrefixEncoder(9, objective=Fisher(None)).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(enc.transform(X, k), y)
    np.testing.assert_array_equal(enc.predict(new, k=k), lda.predict(enc.transform(new, k)))
    np.testing.assert_array_equal(enc[:k].predict(new), enc.predict(new, k=k))


# -- regression --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tall, offset, badly_scaled, rank_deficient, collinear])
def test_regression_is_reduced_rank_regression(make):
    """The SVD form: least squares first, then its fitted values cut to rank k."""
    rng = np.random.default_rng(12)
    X = make(rng)
    Xc = X - X.mean(axis=0)
    scale = np.where(Xc.std(axis=0) > 0, Xc.std(axis=0), 1.0)
    Y = (Xc / scale) @ rng.standard_normal((X.shape[1], 4)) * [3.0, 1.0, 1.0, 0.5] + rng.standard_normal((len(X), 4))
    Yc = Y - Y.mean(axis=0)
    coefficients = np.linalg.lstsq(Xc / scale, Yc, rcond=1e-10)[0]
    fitted = Xc / scale @ coefficients
    U, s, Vt = np.linalg.svd(fitted, full_matrices=False)
    enc = PrefixEncoder(objective="regression").fit(X, Y)
    assert enc.n_components_ == 4
    np.testing.assert_allclose(enc.spectrum_, s**2 / len(X), rtol=1e-8)
    Z = enc.transform(X)
    assert cosines(Z.T, U[:, :4].T).min() > CLOSE  # the code is the left singular vectors, times sqrt(n)
    np.testing.assert_allclose(Z.T @ Z / len(X), np.eye(4), atol=1e-7)
    for k in (1, 2, 3, 4):
        expected = Y.mean(axis=0) + (U[:, :k] * s[:k]) @ Vt[:k]
        np.testing.assert_allclose(enc.predict(X, k=k), expected, rtol=0, atol=1e-6 * np.abs(Yc).max())


def test_regression_with_more_columns_than_rows():
    rng = np.random.default_rng(13)
    X = wide(rng)
    Y = X @ rng.standard_normal((80, 3)) + rng.standard_normal((30, 3))
    enc = PrefixEncoder(objective="regression").fit(X, Y)
    assert enc.n_components_ == 3
    np.testing.assert_allclose(enc.predict(X), Y, rtol=0, atol=1e-7)  # more columns than rows: every target is met
