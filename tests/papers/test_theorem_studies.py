"""Formulas that the studies of theorems write down: each against a slow and obvious one, or an answer known before."""

import sys

import numpy as np
import pytest

from firstk.exceptions import MissingExtraError
from firstk_papers.frame.cells import study_module

pytest.importorskip("torch")

from firstk_papers.bao2020 import linear_vae, nested_expectation, penalty_sizes, surface
from firstk_papers.frame.instances import Problem, line
from firstk_papers.talukder2026 import expansions, prefix_gradients, prefix_theorem

RNG = np.random.default_rng(0)


def test_expansions_at_d_3_are_the_sums_over_prefixes():
    x, y = RNG.standard_normal(5), RNG.standard_normal((3, 5))
    prefixes = [np.sum((x - y[:m].sum(axis=0)) ** 2) for m in (1, 2, 3)]
    assert expansions.plain_expansion(x, y) == pytest.approx(prefixes[-1])
    assert expansions.full_prefix_expansion(x, y) == pytest.approx(sum(prefixes))


def test_the_pull_on_a_contribution_by_differences():
    x, Y, omega, h = RNG.standard_normal(4), RNG.standard_normal((3, 4)), np.array([0.5, 0.2, 0.3]), 1e-6

    def loss(Y):
        return sum(omega[m] * np.sum((x - Y[: m + 1].sum(axis=0)) ** 2) for m in range(3))

    for entry in np.ndindex(3, 4):
        step = np.zeros((3, 4))
        step[entry] = h
        numeric = (loss(Y + step) - loss(Y - step)) / (2 * h)
        assert prefix_gradients.pull(x, Y, omega)[entry] == pytest.approx(numeric, abs=1e-6)


def test_statistics_and_the_best_encoder():
    X, B, A = RNG.standard_normal((20, 6)), RNG.standard_normal((3, 6)), RNG.standard_normal((6, 3))
    np.testing.assert_allclose(prefix_theorem.from_statistics(X, B, A), prefix_theorem.naive(X, B, A))
    St, cum = X.T @ X / 20, np.array([3, 2, 1]) / 3
    best = prefix_theorem.best_encoder(A, cum)
    least = prefix_theorem.full_prefix(best, A, St)
    for size in (1e-3, 1e-1, 1.0):
        assert prefix_theorem.full_prefix(best + size * RNG.standard_normal(best.shape), A, St) > least


def test_the_bound_is_the_sum_of_what_prefixes_leave():
    s = np.array([5.0, 3.0, 2.0, 1.0])
    assert prefix_theorem.bound(s, 2) == pytest.approx(((3 + 2 + 1) + (2 + 1)) / 2)


def test_the_expectation_of_nested_dropout_over_its_outcomes():
    X, B, A = RNG.standard_normal((9, 4)), RNG.standard_normal((3, 4)), RNG.standard_normal((4, 3))
    prior = np.array([0.2, 0.5, 0.3])
    masks = np.tril(np.ones((3, 3)))
    slow = sum(p * np.sum((X - (X @ B.T * m) @ A.T) ** 2) / 18 for p, m in zip(prior, masks, strict=True))
    assert nested_expectation.explicit(X, B, A, prior) == pytest.approx(slow)
    assert nested_expectation.analytical(X, B, A, prior) == pytest.approx(slow)


def test_the_bound_of_the_vae_by_its_definition():
    """Gradients against differences of the evidence bound itself, integrated in closed form."""
    d, p, noise, h = 2, 4, 0.7, 1e-6
    V, W, D = RNG.standard_normal((d, p)), RNG.standard_normal((p, d)), RNG.uniform(0.3, 2, d)
    St = np.diag([4.0, 3.0, 2.0, 1.0])

    def bound(V, W, D):
        R = np.eye(p) - W @ V
        likelihood = -(np.trace(R @ St @ R.T) + np.sum(W**2 * D)) / (2 * noise)
        divergence = (D.sum() - np.log(D).sum() + np.trace(V @ St @ V.T)) / 2
        return likelihood - divergence

    dV, dW, dD = linear_vae.elbo_gradients(V, W, D, St, noise)
    for parts, gradient in ((0, dV), (1, dW), (2, dD)):
        E = RNG.standard_normal(gradient.shape)
        ends = []
        for t in (h, -h):
            at = [V, W, D]
            at[parts] = at[parts] + t * E
            ends.append(bound(*at))
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(np.sum(gradient * E), rel=1e-6)


def test_which_components_are_cut_off():
    assert penalty_sizes.broken(np.array([4.0, 2.0, 1.0]), np.array([1.0, 2.0, 1.5])) == [2, 3]
    cell = {"kind": "synthetic", "reading": next(iter(penalty_sizes.READINGS)), "k": 2, "p": 1000, "n": 5000}
    found = penalty_sizes.measure(cell)
    assert found["spectrum"][0] == pytest.approx(2.0)
    assert found["lam"] == pytest.approx([0.01, 100.0])
    assert found["broken"] == [2]


def test_the_surface_has_its_minimum_where_theory_puts_it():
    s, lam = np.array([4.0, 2.0]), np.array([0.1, 0.4])
    data = Problem(np.diag(s), np.eye(2), s)
    best = surface.surface(1, 0, data, lam)
    assert best == pytest.approx(np.sum(2 * lam - lam**2 / s))
    assert np.abs(surface.slope(1, 0, data, lam)).max() < 1e-8
    assert surface._floor(0.0, data, lam) == pytest.approx((1.0, best))
    assert surface._floor(np.pi / 2, data, lam)[1] > best


def test_a_series_for_a_logarithmic_axis():
    series = line("a", [1, 2], [0.0, 0.123456789], floor=1e-3)
    assert series.y == (0.001, 0.123457)


def test_a_study_without_torch_names_the_extra(monkeypatch, tmp_path):
    (tmp_path / "own_studies").mkdir()
    (tmp_path / "own_studies" / "trained.py").write_text("import torch\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"The study 'own_studies.trained' needs .*firstk\[torch\]"):
        study_module("own_studies.trained")
