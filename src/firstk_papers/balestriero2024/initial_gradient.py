"""Theorem 2: where the gradient comes from at initialization, and what a linear decoder allows.

The gradient of the reconstruction error with respect to the code of a row is J'(g(f(x)) - x), J the Jacobian of the
decoder. Its part that carries the data splits over principal axes: J' v_k <v_k, x>.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from firstk_papers.balestriero2024.axes import Axes, principal_axes
from firstk_papers.balestriero2024.encoder_capacity import gaps, network_against_principal
from firstk_papers.balestriero2024.task_alignment import rounded_measures, thinned
from firstk_papers.datasets.tasks import task, title
from firstk_papers.frame.panels import Chart, Findings, Series, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

if TYPE_CHECKING:
    from torch import nn

REVISION = 1
TOP = 0.9  # share of the variance that the top subspace holds, as in the paper's abstract


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return cells: every set with every decoder; every problem with a linear decoder; a network for each set."""
    common = {"seed": settings["seed"], "revision": REVISION}
    initial = [
        {"kind": "initial", **line, "decoder": decoder, "K": settings["K"], "width": settings["width"],
         "seeds": settings["seeds"], "points": settings["points"], **common}
        for line in settings["tasks"]
        for decoder in settings["decoders"]
    ]  # fmt: skip
    free = [{"kind": "free", **line, "lambdas": settings["lambdas"], **common} for line in settings["problems"]]
    return [*initial, *free, *({"kind": "network", **line, **common} for line in settings["networks"])]


def measure(cell: JsonObject) -> JsonDict:
    """Answer the cell's kind of question."""
    return {"initial": _initial, "free": gaps, "network": network_against_principal}[cell["kind"]](cell)


def _initial(cell: JsonObject) -> JsonDict:
    """Return the share of gradient energy by principal axis, averaged over seeds of the initialization."""
    rows = task(cell)
    axes = principal_axes(rows.moments())
    top = axes.reaching(TOP)
    chosen = np.random.default_rng(cell["seed"]).permutation(len(rows.X))[: cell["points"]]
    X = rows.X[chosen] - axes.mean
    energies, bounds = [], []
    for seed in range(cell["seeds"]):
        J = jacobians(X, cell["decoder"], cell["K"], cell["width"], seed)
        energies.append(energy(J, X, axes.P))
        bounds.append(proof_bound(J, X, axes))
    shares = np.cumsum(np.mean([one / one.sum() for one in energies], axis=0))
    own = np.sum((X @ axes.P) ** 2, axis=0)  # of the same rows
    ks = thinned(axes.rank)
    return {
        "k": ks,
        "energy": rounded(shares[np.array(ks) - 1]),
        "variance": rounded((np.cumsum(own) / own.sum())[np.array(ks) - 1]),
        "top": top,
        "rank": axes.rank,
        "top_shares": rounded([float(one[:top].sum() / one.sum()) for one in energies]),
        "spectrum_ratio": float(axes.spectrum[0] / axes.spectrum[-1]),
        "jacobian_ratios": rounded(bounds),
    }


def jacobians(X: np.ndarray, decoder: str, K: int, width: int, seed: int) -> np.ndarray:
    """Return the Jacobian of a fresh decoder at the codes a fresh encoder gives, shape (n, p, K).

    `decoder` names the activation and the number of hidden layers, as in "relu-2"; the encoder mirrors it. Weights
    are drawn as torch draws them.
    """
    import torch
    from torch import nn

    activation, _, hidden = decoder.partition("-")
    kind = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}[activation]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = [K, *[width] * int(hidden), X.shape[1]]
        encoder, reader = (_stack(way, kind).double() for way in (sizes[::-1], sizes))
    with torch.no_grad():
        at = encoder(torch.from_numpy(X.astype(np.float64)))
    J = torch.eye(K, dtype=torch.float64).expand(len(X), K, K)  # (n, outputs of the layer, K)
    for layer in reader:
        if isinstance(layer, nn.Linear):
            J = layer.weight.detach() @ J
        else:
            at = at.requires_grad_()
            (slopes,) = torch.autograd.grad(layer(at).sum(), at)  # an activation acts on each number alone
            J = slopes[:, :, None] * J
        at = layer(at).detach()
    return J.numpy()


def _stack(sizes: list[int], kind: type[nn.Module]) -> nn.Sequential:
    """Return a network of linear layers with activations between them."""
    from torch import nn

    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), kind()]
    return nn.Sequential(*layers[:-1])


def energy(J: np.ndarray, X: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Return sum over rows of |J' v_k <v_k, x>|^2 for every principal axis v_k, a column of P."""
    through = np.einsum("npk,pr->nkr", J, P, optimize=True)  # (n, K, r)
    return np.einsum("nkr,nkr,nr->r", through, through, (X @ P) ** 2, optimize=True)


def proof_bound(J: np.ndarray, X: np.ndarray, axes: Axes) -> float:
    """Return the right side of the proof's condition: largest over least squared singular values of sum_n U_nk J_n.

    The numerator belongs to the last axis, the denominator to the first (section 5.6). The condition asks that the
    ratio of the two variances be at least this.
    """
    U = axes.whitened(X + axes.mean)[:, [-1, 0]]
    U /= np.linalg.norm(U, axis=0)  # unit columns, as over all rows
    last, first = (np.linalg.svd(np.einsum("n,npk->pk", u, J), compute_uv=False) for u in U.T)
    return float(last[0] ** 2 / first[-1] ** 2)


# -- report ----------------------------------------------------------------------------------------------------------


def report(settings: JsonObject, results: Results) -> Findings:
    """Report energy at initialization, and the equivalence for a linear decoder."""
    initial = [(c, r) for c, r in results if c["kind"] == "initial"]
    free = [(c, r) for c, r in results if c["kind"] == "free"]
    excess = [r["excess"] for c, r in results if c["kind"] == "network"]
    narrow = [r["gap"] for _, r in free if not r["wide"]]
    conditions = [
        found["spectrum_ratio"] >= ratio for _, found in initial for ratio in found["jacobian_ratios"] if ratio
    ]
    measures = {
        "least_top_share": min(min(found["top_shares"]) for _, found in initial),
        "largest_top_directions": max(found["top"] / found["rank"] for _, found in initial),
        "energy_off_variance": max(
            float(np.max(np.abs(np.subtract(found["energy"], found["variance"])))) for _, found in initial
        ),
        "condition_held_share": float(np.mean(conditions)),
        "free_gap_wide": max(max(r["gap"]) for _, r in free if r["wide"]),
        "free_gap_narrow": max(max(gap) for gap in narrow),
        "free_gap_narrow_at_largest": max(gap[-1] for gap in narrow),
        "network_least_excess": min(excess) if excess else None,
        "network_largest_excess": max(excess) if excess else None,
    }
    notes = tuple(
        f"{title(cell)}, {cell['decoder']}: the {found['top']} directions of {found['rank']} with {TOP:.0%} of the "
        f"variance get {np.mean(found['top_shares']):.1%} of the gradient energy."
        for cell, found in initial
    )
    return Findings(measures=rounded_measures(measures), panels=_panels(settings, initial, free), notes=notes)


def _panels(settings: JsonObject, initial: Results, free: Results) -> tuple[Chart, ...]:
    charts = []
    for name in dict.fromkeys(title(cell) for cell, _ in initial):
        of_set = [(cell, found) for cell, found in initial if title(cell) == name]
        lines = [Series(f"gradient energy, {c['decoder']}", tuple(r["k"]), tuple(r["energy"])) for c, r in of_set]
        first = of_set[0][1]
        lines.append(Series("variance", tuple(first["k"]), tuple(first["variance"])))
        charts.append(Chart(name, "first k principal axes", "share", tuple(lines), x_scale="log"))
    lines = [
        Series(_named(cell), tuple(settings["lambdas"]), tuple(gap if gap > 1e-15 else None for gap in found["gap"]))
        for cell, found in free
    ]
    charts.append(
        Chart("What a free code gains over a linear encoder", "lambda", "share of the loss of an empty code",
              tuple(lines), x_scale="log", y_scale="log")
    )  # fmt: skip
    return tuple(charts)


def _named(cell: JsonObject) -> str:
    return title(cell) if "set" in cell else f"Gaussian, D = {cell['D']}, N = {cell['N']}"
