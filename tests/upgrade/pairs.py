"""Pairs of vectors of two made-up models that see the same texts, each with noise of its own."""

from __future__ import annotations

import numpy as np

from firstk.moments.cross import CrossMoments


def pairs(n=400, p=7, q=5, *, noise=0.3, seed=0, unit=False):
    """Return old and new vectors whose means, scales and widths differ."""
    rng = np.random.default_rng(seed)
    texts = rng.normal(size=(n, 6)) * np.geomspace(2, 0.3, 6)
    models = np.random.default_rng(99)
    old = texts @ models.normal(size=(6, p)) + noise * rng.normal(size=(n, p)) + models.normal(size=p)
    new = 2 * texts @ models.normal(size=(6, q)) + noise * rng.normal(size=(n, q)) + models.normal(size=q)
    if unit:
        old, new = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (old, new))
    return old, new


def moments_of(old, new, weight=None):
    return CrossMoments().update(old, new, weight)


def centred(old, new):
    return old - old.mean(axis=0), new - new.mean(axis=0)


def to_scale(A, B, W):
    """Return W times the scale of least squares."""
    return W * (np.vdot(A @ W, B) / np.square(A @ W).sum())


def cosines(left, right):
    left, right = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (left, right))
    return left @ right.T
