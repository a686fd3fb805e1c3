"""firstk learns codes you can cut anywhere.

Given vectors and an objective, an encoder whose first k coordinates are the best k-dimensional code for that
objective, for every k at once. Names are loaded when they are first used, so importing firstk is quick.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as type checkers know it, without the import of typing, which takes longer than all of this

__version__ = "0.1.0"

_HOMES = {
    "firstk.estimator.prefix_encoder": ["PrefixEncoder"],
    "firstk.data.task": ["Pairs", "Rows", "Search", "Task"],
    "firstk.upgrade": ["PrefixAlignment"],
    "firstk.quality.curve": ["PrefixCurve"],
    "firstk.encoder.budget": ["allocate"],
    "firstk.encoder.fitted": ["FittedEncoder"],
    "firstk.estimator.fit_files": ["fit_files"],
    "firstk.estimator.transform_files": ["transform_files"],
    "firstk.metrics.curve": ["prefix_curve"],
    "firstk.advice.evaluate": ["evaluate"],
    "firstk.advice.read": ["read"],
    "firstk.quality.choice": ["Choice"],
    "firstk.quality.evaluation": ["Evaluation"],
    "firstk.advice.diagnosis": ["diagnose"],
    "firstk.moments.moments": ["Moments"],
    "firstk.moments.pairs": ["PairMoments"],
    "firstk.objectives": [
        "Reconstruction",
        "Fisher",
        "ErrorBound",
        "Classification",
        "Regression",
        "Similarity",
        "Mixture",
        "Denoising",
    ],
    "firstk.objectives.noise": ["GaussianNoise", "Masking", "image_patches"],
    "firstk.orderings": [
        "FullPrefix",
        "SparsePrefix",
        "Unordered",
        "UniformL2",
        "NonuniformL2",
        "MonotoneL1",
        "NestedDropout",
        "Rotation",
        "Variational",
    ],
    "firstk.solvers": ["ClosedForm", "Gradient", "QuasiNewton"],
    "firstk.encoder.network": ["MLP"],
    "firstk.search": ["CodeIndex", "FunnelIndex"],
    "firstk.integrations.sentence_transformers": ["fit_sentence_transformer"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

# Without fit_sentence_transformer, which needs an extra: a star-import has to work without any.
__all__ = [
    "MLP",
    "Choice",
    "Classification",
    "ClosedForm",
    "CodeIndex",
    "Denoising",
    "ErrorBound",
    "Evaluation",
    "Fisher",
    "FittedEncoder",
    "FullPrefix",
    "FunnelIndex",
    "GaussianNoise",
    "Gradient",
    "Masking",
    "Mixture",
    "Moments",
    "MonotoneL1",
    "NestedDropout",
    "NonuniformL2",
    "PairMoments",
    "Pairs",
    "PrefixAlignment",
    "PrefixCurve",
    "PrefixEncoder",
    "QuasiNewton",
    "Reconstruction",
    "Regression",
    "Rotation",
    "Rows",
    "Search",
    "Similarity",
    "SparsePrefix",
    "Task",
    "UniformL2",
    "Unordered",
    "Variational",
    "__version__",
    "allocate",
    "diagnose",
    "evaluate",
    "fit_files",
    "image_patches",
    "prefix_curve",
    "read",
    "transform_files",
]

if TYPE_CHECKING:
    from typing import Any

    from firstk.advice.diagnosis import diagnose
    from firstk.advice.evaluate import evaluate
    from firstk.advice.read import read
    from firstk.data.task import Pairs, Rows, Search, Task
    from firstk.encoder.budget import allocate
    from firstk.encoder.fitted import FittedEncoder
    from firstk.encoder.network import MLP
    from firstk.estimator.fit_files import fit_files
    from firstk.estimator.prefix_encoder import PrefixEncoder
    from firstk.estimator.transform_files import transform_files
    from firstk.integrations.sentence_transformers import fit_sentence_transformer as fit_sentence_transformer
    from firstk.metrics.curve import prefix_curve
    from firstk.moments.moments import Moments
    from firstk.moments.pairs import PairMoments
    from firstk.objectives import (
        Classification,
        Denoising,
        ErrorBound,
        Fisher,
        GaussianNoise,
        Masking,
        Mixture,
        Reconstruction,
        Regression,
        Similarity,
        image_patches,
    )
    from firstk.orderings import (
        FullPrefix,
        MonotoneL1,
        NestedDropout,
        NonuniformL2,
        Rotation,
        SparsePrefix,
        UniformL2,
        Unordered,
        Variational,
    )
    from firstk.quality.choice import Choice
    from firstk.quality.curve import PrefixCurve
    from firstk.quality.evaluation import Evaluation
    from firstk.search import CodeIndex, FunnelIndex
    from firstk.solvers import ClosedForm, Gradient, QuasiNewton
    from firstk.upgrade import PrefixAlignment


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'firstk' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME_OF})
