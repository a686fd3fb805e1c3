"""Errors and readings of rebuilt digits, against slow and obvious ways."""

from __future__ import annotations

import numpy as np
import pytest

from firstk_papers.talukder2026 import digit_reconstructions as digits

CELL = {"d": 3, "learning_rate": 0.01, "weight_decay": 0.0, "batch_size": 50, "epochs": 40, "seed": 0}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    return ((rng.normal(size=(500, 8)) * 0.5 ** np.arange(8)) @ basis + 0.3).astype(np.float32)


@pytest.fixture(scope="module")
def encoders(X):
    pytest.importorskip("torch")
    return {method: digits.fitted(CELL | {"method": method}, X) for method in ("full_prefix", "unordered", "solved")}


def test_telling_is_hits_less_false_alarms():
    y = np.array([3, 3, 8, 8, 1, 1])
    assert digits.told(y, y, [3, 8]) == 1
    assert digits.told(np.full(6, 8), y, [3, 8]) == 0  # a blur that is always read as 8
    read = np.array([3, 8, 8, 8, 8, 1])  # 3: 1/2 - 0; 8: 1 - 2/4
    assert digits.told(read, y, [3, 8]) == pytest.approx(0.5)


@pytest.mark.parametrize("method", ["full_prefix", "unordered", "solved"])
def test_errors_are_those_of_the_pictures(X, encoders, method):
    encoder = encoders[method]
    Z = encoder.transform(X)
    mean = encoder.encoder_.mean
    slow = [np.sum((X - encoder.inverse_transform(Z[:, :k])) ** 2) / np.sum((X - mean) ** 2) for k in (1, 2, 3)]
    np.testing.assert_allclose(digits.left_over(X, mean, Z, encoder.decoder_), slow, rtol=1e-4)


def test_training_with_every_prefix_finds_the_axes_and_without_order_does_not(X, encoders):
    left = {
        method: digits.left_over(X, encoder.encoder_.mean, encoder.transform(X), encoder.decoder_)
        for method, encoder in encoders.items()
    }
    np.testing.assert_allclose(left["full_prefix"], left["solved"], atol=0.01)
    assert left["unordered"][0] > left["solved"][0] + 0.01
    assert left["unordered"][-1] < left["solved"][-1] + 0.05


def test_pictures_are_bytes_of_the_image():
    text = digits._bytes(np.array([-0.2, 0.0, 0.5, 1.0, 1.7]))
    assert list(bytes.fromhex(text)) == [0, 0, 128, 255, 255]


def test_the_report_compares_errors_at_each_prefix():
    settings = {"prefixes": [2, 3], "digits": [3]}
    lefts = {"unordered": [0.9, 0.8, 0.2], "full_prefix": [0.7, 0.4, 0.3], "solved": [0.7, 0.39, 0.2]}
    results = [
        ({"method": method}, {"left": left, "told": [0.2, 0.6], "told_as_they_are": 0.9, "originals": ["00" * 784],
                              "pictures": [["00" * 784] * 2]})
        for method, left in lefts.items()
    ]  # fmt: skip
    measures = digits.report(settings, results).measures
    assert measures["least_error_saved_below_full_width"] == pytest.approx(0.4)
    assert measures["largest_excess_over_solved"] == pytest.approx(0.1)
    assert measures["full_prefix_largest_rise_of_error"] == pytest.approx(-0.1)
