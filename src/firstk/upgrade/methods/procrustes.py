"""Orthogonal Procrustes: turn the old vectors into the new ones without stretching anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstk.moments import CrossMoments
from firstk.upgrade.methods._linear import TranslationMethod, rotation


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
