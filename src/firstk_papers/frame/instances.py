"""Random instances on which theorems are checked: a cell names a check, a size and a seed, and one function does it.

All studies of theorems share this: which cells there are, the data of a cell, and the worst of what cells found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from firstk_papers.frame.panels import Chart, Series, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Data = TypeVar("Data")


def instance_cells(settings: JsonObject, revision: int = 1) -> list[JsonDict]:
    """Return a cell for each check, size (p, d) and instance; ``settings[check]`` holds what else a check needs."""
    found = []
    for check in settings["checks"]:
        own = {"sizes": settings["sizes"], "instances": settings["instances"], **settings.get(check, {})}
        sizes, instances = own.pop("sizes"), own.pop("instances")
        for p, d in sizes:
            for i in range(instances):
                found.append(
                    {"check": check, "p": p, "d": d, "seed": settings["seed"] + i, "revision": revision, **own}
                )
    return found


@dataclass(frozen=True)
class Problem:
    """A scatter with a known spectrum and axes: ``St = U diag(spectrum) U^T``, columns of U, eigenvalues descending."""

    St: np.ndarray
    U: np.ndarray
    spectrum: np.ndarray


def problem(cell: JsonObject, rng: np.random.Generator) -> Problem:
    """Draw a scatter of width p whose eigenvalues are at least 0.3 apart, and at least 0.5."""
    p = cell["p"]
    spectrum = (0.5 + np.cumsum(rng.uniform(0.3, 1.3, p)))[::-1]
    U = orthogonal(p, rng)
    return Problem((U * spectrum) @ U.T, U, spectrum)


def _whole(data: Problem, cell: JsonObject) -> Problem:
    return data


def measuring(
    *checks: Callable[[JsonObject, Data, np.random.Generator], JsonDict],
    given: Callable[[Problem, JsonObject], Data] = _whole,  # type: ignore[assignment]
) -> Callable[[JsonObject], JsonDict]:
    """Return the ``measure`` of a study: draw the instance of a cell, and do the check that the cell names.

    Parameters
    ----------
    *checks : callable
        Functions of the cell, the instance, and the generator that goes on where the instance was drawn; a cell names
        one without its underscore.
    given : callable
        What the checks take of the instance; by default all of it.
    """
    named = {check.__name__.lstrip("_"): check for check in checks}

    def measure(cell: JsonObject) -> JsonDict:
        rng = np.random.default_rng(cell["seed"])
        return named[cell["check"]](cell, given(problem(cell, rng), cell), rng)

    return measure


def orthogonal(size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw an orthogonal matrix, uniformly."""
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    return Q * np.sign(np.diag(R))


def increasing(d: int, below: float, rng: np.random.Generator) -> np.ndarray:
    """Draw penalties ``0 < lambda_1 < ... < lambda_d < below``, no two of them close.

    Bao et al. 2020 section 4, Talukder et al. 2026 (16).
    """
    steps = rng.uniform(0.5, 1.5, d + 1)
    return below * np.cumsum(steps)[:-1] / steps.sum()


def of_check(results: Results, check: str) -> Results:
    """Return the results of one check."""
    return [(cell, found) for cell, found in results if cell["check"] == check]


def values(results: Results, name: str) -> list[float]:
    """Return what the cells that know it have found under a name."""
    return [found[name] for _, found in results if found.get(name) is not None]


def worst(results: Results, name: str) -> float | None:
    """Return the largest of what cells found; None if none of them did."""
    return max(values(results, name), default=None)


def least(results: Results, name: str) -> float | None:
    """Return the smallest of what cells found; None if none of them did."""
    return min(values(results, name), default=None)


def extremes(results: Results, largest: Iterable[str] = (), smallest: Iterable[str] = ()) -> dict[str, float | None]:
    """Return, name by name, the largest of some quantities over the cells and the smallest of others."""
    return {name: worst(results, name) for name in largest} | {name: least(results, name) for name in smallest}


def biggest(difference: ArrayLike) -> float:
    """Return the largest absolute entry."""
    return float(np.abs(np.asarray(difference, dtype=float)).max(initial=0.0))


def relative(found: ArrayLike, wanted: ArrayLike) -> float:
    """Return the largest deviation, divided by the largest entry of what was wanted."""
    return biggest(np.asarray(found) - np.asarray(wanted)) / max(biggest(wanted), np.finfo(float).tiny)


def floats(array: Iterable[float]) -> list[float]:
    """Return an array as JSON numbers."""
    return [float(x) for x in array]


def line(
    name: str,
    x: Iterable[float],
    y: Iterable[float],
    *,
    kind: str = "line",
    ours: bool = False,
    floor: float | None = None,
) -> Series:
    """Return a series of rounded numbers; `floor` lifts zeros, which a logarithmic axis cannot show."""
    lifted = y if floor is None else (max(value, floor) for value in y)
    return Series(name, tuple(float(f"{value:.6g}") for value in x), rounded(lifted), kind=kind, ours=ours)


def by_instance(title: str, y_label: str, results: Results, names: Mapping[str, str], ours: str = "") -> Chart:
    """Return a chart of quantities, titled by `names`, over instances; `ours` is drawn with emphasis."""
    x = range(1, len(results) + 1)
    lines = (
        line(said, x, values(results, name), floor=1e-17, kind="points", ours=name == ours)
        for name, said in names.items()
    )
    return Chart(title, "instance", y_label, tuple(lines), y_scale="log")
