"""Error bound: the criterion against loops over pairs of classes, and codes that no rotation improves."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import ErrorBound, Fisher, PrefixEncoder, QuasiNewton, SparsePrefix
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.objectives.error_bound import PairwiseBound
from slow_reference import class_scatters, correlated

# Steps until nothing changes; the default stops where a loss is known to a millionth.
TIGHT = QuasiNewton(max_iter=5000, tolerance=1e-15)
SHARES = np.array([0.4, 0.3, 0.2, 0.06, 0.04])


@pytest.fixture(scope="module")
def data():
    """Five classes, two of them far away from the rest, so that Fisher's first axis tells only these apart."""
    rng = np.random.default_rng(0)
    y = rng.choice(5, size=600, p=SHARES)
    means = 1.2 * rng.standard_normal((5, 8))
    means[3:, 0] += 12.0
    return correlated(rng, 600, 8) + means[y] + 5.0, y


def slow_losses(means, shares, Q):
    """The logarithm of the bound for every prefix, by loops over pairs."""
    codes, found = means @ Q, []
    for k in range(Q.shape[1] + 1):
        total = 0.0
        for c in range(len(means)):
            for other in range(c):
                squared = sum((codes[c, i] - codes[other, i]) ** 2 for i in range(k))
                total += np.sqrt(shares[c] * shares[other]) * np.exp(-squared / 8)
        found.append(np.log(total))
    return np.array(found)


def bound_of(enc, X, y, a):
    """The losses of the prefixes of an encoder, from rows, with N as the objective has it."""
    Sw, _Sb = class_scatters(X, y)
    N = (1 - a) * Sw + a * np.trace(Sw) / X.shape[1] * np.eye(X.shape[1])
    np.testing.assert_allclose(enc.components_ @ N @ enc.components_.T, np.eye(len(enc.components_)), atol=1e-8)
    means = np.array([X[y == c].mean(axis=0) for c in range(5)]) @ enc.components_.T
    return slow_losses(means, np.bincount(y) / len(y), np.eye(len(enc.components_)))


def test_losses_and_gradient_are_those_of_loops_over_pairs():
    rng = np.random.default_rng(1)
    means, Q = rng.standard_normal((5, 4)), np.linalg.qr(rng.standard_normal((4, 3)))[0]
    bound, omega = PairwiseBound(means, SHARES), np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(bound.losses(Q), slow_losses(means, SHARES, Q), rtol=1e-12)
    value, gradient = bound.weighted(Q, omega)
    assert value == pytest.approx(omega @ slow_losses(means, SHARES, Q)[1:], rel=1e-12)
    for place in np.ndindex(Q.shape):
        step = np.zeros_like(Q)
        step[place] = 1e-6
        slope = omega @ (slow_losses(means, SHARES, Q + step) - slow_losses(means, SHARES, Q - step))[1:] / 2e-6
        assert gradient[place] == pytest.approx(slope, abs=1e-8)


def test_classes_a_million_deviations_apart_do_not_underflow():
    bound = PairwiseBound(np.array([[0.0, 0.0], [1e6, 0.0], [1e6, 3.0]]), np.full(3, 1 / 3))
    value, gradient = bound.weighted(np.eye(2), np.array([0.5, 0.5]))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("shrinkage", [0.2, None, 1.0])
def test_no_rotation_of_neighboring_axes_lowers_the_loss(data, shrinkage):
    X, y = data
    enc = PrefixEncoder(objective=ErrorBound(shrinkage=shrinkage), solver=TIGHT).fit(X, y)
    assert enc.n_components_ == 4
    weights = 1 / np.arange(1, 5)
    best = bound_of(enc, X, y, shrinkage or 0.0)
    means = np.array([X[y == c].mean(axis=0) for c in range(5)]) @ enc.components_.T
    for i in range(3):
        for angle in (-0.1, 0.1):
            Q = np.eye(4)
            Q[i : i + 2, i : i + 2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            turned = slow_losses(means, np.bincount(y) / len(y), Q)
            assert weights @ turned[1:] >= weights @ best[1:] - 1e-6


def test_short_prefixes_have_a_lower_bound_than_those_of_fisher(data):
    X, y = data
    ours = PrefixEncoder(objective=ErrorBound(0.2)).fit(X, y)
    fishers = PrefixEncoder(objective=Fisher(0.2)).fit(X, y)
    found, theirs = bound_of(ours, X, y, 0.2), bound_of(fishers, X, y, 0.2)
    assert (found[1:3] < theirs[1:3] - 0.1).all(), "one axis for two far classes is one axis lost for the others"
    assert found[4] == pytest.approx(theirs[4], abs=1e-9), "all discriminants span the same space"


def test_the_spectrum_is_what_each_coordinate_takes_off_the_loss(data):
    X, y = data
    enc = PrefixEncoder(objective="error_bound").fit(X, y)
    np.testing.assert_allclose(enc.spectrum_, -np.diff(bound_of(enc, X, y, 0.2)), atol=1e-7)
    assert (enc.spectrum_ > 0).all()


def test_predictions_are_those_of_the_gaussian_rule(data):
    X, y = data
    enc = PrefixEncoder(objective="error_bound").fit(X, y)
    Z, shares = enc.transform(X, 2), np.bincount(y) / len(y)
    means = np.array([Z[y == c].mean(axis=0) for c in range(5)])
    scores = np.log(shares) - np.square(Z[:, None] - means).sum(axis=2) / 2
    np.testing.assert_array_equal(enc.predict(X, k=2), scores.argmax(axis=1))


def test_parts_merge_to_the_same_axes(data):
    X, y = data
    whole = PrefixEncoder(objective="error_bound").fit(X, y)
    parts = PrefixEncoder(objective="error_bound").partial_fit(X[:200], y[:200])
    parts.merge(PrefixEncoder(objective="error_bound").partial_fit(X[200:], y[200:]))
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-4)


def test_codes_longer_than_the_discriminants_go_on_as_fisher_does(data):
    X, y = data
    long = PrefixEncoder(7, objective=ErrorBound(0.2)).fit(X, y)
    fishers = PrefixEncoder(7, objective=Fisher(0.2)).fit(X, y)
    np.testing.assert_allclose(long.components_[4:], fishers.components_[4:], atol=1e-8)
    assert long.encoder_.pinned == 4
    assert (long.spectrum_[4:] == 0).all()


def test_a_list_of_lengths_weights_these_alone(data):
    X, y = data
    listed = PrefixEncoder(objective=ErrorBound(0.2), ordering=SparsePrefix([2])).fit(X, y)
    every = PrefixEncoder(objective=ErrorBound(0.2)).fit(X, y)
    assert bound_of(listed, X, y, 0.2)[2] <= bound_of(every, X, y, 0.2)[2] + 1e-9


def test_auto_settles_a_shrinkage_by_the_codes_themselves(data):
    X, y = data
    enc = PrefixEncoder(objective=ErrorBound(shrinkage="auto")).fit(X, y)
    assert enc.objective_.shrinkage in (0.1, 0.3, 0.5, 0.7, 0.9)
    again = PrefixEncoder(objective=ErrorBound(shrinkage=enc.objective_.shrinkage)).fit(X, y)
    np.testing.assert_array_equal(again.components_, enc.components_)


def test_saved_and_loaded_it_gives_the_same_codes(data, tmp_path):
    X, y = data
    enc = PrefixEncoder(objective="error_bound").fit(X, y)
    enc.save(tmp_path / "model")
    found = PrefixEncoder.load(tmp_path / "model")
    np.testing.assert_array_equal(found.transform(X), enc.transform(X))
    assert found.solver_ == "quasi_newton"


def test_wrong_use_is_an_error_with_the_way_out(data):
    X, y = data
    with pytest.raises(IllegalCombinationError, match="objective='classification'"):
        PrefixEncoder(objective="error_bound", solver="gradient").fit(X, y)
    with pytest.raises(IllegalCombinationError, match="objective='classification'"):
        PrefixEncoder(objective="error_bound", network="mlp").fit(X, y)
    with pytest.raises(InvalidInputError, match="at least two classes"):
        PrefixEncoder(objective="error_bound").fit(X, np.zeros(len(X)))
    with pytest.raises(InvalidInputError, match="shrinkage"):
        PrefixEncoder(objective=ErrorBound(shrinkage=2.0)).fit(X, y)
