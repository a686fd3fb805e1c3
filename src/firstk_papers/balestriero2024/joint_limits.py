"""The two ends of the joint problem (corollary 1.1) and when lambda does not matter at all (proposition 1).

Everything is solved in closed form by the library and compared with least squares and principal components written
out by their definitions.
"""

from __future__ import annotations

import numpy as np

from firstk_papers.balestriero2024.axes import principal_axes
from firstk_papers.balestriero2024.joint_problem import Joint, largest_sine, problem, solved, span
from firstk_papers.balestriero2024.task_alignment import rounded_measures
from firstk_papers.datasets.tasks import task, title
from firstk_papers.frame.panels import Chart, Findings, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 1
SAME = 1e-6


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell for each line of `problems`, each with its kind of question."""
    common = {"lambdas": settings["lambdas"], "seed": settings["seed"], "revision": REVISION}
    return [{**line, **common} for line in settings["problems"]]


def measure(cell: JsonObject) -> JsonDict:
    """Answer the cell's kind of question."""
    return {"limits": _limits, "turned": _turned, "real": _real}[cell["kind"]](cell)


# -- corollary 1.1 ---------------------------------------------------------------------------------------------------


def _limits(cell: JsonObject) -> JsonDict:
    """Return the distance of W'V' from least squares, and of Z'V' from the principal projection, for every lambda."""
    joint, K = problem(cell), cell["K"]
    least_squares = np.linalg.lstsq(joint.X, joint.Y, rcond=None)[0]  # (p, q)
    axes = np.linalg.svd(joint.X, full_matrices=False)[2][:K]
    supervised, unsupervised = [], []
    for lam in cell["lambdas"]:
        best = solved(joint, K, float(lam))
        # Compared over rows: off their span a readout may be anything.
        away = joint.X @ (best.V @ best.W - least_squares)
        supervised.append(float(np.linalg.norm(away) / np.linalg.norm(joint.X @ least_squares)))
        unsupervised.append(float(np.linalg.norm(best.V @ best.Z - axes.T @ axes) / np.sqrt(K)))
    return {"least_squares": rounded(supervised), "principal": rounded(unsupervised)}


def corollary_11(settings: JsonObject, results: Results) -> Findings:
    """Report how near the ends are at the smallest and the largest lambda; below C coordinates apart."""
    wide = [found for cell, found in results if cell["K"] >= cell["C"]]
    narrow = [found for cell, found in results if cell["K"] < cell["C"]]
    measures = {
        "least_squares_at_smallest": max(found["least_squares"][0] for found in wide),
        "principal_at_largest": max(found["principal"][-1] for _, found in results),
        "least_squares_when_narrow": min(found["least_squares"][0] for found in narrow),
    }
    charts = tuple(
        Chart(
            f"K = {cell['K']}, C = {cell['C']}, D = {cell['D']}, N = {cell['N']}", "lambda", "relative distance",
            (
                Series("W'V' from least squares", tuple(settings["lambdas"]), _shown(found["least_squares"])),
                Series("Z'V' from principal projection", tuple(settings["lambdas"]), _shown(found["principal"])),
            ),
            x_scale="log", y_scale="log",
        )
        for cell, found in results
    )  # fmt: skip
    return Findings(measures=rounded_measures(measures), panels=charts)


# -- proposition 1 ---------------------------------------------------------------------------------------------------


def _turned(cell: JsonObject) -> JsonDict:
    """Try targets whose K directions are the rows' own, turned by an angle: into their span, or out of it.

    Returned for every angle: the dimension that the top-K eigenspaces of X'X and Y'Y share, and how far the span of
    the code moves over lambda.
    """
    K, rng = cell["K"], np.random.default_rng(cell["seed"])
    joint = problem(cell)
    own = np.linalg.svd(joint.X, full_matrices=False)[0]  # (n, p): directions over rows, largest variance first
    out = rng.standard_normal((len(own), K))
    out = out - out.mean(axis=0)
    out = np.linalg.qr(out - own @ (own.T @ out))[0]
    other = own[:, K : 2 * K] if cell["towards"] == "inside" else out
    shared, moves = [], []
    for degrees in cell["degrees"]:
        angle = np.deg2rad(degrees)
        basis = np.cos(angle) * own[:, :K] + np.sin(angle) * other
        turned = Joint(joint.X, basis * np.linspace(2, 1, K) * np.sqrt(len(own)))
        spans = [span(turned, solved(turned, K, float(lam)).V) for lam in cell["lambdas"]]
        cosines = np.linalg.svd(own[:, :K].T @ basis, compute_uv=False)
        shared.append(int(np.sum(cosines > 1 - SAME)))
        moves.append(max(largest_sine(spans[0], one) for one in spans))
    return {"shared": shared, "moves": rounded(moves)}


def _real(cell: JsonObject) -> JsonDict:
    """Return cosines between the top eigenspaces of X'X and Y'Y on a real set, at K = C - 1, and moves of the code.

    With balanced classes the eigenvalues of Y'Y are tied, so that no smaller K has an eigenspace of its own.
    """
    rows = task(cell)
    axes = principal_axes(rows.moments())
    assert axes.target is not None
    values, E = np.linalg.eigh(axes.target.second)
    K = len(values) - 1
    cosines = np.linalg.svd(axes.gains[:K] @ (E[:, 1:] / np.sqrt(values[1:])), compute_uv=False)
    joint = problem(cell)
    spans = [span(joint, solved(joint, K, float(lam)).V) for lam in cell["lambdas"]]
    moves = max(largest_sine(spans[0], one) for one in spans)
    return {"cosines": rounded(cosines), "shared": int(np.sum(cosines > 1 - SAME)), "K": K, "moves": moves}


def proposition_1(settings: JsonObject, results: Results) -> Findings:
    """Report whether the condition suffices, whether it is needed, and whether real sets meet it."""
    turned = [(cell, found) for cell, found in results if cell["kind"] == "turned"]
    real = [(cell, found) for cell, found in results if cell["kind"] == "real"]
    flat = [(cell, *line) for cell, found in turned for line in zip(found["shared"], found["moves"], strict=True)]
    met = [moves for cell, shared, moves in flat if shared == cell["K"]]
    measures = {
        "moves_where_condition_holds": max(met),
        **{
            f"least_move_{side}": min(m for c, shared, m in flat if c["towards"] == side and shared < c["K"])
            for side in ("inside", "outside")
        },
        "real_sets_that_meet_it": sum(found["shared"] == found["K"] for _, found in real),
        "real_greatest_least_cosine": max(found["cosines"][-1] for _, found in real),
        "real_least_move": min(found["moves"] for _, found in real),
    }
    chart = Chart(
        "Targets turned away from the principal axes", "angle, degrees", "move of the code over lambda (sine)",
        tuple(Series(f"turned {cell['towards']} the span of the rows", tuple(cell["degrees"]), tuple(found["moves"]))
              for cell, found in turned),
    )  # fmt: skip
    table = Table(
        "Real sets at K = C - 1", ("set", "K", "shared dimensions", "largest cosine", "least cosine", "code moves by"),
        tuple((title(cell), found["K"], found["shared"], found["cosines"][0], found["cosines"][-1], found["moves"])
              for cell, found in real),
    )  # fmt: skip
    return Findings(measures=rounded_measures(measures), panels=(chart, table))


def _shown(values: list[float]) -> tuple[float | None, ...]:
    """Leave zeros out of a logarithmic axis."""
    return tuple(value if value > 0 else None for value in values)
