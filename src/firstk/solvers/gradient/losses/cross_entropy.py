"""Cross-entropy of every prefix: short prefixes have separate heads, the others share one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

import numpy as np
import torch
from torch import Tensor

from firstk._base.prefix_weights import PrefixWeights, beyond
from firstk.contracts import FitRequest
from firstk.losses.functional._inputs import as_tensor, few_lengths, use_compiled
from firstk.losses.functional.cross_entropy import cross_entropy, cross_entropy_per_prefix
from firstk.losses.functional.fisher import fisher
from firstk.losses.functional.own_heads import cross_entropy_own_heads
from firstk.losses.functional.stacked_heads import stacked_heads, stacked_heads_per_prefix
from firstk.moments.moments import Moments
from firstk.solvers.gradient.canonical import Code, head_form
from firstk.solvers.gradient.losses.base import (
    GAIN_ROWS,
    BaseTrainingLoss,
    Initial,
    PrefixSum,
    ToTensor,
    check_linear,
    label_tensor,
    labels_of,
    prefix_gains,
)

if TYPE_CHECKING:
    from firstk.solvers.gradient.networks import Model
    from firstk.solvers.gradient.task import TrainingTask

# Rows times prefixes times classes; torch computes 2^27 of them in half a second.
_WORTH_LOADING = 1 << 27
# Norm of a code at which the softmax of its dot products with class means is neither flat nor saturated.
_CODE_NORM = 4.0


class Classifier(Protocol):
    """Methods that this loss needs from its objective; see :class:`firstk.objectives.Classification`."""

    def own_heads_of(self, most: int, classes: int) -> int:
        """Return the length up to which prefixes have separate heads, at most `most`."""

    def scale_of(self, linear: bool) -> str:
        """Return the scale of the axes: "noise", "head" or "learned"."""


class CrossEntropy(BaseTrainingLoss):
    """``CE(b + sum_{j<=k} z_j w_j)`` (Talukder et al. 2026 (32)); settings: label_smoothing, reconstruction.

    With a share r for the vectors, ``(1 - r) CE_k + r H (1 - v_k)``: H is the entropy of the labels, the loss of an
    empty code, and ``v_k = tr((B_k N B_k^T)^-1 B_k St B_k^T) / tr(N^-1 St)`` the share of St that the prefix explains
    in the metric N, from moments. Settings then hold N and St, in training coordinates, and H.

    The losses of separate heads, which are few and small, are always summed exactly; prefixes are sampled only among
    those that share a head.
    """

    sampled_by_default: ClassVar[bool] = True
    # Chosen on rows held out of Banking77's training part (docs/decisions/solvers.md, "Classification: fewer epochs").
    learning_rate: ClassVar[float] = 4e-2
    weight_decay: ClassVar[float] = 0.3
    batch_size: ClassVar[int] = 128
    epochs: ClassVar[int] = 25
    fewest_epochs: ClassVar[int] = 10
    enough_steps: ClassVar[int] = 1500

    @classmethod
    def from_request(cls, request: FitRequest, R: np.ndarray | None, tensor: ToTensor) -> Self:
        """Build the loss, with the scatters of the vectors where they have a share."""
        settings: dict[str, Any] = dict(request.objective.loss_settings)
        if settings.get("reconstruction"):
            check_linear(request)
            moments = request.statistics.moments
            assert isinstance(moments, Moments)
            N, St = (S if R is None else R.T @ S @ R for S in (cls.metric(request), moments.St))
            shares = moments.class_shares[moments.class_shares > 0]
            settings["N"] = tensor(N)
            settings["St"] = tensor(St / float(np.trace(np.linalg.pinv(N, hermitian=True) @ St)))
            settings["entropy"] = -float(shares @ np.log(shares))
        return cls(settings)

    @classmethod
    def initial(cls, request: FitRequest, R: np.ndarray | None, axes: np.ndarray) -> Initial:
        """Return the axes, scaled so that the softmax is neither flat nor saturated, with class means as the head."""
        moments = request.statistics.moments
        assert isinstance(moments, Moments)
        B = axes * (_CODE_NORM / np.sqrt(np.trace(axes @ moments.St @ axes.T)))
        means = (moments.class_means - moments.mean) @ B.T
        return Initial(cls.in_training_coordinates(request, R, B), means, np.zeros(len(means)))

    @classmethod
    def network_initial(cls, request: FitRequest, d: int) -> Initial:
        """Return a random head, scaled so that unit codes give distinct logits."""
        moments = request.statistics.moments
        assert isinstance(moments, Moments)
        q = len(moments.group_labels)
        size = _CODE_NORM / np.sqrt(d)
        return Initial(None, np.random.default_rng(request.seed).uniform(-1, 1, (q, d)) * size, np.zeros(q))

    @classmethod
    def targets(cls, request: FitRequest, tensor: ToTensor) -> dict[str, Tensor]:
        """Return the labels of the rows."""
        return {"label": label_tensor(request, tensor(0.0).device)}

    def own_heads(
        self, request: FitRequest, initial: Initial, weights: PrefixWeights
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return separate heads of short prefixes, initialized from the shared one; None if no short prefix has weight.

        The longest prefix with weight always uses the shared head, so that there is one.
        """
        shared, bias = initial.shared, initial.bias
        assert shared is not None
        assert bias is not None
        K = cast(Classifier, request.objective).own_heads_of(int(weights.support[-1]) - 1, len(shared))
        if not weights.omega[:K].any():
            return None
        weight = np.tril(np.broadcast_to(shared[:, None, :K], (len(shared), K, K))).swapaxes(0, 1)
        return weight, np.tile(bias, (K, 1))

    def loss(self, model: Model, code: Tensor, batch: dict[str, Tensor], prefix_sum: PrefixSum) -> Tensor:
        """Return the weighted loss of the batch."""
        labels, r = self._of_labels(model, code, batch["label"], prefix_sum), self.settings.get("reconstruction", 0.0)
        if not r:
            return labels
        explained = -fisher(model.encoder.C, self.settings["N"], self.settings["St"], omega=prefix_sum.weights)
        return (1 - r) * labels + r * self.settings["entropy"] * (1 - explained)

    def _of_labels(self, model: Model, code: Tensor, label: Tensor, prefix_sum: PrefixSum) -> Tensor:
        smoothing = {"label_smoothing": self.settings["label_smoothing"]}
        options, shared = prefix_sum.options() | smoothing, _head(model)
        if model.own_weight is None:
            return cross_entropy(code, shared, label, model.bias, **options)
        assert model.own_offset is not None
        assert model.bias is not None
        if prefix_sum.estimator == "exact" and not self.settings["label_smoothing"]:
            heads = (shared, model.bias, model.own_weight, model.own_offset)
            return cross_entropy_own_heads(code, *heads, label, prefix_sum.weights)
        omega = prefix_sum.weights.omega[: len(model.own_weight)]
        share, rest = beyond(prefix_sum.weights, len(omega))
        own = stacked_heads(code, model.own_weight, model.own_offset, label, code.new_tensor(omega), **smoothing)
        return own + share * cross_entropy(code, shared, label, model.bias, **options | {"omega": rest})

    def direct(self, model: Model, prefix_sum: PrefixSum) -> Callable[[dict[str, Tensor]], float] | None:
        """Return the compiled step of a linear encoder with separate and shared heads, where labels alone count."""
        plain = prefix_sum.estimator == "exact" and not any(
            map(self.settings.get, ("label_smoothing", "reconstruction"))
        )
        if not plain or not model.linear or model.encoder.b is not None or model.own_weight is None:
            return None
        C = model.encoder.C
        omega = as_tensor(prefix_sum.weights.omega, C)
        rest = omega.clone()
        rest[: len(model.own_weight)] = 0
        if few_lengths(prefix_sum.weights, "compiled", len(model.own_weight)) or not use_compiled(
            "auto", C, "classification"
        ):
            return None
        from firstk.losses.functional.own_heads_cpu import gradients

        for part in model.parameters():
            part.grad = torch.zeros_like(part)
        parts = [cast(Tensor, part) for part in (model.decoder, model.bias, model.own_weight, model.own_offset)]
        heads = tuple(part.detach().numpy() for part in parts)
        found = tuple(cast(Tensor, part.grad).numpy() for part in parts)
        weights = omega.numpy(), rest.numpy()

        @torch.no_grad()
        def step(batch: dict[str, Tensor]) -> float:
            z = batch["input"] @ C.t()
            dz = torch.empty_like(z)
            loss = gradients(z.numpy(), heads, batch["label"].numpy(), *weights, dz.numpy(), found)
            torch.mm(dz.t(), batch["input"], out=C.grad)
            return loss

        return step

    def per_prefix(self, model: Model, code: Tensor, batch: dict[str, Tensor], estimator: str) -> Tensor:
        """Return the loss of every prefix, (d,), without gradient."""
        # Computed once per fit: below this size, loading the compiled kernel takes longer than the torch path. Training
        # with the exact sum has loaded it.
        shared = _head(model)
        backend = "auto" if estimator == "exact" or code.numel() * len(shared) > _WORTH_LOADING else "torch"
        losses = cross_entropy_per_prefix(code, shared, batch["label"], model.bias, backend=backend)
        if model.own_weight is not None:
            assert model.own_offset is not None
            own = stacked_heads_per_prefix(code, model.own_weight, model.own_offset, batch["label"])
            losses[: len(model.own_weight)] = own
        return losses

    def representative(self, request: FitRequest, code: Code, second_moment: np.ndarray) -> Code:
        """Fix the scale of each axis as the objective specifies."""
        return head_form(code, cast(Classifier, request.objective).scale_of(request.linear), second_moment)

    def spectrum(self, request: FitRequest, task: TrainingTask, code: Code) -> np.ndarray:
        """Return the decrease of the cross-entropy by each coordinate."""
        return self._gains(task)

    @torch.no_grad()
    def _gains(self, task: TrainingTask) -> np.ndarray:
        """Return the decrease of the cross-entropy by each coordinate, starting from that of the best constant."""
        batch = task.first(GAIN_ROWS)
        task.model.eval()
        z = task.encode(batch)
        shares = torch.bincount(batch["label"]) / len(z)
        losses = self.per_prefix(task.model, z, batch, task.prefix_sum.estimator)
        return prefix_gains(losses, torch.special.entr(shares).sum())

    def network_spectrum(self, task: TrainingTask, codes: np.ndarray, batch: dict[str, Tensor]) -> np.ndarray:
        """Return the decrease of the cross-entropy by each coordinate."""
        return self._gains(task)

    def network_metric(self, codes: np.ndarray, batch: dict[str, Tensor], gram: np.ndarray) -> np.ndarray:
        """Return the within-class scatter of the codes."""
        return Moments().update(codes, labels_of(batch)).Sw


def _head(model: Model) -> Tensor:
    assert model.decoder is not None
    return model.decoder
