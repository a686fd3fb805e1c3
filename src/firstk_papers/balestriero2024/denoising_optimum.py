"""Theorem 3: the closed form of linear denoising against descent, and its moments against drawn noise.

One cell is one noise on one small set.
"""

from __future__ import annotations

import numpy as np

from firstk import ClosedForm, Denoising, GaussianNoise, Gradient, Masking, PrefixEncoder
from firstk_papers.balestriero2024.masking_alignment import noise_name, noise_of
from firstk_papers.balestriero2024.task_alignment import rounded_measures
from firstk_papers.datasets.tasks import TITLES, task
from firstk_papers.frame.panels import Chart, Findings, Series, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 1


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return a cell for every set with every noise."""
    common = {name: settings[name] for name in ("K", "steps", "learning_rate", "draws", "seed")}
    return [
        {"set": line["set"], "rows": line.get("rows"), "pool": line.get("pool", 1), "noise": noise, **common,
         "revision": REVISION}
        for line in settings["tasks"]
        for noise in settings["noises"]
    ]  # fmt: skip


def measure(cell: JsonObject) -> JsonDict:
    """Return the gap of Adam to the closed form, and how far drawn noise is from the moments of the theory."""
    rows = task(cell)
    X = (rows.X - rows.X.mean(axis=0)).astype(np.float64)
    St = X.T @ X / len(X)
    noise = noise_of(cell["noise"], St, rows.shape)
    objective, K = Denoising(noise), cell["K"]
    best = PrefixEncoder(K, objective=objective, solver=ClosedForm("float64")).fit(X)
    solver = Gradient(
        optimizer="adam", learning_rate=cell["learning_rate"], epochs=cell["steps"], batch_size="full",
        schedule="cosine", whiten=False, precondition=False, tolerance=1e-300, trace_every=max(1, cell["steps"] // 50),
    )  # fmt: skip
    trained = PrefixEncoder(
        K, objective=objective, ordering="unordered", solver=solver, init="random", random_state=cell["seed"]
    ).fit(X)
    G, S = noise.second_moments(St)
    least = expected_loss(best, St, G, S)
    gaps = (np.array([entry["loss"] for entry in trained.trace_]) - least) / np.trace(St)
    return {
        "epoch": [int(entry["epoch"]) for entry in trained.trace_],
        "gap": rounded(gaps),
        **_drawn(best, X, noise, (G, S, least), cell),
    }


def expected_loss(encoder: PrefixEncoder, St: np.ndarray, G: np.ndarray, S: np.ndarray) -> float:
    """Return E|Z'V'x' - x|^2 of an encoder and its decoder, from moments."""
    assert encoder.decoder_ is not None
    T = encoder.decoder_ @ encoder.components_  # (p, p)
    return float(np.trace(St) - 2 * np.trace(T @ S) + np.trace(T @ G @ T.T))


def _drawn(
    encoder: PrefixEncoder,
    X: np.ndarray,
    noise: GaussianNoise | Masking,
    theory: tuple[np.ndarray, np.ndarray, float],
    cell: JsonObject,
) -> JsonDict:
    """Compare with averages over drawn noise: relative error of G and S, and of the loss at the optimum."""
    G, S, least = theory
    rng = np.random.default_rng(cell["seed"])
    T = encoder.decoder_ @ encoder.components_
    sum_G, sum_S, sum_loss = np.zeros_like(G), np.zeros_like(S), 0.0
    for _ in range(cell["draws"]):
        noisy = damaged(X, noise, rng)
        sum_G += noisy.T @ noisy / len(X)
        sum_S += noisy.T @ X / len(X)
        sum_loss += float(np.sum((noisy @ T.T - X) ** 2)) / len(X)
    draws = cell["draws"]
    return {
        "G_error": float(np.linalg.norm(sum_G / draws - G) / np.linalg.norm(G)),
        "S_error": float(np.linalg.norm(sum_S / draws - S) / np.linalg.norm(S)),
        "loss_error": float(abs(sum_loss / draws - least) / least),
    }


def damaged(X: np.ndarray, noise: GaussianNoise | Masking, rng: np.random.Generator) -> np.ndarray:
    """Draw noisy copies of centred rows."""
    if isinstance(noise, GaussianNoise):
        return X + noise.sigma * rng.standard_normal(X.shape)
    ids = noise.patch_ids(X.shape[1])
    kept = rng.random((len(X), ids.max() + 1)) < noise.keep
    return X * kept[:, ids]


def report(settings: JsonObject, results: Results) -> Findings:
    """Report gaps of descent, and errors of drawn moments."""
    found = [one for _, one in results]
    measures = {
        "largest_final_gap": max(min(one["gap"]) for one in found),
        "least_gap": min(min(one["gap"]) for one in found),
        "largest_moment_error": max(max(one["G_error"], one["S_error"]) for one in found),
        "largest_loss_error": max(one["loss_error"] for one in found),
    }
    charts = []
    for name in dict.fromkeys(cell["set"] for cell, _ in results):
        lines = tuple(
            Series(noise_name(cell["noise"]), tuple(one["epoch"]), tuple(g if g > 0 else None for g in one["gap"]))
            for cell, one in results
            if cell["set"] == name
        )
        heading = f"{TITLES[name]}: Adam against the closed form"
        charts.append(Chart(heading, "step", "(loss - optimum) / variance", lines, y_scale="log"))
    return Findings(measures=rounded_measures(measures), panels=tuple(charts))
