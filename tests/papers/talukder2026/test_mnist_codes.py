"""What is measured of a classifier's code, against slow and obvious ways; and the figures, on made-up cells."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from firstk_papers.talukder2026 import mnist_codes as codes
from firstk_papers.talukder2026 import mnist_figures as figures

SETTINGS = {
    "seeds": [3, 4], "alpha": 0.1, "alpha_grid": [0.01, 0.1], "mapping": "umap", "harmonic": False, "paper_epochs": 20,
    "rows": 200, "d": 6, "hidden": [16], "dropout": 0.1, "learning_rate": 0.01, "weight_decay": 1e-4, "batch_size": 32,
    "epochs": 5, "patience": 5, "validation": 0.1, "choosing_rows": 10, "test_rows": 50, "probe_rows": 40,
    "map_rows": 30, "map_prefixes": [2, 4],
}  # fmt: skip


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 4
    return (rng.normal(size=(4, 10))[y] * 3 + rng.normal(size=(240, 10))).astype(np.float32), y


def test_cells_are_seeds_by_methods_and_the_rest_of_the_grid():
    made = codes.cells(SETTINGS)
    assert [(c["method"], c["alpha"], c["seed"]) for c in made] == [
        ("full_prefix", None, 3), ("monotone_l1", 0.1, 3), ("full_prefix", None, 4), ("monotone_l1", 0.1, 4),
        ("monotone_l1", 0.01, 3),
    ]  # fmt: skip
    assert [c["mapped"] is not None for c in made] == [True, True, False, False, False]


@pytest.mark.parametrize("method", codes.METHODS)
def test_prefix_accuracy_is_that_of_the_head_cut_to_the_prefix(blobs, method):
    """Talukder et al. 2026 (31), (32): codes of unit norm; logits_k = z_{1:k} W_{1:k}^T + b."""
    pytest.importorskip("torch")
    X, y = blobs
    encoder = codes.trained(SETTINGS | {"method": method, "alpha": 0.01, "seed": 0}, X[:200], y[:200])
    Z, head = encoder.transform(X[200:]), encoder.encoder_.head
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1, atol=1e-5)
    slow = [np.mean((Z[:, :k] @ head.weight[:, :k].T + head.offset).argmax(axis=1) == y[200:]) for k in range(1, 7)]
    np.testing.assert_allclose(encoder.curve(X[200:], y[200:]).score, slow)
    assert slow[-1] > 0.8


def test_a_small_coordinate_is_held_back_by_the_logistic_probe_alone():
    rng = np.random.default_rng(1)
    y = np.arange(600) % 3
    signal = y + 0.2 * rng.normal(size=600)
    Z = np.column_stack([signal, 1e-3 * signal, rng.normal(size=600)])
    found = codes.probes(Z[:300], y[:300], Z[300:], y[300:])
    assert found["probe"][0] > 0.9
    assert found["probe"][1] < 0.75
    np.testing.assert_allclose(found["scale_free_probe"][:2], found["scale_free_probe"][0])
    assert found["scale_free_probe"][2] < 0.5


def test_clusters_against_a_loop_over_rows():
    rng = np.random.default_rng(2)
    y = np.arange(60) % 3
    points = rng.normal(size=(60, 2)) + 1.5 * y[:, None]
    right = 0
    for i in range(60):
        distances = np.linalg.norm(points - points[i], axis=1)
        distances[i] = np.inf
        right += np.bincount(y[np.argsort(distances)[:5]], minlength=3).argmax() == y[i]
    found = codes.clusters(points, y)
    assert found["neighbors"] == pytest.approx(right / 60, abs=1e-4)
    assert codes.clusters(points + 20 * y[:, None], y)["silhouette"] > found["silhouette"]


def test_maps_are_drawn_with_the_seed_or_replaced_by_two_coordinates(monkeypatch):
    Z, y = np.arange(60.0).reshape(20, 3) ** 0.5, np.arange(20) % 2
    cell = {"mapped": None, "map_prefixes": [2, 3], "seed": 7}
    assert codes.maps(Z, y, cell) is None
    plain = codes.maps(Z, y, cell | {"mapped": {"umap": None}})
    assert plain["clusters"] is None
    np.testing.assert_allclose(np.array(plain["planes"]["2"]).T, Z[:, :2], atol=1e-3)
    asked = []

    class UMAP:
        def __init__(self, **settings):
            asked.append(settings)

        def fit_transform(self, Z):
            return Z[:, -2:]

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    drawn = codes.maps(Z, y, cell | {"mapped": {"umap": "1.0"}})
    assert asked == [{"random_state": 7, "n_jobs": 1}] * 2
    np.testing.assert_allclose(np.array(drawn["planes"]["3"]).T, Z[:, 1:], atol=1e-3)
    assert len(drawn["clusters"]) == 2


def test_intervals_are_students():
    values = np.random.default_rng(3).normal(size=(5, 2))
    mean, low, high = figures.interval(values)
    expected = stats.t.interval(0.95, 4, loc=values.mean(0), scale=stats.sem(values, axis=0))
    np.testing.assert_allclose((low, high), expected)
    np.testing.assert_allclose(mean, values.mean(0))


@pytest.mark.parametrize(
    ("accuracy", "k"), [([0.9, 0.9, 0.9], 1), ([0.5, 0.89, 0.9], 2), ([0.9, 0.5, 0.9], 3), ([0.1, 0.2, 0.9], 3)]
)
def test_the_plateau_is_where_no_later_prefix_is_far(accuracy, k):
    assert figures.plateau(np.array(accuracy)) == k


def made_up(cell, rng):
    """Return a cell's result with falling sizes; full prefix has its plateau at 2, monotone l1 at 4."""
    d = cell["d"]
    size = np.linspace(0.5, 0.0, d)
    accuracy = np.where(np.arange(1, d + 1) < (2 if cell["method"] == "full_prefix" else 4), 0.5, 0.9)
    probe = size + (0 if cell["method"] == "full_prefix" else 0.3) * rng.random(d)
    choosing = accuracy + (cell["alpha"] or 0)
    score = 0.6 if cell["method"] == "full_prefix" else 0.4
    clusters = [{"silhouette": score, "neighbors": score}] * 2
    planes = {"2": [[0.0] * 5, [1.0] * 5], "4": [[0.0] * 5, [1.0] * 5]}
    maps = {"y": [0, 1, 0, 1, 1], "planes": planes, "clusters": clusters}
    return {
        "size": size.tolist(), "variance": size.tolist(), "probe": probe.tolist(), "scale_free_probe": probe.tolist(),
        "accuracy": accuracy.tolist(), "choosing_accuracy": choosing.tolist(), "epochs": 5, "clusters": clusters,
        "maps": maps if cell["mapped"] else None,
    }  # fmt: skip


@pytest.fixture
def results():
    rng = np.random.default_rng(4)
    return [(cell, made_up(cell, rng)) for cell in codes.cells(SETTINGS)]


def test_figure_2_reads_the_cells(results):
    found = figures.geometry(SETTINGS, results)
    m = found.measures
    assert (m["full_prefix_plateau"], m["monotone_l1_plateau"], m["plateau_ratio"]) == (2, 4, 2.0)
    assert (m["full_prefix_gap_at_3"], m["monotone_l1_gap_at_3"]) == (0.0, 0.4)
    assert m["full_prefix_spearman"] == 1.0
    assert m["full_prefix_spearman"] > m["monotone_l1_spearman"]
    assert m["full_prefix_largest_rise_of_size"] == pytest.approx(-0.1)
    assert m["full_prefix_live_coordinates"] == 5
    assert m["alpha_is_the_best_of_the_grid"] is True
    assert "0.01: 0.71" in found.notes[0]
    assert found.censored == ("5 of 5 networks stopped at 5 epochs; Talukder et al. 2026 allows 20.",)
    by_alpha = found.panels[-1]
    assert [row[0] for row in by_alpha.rows] == [0.01, 0.1]
    assert by_alpha.rows[1][3] == 0.5


def test_an_alpha_that_is_not_the_best_is_reported(results):
    for cell, found in results:
        if cell["alpha"] == 0.01:
            found["choosing_accuracy"] = [0.99] * 6
    assert figures.geometry(SETTINGS, results).measures["alpha_is_the_best_of_the_grid"] is False


def test_figure_6b_reads_the_cells(results):
    m = figures.clustering(SETTINGS, results).measures
    assert m["map_silhouette_least_difference"] == m["code_neighbors_least_difference"] == pytest.approx(0.2)
    for _, found in results:
        found["maps"] = None
    assert (
        figures.clustering(SETTINGS | {"mapping": "none"}, results).measures["map_silhouette_least_difference"] is None
    )
