"""Monotone l1: penalties on the code that increase with k, so that late coordinates are used last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firstk._base.checks import bad_parameter, check_flag, is_real
from firstk.contracts import Residual, View
from firstk.orderings._hooks import Hooks


@dataclass(frozen=True)
class MonotoneL1(Hooks):
    """Penalty ``alpha / n sum_k k^power sum_i |z_ik|``, (18) of Talukder et al. 2026 for power 1.

    Its axes may differ from the pencil's.

    Decoder or head columns are kept at unit norm; otherwise shrinking the encoder and growing them would reduce the
    penalty to zero.

    Parameters
    ----------
    alpha : float
        Strength of the penalty; 0.01 in Talukder et al. 2026 table 1.
    power : float
        How fast the penalty grows with k: 1 in Talukder et al. 2026.
    unit_columns : bool
        Keep columns at unit norm. False reproduces Talukder et al. 2026 as published.
    """

    alpha: float = 0.01
    unit_columns: bool = True
    power: float = 1.0

    name: ClassVar[str] = "monotone_l1"
    residual: ClassVar[Residual] = "signs"
    acts_on_codes: ClassVar[bool] = True
    penalizes_scale: ClassVar[bool] = True

    def check(self, d: int) -> None:
        """Raise an error for a strength or a power that is not positive."""
        for name in ("alpha", "power"):
            if not is_real(value := getattr(self, name)) or value <= 0:
                raise bad_parameter(name, "MonotoneL1", "a positive number", value)
        check_flag(self.unit_columns, "unit_columns", "MonotoneL1")

    def penalty(self, view: View) -> Any:
        """Return ``alpha sum_k k^power mean_i |z_ik|``."""
        size = view.mean(view.code.abs())
        return self.alpha * (size * size.new_ones(len(size)).cumsum(0) ** self.power).sum()

    def retract(self, view: View) -> None:
        """Normalize the columns of decoder or head, and rescale the rows of a linear encoder reciprocally.

        So the scale is in the code: otherwise shrinking B and growing A would reduce any penalty on the code to zero
        (docs/theory.md, section 2).
        """
        A = view.model.decoder
        if not self.unit_columns or A is None:
            return
        import torch

        with torch.no_grad():
            norms = A.norm(dim=0).clamp_min(torch.finfo(A.dtype).tiny)
            A.div_(norms)
            if hasattr(view.model.encoder, "C"):
                view.model.encoder.C.mul_(norms[:, None])
