"""Regression: the code from which a linear map best predicts the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk._base.linalg import shrunk
from firstk.contracts import Columns, Conventions, Pencil, Quadratic, Supervision
from firstk.encoder.fitted import Head
from firstk.moments.statistics import Statistics
from firstk.objectives._common import (
    LeastSquaresObjective,
    ShrinkageObjective,
    least_squares_head,
    rows_of,
)


@dataclass(frozen=True)
class Regression(ShrinkageObjective, LeastSquaresObjective):
    """Minimum squared error of the targets predicted from each prefix: pencil (Sxy Syx, St), reduced-rank regression.

    The targets determine rank(Sxy) directions; a longer code continues in the St-complement, by variance per unit
    length.

    Parameters
    ----------
    shrinkage : float in [0, 1], None or "auto"
        Replaces St by (1 - a) St + a tr(St)/p I; "auto" chooses by cross-validated R^2.
    """

    shrinkage: float | Literal["auto"] | None = None

    name: ClassVar[str] = "regression"
    supervision: ClassVar[Supervision] = "targets"
    conventions: ClassVar[Conventions] = Conventions("metric", "mean", False, "harmonic", "r2")

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return (Sxy Syx, St), with the first given by its factor Sxy."""
        moments = rows_of(statistics)
        St = statistics.shared("St", lambda: moments.St)
        Sxy = statistics.shared("Sxy", lambda: moments.Sxy)
        return self.shrunk_pencil(Pencil(factor=Sxy), St, statistics.n_features)

    def head(self, statistics: Statistics, components: np.ndarray) -> Head:
        """Return the least-squares head (ridge, with shrinkage), the same for all prefixes as B is orthonormal in N."""
        return least_squares_head(rows_of(statistics), components)

    def quadratic(self, statistics: Statistics) -> Quadratic:
        """Return (tr Syy, Sxy, St)."""
        moments = rows_of(statistics)
        gram = shrunk(moments.St, self.shrinkage, statistics.n_features)  # type: ignore[arg-type]
        return Quadratic(float(np.trace(moments.Syy)), moments.Sxy, gram)

    def targets(self, rows: Columns, statistics: Statistics) -> np.ndarray:
        """Return the centered targets."""
        return np.asarray(rows["y"], dtype=float).reshape(len(rows["y"]), -1) - rows_of(statistics).target_mean

    def readouts(self, statistics: Statistics, shared: np.ndarray, bias: np.ndarray) -> tuple[None, Head]:
        """Return everything as the head."""
        return None, Head(shared, rows_of(statistics).target_mean + bias, np.zeros_like(shared))
