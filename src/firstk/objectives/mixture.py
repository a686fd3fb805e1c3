"""Mixture: targets and input vectors, both predicted from the same code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstk._base.checks import check_non_negative
from firstk._base.rows import as_dense
from firstk.contracts import Columns, Conventions, Pencil, Quadratic, Supervision
from firstk.encoder.fitted import Head
from firstk.moments.statistics import Statistics
from firstk.objectives._common import (
    LeastSquaresObjective,
    check_two_classes,
    least_squares_head,
    one_hot,
    one_hot_cross,
    rows_of,
)


@dataclass(frozen=True)
class Mixture(LeastSquaresObjective):
    """Minimum squared error of the targets plus `lam` times that of the input vectors, from each prefix.

    Balestriero and LeCun 2024 (3), theorem 1.

    Pencil (Sxy Syx + lam St St, St). The limit lam to 0 is least squares (reduced-rank regression below rank Sxy), lam
    to infinity principal components. Labels (strings, booleans, integers) are one-hot encoded; numeric targets are used
    unchanged. `lam` has the units of y^2 / x^2: if X is multiplied by c, lam / c^2 gives the same solution.

    Parameters
    ----------
    lam : float, default 1.0
        Weight lambda of the reconstruction.
    """

    lam: float = 1.0

    name: ClassVar[str] = "mixture"
    supervision: ClassVar[Supervision] = "labels or targets"
    conventions: ClassVar[Conventions] = Conventions("metric", "mean", False, "uniform", "mixture")

    def check(self) -> None:
        """Raise an error for a negative weight."""
        check_non_negative(self.lam, "lam", "Mixture")

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return (Sxy Syx + lam St St, St)."""
        moments = rows_of(statistics)
        St = moments.St
        if moments.labelled:
            check_two_classes(moments, "Mixture with labels")
        cross = one_hot_cross(moments) if moments.labelled else moments.Sxy
        if self.lam == 0:
            return Pencil(factor=cross, N=St)
        return Pencil(M=cross @ cross.T + self.lam * (St @ St), N=St)

    def decoder(self, statistics: Statistics, components: np.ndarray) -> np.ndarray:
        """Return Z* of Balestriero and LeCun 2024 (6), transposed: St B^T, as the code is orthonormal in St."""
        return rows_of(statistics).St @ components.T

    def head(self, statistics: Statistics, components: np.ndarray) -> Head:
        """Return W* of Balestriero and LeCun 2024 (5): the least-squares head."""
        return least_squares_head(rows_of(statistics), components)

    def quadratic(self, statistics: Statistics) -> Quadratic:
        """Return the moments of the joint target (y, sqrt(lam) x): both errors are one squared error."""
        moments = rows_of(statistics)
        St, root = moments.St, np.sqrt(self.lam)
        cross = one_hot_cross(moments) if moments.labelled else moments.Sxy
        shares = moments.class_shares if moments.labelled else None
        spread = float(np.trace(moments.Syy)) if shares is None else float(1 - np.sum(shares**2))
        return Quadratic(spread + self.lam * float(np.trace(St)), np.hstack([cross, root * St]), St)

    def targets(self, rows: Columns, statistics: Statistics) -> np.ndarray:
        """Return (y, sqrt(lam) x), centered; labels as one-hot rows."""
        moments = rows_of(statistics)
        if moments.classes is not None:
            Y = one_hot(rows["y"], moments.classes) - moments.class_shares
        else:
            Y = np.asarray(rows["y"], dtype=float).reshape(len(rows["y"]), -1) - moments.target_mean
        return np.hstack([Y, np.sqrt(self.lam) * (as_dense(rows["X"]) - moments.mean)])

    def readouts(self, statistics: Statistics, shared: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, Head]:
        """Split the rows into the head and, divided by sqrt(lam), the decoder."""
        moments = rows_of(statistics)
        q, classes = len(shared) - moments.p, moments.classes
        mean = moments.class_shares if classes is not None else moments.target_mean
        head = Head(shared[:q], mean + bias[:q], np.zeros_like(shared[:q]), classes)
        return shared[q:] / (np.sqrt(self.lam) or 1.0), head
