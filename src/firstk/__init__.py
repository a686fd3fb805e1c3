"""firstk learns codes you can cut anywhere.

Given vectors and an objective, an encoder whose first k coordinates are the best k-dimensional code for that objective, for
every k at once. Names are loaded when they are first used, so importing firstk is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "PrefixEncoder": "firstk.estimator",
    "PrefixCurve": "firstk.records",
    "FittedEncoder": "firstk.fitted",
    "Moments": "firstk.moments",
    "PairMoments": "firstk.pairs",
    "Reconstruction": "firstk.objectives",
    "Fisher": "firstk.objectives",
    "Regression": "firstk.objectives",
    "Similarity": "firstk.objectives",
    "Mixture": "firstk.objectives",
    "Denoising": "firstk.objectives",
    "GaussianNoise": "firstk.objectives",
    "Masking": "firstk.objectives",
    "image_patches": "firstk.objectives",
    "FullPrefix": "firstk.orderings",
    "ClosedForm": "firstk.solvers",
}
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604

if TYPE_CHECKING:
    from firstk.estimator import PrefixEncoder
    from firstk.fitted import FittedEncoder
    from firstk.moments import Moments
    from firstk.objectives import (
        Denoising,
        Fisher,
        GaussianNoise,
        Masking,
        Mixture,
        Reconstruction,
        Regression,
        Similarity,
        image_patches,
    )
    from firstk.orderings import FullPrefix
    from firstk.pairs import PairMoments
    from firstk.records import PrefixCurve
    from firstk.solvers import ClosedForm


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'firstk' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
