"""Objectives, which define what a good prefix is: one file per objective, one line in the registry.

The order of the coordinates is defined in `orderings`; statistics of the data are in `moments`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from firstk._base.checks import check_choice, resolve_member
from firstk._base.json_records import settings_of
from firstk._base.members import check_member, class_path
from firstk.contracts import Objective, Supervision
from firstk.objectives._common import ClosedFormObjective, LeastSquaresObjective, ShrinkageObjective
from firstk.objectives.classification import Classification
from firstk.objectives.denoising import Denoising
from firstk.objectives.fisher import Fisher
from firstk.objectives.mixture import Mixture
from firstk.objectives.noise import NOISES, GaussianNoise, Masking, image_patches
from firstk.objectives.reconstruction import Reconstruction
from firstk.objectives.regression import Regression
from firstk.objectives.similarity import DotProducts, Neighbors, Pairs, Similarity

# Names that users may pass, and below them the objectives that "similarity" resolves to.
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
    "LeastSquaresObjective",
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
    "registered",
    "resolve",
    "restore",
    "settled",
]


def resolve(objective: object) -> Objective:
    """Return the objective for a name or an object, with its settings checked.

    Any object that satisfies :class:`firstk.contracts.Objective` is accepted.
    """
    found: Objective
    if isinstance(objective, str):
        found = resolve_member(objective, PUBLIC, "objective", "Fisher()")
    else:
        expected = f"one of {', '.join(map(repr, PUBLIC))}, or an object such as Fisher()"
        found = check_member(objective, Objective, "objective", expected)  # type: ignore[type-abstract]
        check_choice(found.supervision, get_args(Supervision), "supervision", type(found).__name__)
    found.check()
    return found


def registered(objective: object) -> bool:
    """Return whether an objective is built in, so that it can be restored from its name and settings."""
    return type(objective) in (*PUBLIC.values(), *_SETTLED.values())


def settled(given: object, config: Mapping[str, Any]) -> Objective:
    """Rebuild the objective of a fit, with every "auto" resolved, from the recorded configuration.

    Parameters
    ----------
    given : str or object
        The estimator's `objective`; needed for a user-defined class, which is not recorded.
    config : mapping
        Recorded configuration of the fit.
    """
    own = config.get("own_classes", {}).get("objective")
    if own is None:
        return restore(config["objective"], config["settings"])
    for pairs in (False, True):
        found = resolve(given).resolved(pairs)
        if class_path(found) == own:
            changed = {name: value for name, value in config["settings"].items() if settings_of(found)[name] != value}
            return replace(found, **changed) if changed else found  # type: ignore[type-var]
    raise AttributeError(
        f"The objective of this encoder was a {own}, a class of your own, which is not saved. "
        "Pass it again: set_params(objective=...)."
    )


def provides(objective: object, part: str) -> bool:
    """Return whether an objective, fitted on rows, has a "decoder" or a "head"."""
    found = resolve(objective).resolved(pairs=False)
    return getattr(type(found), part) is not getattr(ClosedFormObjective, part)


def gives_probabilities(objective: object) -> bool:
    """Return whether an objective, given as object or name, has a head whose scores are log-probabilities."""
    found = (PUBLIC | _SETTLED).get(objective, objective) if isinstance(objective, str) else objective
    return bool(getattr(found, "probabilities", False))


def restore(name: str, settings: dict[str, Any]) -> Objective:
    """Rebuild an objective from its name and recorded settings."""
    settings = dict(settings)
    if "noise" in settings:
        noise = dict(settings["noise"])
        settings["noise"] = NOISES[noise.pop("name")](**noise)
    return resolve((PUBLIC | _SETTLED)[name](**settings))
