"""Theorem 1 against gradient descent (figure 9): whether Adam on (3) ends at the closed form, and never below it.

One cell is one shape (K, D, N) or set with one lambda.
"""

from __future__ import annotations

import numpy as np

from firstk import Gradient, Mixture, PrefixEncoder
from firstk_papers.balestriero2024.joint_problem import problem, solved
from firstk_papers.balestriero2024.task_alignment import rounded_measures
from firstk_papers.frame.panels import Chart, Findings, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 1
FAR = 1e-5  # a share of the loss at which a run has not arrived


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return a cell for every problem with every lambda; a problem may ask for steps of its own."""
    steps = {name: settings[name] for name in ("steps", "learning_rate", "seed")}
    return [
        {**steps, **line, "lam": lam, "revision": REVISION}
        for line in settings["problems"]
        for lam in settings["lambdas"]
    ]


def measure(cell: JsonObject) -> JsonDict:
    """Return loss(t) minus loss at the optimum, as shares of the loss of an empty code."""
    joint, lam = problem(cell), float(cell["lam"])
    every = max(1, cell["steps"] // 100)
    solver = Gradient(
        optimizer="adam", learning_rate=cell["learning_rate"], epochs=cell["steps"], batch_size="full",
        schedule="cosine", whiten=False, precondition=False, tolerance=1e-300, trace_every=every,
    )  # fmt: skip
    encoder = PrefixEncoder(
        cell["K"], objective=Mixture(lam=lam), ordering="unordered", solver=solver, init="random",
        random_state=cell["seed"],
    ).fit(joint.X, joint.Y)  # fmt: skip
    total, least = joint.total(lam), solved(joint, cell["K"], lam).loss(joint, lam)
    epochs = [int(entry["epoch"]) for entry in encoder.trace_]
    gaps = (np.array([entry["loss"] for entry in encoder.trace_]) * len(joint.X) - least) / total
    # Shares below the rounding of a sum over rows are noise; six digits of the rest suffice.
    return {"epoch": epochs, "gap": rounded(gaps), "optimum_share": least / total}


def name_of(cell: JsonObject) -> str:
    """Name a problem by its set or its shape."""
    shape = f"{cell['set']}, K = {cell['K']}" if "set" in cell else f"K, D, N = {cell['K']}, {cell['D']}, {cell['N']}"
    return str(shape)


def report(settings: JsonObject, results: Results) -> Findings:
    """Report figure 9: the gap against steps, one panel per problem, one line per lambda."""
    measures = {
        "largest_final_gap": max(min(found["gap"]) for _, found in results),
        "least_gap": min(min(found["gap"]) for _, found in results),
    }
    names = list(dict.fromkeys(name_of(cell) for cell, _ in results))
    charts = tuple(
        Chart(
            name, "step", "(loss - optimum) / loss of an empty code",
            tuple(
                Series(f"lambda = {cell['lam']:g}", tuple(found["epoch"]),
                       tuple(gap if gap > 0 else None for gap in found["gap"]))
                for cell, found in results if name_of(cell) == name
            ),
            y_scale="log",
        )
        for name in names
    )  # fmt: skip
    table = Table(
        "Least gap of each run", ("problem", "lambda", "least gap"),
        tuple((name_of(cell), float(cell["lam"]), min(found["gap"])) for cell, found in results),
    )  # fmt: skip
    unfinished = tuple(
        f"{name_of(cell)}, lambda = {cell['lam']:g}: {min(found['gap']):.1e} when its {cell['steps']} steps end."
        for cell, found in results
        if min(found["gap"]) > FAR
    )
    return Findings(measures=rounded_measures(measures), panels=(*charts, table), censored=unfinished)
