"""What a good prefix is: one file an objective, one registry line."""

from __future__ import annotations

from typing import Any

from firstk._base.checks import resolve_member
from firstk.contracts import Objective, check_member
from firstk.objectives._common import ClosedFormObjective, ShrinkageObjective
from firstk.objectives.classification import Classification
from firstk.objectives.denoising import Denoising
from firstk.objectives.fisher import Fisher
from firstk.objectives.mixture import Mixture
from firstk.objectives.noise import NOISES, GaussianNoise, Masking, image_patches
from firstk.objectives.reconstruction import Reconstruction
from firstk.objectives.regression import Regression
from firstk.objectives.similarity import DotProducts, Neighbors, Pairs, Similarity

# What a user may name, and below it what "similarity" resolves into.
PUBLIC: dict[str, Any] = {
    objective.name: objective
    for objective in (Reconstruction, Fisher, Classification, Regression, Similarity, Mixture, Denoising)
}
_SETTLED: dict[str, Any] = {objective.name: objective for objective in (DotProducts, Neighbors, Pairs)}

__all__ = [
    "Classification",
    "ClosedFormObjective",
    "Denoising",
    "DotProducts",
    "Fisher",
    "GaussianNoise",
    "Masking",
    "Mixture",
    "Neighbors",
    "Pairs",
    "Reconstruction",
    "Regression",
    "ShrinkageObjective",
    "Similarity",
    "gives_probabilities",
    "image_patches",
    "provides",
    "resolve",
    "restore",
]


def resolve(objective: object) -> Objective:
    """Return the objective that a name or an object stands for, its settings checked.

    Any object that satisfies :class:`firstk.contracts.Objective` is one.
    """
    found: Objective
    if isinstance(objective, str):
        found = resolve_member(objective, PUBLIC, "objective", "Fisher()")
    else:
        expected = f"one of {', '.join(map(repr, PUBLIC))}, or an object such as Fisher()"
        found = check_member(objective, Objective, "objective", expected)  # type: ignore[type-abstract]
    found.check()
    return found


def provides(objective: object, part: str) -> bool:
    """Tell whether an objective, fitted on rows, has a "decoder" or a "head"."""
    settled = resolve(objective).resolved(pairs=False)
    return getattr(type(settled), part) is not getattr(ClosedFormObjective, part)


def gives_probabilities(objective: object) -> bool:
    """Tell whether an object, or the objective of this name, has a head whose scores are log-probabilities."""
    found = (PUBLIC | _SETTLED).get(objective, objective) if isinstance(objective, str) else objective
    return bool(getattr(found, "probabilities", False))


def restore(name: str, settings: dict[str, Any]) -> Objective:
    """Rebuild an objective from its name and recorded settings."""
    settings = dict(settings)
    if "noise" in settings:
        noise = dict(settings["noise"])
        settings["noise"] = NOISES[noise.pop("name")](**noise)
    return resolve((PUBLIC | _SETTLED)[name](**settings))
