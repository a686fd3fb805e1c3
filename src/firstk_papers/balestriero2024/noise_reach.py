"""A test without labels of whether a noise can help any task (Balestriero and LeCun 2024 section 4.2).

If the denoising code spans the same subspace as the principal axes, no task can tell them apart. How far the two are
apart bounds what any target's R^2 can gain or lose; here the bound is checked against targets made to reach it,
against random targets, and against the labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from firstk_papers.balestriero2024.axes import Readout, principal_axes
from firstk_papers.balestriero2024.denoising import denoising_axes, effect_of
from firstk_papers.balestriero2024.masking_alignment import noise_name, noise_of
from firstk_papers.balestriero2024.task_alignment import rounded_measures
from firstk_papers.datasets.tasks import task, title
from firstk_papers.frame.panels import Chart, Findings, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 2


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell for each set, with every noise."""
    return [
        {"set": line["set"], "rows": line.get("rows"), "pool": line.get("pool", 1), "noises": settings["noises"],
         "targets": settings["targets"], "seed": settings["seed"], "revision": REVISION}
        for line in settings["tasks"]
    ]  # fmt: skip


def measure(cell: JsonObject) -> JsonDict:
    """Return, for each noise, what it could move at most, and what three kinds of targets moved."""
    rows = task(cell)
    moments = rows.moments()
    axes, St = principal_axes(moments), moments.St
    rng = np.random.default_rng(cell["seed"])
    lines = []
    for line in cell["noises"]:
        noise = noise_of(line, St, rows.shape)
        effect = effect_of(noise, St, replace(axes, target=None))
        ks = np.array(effect.k)
        Q = axes.basis(denoising_axes(noise, St, int(ks[-1]), start=axes.P))
        total = float(np.sum(axes.gains**2)) / axes.r2  # variance of the targets
        labels = (Readout(axes, Q).explained() - Readout(axes).explained()[: Q.shape[1]])[ks - 1] / total
        drawn = [random_changes(Q[:, :k], cell["targets"], rng) for k in ks.tolist()]
        lines.append(
            {
                "name": noise_name(line),
                "can_help": effect.can_help,
                "k": ks.tolist(),
                "could_move": rounded(effect.could_move),
                "worst": rounded([worst_change(Q[:, :k]) for k in ks.tolist()]),
                "random": rounded([float(np.abs(change).max()) for change in drawn]),
                "labels": rounded(labels),
            }
        )
    return {"lines": lines}


def worst_change(Q: np.ndarray) -> float:
    """Return the greatest gain in R^2 that some target has from reading span(Q) instead of the first k axes.

    It is the largest eigenvalue of Q Q^T - E E^T (whitened coordinates), found on the span of both bases together.
    """
    k = Q.shape[1]
    E = np.eye(len(Q))[:, :k]
    basis = np.linalg.qr(np.hstack([E, Q]))[0]
    inside, plain = basis.T @ Q, basis.T @ E
    return float(np.linalg.eigvalsh(inside @ inside.T - plain @ plain.T)[-1])


def random_changes(Q: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the change in R^2 of targets drawn at random, noiseless readouts of all coordinates."""
    targets = rng.standard_normal((len(Q), count))
    targets /= np.linalg.norm(targets, axis=0)
    return np.sum((Q.T @ targets) ** 2, axis=0) - np.sum(targets[: Q.shape[1]] ** 2, axis=0)


def report(settings: JsonObject, results: Results) -> Findings:
    """Report which noises can help, and whether the bound is right and reached."""
    lines = [
        (title(cell), line, "sigma" in noise)
        for cell, found in results
        for noise, line in zip(cell["noises"], found["lines"], strict=True)
    ]
    gaps = [np.subtract(line["worst"], line["could_move"]) for _, line, _ in lines]
    seen = [np.maximum(np.abs(line["labels"]), line["random"]) - line["could_move"] for _, line, _ in lines]
    measures = {
        "gaussian_could_move": max(max(line["could_move"]) for _, line, gaussian in lines if gaussian),
        "masking_could_move": min(max(line["could_move"]) for _, line, gaussian in lines if not gaussian),
        "worst_target_off_bound": float(max(np.abs(gap).max() for gap in gaps)),
        "greatest_excess_over_bound": float(max(excess.max() for excess in seen)),
    }
    charts = tuple(
        Chart(
            title(cell), "k", "most that any R^2 can move",
            tuple(Series(line["name"], tuple(line["k"]), tuple(line["could_move"])) for line in found["lines"]),
            x_scale="log",
        )
        for cell, found in results
    )  # fmt: skip
    table = Table(
        "Can it help any task?",
        ("set", "noise", "outcome", "could move R^2 by", "labels moved by"),
        tuple(
            (name, line["name"], "it can" if line["can_help"] else "it cannot", max(line["could_move"]),
             max(line["labels"], key=abs))
            for name, line, _ in lines
        ),
    )  # fmt: skip
    return Findings(measures=rounded_measures(measures), panels=(*charts, table))
