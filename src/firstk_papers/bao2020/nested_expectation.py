"""Nested dropout and its expectation (Bao et al. 2020 section 5 and appendix C): three ways to the same loss."""

from __future__ import annotations

import numpy as np
import torch

from firstk.losses import FullPrefixReconstruction
from firstk_papers.frame.instances import (
    extremes,
    floats,
    instance_cells,
    least,
    line,
    of_check,
    values,
)
from firstk_papers.frame.panels import Chart, Findings
from firstk_papers.frame.types import JsonDict, JsonObject, Results

cells = instance_cells


def explicit(X: np.ndarray, B: np.ndarray, A: np.ndarray, prior: np.ndarray) -> float:
    """Return the expectation (18) term by term: half of the mean squared error of every prefix, weighted."""
    Z = X @ B.T
    errors = [np.sum((X - Z[:, :b] @ A[:, :b].T) ** 2) / (2 * len(X)) for b in range(1, len(B) + 1)]
    return float(prior @ errors)


def analytical(X: np.ndarray, B: np.ndarray, A: np.ndarray, prior: np.ndarray) -> float:
    """Return the closed form at the end of Bao et al. 2020 C, by the matrices P_D and P_L of (20)."""
    keep = 1 - np.concatenate([[0.0], np.cumsum(prior)[:-1]])
    P_L = np.minimum(keep[:, None], keep[None, :])
    n, Z = len(X), X @ B.T
    return float(np.sum(X**2) / (2 * n) - np.sum((X @ A * keep) * Z) / n + np.sum(Z @ (A.T @ A * P_L) * Z) / (2 * n))


def measure(cell: JsonObject) -> JsonDict:
    """Compare the expectation, its closed form, the library's loss, and draws."""
    rng = np.random.default_rng(cell["seed"])
    p, d, n = cell["p"], cell["d"], 40
    X = rng.standard_normal((n, p))
    X -= X.mean(axis=0)
    B, A = rng.standard_normal((d, p)) / np.sqrt(p), rng.standard_normal((p, d)) / np.sqrt(d)
    prior = rng.dirichlet(np.ones(d))
    wanted = explicit(X, B, A, prior)
    tensors = torch.tensor(X), torch.tensor(X @ B.T), torch.tensor(A)
    generator = torch.Generator().manual_seed(cell["seed"])
    sampled = FullPrefixReconstruction(prior, "sampled", generator=generator)
    draws = [float(sampled(*tensors)) / 2 for _ in range(cell["draws"])]
    means = np.cumsum(draws) / np.arange(1, len(draws) + 1)
    error = np.std(draws) / np.sqrt(len(draws))
    kept = np.unique(np.geomspace(1, len(draws), 60).astype(int)) - 1
    mean_code = 1 - np.concatenate([[0.0], np.cumsum(prior)[:-1]])
    shrunk = np.sum((X - (X @ B.T * mean_code) @ A.T) ** 2) / (2 * n)
    whole = float(FullPrefixReconstruction(prior)(*tensors))
    return {
        "closed": abs(analytical(X, B, A, prior) / wanted - 1),
        "library": abs(whole / (2 * wanted) - 1),
        "whole": abs(whole / wanted - 1),
        "draws_off": float(abs(means[-1] - wanted) / error),
        "without_variance": abs(shrunk / wanted - 1),
        "counts": floats(kept + 1),
        "means": floats(means[kept] / wanted),
    }


def report(settings: JsonObject, results: Results) -> Findings:
    """Report appendix C."""
    part = of_check(results, "expectation")
    series = (
        line("expectation", (1.0, part[0][1]["counts"][-1]), (1.0, 1.0), ours=True),
        *(line(f"instance {i + 1}", found["counts"], found["means"]) for i, (_, found) in enumerate(part[:5])),
    )
    chart = Chart("Mean of drawn losses over the expectation", "draws of all rows", "ratio", series, x_scale="log")
    return Findings(
        {
            **extremes(part, largest=("closed", "library")),
            "draws_off": float(np.sqrt(np.mean(np.square(values(part, "draws_off"))))),
            "without_variance": least(part, "without_variance"),
        },
        (chart,),
    )
