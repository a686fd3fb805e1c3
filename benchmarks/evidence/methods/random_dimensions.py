"""Random dimensions (arXiv 2508.17744): k coordinates drawn at random, a mean over 20 draws."""

from __future__ import annotations

import numpy as np

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method


def fit(part: Part, setting: None, seed: int) -> Encode:
    """Return coordinates in a random order."""
    order = np.random.default_rng(seed).permutation(part.X.shape[1])
    return lambda X, k, side: X[:, order[:k]]


METHOD = Method("random dimensions", fit, draws=20)
