"""The label-noise check says yes and no: on labels flipped at known rates, and on those that were left alone."""

import numpy as np
import pytest

from firstk.data import load_digits
from firstk_papers.balestriero2024.axes import hold_out
from firstk_papers.balestriero2024.label_noise import flip_variance, look_for_noise
from firstk_papers.datasets import load_banking77


def flipped(y, rate, seed=0):
    """Move a share of the labels to another class, any of them alike."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(y)) < rate
    return np.where(wrong, (y + rng.integers(1, y.max() + 1, len(y))) % (y.max() + 1), y)


def look(X, y):
    evidence = hold_out(X, y)
    return evidence, look_for_noise(evidence)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4])
def test_digits(rate):
    digits = load_digits()
    _, found = look(digits.X, flipped(digits.y, rate))
    assert found.disagreement == pytest.approx(rate, abs=0.02 + 3 * found.error)
    assert found.noisy is (rate > 0)
    assert found.tail_carries_noise is (rate > 0)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4])
def test_banking77(rate, data_folder):
    data = load_banking77(data_folder)
    _, found = look(data.X_train, flipped(data.y_train, rate))
    assert found.disagreement == pytest.approx(rate, abs=0.04)
    assert found.noisy is (rate > 0)
    assert found.tail_carries_noise is (rate > 0)
    # Half of these embeddings' label signal lies past 95 % of the variance: a yes is no advice to cut.
    assert found.tail_gain > 2 * found.tail_error


def test_the_share_of_noise_is_what_the_flips_bring():
    """The noise is known here: project it, and nothing else, on the head and on the tail."""
    digits, rate = load_digits(), 0.3
    truth, shares = digits.y, []
    for seed in range(5):
        y = flipped(truth, rate, seed)
        evidence, found = look(digits.X, y)
        axes = evidence.axes
        one = np.eye(10)
        expected = (1 - rate) * one[truth] + rate / 9 * (1 - one[truth])
        # Rows behind the axes are those not held out.
        every = axes.whitened(digits.X)
        held = {row.tobytes() for row in evidence.U.round(6)}
        rows = np.array([row.tobytes() not in held for row in every.round(6)])
        assert rows.sum() == len(y) - len(evidence.U)
        U, noise = every[rows], (one[y] - expected)[rows]
        parts = np.sum((U.T @ noise / rows.sum()) ** 2, axis=1) / axes.target.spread
        shares.append([parts[found.head :].sum() / found.tail_fit, found.tail_noise])
    true, estimated = np.mean(shares, axis=0)
    assert estimated == pytest.approx(true, rel=0.25)


def test_variance_of_flips():
    y, rate = np.zeros(200_000, dtype=int), 0.3
    y[0] = 4  # five classes
    noisy = np.eye(5)[flipped(y, rate)]
    assert noisy.var(axis=0).sum() == pytest.approx(flip_variance(rate, 5), rel=0.01)
    assert flip_variance(0.0, 5) == 0


def test_hard_classes_are_not_called_noise():
    """Classes that overlap everywhere: neighbors are a poor guide, and the check says that it cannot tell."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 6, 4000)
    X = rng.standard_normal((4000, 10))
    X[:, 0] += 0.8 * y
    _, found = look(X, y)
    assert found.noisy is None
    assert found.tail_carries_noise is None
    assert found.guide < 0.7


def test_a_tail_that_harms_is_to_be_cut():
    """One direction tells the classes; 400 quiet ones can only memorise the rows they were fitted on."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 800)
    X = np.column_stack([3 * y + rng.standard_normal(800), 0.01 * rng.standard_normal((800, 400))])
    _, found = look(X, y)
    assert (found.head, found.tail) == (1, 400)
    assert found.tail_gain < -0.05
    assert found.tail_gain < -2 * found.tail_error


def test_targets_are_judged_by_the_tail_alone():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 8)) * 0.6 ** np.arange(8)
    _, found = look(X, X[:, -1] + 0.01 * rng.standard_normal(500))
    assert found.noisy is None
    assert found.disagreement is None
    assert found.tail_gain > 0.5
