"""More classes, less alignment (section 3.1): the same images, with classes merged into fewer.

The paper compares CIFAR-10 with CIFAR-100. Merging keeps the images and changes the task alone. A merge is a matrix
on the one-hot targets, so that one eigendecomposition serves every merge.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from firstk_papers.balestriero2024.alignment import align, aligned
from firstk_papers.balestriero2024.axes import Axes, Target, principal_axes
from firstk_papers.balestriero2024.task_alignment import FIFTH, rounded_measures, thinned
from firstk_papers.datasets.images import images
from firstk_papers.datasets.tasks import IMAGES, task, title
from firstk_papers.frame.panels import Chart, Findings, Series, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 1
SMALL_K = 5


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell for each set, with the merges that are stated for it."""
    return [
        {"set": line["set"], "rows": line.get("rows"), "pool": line.get("pool", 1), "merge": line["merge"],
         "random": settings["random"], "seed": settings["seed"], "revision": REVISION}
        for line in settings["tasks"]
    ]  # fmt: skip


def measure(cell: JsonObject) -> JsonDict:
    """Return alignment for the classes as they are, for the stated merge, and for random merges of every size."""
    axes = principal_axes(task(cell).moments())
    names = images(cell["set"]).class_names
    groups = list(cell["merge"].values())
    stated = np.array([next(g for g, group in enumerate(groups) if name in group) for name in names])
    ks = thinned(axes.rank)
    return {
        "k": ks,
        "classes": summary(axes, np.arange(len(names)), ks),
        "merged": summary(axes, stated, ks),
        "groups": len(groups),
        "halves_apart": halves_apart(axes),
        "random": _random_merges(axes, len(names), cell["random"], np.random.default_rng(cell["seed"])),
    }


def merged(axes: Axes, groups: np.ndarray) -> Axes:
    """Return the axes with classes merged: class c becomes group groups[c]."""
    assert axes.target is not None
    A = (groups[:, None] == np.unique(groups)).astype(float)  # (classes, groups)
    target = axes.target
    return replace(axes, target=Target(target.cross @ A, A.T @ target.second @ A, target.mean @ A, np.unique(groups)))


def summary(axes: Axes, groups: np.ndarray, ks: list[int]) -> JsonDict:
    """Return the curve (proof's form), its area, its start and its value at a fifth of the rank."""
    found = align(merged(axes, groups))
    curve = found.curves[0]
    return {
        "curve": rounded([curve.at(k) for k in ks]),
        "area": found.area,
        "small": curve.at(SMALL_K),
        "at_20": found.at_share[FIFTH],
        "corrected_at_20": found.corrected.get(FIFTH),
    }


def halves_apart(axes: Axes) -> float:
    """Return how far alignment, pooled over all merges into two groups, is from that of the classes, over all k.

    Gains of an axis sum to zero over one-hot targets. Averaged over subsets S of the classes, (sum of S)^2 is then a
    multiple of the sum of squares, the same for every axis: the number of classes by itself changes nothing.
    """
    classes = axes.gains.shape[1]
    subsets = np.array(list(product((0.0, 1.0), repeat=classes - 1)))[1:]  # the last class is always in the rest
    halves = axes.gains[:, :-1] @ subsets.T  # (r, merges)
    pooled = np.cumsum(np.sum(halves**2, axis=1))
    return float(np.max(np.abs(pooled / pooled[-1] - np.array(aligned(axes).score))))


def _random_merges(axes: Axes, classes: int, draws: int, rng: np.random.Generator) -> list[JsonDict]:
    """Return alignment at SMALL_K of random merges into 2, 3, ... groups, every group in use."""
    lines = []
    for size in range(2, classes):
        small = []
        for _ in range(draws):
            groups = rng.permutation(np.r_[np.arange(size), rng.integers(size, size=classes - size)])
            parts = np.sum((axes.gains @ (groups[:, None] == np.arange(size))) ** 2, axis=1)  # of each axis
            small.append(float(parts[:SMALL_K].sum() / parts.sum()))
        lines.append({"groups": size, "mean": float(np.mean(small)), "low": min(small), "high": max(small)})
    return lines


def report(settings: JsonObject, results: Results) -> Findings:
    """Report alignment with all classes against the stated merge, and against merges drawn at random."""
    # A set that the tier leaves out is not evaluated.
    measures: JsonDict = {f"{name}_gain_small": None for name in IMAGES}
    for cell, found in results:
        few, many, name = found["merged"], found["classes"], cell["set"]
        for what in ("small", "at_20", "area"):
            measures |= {f"{name}_{what}_classes": many[what], f"{name}_{what}_merged": few[what]}
        measures[f"{name}_gain_small"] = few["small"] - many["small"]
        measures[f"{name}_gain_area"] = few["area"] - many["area"]
        measures[f"{name}_random_gain_small"] = found["random"][0]["mean"] - many["small"]
    measures["halves_apart"] = max(found["halves_apart"] for _, found in results)
    panels = [_curves(cell, found) for cell, found in results]
    panels.append(
        Chart(
            f"Random merges, k = {SMALL_K}", "classes", "alignment(k)",
            tuple(_random_line(cell, found) for cell, found in results),
        )
    )  # fmt: skip
    notes = tuple(
        f"{title(cell)}, the merge: "
        + "; ".join(f"{group} ({', '.join(members)})" for group, members in cell["merge"].items())
        + "."
        for cell, _ in results
    )
    return Findings(measures=rounded_measures(measures), panels=tuple(panels), notes=notes)


def _curves(cell: JsonObject, found: JsonObject) -> Chart:
    k = tuple(found["k"])
    many = Series(f"{len(found['random']) + 2} classes", k, tuple(found["classes"]["curve"]))
    few = Series(f"merged into {found['groups']}", k, tuple(found["merged"]["curve"]))
    return Chart(title(cell), "k", "alignment(k)", (many, few), x_scale="log")


def _random_line(cell: JsonObject, found: JsonObject) -> Series:
    lines = found["random"]
    whole = found["classes"]["small"]
    return Series(
        title(cell),
        (*(line["groups"] for line in lines), len(lines) + 2),
        (*rounded([line["mean"] for line in lines]), whole),
        low=(*rounded([line["low"] for line in lines]), whole),
        high=(*rounded([line["high"] for line in lines]), whole),
    )
