"""Linear discriminants of scikit-learn with shrinkage; after C - 1 of them, principal components of the rest."""

from __future__ import annotations

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method, linear, principal_axes


def fit(part: Part, setting: float | str, seed: int) -> Encode:
    """Return the discriminants of the eigen solver."""
    found = LinearDiscriminantAnalysis(solver="eigen", shrinkage=setting).fit(part.X, part.y)
    mean = part.X.mean(axis=0)
    axes = found.scalings_[:, : len(found.classes_) - 1].T
    rest = part.X - mean
    basis = np.linalg.qr(axes.T)[0]
    rest = rest - (rest @ basis) @ basis.T
    values, further = principal_axes(rest, np.zeros(rest.shape[1]))
    # Scaled as discriminants are: unit variance, which for them is that within classes.
    further = further[: len(further) - len(axes)] / np.sqrt(np.maximum(values[: len(further) - len(axes), None], 1e-12))
    return linear(np.vstack([axes, further]), mean)


METHOD = Method("LDA", fit, settings=(0.1, 0.3, 0.5, 0.7, "auto"), needs="labels")
