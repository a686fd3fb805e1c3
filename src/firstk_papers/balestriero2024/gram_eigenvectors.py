"""Eigenvectors of a wide data matrix from the small Gram matrix (section 5.7): the relation, the code, the cost."""

from __future__ import annotations

import time

import numpy as np

from firstk import ClosedForm, PrefixEncoder
from firstk_papers.balestriero2024.task_alignment import rounded_measures
from firstk_papers.frame.panels import Chart, Findings, Series
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 1


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell for each width D, all with the same number of rows N; `timed` ones take the time as well."""
    common = {name: settings[name] for name in ("N", "timed", "seed")}
    return [{"D": D, **common, "revision": REVISION} for D in settings["widths"]]


def measure(cell: JsonObject) -> JsonDict:
    """Compare the library, which never builds a D x D matrix here, with the eigenvectors of the one that does."""
    rng = np.random.default_rng(cell["seed"])
    N, D = cell["N"], cell["D"]
    X = rng.standard_normal((N, D)) / np.sqrt(np.arange(1, D + 1))
    X = X - X.mean(axis=0)
    begun = time.perf_counter()
    encoder = PrefixEncoder(N - 1, solver=ClosedForm("float64")).fit(X)
    small = time.perf_counter() - begun
    begun = time.perf_counter()
    values, vectors = np.linalg.eigh(X.T @ X / N)
    large = time.perf_counter() - begun
    values, vectors = values[::-1][: N - 1], vectors[:, ::-1][:, : N - 1]
    cosines = np.abs(np.sum(encoder.components_.T * vectors, axis=0))
    return {
        "value_error": float(np.max(np.abs(encoder.spectrum_ - values)) / values[0]),
        "least_cosine": float(cosines.min()),
        "seconds": [small, large] if cell["timed"] else None,
        "printed_code_runs": printed_scaling_runs(X),
        **relation(X),
    }


def relation(X: np.ndarray) -> dict[str, float]:
    """Return, for u with X X' u = a u, how far X'X (X'u) is from a X'u, and from a / |X'u| times it as printed."""
    a, u = (part[..., -1] for part in np.linalg.eigh(X @ X.T))
    w = X.T @ u
    image, norm = X.T @ (X @ w), float(np.linalg.norm(w))
    right, printed = (float(np.linalg.norm(image - c * w) / np.linalg.norm(image)) for c in (a, a / norm))
    return {"relation_error": right, "printed_relation_error": printed}


def printed_scaling_runs(X: np.ndarray) -> bool:
    """Tell whether the last step of the printed code runs: it divides *rows* of the D x N vectors by N values."""
    values, small = np.linalg.eigh(X @ X.T)
    vectors = X.T @ small
    positive = values > 0
    try:
        vectors[positive] /= np.sqrt(values[positive])
    except (IndexError, ValueError):
        return False
    return True


def report(settings: JsonObject, results: Results) -> Findings:
    """Report what holds of section 5.7, and what it saves."""
    found = [one for _, one in results]
    times = [one["seconds"] for one in found if one["seconds"]]
    measures = {
        "value_error": max(one["value_error"] for one in found),
        "least_cosine": min(one["least_cosine"] for one in found),
        "printed_code_runs": all(one["printed_code_runs"] for one in found),
        "relation_error": max(one["relation_error"] for one in found),
        "printed_relation_error": min(one["printed_relation_error"] for one in found),
        "time_ratio_widest": times[-1][1] / times[-1][0] if times else None,
    }
    widths = tuple(cell["D"] for cell, _ in results)
    agreement = Chart(
        f"N = {settings['N']} rows", "D", "error", x_scale="log", y_scale="log",
        series=(
            Series("eigenvalues, as firstk solves it", widths, tuple(one["value_error"] for one in found), ours=True),
            Series("eigenvalue relation as printed", widths, tuple(one["printed_relation_error"] for one in found)),
        ),
    )  # fmt: skip
    clocks = [
        Series(name, widths, tuple(pair[i] for pair in times), ours=i == 0)
        for i, name in enumerate(("firstk, from the N x N matrix", "numpy, D x D matrix"))
    ]
    cost = Chart("Cost", "D", "seconds", tuple(clocks), x_scale="log", y_scale="log")
    return Findings(measures=rounded_measures(measures), panels=(agreement, cost) if times else (agreement,))
