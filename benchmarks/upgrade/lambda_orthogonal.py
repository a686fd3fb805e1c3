"""Lambda-orthogonality (arXiv 2509.16664), as a peer of the closed forms and an example of a method of one's own.

In 35 upgrades it is ahead of "auto" in 4, by .007 at most (results/upgrade.json).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from firstk.moments import CrossMoments
from firstk.upgrade.methods._linear import TranslationMethod
from firstk.upgrade.methods.procrustes import scaled_rotation

# Weights of the penalty, one after the other: each run starts where the one before ended.
_PENALTIES = (1.0, 10.0, 100.0)


@dataclass(frozen=True)
class LambdaOrthogonal(TranslationMethod):
    """``min E|W^T a - b|^2`` subject to ``|G(W / s) - I| / sqrt(r) <= lambda``, G the smaller Gram matrix of W.

    Parameters
    ----------
    threshold : float
        lambda: 0 is the scaled Procrustes rotation s R, and a large number is least squares.
    max_iter : int
        Steps for each weight of the penalty.

    Notes
    -----
    The idea of lambda-orthogonality (arXiv 2509.16664) is to let a map leave the orthogonal ones by no more than a
    threshold. Here the threshold is a hinge, ``mu max(0, |G - I| / sqrt(r) - lambda)^2``, with mu of 1, 10 and 100
    times ``E|b|^2``, and s the scale of :class:`ProcrustesRidge`. The loss depends on cross moments only, so it is
    minimized on all pairs at once (L-BFGS), from s R, without rows.
    """

    threshold: float = 0.3
    max_iter: int = 50

    name: ClassVar[str] = "lambda_orthogonal"

    def translation(self, moments: CrossMoments) -> np.ndarray:
        """Return W."""
        start = scaled_rotation(moments)
        scale = float(np.sqrt(np.square(start).sum() / min(start.shape)))
        if self.threshold == 0 or scale == 0:
            return start
        C, X, total = moments.old_scatter, moments.cross, float(np.trace(moments.new_scatter))
        V = start / scale
        for penalty in _PENALTIES:

            def loss(flat: np.ndarray, penalty: float = penalty) -> tuple[float, np.ndarray]:
                V = flat.reshape(start.shape)
                CV = C @ V
                value = scale * scale * np.vdot(V, CV) - 2 * scale * np.vdot(V, X)
                slope = 2 * scale * (scale * CV - X)
                beyond, towards = _beyond(V, self.threshold)
                value += penalty * total * beyond * beyond
                slope = slope + 2 * penalty * total * beyond * towards
                return float(value / total), (slope / total).ravel()

            found = minimize(loss, V.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter})
            V = found.x.reshape(start.shape)
        return scale * V


def _beyond(V: np.ndarray, threshold: float) -> tuple[float, np.ndarray]:
    """Return by how much V is less orthogonal than the threshold allows, and the gradient of that."""
    tall = len(V) >= V.shape[1]
    gap = (V.T @ V if tall else V @ V.T) - np.eye(min(V.shape))
    norm, root = float(np.linalg.norm(gap)), float(np.sqrt(min(V.shape)))
    if norm / root <= threshold:
        return 0.0, np.zeros_like(V)
    gradient: np.ndarray = (V @ gap if tall else gap @ V) * (2.0 / (norm * root))
    return norm / root - threshold, gradient
