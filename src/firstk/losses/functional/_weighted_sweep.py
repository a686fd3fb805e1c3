"""The weighted sum of prefix losses as one autograd function, for any loss.

A sweep over the prefixes also computes the gradients, so that backward only scales them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from firstk.losses.functional._inputs import differentiable_once, scaled

# Takes differentiable inputs, the fixed inputs, omega and `grad`; returns the loss of each prefix and the gradients of
# the differentiable inputs, which come first.
Sweep = Callable[..., tuple[Tensor, ...]]


class WeightedSweep(torch.autograd.Function):
    """``sum_k omega_k loss_k``; called as ``apply(sweep, *differentiable, *fixed, omega)``."""

    @staticmethod
    def forward(ctx: Any, sweep: Sweep, *inputs: Tensor | None) -> Tensor:
        """Run the sweep and store the gradients."""
        wanted = any(ctx.needs_input_grad[1:])
        losses, *ctx.found = sweep(*inputs, grad=wanted)
        ctx.save_for_backward(*inputs)
        ctx.sweep = sweep
        return losses @ cast(Tensor, inputs[-1])

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the stored gradients in place and release them, so that no second copy is held.

        A second backward pass through the same graph computes them again from the saved inputs.
        """
        found = list(ctx.sweep(*ctx.saved_tensors, grad=True)[1:] if ctx.found is None else ctx.found)
        ctx.found = None
        given: list[Tensor | None] = []
        for i in range(len(found)):
            gradient, found[i] = found[i], None
            if not ctx.needs_input_grad[1 + i]:
                given.append(None)
            else:
                given.append(gradient.mul_(upstream) if gradient.is_contiguous() else scaled(gradient, upstream))
            del gradient
        return (None, *given, *[None] * (len(ctx.saved_tensors) - len(found)))
