"""Rotations: orthogonal Procrustes, which stretches nothing, and a ridge that pulls towards it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk.moments import CrossMoments
from firstk.upgrade.methods._linear import TranslationMethod
from firstk.upgrade.methods.ridge import SHRINKAGES, in_old_axes, ridge_map


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
