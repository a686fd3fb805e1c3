"""Budgets over many codes, against exhaustive search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from firstk import PrefixCurve, allocate
from firstk.encoder.budget import concave_vertices
from firstk.exceptions import InvalidInputError


def exhaustive(curves, budget, weights):
    """Return the best weighted sum of scores of all sizes 0, 1, 2, ... whose total is within the budget."""
    best = -np.inf
    for sizes in itertools.product(*(range(len(curve)) for curve in curves)):
        if sum(sizes) <= budget:
            best = max(best, sum(w * c[k] for w, c, k in zip(weights, curves, sizes, strict=True)))
    return best


def concave(rng, n):
    return np.concatenate([[0.0], np.cumsum(np.sort(rng.random(n))[::-1])])


@pytest.mark.parametrize("seed", range(8))
def test_concave_curves_get_the_best_of_all_allocations(seed):
    rng = np.random.default_rng(seed)
    curves = [concave(rng, n) for n in (3, 5, 4)]
    weights = rng.random(3)
    for budget in range(13):
        found = allocate(curves, budget, weights=weights)
        assert found.score == pytest.approx(exhaustive(curves, budget, weights), abs=1e-12)
        assert found.total == sum(found.sizes.values()) <= budget
        assert found.score == pytest.approx(
            sum(w * c[found.sizes[j]] for j, (c, w) in enumerate(zip(curves, weights, strict=True)))
        )


@pytest.mark.parametrize("seed", range(8))
def test_other_curves_lose_at_most_one_step(seed):
    rng = np.random.default_rng(seed)
    curves = [np.concatenate([[0.0], np.cumsum(rng.random(n))]) for n in (4, 5, 3)]
    step = max(
        np.diff(c[concave_vertices(np.arange(len(c)), c)]).max() for c in curves
    )  # the gain between two vertices of an envelope
    for budget in range(13):
        found = allocate(curves, budget)
        assert found.total <= budget
        assert found.score >= exhaustive(curves, budget, np.ones(3)) - step - 1e-12


def test_more_budget_keeps_what_less_gave():
    rng = np.random.default_rng(0)
    curves = {"a": concave(rng, 6), "b": concave(rng, 6)}
    before = {"a": 0, "b": 0}
    for budget in range(13):
        sizes = allocate(curves, budget).sizes
        assert all(sizes[name] >= before[name] for name in sizes)
        before = sizes


def test_coordinates_that_do_harm_are_not_given():
    assert allocate([[0.0, 0.5, 0.4, 0.3]], 3).sizes == {0: 1}


def test_a_step_that_does_not_fit_is_taken_in_part():
    # The envelope leads from 0 straight to 4; with 3 the best point on the way is 2.
    curve = [0.0, 0.1, 0.3, 0.25, 1.0]
    assert allocate([curve], 3).sizes == {0: 2}
    assert allocate([curve], 4).sizes == {0: 4}


def test_curves_of_prefixes_start_at_their_first_k_and_losses_are_lowered():
    rising = PrefixCurve(k=[2, 4, 8], score=[0.4, 0.7, 0.8], metric="accuracy")
    falling = PrefixCurve(k=[1, 2, 3], score=[5.0, 1.0, 0.9], metric="loss", higher_is_better=False)
    assert allocate({"a": rising, "b": falling}, 3).sizes == {"a": 2, "b": 1}
    assert allocate({"a": rising, "b": falling}, 4).sizes == {"a": 2, "b": 2}


def test_sizes_may_be_bytes():
    found = allocate([([8, 16, 32], [0.5, 0.7, 0.8]), ([8, 16, 32], [0.1, 0.6, 0.9])], 48)
    assert found.sizes == {0: 16, 1: 32}


def test_weights_decide():
    curves = {"often": [0.0, 0.1, 0.2], "rare": [0.0, 0.4, 0.8]}
    assert allocate(curves, 2).sizes == {"often": 0, "rare": 2}
    assert allocate(curves, 2, weights={"rare": 0.1, "often": 1.0}).sizes == {"often": 2, "rare": 0}


@pytest.mark.parametrize(
    ("curves", "budget", "weights", "words"),
    [
        ([], 3, None, "at least one curve"),
        ([[0.0, np.nan]], 3, None, "finite"),
        ([([2, 1], [0.1, 0.2])], 3, None, "grow"),
        ([([0, 1.5], [0.1, 0.2])], 3, None, "whole numbers"),
        ([([4, 8], [0.1, 0.2])], 3, None, "at least 4"),
        ([[0.0, 1.0]], 1.5, None, "budget"),
        ([[0.0, 1.0]], 1, [-1.0], "weights"),
        ([[0.0, 1.0]], 1, [1.0, 2.0], "weights"),
        ({"a": [0.0, 1.0]}, 1, {"b": 1.0}, "weights"),
        (["abc"], 1, None, "PrefixCurve"),
    ],
)
def test_bad_input(curves, budget, weights, words):
    with pytest.raises(InvalidInputError, match=words):
        allocate(curves, budget, weights=weights)
