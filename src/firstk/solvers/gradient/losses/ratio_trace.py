"""Ratio trace of every prefix: of any pencil for a linear encoder, of class scatters for the codes of a network."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from firstk.contracts import FitRequest
from firstk.encoder.fitted import Head
from firstk.exceptions import IllegalCombinationError
from firstk.losses.functional._inputs import as_tensor
from firstk.losses.functional.fisher import fisher, fisher_from_codes
from firstk.moments.moments import Moments
from firstk.solvers.closed_form import whitening
from firstk.solvers.gradient.canonical import Code, flag_form
from firstk.solvers.gradient.losses.base import (
    BaseTrainingLoss,
    PrefixSum,
    ToTensor,
    check_linear,
    label_tensor,
    labels_of,
)

if TYPE_CHECKING:
    from firstk.solvers.gradient.networks import Model


class RatioTrace(BaseTrainingLoss):
    """``-tr((B_k N B_k^T)^-1 B_k M B_k^T)``; settings: M and N (p, p), code_eps, and both whitened.

    It depends on the nested spans only, so it is invariant to lower-triangular changes of the encoder: `regauge`
    applies the one that makes rows orthonormal in N.
    """

    row_sums: ClassVar[bool] = False
    from_moments: ClassVar[bool] = True
    solves_pencil: ClassVar[bool] = True

    @classmethod
    def from_request(cls, request: FitRequest, R: np.ndarray | None, tensor: ToTensor) -> Self:
        """Build the loss from the pencil, in data coordinates and whitened."""
        settings: dict[str, Any] = {"code_eps": 0.0, **request.objective.loss_settings}
        if settings.get("reconstruction"):
            check_linear(request)
        M = request.pencil.formed()
        if request.linear:
            settings |= {"N": tensor(cls.metric(request)), "M": tensor(M)}
        if R is not None:
            settings |= {"white_N": tensor(np.eye(R.shape[1])), "white_M": tensor(R.T @ M @ R)}
        return cls(settings)

    @classmethod
    def targets(cls, request: FitRequest, tensor: ToTensor) -> dict[str, Tensor]:
        """Return the labels of the rows; without labels the loss is defined by moments only."""
        if request.objective.supervision != "labels":
            raise IllegalCombinationError(
                f"objective '{request.objective.name}' with a nonlinear network",
                "it is defined by a pencil of the vectors themselves",
                "network='linear', or fit_pairs with objective='similarity'",
            )
        return {"label": label_tensor(request, tensor(0.0).device)}

    def loss(self, model: Model, code: Tensor, batch: dict[str, Tensor], prefix_sum: PrefixSum) -> Tensor:
        """Return the loss of the batch's codes and labels, for networks, which cannot be trained from moments.

        The denominator is the total scatter, which bounds the loss; with `code_eps` it is the within-class scatter plus
        eps, as in Talukder et al. 2026.
        """
        eps, gathered = self.settings["code_eps"], prefix_sum.processes.all_gather_rows
        return fisher_from_codes(
            gathered(code),
            gathered(batch["label"]),
            omega=prefix_sum.weights,
            code_eps=eps,
            against="within" if eps else "total",
        )

    def _scatters(self, model: Model) -> tuple[Tensor, Tensor]:
        prefix = "" if model.encoder.R is None else "white_"
        return self.settings[prefix + "N"], self.settings[prefix + "M"]

    def moment_loss(self, model: Model, prefix_sum: PrefixSum) -> Tensor:
        """Return the loss from the pencil alone."""
        eps = self.settings["code_eps"]
        return fisher(model.encoder.C, *self._scatters(model), omega=prefix_sum.weights, code_eps=eps)

    @torch.no_grad()
    def precondition(self, model: Model, prefix_sum: PrefixSum) -> None:
        """Divide row k by 2 cum_k gamma_k, with gamma_k its quotient, so that steps scale with relative gaps."""
        C, (N, M) = model.encoder.C, self._scatters(model)
        size = ((C @ N) * C).sum(1)
        gamma = ((C @ M) * C).sum(1) / size
        cum = as_tensor(prefix_sum.weights.cum, C)
        floor = 1e-12 * (cum * gamma.abs()).max()
        C.grad.div_((2 * (cum * gamma.abs()).clamp_min(floor) / size)[:, None])

    @torch.no_grad()
    def regauge(self, model: Model) -> None:
        """Replace B by L^-1 B with B N B^T = L L^T, which leaves the nested spans and so the loss unchanged."""
        if self.settings["code_eps"]:
            return
        C, (N, _) = model.encoder.C, self._scatters(model)
        L, info = torch.linalg.cholesky_ex(C @ N @ C.t())
        if not int(info):
            C.copy_(torch.linalg.solve_triangular(L, C, upper=False))

    def learned(self, request: FitRequest, model: Model) -> Code:
        """Return the code of a trained linear encoder, with both matrices of the pencil."""
        return replace(super().learned(request, model), M=request.pencil.formed())

    def canonical(self, request: FitRequest, code: Code, second_moment: np.ndarray) -> Code:
        """Return rows orthonormal in N, in order, and scaled by the pencil's power.

        The loss depends on the nested spans only, for any ordering.
        """
        ordering, pencil = request.ordering, request.pencil
        code = flag_form(code, ordering.residual, ordering.blocks(len(code.components)))
        B = code.components
        return code.scaled(whitening(np.einsum("kp,kp->k", B @ pencil.formed(), B), pencil.power))

    def network_form(
        self, request: FitRequest, codes: np.ndarray, batch: dict[str, Tensor]
    ) -> tuple[Code, Head, np.ndarray]:
        """Return the flag form of the codes in their within-class scatter, Fisher's classifier and its quotients."""
        moments, d = Moments().update(codes, labels_of(batch)), codes.shape[1]
        N = moments.Sw + self.settings["code_eps"] * np.eye(d)
        code = flag_form(Code(np.eye(d), None, N, moments.Sb), "axes", ())
        means = moments.class_means @ code.components.T
        classes = request.statistics.moments.classes  # type: ignore[union-attr]
        head = Head(means, np.log(moments.class_shares), means**2 / 2, classes)
        return code, head, np.diag(code.components @ moments.Sb @ code.components.T).copy()
