"""What denoising does to alignment (figure 6, theorem 3, equation (9)): masking by patches, and Gaussian noise.

One cell is one noise on one set. The code of theorem 3 is solved from moments; its readout is fitted on clean rows,
as equation (9) has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk import GaussianNoise, Masking, image_patches
from firstk_papers.balestriero2024.alignment import raw_axes
from firstk_papers.balestriero2024.axes import Readout, principal_axes
from firstk_papers.balestriero2024.denoising import denoising_axes
from firstk_papers.balestriero2024.task_alignment import rounded_measures
from firstk_papers.datasets.tasks import TITLES, task
from firstk_papers.frame.panels import Chart, Findings, Mark, Series, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 1
SMALL_K, LARGE_K = 4, 64


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return a cell for each set and patch, with every rate, and one of Gaussian noises; `raw` sets twice."""
    families = [[{"patch": patch, "dropped": rate} for rate in settings["dropped"]] for patch in settings["patches"]]
    gaussian = [{"sigma": sigma} for sigma in settings["sigmas"]]
    return [
        {"set": line["set"], "rows": line.get("rows"), "pool": line.get("pool", 1), "centred": centred,
         "noises": noises, "most": settings["most"], "seed": settings["seed"], "revision": REVISION}
        for line in settings["tasks"]
        for centred in ((True, False) if line["set"] in settings["raw"] else (True,))
        for noises in ([*families, gaussian] if centred else families)
    ]  # fmt: skip


def measure(cell: JsonObject) -> JsonDict:
    """Return alignment for k up to `most`, plain and under every noise, and test accuracy of the same readouts."""
    rows = task(cell)
    moments = rows.moments()
    axes, St = principal_axes(moments), moments.St
    if not cell["centred"]:
        # About the origin a masked pixel becomes 0, as the paper writes it; about the mean it becomes the mean.
        axes, St = raw_axes(moments), St + np.outer(moments.mean, moments.mean)
    d = min(cell["most"], axes.rank)
    ks = np.unique(np.rint(np.geomspace(1, d, 24)).astype(int))
    U, total = axes.whitened(rows.X_test), float(np.sum(axes.gains**2))

    def scores(readout: Readout) -> JsonDict:
        accuracy = readout.scores(U, rows.y_test, ks, "accuracy").mean(axis=0)
        return {"alignment": rounded(readout.explained()[ks - 1] / total), "accuracy": rounded(accuracy)}

    noises = (noise_of(noise, St, rows.shape) for noise in cell["noises"])
    codes = (axes.basis(denoising_axes(noise, St, d, start=axes.P)) for noise in noises)
    return {"k": ks.tolist(), "plain": scores(Readout(axes)), "under": [scores(Readout(axes, Q)) for Q in codes]}


def noise_of(noise: JsonObject, St: np.ndarray, shape: tuple[int, ...] | None) -> GaussianNoise | Masking:
    """Return the noise of a cell; `sigma` counts in root mean variances of a coordinate, `patch` in pixels."""
    if "sigma" in noise:
        return GaussianNoise(sigma=float(noise["sigma"] * np.sqrt(np.trace(St) / len(St))))
    patches = None if shape is None else image_patches(shape, (noise["patch"], noise["patch"]))
    return Masking(keep=1 - noise["dropped"], patches=patches)


def noise_name(noise: JsonObject) -> str:
    """Name the noise of a cell in a figure.

    Examples
    --------
    >>> noise_name({"patch": 2, "dropped": 0.5}), noise_name({"sigma": 3.0})
    ('50 % of 2 x 2 patches dropped', 'Gaussian, sigma 3')
    """
    if "sigma" in noise:
        return f"Gaussian, sigma {noise['sigma']:g}"
    return f"{100 * noise['dropped']:g} % of {noise['patch']} x {noise['patch']} patches dropped"


@dataclass(frozen=True, eq=False)
class Effect:
    """What one noise does on one set: relative change of alignment, and change of test accuracy, at every k."""

    set: str
    centred: bool
    noise: JsonObject
    k: np.ndarray
    change: np.ndarray
    accuracy: np.ndarray


def effects(results: Results) -> list[Effect]:
    """Return (alignment under the noise - plain) / plain for every noise of every cell."""
    return [
        Effect(
            cell["set"], cell["centred"], noise, np.array(found["k"]),
            np.array(under["alignment"]) / np.array(found["plain"]["alignment"]) - 1,
            np.array(under["accuracy"]) - np.array(found["plain"]["accuracy"]),
        )
        for cell, found in results
        for noise, under in zip(cell["noises"], found["under"], strict=True)
    ]  # fmt: skip


# -- report ----------------------------------------------------------------------------------------------------------


def report(settings: JsonObject, results: Results) -> Findings:
    """Report figure 6: relative change of alignment against k, by patch and rate."""
    found = effects(results)
    names = list(dict.fromkeys(effect.set for effect in found))
    measures: JsonDict = {}
    for name in names:
        measures |= _measures_of(name, [effect for effect in found if effect.set == name and effect.centred])
    for name in settings["raw"]:
        about_origin = [effect for effect in found if effect.set == name and not effect.centred]
        measures |= {f"{key}_raw": value for key, value in _measures_of(name, about_origin).items()}
    measures["best_patches_differ"] = len({measures[f"{name}_best_patch"] for name in names}) > 1
    panels = tuple(_chart(name, patch, found) for patch in settings["patches"] for name in names)
    return Findings(measures=rounded_measures(measures), panels=panels, notes=_notes(results))


def _measures_of(name: str, found: list[Effect]) -> JsonDict:
    """Return the extremes of the change on one set, by patch, and where masking helps most."""
    measures: JsonDict = {}
    masks = [effect for effect in found if effect.noise.get("dropped")]
    for patch in dict.fromkeys(effect.noise["patch"] for effect in masks):
        changes = np.array([effect.change for effect in masks if effect.noise["patch"] == patch])
        measures |= {
            f"{name}_patch{patch}_greatest": float(changes.max()),
            f"{name}_patch{patch}_mean": float(changes.mean()),
        }
    best = max(masks, key=lambda effect: float(effect.change.mean()))
    small, large = (best.change[np.argmin(np.abs(best.k - k))] for k in (SMALL_K, LARGE_K))
    idle = [np.abs(effect.change).max() for effect in found if effect.noise.get("dropped") == 0]
    gaussian = [np.abs(effect.change).max() for effect in found if "sigma" in effect.noise]
    return measures | {
        f"{name}_best_patch": best.noise["patch"],
        f"{name}_best_dropped": best.noise["dropped"],
        f"{name}_best_mean": float(best.change.mean()),
        f"{name}_best_small": float(small),
        f"{name}_best_large": float(large),
        f"{name}_best_less_at_large": float(small - large),
        f"{name}_best_accuracy_gain": float(best.accuracy.mean()),
        f"{name}_no_mask": float(max(idle)) if idle else None,
        f"{name}_gaussian": float(max(gaussian)) if gaussian else None,
    }


def _chart(name: str, patch: int, found: list[Effect]) -> Chart:
    """Return a panel of a patch and set, as in the paper; lines are rates."""
    lines = tuple(
        Series(f"{100 * effect.noise['dropped']:g} % dropped", tuple(effect.k.tolist()), tuple(rounded(effect.change)))
        for effect in found
        if effect.set == name and effect.centred and effect.noise.get("patch") == patch
    )
    heading = f"{TITLES[name]}, patches {patch} x {patch}"
    marks = (Mark(0.0, axis="y"),)
    return Chart(heading, "k", "relative change of alignment(k)", lines, x_scale="log", marks=marks)


def _notes(results: Results) -> tuple[str, ...]:
    notes = ["Masked pixels take the mean of their column: data are centred, and readouts have an intercept."]
    if any(not cell["centred"] for cell, _ in results):
        notes.append("Measures that end in _raw have masked pixels at 0 and readouts without intercept.")
    return tuple(notes)
