"""The update rules of Bao et al. 2020 section 6 side by side: rotation-augmented, generalised Hebbian, Brockett.

Identities are checked on the library's own steps: gradients of its loss, changed by its ordering's hook.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import expm

from firstk.losses import FullPrefixReconstruction
from firstk.orderings import Rotation
from firstk_papers.bao2020.rotation_flow import rotation_field
from firstk_papers.frame.hooks import step_view
from firstk_papers.frame.instances import (
    Problem,
    biggest,
    by_instance,
    extremes,
    floats,
    instance_cells,
    least,
    line,
    measuring,
    of_check,
    orthogonal,
    relative,
    values,
    worst,
)
from firstk_papers.frame.panels import Chart, Findings, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

cells = instance_cells


def loss(B: np.ndarray, A: np.ndarray, St: np.ndarray) -> float:
    """Return the reconstruction loss Bao et al. 2020 (1), by the library."""
    tensors = [torch.tensor(part) for part in (St, B, A)]
    return float(FullPrefixReconstruction({len(B): 1.0}).from_moments(*tensors))


def step(B: np.ndarray, A: np.ndarray, St: np.ndarray, rule: Rotation | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the velocities of B and A in firstk's training: minus the gradient, the loss at 1/n, as a rule has it."""
    b, a = (torch.nn.Parameter(torch.tensor(part)) for part in (B, A))
    FullPrefixReconstruction({len(B): 1.0}).from_moments(torch.tensor(St), b, a).backward()
    if rule is not None:
        rule.correct(step_view(b, a, torch.tensor(St)))
    assert b.grad is not None
    assert a.grad is not None
    return -b.grad.numpy(), -a.grad.numpy()


def hebbian(W: np.ndarray, St: np.ndarray) -> np.ndarray:
    """Return Y X^T - lower(Y Y^T) W, n = 1: the generalised Hebbian rule as Bao et al. 2020 section 6.1 writes it."""
    S = W @ St @ W.T
    return W @ St - np.tril(S) @ W


def augmented(W: np.ndarray, St: np.ndarray) -> np.ndarray:
    """Return the rotation-augmented update as section 6.1 writes it: the Hebbian rule and one more term."""
    S = W @ St @ W.T
    return hebbian(W, St) - (S - np.diag(np.diag(S))) @ W / 2


# -- section 6.1 -------------------------------------------------------------------------------------------------


def _identity(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check the identity of section 6.1 on both layers, for the loss at 1/n and at 1/2n, from tied random weights."""
    W = rng.standard_normal((cell["d"], cell["p"])) / np.sqrt(cell["p"])
    wanted = augmented(W, data.St)
    once, twice = (step(W, W.T, data.St, Rotation(factor=factor, tied=False)) for factor in (1.0, 2.0))
    tied = step(W, W.T, data.St, Rotation("hebbian"))[0]
    optimal = orthogonal(cell["d"], rng) @ data.U[:, : cell["d"]].T
    there = step(optimal, optimal.T, data.St, Rotation(factor=2.0, tied=False))
    return {
        "algorithm_decoder": relative(once[1].T, wanted),
        "half_decoder": relative(twice[1].T / 2, wanted),
        "half_encoder": relative(twice[0] / 2, wanted),
        "half_both_optimal": max(relative(part / 2, augmented(optimal, data.St)) for part in (there[0], there[1].T)),
        "hebbian": relative(tied, hebbian(W, data.St)),
        "parting": biggest(once[0] - once[1].T) / biggest(once[0]),
        "balance": _balance_rate(W, data, once),
    }


def _balance_rate(W: np.ndarray, data: Problem, velocity: tuple[np.ndarray, np.ndarray]) -> float:
    """Return d/dt (B B^T - A^T A) at tied weights, over the size of d/dt B B^T."""
    b, a = velocity
    moved, other = b @ W.T + W @ b.T, a.T @ W.T + W @ a
    return biggest(moved - other) / biggest(moved)


# -- section 6.2 -------------------------------------------------------------------------------------------------


def _conserved(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Find what the rotation, and the Hebbian rule's own term, do to the loss at first and second order."""
    d, p = cell["d"], cell["p"]
    B, A = rng.standard_normal((d, p)) / np.sqrt(p), rng.standard_normal((p, d)) / np.sqrt(p)
    turn = rotation_field(B, A, data.St)
    plain = step(B, A, data.St, None)
    slope = sum(float(np.sum(-g * v)) for g, v in zip(plain, turn, strict=True))
    size = float(np.sqrt(sum(np.sum(g**2) for g in plain) * sum(np.sum(v**2) for v in turn)))
    sizes = np.logspace(-1, -3, 9)
    changes = [abs(loss(B + h * turn[0], A + h * turn[1], data.St) - loss(B, A, data.St)) for h in sizes]
    fitted = np.polyfit(np.log(sizes), np.log(changes), 1)[0]
    W = B
    descent = step(W, W.T, data.St, None)
    own = hebbian(W, data.St) - descent[0] / 2  # without the gradient of the loss at 1/2n
    drift = -float(np.sum((descent[0] + descent[1].T) * own))
    both = float(np.linalg.norm(descent[0] + descent[1].T) * np.linalg.norm(own))
    return {
        "first_order": abs(slope) / size,
        "order": float(fitted),
        "hebbian_first_order": abs(drift) / both,
        "taylor": _taylor_order(rotation_matrix(B, data.St)),
        "steps": floats(sizes),
        "changes": floats(changes),
    }


def rotation_matrix(B: np.ndarray, St: np.ndarray) -> np.ndarray:
    """Return A of algorithm 1: half of upper minus lower of the code's second moment."""
    S = B @ St @ B.T
    return (np.triu(S) - np.tril(S)) / 2


def _taylor_order(turn: np.ndarray) -> float:
    """Return the order at which I + a A leaves the rotation exp(a A): 2 by section 6."""
    sizes = np.array([1e-2, 1e-3])
    gaps = [biggest(expm(a * turn) - np.eye(len(turn)) - a * turn) for a in sizes]
    return float(np.diff(np.log(gaps))[0] / np.diff(np.log(sizes))[0])


# -- appendix G --------------------------------------------------------------------------------------------------


def _skew(M: np.ndarray) -> np.ndarray:
    return (M - M.T) / 2


def _brockett(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check appendix G on the Stiefel manifold: gradient, masked form, and (52) against algorithm 1."""
    d, p = cell["d"], cell["p"]
    W = np.linalg.qr(rng.standard_normal((p, d)))[0]
    D = np.sort(rng.uniform(0.5, 3, d))[::-1]
    S = W.T @ data.St @ W
    outside = (np.eye(p) - W @ W.T) @ data.St @ W
    stated = 2 * outside * D + 2 * W @ _skew(S * D)
    mask = np.triu(D[:, None] - D[None, :], 1)
    masked = 2 * outside * D - 2 * W @ _skew(mask * S)
    printed = 2 * outside - 2 * W @ _skew(np.triu(S))
    once, twice = (step(W.T, W, data.St, Rotation(factor=factor, tied=False))[1] for factor in (1.0, 2.0))
    return {
        "gradient": relative(stated, _projected_descent(W, D, data)),
        "masked": relative(masked, stated),
        "algorithm": relative(once, printed),
        "doubled": relative(twice, printed),
        "circulation": _circulation(W, data),
        "two_axes": _nearest_brockett(S[:2, :2]),
        "all_axes": _nearest_brockett(S),
    }


def _projected_descent(W: np.ndarray, D: np.ndarray, data: Problem) -> np.ndarray:
    """Return minus the Riemannian gradient of -tr(W^T St W D), by autograd and projection on the tangent space."""
    weights = torch.tensor(W, requires_grad=True)
    value = -torch.trace(weights.T @ torch.tensor(data.St) @ weights @ torch.diag(torch.tensor(D.copy())))
    (G,) = torch.autograd.grad(value, weights)
    Z = G.numpy()
    inner = W.T @ Z
    return -(Z - W @ (inner + inner.T) / 2)


def _circulation(W: np.ndarray, data: Problem, h: float = 1e-6) -> float:
    """Return the antisymmetric part of the derivative of the rotation field, over the whole; 0 for a gradient."""
    n = W.size
    J = np.zeros((n, n))
    for k in range(n):
        moved = np.zeros(n)
        moved[k] = h
        E = moved.reshape(W.shape)
        J[:, k] = ((_tied_field(W + E, data) - _tied_field(W - E, data)) / (2 * h)).ravel()
    return biggest(J - J.T) / biggest(J)


def _tied_field(W: np.ndarray, data: Problem) -> np.ndarray:
    return 2 * (np.eye(len(W)) - W @ W.T) @ data.St @ W - W @ rotation_matrix(W.T, data.St)


def _nearest_brockett(S: np.ndarray) -> float:
    """Return how far the binary mask is from the nearest mask d_i - d_j, weighed by S: 0 for two axes only."""
    d = len(S)
    i, j = np.triu_indices(d, 1)
    rows = np.zeros((len(i), d))
    rows[np.arange(len(i)), i], rows[np.arange(len(i)), j] = S[i, j], -S[i, j]
    wanted = S[i, j]
    found = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    return float(np.linalg.norm(rows @ found - wanted) / np.linalg.norm(wanted))


measure = measuring(_identity, _conserved, _brockett)


# -- what is shown -----------------------------------------------------------------------------------------------


def hebbian_identity(settings: JsonObject, results: Results) -> Findings:
    """Report section 6.1."""
    part = of_check(results, "identity")
    names = {
        "algorithm_decoder": "decoder, loss at 1/n",
        "half_decoder": "decoder, loss at 1/2n",
        "half_encoder": "encoder, loss at 1/2n",
        "half_both_optimal": "both, on the optimal subspace",
    }
    chart = by_instance("Deviation from the identity of section 6.1", "relative deviation", part, names)
    measures = {name: worst(part, name) for name in (*names, "hebbian", "balance")}
    return Findings(measures | {"parting": least(part, "parting")}, (chart,))


def conserved(settings: JsonObject, results: Results) -> Findings:
    """Report section 6.2."""
    part = of_check(results, "conserved")
    shown = part[0][1]
    steps = shown["steps"]
    chart = Chart(
        "Change of the loss by the rotation alone",
        "step",
        "absolute change",
        (
            line("rotation term", steps, shown["changes"], kind="points", ours=True),
            line("slope 2", steps, shown["changes"][0] * (np.array(shown["steps"]) / shown["steps"][0]) ** 2),
        ),
        x_scale="log",
        y_scale="log",
    )
    return Findings(
        {
            "first_order": worst(part, "first_order"),
            "least_order": least(part, "order"),
            **extremes(part, smallest=("hebbian_first_order", "taylor")),
        },
        (chart,),
    )


def brockett(settings: JsonObject, results: Results) -> Findings:
    """Report appendix G."""
    part = of_check(results, "brockett")
    names = ("gradient", "masked", "algorithm", "doubled", "circulation", "all_axes")
    table = Table(
        "Deviations by instance",
        ("p x d", "(51), gradient", "masked form", "(52), algorithm 1", "(52), rotation doubled", "curl", "mask gap"),
        tuple((f"{cell['p']} x {cell['d']}", *rounded(found[name] for name in names)) for cell, found in part),
    )
    x = [cell["d"] for cell, _ in part]
    chart = Chart(
        "Nearest Brockett mask to the rotation's",
        "latent dimension k",
        "relative distance",
        (
            line("all k axes", x, values(part, "all_axes"), kind="points", ours=True),
            line("axes 1 and 2", x, values(part, "two_axes"), kind="points"),
        ),
    )
    return Findings(
        {
            **extremes(
                part, largest=("gradient", "masked", "algorithm", "doubled", "two_axes"), smallest=("circulation",)
            ),
            "all_axes": min((found["all_axes"] for cell, found in part if cell["d"] > 2), default=None),
        },
        (chart, table),
    )
