"""Alignment under a noise: against a regression on codes of clean rows, solved from the whole pencil."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from firstk import PrefixEncoder
from firstk.objectives import Denoising, GaussianNoise, Masking
from firstk.solvers import ClosedForm
from firstk_papers.balestriero2024 import masking_alignment
from firstk_papers.balestriero2024.masking_alignment import cells, effects, measure, noise_of, report
from fixtures.small_task import CELL, one_hot, small_task

NOISES = [{"patch": 2, "dropped": 0.0}, {"patch": 2, "dropped": 0.6}]


@pytest.fixture
def rows(monkeypatch):
    found = small_task()
    monkeypatch.setattr(masking_alignment, "task", lambda cell: found)
    return found


def test_alignment_under_masking_is_r2_on_clean_codes(rows):
    found = measure({**CELL, "centred": True, "noises": NOISES, "most": 8})
    X, Y = rows.X - rows.X.mean(axis=0), one_hot(rows.y)
    noise = noise_of(NOISES[1], X.T @ X / len(X), rows.shape)
    codes = PrefixEncoder(8, objective=Denoising(noise), solver=ClosedForm("float64")).fit_transform(rows.X)

    def explained(Z):
        return np.sum((LinearRegression().fit(Z, Y).predict(Z) - Y.mean(axis=0)) ** 2)

    expected = [explained(codes[:, :k]) / explained(X) for k in found["k"]]
    np.testing.assert_allclose(found["under"][1]["alignment"], expected, atol=2e-4)
    np.testing.assert_allclose(found["under"][0]["alignment"], found["plain"]["alignment"], rtol=1e-5)


def test_about_the_origin_readouts_have_no_intercept(rows):
    found = measure({**CELL, "centred": False, "noises": NOISES[:1], "most": 8})
    U = np.linalg.svd(rows.X, full_matrices=False)[0]
    parts = np.cumsum(np.sum((U.T @ one_hot(rows.y)) ** 2, axis=1))
    np.testing.assert_allclose(found["plain"]["alignment"], (parts / parts[-1])[np.array(found["k"]) - 1], rtol=1e-5)


def test_accuracy_is_of_test_rows(rows):
    found = measure({**CELL, "centred": True, "noises": [{"sigma": 1.0}], "most": 16})
    whole = LinearRegression().fit(rows.X, one_hot(rows.y)).predict(rows.X_test).argmax(axis=1)
    assert found["plain"]["accuracy"][-1] == pytest.approx(np.mean(whole == rows.y_test), abs=1e-6)


def test_noises_of_a_cell():
    St = np.diag([1.0, 3.0, 2.0, 2.0])
    assert noise_of({"sigma": 2.0}, St, None) == GaussianNoise(sigma=2 * np.sqrt(2.0))
    assert noise_of({"patch": 2, "dropped": 0.25}, St, (2, 2)) == Masking(keep=0.75, patches=(0, 0, 0, 0))


def test_changes_are_relative_to_plain_alignment_and_the_best_mask_is_found():
    settings = {
        "tasks": [{"set": "mnist"}], "patches": [1, 2], "dropped": [0.0, 0.5], "sigmas": [1.0], "raw": [], "most": 4,
        "seed": 0,
    }  # fmt: skip
    plain = {"alignment": [0.2, 0.4], "accuracy": [0.1, 0.1]}
    better = {"alignment": [0.3, 0.4], "accuracy": [0.2, 0.1]}
    worse = {"alignment": [0.1, 0.4], "accuracy": [0.1, 0.1]}
    found = [[plain, worse], [plain, better], [plain]]
    results = [
        (cell, {"k": [4, 64], "plain": plain, "under": under})
        for cell, under in zip(cells(settings), found, strict=True)
    ]
    assert [effect.change.round(6).tolist() for effect in effects(results)][1] == [-0.5, 0.0]
    measures = report(settings, results).measures
    assert (measures["mnist_best_patch"], measures["mnist_best_less_at_large"]) == (2, 0.5)
    assert measures["mnist_patch1_greatest"] == 0
    assert measures["mnist_best_accuracy_gain"] == pytest.approx(0.05)
    assert measures["mnist_gaussian"] == measures["mnist_no_mask"] == 0
