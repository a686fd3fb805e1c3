"""Alignment of a task: curves against singular vectors over rows, and readouts against fitted regressions."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from firstk_papers.balestriero2024 import task_alignment
from firstk_papers.balestriero2024.task_alignment import at_width, cells, corollary_12, factors, measure, report
from fixtures.small_task import CELL, one_hot, small_task


@pytest.fixture
def rows(monkeypatch):
    found = small_task()
    monkeypatch.setattr(task_alignment, "task", lambda cell: found)
    return found


def test_the_curve_about_the_origin_is_equation_7(rows):
    found = measure(CELL)
    Y = one_hot(rows.y)
    V = np.linalg.svd(rows.X, full_matrices=False)[0]
    parts = np.cumsum(np.sum((Y @ Y.T @ V) ** 2, axis=0))
    expected = (parts / parts[-1])[np.array(found["k"]) - 1]
    np.testing.assert_allclose(found["raw"]["equation_7"], expected, rtol=1e-5)
    np.testing.assert_allclose(found["last_of_code"], parts[-1] / np.sum((Y @ Y.T) ** 2), rtol=1e-9)
    assert found["last"] == pytest.approx(1)


def test_the_proofs_form_is_r2_of_a_regression_on_principal_coordinates(rows):
    found = measure(CELL)
    Y, Z = one_hot(rows.y), PCA().fit_transform(rows.X)

    def explained(k):
        return np.sum((LinearRegression().fit(Z[:, :k], Y).predict(Z[:, :k]) - Y.mean(axis=0)) ** 2)

    expected = [explained(k) / explained(found["rank"]) for k in found["k"]]
    np.testing.assert_allclose(found["centred"]["proof"], expected, rtol=1e-5)


def test_held_out_r2_is_that_of_a_fitted_regression(rows):
    found = measure(CELL)["held_out"]
    pca = PCA().fit(rows.X)
    Z, T = pca.transform(rows.X), pca.transform(rows.X_test)
    for k, r2 in zip(found["k"], found["r2"], strict=True):
        fitted = LinearRegression().fit(Z[:, :k], one_hot(rows.y))
        expected = r2_score(one_hot(rows.y_test), fitted.predict(T[:, :k]), multioutput="variance_weighted")
        assert r2 == pytest.approx(expected, abs=1e-5)


def test_alignment_is_read_at_a_share_of_the_input_dimension():
    found = {"k": [1, 5, 10, 20], "raw": {"equation_7": [0.1, 0.5, 0.8, 1.0]}, "width": 40}
    assert at_width(found, 0.25) == 0.8


def test_forms_differ_where_classes_are_unequal_and_agree_where_they_are_equal(monkeypatch):
    for balanced in (False, True):
        found = small_task(n=320, balanced=balanced)
        monkeypatch.setattr(task_alignment, "task", lambda cell, found=found: found)
        apart = measure(CELL)["forms_apart"]
        assert (apart < 1e-12) is balanced


def test_reports_compare_what_they_say(rows):
    one = measure(CELL)
    names = ("mnist", "fashion-mnist", "cifar10")
    lower = {**one, "raw": {**one["raw"], "equation_7": [value / 2 for value in one["raw"]["equation_7"]]}}
    results = [({**CELL, "set": name}, lower if name == "cifar10" else one) for name in names]
    measures = report({}, results).measures
    assert measures["realistic_deficit"] == pytest.approx(at_width(one, 0.2) / 2, rel=1e-5)
    assert corollary_12({}, results).measures["balanced_forms_apart"] == pytest.approx(one["forms_apart"], rel=1e-5)
    fine, coarse = ({**CELL, "set": "cifar10", "pool": pool} for pool in (1, 2))
    shuffled = ({**fine, "shuffled": True}, {**one, "at_share": {"20 %": 0.21}})
    measures = factors({}, [(fine, lower), (coarse, one), shuffled]).measures
    assert measures["resolution_loss_at_20"] > 0
    assert measures["rows_gain_at_20"] is None
    assert measures["shuffled_at_20"] == 0.21


def test_a_line_of_the_spec_is_a_cell():
    found = cells({"tasks": [{"set": "mnist"}, {"set": "cifar10", "pool": 2, "rows": 9}], "seed": 3})
    assert [(cell["set"], cell["pool"], cell["rows"], cell["seed"]) for cell in found] == [
        ("mnist", 1, None, 3),
        ("cifar10", 2, 9, 3),
    ]
