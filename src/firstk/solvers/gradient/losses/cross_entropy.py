"""Cross-entropy of every prefix: under heads of their own for short ones, under one shared head for the others."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from firstk._base.prefix_weights import beyond
from firstk.losses.functional.cross_entropy import cross_entropy, cross_entropy_per_prefix
from firstk.losses.functional.stacked_heads import stacked_heads, stacked_heads_per_prefix
from firstk.solvers.gradient.losses.base import PrefixSum, TrainingLoss

# Numbers of rows times prefixes times classes, of which torch takes 2^27 in half a second.
_WORTH_LOADING = 1 << 27


class CrossEntropy(TrainingLoss):
    """``CE(b + sum_{j<=k} z_j w_j)`` (Talukder et al. 2026 (32)); settings: label_smoothing.

    The heads of short prefixes are few and small, and are always summed exactly: where prefixes are drawn, they are
    drawn among those that share a head.
    """

    sampled_by_default: ClassVar[bool] = True
    # Chosen on rows held out of Banking77's training part (docs/decisions.md, "Classification").
    learning_rate: ClassVar[float] = 3e-2
    weight_decay: ClassVar[float] = 0.3
    batch_size: ClassVar[int] = 128
    epochs: ClassVar[int] = 25

    def loss(self, model: Any, code: Tensor, batch: dict[str, Tensor], measure: PrefixSum) -> Tensor:
        """Return the weighted loss of the batch."""
        options = measure.options() | self.settings
        if model.own_weight is None:
            return cross_entropy(code, model.decoder, batch["label"], model.bias, **options)
        omega = measure.weights.omega[: len(model.own_weight)]
        share, rest = beyond(measure.weights, len(omega))
        heads = model.own_weight, model.own_offset, batch["label"], code.new_tensor(omega)
        own = stacked_heads(code, *heads, **self.settings)
        return own + share * cross_entropy(code, model.decoder, batch["label"], model.bias, **options | {"omega": rest})

    def per_prefix(self, model: Any, code: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss of every prefix, (d,), without gradient."""
        # It is asked for once a fit: below this size, loading the compiled kernel takes longer than doing without it.
        backend = "auto" if code.numel() * len(model.decoder) > _WORTH_LOADING else "torch"
        losses = cross_entropy_per_prefix(code, model.decoder, batch["label"], model.bias, backend=backend)
        if model.own_weight is not None:
            own = model.own_weight, model.own_offset, batch["label"]
            losses[: len(model.own_weight)] = stacked_heads_per_prefix(code, *own)
        return losses
