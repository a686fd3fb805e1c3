"""scikit-learn's own checks, for every closed-form objective and for training."""

import importlib.util

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from firstk import Classification, Denoising, Fisher, GaussianNoise, Gradient, PrefixEncoder, Similarity

ENCODERS = [
    PrefixEncoder(),
    PrefixEncoder(objective="fisher"),
    PrefixEncoder(objective=Fisher(shrinkage=0.1)),
    PrefixEncoder(objective="regression"),
    PrefixEncoder(objective="mixture"),
    PrefixEncoder(objective="denoising"),
    PrefixEncoder(objective=Denoising(noise=GaussianNoise(0.5))),
    PrefixEncoder(objective="similarity"),
    PrefixEncoder(objective=Similarity(keep="dot_products")),
]

if importlib.util.find_spec("torch") is not None:
    ENCODERS += [
        PrefixEncoder(solver=Gradient(epochs=5)),
        PrefixEncoder(objective="fisher", solver=Gradient(epochs=5)),
        PrefixEncoder(objective=Classification(0.5), solver=Gradient(epochs=2)),
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
