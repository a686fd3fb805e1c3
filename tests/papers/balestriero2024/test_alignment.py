"""alignment(k) of Balestriero and LeCun 2024 from moments, against matrices over rows built by the definition."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from firstk.exceptions import InvalidInputError
from firstk.moments.moments import Moments
from firstk_papers.balestriero2024.alignment import FORMS, align, alignment
from firstk_papers.balestriero2024.axes import Readout, principal_axes
from slow_reference import classes_of, correlated


def slow(X, Y, form, *, centred=True):
    """The definitions, with Y^T Y of shape (n, n) and the singular vectors of the data."""
    if centred:
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    V = np.linalg.svd(X, full_matrices=False)[0]  # (n, p): singular vectors over rows
    V = V[:, : np.linalg.matrix_rank(X)]
    T = Y.T if form == "proof" else Y @ Y.T
    parts = np.sum((T @ V) ** 2, axis=0)
    whole = np.sum((Y @ Y.T) ** 2) if form == "code" else parts.sum()
    return np.cumsum(parts) / whole


def one_hot(y):
    return (y[:, None] == np.unique(y)).astype(float)


@pytest.fixture
def labelled():
    rng = np.random.default_rng(0)
    X = correlated(rng, 120, 7) + rng.standard_normal(7)
    y = classes_of(rng, 120, 4)
    X += one_hot(y) @ rng.standard_normal((4, 7))
    return X, y


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("centred", [True, False])
def test_labels(labelled, form, centred):
    X, y = labelled
    curve = alignment(Moments().update(X, y), form, centred=centred)
    assert curve.k == tuple(range(1, 8))
    np.testing.assert_allclose(curve.score, slow(X, one_hot(y), form, centred=centred), rtol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("centred", [True, False])
def test_targets(form, centred):
    rng = np.random.default_rng(1)
    X = correlated(rng, 60, 5)
    Y = X @ rng.standard_normal((5, 2)) + rng.standard_normal((60, 2)) + 3
    curve = alignment(Moments().update(X, targets=Y), form, centred=centred)
    np.testing.assert_allclose(curve.score, slow(X, Y, form, centred=centred), rtol=1e-9)


def test_forms_agree_for_balanced_classes_and_only_for_them(labelled):
    X, y = labelled
    balanced = np.arange(120) % 4
    moments = Moments().update(X, balanced)
    np.testing.assert_allclose(alignment(moments).score, alignment(moments, "equation_7").score, rtol=1e-9)
    uneven = Moments().update(X, y)
    assert np.abs(np.subtract(alignment(uneven).score, alignment(uneven, "equation_7").score)).max() > 1e-3


def test_the_code_s_form_ends_below_one_where_the_readout_is_not_perfect(labelled):
    X, y = labelled
    moments = Moments().update(X, y)
    assert alignment(moments).full == pytest.approx(1)
    assert alignment(moments, "equation_7").full == pytest.approx(1)
    assert alignment(moments, "code").full < 0.99


def test_default_is_the_share_of_r2_that_principal_coordinates_give(labelled):
    X, y = labelled
    Z = (X - X.mean(axis=0)) @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2].T
    Y = one_hot(y)
    r2 = [LinearRegression().fit(Z[:, :k], Y).predict(Z[:, :k]) for k in range(1, 8)]
    explained = [np.sum((Y - Y.mean(0)) ** 2) - np.sum((Y - fit) ** 2) for fit in r2]
    np.testing.assert_allclose(alignment(Moments().update(X, y)).score, np.array(explained) / explained[-1], rtol=1e-9)


def test_partition_and_order_do_not_matter(labelled):
    X, y = labelled
    parts = Moments().update(X[50:], y[50:]).merge(Moments().update(X[:50], y[:50]))
    np.testing.assert_allclose(alignment(parts).score, alignment(Moments().update(X, y)).score, rtol=1e-9)


def test_fewer_rows_than_columns():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((12, 40)), np.arange(12) % 3
    curve = alignment(Moments().update(X, y))
    assert curve.k[-1] == 11
    np.testing.assert_allclose(curve.score, slow(X, one_hot(y), "proof")[:11], rtol=1e-7)


def test_random_labels_give_k_over_rank_and_nothing_after_correction():
    rng = np.random.default_rng(3)
    found = [
        align(principal_axes(Moments().update(correlated(rng, 400, 20, 0.9), rng.integers(0, 5, 400)))).at_share["50 %"]
        for _ in range(40)
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=0.03)


def test_correction_takes_chance_off():
    """Signal in the first axis alone: uncorrected alignment spreads over the noise, corrected does not."""
    rng = np.random.default_rng(4)
    X = correlated(rng, 300, 100, 0.98)
    P = np.linalg.svd(X - X.mean(0), full_matrices=False)[2]
    z = (X - X.mean(0)) @ P[0]
    y = (z + z.std() * rng.standard_normal(300)).round(6)
    found = align(principal_axes(Moments().update(X, targets=y)))
    assert found.at_share["1 %"] < 0.8
    assert found.corrected["1 %"] == pytest.approx(1, abs=0.15)
    assert found.by_chance > found.r2 / 2


def test_readouts_of_any_code_are_least_squares(labelled):
    X, y = labelled
    axes = principal_axes(Moments().update(X, y))
    B = np.random.default_rng(5).standard_normal((4, 7))
    U = axes.whitened(X)
    scores = Readout(axes, axes.basis(B)).scores(U, y, np.array([1, 3, 4]), "r2").mean(axis=0)
    hits = Readout(axes, axes.basis(B)).scores(U, y, np.array([1, 3, 4]), "accuracy")
    for i, k in enumerate((1, 3, 4)):
        Z = X @ B[:k].T
        model = LinearRegression().fit(Z, one_hot(y))
        spread = np.sum((one_hot(y) - one_hot(y).mean(0)) ** 2)
        r2 = 1 - np.sum((one_hot(y) - model.predict(Z)) ** 2) / spread
        assert scores[i] == pytest.approx(r2, rel=1e-9)
        np.testing.assert_array_equal(hits[:, i], np.unique(y)[model.predict(Z).argmax(1)] == y)


def test_bad_input_raises_an_error(labelled):
    X, y = labelled
    with pytest.raises(InvalidInputError, match="labels or targets"):
        alignment(Moments().update(X))
    with pytest.raises(InvalidInputError, match="'form' parameter"):
        alignment(Moments().update(X, y), "equation 8")
    with pytest.raises(InvalidInputError, match="do not vary"):
        alignment(Moments().update(X, np.zeros(120, int)))


@pytest.mark.parametrize(("place", "least", "most"), [(0, 0.9, 1.0), (-1, 0.0, 0.1)])
def test_alignment_follows_where_the_labels_are(place, least, most):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((2000, 20)) * 0.8 ** np.arange(20)
    y = np.where(X[:, place] > 0, "yes", "no")
    assert least <= align(principal_axes(Moments().update(X, y))).at_share["20 %"] <= most
