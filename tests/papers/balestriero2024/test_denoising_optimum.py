"""Drawn noise against its moments, and the expected loss against losses of drawn rows."""

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.objectives import Denoising, GaussianNoise, Masking
from firstk_papers.balestriero2024 import denoising_optimum
from firstk_papers.balestriero2024.denoising_optimum import damaged, expected_loss, measure
from fixtures.small_task import CELL, small_task


@pytest.mark.parametrize("noise", [GaussianNoise(sigma=0.5), Masking(keep=0.7, patches=(0, 0, 1, 2))])
def test_drawn_noise_has_the_moments_and_the_loss_of_the_theory(noise):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 4))
    X = X - X.mean(axis=0)
    encoder = PrefixEncoder(2, objective=Denoising(noise)).fit(X)
    St = X.T @ X / len(X)
    G, S = noise.second_moments(St)
    drawn = [damaged(X, noise, rng) for _ in range(4000)]
    np.testing.assert_allclose(np.mean([D.T @ D / 50 for D in drawn], axis=0), G, atol=0.03 * np.abs(G).max())
    np.testing.assert_allclose(np.mean([D.T @ X / 50 for D in drawn], axis=0), S, atol=0.03 * np.abs(S).max())
    T = encoder.decoder_ @ encoder.components_
    losses = [np.sum((D @ T.T - X) ** 2) / 50 for D in drawn]
    assert expected_loss(encoder, St, G, S) == pytest.approx(np.mean(losses), rel=0.02)


def test_pixels_of_a_patch_fall_together():
    X = np.ones((200, 4))
    found = damaged(X, Masking(keep=0.5, patches=(0, 0, 1, 1)), np.random.default_rng(0))
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    assert not np.array_equal(found[:, 1], found[:, 2])
    assert 0.4 < found.mean() < 0.6


def test_descent_ends_at_the_closed_form(monkeypatch):
    rows = small_task(shape=(2, 3))
    monkeypatch.setattr(denoising_optimum, "task", lambda cell: rows)
    noise = {"patch": 2, "dropped": 0.5}
    found = measure({**CELL, "noise": noise, "K": 2, "steps": 300, "learning_rate": 0.05, "draws": 50})
    assert -1e-9 < min(found["gap"]) < 1e-5
    assert found["gap"][0] > 0.01
