"""Nested dropout and its expectation are full prefix with omega the prior."""

import numpy as np
import pytest

from firstk import FullPrefix, Gradient, NestedDropout, PrefixEncoder
from firstk.metrics import paired_cosines

pytest.importorskip("torch")


def test_the_prior_is_that_of_001():
    p = NestedDropout(rho=0.9).prefix_weights(4, None).omega
    np.testing.assert_allclose(p, [0.09, 0.081, 0.0729, 0.7561], rtol=1e-12)


def test_the_expectation_is_full_prefix_with_the_prior_as_omega(known):
    prior = NestedDropout().prefix_weights(4, None).omega
    kwargs = {"solver": Gradient(epochs=50), "init": "random", "random_state": 0}
    nested = PrefixEncoder(4, ordering=NestedDropout(expected=True), **kwargs).fit(known.X)
    full = PrefixEncoder(4, ordering=FullPrefix(prior.tolist()), **kwargs).fit(known.X)
    np.testing.assert_array_equal(nested.components_, full.components_)


def test_draws_find_the_axes(known):
    enc = PrefixEncoder(4, ordering="nested_dropout", init="random", random_state=0).fit(known.X)
    assert enc.encoder_.record.estimator == "sampled"
    assert paired_cosines(enc.components_, known.axes).min() > 0.995
