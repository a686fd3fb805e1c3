"""Plain truncation: the first k coordinates of the model. For a model trained as Matryoshka this is its own method."""

from __future__ import annotations

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method


def fit(part: Part, setting: None, seed: int) -> Encode:
    """Return the first coordinates."""
    return lambda X, k, side: X[:, :k]


METHOD = Method("truncation", fit)
