"""Reconstruction: the code from which the vectors themselves can best be rebuilt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstk.contracts import NormativeLine, Pencil, Statistics, Takes
from firstk.objectives._common import ClosedFormObjective, rows_of


@dataclass(frozen=True)
class Reconstruction(ClosedFormObjective):
    """Least squared error of ``x - mean`` rebuilt from each prefix: pencil (St, I), principal components.

    The shared decoder is the transpose of the encoder, and every prefix is optimal at once (000 theorem 2.1 and
    appendix B; 001 section 5).
    """

    name: ClassVar[str] = "reconstruction"
    takes: ClassVar[Takes] = "rows"
    line: ClassVar[NormativeLine] = NormativeLine("orthonormal", "mean", False, "uniform", "explained_variance")

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return (St, I)."""
        return Pencil(M=rows_of(statistics).St)

    def decoder(self, statistics: Statistics, components: np.ndarray) -> np.ndarray:
        """Return the transpose of the encoder."""
        return components.T
