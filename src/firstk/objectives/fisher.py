"""Fisher: the code with the largest between-class scatter relative to the within-class scatter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from firstk._base.checks import check_fraction, check_non_negative
from firstk.contracts import Conventions, Pencil
from firstk.exceptions import IllegalCombinationError
from firstk.moments.statistics import Statistics
from firstk.objectives._common import DiscriminantObjective, check_spread_classes, number_or_zero, rows_of


@dataclass(frozen=True)
class Fisher(DiscriminantObjective):
    """Maximum ratio trace tr((B Sw B^T)^-1 B Sb B^T) of each prefix: pencil (Sb, Sw), linear discriminants.

    The objective determines C - 1 directions; a longer code continues in the Sw-complement, ordered by
    v^T Sw v / v^T v. Regularization is in input space, which keeps the objective invariant (Talukder et al. 2026
    (29) add it to the scatter of the code, where scaling the code removes it).

    Parameters
    ----------
    shrinkage : float in [0, 1], None or "auto"
        Replaces Sw by (1 - a) Sw + a tr(Sw)/p I. None is linear discriminant analysis as published: it only drops
        directions below the numerical rank. "auto" chooses by cross-validated 1-NN accuracy, and takes none where any
        would lose.
    code_eps : float
        eps of Talukder et al. 2026 (29), added to the scatter of the code. For reproducing that paper only: scaling
        the encoder up removes its effect, so the objective has no optimum and is trained by gradient.
    reconstruction : float in [0, 1]
        Share of the objective for the vectors themselves, for codes that are used beyond the classes of the labels:
        pencil ((1 - r) Sb + r tr(Sb)/tr(St) St, (1 - r) Sw + r tr(Sw)/p I). 0 is Fisher, 1 principal components. The
        objective then determines as many directions as the data have. Linear encoders only.
    """

    shrinkage: float | Literal["auto"] | None = "auto"
    code_eps: float = 0.0
    reconstruction: float = 0.0

    name: ClassVar[str] = "fisher"
    conventions: ClassVar[Conventions] = Conventions("metric", "mean", False, "uniform", "1nn_accuracy")

    def check(self) -> None:
        """Raise an error for a shrinkage or reconstruction outside [0, 1], or a negative eps."""
        super().check()
        check_non_negative(self.code_eps, "code_eps", "Fisher")
        check_fraction(self.reconstruction, "reconstruction", "Fisher")
        if self.code_eps and self.reconstruction:
            raise IllegalCombinationError(
                f"Fisher(code_eps={self.code_eps}) with reconstruction={self.reconstruction}",
                "code_eps is the objective of one paper, which has no other part",
                "one of the two",
            )

    @property
    def exact(self) -> bool:
        """Whether the axes of the pencil are the optimum: not with `code_eps`, which leaves no optimum."""
        return not self.code_eps

    @property
    def scale_free(self) -> bool:
        """Whether the objective is invariant to the scale of the code: not with `code_eps`."""
        return not self.code_eps

    @property
    def loss_settings(self) -> dict[str, float]:
        """Return code_eps, and the share of the vectors."""
        return {"code_eps": self.code_eps, "reconstruction": self.reconstruction}

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return (Sb, Sw), with Sb given by its factor of class means; both mixed where the vectors have a share."""
        moments = rows_of(statistics)
        classes = check_spread_classes(moments, "Fisher")
        Sw = statistics.shared("Sw", lambda: moments.Sw)
        between = statistics.shared("between", lambda: moments.between_factor[: moments.p])
        if not self.reconstruction:
            return self.shrunk_pencil(Pencil(factor=between, most=len(classes) - 1), Sw, statistics.n_features)
        r = float(self.reconstruction)

        def mixed() -> np.ndarray:
            Sb = between @ between.T
            St, size = Sb + Sw, float(np.trace(Sb))
            return (1 - r) * Sb + (r * size / float(np.trace(St))) * St

        M = statistics.shared(("between and total", r), mixed)
        # Shrinking by a and then by r is shrinking once.
        a = 1.0 - (1.0 - number_or_zero(self.shrinkage)) * (1.0 - r)
        return replace(self, shrinkage=a).shrunk_pencil(Pencil(M=M), Sw, statistics.n_features)
