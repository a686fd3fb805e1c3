"""Denoising in closed form: exact axes, an exact bound that needs no labels, and changes of alignment."""

import numpy as np
import pytest

from firstk import GaussianNoise, Masking, image_patches
from firstk.contracts import Pencil
from firstk.data import load_digits
from firstk.moments.moments import Moments
from firstk.solvers.closed_form import solve_pencil
from firstk_papers.balestriero2024.axes import hold_out, principal_axes
from firstk_papers.balestriero2024.denoising import denoising_axes, effect_of
from slow_reference import correlated


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return Moments("float64").update(data.X, data.y), data


def noises():
    patches = image_patches((8, 8), (2, 2))
    return [GaussianNoise(0.3), Masking(keep=0.5), Masking(keep=0.25, patches=patches), Masking(0.5, patches, True)]


@pytest.mark.parametrize("noise", noises(), ids=lambda noise: f"{noise.name}")
def test_axes_span_what_the_closed_form_spans(digits, noise):
    moments, _ = digits
    St, axes = moments.St, principal_axes(moments)
    G, S = noise.second_moments(St)
    exact = solve_pencil(Pencil(M=S @ S.T, N=G), 12, moments.eps).components
    found = denoising_axes(noise, St, 12, start=axes.P)
    A, B = axes.basis(exact), axes.basis(found)
    for k in (1, 2, 4, 8, 12):
        # The part of one span outside the other, as codes of clean rows.
        assert np.linalg.norm(B[:, :k] - A[:, :k] @ (A[:, :k].T @ B[:, :k]), 2) < 2e-3


def test_gaussian_noise_cannot_help_and_masking_can(digits):
    moments, _ = digits
    axes = principal_axes(Moments("float64").update(load_digits().X))
    for sigma in (0.01, 1.0, 30.0):
        assert not effect_of(GaussianNoise(sigma), moments.St, axes).can_help
    assert effect_of(Masking(keep=0.5), moments.St, axes).can_help


def test_one_patch_for_everything_cannot_help(digits):
    moments, _ = digits
    assert not effect_of(Masking(keep=0.5, patches=[0] * 64), moments.St, principal_axes(moments)).can_help


def test_masking_uncorrelated_coordinates_cannot_help():
    St = np.diag(0.7 ** np.arange(10))
    X = np.vstack([np.eye(10), -np.eye(10)]) * np.sqrt(10 * np.diag(St))
    axes = principal_axes(Moments().update(X))
    np.testing.assert_allclose(axes.spectrum, np.diag(St), rtol=1e-9)
    assert not effect_of(Masking(keep=0.3), St, axes).can_help


def test_the_bound_is_what_the_luckiest_target_gains(digits):
    """could_move(k) is the largest difference of R^2 over all targets: an eigenvalue of P1 - P2 over rows."""
    X = correlated(np.random.default_rng(0), 80, 6, 0.7)
    moments = Moments().update(X)
    axes = principal_axes(moments)
    noise = Masking(keep=0.4)
    effect = effect_of(noise, moments.St, axes)
    B = denoising_axes(noise, moments.St, 6, start=axes.P)
    X0 = X - X.mean(0)
    for k, could in zip(effect.k, effect.could_move, strict=True):
        first, second = (np.linalg.qr(X0 @ A[:, :k])[0] for A in (B.T, axes.P))
        difference = np.linalg.eigvalsh(first @ first.T - second @ second.T)
        assert could == pytest.approx(difference[-1], abs=1e-6)


def test_alignment_change_by_least_squares(digits):
    moments, data = digits
    axes = principal_axes(moments)
    noise = Masking(keep=0.25, patches=image_patches((8, 8), (2, 2)))
    effect = effect_of(noise, moments.St, axes)
    Y = (data.y[:, None] == np.arange(10)) - moments.class_shares
    X = data.X.astype(float) - data.X.astype(float).mean(0)
    B = denoising_axes(noise, moments.St, 32, start=axes.P)

    def explained(Z):
        return np.sum((np.linalg.qr(Z)[0].T @ Y) ** 2)

    whole = explained(X @ axes.P)
    for k, change in zip(effect.k, effect.alignment_change, strict=True):
        slow = (explained(X @ B[:k].T) - explained(X @ axes.P[:, :k])) / whole
        assert change == pytest.approx(slow, abs=1e-6)


def test_a_task_that_masking_serves_is_told_so():
    """A loud pixel of its own noise hides two quiet ones that agree: masking prefers what others can tell."""
    rng = np.random.default_rng(1)
    signal = rng.standard_normal(4000)
    X = np.column_stack([3 * rng.standard_normal(4000), *(signal + 0.1 * rng.standard_normal(4000) for _ in range(8))])
    evidence = hold_out(X, signal)
    St = Moments("float64").update(X).St
    found = effect_of(Masking(keep=0.25), St, evidence.axes, (evidence.U, evidence.y))
    assert found.gain > 3 * found.error
    assert found.alignment_change[0] > 0.5


def test_without_labels_no_gain_is_made_up(digits):
    axes = principal_axes(Moments("float64").update(digits[1].X))
    found = effect_of(Masking(keep=0.5), digits[0].St, axes)
    assert found.can_help
    assert (found.gain, found.error, found.alignment_change) == (None, None, None)
