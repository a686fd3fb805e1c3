"""Full prefix and PCA (theorem B.1, section 2.2), and the statistics that give every prefix at once (appendix B).

Losses are the library's, at 1/n and with omega divided by its sum; the paper's bound is divided likewise.
"""

from __future__ import annotations

import numpy as np
import torch

from firstk import FullPrefix, Gradient, PrefixEncoder, SparsePrefix
from firstk.losses import FullPrefixReconstruction
from firstk.metrics import mean_principal_angles, paired_cosines
from firstk_papers.frame.instances import (
    Problem,
    biggest,
    by_instance,
    extremes,
    floats,
    instance_cells,
    line,
    measuring,
    of_check,
    orthogonal,
    worst,
)
from firstk_papers.frame.panels import Chart, Findings
from firstk_papers.frame.types import JsonDict, JsonObject, Results
from firstk_papers.talukder2026.prefix_gradients import SCHEDULES

Omega = str | dict[int, float] | np.ndarray


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell for each check and instance."""
    return instance_cells(settings, revision=2)


def bound(spectrum: np.ndarray, d: int) -> float:
    """Return (sum_{k=2}^d (k-1) s_k + d sum_{k>d} s_k) / d, the paper's lower bound over d prefixes of weight 1/d."""
    return float((np.arange(d) @ spectrum[:d] + d * spectrum[d:].sum()) / d)


def full_prefix(B: np.ndarray, A: np.ndarray, St: np.ndarray, omega: Omega = "uniform") -> float:
    """Return the full-prefix loss of Talukder et al. 2026 (9), by the library."""
    return float(FullPrefixReconstruction(omega).from_moments(*(torch.tensor(part) for part in (St, B, A))))


def best_encoder(A: np.ndarray, cum: np.ndarray) -> np.ndarray:
    """Return the encoder that is best for a decoder, whatever the data: (cum_max(i,j) GA_ij) B = diag(cum) A^T."""
    return np.linalg.solve(np.minimum(cum[:, None], cum) * (A.T @ A), cum[:, None] * A.T)


# -- theorem B.1 -------------------------------------------------------------------------------------------------


def _bounded(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check the lower bound: reached by PCA, and by nothing drawn near it or far from it."""
    d, U = cell["d"], data.U[:, : cell["d"]]
    limit = bound(data.spectrum, d)
    sizes, excess = np.logspace(-4, 0.5, 60), []
    for size in sizes:
        B, A = (part + size * rng.standard_normal(part.shape) for part in (U.T, U))
        excess.append(full_prefix(B, A, data.St) / limit - 1)
    return {
        "at_pca": abs(full_prefix(U.T, U, data.St) / limit - 1),
        "least_excess": min(excess),
        "sizes": floats(sizes),
        "excess": floats(excess),
    }


def _symmetry(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Try what leaves the optimum optimal: signs, and scales against the paper; not a flag alone, not a rotation."""
    d, U = cell["d"], data.U[:, : cell["d"]]
    limit = bound(data.spectrum, d)
    scale, signs = np.exp(rng.standard_normal(d)), rng.choice([-1.0, 1.0], d)
    cum = np.arange(d, 0, -1) / d
    flag = U @ (np.triu(rng.standard_normal((d, d)), 1) + np.eye(d))  # prefixes span what they should
    turned = U @ orthogonal(d, rng)
    return {
        "scaled": abs(full_prefix(U.T / scale[:, None], U * scale, data.St) / limit - 1),
        "signed": abs(full_prefix(U.T * signs[:, None], U * signs, data.St) / limit - 1),
        "flag_excess": full_prefix(best_encoder(flag, cum), flag, data.St) / limit - 1,
        "flag_angle": biggest(mean_principal_angles(flag.T, U.T)),
        "rotated_excess": full_prefix(best_encoder(turned, cum), turned, data.St) / limit - 1,
        "unordered_rotated": _last_prefix_gap(turned, data),
    }


def _last_prefix_gap(A: np.ndarray, data: Problem) -> float:
    """Return the excess of the plain loss of a rotated optimum: 0, as the loss of the whole code has no order."""
    d = A.shape[1]
    return abs(full_prefix(A.T, A, data.St, {d: 1.0}) / data.spectrum[d:].sum() - 1)


def _trained(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Train from a random start: all omega, with and without orthonormal columns, and a sparse list."""
    d = cell["d"]
    X, U = _rows(data, rng), data.U[:, :d]
    found: dict[str, float] = {}
    for name in SCHEDULES:
        found[name] = float(1 - paired_cosines(_decoder(X, d, FullPrefix(name), cell), U.T).min())
    tied = _decoder(X, d, FullPrefix("uniform", orthonormal_decoder=True), cell)
    sparse = mean_principal_angles(_decoder(X, d, SparsePrefix([2, d]), cell), U.T)
    return {
        "trained": max(found.values()),
        "orthonormal": float(1 - paired_cosines(tied, U.T).min()),
        "sparse_own": float(max(sparse[1], sparse[d - 1])),
    }


def _decoder(X: np.ndarray, d: int, ordering: FullPrefix | SparsePrefix, cell: JsonObject) -> np.ndarray:
    """Return the axes, as rows, of the decoder that firstk trains from a random start."""
    solver = Gradient(batch_size="full", dtype="float64", epochs=cell["steps"])
    encoder = PrefixEncoder(d, ordering=ordering, solver=solver, init="random", random_state=cell["seed"]).fit(X)
    return np.asarray(encoder.decoder_).T


def _rows(data: Problem, rng: np.random.Generator) -> np.ndarray:
    """Return rows whose scatter is exactly that of the problem."""
    p = len(data.St)
    white = rng.standard_normal((8 * p, p))
    white = np.linalg.qr(white - white.mean(axis=0))[0] * np.sqrt(8 * p)
    return white * np.sqrt(data.spectrum) @ data.U.T


def _conditions(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Break the conditions of the theorem: two equal eigenvalues, or a prefix of weight 0, leave a rotation free."""
    d, s = cell["d"], data.spectrum.copy()
    s[1] = s[0]
    tied = Problem((data.U * s) @ data.U.T, data.U, s)
    turn = np.eye(cell["p"])
    angle = float(rng.uniform(0.3, 1.2))
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    A = (data.U @ turn)[:, :d]
    omega = np.ones(d)
    omega[0] = 0.0
    best = full_prefix(data.U[:, :d].T, data.U[:, :d], data.St, omega)
    return {
        "tied_turn": abs(full_prefix(A.T, A, tied.St) / bound(s, d) - 1),
        "weightless_turn": abs(full_prefix(A.T, A, data.St, omega) / best - 1),
        "distinct_turn": full_prefix(A.T, A, data.St) / bound(data.spectrum, d) - 1,
    }


# -- appendix B --------------------------------------------------------------------------------------------------


def _statistics(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Compare every prefix loss from H, GA and GZ against the loop over prefixes."""
    d, p = cell["d"], cell["p"]
    X = rng.standard_normal((30, p)) @ rng.standard_normal((p, p))
    X -= X.mean(axis=0)
    B, A = rng.standard_normal((d, p)) / p, rng.standard_normal((p, d)) / p
    slow = naive(X, B, A)
    rows, codes, weights = torch.tensor(X), torch.tensor(X @ B.T), torch.tensor(A)
    St = torch.tensor(X.T @ X / len(X))
    omega = rng.uniform(0.1, 1, (d,))
    total = float(omega @ slow / omega.sum())
    loss = FullPrefixReconstruction(omega)
    found = {
        "rows": loss.per_prefix(rows, codes, weights).numpy(),
        "moments": loss.per_prefix_from_moments(St, torch.tensor(B), weights).numpy(),
        "paper": from_statistics(X, B, A),
    }
    out = {f"{name}_gap": float(np.max(np.abs(part / slow - 1))) for name, part in found.items()}
    weighted = (loss(rows, codes, weights), loss.from_moments(St, torch.tensor(B), weights))
    return out | {"weighted_gap": max(abs(float(value) / total - 1) for value in weighted)}


def naive(X: np.ndarray, B: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the loss of every prefix by its definition, one prefix after another."""
    Z = X @ B.T
    return np.array([np.mean(np.sum((X - Z[:, :m] @ A[:, :m].T) ** 2, axis=1)) for m in range(1, len(B) + 1)])


def from_statistics(X: np.ndarray, B: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the same by appendix B: |X|^2 - 2 sum_{i<=m} H_ii + sum_{i,j<=m} GA_ij GZ_ij, over n."""
    Z = X @ B.T
    H, shared = np.sum((X @ A) * Z, axis=0), (A.T @ A) * (Z.T @ Z)
    blocks = np.array([shared[:m, :m].sum() for m in range(1, len(B) + 1)])
    return (np.sum(X**2) - 2 * np.cumsum(H) + blocks) / len(X)


def _cancelling(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Count the digits left where a prefix leaves little: appendix B as written, and firstk around the residual."""
    d, p = cell["d"], cell["p"]
    lefts = 10.0 ** -np.arange(0, 15, 2)
    paper, ours = [], []
    for left in lefts:
        U = orthogonal(p, rng)[:, :d]
        X = rng.standard_normal((40, d)) @ U.T + np.sqrt(left) * rng.standard_normal((40, p)) / np.sqrt(p)
        exact = naive(X, U.T, U)[-1]
        paper.append(abs(from_statistics(X, U.T, U)[-1] / exact - 1))
        rows = torch.tensor(X), torch.tensor(X @ U), torch.tensor(U)
        ours.append(abs(float(FullPrefixReconstruction().per_prefix(*rows)[-1]) / exact - 1))
    return {"left": floats(lefts), "paper": floats(paper), "ours": floats(ours)}


measure = measuring(_bounded, _symmetry, _trained, _conditions, _statistics, _cancelling)


# -- what is shown -----------------------------------------------------------------------------------------------


def recovery(settings: JsonObject, results: Results) -> Findings:
    """Report theorem B.1."""
    names = ("bounded", "symmetry", "trained", "conditions")
    bounded, symmetry, trained, conditions = (of_check(results, name) for name in names)
    shown = bounded[-1][1]
    moved = Chart(
        "Excess over the bound, by how far from PCA",
        "size of a random step",
        "relative excess",
        (line("drawn weights", shown["sizes"], shown["excess"], kind="points", ours=True),),
        x_scale="log",
        y_scale="log",
    )
    kinds = {
        "scaled": "scales",
        "signed": "signs",
        "flag_excess": "right spans, triangular mixing",
        "rotated_excess": "rotation",
    }
    excess = by_instance("Excess over the bound, by what was done to PCA", "relative excess", symmetry, kinds)
    return Findings(
        {
            **extremes(bounded, largest=("at_pca",), smallest=("least_excess",)),
            **extremes(trained, largest=("trained", "orthonormal", "sparse_own")),
            "scales_matter": (worst(symmetry, "scaled") or 0.0) > 1e-9,
            "signs_matter": (worst(symmetry, "signed") or 0.0) > 1e-9,
            **extremes(
                symmetry,
                largest=("scaled", "signed", "flag_angle", "unordered_rotated"),
                smallest=("flag_excess", "rotated_excess"),
            ),
            **extremes(conditions, largest=("tied_turn", "weightless_turn"), smallest=("distinct_turn",)),
        },
        (excess, moved),
    )


def statistics(settings: JsonObject, results: Results) -> Findings:
    """Report appendix B against the naive sum."""
    part, cancelling = of_check(results, "statistics"), of_check(results, "cancelling")
    left = cancelling[0][1]["left"]
    columns = {name: zip(*(found[name] for _, found in cancelling), strict=True) for name in ("paper", "ours")}
    worst_of = {name: [float(f"{max(*column, 1e-17):.6g}") for column in part] for name, part in columns.items()}
    chart = Chart(
        "Relative error of the last prefix loss",
        "share of the variance it leaves",
        "relative error",
        (
            line("appendix B as written", left, worst_of["paper"]),
            line("around the residual (firstk)", left, worst_of["ours"], ours=True),
        ),
        x_scale="log",
        y_scale="log",
    )
    return Findings(
        {
            **extremes(part, largest=("paper_gap", "rows_gap", "moments_gap", "weighted_gap")),
            "paper_cancelling": max(worst_of["paper"]),
            "ours_cancelling": max(worst_of["ours"]),
        },
        (chart,),
    )
