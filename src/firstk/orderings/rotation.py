"""Rotation: gradients augmented by a rotation of the code that makes its second moment diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firstk._base.checks import bad_parameter, check_choice, check_flag, is_real
from firstk.contracts import Residual, View
from firstk.orderings._hooks import Hooks


@dataclass(frozen=True)
class Rotation(Hooks):
    """The rotation-augmented gradient, or the generalized Hebbian rule (Bao et al. 2020 section 6.1).

    Bao et al. 2020 algorithm 1.

    With Y the code and S = Y Y^T / n: A = (upper(S) - lower(S)) / 2, W1 += a A W1, W2 -= a W2 A, in addition to the
    gradient step. It changes the reconstruction loss at second order only (Bao et al. 2020 section 6.2). The update is
    not the gradient of a loss, so optimizers that rescale coordinates (Adam) or estimate curvature (L-BFGS) do not
    apply.

    Parameters
    ----------
    rule : {"augmented", "hebbian"}
        The Hebbian rule replaces the gradient by ``-(B St - lower(S) B)`` and ties the decoder to the encoder.
    factor : float
        Factor of the rotation relative to the gradient. Algorithm 1 of Bao et al. 2020 uses the loss with 1/n: factor
        1. Their section 6.1 and appendix G use the loss with 1/2n, which is factor 2 for the loss with 1/n used here.
        The rate of theorem 5 needs factor 2 too, because its proof drops the half in A; with factor 1 the rate is half.
    tied : bool
        Replace encoder and decoder by their mean after every update. Gradient flow preserves W1 W1^T = W2^T W2, but
        finite steps do not, and training would then reach the optimal loss with the wrong axes.
    """

    rule: str = "augmented"
    factor: float = 1.0
    tied: bool = True

    name: ClassVar[str] = "rotation"
    residual: ClassVar[Residual] = "signs"
    acts_on_weights: ClassVar[bool] = True
    needs_linear_encoder: ClassVar[bool] = True
    needs_decoder: ClassVar[bool] = True
    needs_plain_gradient: ClassVar[bool] = True
    starts_tied: ClassVar[bool] = True

    def check(self, d: int) -> None:
        """Raise an error for an unknown rule or a factor that is not positive."""
        check_choice(self.rule, ("augmented", "hebbian"), "rule", "Rotation")
        if not is_real(self.factor) or self.factor <= 0:
            raise bad_parameter("factor", "Rotation", "a positive number", self.factor)
        check_flag(self.tied, "tied", "Rotation")

    def correct(self, view: View) -> None:
        """Add the rotation to the gradients, or replace them by the Hebbian rule."""
        import torch

        with torch.no_grad():
            B, A = view.model.encoder.C, view.model.decoder
            if self.rule == "hebbian":
                XY = B @ view.gram
                B.grad = -(XY - (XY @ B.t()).tril() @ B)
                A.grad = B.grad.t().contiguous()
                return
            S = view.total(view.second_moment())
            turn = self.factor * (S.triu() - S.tril()) / 2
            B.grad -= turn @ B
            A.grad += A @ turn

    def retract(self, view: View) -> None:
        """Tie the decoder to the encoder; the Hebbian rule has only one matrix."""
        import torch

        B, A = view.model.encoder.C, view.model.decoder
        if self.tied or self.rule == "hebbian":
            with torch.no_grad():
                mean = (B + A.t()) / 2
                B.copy_(mean)
                A.copy_(mean.t())
