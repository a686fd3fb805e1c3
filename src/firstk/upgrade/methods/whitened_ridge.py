"""Ridge regression to whitened new vectors: between ridge regression and canonical correlations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk.contracts import AlignmentRows, AlignmentSolution
from firstk.encoder import AffineMap
from firstk.moments import CrossMoments
from firstk.upgrade.methods._linear import ClosedFormMethod, inverse, shrunk_values
from firstk.upgrade.methods.cca import canonical_directions
from firstk.upgrade.methods.procrustes_ridge import ProcrustesRidge
from firstk.upgrade.methods.ridge import ridge_map


@dataclass(frozen=True)
class WhitenedRidge(ClosedFormMethod):
    """``min (1 - a) E|W^T a - D^-1/2 b|^2 + a c |W|^2``: old vectors predict new ones that are whitened in part.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "auto"
        a, of the second moments C of the old vectors, as in :class:`Ridge`; c is their mean eigenvalue.
    whitening : float in [0, 1] or "auto"
        w: ``D = w E[b b^T] + (1 - w) d I`` with d the mean eigenvalue of ``E[b b^T]``. 0 leaves the new vectors as they
        are, which is ridge regression; 1 gives all of their directions the same variance.

    Notes
    -----
    ``W = ((1 - a) C + a c I)^-1 (1 - a) E[a b^T] D^-1/2``, moments about zero, as in :class:`CCA`. A store is searched
    by cosines of ``W^T a`` with ``D^-1/2 b``: directions in which all new vectors are large count less.

    With ``C_a^-1/2 (1 - a) E[a b^T] D^-1/2 = U diag(rho) V^T``, C_a the shrunk C, the prediction is
    ``V diag(rho) U^T C_a^-1/2 a``. The ordered code is ``rho U^T C_a^-1/2 a`` of old vectors and ``V^T D^-1/2 b`` of
    new ones: cosines of the whole code order a store as those of the prediction do, and no k directions have more
    agreement of the two than the first k. In CCA both sides are scaled by ``rho^t``; inner products are those of
    ``t = 1/2``, and the norms of the old codes differ. Translations are those of :class:`ProcrustesRidge`.
    """

    shrinkage: float | Literal["auto"] = "auto"
    whitening: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "whitened_ridge"
    grid: ClassVar[dict[str, tuple[float, ...]]] = {"shrinkage": (0.5, 0.3, 0.1, 0.03, 0.01), "whitening": (0.3,)}

    def solve(self, moments: CrossMoments, rows: AlignmentRows | None = None) -> AlignmentSolution:
        """Solve for cross moments."""
        second, a = moments.about_zero(), float(self.shrinkage)
        old, new, rho = canonical_directions(second, a, 1.0 - float(self.whitening))
        to_new, to_old = self.translating(moments), self.translating(moments.exchanged())
        return AlignmentSolution(to_new, to_old, _about_zero(rho[:, None] * old), _about_zero(new), rho)

    def comparing(self, moments: CrossMoments, rows: AlignmentRows | None = None) -> tuple[AffineMap, AffineMap]:
        """Return the prediction of whitened new vectors, and these."""
        second = moments.about_zero()
        values, Q = second.new_eigen
        whiten = Q * np.sqrt(inverse(shrunk_values(values, 1.0 - float(self.whitening))))
        return _about_zero((ridge_map(second, float(self.shrinkage)) @ whiten).T), _about_zero(whiten.T)

    def translating(self, moments: CrossMoments, rows: AlignmentRows | None = None) -> AffineMap:
        """Return the translation of old vectors."""
        return ProcrustesRidge(self.shrinkage).translating(moments)


def _about_zero(weight: np.ndarray) -> AffineMap:
    d, p = weight.shape
    return AffineMap(np.zeros(p), weight, np.zeros(d))
