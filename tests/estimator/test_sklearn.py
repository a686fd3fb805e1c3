"""scikit-learn's own checks, for every closed-form objective and for training."""

import importlib.util

import numpy as np
import pytest
import sklearn
from sklearn.utils.estimator_checks import parametrize_with_checks

from firstk import Classification, Denoising, Fisher, GaussianNoise, Gradient, PrefixEncoder, Similarity

ENCODERS = [
    PrefixEncoder(),
    PrefixEncoder(objective=Fisher(shrinkage=0.1)),
    PrefixEncoder(objective="regression"),
    PrefixEncoder(objective="similarity"),
]
# They take the same ways through the estimator.
OTHERS = [
    PrefixEncoder(objective=Fisher(None)),
    PrefixEncoder(objective="mixture"),
    PrefixEncoder(objective="denoising"),
    PrefixEncoder(objective=Denoising(noise=GaussianNoise(0.5))),
    PrefixEncoder(objective=Similarity(keep="dot_products")),
]

if importlib.util.find_spec("torch") is not None:
    ENCODERS.append(PrefixEncoder(objective=Classification(0.5), solver=Gradient(epochs=2)))
    OTHERS += [
        PrefixEncoder(solver=Gradient(epochs=5)),
        PrefixEncoder(objective=Fisher(None), solver=Gradient(epochs=5)),
    ]


def drawn_weights(estimator):
    """On rows a weight is the probability of being drawn, which equals repetition in expectation only."""
    if getattr(estimator.objective, "name", "") != "classification":
        return {}
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": "rows are drawn by weight" for kind in kinds}


@pytest.mark.filterwarnings("ignore::firstk.exceptions.RankWarning")
@pytest.mark.filterwarnings("ignore::firstk.exceptions.LabelsWarning")  # some checks take classes as any y
@parametrize_with_checks(ENCODERS, expected_failed_checks=drawn_weights)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::firstk.exceptions.RankWarning")
@pytest.mark.filterwarnings("ignore::firstk.exceptions.LabelsWarning")
@parametrize_with_checks(OTHERS, expected_failed_checks=drawn_weights)
def test_scikit_learn_checks_of_others(estimator, check):
    check(estimator)


@pytest.mark.parametrize("library", ["pandas", "polars lists", "polars arrays"])
def test_a_series_of_vectors_is_their_rows(library):
    frames = pytest.importorskip(library.split()[0])
    X = np.random.default_rng(0).normal(size=(60, 5))
    rows = {"pandas": lambda: list(X), "polars lists": X.tolist, "polars arrays": lambda: X}[library]()
    series = frames.Series(rows) if library == "pandas" else frames.Series("vectors", rows)
    whole, enc = PrefixEncoder().fit(X), PrefixEncoder().fit(series)
    assert enc.n_features_in_ == 5
    np.testing.assert_allclose(enc.transform(series), whole.transform(X), atol=1e-6)
    pairs = PrefixEncoder(objective="similarity").fit_pairs(series, series)
    assert pairs.n_features_in_ == 5
    numbers = frames.Series([1.0, 2.0, 3.0]) if library == "pandas" else frames.Series("x", [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="Expected 2D array"):
        PrefixEncoder().fit(numbers)


def test_tensors_under_array_api_dispatch():
    torch = pytest.importorskip("torch", reason="needs the extra 'torch'")
    X, y = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32), np.arange(60) % 3
    with sklearn.config_context(array_api_dispatch=True):
        enc = PrefixEncoder(objective="fisher").fit(torch.tensor(X), torch.tensor(y))
        codes, labels = enc.transform(torch.tensor(X)), enc.predict(torch.tensor(X))
    expected = PrefixEncoder(objective="fisher").fit(torch.tensor(X), torch.tensor(y))  # without dispatch
    np.testing.assert_array_equal(codes, expected.transform(torch.tensor(X)))
    np.testing.assert_array_equal(labels, expected.predict(torch.tensor(X)))
