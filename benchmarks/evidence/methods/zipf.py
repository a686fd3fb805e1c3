"""Zipf weighting: PCA with rows weighted by how rare they are, as model2vec weights tokens by rank.

Token counts are not to be had for sentence vectors. The density of a row among the others takes their place: a row is
ranked by its mean cosine with a sample, and weighted by log(1 + rank). Marked as an adaptation.
"""

from __future__ import annotations

import numpy as np

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method, linear
from benchmarks.evidence.scores import unit

SAMPLE = 1000


def fit(part: Part, setting: None, seed: int) -> Encode:
    """Return principal components of weighted rows."""
    rows = unit(part.X)
    sample = rows[np.random.default_rng(seed).permutation(len(rows))[:SAMPLE]]
    rank = np.argsort(np.argsort(-(rows @ sample.T).mean(axis=1))) + 1  # 1: the most common
    weight = np.log1p(rank)[:, None]
    mean = (weight * part.X).sum(axis=0) / weight.sum()
    centred = (part.X - mean).astype(np.float64)
    _, vectors = np.linalg.eigh((weight * centred).T @ centred / weight.sum())
    return linear(vectors[:, ::-1].T, mean)


METHOD = Method("Zipf-weighted PCA", fit)
