"""Full prefix: every prefix length counts, weighted by omega."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from firstk._base.checks import check_choice, check_flag
from firstk._base.prefix_weights import OmegaLike, PrefixWeights, resolve_omega
from firstk.contracts import Residual, View
from firstk.exceptions import IllegalCombinationError
from firstk.orderings._hooks import Hooks


@dataclass(frozen=True)
class FullPrefix(Hooks):
    """Sum of the objective over all prefixes (Talukder et al. 2026 (4)).

    If one code is optimal for all prefixes, as in every closed form, any positive omega gives the same solution; it is
    checked and recorded, and weights the curve by which "auto" settings are chosen.

    Parameters
    ----------
    omega : str, array-like, mapping or None
        "uniform", "harmonic", "reverse_harmonic", weights for k = 1..d, or {k: weight}. None: the objective's default.
    estimator : {"auto", "exact", "sampled"}
        How a gradient fit computes the sum: all prefixes in one pass, or one prefix drawn for each row. "auto" samples
        if the loss is a sum over rows and expensive to compute exactly, and is exact otherwise.
    orthonormal_decoder : bool
        Orthonormalize the decoder's columns by QR after every update (Talukder et al. 2026 C.1). Optional: the optimum
        is the same without it.
    """

    omega: str | Sequence[float] | Mapping[int, float] | None = None
    estimator: str = "auto"
    orthonormal_decoder: bool = False

    name: ClassVar[str] = "full_prefix"
    residual: ClassVar[Residual] = "axes"
    has_closed_form: ClassVar[bool] = True

    def check(self, d: int) -> None:
        """Raise an error for weights that do not fit a code of width d."""
        check_choice(self.estimator, ("auto", "exact", "sampled"), "estimator", "FullPrefix")
        check_flag(self.orthonormal_decoder, "orthonormal_decoder", "FullPrefix")
        if self.omega is not None:
            resolve_omega(self.omega, d, "FullPrefix")

    def prefix_weights(self, d: int, default: OmegaLike | None) -> PrefixWeights:
        """Return omega."""
        omega = default if self.omega is None else self.omega
        return resolve_omega("uniform" if omega is None else omega, d, "FullPrefix")

    def retract(self, view: View) -> None:
        """Replace A by Q of A = Q R, keeping the signs of its columns, if `orthonormal_decoder` is set."""
        if not self.orthonormal_decoder:
            return
        import torch

        A = view.model.decoder
        if A is None:
            raise IllegalCombinationError(
                "Constraining the decoder after each step",
                "this objective is trained without a decoder or head",
                "the ordering without that setting",
            )
        with torch.no_grad():
            Q, R = torch.linalg.qr(A)
            A.copy_(Q * torch.where(R.diagonal() < 0, -1.0, 1.0).to(Q.dtype))

    def blocks(self, d: int) -> tuple[int, ...]:
        """Return a block boundary at every prefix with positive weight."""
        return tuple(self.prefix_weights(d, "uniform").support.tolist())
