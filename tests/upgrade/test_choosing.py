"""The translation to recommend: the first, unless queries clearly prefer another; its gain is cross-fitted."""

import numpy as np
import pytest

from firstk.quality.paired import DEVIATIONS, DRAWS, SAME
from firstk.upgrade.evaluate import cross_fitted, preferred


def slow_preferred(values, weights):
    """The rule, by a loop over columns and draws."""
    means = [np.average(column, weights=weights) for column in values.T]
    best = int(np.argmax(means))
    if means[best] - means[0] <= SAME:
        return 0
    rng, ahead = np.random.default_rng(0), []
    for _ in range(DRAWS):
        rows = rng.integers(len(values), size=len(values))
        ahead.append(np.average(values[rows, best] - values[rows, 0], weights=weights[rows]))
    if means[best] - means[0] <= DEVIATIONS * np.std(ahead):
        return 0
    return next(column for column in range(1, len(means)) if means[column] >= means[best] - SAME)


@pytest.mark.parametrize("lead", [0.0, 0.02, 0.1])
def test_the_rule_is_that_of_a_loop(lead):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = rng.random((50, 6)) + lead * np.arange(6)
        weights = rng.random(50)
        assert preferred(values, weights) == slow_preferred(values, weights)
        assert preferred(values) == slow_preferred(values, np.ones(50))


def test_chance_seldom_replaces_the_first():
    taken = [preferred(np.random.default_rng(seed).random((200, 2))) for seed in range(400)]
    assert np.mean(taken) < 0.05  # one of two is ahead by two standard errors in 2.3 % of draws
    assert preferred(np.zeros((0, 3))) == 0
    assert preferred(np.ones((4, 3)), np.zeros(4)) == 0


def test_what_is_clearly_better_is_taken_by_both_halves():
    values = np.random.default_rng(0).random((300, 3)) + np.array([0.0, 0.5, 0.2])
    assert preferred(values) == 1
    np.testing.assert_array_equal(cross_fitted(values), values[:, 1])


def test_a_cross_fitted_gain_has_no_optimism():
    """Of columns that are alike, the best of a hundred looks better than it is; not so if the other half chooses."""
    chosen, honest = [], []
    for seed in range(300):
        values = np.random.default_rng(seed).normal(size=(60, 100))
        chosen.append(values[:, preferred(values)].mean())
        honest.append(cross_fitted(values).mean())
    error = np.std(honest) / np.sqrt(len(honest))
    assert abs(np.mean(honest)) < 4 * error
    assert np.mean(chosen) > 10 * error


def test_last_digits_prefer_nothing():
    values = np.random.default_rng(0).random((50, 1)) + np.array([0.0, 0.3, 0.3 + 1e-15, 0.3 - 1e-15])
    assert {preferred(values[:, [0, *order]]) for order in [(1, 2, 3), (2, 3, 1), (3, 1, 2)]} == {1}
    assert preferred(values[:, 1:]) == 0
