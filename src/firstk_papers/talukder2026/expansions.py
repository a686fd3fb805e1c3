"""The expansions of appendix A, term by term as printed (p = 5, d = 3), against the library's losses.

A.5, the Fisher objective, is checked at any size: what its optimum is, what leaves it alone, and what its eps does.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import eigh

from firstk import Fisher, FullPrefix, MonotoneL1, NonuniformL2, PrefixEncoder
from firstk.losses import FullPrefixFisher, FullPrefixReconstruction
from firstk.metrics import max_cosines, paired_cosines
from firstk_papers.frame.hooks import prefix_weights, step_view
from firstk_papers.frame.instances import (
    biggest,
    extremes,
    floats,
    increasing,
    instance_cells,
    least,
    line,
    of_check,
    relative,
    values,
    worst,
)
from firstk_papers.frame.panels import Chart, Findings, Table
from firstk_papers.frame.types import JsonDict, JsonObject, Results


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell for each check and instance."""
    return instance_cells(settings, revision=2)


def measure(cell: JsonObject) -> JsonDict:
    """Do the check that the cell names."""
    return _CHECKS[cell["check"]](cell, np.random.default_rng(cell["seed"]))


# -- A.1 to A.4 --------------------------------------------------------------------------------------------------


def plain_expansion(x: np.ndarray, y: np.ndarray) -> float:
    """Return Talukder et al. 2026 (8), for y of shape (3, p)."""
    y1, y2, y3 = y
    squares = x @ x + y1 @ y1 + y2 @ y2 + y3 @ y3
    return float(squares - 2 * x @ (y1 + y2 + y3) + 2 * y1 @ y2 + 2 * y1 @ y3 + 2 * y2 @ y3)


def full_prefix_expansion(x: np.ndarray, y: np.ndarray) -> float:
    """Return Talukder et al. 2026 (13), for y of shape (3, p)."""
    y1, y2, y3 = y
    linear = 2 * (3 * x @ y1 + 2 * x @ y2 + x @ y3)
    quadratic = 3 * y1 @ y1 + 2 * y2 @ y2 + y3 @ y3
    return float(3 * x @ x - linear + quadratic + 4 * y1 @ y2 + 2 * y1 @ y3 + 2 * y2 @ y3)


def _worked(cell: JsonObject, rng: np.random.Generator) -> JsonDict:
    """Check the worked example: one vector for (8) to (14), rows for (17) and (19)."""
    d, p, n = cell["d"], cell["p"], 7
    x, z, A = rng.standard_normal((p,)), rng.standard_normal((d,)), rng.standard_normal((p, d))
    y = z[:, None] * A.T
    one = torch.tensor(x[None, :]), torch.tensor(z[None, :]), torch.tensor(A)
    prefixes = FullPrefixReconstruction().per_prefix(*one).numpy()
    terms = [
        x @ x - 2 * x @ y[0] + y[0] @ y[0],
        x @ x - 2 * x @ (y[0] + y[1]) + y[0] @ y[0] + 2 * y[0] @ y[1] + y[1] @ y[1],
        plain_expansion(x, y),
    ]
    cum = 3 * prefix_weights(FullPrefix("uniform"), d).cum
    return {
        "eq8": relative(float(FullPrefixReconstruction({d: 1.0})(*one)), plain_expansion(x, y)),
        "eq10_12": relative(prefixes, terms),
        "eq13": relative(3 * float(FullPrefixReconstruction()(*one)), full_prefix_expansion(x, y)),
        "eq14": biggest(np.minimum(cum[:, None], cum) - np.array([[3, 2, 1], [2, 2, 1], [1, 1, 1]])),
        **_penalised(rng, d, p, n),
    }


def _penalised(rng: np.random.Generator, d: int, p: int, n: int) -> dict[str, float]:
    """Check (17) and (19): the library's loss with its penalty, against the written sums."""
    X, B, A = rng.standard_normal((n, p)), rng.standard_normal((d, p)), rng.standard_normal((p, d))
    lam, alpha = increasing(d, 1.0, rng), 0.3
    plain = float(np.sum((X - X @ B.T @ A.T) ** 2) / n)
    squares = sum(lam[k] * (B[k] @ B[k] + A[:, k] @ A[:, k]) for k in range(d))
    sums = sum((k + 1) * np.abs(X @ B[k]).sum() for k in range(d))
    rows, code, decoder = torch.tensor(X), torch.tensor(X @ B.T), torch.tensor(A)
    base = float(FullPrefixReconstruction({d: 1.0})(rows, code, decoder))
    view = step_view(torch.tensor(B), decoder, torch.eye(p, dtype=torch.float64) * 9, code=code)
    return {
        "eq17": relative(base + float(NonuniformL2(floats(lam)).penalty(view)), plain + squares),
        "eq19": relative(base + float(MonotoneL1(alpha).penalty(view)), plain + alpha * sums / n),
    }


# -- A.5 ---------------------------------------------------------------------------------------------------------


def _scatters(cell: JsonObject, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows of C classes; return them with their labels and the scatters (26), (27) by their definitions."""
    p, C = cell["p"], cell["d"] + 1
    y = np.repeat(np.arange(C), 12 + np.arange(C))
    X = rng.standard_normal((C, p))[y] * 1.5 + rng.standard_normal((len(y), p)) @ rng.standard_normal((p, p))
    mean = X.mean(axis=0)
    Sw, Sb = np.zeros((p, p)), np.zeros((p, p))
    for c in range(C):
        own = X[y == c]
        Sw += (own - own.mean(axis=0)).T @ (own - own.mean(axis=0)) / len(X)
        Sb += len(own) / len(X) * np.outer(own.mean(axis=0) - mean, own.mean(axis=0) - mean)
    return X, y, Sw, Sb


def _fisher(cell: JsonObject, rng: np.random.Generator) -> JsonDict:
    """Check LDA as the pencil (25): ratios, the optimum of every prefix, the flag, and eps on the code (29)."""
    d, p = cell["d"], cell["p"]
    X, y, Sw, Sb = _scatters(cell, rng)
    gamma, V = eigh(Sb, Sw)
    gamma, V = gamma[::-1], V[:, ::-1][:, :d].T.copy()
    encoder = PrefixEncoder(d, objective=Fisher(shrinkage=None)).fit(X, y)
    tensors = torch.tensor(Sw), torch.tensor(Sb)

    def prefixes(B: np.ndarray, eps: float = 0.0) -> np.ndarray:
        return -FullPrefixFisher(code_eps=eps).per_prefix(torch.tensor(B), *tensors).numpy()

    best = np.cumsum(gamma[:d])
    lower = np.tril(rng.standard_normal((d, d)), -1) + np.diag(rng.uniform(0.5, 2, d))
    mixed = lower @ V
    drawn = [prefixes(V + size * rng.standard_normal((d, p))) for size in np.logspace(-3, 1, 40)]
    scales = 10.0 ** np.arange(-2, 7)
    eps = 1e-1 * float(np.trace(Sw)) / p
    # Past the norm 1e4 what is still gained is near rounding.
    loss = FullPrefixFisher({d: 1.0}, code_eps=eps)
    grown = [-float(loss(torch.tensor(s * V / np.linalg.norm(V)), *tensors)) for s in scales]
    return {
        "ratios": relative([v @ Sb @ v / (v @ Sw @ v) for v in V], gamma[:d]),
        "rank": int(np.sum(gamma > 1e-9 * gamma[0])),
        "classes": d + 1,
        "library_axes": float(1 - paired_cosines(encoder.components_, V, metric=Sw).min()),
        "optimum": relative(prefixes(V), best),
        "most_gain": max(biggest(np.maximum(part - best, 0)) for part in drawn),
        "flag": relative(prefixes(mixed), best),
        "flag_axes": float(max_cosines(mixed, V, metric=Sw).min()),
        "scales": floats(scales),
        "grown": floats(np.array(grown) / best[-1]),
        "still_growing": bool(np.all(np.diff(grown[:7]) > 0)),
    }


_CHECKS = {"worked": _worked, "fisher": _fisher}


def report(settings: JsonObject, results: Results) -> Findings:
    """Report appendix A."""
    worked, fishers = of_check(results, "worked"), of_check(results, "fisher")
    equations = {
        "eq8": "(8)",
        "eq10_12": "(10) to (12)",
        "eq13": "(13)",
        "eq14": "(14)",
        "eq17": "(17)",
        "eq19": "(19)",
    }
    table = Table(
        "Worst relative deviation, p = 5, d = 3",
        ("equation", "deviation"),
        tuple((title, worst(worked, name)) for name, title in equations.items()),
    )
    chart = Chart(
        "Fisher with eps on the code, as the encoder is scaled",
        "norm of the encoder",
        "objective over its supremum",
        tuple(line(f"instance {i + 1}", found["scales"], found["grown"]) for i, (_, found) in enumerate(fishers[:4])),
        x_scale="log",
    )
    return Findings(
        {name: worst(worked, name) for name in equations}
        | {
            "ratios": worst(fishers, "ratios"),
            "rank_over": max(found["rank"] - (found["classes"] - 1) for _, found in fishers),
            **extremes(fishers, largest=("library_axes", "optimum", "most_gain", "flag"), smallest=("flag_axes",)),
            "still_growing": all(values(fishers, "still_growing")),
            "supremum_share": least([(c, {"v": f["grown"][-1]}) for c, f in fishers], "v"),
        },
        (chart, table),
    )
