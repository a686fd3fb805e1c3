"""Whitened principal components: each coordinate divided by a power of its standard deviation."""

from __future__ import annotations

import numpy as np

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method, linear, principal_axes


def fit(part: Part, setting: float, seed: int) -> Encode:
    """Return principal components divided by lambda^(setting / 2); 1 whitens."""
    mean = part.X.mean(axis=0)
    values, axes = principal_axes(part.X, mean)
    scale = np.maximum(values, 1e-8 * values[0]) ** (-setting / 2)
    return linear(scale[:, None] * axes, mean)


METHOD = Method("whitened PCA", fit, settings=(0.25, 0.5, 1.0))
