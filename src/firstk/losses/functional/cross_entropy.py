"""Cross-entropy of every prefix of a code under one shared linear head.

logits_k = b + sum_{j<=k} z_j w_j^T (Talukder et al. 2026 (32)); the weighted loss is
sum_k omega_k CE(logits_k, labels).
docs/theory.md, 4.4 derives the single sweep; docs/kernels.md explains it in detail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from firstk._base.checks import bad_parameter, check_choice, check_fraction
from firstk._base.prefix_weights import OmegaLike
from firstk.exceptions import InvalidInputError
from firstk.losses.functional import sweep_torch
from firstk.losses.functional._inputs import (
    check_codes,
    check_estimator,
    check_rows,
    few_lengths,
    full_precision,
    host_reads,
    omega_like,
    path_of,
    promoted,
    untraced,
    weights_of,
    working_dtype,
)
from firstk.losses.functional.once import by_row, weighted
from firstk.losses.functional.sampling import cut, draw_prefixes

_OWNER = "cross_entropy"


def _sweep(
    z: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    row_weight: Tensor,
    omega: Tensor,
    *,
    lengths: list[int],
    path: str,
    grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    sweep, counted = sweep_of(lengths, path), row_weight != 0
    if not host_reads(z):
        # Ignored rows may hold NaN. Leaving them out would wait for the device; zeros with weight 0 are no terms.
        return sweep(z.where(counted[:, None], 0.0), weight, bias, labels, row_weight, omega, grad)
    _check_range(labels, len(weight))
    if bool(counted.all()):
        return sweep(z, weight, bias, labels, row_weight, omega, grad)
    rows = (z[counted], weight, bias, labels[counted], row_weight[counted])
    losses, dz, dw, db = sweep(*rows, omega, grad)
    return losses, torch.zeros_like(z).index_put_((counted,), dz) if grad else dz, dw, db


def sweep_of(lengths: list[int], path: str) -> Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Return the sweep over the given lengths, the few with weight, or over all prefixes if none are given."""
    if lengths:
        return partial(sweep_torch.sparse_sweep, lengths)
    if path == "compiled":
        from firstk.losses.functional import cross_entropy_cpu

        return cross_entropy_cpu.sweep
    if path == "triton":
        from firstk.losses.functional import sweep_triton

        return sweep_triton.sweep
    return sweep_torch.sweep


class _Batch(NamedTuple):
    """Codes, labels and weight of each row; the divisor of the sum; the part of the target that is spread, if any."""

    z: Tensor
    labels: Tensor
    row_weight: Tensor
    total: Tensor
    spread: Tensor | None


def _weighed_rows(
    z: Tensor,
    labels: Tensor,
    C: int,
    class_weight: Tensor | None,
    label_smoothing: float,
    ignore_index: int,
    reduction: str,
) -> _Batch:
    """Combine class weights, smoothing, ignored rows and reduction into one factor per row.

    The smoothed target of a row is (1 - s) w_y onehot + (s/C) w. Its sum is the factor of log-sum-exp, and
    `spread` = (s/C) w is the part of the target that is not a multiple of the one-hot vector. Of probabilities y in the
    place of labels all is spread: ((1 - s) y + s/C) w, (n, C).
    """
    if labels.is_floating_point():
        target = (1 - label_smoothing) * labels + label_smoothing / C
        target = target if class_weight is None else target * class_weight
        total = target.new_full((), len(z) if reduction == "mean" else 1)
        return _Batch(z, target.argmax(1), target.sum(1) / total, total, target / total)
    counted = labels != ignore_index
    labels = labels.where(counted, torch.zeros_like(labels))
    own = counted.to(z.dtype)
    if class_weight is not None:
        # The sweep raises an error for labels out of range; the clamp only keeps this gather valid.
        own = own * class_weight[labels.clamp(0, C - 1)]
    total = own.sum() if reduction == "mean" else own.new_ones(())
    if not label_smoothing:
        return _Batch(z, labels, own / total.where(total > 0, 1.0), total, None)
    w = z.new_ones(C) if class_weight is None else class_weight
    spread = w * (label_smoothing / C) / total
    row_weight = own * ((1 - label_smoothing) / total) + spread.sum() * counted
    return _Batch(z, labels, row_weight, total, spread)


def _smoothing_losses(rows: _Batch, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the term that smoothed or soft labels add to each row and prefix loss, (n, d).

    sum_i spread_sum logits_ik,y - spread . logits_ik is linear in the logits, so one cumulative sum over
    coordinates gives it for every k, in O(n d), for soft labels O(n C d).
    """
    assert rows.spread is not None
    counted = (rows.row_weight != 0)[:, None]
    z, labels, share = rows.z.where(counted, 0.0), rows.labels, rows.spread.sum(-1, keepdim=True)
    gain = (z * (share * weight[labels] - rows.spread @ weight)).cumsum(1)
    if bias is None:
        return gain
    return gain + (share[..., 0] * bias[labels] - rows.spread @ bias)[:, None] * counted


def _checked(z: Tensor, weight: Tensor, labels: Tensor, bias: Tensor | None, owner: str) -> None:
    check_codes(z, owner)
    check_codes(weight, owner, "weight", width=z.shape[1])
    check_rows(z, labels, "z", "labels", owner)
    soft = labels.is_floating_point()
    if labels.shape != ((len(z), len(weight)) if soft else (len(z),)):
        allowed = "one class index per row, or one probability per row and class"
        raise bad_parameter("labels", owner, allowed, f"{labels.dtype} of shape {tuple(labels.shape)}")
    if bias is not None and bias.shape != (len(weight),):
        raise InvalidInputError(
            f"{owner} needs one 'bias' for each of the {len(weight)} classes. Got shape {tuple(bias.shape)}."
        )


def check_labels(z: Tensor, weight: Tensor, labels: Tensor, bias: Tensor | None, ignore_index: int) -> None:
    """Raise an error for shapes that do not match, or labels that are no class of the head."""
    _checked(z, weight, labels, bias, _OWNER)
    if host_reads(labels) and not labels.is_floating_point():
        _check_range(labels[labels != ignore_index], len(weight))


def _check_range(labels: Tensor, C: int) -> None:
    if len(labels) and (int(labels.min()) < 0 or int(labels.max()) >= C):
        found = f"labels from {int(labels.min())} to {int(labels.max())}"
        raise bad_parameter("labels", _OWNER, f"in [0, {C - 1}] (the head's classes) or ignore_index", found)


@untraced
def cross_entropy(
    z: Tensor,
    weight: Tensor,
    labels: Tensor,
    bias: Tensor | None = None,
    *,
    omega: OmegaLike | Tensor = "harmonic",
    class_weight: Tensor | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
    estimator: str = "exact",
    generator: torch.Generator | None = None,
    backend: str = "auto",
) -> Tensor:
    """Return sum_k omega_k CE(b + sum_{j<=k} z_j w_j^T, labels), all d prefixes in one sweep.

    Parameters
    ----------
    z : Tensor of shape (n, d)
        Codes.
    weight : Tensor of shape (C, d)
        Head, as `nn.Linear` stores it.
    labels : Tensor of shape (n,), integer, or (n, C), floating
        Classes, or probabilities of classes as in torch.
    bias : Tensor of shape (C,), optional
    omega : str, mapping, array-like or PrefixWeights
        Weights of the prefixes, normalized to sum to one (`firstk._base.prefix_weights.resolve_omega`).
    class_weight, label_smoothing, ignore_index, reduction
        As in `torch.nn.functional.cross_entropy`. "none" returns one loss per row, by the torch path.
    estimator : "exact" or "sampled"
        "sampled" draws one prefix per row: unbiased, at the cost of one ordinary cross-entropy.
    generator : torch.Generator, optional
        Source of the draws.
    backend : "auto", "compiled", "triton" or "torch"
        The compiled path needs CPU tensors and numba, Triton's kernels need CUDA and the extra 'triton'; "auto" uses
        either wherever possible.

    Returns
    -------
    Tensor
        A scalar, or (n,) without reduction; float32 at least. Not differentiable twice.

    Examples
    --------
    >>> z, head = torch.zeros(3, 2), torch.zeros(4, 2)
    >>> round(cross_entropy(z, head, torch.tensor([0, 1, 2])).item(), 4)  # log 4
    1.3863
    """
    _checked(z, weight, labels, bias, _OWNER)
    check_choice(reduction, ("mean", "sum", "none"), "reduction", _OWNER)
    smoothing = check_fraction(label_smoothing, "label_smoothing", _OWNER)
    weights = weights_of(omega, z.shape[1], _OWNER)
    dtype = working_dtype(z, weight)
    z, weight = z.to(dtype), weight.to(dtype)
    bias = None if bias is None else bias.to(dtype)
    labels = labels.to(dtype) if labels.is_floating_point() else labels
    class_weight = None if class_weight is None else class_weight.to(dtype)
    with full_precision(z.device):
        if check_estimator(estimator, _OWNER):
            k = draw_prefixes(weights, len(z), z.device, generator)
            logits = F.linear(cut(z, k), weight, bias)
            return F.cross_entropy(
                logits,
                labels,
                class_weight,
                ignore_index=ignore_index,
                reduction=reduction,
                label_smoothing=smoothing,
            )
        rows = _weighed_rows(z, labels, len(weight), class_weight, smoothing, ignore_index, reduction)
        om = omega_like(weights, z)
        path = path_of(backend, z, _OWNER)
        sweep = partial(_sweep, lengths=few_lengths(weights, path), path=path)
        if reduction == "none":
            with torch.no_grad():
                counted = rows.row_weight != 0  # the others may hold NaN, and are zeros with weight 0 in sums
                values = sweep_torch.row_losses(
                    z.where(counted[:, None], 0.0), weight, bias, rows.labels.where(counted, 0), rows.row_weight, om
                )
            loss = by_row(sweep, values, rows.row_weight, om, z, weight, bias, rows.labels)
            return loss if rows.spread is None else loss + _smoothing_losses(rows, weight, bias) @ om
        loss = weighted(sweep, z, weight, bias, rows.labels, rows.row_weight, om)
        # As in torch, the mean over zero rows is NaN.
        loss = loss + (rows.total - rows.total) / rows.total
        return loss if rows.spread is None else loss + _smoothing_losses(rows, weight, bias).sum(0) @ om


@untraced
@torch.no_grad()
def cross_entropy_per_prefix(
    z: Tensor,
    weight: Tensor,
    labels: Tensor,
    bias: Tensor | None = None,
    *,
    class_weight: Tensor | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
    backend: str = "auto",
) -> Tensor:
    """Return the d separate losses, (d,), for logging, without gradient. Parameters as in `cross_entropy`."""
    owner = "cross_entropy_per_prefix"
    _checked(z, weight, labels, bias, owner)
    smoothing = check_fraction(label_smoothing, "label_smoothing", owner)
    z, weight = promoted(z, weight)
    bias = None if bias is None else bias.to(z.dtype)
    labels = labels.to(z.dtype) if labels.is_floating_point() else labels
    class_weight = None if class_weight is None else class_weight.to(z.dtype)
    with full_precision(z.device):
        rows = _weighed_rows(z, labels, len(weight), class_weight, smoothing, ignore_index, reduction)
        inputs = (z, weight, bias, rows.labels, rows.row_weight, z.new_zeros(z.shape[1]))
        losses, *_ = _sweep(*inputs, lengths=[], path=path_of(backend, z, owner), grad=False)
        losses = losses + (rows.total - rows.total) / rows.total
        return losses if rows.spread is None else losses + _smoothing_losses(rows, weight, bias).sum(0)
