"""k-means on integers: by definition, and whatever the order in which a product adds up."""

from __future__ import annotations

import numpy as np

from firstk.bits.k_means import ENTRIES, as_integers, k_means, means, nearest, runner_up

RNG = np.random.default_rng(0)


def doubled(rows):
    return np.vstack([2 * rows.T, np.ones(len(rows))]).astype(np.float32)


def test_rows_go_to_their_nearest_centroid_and_of_equals_to_the_first():
    rows, centroids = RNG.integers(-50, 50, size=(600, 5)), RNG.integers(-50, 50, size=(16, 5))
    centroids[9] = centroids[4]
    wanted = [min(range(16), key=lambda c, row=row: int(np.square(row - centroids[c]).sum())) for row in rows]
    np.testing.assert_array_equal(nearest(doubled(rows), centroids.astype(np.float64)), wanted)
    assert 4 in wanted
    second = [
        min((c for c in range(16) if c != own), key=lambda c, row=row: int(np.square(row - centroids[c]).sum()))
        for own, row in zip(wanted, rows, strict=True)
    ]
    found = runner_up(rows.astype(np.float64), centroids.astype(np.float64), np.array(wanted))
    np.testing.assert_array_equal(found, second)


def test_distances_on_the_grid_are_exact_in_float32():
    """Every partial sum is an integer below 2^24: permuted columns, another order of adding up, change nothing."""
    rows = as_integers(RNG.normal(size=(2000, 128)) * np.linspace(3, 0.1, 128))[0]
    found, owner = k_means(rows, np.full(2000, 1 / 2000))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(128)
        again, same = k_means(rows[:, order], np.full(2000, 1 / 2000))
        np.testing.assert_array_equal(same, owner)
        np.testing.assert_array_equal(again, found[:, order])
    longest = 2.0**11
    assert 3 * (longest + np.sqrt(128) / 2) ** 2 < 2**24


def test_centroids_move_to_the_means_of_their_rows():
    rows = np.rint(RNG.normal(size=(2000, 3)) * 1000)
    centroids = rows[:ENTRIES]
    owner = ((rows[:, None] - centroids) ** 2).sum(axis=2).argmin(axis=1)
    share = RNG.uniform(0.5, 2, 2000)
    moved = means(rows.T, share, owner, centroids)
    for c in np.unique(owner):
        mean = np.average(rows[owner == c], axis=0, weights=share[owner == c])
        np.testing.assert_allclose(moved[c], mean, atol=0.5 + 1e-6)


def test_a_centroid_without_rows_moves_to_the_row_that_is_furthest_from_its_own():
    rows = np.vstack([np.zeros((300, 2)), [[0.0, 50.0]], [[9.0, 0.0]]])
    centroids = np.vstack([np.zeros((1, 2)), np.full((ENTRIES - 1, 2), 1e6)])
    share, owner = np.full(len(rows), 1 / len(rows)), np.zeros(len(rows), int)
    np.testing.assert_array_equal(means(rows.T, share, owner, centroids)[1:3], [[0.0, 50.0], [9.0, 0.0]])
    np.testing.assert_array_equal(means(rows.T, share, owner, centroids, fill=False)[1:], centroids[1:])


def test_k_means_finds_groups():
    groups = RNG.normal(size=(ENTRIES, 4)) * 1000
    rows = np.rint(np.repeat(groups, 20, axis=0) + RNG.normal(size=(20 * ENTRIES, 4)))
    found, owner = k_means(rows, np.full(len(rows), 1 / len(rows)))
    apart = np.square(rows - found[owner]).sum(axis=1)
    assert np.median(apart) < 50  # most groups have a centroid of their own; the others share one with a neighbor
    assert apart.mean() < 0.05 * np.square(rows - rows.mean(axis=0)).sum(axis=1).mean()
