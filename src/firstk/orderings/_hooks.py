"""Defaults of an ordering: five hooks that change nothing, and needs that are none.

Every ordering derives from `Hooks`, so that it writes down only what is its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from firstk._base.prefix_weights import OmegaLike, PrefixWeights, TupleSettings, resolve_omega
from firstk.contracts import Residual, View

if TYPE_CHECKING:
    from torch import Tensor


class Hooks(TupleSettings):
    """An ordering that does nothing: the loss of the whole code alone. See :class:`firstk.contracts.Ordering`."""

    residual: ClassVar[Residual] = "none"
    has_closed_form: ClassVar[bool] = False
    needs_linear_encoder: ClassVar[bool] = False
    needs_decoder: ClassVar[bool] = False
    needs_plain_gradient: ClassVar[bool] = False
    starts_tied: ClassVar[bool] = False
    penalizes_scale: ClassVar[bool] = False
    acts_on_weights: ClassVar[bool] = False
    acts_on_codes: ClassVar[bool] = False

    def check(self, d: int) -> None:
        """Accept any width."""

    @property
    def estimator(self) -> str:
        """How the weighted sum over prefixes is computed."""
        return "exact"

    @property
    def omega(self) -> OmegaLike | None:
        """Weights in the mean of a curve when "auto" chooses: the objective's."""
        return None

    def prefix_weights(self, d: int, default: OmegaLike | None) -> PrefixWeights:
        """Weigh the whole code alone."""
        return resolve_omega({d: 1.0}, d)

    def perturb(self, view: View) -> Any:
        """Leave the code as it is."""
        return view.code

    def penalty(self, view: View) -> Tensor | float:
        """Add nothing."""
        return 0.0

    def correct(self, view: View) -> None:
        """Leave the gradients as they are."""

    def retract(self, view: View) -> None:
        """Leave the parameters as they are."""

    def extras(self, d: int) -> dict[str, np.ndarray]:
        """Train nothing of its own."""
        return {}

    def blocks(self, d: int) -> tuple[int, ...]:
        """Fix the order at every length: what training leaves open, the canonical form sorts."""
        return tuple(range(1, d + 1))
