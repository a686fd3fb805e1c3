"""Reduced-rank regression: ridge through a narrow channel, of which every narrower one is a prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk._base.checks import bad_parameter, check_fraction, is_int
from firstk._base.linalg import ordered_eigh, symmetrised
from firstk.moments import CrossMoments
from firstk.upgrade.methods._linear import TranslationMethod, to_scale
from firstk.upgrade.methods.ridge import ridge_map


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
