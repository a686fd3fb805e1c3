"""Hessian blocks of nested dropout against autograd; the bounds on values worked out by hand."""

import numpy as np
import pytest

from firstk.orderings import NestedDropout
from firstk_papers.bao2020 import conditioning
from firstk_papers.frame.hooks import prefix_weights

torch = pytest.importorskip("torch")

from firstk.losses import FullPrefixReconstruction  # noqa: E402


def test_nested_dropout_blocks_are_the_hessian_of_the_library():
    s, d = np.array([5.0, 3.0, 2.0, 0.5]), 3
    prior = [0.5, 0.2, 0.3]
    St = torch.tensor(np.diag(s))
    B = torch.eye(4, dtype=torch.float64)[:d]
    blocks = torch.autograd.functional.hessian(
        lambda B, A: FullPrefixReconstruction(prior).from_moments(St, B, A), (B, B.T.contiguous())
    )
    slow = torch.cat([torch.cat([part.reshape(12, 12) for part in row], 1) for row in blocks], 0)
    wanted = torch.linalg.eigvalsh(slow).numpy()
    found = np.sort(
        np.concatenate(
            [np.zeros(d), conditioning.nested_values(s, prefix_weights(NestedDropout(prior=prior), d).cum, d)]
        )
    )
    np.testing.assert_allclose(found, np.sort(wanted), atol=1e-10)


def test_bounds_by_hand():
    s = np.array([4.0, 3.0, 1.0])
    assert conditioning.l2_bound(s) == pytest.approx(2 * 2 * 3 * 2 / 4)
    assert conditioning.nested_bound(s) == pytest.approx(8 * 4 * 4 / 3)
    keep = np.array([1.0, 0.5, 0.25])
    assert conditioning.nested_bound_given(s, keep) == pytest.approx(8 * 4 / 0.5)
    lam = np.array([0.2, 0.4, 0.5])
    nu = 1 - lam / s
    wanted = max(
        2 * 3 * (nu[i] + nu[j]) / ((lam[j] - lam[i]) * (nu[i] - nu[j])) for i in range(3) for j in range(i + 1, 3)
    )
    assert conditioning.l2_bound_given(s, lam) == pytest.approx(wanted)


def test_the_best_prior_makes_all_pairs_equal():
    s = np.array([6.0, 3.0, 2.0, 0.5])
    keep = prefix_weights(NestedDropout(prior=conditioning.best_prior(s, 0.1)), 4).cum
    pairs = (s[:-1] - s[1:]) * (keep[:-1] - keep[1:])
    np.testing.assert_allclose(pairs, pairs[0])
    assert keep[-1] == pytest.approx(0.1)


def test_a_prior_without_its_last_axis_is_singular():
    s = np.array([6.0, 3.0, 2.0])
    assert conditioning.nested_condition(s, np.array([0.5, 0.5, 0.0]), 3) == np.inf
    assert conditioning.nested_condition(s, np.ones(3) / 3, 3) < 1e3


@pytest.mark.parametrize(("report", "check"), [("nonuniform", "l2"), ("nested", "nested")])
def test_both_bounds_are_reported_alike(report, check):
    names = ("ratio", "ratio_given", "largest_ratio", "smallest_ratio")
    drawn = [({"check": check, "d": d}, {name: d + i for i, name in enumerate(names)}) for d in (2, 3)]
    sizes = [({"check": "growth", "d": d}, {check: d**2.0, f"{check}_bound": 1.0}) for d in (2, 4)]
    edge = {"margins": [0.1], "true": [2.0], "bounds": [1.0], "best": 1.0, "bound_falls": True}
    others = [({"check": "l2_tightest", "d": 2}, {"tightest": 1.0}), ({"check": "boundary", "d": 2}, edge)]
    found = getattr(conditioning, report)({}, drawn + sizes + others)
    wanted = {"least_ratio": 2, "least_ratio_given": 3, "least_largest_ratio": 4, "worst_smallest_ratio": 6}
    assert dict(list(found.measures.items())[:4]) == wanted
    assert found.measures["growth_exponent"] == pytest.approx(2)
    ratio = found.panels[1]
    assert ratio.title.startswith("Condition number over bound")
    assert [(series.x, series.y, series.kind) for series in ratio.series] == [
        ((2.0, 3.0), (2.0, 3.0), "points"),
        ((2.0, 3.0), (3.0, 4.0), "points"),
    ]
