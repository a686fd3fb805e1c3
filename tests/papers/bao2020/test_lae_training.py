"""The training of Bao et al. 2020's linear autoencoders against steps written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from firstk_papers.bao2020 import lae_training
from firstk_papers.bao2020.lae_spectra import spectrum_of, synthetic
from firstk_papers.bao2020.lae_training import Watch, first_below, looks, ordering_of, trained
from firstk_papers.frame.hooks import Diagonal

DATA = {"name": "synthetic", "rows": 60, "p": 7, "low": 0.5, "high": 4.0, "seed": 3}
LAM = [0.1, 0.3, 0.6]
EPOCHS, RATE = 25, 0.01


def recipe(model, optimizer="nesterov", **changes):
    base = {"model": model, "optimizer": optimizer, "k": 3, "batch": "full", "seed": 5, "epochs": EPOCHS}
    return base | {"learning_rate": RATE, "data": DATA, "lam": LAM, "rho": 0.9} | changes


def test_the_spectrum_is_that_of_the_second_moment_of_the_data():
    X = synthetic(60, 7, 0.5, 4.0, 3)
    spectrum = spectrum_of(DATA)
    expected = np.cov(X.T, bias=True)
    np.testing.assert_allclose(spectrum.values, np.linalg.eigvalsh(expected)[::-1], atol=1e-12)
    np.testing.assert_allclose(spectrum.second_moment(), expected, atol=1e-12)


def test_the_synthetic_population_has_the_stated_eigenvalues():
    X = synthetic(200_000, 4, 1.0, 100.0, 0)
    found = np.linalg.eigvalsh(X.T @ X / len(X))[::-1]
    np.testing.assert_allclose(found, np.linspace(100, 1, 4), rtol=0.02)


def test_a_diagonal_multiplies_like_the_matrix():
    import torch

    values, B = torch.rand(5), torch.rand(3, 5)
    matrix = Diagonal(values)
    torch.testing.assert_close(B @ matrix @ B.t(), B @ torch.diag(values) @ B.t())
    np.testing.assert_array_equal(matrix.cpu().numpy(), np.diag(values.numpy()))


# -- steps by hand: plain formulas of the gradients, Nesterov's momentum as Bao et al. 2020 trains
# --------------------------------


def start(tied):
    rng = np.random.default_rng(5)
    B = rng.normal(0, 0.01, (3, 7))
    return B, B.T.copy() if tied else rng.normal(0, 0.01, (7, 3))


def plain(B, A, S):
    """Gradients of |X - A B X|^2 / n."""
    error = np.eye(7) - A @ B
    return -2 * A.T @ error @ S, -2 * error @ S @ B.T


def penalised(B, A, S, _):
    dB, dA = plain(B, A, S)
    return dB + 2 * np.diag(LAM) @ B, dA + 2 * A @ np.diag(LAM), 0.0


def rotated(B, A, S, _):
    """Bao et al. 2020 algorithm 1, every entry written out."""
    dB, dA = plain(B, A, S)
    M = B @ S @ B.T
    turn = np.array([[(np.sign(j - i)) * M[i, j] / 2 for j in range(3)] for i in range(3)])
    return dB - turn @ B, dA + A @ turn, 0.0


def dropped(B, A, S, _):
    """The sum over b of p(b) times the gradient of the first b units alone (Bao et al. 2020 (6), without its half)."""
    p = [0.9 * 0.1, 0.9**2 * 0.1]
    p.append(1 - sum(p))
    dB, dA = np.zeros_like(B), np.zeros_like(A)
    for b, weight in enumerate(p, start=1):
        part = plain(B[:b], A[:, :b], S)
        dB[:b] += weight * part[0]
        dA[:, :b] += weight * part[1]
    return dB, dA, 0.0


def variational(B, A, S, log_d):
    """Minus the gradients of Bao et al. 2020 appendix F over n, for the logarithm of D."""
    noise, D = spectrum_of(DATA).noise(3), np.exp(log_d)
    dB = -(A.T - (A.T @ A + noise * np.eye(3)) @ B) @ S / noise
    dA = -(S @ B.T - A @ np.diag(D) - A @ B @ S @ B.T) / noise
    return dB, dA, -0.5 * (1 / D - 1 - (A**2).sum(0) / noise) * D


def by_hand(gradients, tied):
    S = np.diag(spectrum_of(DATA).values)
    state = [*start(tied), np.zeros(3)]
    speed: list = [0.0, 0.0, 0.0]
    for _ in range(EPOCHS):
        for i, g in enumerate(gradients(state[0], state[1], S, state[2])):
            speed[i] = 0.9 * speed[i] + g
            state[i] = state[i] - RATE * (g + 0.9 * speed[i])
        if tied:
            mean = (state[0] + state[1].T) / 2
            state[:2] = mean, mean.T.copy()
    return state[1]


@pytest.mark.parametrize(
    ("model", "gradients"),
    [
        ("nonuniform_l2", penalised),
        ("rotation", rotated),
        ("deterministic_nd", dropped),
        ("linear_vae", variational),
    ],
)
def test_a_run_takes_the_steps_of_the_paper(model, gradients):
    watch = trained(recipe(model), [], [EPOCHS])
    expected = by_hand(gradients, tied=model == "rotation")
    np.testing.assert_allclose(watch.decoder.T, expected, rtol=1e-9, atol=1e-12)


def test_adam_runs_in_the_coordinates_of_the_data():
    import torch

    S = torch.tensor(np.cov(synthetic(60, 7, 0.5, 4.0, 3).T, bias=True))
    B, A = (torch.tensor(part, requires_grad=True) for part in start(tied=False))
    optimizer = torch.optim.Adam([B, A], lr=RATE)
    lam = torch.tensor(LAM)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        error = torch.eye(7) - A @ B
        loss = (error @ S @ error.t()).trace() + (lam * (B.square().sum(1) + A.square().sum(0))).sum()
        loss.backward()
        optimizer.step()
    watch = trained(recipe("nonuniform_l2", "adam"), [], [EPOCHS])
    np.testing.assert_allclose(watch.decoder.T, A.detach().numpy(), rtol=1e-3, atol=1e-5)


# -- the watch ------------------------------------------------------------------------------------------------------


def test_a_run_ends_when_it_is_aligned_and_not_before():
    long = trained(recipe("rotation", epochs=2000, learning_rate=0.02), range(1, 2001))
    arrived = next(epoch for epoch, axis, _ in long.trace if epoch % 10 == 0 and axis <= 0.2)
    short = trained(recipe("rotation", epochs=2000, learning_rate=0.02, until=0.2), [2000])
    assert short.epoch == arrived
    assert short.trace[-1][0] == arrived


def test_overlaps_have_columns_of_unit_norm_inside_the_subspace():
    watch = Watch(np.eye(4)[:2], {1}, {1})
    watch(np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 0.0], [0.0, 2.0]]))
    np.testing.assert_allclose(watch.kept[1], [[0.6, 0.0], [0.8, 0.0]])
    assert watch.trace == [(1, pytest.approx(1 - (0.36 + 0.64) / 2), pytest.approx(0.5))]


def test_looks_are_epochs_from_the_first_to_the_last():
    assert looks(1) == [1]
    found = looks(5000)
    assert (found[0], found[-1]) == (1, 5000)
    assert found == sorted(set(found))


def test_the_first_epoch_below_a_level():
    trace = {"epoch": [1.0, 5.0, 9.0], "axis": [0.9, 0.3, 0.1]}
    assert first_below(trace, "axis", 0.3) == 5.0
    assert first_below(trace, "axis", 0.05) is None


def test_every_model_has_an_ordering_and_a_name():
    spectrum = spectrum_of(DATA)
    names = {
        ordering_of(recipe(model, lam=LAM if "non" in model else 0.2), spectrum).name for model in lae_training.MODELS
    }
    assert names == {"uniform_l2", "nonuniform_l2", "rotation", "nested_dropout", "variational"}
