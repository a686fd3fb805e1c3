"""Additive Gaussian noise changes nothing (corollary 3.1): the supervised model over the denoising code.

The corollary reads the code of *clean* rows (equation (5)); section 5.4 of the paper fits the readout on noisy ones.
Both are here, as the first does not move and the second does.
"""

from __future__ import annotations

import numpy as np

from firstk import ClosedForm, Denoising, GaussianNoise, PrefixEncoder
from firstk_papers.balestriero2024.task_alignment import rounded_measures
from firstk_papers.datasets.tasks import Task, task, title
from firstk_papers.frame.panels import Chart, Findings, Series, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 1


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell for each set, with every sigma and every k."""
    return [
        {"set": line["set"], "rows": line.get("rows"), "pool": line.get("pool", 1), "sigmas": settings["sigmas"],
         "k": settings["k"], "seed": settings["seed"], "revision": REVISION}
        for line in settings["tasks"]
    ]  # fmt: skip


def measure(cell: JsonObject) -> JsonDict:
    """Return how far W^T V^T moves from its place at sigma = 0, relative to its norm, for each sigma and k."""
    rows = task(cell)
    X = (rows.X - rows.X.mean(axis=0)).astype(np.float64)
    Y = (rows.y[:, None] == np.unique(rows.y)).astype(np.float64)
    Sxy, St = X.T @ (Y - Y.mean(axis=0)) / len(X), X.T @ X / len(X)
    unit = float(np.sqrt(np.trace(St) / len(St)))
    clean, noisy = [], []
    still = denoised(rows, 0.0, max(cell["k"]))
    for sigma in cell["sigmas"]:
        V = denoised(rows, sigma * unit, max(cell["k"]))
        G = St + (sigma * unit) ** 2 * np.eye(len(St))
        moved = [[supervised(V[:k], M, Sxy), supervised(still[:k], St, Sxy)] for M in (St, G) for k in cell["k"]]
        apart = [float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in moved]
        clean.append(apart[: len(cell["k"])])
        noisy.append(apart[len(cell["k"]) :])
    return {"clean": [rounded(line) for line in clean], "noisy": [rounded(line) for line in noisy]}


def denoised(rows: Task, sigma: float, d: int) -> np.ndarray:
    """Return V* of theorem 3 under Gaussian noise, transposed: the encoder of the library, solved in float64."""
    objective = Denoising(GaussianNoise(sigma=sigma))
    return PrefixEncoder(d, objective=objective, solver=ClosedForm("float64")).fit(rows.X).components_


def supervised(V: np.ndarray, M: np.ndarray, Sxy: np.ndarray) -> np.ndarray:
    """Return W^T V^T of equation (5) for a code with rows V, read from inputs with second moment M."""
    return np.linalg.solve(V @ M @ V.T, V @ Sxy).T @ V


def report(settings: JsonObject, results: Results) -> Findings:
    """Report both readouts against sigma; the largest movement over sets, sigmas and k."""
    measures = {
        "clean_readout_moves": max(float(np.max(found["clean"])) for _, found in results),
        "noisy_readout_moves": min(float(np.max(found["noisy"])) for _, found in results),
    }
    charts = [
        Chart(
            f"Readout fitted on {what} rows, k = {settings['k'][-1]}", "sigma / root mean variance",
            "relative change of W'V'",
            tuple(
                Series(title(cell), tuple(settings["sigmas"]), tuple(line[-1] or None for line in found[what]))
                for cell, found in results
            ),
            x_scale="log", y_scale="log",
        )
        for what in ("clean", "noisy")
    ]  # fmt: skip
    return Findings(measures=rounded_measures(measures), panels=tuple(charts))
