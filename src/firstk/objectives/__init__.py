"""Objectives, which define what a good prefix is: one file per objective, one line in the registry.

The order of the coordinates is defined in `orderings`; statistics of the data are in `moments`.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from firstk._base.checks import Registry
from firstk.contracts import Objective, Supervision
from firstk.objectives._common import ClosedFormObjective, LeastSquaresObjective, ShrinkageObjective
from firstk.objectives.classification import Classification
from firstk.objectives.denoising import Denoising
from firstk.objectives.error_bound import ErrorBound
from firstk.objectives.fisher import Fisher
from firstk.objectives.mixture import Mixture
from firstk.objectives.noise import NOISES, GaussianNoise, Masking, image_patches
from firstk.objectives.reconstruction import Reconstruction
from firstk.objectives.regression import Regression
from firstk.objectives.similarity import (
    DotProducts,
    NeighborSimilarity,
    PairSimilarity,
    Projections,
    Similarity,
    Variance,
)

# What an estimator's parameter may be called: the names of the registry.
ObjectiveName = Literal[
    "reconstruction",
    "fisher",
    "error_bound",
    "classification",
    "regression",
    "similarity",
    "mixture",
    "denoising",
]
REGISTRY: Registry[Objective] = Registry(
    "objective",
    "Fisher()",
    {
        objective.name: objective
        for objective in (
            Reconstruction,
            Fisher,
            ErrorBound,
            Classification,
            Regression,
            Similarity,
            Mixture,
            Denoising,
        )
    },
    # What "similarity" resolves into.
    internal={
        objective.name: objective
        for objective in (DotProducts, NeighborSimilarity, PairSimilarity, Projections, Variance)
    },
    protocol=Objective,
    choices={"supervision": get_args(Supervision)},
)
PUBLIC, resolve, registered = REGISTRY.public, REGISTRY.resolve, REGISTRY.registered

__all__ = [
    "Classification",
    "ClosedFormObjective",
    "Denoising",
    "DotProducts",
    "ErrorBound",
    "Fisher",
    "GaussianNoise",
    "LeastSquaresObjective",
    "Masking",
    "Mixture",
    "NeighborSimilarity",
    "PairSimilarity",
    "Projections",
    "Reconstruction",
    "Regression",
    "ShrinkageObjective",
    "Similarity",
    "Variance",
    "image_patches",
    "provides",
    "registered",
    "resolve",
    "restore",
]


def provides(objective: object, part: str) -> bool:
    """Return whether an objective, fitted on rows, has a "decoder", a "head", or "probabilities" of classes."""
    found, base = type(resolve(objective).resolved(pairs=False)), getattr(ClosedFormObjective, part)
    return getattr(found, part, base) is not base


def restore(name: str, settings: dict[str, Any]) -> Objective:
    """Rebuild an objective from its name and recorded settings."""
    settings = dict(settings)
    if "noise" in settings:
        noise = dict(settings["noise"])
        settings["noise"] = NOISES[noise.pop("name")](**noise)
    return REGISTRY.restore(name, settings)
