"""Readouts of single coordinates against scikit-learn, one coordinate at a time."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score

from firstk import PrefixEncoder
from firstk.data import load_digits
from firstk.exceptions import InvalidInputError
from firstk.metrics import axis_probe_accuracy, axis_readout_r2


@pytest.fixture(scope="module")
def codes():
    digits = load_digits()
    enc = PrefixEncoder(12, objective="reconstruction").fit(digits.X_train)
    return enc.transform(digits.X_train), digits.y_train, enc.transform(digits.X_test), digits.y_test


def test_the_probe_is_the_discriminant_rule_of_one_column(codes):
    Z_fit, y_fit, Z, y = codes
    slow = [
        LinearDiscriminantAnalysis(solver="lsqr").fit(Z_fit[:, [j]], y_fit).score(Z[:, [j]], y)
        for j in range(Z.shape[1])
    ]
    np.testing.assert_allclose(axis_probe_accuracy(*codes), slow, atol=1e-12)


def test_the_probe_is_close_to_the_logistic_regression_of_the_paper(codes):
    Z_fit, y_fit, Z, y = codes
    paper = [LogisticRegression(C=1e3).fit(Z_fit[:, [j]], y_fit).score(Z[:, [j]], y) for j in range(Z.shape[1])]
    ours = axis_probe_accuracy(*codes)
    assert np.abs(ours - paper).max() < 0.06
    assert np.corrcoef(ours, paper)[0, 1] > 0.9


def test_labels_may_be_text_and_unknown_ones_are_wrong(codes):
    Z_fit, y_fit, Z, y = codes
    text = axis_probe_accuracy(Z_fit, y_fit.astype(str), Z, y.astype(str))
    np.testing.assert_array_equal(text, axis_probe_accuracy(*codes))
    assert axis_probe_accuracy(Z_fit, y_fit, Z, np.full(len(y), 99)).max() == 0


def test_a_constant_coordinate_names_the_most_frequent_class():
    y = np.array([0, 0, 0, 1])
    assert axis_probe_accuracy(np.ones((4, 1)), y, np.ones((4, 1)), y) == [0.75]


@pytest.mark.parametrize("targets", [1, 3])
def test_readouts_are_those_of_one_column(targets):
    rng = np.random.default_rng(0)
    Z_fit, Z = rng.normal(3, 2, (80, 5)), rng.normal(3, 2, (50, 5))
    mix = rng.normal(size=(5, targets))
    Y_fit, Y = (z @ mix + rng.normal(size=(len(z), targets)) for z in (Z_fit, Z))
    slow = [
        r2_score(Y, LinearRegression().fit(Z_fit[:, [j]], Y_fit).predict(Z[:, [j]]), multioutput="variance_weighted")
        for j in range(5)
    ]
    np.testing.assert_allclose(axis_readout_r2(Z_fit, Y_fit, Z, Y), slow, atol=1e-12)


def test_constant_targets_are_refused():
    with pytest.raises(InvalidInputError, match="targets that vary"):
        axis_readout_r2([[1.0], [2.0]], [1.0, 2.0], [[1.0], [2.0]], [3.0, 3.0])
