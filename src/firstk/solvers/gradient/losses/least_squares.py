"""Squared error of every prefix under one shared decoder or head, from rows or from three moments (docs/theory.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from firstk.contracts import FitRequest
from firstk.exceptions import IllegalCombinationError
from firstk.losses.functional._inputs import as_tensor
from firstk.losses.functional.reconstruction import reconstruction, reconstruction_per_prefix
from firstk.solvers.gradient.canonical import Code, shared_form
from firstk.solvers.gradient.losses.base import (
    _SMALL,
    BaseTrainingLoss,
    Initial,
    PrefixSum,
    ToTensor,
    orthonormal_columns,
    prefix_gains,
)

if TYPE_CHECKING:
    from firstk.solvers.gradient.networks import Model
    from firstk.solvers.gradient.task import TrainingTask

# Relative ridge of the curvature, which is zero for coordinates that are in no prefix with weight.
_RIDGE = 1e-10


class LeastSquares(BaseTrainingLoss):
    """``E|t - A_k B_k x|^2``; settings: total, cross (p, q) and gram (p, p) of :class:`firstk.contracts.Quadratic`."""

    from_moments: ClassVar[bool] = True
    solves_pencil: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 1e-2
    steps: ClassVar[int] = 3000

    @classmethod
    def from_request(cls, request: FitRequest, R: np.ndarray | None, tensor: ToTensor) -> Self:
        """Build the loss from the moments of the squared error and the whitened cross moment."""
        q = request.quadratic
        cross = tensor(q.cross)
        # If both are the same matrix, store it once: a step then takes one product instead of two.
        settings: dict[str, Any] = {
            "total": q.total,
            "cross": cross,
            "gram": cross if q.gram is q.cross else tensor(q.gram),
        }
        if R is not None:
            settings["white_cross"] = tensor(R.T @ q.cross)
        return cls(settings)

    @classmethod
    def metric(cls, request: FitRequest) -> np.ndarray:
        """Return E[x x^T] of the encoder's input."""
        return request.quadratic.gram

    @classmethod
    def second_moment(cls, request: FitRequest) -> np.ndarray:
        """Return E[x x^T], of noisy vectors where the objective adds noise."""
        return request.quadratic.gram

    @classmethod
    def initial(cls, request: FitRequest, R: np.ndarray | None, axes: np.ndarray) -> Initial:
        """Return the axes with their least-squares decoder, or a tied one where the ordering requires it."""
        encoder = cls.in_training_coordinates(request, R, axes)
        if request.ordering.starts_tied:
            return Initial(encoder, axes.T)
        # The least-squares decoder of these axes, (q, d).
        q = request.quadratic
        G = axes @ q.gram @ axes.T
        ridge = 1e-12 * np.trace(G) / len(G)
        return Initial(encoder, np.linalg.solve(G + ridge * np.eye(len(G)), axes @ q.cross).T)

    @classmethod
    def random_initial(
        cls, request: FitRequest, R: np.ndarray | None, rng: np.random.Generator, small: bool
    ) -> Initial:
        """Return encoder and decoder with small entries, or orthonormal and tied if the targets are the inputs."""
        (d, p), q = request.start.components.shape, request.quadratic.cross.shape[1]
        if small:
            B = rng.normal(0, _SMALL, (d, p))
            shared = B.T if q == p and request.ordering.starts_tied else rng.normal(0, _SMALL, (q, d))
            return Initial(cls.in_training_coordinates(request, R, B), shared)
        if q != p:
            return super().random_initial(request, R, rng, small)
        A = orthonormal_columns(rng, p, d)
        return Initial(cls.in_training_coordinates(request, R, A.T), A)

    @classmethod
    def network_initial(cls, request: FitRequest, d: int) -> Initial:
        """Return a random decoder at the scale of the targets."""
        q = request.quadratic.cross.shape[1]
        size = np.sqrt(request.quadratic.total / q) / np.sqrt(d)
        return Initial(None, np.random.default_rng(request.seed).uniform(-1, 1, (q, d)) * size, np.zeros(q))

    @classmethod
    def targets(cls, request: FitRequest, tensor: ToTensor) -> dict[str, Tensor]:
        """Return the centered targets of the rows."""
        assert request.rows is not None
        try:
            return {"target": tensor(request.objective.targets(request.rows, request.statistics))}
        except NotImplementedError:
            raise IllegalCombinationError(
                f"objective '{request.objective.name}' on rows (a nonlinear network, or batches)",
                "it defines no targets of single rows, only the moments of its squared error",
                "network='linear' with batch_size='auto'",
            ) from None

    def loss(self, model: Model, code: Tensor, batch: dict[str, Tensor], prefix_sum: PrefixSum) -> Tensor:
        """Return sum_k omega_k mean_i |t_i - c - sum_{j<=k} z_ij a_j|^2."""
        return reconstruction(batch["target"], code, _decoder(model), model.bias, **prefix_sum.options())

    def moment_loss(self, model: Model, prefix_sum: PrefixSum) -> Tensor:
        """Return total - 2 sum_i cum_i (B cross A)_ii + sum_ij cum_max(i,j) (A^T A)_ij (B gram B^T)_ij."""
        A = _decoder(model)
        cum, both = _tables(prefix_sum, A)
        BX, GZ = self._products(model)
        linear = (BX * A.t()).sum(1) @ cum
        return self.settings["total"] - 2 * linear + (both * (A.t() @ A) * GZ).sum()

    def _products(self, model: Model) -> tuple[Tensor, Tensor]:
        """Return B cross (d, q) and B gram B^T (d, d), in the coordinates of a whitener where there is one."""
        C, R = model.encoder.C, model.encoder.R
        if R is not None:
            return C @ self.settings["white_cross"], C @ C.t()
        cross, gram = self.settings["cross"], self.settings["gram"]
        BX = C @ cross
        return BX, (BX if gram is cross else C @ gram) @ C.t()

    @torch.no_grad()
    def precondition(self, model: Model, prefix_sum: PrefixSum) -> None:
        """Divide by the Hessian of each block: 2 cum_max (A^T A) for C, 2 cum_max (C gram C^T) for A.

        In whitened coordinates a full step is the exact minimizer over the encoder for a fixed decoder, and vice versa,
        so that the rate of convergence depends on relative gaps of the spectrum, not on its range.
        """
        A = _decoder(model)
        _, both = _tables(prefix_sum, A)
        GA, GZ = A.t() @ A, self._products(model)[1]
        model.encoder.C.grad = _divided(both * GA, model.encoder.C.grad)
        assert A.grad is not None
        A.grad = _divided(both * GZ, A.grad.t()).t().contiguous()

    def representative(self, request: FitRequest, code: Code, second_moment: np.ndarray) -> Code:
        """Fix the reciprocal scales, and invertible blocks, of encoder and decoder."""
        blocks = request.ordering.blocks(len(code.components))
        return shared_form(code, request.ordering.residual, blocks, request.objective.conventions.scaling)

    def network_spectrum(self, task: TrainingTask, codes: np.ndarray, batch: dict[str, Tensor]) -> np.ndarray:
        """Return the decrease of the squared error by each coordinate."""
        target, bias = batch["target"], task.model.bias
        assert bias is not None
        losses = reconstruction_per_prefix(target, task.encode(batch), _decoder(task.model), bias)
        return prefix_gains(losses, (target - bias).square().sum(1).mean())

    def optimum(self, request: FitRequest) -> tuple[Code, float]:
        """Return the axes of the pencil with the least-squares decoder, and E|t|^2."""
        code, q = super().optimum(request)[0], request.quadratic
        B = code.components
        shared = np.linalg.lstsq(B @ q.gram @ B.T, B @ q.cross, rcond=None)[0].T
        return replace(code, shared=shared), q.total


def _decoder(model: Model) -> Tensor:
    assert model.decoder is not None
    return model.decoder


def _divided(curvature: Tensor, gradient: Tensor) -> Tensor:
    size = curvature.diagonal().mean()
    ridge = _RIDGE * size.clamp_min(torch.finfo(size.dtype).tiny)
    return torch.linalg.solve(2 * (curvature + ridge * torch.eye(len(curvature)).to(curvature)), gradient)


def _tables(prefix_sum: PrefixSum, like: Tensor) -> tuple[Tensor, Tensor]:
    cum = as_tensor(prefix_sum.weights.cum, like)
    return cum, torch.minimum(cum[:, None], cum)
