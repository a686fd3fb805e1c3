"""The rotation-augmented gradient in the limit of small steps (sections 6.3, 6.4): where it leads, and how fast.

The flow is that of :class:`firstk.Rotation` itself: what its hook adds to gradients of zero. On the optimal subspace
B = A^T = Q U^T it turns Q by the skew part of S = Q diag(s) Q^T alone.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from firstk.metrics import axis_distance, paired_cosines
from firstk.orderings import Rotation
from firstk_papers.frame.hooks import step_view
from firstk_papers.frame.instances import (
    biggest,
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
from firstk_papers.frame.panels import Chart, Findings, Mark
from firstk_papers.frame.types import JsonDict, JsonObject, Results

cells = instance_cells


def non_diagonality(M: np.ndarray) -> float:
    """Return the sum of absolute entries off the diagonal (Bao et al. 2020 definition 6.1)."""
    return float(np.abs(M).sum() - np.abs(np.diag(M)).sum())


def rotation_field(B: np.ndarray, A: np.ndarray, St: np.ndarray, factor: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the velocities that the rotation gives B and A: what the ordering's hook subtracts from zero gradients."""
    b, a = (torch.nn.Parameter(torch.tensor(part)) for part in (B, A))
    b.grad, a.grad = torch.zeros_like(b), torch.zeros_like(a)
    Rotation(factor=factor, tied=False).correct(step_view(b, a, torch.tensor(St)))
    return -b.grad.numpy(), -a.grad.numpy()


def _flow(G: np.ndarray, s: np.ndarray, times: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Follow B = G(t) in the coordinates of the eigenvectors, from G; return it at the times, (len(times), d, d)."""
    d = len(s)

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        B = flat.reshape(d, d)
        return rotation_field(B, B.T, np.diag(s), factor)[0].ravel()

    found = solve_ivp(velocity, (0, times[-1]), G.ravel(), t_eval=times, rtol=1e-11, atol=1e-15, method="DOP853")
    return found.y.T.reshape(-1, d, d)


# -- theorem 4 ---------------------------------------------------------------------------------------------------


def _global(cell: JsonObject, s: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Follow the flow from a random orthogonal start: axes at the end, V of (47) on the way, orthogonality."""
    d = cell["d"]
    times = np.linspace(0, 60 / np.min(s[:-1] - s[1:]), 150)
    path = _flow(orthogonal(d, rng), s, times)
    weights = np.sort(rng.uniform(0.5, 3, d))[::-1]
    V = np.array([weights @ (s - np.diag(Q @ np.diag(s) @ Q.T)) for Q in path])
    return {
        "axis_distance": axis_distance(path[-1], np.eye(d)),
        "ordered": bool(paired_cosines(path[-1], np.eye(d)).min() > 0.999),
        "largest_rise": max(0.0, float(np.diff(V).max())) / float(V[0]),
        "orthogonality": max(biggest(Q @ Q.T - np.eye(d)) for Q in path),
        "rate_gap": _lyapunov_gap(path[0], s, weights),
        "times": floats(times),
        "V": floats(V),
        "distance": [axis_distance(Q, np.eye(d)) for Q in path],
    }


def _lyapunov_gap(Q: np.ndarray, s: np.ndarray, weights: np.ndarray) -> float:
    """Compare dV/dt with sum_{i>j} (d_i - d_j)(w_i^T St w_j)^2 (Bao et al. 2020 E.5)."""
    S = Q @ np.diag(s) @ Q.T
    velocity = rotation_field(Q, Q.T, np.diag(s))[0]
    slope = -2 * weights @ np.sum(velocity @ np.diag(s) * Q, axis=1)
    i, j = np.tril_indices(len(s), -1)
    return relative(slope, np.sum((weights[i] - weights[j]) * S[i, j] ** 2))


def _stability(cell: JsonObject, s: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Return growth rates about every permuted solution: Q = exp(E) P, E small and skew.

    Entry (i, j) of E grows at (S_jj - S_ii)/2, i < j: falling in the right order, rising where two axes are exchanged.
    """
    d, rates = cell["d"], {}
    for order in permutations(range(d)):
        P = np.eye(d)[list(order)]
        rates[order] = _growth(P, s)
    right = tuple(range(d))
    start = expm(1e-6 * _skew(d, rng)) @ np.eye(d)[::-1]
    end = _flow(start, s, np.array([0.0, 120 / np.min(s[:-1] - s[1:])]))[-1]
    return {
        "ordered_rate": rates[right],
        "least_other_rate": min(rate for order, rate in rates.items() if order != right),
        "reversed_ends_ordered": bool(paired_cosines(end, np.eye(d)).min() > 0.999),
    }


def _growth(P: np.ndarray, s: np.ndarray, h: float = 1e-6) -> float:
    """Return the largest growth rate of a small turn about P, by differences of the field."""
    d, found = len(s), []
    for i in range(d):
        for j in range(i + 1, d):
            E = np.zeros((d, d))
            E[i, j], E[j, i] = h, -h
            field = rotation_field(expm(E) @ P, (expm(E) @ P).T, np.diag(s))[0] @ P.T
            found.append(field[i, j] / h)
    return float(max(found))


def _skew(d: int, rng: np.random.Generator) -> np.ndarray:
    E = rng.standard_normal((d, d))
    return E - E.T


def _unbalanced(cell: JsonObject, s: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Check theorem 4 without its condition: B = G U^T, A = U G^-1 with any G has the optimal loss as well."""
    d = cell["d"]
    G = np.linspace(0.5, 2, d)[:, None] * orthogonal(d, rng)
    S = G @ np.diag(s) @ G.T
    gaps = np.abs(np.diff(np.sort(np.linalg.eigvalsh(S))))
    end = _flow(G, s, np.array([0.0, 80 / gaps.min()]))[-1]
    S = end @ np.diag(s) @ end.T
    return {
        "left_off_diagonal": non_diagonality(S) / float(np.trace(S)),
        "axis_distance": axis_distance(end, np.eye(d)),
    }


# -- theorem 5 and definition 6.1 --------------------------------------------------------------------------------


def _rate(cell: JsonObject, s: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Find the rate at which the non-diagonality falls near the ordered solution, over g."""
    d, gap = cell["d"], float(np.min(s[:-1] - s[1:]))
    start = expm(1e-5 * _skew(d, rng))
    out: JsonDict = {"gap": gap}
    for name, factor in (("algorithm", 1.0), ("doubled", 2.0)):
        times = np.linspace(0, 12 / (gap * factor), 60)
        path = _flow(start, s, times, factor)
        nd = np.array([non_diagonality(Q @ np.diag(s) @ Q.T) for Q in path])
        rates = -np.diff(np.log(nd)) / np.diff(times)
        out |= {f"{name}_slowest": float(rates.min()) / gap, f"{name}_last": float(rates[-1]) / gap}
        out |= {f"{name}_times": floats(times * gap), f"{name}_nd": floats(nd / nd[0])}
    return out


def _elements(cell: JsonObject, s: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Check the derivative of Y Y^T entry by entry, (43) as printed and corrected, far from the diagonal."""
    d = cell["d"]
    Q = orthogonal(d, rng)
    Y = Q @ np.diag(s) @ Q.T
    B_dot = rotation_field(Q, Q.T, np.diag(s))[0]
    found = B_dot @ np.diag(s) @ Q.T
    found = found + found.T
    return {
        "element_paper": relative(derivative(Y, printed=True), found),
        "element_doubled": relative(derivative(Y, printed=True) / 2, found),
        "element_corrected": relative(derivative(Y), found),
    }


def derivative(Y: np.ndarray, *, printed: bool = False) -> np.ndarray:
    """Return d(Y Y^T)/dt, n = 1; as Bao et al. 2020 (43) and the line above it have it, or corrected.

    Corrected, it has the half of algorithm 1's A, and the second sum begins past j, not past i: for i < l < j the terms
    A_il y_lj and y_il A_jl cancel.
    """
    d = len(Y)
    out = np.zeros_like(Y)
    for i in range(d):
        out[i, i] = 2 * (-np.sum(Y[i, :i] ** 2) + np.sum(Y[i, i + 1 :] ** 2))
        for j in range(i + 1, d):
            past = (i if printed else j) + 1
            coupling = -Y[i, :i] @ Y[j, :i] + Y[i, past:] @ Y[j, past:]
            out[i, j] = out[j, i] = -(Y[i, i] - Y[j, j]) * Y[i, j] + 2 * coupling
    return out if printed else out / 2


def _conditions(cell: JsonObject, s: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Check theorem 5 without assumption 3 (sorted diagonal), the sign of W2 in E.4, and definition 6.1."""
    d = cell["d"]
    reversed_axes, brief = np.eye(d)[::-1], 1e-4
    path = _flow(expm(1e-5 * _skew(d, rng)) @ reversed_axes, s, np.array([0.0, brief]))
    before, after = (non_diagonality(Q @ np.diag(s) @ Q.T) for Q in path)
    Q = orthogonal(d, rng)
    B_dot, A_dot = rotation_field(Q, Q.T, np.diag(s))
    turned, printed = A_dot @ Q + Q.T @ B_dot, -A_dot @ Q + Q.T @ B_dot
    flips = np.eye(d)[rng.permutation(d)] * rng.choice([-1.0, 1.0], d)
    return {
        "unsorted_rate": float(np.log(before / after)) / brief / float(np.min(s[:-1] - s[1:])),
        "product_moves": biggest(turned) / biggest(B_dot),
        "product_moves_printed": biggest(printed) / biggest(B_dot),
        "nd_on_axes": non_diagonality(flips @ np.diag(s) @ flips.T),
        "nd_off_axes": non_diagonality(Q @ np.diag(s) @ Q.T),
    }


measure = measuring(
    _global, _stability, _unbalanced, _rate, _elements, _conditions, given=lambda data, cell: data.spectrum[: cell["d"]]
)


# -- what is shown -----------------------------------------------------------------------------------------------


def axes(settings: JsonObject, results: Results) -> Findings:
    """Report theorem 4."""
    flows, stable, unbalanced = (of_check(results, name) for name in ("global", "stability", "unbalanced"))
    shown = flows[-1][1]
    times = shown["times"]
    distance = Chart(
        "From a random start on the optimal subspace",
        "time",
        "distance to the axes",
        (line("axis distance", times, shown["distance"], floor=1e-17, ours=True),),
        y_scale="log",
    )
    potential = Chart("The function V of (47) on the same path", "time", "V", (line("V", times, shown["V"]),))
    return Findings(
        {
            "axis_distance": worst(flows, "axis_distance"),
            "ordered_share": float(np.mean(values(flows, "ordered"))),
            **extremes(flows, largest=("largest_rise", "orthogonality", "rate_gap")),
            **extremes(stable, largest=("ordered_rate",), smallest=("least_other_rate",)),
            "reversed_ends_ordered": all(values(stable, "reversed_ends_ordered")),
            "unbalanced_left": worst(unbalanced, "left_off_diagonal"),
            "unbalanced_axis_distance": least(unbalanced, "axis_distance"),
        },
        (distance, potential),
    )


def rates(settings: JsonObject, results: Results) -> Findings:
    """Report theorem 5 and definition 6.1."""
    part, elements, conditions = (of_check(results, name) for name in ("rate", "elements", "conditions"))
    shown = part[0][1]
    names = (("algorithm", "algorithm 1"), ("doubled", "rotation doubled"))
    times = np.linspace(0, 6, 30)
    decay = Chart(
        "Non-diagonality near the ordered solution",
        "time, in units of 1/g",
        "share left",
        (
            line("exp(-g t)", times, np.exp(-times)),
            *(
                line(title, shown[f"{name}_times"], shown[f"{name}_nd"], ours=name == "doubled")
                for name, title in names
            ),
        ),
        y_scale="log",
    )
    gaps = values(part, "gap")
    rate = Chart(
        "Rate at the end over g",
        "g, the smallest eigengap",
        "rate / g",
        tuple(
            line(title, gaps, values(part, f"{name}_last"), kind="points", ours=name == "doubled")
            for name, title in names
        ),
        marks=(Mark(1.0, "y", "theorem 5"), Mark(0.5, "y", "half of it")),
    )
    return Findings(
        {
            **extremes(part, smallest=("algorithm_slowest", "doubled_slowest", "algorithm_last", "doubled_last")),
            **extremes(elements, largest=("element_paper", "element_corrected"), smallest=("element_doubled",)),
            **extremes(
                conditions,
                largest=("unsorted_rate", "product_moves", "nd_on_axes"),
                smallest=("product_moves_printed", "nd_off_axes"),
            ),
        },
        (decay, rate),
    )
