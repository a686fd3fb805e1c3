"""Reconstruction: the code that best reconstructs the input vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstk._base.rows import as_dense
from firstk.contracts import Columns, Conventions, Pencil, Quadratic, Supervision
from firstk.moments.statistics import Statistics
from firstk.objectives._common import LeastSquaresObjective, rows_of


@dataclass(frozen=True)
class Reconstruction(LeastSquaresObjective):
    """Minimum squared error of ``x - mean`` reconstructed from each prefix: pencil (St, I), principal components.

    The shared decoder is the transpose of the encoder, and every prefix is optimal at once (Talukder et al. 2026
    theorem 2.1 and appendix B; Bao et al. 2020 section 5).
    """

    name: ClassVar[str] = "reconstruction"
    supervision: ClassVar[Supervision] = "rows"
    conventions: ClassVar[Conventions] = Conventions("orthonormal", "mean", False, "uniform", "explained_variance")
    principal: ClassVar[bool] = True

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return (St, I)."""
        return Pencil(M=rows_of(statistics).St)

    def decoder(self, statistics: Statistics, components: np.ndarray) -> np.ndarray:
        """Return the transpose of the encoder."""
        return components.T

    def quadratic(self, statistics: Statistics) -> Quadratic:
        """Return (tr St, St, St)."""
        St = rows_of(statistics).St
        return Quadratic(float(np.trace(St)), St, St)

    def targets(self, rows: Columns, statistics: Statistics) -> np.ndarray:
        """Return the centered rows."""
        return as_dense(rows["X"]) - rows_of(statistics).mean
