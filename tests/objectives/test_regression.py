"""Regression: no other code reads the targets off better at any prefix."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder, Regression
from slow_reference import correlated, perturbations, residual


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = correlated(rng, 120, 7) + 2.0
    return X, X @ rng.standard_normal((7, 4)) * [4, 2, 1, 1] + rng.standard_normal((120, 4)) - 9.0


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
def test_no_perturbation_reads_better(data, k):
    X, Y = data
    enc = PrefixEncoder(7, objective="regression").fit(X, Y)
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    best = residual(Yc, Xc @ enc.components_[:k].T)
    others = residual(Yc, Xc @ perturbations(enc.components_[:k], np.random.default_rng(1)).swapaxes(1, 2))
    assert others.min() >= best - 1e-11
    assert others.max() > best + 1e-3
    own = np.sum((Y - enc.predict(X, k=k)) ** 2) / len(Y)
    assert own == pytest.approx(best, abs=1e-10)


def test_none_keeps_the_rank_of_the_targets(data):
    X, Y = data
    assert PrefixEncoder(objective="regression").fit(X, Y).n_components_ == 4
    assert PrefixEncoder(objective="regression").fit(X, Y[:, :2] @ np.ones((2, 3))).n_components_ == 1
    one = PrefixEncoder(objective="regression").fit(X, Y[:, 0])
    assert one.n_components_ == 1
    assert one.predict(X).shape == (120,)


def test_full_width_is_ordinary_least_squares(data):
    X, Y = data
    design = np.column_stack([np.ones(120), X])
    expected = design @ np.linalg.lstsq(design, Y, rcond=None)[0]
    np.testing.assert_allclose(PrefixEncoder(objective="regression").fit(X, Y).predict(X), expected, atol=1e-9)


def test_shrinkage_is_ridge_regression_at_full_width(data):
    X, Y = data
    a, p = 0.3, 7
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    St = Xc.T @ Xc / 120
    N = (1 - a) * St + a * np.trace(St) / p * np.eye(p)
    expected = Y.mean(axis=0) + Xc @ np.linalg.solve(N, Xc.T @ Yc / 120)
    enc = PrefixEncoder(objective=Regression(shrinkage=a)).fit(X, Y)
    np.testing.assert_allclose(enc.predict(X), expected, atol=1e-9)


def test_axes_past_the_targets_do_not_change_the_prediction(data):
    X, Y = data
    enc = PrefixEncoder(7, objective="regression").fit(X, Y)
    for k in (5, 6, 7):
        np.testing.assert_allclose(enc.predict(X, k=k), enc.predict(X, k=4), atol=1e-9)
    # They are St-orthogonal and descend by the variance they carry per unit length.
    carried = 1 / np.sum(enc.components_[4:] ** 2, axis=1)
    assert (np.diff(carried) < 0).all()


def test_whole_numbers_are_numbers(data):
    X, Y = data
    whole = np.round(Y * 10).astype(int)
    a = PrefixEncoder(objective="regression").fit(X, whole)
    b = PrefixEncoder(objective="regression").fit(X, whole.astype(float))
    np.testing.assert_array_equal(a.components_, b.components_)


def test_float32_rows_with_a_target_far_from_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 8))
    Y = np.column_stack([1e7 + X @ rng.normal(size=8), X @ rng.normal(size=8)])
    enc = PrefixEncoder(objective="regression").fit(X.astype(np.float32), Y)
    assert enc.n_components_ == 2
    np.testing.assert_allclose(enc.predict(X) - [1e7, 0], Y - [1e7, 0], atol=1e-4)
