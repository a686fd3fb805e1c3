"""Losses whose gradients are computed together with the loss, as one autograd function; differentiable once.

A sweep over the prefixes has at hand what its gradients need, so backward only scales them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from firstk.exceptions import IllegalCombinationError

# Takes the differentiable inputs, the fixed inputs, and `grad`: whether any gradient is wanted. Returns the loss and
# the gradients of the differentiable inputs, which come first.
Step = Callable[..., tuple[Tensor, ...]]


class _Constant(torch.autograd.Function):
    """The identity of a computed gradient, as a function of the inputs whose gradient it is: its own is not known."""

    @staticmethod
    def forward(gradient: Tensor, *inputs: Tensor | None) -> Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        raise IllegalCombinationError(
            "A second derivative (create_graph=True) of a full-prefix loss",
            "its gradient is computed in the forward pass, so autograd would count it as a constant",
            "first derivatives, or a sum of ordinary losses of z[:, :k] over the lengths k that the penalty needs",
        )


def differentiated_once(gradient: Tensor, *inputs: Tensor | None) -> Tensor:
    """Return a gradient with which autograd raises an error, where it would be differentiated by the inputs.

    It is a constant to autograd. torch's `once_differentiable` notices only an upstream gradient that requires grad;
    with `create_graph=True` the penalty on a gradient would silently have no gradient itself.
    """
    return _Constant.apply(gradient, *inputs) if torch.is_grad_enabled() else gradient


class OnceFunction(torch.autograd.Function):
    """Base of the autograd functions of full-prefix losses: no rule of `torch.func.vmap`."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        """Raise an error: a loss compares the rows of a batch, and its kernels take one batch."""
        raise IllegalCombinationError(
            "torch.func.vmap over a full-prefix loss",
            "its kernels take one batch at a time, and its value belongs to the batch, not to a row",
            "a loop over batches, or reduction='none' for the losses of single rows",
        )


class _Once(OnceFunction):
    @staticmethod
    def forward(step: Step, grad: bool, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        return step(*inputs, grad=grad)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.step, _, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.found = output[1:]
        ctx.mark_non_differentiable(*ctx.found)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients in place and release them, so that no second copy is held.

        A second backward pass through the same graph computes them again from the saved inputs.
        """
        inputs = ctx.saved_tensors
        found = list(ctx.step(*inputs, grad=True)[1:] if ctx.found is None else ctx.found)
        ctx.found = None
        given: list[Tensor | None] = []
        for i in range(len(found)):
            gradient, found[i] = found[i], None
            if not ctx.needs_input_grad[2 + i]:
                given.append(None)
            elif torch.is_grad_enabled():
                given.append(differentiated_once(gradient * upstream, *inputs))
            elif gradient.is_contiguous():
                given.append(gradient.mul_(upstream))
            else:
                # In the memory layout of a parameter: a transposed result would be copied when it reaches .grad.
                given.append(torch.mul(gradient, upstream, out=gradient.new_empty(gradient.shape)))
            del gradient
        return (None, None, *given, *[None] * (len(inputs) - len(found)))


def once(step: Step, *inputs: Tensor | None) -> Tensor:
    """Return the loss of a step, whose gradients it computes in the same call where any input requires grad.

    Examples
    --------
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> once(lambda x, grad: (x.square().sum(), 2 * x), x).backward()
    >>> x.grad
    tensor([6.])
    """
    wanted = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in inputs)
    return _Once.apply(step, wanted, *inputs)[0]


class _Rows(OnceFunction):
    @staticmethod
    def forward(step: Step, values: Tensor, row_weight: Tensor, omega: Tensor, *inputs: Tensor | None) -> Tensor:
        return values

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.step, _, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Sweep with the weights of rows that upstream gives, in which the gradient is linear."""
        row_weight, omega, *inputs = ctx.saved_tensors
        found = ctx.step(*inputs, row_weight * upstream.detach(), omega, grad=True)[1:]
        needed = zip(found, ctx.needs_input_grad[4:], strict=False)
        given = [differentiated_once(part, *inputs[:-1]) if wanted else None for part, wanted in needed]
        return (None, None, None, None, *given, None)


def by_row(step: Step, values: Tensor, row_weight: Tensor, omega: Tensor, *inputs: Tensor | None) -> Tensor:
    """Return computed losses of rows, (n,), with the gradients of a sweep, which backward runs.

    Parameters
    ----------
    step : callable
        Takes `inputs`, weights of rows, omega and `grad`; returns losses of prefixes, then a gradient of each of
        `inputs` but the last, which are labels.
    values, row_weight : Tensor of shape (n,)
    omega : Tensor of shape (d,)
    """
    return _Rows.apply(step, values, row_weight, omega, *inputs)


def _summed(sweep: Step, *inputs: Tensor, grad: bool) -> tuple[Tensor, ...]:
    losses, *found = sweep(*inputs, grad=grad)
    return losses @ inputs[-1], *found


def weighted(sweep: Step, *inputs: Tensor | None) -> Tensor:
    """Return ``sum_k omega_k loss_k`` of a sweep that returns all losses; omega is the last input."""
    return once(partial(_summed, sweep), *inputs)
