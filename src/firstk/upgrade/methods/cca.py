"""Regularized canonical correlations, the ordered code that two models share; and ridge regression between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk._base.checks import check_flag
from firstk._base.linalg import signed
from firstk.moments import CrossMoments
from firstk.upgrade.contract import AffineMap, AlignmentSolution
from firstk.upgrade.methods._linear import ClosedFormMethod, inverse, shrunk_values, to_scale
from firstk.upgrade.methods.procrustes import ProcrustesRidge
from firstk.upgrade.methods.ridge import ridge_map

SHRINKAGES = (0.7, 0.5, 0.3, 0.2, 0.1, 0.05)


@dataclass(frozen=True)
class CCA(ClosedFormMethod):
    """Directions of both spaces by their correlation about zero, each coordinate scaled by a power of it.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "auto"
        Of both covariances towards a multiple of the identity. 1 gives the singular vectors of the cross-covariance.
    power : float in [0, 1] or "auto"
        t: coordinate i of both sides is scaled by ``rho_i^t``.
    center : bool
        Subtract the means of the pairs. By default the second moments about zero take the place of covariances:
        queries have other means than the documents that pairs are made of.

    Notes
    -----
    With shrunk covariances ``C_a = (1 - s) C + s c I`` and C_b alike, and ``C_ab = (1 - s) E[a b^T]`` (``E[a b^T]`` for
    s = 1), ``C_a^-1/2 C_ab C_b^-1/2 = U diag(rho) V^T`` (Hotelling 1936; Vinod 1976 for the ridge). Codes are
    ``rho^t U^T C_a^-1/2 a`` and ``rho^t V^T C_b^-1/2 b``. If a pair is two noisy views of one Gaussian vector, rho_i is
    the share of signal in coordinate i of either side and ``t = 1/2`` weighs products of coordinates by it, as the best
    linear prediction of one side from the other does (Bach and Jordan 2005). With ``shrinkage=1``, ``power=0`` and
    ``center=True`` the code is that of Procrustes, centred.

    Translations are the predictions of one side from the code of the other:
    ``E[b | a] = b_mean + C_b^1/2 V diag(rho) U^T C_a^-1/2 a``, to the scale of least squares.
    """

    shrinkage: float | Literal["auto"] = "auto"
    power: float | Literal["auto"] = "auto"
    center: bool = False

    name: ClassVar[str] = "cca"
    grid: ClassVar[dict[str, tuple[float, ...]]] = {"shrinkage": SHRINKAGES, "power": (0.5, 1.0)}

    def check(self) -> None:
        """Raise InvalidInputError for settings out of range."""
        super().check()
        check_flag(self.center, "center", "CCA")

    def solve(self, moments: CrossMoments) -> AlignmentSolution:
        """Solve for cross moments."""
        second, a = self._second(moments), float(self.shrinkage)
        old, new, rho = self._directions(second)
        encode_old, encode_new = self.comparing(moments)
        forward = to_scale((rho[:, None] * old).T @ (new @ _shrunk(second.new_eigen, a)), second).T
        backward = to_scale((rho[:, None] * new).T @ (old @ _shrunk(second.old_eigen, a)), second.exchanged()).T
        ma, mb = encode_old.mean, encode_new.mean
        return AlignmentSolution(AffineMap(ma, forward, mb), AffineMap(mb, backward, ma), encode_old, encode_new, rho)

    def comparing(self, moments: CrossMoments) -> tuple[AffineMap, AffineMap]:
        """Return the maps to the shared code."""
        old, new, rho = self._directions(self._second(moments))
        means = [mean * self.center for mean in (moments.old_mean, moments.new_mean)]
        scale, zero = rho[:, None] ** float(self.power), np.zeros(len(rho))
        return AffineMap(means[0], scale * old, zero), AffineMap(means[1], scale * new, zero)

    def _directions(self, second: CrossMoments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a = float(self.shrinkage)
        return second.once(("cca", a), lambda: canonical_directions(second, a))

    def _second(self, moments: CrossMoments) -> CrossMoments:
        return moments if self.center else moments.about_zero()


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

    def solve(self, moments: CrossMoments) -> AlignmentSolution:
        """Solve for cross moments."""
        second, a = moments.about_zero(), float(self.shrinkage)
        old, new, rho = canonical_directions(second, a, 1.0 - float(self.whitening))
        to_new, to_old = self.translating(moments), self.translating(moments.exchanged())
        return AlignmentSolution(to_new, to_old, _about_zero(rho[:, None] * old), _about_zero(new), rho)

    def comparing(self, moments: CrossMoments) -> tuple[AffineMap, AffineMap]:
        """Return the prediction of whitened new vectors, and these."""
        second = moments.about_zero()
        values, Q = second.new_eigen
        whiten = Q * np.sqrt(inverse(shrunk_values(values, 1.0 - float(self.whitening))))
        return _about_zero((ridge_map(second, float(self.shrinkage)) @ whiten).T), _about_zero(whiten.T)

    def translating(self, moments: CrossMoments) -> AffineMap:
        """Return the translation of old vectors."""
        return ProcrustesRidge(self.shrinkage).translating(moments)


def canonical_directions(
    moments: CrossMoments, shrinkage: float, new_shrinkage: float | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the directions of both sides as rows, shapes (d, p) and (d, q), and their correlations, descending.

    The covariance of the new side is shrunk as that of the old one, if nothing else is given.
    """
    (old_values, P), (new_values, Q) = moments.old_eigen, moments.new_eigen
    shrinkages = shrinkage, shrinkage if new_shrinkage is None else new_shrinkage
    left, right = (
        np.sqrt(inverse(shrunk_values(values, amount)))
        for values, amount in zip((old_values, new_values), shrinkages, strict=True)
    )
    cross = moments.once("cross in both axes", lambda: P.T @ moments.cross @ Q)
    K = (1.0 - shrinkage if shrinkage < 1 else 1.0) * left[:, None] * cross * right
    U, rho, Vt = np.linalg.svd(K, full_matrices=False)
    kept = max(1, int((rho > 1e-10 * rho[0]).sum())) if rho.size else 0
    old, new = (P * left) @ U[:, :kept], (Q * right) @ Vt[:kept].T
    sign = signed(new.T)
    return old.T * sign[:, None], new.T * sign[:, None], rho[:kept]


def _shrunk(eigen: tuple[np.ndarray, np.ndarray], shrinkage: float) -> np.ndarray:
    values, vectors = eigen
    return (vectors * shrunk_values(values, shrinkage)) @ vectors.T


def _about_zero(weight: np.ndarray) -> AffineMap:
    d, p = weight.shape
    return AffineMap(np.zeros(p), weight, np.zeros(d))
