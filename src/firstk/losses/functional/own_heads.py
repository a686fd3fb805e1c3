"""Cross-entropy of every prefix in one function: separate heads for the first K prefixes, a shared one for the others.

The same as `stacked_heads` plus `cross_entropy` on the prefixes past K. In a training step with a few hundred rows the
calls around two sums cost as much as the sums, so the labels are not checked here and both share one autograd function.
"""

from __future__ import annotations

from torch import Tensor

from firstk.losses.functional import stacked_heads
from firstk.losses.functional._inputs import use_compiled
from firstk.losses.functional._weighted_sweep import WeightedSweep
from firstk.losses.functional.cross_entropy import sweep_of


def _sweep(
    z: Tensor,
    weight: Tensor,
    bias: Tensor,
    own_weight: Tensor,
    own_offset: Tensor,
    labels: Tensor,
    omega: Tensor,
    *,
    grad: bool,
) -> tuple[Tensor, ...]:
    """Return the d losses and, with `grad`, the gradients of their weighted sum."""
    n, K = len(z), len(own_weight)
    own, dz_own, dw_own, db_own = stacked_heads.sweep(z, own_weight, own_offset, labels, omega[:K], grad=grad)
    rest = omega.clone()
    rest[:K] = 0
    rows = (z, weight, bias, labels, z.new_full((n,), 1 / n), rest)
    losses, dz, dw, db = sweep_of(rest, use_compiled("auto", z, "own_heads"))(*rows, grad)
    losses[:K] = own
    if grad:
        dz[:, :K] += dz_own
    return losses, dz, dw, db, dw_own, db_own


def cross_entropy_own_heads(
    z: Tensor, weight: Tensor, bias: Tensor, own_weight: Tensor, own_offset: Tensor, labels: Tensor, omega: Tensor
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
    omega : Tensor of shape (d,)
        Prefix weights, used without normalization.
    """
    return WeightedSweep.apply(_sweep, z, weight, bias, own_weight, own_offset, labels, omega)
