"""Ridge regression towards the scaled Procrustes solution: between a rotation and least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk.moments import CrossMoments
from firstk.upgrade.methods._linear import TranslationMethod, rotation
from firstk.upgrade.methods.ridge import SHRINKAGES, in_old_axes, ridge_map


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


def scaled_rotation(moments: CrossMoments) -> np.ndarray:
    """Return the rotation R times the scale of least squares, ``tr S / E|R^T a|^2``."""
    R, agreement = rotation(moments)
    left = float(np.einsum("ij,ij->", R, moments.old_scatter @ R))
    return (agreement / left if left > 0 else 0.0) * R
