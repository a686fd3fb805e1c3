"""scikit-learn's own checks, for every closed-form objective."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from firstk import Denoising, Fisher, GaussianNoise, PrefixEncoder, Similarity

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


@pytest.mark.filterwarnings("ignore::firstk._checks.RankWarning")
@parametrize_with_checks(ENCODERS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
