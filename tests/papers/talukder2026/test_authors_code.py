"""Training and metrics of the authors' code, against their formulas written out."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from firstk_papers.frame.specs import catalogue  # noqa: E402
from firstk_papers.talukder2026 import authors_code as code  # noqa: E402
from firstk_papers.talukder2026 import mnist_codes, mnist_figures, recovery, recovery_fits  # noqa: E402
from firstk_papers.talukder2026.recovery_reports import PAPERS  # noqa: E402

D = 4
CELL = {
    "family": "mse", "d": D, "seed": 47, "alpha": 0.01, "eps": 1e-4, "learning_rate": 1e-3, "weight_decay": 1e-4,
    "batch": 64, "length": 3, "patience": 2, "prefixes": [2, 4],
}  # fmt: skip


@pytest.fixture(scope="module")
def parts():
    return code.parts_of("synthetic", 400, 47)


def test_parts_are_stratified_and_centred_on_training(parts):
    assert [len(part) for part in (parts.y, parts.y_val, parts.y_test)] == [280, 40, 80]
    assert np.bincount(parts.y).tolist() == [14] * 20
    np.testing.assert_allclose(parts.X.mean(axis=0), 0, atol=1e-5)
    assert np.abs(parts.X_val.mean(axis=0)).max() > 1e-3


def test_pixels_are_z_scored_by_the_training_part(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.random((100, 3)).astype(np.float32) * [1, 5, 0], np.arange(100) % 2
    monkeypatch.setattr(code, "images", lambda name: type("Set", (), {"X": X.astype(np.float32), "y": y}))
    found = code.parts_of("mnist", 100, 0)
    np.testing.assert_allclose(found.X.std(axis=0), [1, 1, 0], atol=1e-5)
    np.testing.assert_allclose(found.X.mean(axis=0), 0, atol=1e-5)


@pytest.mark.parametrize("method", PAPERS)
def test_losses_are_means_over_prefixes_rows_and_features(parts, method):
    cell = CELL | {"method": method} if method == "monotone_l1" else {**CELL, "method": method, "alpha": 0.0}
    omega = recovery_fits.ordering_of(cell).prefix_weights(D, "uniform").omega
    rng, p = np.random.default_rng(0), parts.X.shape[1]
    shapes = ((D, p), (p, D))
    B, A = (torch.tensor(rng.normal(size=s), dtype=torch.float32, requires_grad=True) for s in shapes)
    x = torch.from_numpy(parts.X[:64])
    sizes = {"full_prefix": range(1, D + 1), "sparse_prefix": [2, 4]}.get(method, [D])
    slow = torch.stack([F.mse_loss(x @ B[:k].T @ A[:, :k].T, x) for k in sizes]).mean()
    if method == "monotone_l1":
        slow = slow + sum(0.01 * (k + 1) * (x @ B[k]).abs().mean() for k in range(D))
    if method == "nonuniform_l2":
        sigma = np.linalg.eigvalsh(np.cov(parts.X.T, bias=True))[-D]
        lam = torch.linspace(sigma / 18, sigma / 2, D) / p
        slow = slow + (lam[:, None] * B**2).sum() + (lam * A**2).sum()
    found = code._squared_error(cell, parts, omega)(x, B, A, 0)
    torch.testing.assert_close(found, slow, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(*(torch.autograd.grad(loss, (B, A)) for loss in (found, slow)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


def test_fisher_is_the_mean_ratio_trace_of_the_scatters_of_the_codes(parts):
    cell = CELL | {"method": "monotone_l1", "family": "fisher"}
    B = torch.randn(D, parts.X.shape[1], generator=torch.Generator().manual_seed(0))
    for part, X, y in ((0, parts.X, parts.y), (1, parts.X_val, parts.y_val)):
        Z = X @ B.numpy().T
        means = np.stack([Z[y == c].mean(axis=0) for c in y])
        within, between = (Z - means).T @ (Z - means) / len(Z), np.cov(means.T, bias=True)
        slow = -np.trace(np.linalg.solve(within + 1e-4 * np.eye(D), between))
        slow += 0.01 * np.abs(Z).mean(axis=0) @ np.arange(1, D + 1)
        found = code._fisher_loss(cell, parts, np.array([0, 0, 0, 1.0]))(torch.from_numpy(X), B, B, part)
        assert float(found) == pytest.approx(slow, rel=1e-3)


def test_the_best_epoch_is_kept():
    weight, losses, seen = torch.zeros(1), iter([3.0, 1.0, 2.0, 1.0, 0.0]), []

    def epoch():
        weight.add_(1)
        seen.append(float(weight))

    assert code.train([weight], epoch, lambda: next(losses), 5, 2) == (4, 2)
    assert (seen, float(weight)) == ([1, 2, 3, 4], 2)


@pytest.mark.parametrize("family", ["mse", "fisher"])
def test_a_fit_keeps_orthonormal_decoders_and_is_repeated_to_the_bit(parts, family):
    cell = CELL | {"method": "full_prefix", "family": family, "batch": "full" if family == "fisher" else 64}
    fits = [code.fit_linear(cell, parts, np.full(D, 1 / D), lambda B, A: {"size": float(abs(B).sum())}) for _ in "ab"]
    B, A, trace, kept = fits[0]
    np.testing.assert_array_equal(B, fits[1][0])
    if family == "mse":
        np.testing.assert_allclose(A.T @ A, np.eye(D), atol=1e-5)
    assert kept.epochs == 3
    assert [entry["epoch"] for entry in trace] == [1, 2, 3, kept.best]


def test_maxcos_at_k_is_the_mean_over_the_first_k():
    rng = np.random.default_rng(1)
    B, A, axes = rng.normal(size=(3, 6)), rng.normal(size=(6, 3)), rng.normal(size=(3, 6))
    ordered = []
    for axis in axes:  # Gram-Schmidt
        left = axis - sum((axis @ other) * other for other in ordered)
        ordered.append(left / np.linalg.norm(left))

    def cosine(a, b):
        return abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)

    found = code.compared(B, A, axes)
    slow = [np.mean([max(cosine(A[:, j], ordered[i]) for i in range(k)) for j in range(k)]) for k in (1, 2, 3)]
    np.testing.assert_allclose(found["max_cos"], slow, rtol=1e-5)
    np.testing.assert_allclose(found["paired_cos"], [cosine(B[k], ordered[k]) for k in range(3)], rtol=1e-5)
    found = code.compared(B, None, axes)
    assert found["max_cos"][0] == pytest.approx(cosine(B[0], ordered[0]), rel=1e-5)


def test_a_network_is_judged_by_its_head_cut_to_the_prefix():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 3
    X = (3 * rng.normal(size=(3, 10))[y] + rng.normal(size=(240, 10))).astype(np.float32)
    parts = code.Parts(X[:160], y[:160], X[160:200], y[160:200], X[200:], y[200:])
    cell = {"seed": 42, "d": 5, "hidden": [16], "dropout": 0.1, "learning_rate": 0.01, "weight_decay": 1e-4,
            "batch_size": 32, "epochs": 6, "patience": 5, "alpha": 0.05}  # fmt: skip
    for method in ("full_prefix", "monotone_l1"):
        found = code.fit_network(cell | {"method": method}, parts)
        assert (not found.bias.any()) == (method == "full_prefix")
        slow = [np.mean((found.Z_test[:, :k] @ found.weight[:, :k].T + found.bias).argmax(1) == parts.y_test)
                for k in range(1, 6)]  # fmt: skip
        np.testing.assert_allclose(found.accuracy(found.Z_test, parts.y_test), slow)
        assert slow[-1] > 0.8


def test_figure_2_reads_what_the_network_gave(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 3
    X = (2 * rng.normal(size=(3, 10))[y] + rng.normal(size=(400, 10))).astype(np.float32)
    parts = code.Parts(X[:250], y[:250], X[250:300], y[250:300], X[300:], y[300:])
    monkeypatch.setattr(code, "digits", lambda rows, seed: parts)
    settings = catalogue()["talukder2026/fig2"].settings("authors")
    settings |= {"seeds": [42, 43], "d": 6, "hidden": [16], "epochs": 2, "probe_rows": 100}
    cells = mnist_codes.cells(settings)
    assert [(cell["method"], cell["alpha"]) for cell in cells] == [("full_prefix", None), ("monotone_l1", 0.05)] * 2
    results = [(cell, mnist_codes.measure(cell)) for cell in cells]
    found = mnist_figures.geometry(settings, results)
    assert found.measures["full_prefix_accuracy"] > 0.4
    assert found.measures["plateau_ratio_by_seed"] > 0
    assert found.notes[0] == "alpha is 0.05, as in the authors' code."


def test_cells_of_the_tier_have_their_settings_and_leave_out_what_was_not_run():
    spec = catalogue()["talukder2026/fig4"]
    made = recovery.cells(spec.settings("authors"))
    assert {cell["seed"] for cell in made} == {47}
    assert not any(cell["family"] == "fisher" and cell["method"] == "nonuniform_l2" for cell in made)
    assert all(cell["patience"] == (500 if cell["family"] == "fisher" else 100) for cell in made if "length" in cell)
