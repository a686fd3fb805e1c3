"""Base class of orderings: five hooks that change nothing, and no requirements.

Every ordering derives from `Hooks` and overrides only what it changes.
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

    @property
    def leaves_gradients(self) -> bool:
        """Whether gradients are those of the losses of the prefixes alone: none of three hooks is overridden."""
        return all(getattr(type(self), hook) is getattr(Hooks, hook) for hook in ("perturb", "penalty", "correct"))

    def check(self, d: int) -> None:
        """Accept any width."""

    @property
    def estimator(self) -> str:
        """How the weighted sum over prefixes is computed."""
        return "exact"

    @property
    def omega(self) -> OmegaLike | None:
        """Weights in the mean of a curve that "auto" maximizes; None uses those of the objective."""
        return None

    def prefix_weights(self, d: int, default: OmegaLike | None) -> PrefixWeights:
        """Weight the full code only."""
        return resolve_omega({d: 1.0}, d)

    def perturb(self, view: View) -> Any:
        """Return the code unchanged."""
        return view.code

    def penalty(self, view: View) -> Tensor | float:
        """Return a penalty of zero."""
        return 0.0

    def correct(self, view: View) -> None:
        """Leave the gradients unchanged."""

    def retract(self, view: View) -> None:
        """Leave the parameters unchanged."""

    def extras(self, d: int) -> dict[str, np.ndarray]:
        """Return no additional trainable parameters."""
        return {}

    def blocks(self, d: int) -> tuple[int, ...]:
        """Return a block boundary at every length: the canonical form sorts axes that training leaves unordered."""
        return tuple(range(1, d + 1))


def weighted_squares(view: View, lam: Any) -> Any:
    """Return ``sum_k lam_k (|b_k|^2 + |a_k|^2)``; without a decoder, for the encoder only.

    Talukder et al. 2026 (15), Bao et al. 2020 (3).
    """
    total = (lam * view.model.encoder.weight.square().sum(1)).sum()
    A = view.model.decoder
    return total if A is None else total + (lam * A.square().sum(0)).sum()
