"""The gradient comparison of section 2.1: what each loss pulls on, and whether the order depends on the task."""

from __future__ import annotations

import numpy as np
import torch

from firstk import FullPrefix, MonotoneL1, NonuniformL2
from firstk.losses import FullPrefixReconstruction
from firstk_papers.bao2020.landscape import point
from firstk_papers.frame.hooks import prefix_weights, step_view
from firstk_papers.frame.instances import (
    Problem,
    biggest,
    by_instance,
    extremes,
    floats,
    increasing,
    instance_cells,
    least,
    line,
    measuring,
    of_check,
    orthogonal,
    relative,
    values,
)
from firstk_papers.frame.panels import Chart, Findings, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

SCHEDULES = ("harmonic", "reverse_harmonic", "uniform")

cells = instance_cells


def pull(x: np.ndarray, Y: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Return -2 sum_{m>=k} omega_m r^(m) for every k, (d, p): the gradient of full prefix with respect to y_k."""
    residuals = x - np.cumsum(Y, axis=0)  # (d, p)
    weighted = omega[:, None] * residuals
    return -2 * np.cumsum(weighted[::-1], axis=0)[::-1]


def _full(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check full prefix: the stated gradient against autograd on the definition, and against the library's."""
    d, p = cell["d"], cell["p"]
    x, z, A = rng.standard_normal((p,)), rng.standard_normal((d,)), rng.standard_normal((p, d))
    weights = prefix_weights(FullPrefix(floats(rng.uniform(0.1, 1, (d,)))), d).omega
    Y = z[:, None] * A.T
    leaves = torch.tensor(Y, requires_grad=True)
    prefixes = torch.tensor(x) - leaves.cumsum(0)
    (slow,) = torch.autograd.grad((torch.tensor(weights) * prefixes.square().sum(1)).sum(), leaves)
    stated = pull(x, Y, weights)
    code, decoder = torch.tensor(z[None, :], requires_grad=True), torch.tensor(A, requires_grad=True)
    loss = FullPrefixReconstruction(weights)(torch.tensor(x[None, :]), code, decoder)
    dz, dA = torch.autograd.grad(loss, (code, decoder))
    even = pull(x, Y, np.ones(d))
    return {
        "stated": relative(stated, slow.numpy()),
        "library": max(
            relative(dz.numpy()[0], np.sum(stated * A.T, axis=1)), relative(dA.numpy(), (z[:, None] * stated).T)
        ),
        "quadratic": _kronecker_gap(x, Y, weights),
        "sizes": floats(np.linalg.norm(even, axis=1) / np.linalg.norm(even[0])),
    }


def _kronecker_gap(x: np.ndarray, Y: np.ndarray, omega: np.ndarray) -> float:
    """Compare Talukder et al. 2026 (4), with the matrix (S_d kron I_p), with the sum over prefixes (3)."""
    d, p = Y.shape
    cum = np.cumsum(omega[::-1])[::-1]
    S = np.minimum(cum[:, None], cum[None, :])
    y = Y.ravel()
    value = omega.sum() * x @ x - 2 * cum @ (Y @ x) + y @ np.kron(S, np.eye(p)) @ y
    slow = sum(omega[m] * np.sum((x - Y[: m + 1].sum(axis=0)) ** 2) for m in range(d))
    return float(abs(value / slow - 1))


def _penalties(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check non-uniform l2 and monotone l1: the library's gradients against the stated ones."""
    d, p = cell["d"], cell["p"]
    lam = increasing(d, data.spectrum[d - 1], rng)
    B, A, x = (torch.tensor(rng.standard_normal(size)) for size in ((d, p), (p, d), (1, p)))
    b, a = B.clone().requires_grad_(), A.clone().requires_grad_()
    db, da = torch.autograd.grad(NonuniformL2(floats(lam)).penalty(step_view(b, a, torch.tensor(data.St))), (b, a))
    l1 = torch.autograd.grad(MonotoneL1(0.3).penalty(step_view(b, a, None, code=x @ b.T)), b)[0].numpy()
    k = np.arange(1, d + 1)
    rows = x.numpy()[0]
    stated_l1 = 0.3 * k[:, None] * np.sign(B.numpy() @ rows)[:, None] * rows
    return {
        "l2_weights": max(relative(db, 2 * lam[:, None] * B.numpy()), relative(da, 2 * lam * A.numpy())),
        "l1_rows": relative(l1, stated_l1),
        **_product_gradient(B.numpy()[0], A.numpy()[:, 0], float(lam[0]), rng),
    }


def _product_gradient(b: np.ndarray, a: np.ndarray, lam: float, rng: np.random.Generator) -> dict[str, float]:
    """Take the penalty as a function of the product a b^T alone: least over its factors, 2 lambda |a||b|.

    Its gradient is 2 lambda a b^T / (|a||b|): along the paper's lambda (b kron a), of another length.
    """
    da, db, h = rng.standard_normal(len(a)), rng.standard_normal(len(b)), 1e-6

    def least_penalty(t: float) -> float:
        return float(2 * lam * np.linalg.norm(a + t * da) * np.linalg.norm(b + t * db))

    slope = (least_penalty(h) - least_penalty(-h)) / (2 * h)
    moved = np.outer(da, b) + np.outer(a, db)
    size = np.linalg.norm(a) * np.linalg.norm(b)
    ours, paper = (float(np.sum(G * moved)) for G in (2 * lam * np.outer(a, b) / size, lam * np.outer(a, b)))
    return {
        "product_ours": abs(ours / slope - 1),
        "product_paper": abs(paper / slope - 1),
        "product_paper_scaled": float(abs(paper * 2 / size / slope - 1)),
    }


def _task(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Tell whether the part of the gradient that makes the order changes when the labels are shuffled."""
    d, p, n, classes = cell["d"], cell["p"], 60, 4
    X, y = torch.tensor(rng.standard_normal((n, p))), np.eye(classes)[rng.integers(0, classes, n)]
    B, W = (
        torch.tensor(rng.standard_normal((d, p)), requires_grad=True),
        torch.tensor(rng.standard_normal((classes, d))),
    )
    lam = floats(increasing(d, data.spectrum[d - 1], rng))

    def parts(labels: np.ndarray) -> dict[str, np.ndarray]:
        z, targets = X @ B.T, torch.tensor(labels)  # one-hot, in a squared error with a shared head
        whole = FullPrefixReconstruction({d: 1.0})(targets, z, W)
        view = step_view(B, W, torch.tensor(data.St), code=z)
        losses = {
            "full_prefix": FullPrefixReconstruction()(targets, z, W),
            "nonuniform_l2": whole + NonuniformL2(lam).penalty(view),
            "monotone_l1": whole + MonotoneL1(0.1).penalty(view),
        }
        (plain,) = torch.autograd.grad(whole, B, retain_graph=True)
        found = {name: torch.autograd.grad(loss, B, retain_graph=True)[0] for name, loss in losses.items()}
        return {name: (gradient - plain).numpy() for name, gradient in found.items()}

    before, after = parts(y), parts(rng.permutation(y))
    return {name: relative(after[name], before[name]) for name in before}


def _turned(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Tell whether a rotation raises the non-uniform penalty: at the optimum, and at weights drawn at random."""
    d = cell["d"]
    lam = increasing(d, data.spectrum[d - 1], rng)
    best = point(tuple(range(1, d + 1)), data, lam)
    drawn = rng.standard_normal((d, cell["p"]))
    rises = {
        name: [(_penalty(orthogonal(d, rng) @ W, lam) / _penalty(W, lam) - 1) for _ in range(200)]
        for name, W in (("optimum", best), ("drawn", drawn))
    }
    return {f"{name}_least_rise": min(part) for name, part in rises.items()} | {
        "drawn_share_falling": float(np.mean(np.array(rises["drawn"]) < 0))
    }


def _penalty(W: np.ndarray, lam: np.ndarray) -> float:
    return float(2 * lam @ np.sum(W**2, axis=1))


def _schedules(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Return cumulative weights of the three schedules: monotone, and how steep against uniform."""
    cums = {name: prefix_weights(FullPrefix(name), cell["d"]).cum for name in SCHEDULES}
    return {
        "monotone": all(bool(np.all(np.diff(cum) < 0)) for cum in cums.values()),
        **{name: float(cum[0] / cum[-1]) for name, cum in cums.items()},
        **{f"{name}_cum": floats(cum) for name, cum in cums.items()},
    }


measure = measuring(_full, _penalties, _task, _turned, _schedules)


def _cumulative(shown: JsonObject) -> Chart:
    lines = []
    for name in SCHEDULES:
        cum = np.array(shown[f"{name}_cum"])
        lines.append(line(name.replace("_", " "), range(1, len(cum) + 1), cum / cum[0]))
    return Chart("Cumulative weight w_k over w_1", "k", "w_k / w_1", tuple(lines), y_scale="log")


def report(settings: JsonObject, results: Results) -> Findings:
    """Report section 2.1."""
    names = ("full", "penalties", "task", "turned", "schedules")
    full, penalties, task, turned, schedules = (of_check(results, name) for name in names)
    table = Table(
        "w_1 / w_d",
        ("d", *(name.replace("_", " ") for name in SCHEDULES)),
        tuple((cell["d"], *rounded(found[name] for name in SCHEDULES)) for cell, found in schedules),
    )
    titles = {"full_prefix": "full prefix", "nonuniform_l2": "non-uniform l2", "monotone_l1": "monotone l1"}
    shuffled = "Order-making gradient when labels are shuffled"
    exact = ("l2_weights", "l1_rows", "product_paper", "product_paper_scaled")
    return Findings(
        {
            **extremes(full, largest=("stated", "library", "quadratic")),
            **extremes(penalties, largest=exact),
            "full_prefix_task": least(task, "full_prefix"),
            "penalty_task": max(biggest(values(task, name)) for name in ("nonuniform_l2", "monotone_l1")),
            **extremes(turned, smallest=("optimum_least_rise", "drawn_least_rise")),
            "monotone": all(values(schedules, "monotone")),
            "harmonic_over_uniform": min(found["harmonic"] / found["uniform"] for _, found in schedules),
            "reverse_over_uniform": max(found["reverse_harmonic"] / found["uniform"] for _, found in schedules),
        },
        (
            by_instance(shuffled, "relative change", task, titles, ours="full_prefix"),
            _cumulative(schedules[-1][1]),
            table,
        ),
    )
