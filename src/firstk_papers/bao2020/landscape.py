"""The landscape of non-uniform l2 (theorems 1 to 3): its stationary points, searched for and written down.

Stationary points are found from random starts by solving gradient = 0, which ends at saddles as readily as at minima;
then each is compared with the paper's formula and with the corrected one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np
from scipy.optimize import root

from firstk_papers.frame.instances import (
    Problem,
    biggest,
    extremes,
    floats,
    increasing,
    instance_cells,
    least,
    line,
    measuring,
    of_check,
    values,
    worst,
)
from firstk_papers.frame.panels import Chart, Findings, Mark, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

STATIONARY = 1e-9  # of the gradient's largest entry, where eigenvalues are of order 1 to 10
Pick = tuple[int, ...]  # for each latent axis the eigenvector it lies on, counted from 1; 0 for an axis of zeros


cells = instance_cells


# -- the objective Bao et al. 2020 (3), its gradient and Hessian
# -------------------------------------------------------------


def loss(data: Problem, lam: np.ndarray, B: np.ndarray, A: np.ndarray) -> float:
    """Return ``tr(R St R^T) + sum_k lambda_k (|b_k|^2 + |a_k|^2)`` with R = I - A B (Bao et al. 2020 (3))."""
    R = np.eye(len(data.St)) - A @ B
    return float(np.sum(R @ data.St * R) + lam @ (np.sum(B**2, axis=1) + np.sum(A**2, axis=0)))


def gradient(data: Problem, lam: np.ndarray, B: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients with respect to B and A (Bao et al. 2020 E.1)."""
    C = (np.eye(len(data.St)) - A @ B) @ data.St
    return 2 * (lam[:, None] * B - A.T @ C), 2 * (A * lam - C @ B.T)


def hessian(data: Problem, lam: np.ndarray, B: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the Hessian in (B, A), each flattened by rows."""
    d, p = B.shape
    J = np.zeros((2, d * p, p, p))  # derivative of A B with respect to every entry
    for i in range(d):
        for j in range(p):
            J[0, i * p + j, :, j] = A[:, i]
            J[1, j * d + i, j, :] = B[i]
    J = J.reshape(2 * d * p, p, p)
    H = 2 * np.einsum("mab,bc,nac->mn", J, data.St, J, optimize=True)
    K = data.St @ (np.eye(p) - A @ B).T
    for i in range(d):  # the product dA dB meets the residual
        rows, columns = i * p + np.arange(p), d * p + np.arange(p) * d + i
        H[np.ix_(rows, columns)] -= 2 * K
        H[np.ix_(columns, rows)] -= 2 * K.T
    return H + 2 * np.diag(np.concatenate([np.repeat(lam, p), np.tile(lam, p)]))


def _split(theta: np.ndarray, p: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    return theta[: d * p].reshape(d, p), theta[d * p :].reshape(p, d)


def _stationary_points(
    cell: JsonObject, data: Problem, lam: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Solve gradient = 0 from random starts, and yield what was solved."""
    p, d = cell["p"], cell["d"]

    def field(theta: np.ndarray) -> np.ndarray:
        return np.concatenate([part.ravel() for part in gradient(data, lam, *_split(theta, p, d))])

    for _ in range(cell["starts"]):
        start = rng.standard_normal(2 * p * d) * rng.uniform(0.1, 0.8)
        found = root(field, start, jac=lambda theta: hessian(data, lam, *_split(theta, p, d)), method="lm")
        if biggest(field(found.x)) < STATIONARY:
            yield _split(found.x, p, d)


# -- what theorem 2 says they are --------------------------------------------------------------------------------


def picks(p: int, d: int) -> Iterator[Pick]:
    """Yield every way to give d axes different eigenvectors of p, or none."""
    for size in range(d + 1):
        for axes in combinations(range(d), size):
            for chosen in permutations(range(1, p + 1), size):
                pick = [0] * d
                for axis, j in zip(axes, chosen, strict=True):
                    pick[axis] = j
                yield tuple(pick)


def _available(p: int, data: Problem, lam: np.ndarray) -> list[Pick]:
    """Return the choices in which every axis can lie on its eigenvector: lambda_i < sigma_j^2."""
    return [
        pick for pick in picks(p, len(lam)) if all(not j or lam[i] < data.spectrum[j - 1] for i, j in enumerate(pick))
    ]


def point(pick: Pick, data: Problem, lam: np.ndarray, *, paper: bool = False) -> np.ndarray:
    """Return B = A^T of theorem 2 for one choice of eigenvectors, signs positive.

    Axis i on eigenvector j has the squared length ``1 - lambda_i / sigma_j^2``: its own penalty. The paper's (4),
    P (I - Lambda S^-2)^(1/2) U^T, gives it ``1 - lambda_j / sigma_j^2``: that of the place its eigenvector came from.
    """
    B = np.zeros((len(pick), len(data.St)))
    for i, j in enumerate(pick):
        if j:
            penalty = lam[j - 1] if paper else lam[i]
            B[i] = np.sqrt(1 - penalty / data.spectrum[j - 1]) * data.U[:, j - 1]
    return B


def _pick_of(B: np.ndarray, data: Problem) -> Pick:
    """Read off which eigenvector each row is nearest to."""
    along = np.abs(B @ data.U)
    return tuple(int(row.argmax()) + 1 if row.max() > 1e-5 else 0 for row in along)


def _form_gap(B: np.ndarray, data: Problem, lam: np.ndarray, paper: bool) -> float | None:
    """Return the distance of a stationary point from the form, signs aside; None where (4) has no such point."""
    pick = _pick_of(B, data)
    if paper and max(pick) > len(pick):
        return None
    wanted = point(pick, data, lam, paper=paper)
    return biggest(np.abs(B @ data.U) - np.abs(wanted @ data.U))


# -- checks ------------------------------------------------------------------------------------------------------


def _search(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check theorems 1 and 2 on the stationary points that a search finds."""
    lam = increasing(cell["d"], data.spectrum[cell["d"] - 1], rng)
    gaps, forms, theirs, lowest, seen = [], [], [], [], set()
    for B, A in _stationary_points(cell, data, lam, rng):
        C = (np.eye(cell["p"]) - A @ B) @ data.St
        gaps.append(biggest(B - A.T))
        lowest.append(float(np.linalg.eigvalsh((C + C.T) / 2)[0]) - biggest(C - C.T))
        forms.append(_form_gap(B, data, lam, paper=False) or 0.0)
        theirs.append(_form_gap(B, data, lam, paper=True))
        seen.add(_pick_of(B, data))
    predicted = set(_available(cell["p"], data, lam))
    return {
        "found": len(gaps),
        "transpose_gap": max(gaps),
        "lemma2_lowest": min(lowest),
        "form_gap": max(forms),
        "paper_form_gap": max(gap for gap in theirs if gap is not None),
        "kinds_seen": len(seen & predicted),
        "kinds_predicted": len(predicted),
        "kinds_unpredicted": len(seen - predicted),
    }


def _unpenalised(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check theorem 1 without its condition lambda > 0: the plain loss has stationary points that are no transposes."""
    gaps = [biggest(B - A.T) for B, A in _stationary_points(cell, data, np.zeros(cell["d"]), rng)]
    return {"found": len(gaps), "transpose_gap": float(np.median(gaps))}


def _written(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Find the gradient at the points of theorem 2, as printed and corrected, over all choices of eigenvectors."""
    d = cell["d"]
    lam = increasing(d, data.spectrum[d - 1], rng)
    ours = [
        biggest(gradient(data, lam, B, B.T)[0]) for B in (point(k, data, lam) for k in _available(cell["p"], data, lam))
    ]
    within = list(picks(d, d))
    theirs = {k: biggest(gradient(data, lam, B, B.T)[0]) for k in within for B in [point(k, data, lam, paper=True)]}
    diagonal = [pick for pick in within if all(j in (0, i + 1) for i, j in enumerate(pick))]
    return {
        "corrected_gradient": max(ours),
        "paper_gradient": max(theirs.values()),
        "paper_gradient_diagonal": max(theirs[pick] for pick in diagonal),
        "share_stationary": float(np.mean([value < STATIONARY for value in theirs.values()])),
    }


def _turned(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Follow the penalty along a rotation of axes 1 and 2 (E.2): (34), (35) as printed, and as corrected."""
    lam = increasing(cell["d"], data.spectrum[cell["d"] - 1], rng)
    W = rng.standard_normal((cell["d"], cell["p"]))
    angles = np.linspace(0, np.pi, 73)
    c, s = np.cos(angles), np.sin(angles)
    rest = lam[2:] @ np.sum(W[2:] ** 2, axis=1)
    first, second = (
        np.sum(part**2, axis=1)
        for part in (np.outer(c, W[0]) - np.outer(s, W[1]), np.outer(s, W[0]) + np.outer(c, W[1]))
    )
    psi = 2 * (lam[0] * first + lam[1] * second + rest)
    norms, product = np.sum(W[:2] ** 2, axis=1), W[0] @ W[1]
    even = (lam[1] - lam[0]) * (norms[1] - norms[0]) / 2
    level = (lam[0] + lam[1]) * norms.sum() / 2 + rest
    odd = (lam[1] - lam[0]) * product
    printed, corrected = (2 * (even * np.cos(2 * angles) + k * odd * np.sin(2 * angles) + level) for k in (2, 1))
    return {
        "paper_cosine": biggest(psi - printed) / biggest(psi),
        "corrected_cosine": biggest(psi - corrected) / biggest(psi),
        "angles": floats(angles),
        "psi": floats(psi),
        "printed": floats(printed),
    }


def _lemma5(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check the derivative in the proof of lemma 5, with Lambda^2 as printed and with Lambda, by differences."""
    d = cell["d"]
    S, lam = np.diag(data.spectrum[:d]), np.diag(increasing(d, data.spectrum[d - 1], rng))
    Q1, Q2 = rng.standard_normal((d, d)), rng.standard_normal((d, d))

    def value(Q: np.ndarray) -> float:
        return float(np.trace(Q2 @ Q @ S @ Q.T @ Q2.T - 2 * Q2 @ Q @ S + 2 * Q @ Q2 @ lam + S))

    # The loss is quadratic in Q1, so central differences are exact up to rounding.
    numeric = np.zeros((d, d))
    for entry in np.ndindex(d, d):
        step = np.zeros((d, d))
        step[entry] = 0.5
        numeric[entry] = value(Q1 + step) - value(Q1 - step)
    common = 2 * Q2.T @ Q2 @ Q1 @ S - 2 * Q2.T @ S
    scale = biggest(numeric)
    return {
        "lemma5_paper": biggest(common + 2 * lam**2 @ Q2.T - numeric) / scale,
        "lemma5_corrected": biggest(common + 2 * lam @ Q2.T - numeric) / scale,
    }


def _enumerated(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check theorem 3 over all stationary points: loss, and the lowest eigenvalue of the Hessian."""
    d = cell["d"]
    lam = increasing(d, data.spectrum[d - 1], rng)
    best = tuple(range(1, d + 1))
    losses, lowest = {}, {}
    for pick in _available(cell["p"], data, lam):
        B = point(pick, data, lam)
        losses[pick], lowest[pick] = loss(data, lam, B, B.T), float(np.linalg.eigvalsh(hessian(data, lam, B, B.T))[0])
    others = [pick for pick in losses if pick != best]
    s = data.spectrum[:d]
    return {
        "at_optimum_lowest": lowest[best],
        "others_highest": max(lowest[pick] for pick in others),
        "least_excess": min(losses[pick] for pick in others) - losses[best],
        "value_gap": abs(losses[best] - float(np.sum(2 * lam - lam**2 / s) + data.spectrum[d:].sum())) / losses[best],
        "points": len(losses),
        "excess": floats(losses[pick] - losses[best] for pick in losses),
        "lowest": floats(lowest.values()),
    }


def _broken(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check theorem 3 without its conditions: lambda_d above sigma_d^2, and two equal penalties."""
    d = cell["d"]
    lam = increasing(d, data.spectrum[d - 1], rng)
    lam[-1] = (data.spectrum[d - 1] + data.spectrum[d - 2]) / 2
    best = min(_available(cell["p"], data, lam), key=lambda k: _loss_of(k, data, lam))
    equal = increasing(d, data.spectrum[d - 1], rng)
    equal[1] = equal[0]
    B = point(tuple(range(1, d + 1)), data, equal)
    curvature = np.linalg.eigvalsh(hessian(data, equal, B, B.T))
    return {
        "last_axis_gone": best == (*range(1, d), 0),
        "equal_lowest": float(np.abs(curvature).min()),
    }


def _loss_of(pick: Pick, data: Problem, lam: np.ndarray) -> float:
    B = point(pick, data, lam)
    return loss(data, lam, B, B.T)


def _trained(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Train by firstk from a random start, and compare the encoder against theorem 3."""
    from firstk import Gradient, NonuniformL2, PrefixEncoder

    d, n = cell["d"], 8 * cell["p"]
    lam = increasing(d, data.spectrum[d - 1], rng)
    white = rng.standard_normal((n, cell["p"]))
    white = np.linalg.qr(white - white.mean(axis=0))[0] * np.sqrt(n)
    X = white * np.sqrt(data.spectrum) @ data.U.T
    solver = Gradient(batch_size="full", dtype="float64", epochs=cell["steps"], tolerance=1e-16)
    encoder = PrefixEncoder(
        d, ordering=NonuniformL2(floats(lam)), solver=solver, init="random", random_state=cell["seed"]
    ).fit(X)
    wanted = point(tuple(range(1, d + 1)), data, lam)
    return {"trained_gap": biggest(np.abs(encoder.components_ @ data.U) - np.abs(wanted @ data.U))}


measure = measuring(_search, _unpenalised, _written, _turned, _lemma5, _enumerated, _broken, _trained)


# -- what is shown -----------------------------------------------------------------------------------------------


def transpose(settings: JsonObject, results: Results) -> Findings:
    """Report theorem 1."""
    searched, free = of_check(results, "search"), of_check(results, "unpenalised")
    found = sum(values(searched, "found"))
    series = tuple(
        line(name, range(1, len(part) + 1), values(part, "transpose_gap"), kind="points")
        for name, part in (("penalties increase", searched), ("no penalty", free))
    )
    chart = Chart("Encoder minus decoder transposed", "instance", "largest entry", series, y_scale="log")
    return Findings(
        {
            "points": found,
            **extremes(searched, largest=("transpose_gap",), smallest=("lemma2_lowest",)),
            "unpenalised_gap": least(free, "transpose_gap"),
        },
        (chart,),
        (f"{found} stationary points were found from random starts; most of them are saddles.",),
    )


def forms(settings: JsonObject, results: Results) -> Findings:
    """Report theorem 2."""
    searched, written, turned = (of_check(results, name) for name in ("search", "written", "turned"))
    lemma = of_check(results, "lemma5")
    curve = turned[0][1]
    angles = curve["angles"]
    rotation = Chart(
        "Penalty as two axes are rotated",
        "angle",
        "penalty",
        (
            line("penalty", angles, curve["psi"], ours=True),
            line("cosine of (34), (35) as printed", angles, curve["printed"]),
        ),
    )
    table = Table(
        "Gradient at the points of (4), (5)",
        ("p x d", "as printed", "corrected", "share stationary as printed"),
        tuple(
            (
                f"{cell['p']} x {cell['d']}",
                *rounded(part[n] for n in ("paper_gradient", "corrected_gradient", "share_stationary")),
            )
            for cell, part in written
        ),
    )
    return Findings(
        {
            **extremes(written, largest=("paper_gradient", "paper_gradient_diagonal", "corrected_gradient")),
            "form_gap": worst(searched, "form_gap"),
            "kinds_unpredicted": sum(values(searched, "kinds_unpredicted")),
            "kinds_seen_share": sum(values(searched, "kinds_seen")) / sum(values(searched, "kinds_predicted")),
            **extremes(turned, largest=("paper_cosine", "corrected_cosine")),
            **extremes(lemma, largest=("lemma5_paper", "lemma5_corrected")),
        },
        (table, rotation),
    )


def minima(settings: JsonObject, results: Results) -> Findings:
    """Report theorem 3."""
    every, broken, trained = (of_check(results, name) for name in ("enumerated", "broken", "trained"))
    largest = max(every, key=lambda pair: pair[1]["points"])[1]
    chart = Chart(
        "All stationary points of one instance",
        "loss above the minimum",
        "lowest eigenvalue of the Hessian",
        (line("stationary point", largest["excess"], largest["lowest"], kind="points", ours=True),),
        marks=(Mark(0.0, "y", "a minimum lies above"),),
    )
    return Findings(
        {
            "points": sum(values(every, "points")),
            **extremes(every, largest=("others_highest", "value_gap"), smallest=("at_optimum_lowest", "least_excess")),
            "trained_gap": worst(trained, "trained_gap"),
            "last_axis_gone": all(values(broken, "last_axis_gone")),
            "equal_lowest": worst(broken, "equal_lowest"),
        },
        (chart,),
    )
