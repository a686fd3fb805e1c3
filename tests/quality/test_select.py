"""One selection: the simplest that is level with the best, and no other constants than those of `paired`."""

import numpy as np
import pytest

from firstk.quality.paired import DEVIATIONS, TOLERANCE, select

RNG = np.random.default_rng(0)


def slow_choice(rows, order, most):
    """Choose from scores by row (C, n), with errors of paired differences in closed form, one candidate at a time."""
    means = [row.mean() for row in rows]
    best = max(range(len(rows)), key=lambda i: means[i])
    level = []
    for i, row in enumerate(rows):
        loss, error = means[best] - means[i], np.std(rows[best] - row) / np.sqrt(len(row))
        if loss <= 5e-4 or (loss <= most and loss <= DEVIATIONS * error):
            level.append(i)
    simplest = min(order[i] for i in level)
    good = [i for i in level if order[i] == simplest]
    return next(i for i in good if means[i] >= max(means[j] for j in good) - 5e-4)


@pytest.mark.parametrize("most", [0.0, TOLERANCE, 0.05])
@pytest.mark.parametrize("seed", range(6))
def test_the_choice_is_that_of_plain_loops(seed, most):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=400)
    rows = np.array([0.5 + shift + 0.2 * shared + 0.05 * rng.normal(size=400) for shift in (0, 0.003, 0.004, -0.02)])
    counts = np.random.default_rng(1).multinomial(400, np.full(400, 1 / 400), size=4000)
    order = rng.permutation([0, 1, 1, 2])
    found = select(rows.mean(axis=1), rows @ counts.T / 400, order=order, most=most)
    assert found.chosen == slow_choice(rows, order, most)


def noisy(*means, error=0.01):
    """Scores with draws that are noisy one by one, so that only large differences are clear."""
    return np.array(means), np.array(means)[:, None] + error * RNG.normal(size=(len(means), 500))


@pytest.mark.parametrize(
    ("means", "order", "expected"),
    [
        ((0.800, 0.804), None, 0),  # behind by less than the tolerance, and by less than noise: the first is simpler
        ((0.790, 0.804), None, 1),  # by more than the tolerance
        ((0.800, 0.804), (1, 0), 1),
        ((0.800, 0.804), (0, 0), 1),  # equally simple: the better
        ((0.8040, 0.8043), (0, 0), 0),  # and the first of equals
    ],
)
def test_level_and_simple(means, order, expected):
    assert select(*noisy(*means), order=order).chosen == expected


def test_a_clear_loss_is_not_level_however_small():
    means, _ = noisy(0.801, 0.804)
    assert select(means, means[:, None] + 1e-5 * RNG.normal(size=(2, 500))).chosen == 1


def test_the_last_digit_chooses_nothing():
    for last in (-1e-16, 0.0, 1e-16):
        assert select([0.8, 0.8 + last, 0.7], np.zeros((3, 0))).chosen == 0
