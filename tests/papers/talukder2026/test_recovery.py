"""Recovery experiments of Talukder et al. 2026: losses and metrics against slow references; training."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import check_random_state

from firstk import PrefixEncoder
from firstk_papers.frame.panels import Heatmap
from firstk_papers.frame.runner import jobs_of
from firstk_papers.frame.specs import catalogue
from firstk_papers.talukder2026 import recovery, recovery_fits, recovery_reports

torch = pytest.importorskip("torch")
MSE = {"data": "synthetic", "rows": 400, "seed": 0, "family": "mse", "d": 6}
FISHER = {"data": "synthetic", "rows": 400, "seed": 0, "family": "fisher", "d": 5, "eps": 1e-2}
ADAM = {"learning_rate": 1e-3, "weight_decay": 1e-2, "batch": "full", "length": 12}


@pytest.fixture(scope="module")
def data():
    return recovery_fits.training_set("synthetic", 400, 0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def scatters(X, y):
    """Sw and Sb, divided by n, class by class (Talukder et al. 2026 (26), (27))."""
    Sw = sum(np.cov(X[y == c].T, bias=True) * np.mean(y == c) for c in np.unique(y))
    return Sw, np.cov(X.T, bias=True) - Sw


def test_the_share_of_squared_error_that_is_missing(data, rng):
    best = recovery_fits.reference(data, "mse", 6)
    weights = np.array([0.5, 0, 0.3, 0, 0, 0.2])
    losses = recovery_fits.Losses(data, MSE, best, weights)
    B, A = rng.normal(size=(6, 69)), rng.normal(size=(69, 6))
    rows = [np.mean(np.sum((data.X - data.X @ B[:k].T @ A[:, :k].T) ** 2, axis=1)) for k in range(1, 7)]
    np.testing.assert_allclose(losses.prefixes(B, A), rows, rtol=1e-9)
    total = np.mean(np.sum(data.X**2, axis=1))
    least = [total - best.spectrum[:k].sum() for k in range(1, 7)]
    found = losses(B, A)
    assert found["full"] == pytest.approx((rows[5] - least[5]) / (total - least[5]))
    own = weights @ rows - weights @ least
    assert found["own"] == pytest.approx(own / (total - weights @ least))
    assert losses(best.axes, best.axes.T) == pytest.approx({"full": 0, "own": 0}, abs=1e-12)


@pytest.mark.parametrize("ours", [False, True])
def test_the_share_of_the_ratio_trace_that_is_missing(data, rng, ours):
    """eps stands on the code's scatter in the paper (29), and on the input's in ours."""
    best = recovery_fits.reference(data, "fisher", 5, 1e-2 if ours else None)
    losses = recovery_fits.Losses(data, FISHER, best, np.full(5, 0.2))
    B = rng.normal(size=(5, 69))
    Sw, Sb = scatters(data.X, data.y)
    if ours:
        a = recovery_fits.input_shrinkage(Sw, 1e-2)
        N, eps = (1 - a) * Sw + a * np.trace(Sw) / 69 * np.eye(69), 0.0
        np.testing.assert_allclose(N / (1 - a), Sw + 1e-2 * np.eye(69), rtol=1e-9)
    else:
        N, eps = Sw, 1e-2
    slow = [-np.trace(np.linalg.inv(B[:k] @ N @ B[:k].T + eps * np.eye(k)) @ B[:k] @ Sb @ B[:k].T) for k in range(1, 6)]
    np.testing.assert_allclose(losses.prefixes(B, None), slow, rtol=1e-8)
    if ours:
        assert losses(best.axes, None) == pytest.approx({"full": 0, "own": 0}, abs=1e-10)
    else:
        assert 0 < losses(best.axes, None)["full"] < 0.1
        assert losses(1e6 * best.axes, None)["full"] == pytest.approx(0, abs=1e-10)  # scaling up removes eps


def test_gaps_are_those_of_the_nearer_neighbor():
    spectrum = np.array([10.0, 8.0, 7.9, 4.0])
    found = recovery_fits.Reference(np.eye(3), spectrum).gaps
    np.testing.assert_allclose(found, [0.2, 0.1 / 8, min(0.1 / 8, 3.9 / 7.9)])


def sums_of_the_paper(method, data, A, B, cell):
    """Loss of Talukder et al. 2026 as it is written: a sum over prefixes, not a mean; (3), (2), (5), (6)."""
    X = torch.from_numpy(data.X)

    def error(k):
        return (X - X @ B[:k].T @ A[:, :k].T).square().sum(1).mean()

    d = len(B)
    if method == "full_prefix":
        return sum(error(k) for k in range(1, d + 1))
    if method == "sparse_prefix":
        return sum(error(k) for k in cell["prefixes"])
    if method == "nonuniform_l2":
        sigma = np.linalg.eigvalsh(data.moments.St)[-d]
        lam = torch.linspace(sigma / 18, sigma / 2, d, dtype=torch.float64)
        return error(d) + (lam[:, None] * B**2).sum() + (A**2 * lam).sum()
    if method == "monotone_l1":
        return error(d) + cell["alpha"] * sum((k + 1) * (X @ B[k]).abs().mean() for k in range(d))
    return error(d)


@pytest.mark.parametrize("method", recovery_reports.PAPERS)
def test_training_is_adam_on_the_loss_of_the_paper(data, method):
    """Weight decay enters as in the paper's sums although omega is divided by its sum; full prefix has its QR step."""
    cell = MSE | ADAM | {"method": method, "prefixes": [2, 4, 6], "alpha": 0.5}
    best = recovery_fits.reference(data, "mse", 6)
    ordering = recovery_fits.ordering_of(cell)
    losses = recovery_fits.Losses(data, cell, best, ordering.prefix_weights(6, "uniform").omega)
    solver = recovery_fits.solver_of(cell, losses)
    found = PrefixEncoder(6, ordering=ordering, solver=solver, init="random", random_state=0).fit(data.X)

    seed = int(check_random_state(0).randint(2**31 - 1))
    start = np.linalg.qr(np.random.default_rng(seed).normal(size=(69, 6)))[0]
    A, B = (torch.tensor(part, dtype=torch.float64, requires_grad=True) for part in (start, start.T.copy()))
    adam = torch.optim.Adam([B, A], lr=1e-3, weight_decay=1e-2)
    for _ in range(11):  # the run keeps its best state, which is the one before the last step
        adam.zero_grad()
        sums_of_the_paper(method, data, A, B, cell).backward()
        adam.step()
        if method == "full_prefix":
            with torch.no_grad():
                Q, R = torch.linalg.qr(A)
                A.copy_(Q * R.diagonal().sign())
    A, B = A.detach().numpy(), B.detach().numpy()
    signs = np.sign(np.sum(found.decoder_ * A, axis=0))
    np.testing.assert_allclose(found.decoder_ * signs, A, atol=2e-5)
    np.testing.assert_allclose(found.components_ * signs[:, None], B, atol=2e-5)


def test_the_canonical_form_undoes_what_fisher_leaves_free(data, rng):
    """Any lower-triangular change of the code is free; Euclidean cosines see it, the canonical ones do not."""
    best = recovery_fits.reference(data, "fisher", 5, 1e-2)
    mixed = np.tril(rng.normal(size=(5, 5))) @ best.axes
    assert recovery_fits.compared(mixed, best)["paired_cos"][4] < 0.9
    np.testing.assert_allclose(recovery_fits.canonical_cosines(mixed, best, data.moments, 1e-2), 1, atol=1e-7)
    turned = rng.normal(size=(5, 5)) @ best.axes
    assert recovery_fits.canonical_cosines(turned, best, data.moments, 1e-2).min() < 0.9


def test_a_short_fit_of_ours_finds_every_axis():
    """The paper's set and eps, small; 250 steps."""
    found = recovery.measure(FISHER | {"d": 19, "eps": 1e-4, "method": "ours", "length": 250, "rows": 2000})
    assert recovery_reports._least_where_wide(found) > 0.99
    assert found["trace"]["step"] == sorted(set(found["trace"]["step"]))
    assert len(found["trace"]["own"]) == len(found["trace"]["step"]) <= recovery_fits.TRACE


def test_shares_of_squared_cosines_in_blocks(rng):
    cosines = rng.random((6, 6))
    block = [0, 0, 1, 2, 2, 2]  # blocks end at 2, 3, 6
    inside = sum(cosines[i, j] ** 2 for i in range(6) for j in range(6) if block[i] == block[j])
    assert recovery_reports.mass_in_blocks(cosines, [2, 3, 6]) == pytest.approx(inside / np.sum(cosines**2))
    assert recovery_reports.mass_in_blocks(np.eye(6), range(1, 7)) == 1


def test_dips_are_sizes_where_the_angle_falls_to_half_of_both_neighbors():
    assert recovery_reports.dips(np.array([30, 4, 20, 19, 2, 15, 8, 9, 3.0])) == [2, 5]


def test_the_configurations_are_those_of_table_1():
    table = recovery.table_1("full")
    names = ("p", "classes", "lda_rank", "d", "prefixes", "batch")
    assert {name: tuple(row[key] for key in names) for name, row in table["table"].items()} == {
        "synthetic-mse": (69, 20, 19, 50, [5, 10, 25, 50], 256),
        "synthetic-fisher": (69, 20, 19, 19, [5, 10, 15, 19], "full"),
        "fashion-mse": (784, 10, 9, 32, [4, 8, 16, 32], 256),
        "fashion-fisher": (784, 10, 9, 9, [2, 4, 7, 9], "full"),
    }
    assert (table["learning_rate"], table["weight_decay"]) == (1e-3, 1e-4)
    assert {row.get("eps") for row in table["table"].values()} == {None, 1e-4}
    assert {row["alpha"] for row in table["table"].values()} == {0.01}
    assert table["rows"] == {"synthetic": 10000, "fashion-mnist": 70000}


def test_figures_share_their_fits():
    specs = catalogue()
    keys = {
        name: {job.key for job in jobs_of(specs[f"talukder2026/{name}"], "full")}
        for name in ("fig1", "fig3", "fig4", "fig5")
    }
    assert keys["fig1"] == keys["fig4"] == keys["fig5"]
    assert len(keys["fig1"]) == 24
    assert len(keys["fig3"] - keys["fig1"]) == 3  # the illustration of width 8


def fit_like(d, cosine, angle=1.0):
    """What a fit of width d gives, with every cosine the same."""
    return {
        "max_cos": [cosine] * d, "paired_cos": [cosine] * d, "angles": [angle] * d, "spectrum": [1.0] * d,
        "gaps": [0.1] * (d - 1) + [0.001], "cosines": np.full((d, d), cosine).tolist(), "in_metric": [cosine] * d,
        "trace": {"step": [1, 2], "full": [0.5, 1e-9], "own": [0.6, 0.01]},
    }  # fmt: skip


@pytest.fixture
def made_up():
    """Settings and results in which full prefix and ours are aligned, and nothing else is."""
    spec = catalogue()["talukder2026/fig1"].settings("full")
    cells = recovery.cells(spec)
    good = {"full_prefix": 0.995, "ours": 0.999}
    return spec, [(cell, fit_like(cell["d"], good.get(cell["method"], 0.4))) for cell in cells]


def test_figure_1_is_evaluated_by_shares_of_aligned_directions(made_up):
    settings, results = made_up
    found = recovery_reports.largest_cosines(settings, results)
    assert found.measures["synthetic_mse_full_prefix_share_aligned"] == 1
    assert found.measures["fashion_fisher_best_share_but_full_prefix"] == 0
    assert found.measures["least_lead_over_regularisers"] == pytest.approx(0.595)
    assert [panel.title for panel in found.panels] == list(recovery_reports.TITLES.values())[:4]
    assert len(found.panels[0].series) == 7
    assert any("monotone l1 on fashion-mnist" in sentence for sentence in found.censored)
    results[5][1]["max_cos"] = [0.999] * 49 + [0.3]  # ours, where the gap is narrow
    assert recovery_reports.largest_cosines(settings, results).measures["synthetic_mse_ours_least_where_wide"] == 0.999
    smoke = recovery_reports.largest_cosines(settings | {"tier": "smoke"}, results).measures
    assert smoke["synthetic_mse_full_prefix_share_aligned"] is None
    assert smoke["synthetic_mse_ours_least_where_wide"] == 0.999


def test_figures_4_and_5_are_evaluated_at_the_end_and_at_full_width(made_up):
    settings, results = made_up
    losses = recovery_reports.training_losses(settings, results)
    assert losses.measures["fashion_mse_worst_missing"] == 1e-9
    assert losses.panels[0].series[0].y == (0.5, None)
    angles = recovery_reports.angles_and_pairs(settings, results)
    assert angles.measures["synthetic_mse_sparse_dips_at_own_sizes_only"] is False
    results[1][1]["angles"] = [1.0 if k in (5, 10, 25, 50) else 9.0 for k in range(1, 51)]
    angles = recovery_reports.angles_and_pairs(settings, results)
    assert angles.measures["synthetic_mse_sparse_dips_at_own_sizes_only"] is True
    assert angles.measures["synthetic_mse_sparse_largest_own_angle"] == 1
    assert "least PairedCos" in angles.notes[0]


def test_figure_3_shows_cosines_as_they_are():
    settings = catalogue()["talukder2026/fig3"].settings("full")
    results = [(cell, fit_like(cell["d"], 0.5)) for cell in recovery.cells(settings)]
    found = recovery_reports.heatmaps(settings, results)
    assert all(isinstance(panel, Heatmap) for panel in found.panels)
    assert found.measures["illustration_unordered_in_blocks"] == 0.375
    assert found.measures["fashion_mse_full_prefix_on_diagonal"] == 1 / 32
