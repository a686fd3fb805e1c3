"""Squared errors of every prefix under one shared decoder or head, from rows or from three moments (THEORY 4.1)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from firstk.losses.functional._inputs import as_tensor
from firstk.losses.functional.reconstruction import reconstruction
from firstk.solvers.gradient.losses.base import PrefixSum, TrainingLoss

# Relative ridge of the curvature: coordinates that no prefix weighs have none.
_RIDGE = 1e-10


class LeastSquares(TrainingLoss):
    """``E|t - A_k B_k x|^2``; settings: total, cross (p, q) and gram (p, p) of :class:`firstk.contracts.Quadratic`."""

    from_moments: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 1e-2
    steps: ClassVar[int] = 3000

    def loss(self, model: Any, code: Tensor, batch: dict[str, Tensor], measure: PrefixSum) -> Tensor:
        """Return sum_k omega_k mean_i |t_i - c - sum_{j<=k} z_ij a_j|^2."""
        return reconstruction(batch["target"], code, model.decoder, model.bias, **measure.options())

    def moment_loss(self, model: Any, measure: PrefixSum) -> Tensor:
        """Return total - 2 sum_i cum_i (B cross A)_ii + sum_ij cum_max(i,j) (A^T A)_ij (B gram B^T)_ij."""
        cum, both = _tables(measure, model.decoder)
        BX, GZ = self._products(model)
        linear = (BX * model.decoder.t()).sum(1) @ cum
        return self.settings["total"] - 2 * linear + (both * (model.decoder.t() @ model.decoder) * GZ).sum()

    def _products(self, model: Any) -> tuple[Tensor, Tensor]:
        """Return B cross (d, q) and B gram B^T (d, d), in the coordinates of a whitener where there is one."""
        C, R = model.encoder.C, model.encoder.R
        if R is not None:
            return C @ self.settings["white_cross"], C @ C.t()
        cross, gram = self.settings["cross"], self.settings["gram"]
        BX = C @ cross
        return BX, (BX if gram is cross else C @ gram) @ C.t()

    @torch.no_grad()
    def precondition(self, model: Any, measure: PrefixSum) -> None:
        """Divide by the Hessian of each block: 2 cum_max (A^T A) for C, 2 cum_max (C gram C^T) for A.

        In whitened coordinates this makes a step of the encoder its exact minimiser for the decoder as it is, and the
        reverse, so that the rate depends on relative gaps of the spectrum, not on its range.
        """
        _, both = _tables(measure, model.decoder)
        GA, GZ = model.decoder.t() @ model.decoder, self._products(model)[1]
        model.encoder.C.grad = _divided(both * GA, model.encoder.C.grad)
        model.decoder.grad = _divided(both * GZ, model.decoder.grad.t()).t().contiguous()


def _divided(curvature: Tensor, gradient: Tensor) -> Tensor:
    size = curvature.diagonal().mean()
    ridge = _RIDGE * size.clamp_min(torch.finfo(size.dtype).tiny)
    return torch.linalg.solve(2 * (curvature + ridge * torch.eye(len(curvature)).to(curvature)), gradient)


def _tables(measure: PrefixSum, like: Tensor) -> tuple[Tensor, Tensor]:
    cum = as_tensor(measure.weights.cum, like)
    return cum, torch.minimum(cum[:, None], cum)
