"""Rotations: orthogonal Procrustes, which stretches nothing, and maps that may leave it a little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk._base.checks import bad_parameter, check_non_negative, is_int
from firstk.moments import CrossMoments
from firstk.upgrade.methods._linear import TranslationMethod
from firstk.upgrade.methods.ridge import SHRINKAGES, in_old_axes, ridge_map

# Weights of the penalty, one after the other: each run starts where the one before ended.
_PENALTIES = (1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Procrustes(TranslationMethod):
    """``min |A R - B|^2`` over R with orthonormal rows or columns, A and B centred.

    Notes
    -----
    ``R = U V^T`` with ``A^T B = U S V^T`` (Schoenemann 1966). If the widths differ, R is the least-squares optimum from
    the narrower space into the wider one, where ``|A R|`` does not depend on R; from the wider into the narrower one
    it maximises ``tr(R^T A^T B)``, the agreement, and ``|A R|`` is what R leaves of A. The way back is ``R^T``.

    If all inner products of the two models agree to within e on n rows, an isometry exists that brings the rows within
    a distance that grows with ``sqrt(n e)`` (arXiv 2510.13406): small if the two models differ by little.
    """

    name: ClassVar[str] = "procrustes"

    def translation(self, moments: CrossMoments) -> np.ndarray:
        """Return R."""
        return rotation(moments)[0]


@dataclass(frozen=True)
class ProcrustesRidge(TranslationMethod):
    """``W = t ((1 - a) C + a c I)^-1 ((1 - a) E[a b^T] + a c s R)``, s R the scaled rotation.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "auto"
        a. 1 is Procrustes with a scale, which cosines do not see; 0 is least squares.

    Notes
    -----
    The minimum of ``(1 - a) E|W^T a - b|^2 + a c |W - s R|^2`` over W, times the t of least squares: where the pairs
    say little, the map is a rotation and not zero. R is the Procrustes solution, ``s = tr S / E|R^T a|^2`` its
    least-squares scale, S the singular values of ``E[a b^T]``, C the covariance of a, c its mean eigenvalue. The ends
    of the path are those of lambda-orthogonality (arXiv 2509.16664), and every point is a closed form.
    """

    shrinkage: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "procrustes_ridge"
    grid: ClassVar[dict[str, tuple[float, ...]]] = {"shrinkage": (1.0, 0.9, *SHRINKAGES)}

    def translation(self, moments: CrossMoments) -> np.ndarray:
        """Return W."""
        target = in_old_axes(moments, "scaled rotation", lambda: scaled_rotation(moments))
        return ridge_map(moments, float(self.shrinkage), target)


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

    def check(self) -> None:
        """Raise InvalidInputError for settings out of range."""
        check_non_negative(self.threshold, "threshold", "LambdaOrthogonal")
        if not is_int(self.max_iter) or self.max_iter < 1:
            raise bad_parameter("max_iter", "LambdaOrthogonal", "a positive int", self.max_iter)

    def translation(self, moments: CrossMoments) -> np.ndarray:
        """Return W."""
        from scipy.optimize import minimize

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


def rotation(moments: CrossMoments) -> tuple[np.ndarray, float]:
    """Return R of shape (p, q) that turns old vectors into new ones, and the sum of the singular values of the cross.

    ``R = U V^T`` with ``E[a b^T] = U S V^T`` (Schoenemann 1966), a and b centred. Directions beyond the rank of
    ``E[a b^T]`` are turned into nothing: their singular vectors are rounding, and change with the order of rows.
    """

    def compute() -> tuple[np.ndarray, float]:
        U, sizes, Vt = np.linalg.svd(moments.cross, full_matrices=False)
        rounding = sizes[0] * max(moments.p, moments.q) * np.finfo(np.float64).eps
        # n rows about their mean span n - 1 dimensions; in float32, what is beyond is larger than this rounding.
        rank = min(int((sizes > rounding).sum()), moments.rows - 1)
        return U[:, :rank] @ Vt[:rank], float(sizes[:rank].sum())

    return moments.once("rotation", compute)


def scaled_rotation(moments: CrossMoments) -> np.ndarray:
    """Return the rotation R times the scale of least squares, ``tr S / E|R^T a|^2``."""
    R, agreement = rotation(moments)
    left = float(np.einsum("ij,ij->", R, moments.old_scatter @ R))
    return (agreement / left if left > 0 else 0.0) * R
