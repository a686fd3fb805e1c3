"""Monotone l1: penalties on the code that increase with k, so that late coordinates are used last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firstk._base.checks import bad_parameter, check_flag, is_real
from firstk.contracts import Residual, View
from firstk.orderings._hooks import Hooks
from firstk.orderings._retractions import unit_decoder_columns


@dataclass(frozen=True)
class MonotoneL1(Hooks):
    """Penalty ``alpha / n sum_k k sum_i |z_ik|`` (Talukder et al. 2026 (18)); its axes may differ from the pencil's.

    Decoder or head columns are kept at unit norm; otherwise shrinking the encoder and growing them would reduce the
    penalty to zero.

    Parameters
    ----------
    alpha : float
        Strength of the penalty; 0.01 in Talukder et al. 2026 table 1.
    unit_columns : bool
        Keep columns at unit norm. False reproduces Talukder et al. 2026 as published.
    """

    alpha: float = 0.01
    unit_columns: bool = True

    name: ClassVar[str] = "monotone_l1"
    residual: ClassVar[Residual] = "signs"
    acts_on_codes: ClassVar[bool] = True
    penalizes_scale: ClassVar[bool] = True

    def check(self, d: int) -> None:
        """Raise an error for a strength that is not positive."""
        if not is_real(self.alpha) or self.alpha <= 0:
            raise bad_parameter("alpha", "MonotoneL1", "a positive number", self.alpha)
        check_flag(self.unit_columns, "unit_columns", "MonotoneL1")

    def penalty(self, view: View) -> Any:
        """Return ``alpha sum_k k mean_i |z_ik|``."""
        size = view.mean(view.code.abs())
        return self.alpha * (size * size.new_ones(len(size)).cumsum(0)).sum()

    def retract(self, view: View) -> None:
        """Normalize the columns of decoder or head."""
        if self.unit_columns and view.model.decoder is not None:
            unit_decoder_columns(view)
