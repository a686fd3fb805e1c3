"""Problem (16) of Bao et al. 2020 and the bookkeeping of its figures, against slow and obvious answers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from firstk.orderings import condition_number
from firstk_papers.bao2020.lae_penalties import best_bound, bound_terms, cells, schedules, stated_bound

SPECTRUM = np.array([5.0, 3.1, 2.2])


def test_the_terms_are_those_of_the_paper():
    lam = np.array([0.2, 0.5, 1.1])
    nu = [1 - lam[i] / SPECTRUM[i] for i in range(3)]
    expected = [
        2 * (5.0 - 2.2) * (nu[i] + nu[j]) / ((lam[i] - lam[j]) * (nu[j] - nu[i])) for i, j in ((1, 0), (2, 0), (2, 1))
    ]
    np.testing.assert_allclose(bound_terms(SPECTRUM, lam), expected)


def test_the_bound_is_the_least_that_a_grid_finds():
    margin = 0.05
    low, high = margin * 2.2, (1 - margin) * 2.2
    grid = np.linspace(low, high, 41)
    least = min(
        bound_terms(SPECTRUM, np.array([a, b, c])).max()
        for i, a in enumerate(grid)
        for j, b in enumerate(grid[i + 1 :], start=i + 1)
        for c in grid[j + 1 :]
    )
    found = best_bound(SPECTRUM, margin)
    assert (np.diff(found) > 0).all()
    assert low <= found[0]
    assert found[-1] <= high + 1e-9
    largest = bound_terms(SPECTRUM, found).max()
    assert largest <= least * (1 + 1e-9)
    assert largest >= 0.93 * least  # and the grid is fine enough to come close to it


def test_neighbors_decide_and_are_equal_at_the_optimum():
    spectrum = np.array([9.0, 6.0, 4.5, 3.0, 2.6, 1.9])
    terms = bound_terms(spectrum, best_bound(spectrum, 1e-3))
    i, j = np.tril_indices(6, -1)
    beside = terms[i == j + 1]
    np.testing.assert_allclose(beside, beside[0], rtol=1e-6)
    assert terms.max() <= beside[0] * (1 + 1e-9)


def test_the_stated_bound_lies_below_the_optimum_of_the_problem():
    spectrum = np.array([9.0, 6.0, 4.5, 3.0, 2.6, 1.9])
    by_hand = 2 * 5 * (9 - 1.9) * (4.1 + 2.6 + 1.1 + 0.7) / (9 * 1.9)
    assert stated_bound(spectrum) == pytest.approx(by_hand)
    assert stated_bound(spectrum) < bound_terms(spectrum, best_bound(spectrum, 1e-6)).max()


def test_the_true_condition_number_grows_without_end_towards_the_boundary():
    near, nearer = (condition_number(SPECTRUM, best_bound(SPECTRUM, margin)) for margin in (1e-4, 1e-6))
    assert nearer > 50 * near


def test_the_best_margin_is_better_conditioned_than_others():
    found = schedules(SPECTRUM, 1e-3)
    best = condition_number(SPECTRUM, found["inside"])
    assert all(best <= 1.05 * condition_number(SPECTRUM, best_bound(SPECTRUM, m)) for m in (1e-3, 0.01, 0.05, 0.1, 0.3))


def test_figure_5_needs_no_run_and_figure_6_one_a_schedule_and_rate():
    base = {"k": 3, "seed": 0, "margin": 1e-3, "rows": 10, "epochs": 7}
    assert [cell["kind"] for cell in cells(base)] == ["problem"]
    runs = cells(base | {"schedules": ["bound", "mnist"], "learning_rates": [0.1, 0.2]})[1:]
    assert [(run["schedule"], run["learning_rate"]) for run in runs] == [
        ("bound", 0.1), ("bound", 0.2), ("mnist", 0.1), ("mnist", 0.2)
    ]  # fmt: skip
