"""Uniform l2: equal penalties on all weights, which determine the subspace up to a rotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firstk._base.checks import bad_parameter, is_real
from firstk.contracts import Residual, View
from firstk.orderings._hooks import Hooks, weighted_squares


@dataclass(frozen=True)
class UniformL2(Hooks):
    """Penalty ``lam (|B|^2 + |A|^2)`` (Bao et al. 2020 (2)). Residual symmetry: orthogonal d x d.

    Parameters
    ----------
    lam : float
        lambda, in units of the data's variance; directions with sigma^2 <= lambda vanish.
    """

    lam: float = 0.1

    name: ClassVar[str] = "uniform_l2"
    residual: ClassVar[Residual] = "none"
    acts_on_weights: ClassVar[bool] = True
    penalizes_scale: ClassVar[bool] = True
    needs_linear_encoder: ClassVar[bool] = True

    def check(self, d: int) -> None:
        """Raise an error for a penalty that is not positive."""
        if not is_real(self.lam) or self.lam <= 0:
            raise bad_parameter("lam", "UniformL2", "a positive number", self.lam)

    def penalty(self, view: View) -> Any:
        """Return ``lam (|B|^2 + |A|^2)``."""
        return self.lam * weighted_squares(view, 1.0)
