"""The ratio trace of every prefix of a linear encoder, for any pencil; or Fisher's, for the codes of any network."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from firstk.losses.functional._inputs import as_tensor
from firstk.losses.functional.fisher import fisher, fisher_from_codes
from firstk.solvers.gradient.losses.base import PrefixSum, TrainingLoss


class RatioTrace(TrainingLoss):
    """``-tr((B_k N B_k^T)^-1 B_k M B_k^T)``; settings: M and N (p, p), code_eps, and both whitened.

    It depends on the nested spans alone, so any lower-triangular change of the encoder is free: `regauge` takes the
    one that makes rows orthonormal in N.
    """

    row_sums: ClassVar[bool] = False
    from_moments: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True

    def loss(self, model: Any, code: Tensor, batch: dict[str, Tensor], measure: PrefixSum) -> Tensor:
        """Return the loss of the batch's codes and labels, for networks that moments do not serve.

        Against the total scatter, so that it has a bound; with eps on the code, which is Talukder et al. 2026's bound,
        as Talukder et al. 2026 has it.
        """
        eps, joined = self.settings["code_eps"], measure.ranks.all_gather_rows
        return fisher_from_codes(
            joined(code),
            joined(batch["label"]),
            omega=measure.weights,
            code_eps=eps,
            against="within" if eps else "total",
        )

    def _scatters(self, model: Any) -> tuple[Tensor, Tensor]:
        prefix = "" if model.encoder.R is None else "white_"
        return self.settings[prefix + "N"], self.settings[prefix + "M"]

    def moment_loss(self, model: Any, measure: PrefixSum) -> Tensor:
        """Return the loss from the pencil alone."""
        eps = self.settings["code_eps"]
        return fisher(model.encoder.C, *self._scatters(model), omega=measure.weights, code_eps=eps)

    @torch.no_grad()
    def precondition(self, model: Any, measure: PrefixSum) -> None:
        """Divide row k by 2 cum_k gamma_k, gamma_k its own quotient: steps then have the size of relative gaps."""
        C, (N, M) = model.encoder.C, self._scatters(model)
        size = ((C @ N) * C).sum(1)
        gamma = ((C @ M) * C).sum(1) / size
        cum = as_tensor(measure.weights.cum, C)
        floor = 1e-12 * (cum * gamma.abs()).max()
        C.grad.div_((2 * (cum * gamma.abs()).clamp_min(floor) / size)[:, None])

    @torch.no_grad()
    def regauge(self, model: Any) -> None:
        """B <- L^-1 B with B N B^T = L L^T: the flag, and so the loss, stays as it is."""
        if self.settings["code_eps"]:
            return
        C, (N, _) = model.encoder.C, self._scatters(model)
        L, info = torch.linalg.cholesky_ex(C @ N @ C.t())
        if not int(info):
            C.copy_(torch.linalg.solve_triangular(L, C, upper=False))
