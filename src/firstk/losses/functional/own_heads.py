"""Cross-entropy of every prefix in one function: separate heads for the first K prefixes, a shared one for the others.

The same as `stacked_heads` plus `cross_entropy` on the prefixes past K. In a training step with a few hundred rows the
calls around two sums cost as much as the sums, so labels are not checked there and both share one autograd function.
`cross_entropy_adapted_heads` is the same for training loops of one's own, with all options and checks.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from firstk._base.prefix_weights import PrefixWeights, beyond
from firstk.losses.functional import stacked_heads
from firstk.losses.functional._inputs import (
    few_lengths,
    full_precision,
    host_reads,
    omega_like,
    path_of,
    working_dtype,
)
from firstk.losses.functional.cross_entropy import check_labels, cross_entropy, sweep_of
from firstk.losses.functional.once import weighted


def _sweep(
    z: Tensor,
    weight: Tensor,
    bias: Tensor,
    own_weight: Tensor,
    own_offset: Tensor,
    labels: Tensor,
    omega: Tensor,
    *,
    lengths: list[int],
    path: str,
    grad: bool,
) -> tuple[Tensor, ...]:
    """Return the d losses and, with `grad`, the gradients of their weighted sum."""
    n, K = len(z), len(own_weight)
    own, dz_own, dw_own, db_own = stacked_heads.sweep(z, own_weight, own_offset, labels, omega[:K], grad=grad)
    rest = omega.clone()
    rest[:K] = 0
    rows = (z, weight, bias, labels, z.new_full((n,), 1 / n), rest)
    losses, dz, dw, db = sweep_of(lengths, path)(*rows, grad)
    losses[:K] = own
    if grad:
        dz[:, :K] += dz_own
    return losses, dz, dw, db, dw_own, db_own


def cross_entropy_own_heads(
    z: Tensor,
    weight: Tensor,
    bias: Tensor,
    own_weight: Tensor,
    own_offset: Tensor,
    labels: Tensor,
    omega: PrefixWeights,
) -> Tensor:
    """Return sum_k omega_k CE(logits_k, labels), the mean over rows; differentiable once.

    logits_k = b_k + W_k z_{1..k} for k <= K, and b + sum_{j<=k} z_j w_j beyond.

    Parameters
    ----------
    z : Tensor of shape (n, d)
    weight, bias : Tensor of shape (C, d) and (C,)
        Shared head.
    own_weight, own_offset : Tensor of shape (K, C, K) and (K, C)
        Separate heads, as in `stacked_heads`.
    labels : Tensor of shape (n,), integer
        In [0, C - 1]; not checked.
    omega : PrefixWeights
    """
    path = path_of("auto", z, "own_heads")
    sweep = partial(_sweep, lengths=few_lengths(omega, path, len(own_weight)), path=path)
    return weighted(sweep, z, weight, bias, own_weight, own_offset, labels, omega_like(omega, z))


def adapted_heads(
    weight: Tensor, bias: Tensor | None, own_weight: Tensor, own_offset: Tensor, K: int
) -> tuple[Tensor, Tensor]:
    """Return the heads of the prefixes 1 to K, (K, C, K) and (K, C): the shared one, plus what each has of its own.

    The shared part is multiplied by sqrt(d / k): a head of k columns starts with weights so much larger than one of d
    (the rule by which `torch.nn.Linear` draws them), and at the size of d columns the logits of few begin too flat.
    """
    lengths = torch.arange(1, K + 1, dtype=weight.dtype, device=weight.device)
    size = (weight.shape[1] / lengths).sqrt()[:, None, None]
    below = torch.ones(K, K, dtype=weight.dtype, device=weight.device).tril()[:, None]
    offset = own_offset[:K] if bias is None else bias + own_offset[:K]
    return (size * weight[:, :K] + own_weight[:K, :, :K]) * below, offset


def cross_entropy_adapted_heads(
    z: Tensor,
    weight: Tensor,
    labels: Tensor,
    bias: Tensor | None,
    own_weight: Tensor,
    own_offset: Tensor,
    *,
    omega: PrefixWeights,
    estimator: str = "exact",
    generator: torch.Generator | None = None,
    **options: Any,
) -> Tensor:
    """Return sum_k omega_k CE(logits_k, labels), where short prefixes add a part of their own to the shared head.

    logits_k = b + e_k + (sqrt(d/k) W_{1..k} + E_k) z_{1..k} for k <= K, and b + sum_{j<=k} z_j w_j beyond. With E and e
    zero all prefixes share the columns of one head. The longest prefix with weight always does.

    Parameters
    ----------
    z, weight, labels, bias, estimator, generator, **options
        As in `cross_entropy`; prefixes are drawn among those that share a head.
    own_weight, own_offset : Tensor of shape (K, C, K) and (K, C)
        E and e; E_k uses its first k columns.
    omega : PrefixWeights
    """
    check_labels(z, weight, labels, bias, options.get("ignore_index", -100))
    K = min(len(own_weight), int(omega.support[-1]) - 1)
    shared = {"estimator": estimator, "generator": generator, **options}
    if not omega.omega[:K].any():
        # Parameters that have no part in a loss would be an error of DistributedDataParallel.
        unused = 0.0 * (own_weight.sum() + own_offset.sum())
        return cross_entropy(z, weight, labels, bias, omega=omega, **shared) + unused
    dtype = working_dtype(z, weight)
    z, weight, own_weight, own_offset = (part.to(dtype) for part in (z, weight, own_weight, own_offset))
    bias = None if bias is None else bias.to(dtype)
    with full_precision(z.device):
        own, offset = adapted_heads(weight, bias, own_weight, own_offset, K)
        if estimator == "exact" and _plain(labels, **options):
            full = weight.new_zeros(len(weight)) if bias is None else bias
            return cross_entropy_own_heads(z, weight, full, own, offset, labels, omega)
        losses = own_head_losses(z, own, offset, labels, **options)
        share, rest = beyond(omega, K)
        beyond_them = cross_entropy(z, weight, labels, bias, omega=rest, **shared)
        return torch.tensordot(omega_like(omega, z)[:K], losses, 1) + share * beyond_them


def _plain(
    labels: Tensor,
    *,
    class_weight: Tensor | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
    backend: str = "auto",
) -> bool:
    """Return whether the options are those of an ordinary mean over rows."""
    counted = class_weight is None and not label_smoothing and reduction == "mean" and backend == "auto"
    hard = len(labels) > 0 and not labels.is_floating_point()
    return counted and hard and host_reads(labels) and not bool((labels == ignore_index).any())


def own_head_losses(
    z: Tensor,
    own: Tensor,
    offset: Tensor,
    labels: Tensor,
    *,
    class_weight: Tensor | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
    backend: str = "auto",
) -> Tensor:
    """Return the loss of each of the first K prefixes under its head, (K,) or (K, n), with the options of torch.

    One product for each prefix: `backend` is accepted, as all losses take it, and changes nothing.
    """
    labels = labels.to(z.dtype) if labels.is_floating_point() else labels
    logits = [F.linear(z[:, :k], own[k - 1, :, :k], offset[k - 1]) for k in range(1, len(own) + 1)]
    weight = None if class_weight is None else class_weight.to(z.dtype)
    settings: Any = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": label_smoothing}
    return torch.stack([F.cross_entropy(each, labels, weight, **settings) for each in logits])
