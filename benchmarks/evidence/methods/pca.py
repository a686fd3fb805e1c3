"""Principal components, about the mean or about the origin, whichever is better on validation data."""

from __future__ import annotations

import numpy as np

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method, linear, principal_axes


def fit(part: Part, setting: str, seed: int) -> Encode:
    """Return the coordinates on the leading axes."""
    mean = part.X.mean(axis=0) if setting == "centred" else np.zeros(part.X.shape[1], part.X.dtype)
    return linear(principal_axes(part.X, mean)[1], mean)


METHOD = Method("PCA", fit, settings=("centred", "uncentred"))
