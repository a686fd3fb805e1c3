"""Ridge regression in both directions, and through a narrow channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk._base.checks import bad_parameter, check_fraction, is_int
from firstk._base.linalg import ordered_eigh, symmetrised
from firstk.moments import CrossMoments
from firstk.upgrade.methods._linear import TranslationMethod, inverse, shrunk_values, to_scale

# Smallest shrinkages last: with few pairs they lose, with many they win.
SHRINKAGES = (0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003)


@dataclass(frozen=True)
class Ridge(TranslationMethod):
    """``W = t ((1 - a) C + a c I)^-1 (1 - a) E[a b^T]``, C the old covariance and c its mean eigenvalue.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "auto"
        a. 0 is least squares; near 1 the map is the cross-covariance, scaled.

    Notes
    -----
    The minimum of ``(1 - a) E|W^T a - b|^2 + a c |W|^2`` over W (Hoerl and Kennard 1970), with a penalty that does not
    depend on the scale of the vectors, times the t of least squares, so that translations are not too short. The way
    back is a regression of its own, with the same shrinkage: the inverse of W would blow up what W shrank.
    """

    shrinkage: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "ridge"
    grid: ClassVar[dict[str, tuple[float, ...]]] = {"shrinkage": SHRINKAGES}

    def translation(self, moments: CrossMoments) -> np.ndarray:
        """Return W."""
        return ridge_map(moments, float(self.shrinkage))


@dataclass(frozen=True)
class ReducedRank(TranslationMethod):
    """``W_r = W V_r V_r^T``, W the ridge map and V_r the first eigenvectors of what it predicts.

    Parameters
    ----------
    rank : int or "auto"
        r; at most the smaller width.
    shrinkage : float in [0, 1] or "auto"
        Of the ridge map, as in :class:`Ridge`.

    Notes
    -----
    The minimum of ``(1 - a) E|W^T a - b|^2 + a c |W|^2`` over W of rank r (Izenman 1975; with a ridge, Mukherjee and
    Zhu 2011), to the scale of least squares: V_r are the first r eigenvectors of
    ``E[b a^T] ((1 - a) C + a c I)^-1 E[a b^T]``.
    """

    rank: int | Literal["auto"] = "auto"
    shrinkage: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "reduced_rank"
    grid: ClassVar[dict[str, tuple[float, ...]]] = {
        "rank": (64, 128, 256),
        "shrinkage": (0.5, 0.3, 0.1, 0.03),
    }

    def check(self) -> None:
        """Raise InvalidInputError for settings out of range."""
        if self.rank != "auto" and (not is_int(self.rank) or self.rank < 1):
            raise bad_parameter("rank", "ReducedRank", "a positive int, or 'auto'", self.rank)
        if self.shrinkage != "auto":
            check_fraction(self.shrinkage, "shrinkage", "ReducedRank")

    def translation(self, moments: CrossMoments) -> np.ndarray:
        """Return W_r."""
        a = float(self.shrinkage)
        W = moments.once(("ridge", a), lambda: ridge_map(moments, a))
        # The eigenvectors of what it predicts, most important first.
        V = moments.once(("predicted directions", a), lambda: ordered_eigh(symmetrised(moments.cross.T @ W))[1])
        first = V[:, : int(self.rank)]
        return to_scale((W @ first) @ first.T, moments)


def ridge_map(moments: CrossMoments, shrinkage: float, target: np.ndarray | None = None) -> np.ndarray:
    """Return ``((1 - a) C + a c I)^-1 ((1 - a) E[a b^T] + a c T)``, shape (p, q), to the scale of least squares.

    With ``C = V diag(v) V^T``, `target` is ``V^T T``; zero if not given.
    """
    values, vectors = moments.old_eigen
    pull = (1.0 - shrinkage) * in_old_axes(moments, "cross", lambda: moments.cross)
    if target is not None:
        pull = pull + shrinkage * values.mean() * target
    return to_scale(vectors @ (inverse(shrunk_values(values, shrinkage))[:, None] * pull), moments)


def in_old_axes(moments: CrossMoments, name: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Return a map of old vectors, shape (p, q), as one of their principal coordinates, found once for all settings."""
    return moments.once((name, "in old axes"), lambda: moments.old_eigen[1].T @ compute())
