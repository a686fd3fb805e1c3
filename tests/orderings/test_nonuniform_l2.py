"""Ordering "nonuniform_l2": the optimum, its shrinkage, schedules and conditioning.

Bao et al. 2020 theorems 1 to 3.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from firstk import Fisher, NonuniformL2, PrefixEncoder
from firstk.exceptions import RankWarning
from firstk.metrics import paired_cosines
from firstk.orderings._conditioning import best_conditioned, condition_number, hessian_extremes

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("lam", ["spectral", "conditioned", [0.1, 0.3, 0.7, 1.2]])
def test_the_optimum_has_the_stated_shrinkage(known, lam):
    ordering = NonuniformL2(lam)
    enc = PrefixEncoder(4, ordering=ordering, init="random", random_state=0).fit(known.X)
    lambdas = ordering.lambdas(known.spectrum, 4)
    assert paired_cosines(enc.components_, known.axes).min() > 0.999
    np.testing.assert_allclose(enc.components_.T, enc.decoder_, atol=1e-3)
    np.testing.assert_allclose(np.square(enc.decoder_).sum(axis=0), 1 - lambdas / known.spectrum, atol=2e-3)


def test_an_axis_with_too_large_a_penalty_vanishes_with_a_warning_and_the_others_stay_right(known):
    ordering = NonuniformL2([0.1, 0.2, 0.3, 2.5])
    with pytest.warns(RankWarning, match=r"k = \[4\]"):
        enc = PrefixEncoder(4, ordering=ordering, init="random", random_state=0).fit(known.X)
    size = np.square(enc.decoder_).sum(axis=0)
    assert size[3] < 1e-6
    np.testing.assert_allclose(size[:3], 1 - np.array([0.1, 0.2, 0.3]) / known.spectrum[:3], atol=2e-3)
    assert paired_cosines(enc.decoder_.T[:3], known.axes[:3]).min() > 0.999


def test_schedules_are_those_of_the_papers():
    spectrum = np.array([9.0, 4.0, 1.8])
    np.testing.assert_allclose(NonuniformL2("spectral").lambdas(spectrum, 3), [0.1, 0.5, 0.9])
    np.testing.assert_allclose(np.sqrt(NonuniformL2("mnist").lambdas(spectrum, 3)), [0.1, 0.5, 0.9])
    np.testing.assert_allclose(np.sqrt(NonuniformL2("synthetic").lambdas(spectrum, 3)), [0.1, 5.05, 10.0])


def test_the_hessian_is_that_of_the_loss(known):
    """Extremes of the closed blocks against torch's Hessian at the optimum, within the subspace of d axes."""
    s, lam = known.spectrum, np.array([0.1, 0.3, 0.7, 1.2])
    S, L = torch.tensor(np.diag(s)), torch.tensor(lam)
    t = torch.diag(torch.sqrt(1 - L / torch.tensor(s)))

    def loss(B, A):
        R = torch.eye(4, dtype=torch.float64) - A @ B
        return torch.trace(R @ S @ R.T) + (L * B.square().sum(1)).sum() + (L * A.square().sum(0)).sum()

    H = torch.autograd.functional.hessian(loss, (t, t))
    H = torch.cat([torch.cat([part.reshape(16, 16) for part in row], 1) for row in H], 0)
    values = torch.linalg.eigvalsh(H)
    np.testing.assert_allclose(hessian_extremes(s, lam), [values[0], values[-1]], rtol=1e-8)


@pytest.mark.parametrize("spectrum", [(5.0, 3.0, 2.0, 1.0), (9.0, 8.0, 1.0), (30.0, 4.0, 1.5, 1.2, 0.2)])
def test_no_search_finds_penalties_that_are_better_conditioned(spectrum):
    """Simplices over all increasing lambda in (0, sigma_d^2), from several starts, gain less than 2 per cent."""
    s = np.array(spectrum)

    def log_condition(steps):
        shares = np.exp(steps - steps.max())
        value = condition_number(s, s[-1] * np.cumsum(shares)[:-1] / shares.sum())
        return np.log(value) if np.isfinite(value) else 50.0

    own = best_conditioned(s)
    starts = [np.diff(np.concatenate([[0.0], own, s[-1:]])), *np.random.default_rng(0).uniform(0.1, 1, (4, len(s) + 1))]
    options = {"maxiter": 2000, "adaptive": True}
    found = [minimize(log_condition, np.log(start), method="Nelder-Mead", options=options).fun for start in starts]
    assert condition_number(s, own) < 1.02 * np.exp(min(found))


def test_the_smallest_eigenvalue_is_met_at_both_ends_and_by_every_pair_of_neighbors():
    s = np.array([5.0, 3.0, 2.0, 1.0])
    lam = best_conditioned(s)
    low, _ = hessian_extremes(s, lam)
    assert (np.diff(lam) > 0).all()
    np.testing.assert_allclose([4 * lam[0], 4 * (s[-1] - lam[-1])], low, rtol=1e-6)
    for i in range(3):
        pair = slice(i, i + 2)
        assert hessian_extremes(s[pair], lam[pair])[0] == pytest.approx(low, rel=1e-6)


def test_equal_eigenvalues_have_the_range_of_000():
    for spectrum in ([2.0, 2.0, 1.0], [3.0, 1.0, 1.0]):
        own, theirs = (NonuniformL2(name).lambdas(np.array(spectrum), 3) for name in ("conditioned", "spectral"))
        np.testing.assert_array_equal(own, theirs)


def test_the_conditioned_schedule_is_better_conditioned_than_that_of_000(known):
    own, theirs = best_conditioned(known.spectrum), NonuniformL2("spectral").lambdas(known.spectrum, 4)
    assert condition_number(known.spectrum, own) < 0.2 * condition_number(known.spectrum, theirs)
    # On the boundary lambda_d = sigma_d^2 the true condition number is infinite (THEORY section 6).
    edge = np.linspace(0.1, known.spectrum[-1], 4)
    assert condition_number(known.spectrum, edge) == np.inf


def test_axes_that_a_classifier_is_not_given_are_named(known):
    """The theorem on which axes vanish is about reconstruction; for others it is said after training."""
    y = np.digitize(known.X @ known.axes[:2].T, [0.0]) @ [1, 2]
    enc = PrefixEncoder(4, objective="classification", ordering=NonuniformL2("mnist"), random_state=0)
    with pytest.warns(RankWarning, match=r"Axes \[.*4\] have nearly zero weights.*'classification'") as said:
        enc.fit(known.X, y)
    assert len(said) == 1


def test_the_baseline_of_000_with_fisher_runs_with_eps_on_the_code(known):
    y = np.digitize(known.X @ known.axes[:2].T, [0.0]) @ [1, 2]
    objective = Fisher(code_eps=1e-4)
    enc = PrefixEncoder(2, objective=objective, ordering=NonuniformL2([0.01, 0.02]), init="random", random_state=0)
    assert enc.fit(known.X, y).score(known.X, y) > 0.9
