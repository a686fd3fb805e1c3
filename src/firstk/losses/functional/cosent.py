"""CoSENT of every prefix: pairs with a higher score should have a higher cosine; only the order of scores matters.

loss_k = log(1 + sum over (i, j) with s_i < s_j of exp(t (cos_k(i) - cos_k(j)))), t the inverse temperature (Huang et
al. 2024). Sorted by score, the inner sums are suffix sums, so all prefixes cost O(n d) after one sort.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from firstk._base.checks import bad_parameter, is_real
from firstk._base.prefix_weights import OmegaLike
from firstk.losses.functional._inputs import full_precision, omega_like, untraced, weights_of
from firstk.losses.functional.cosine import check_scored, prefix_cosines
from firstk.losses.functional.once import OnceFunction, differentiated_once

_OWNER = "cosent"


class _FirstOrder(OnceFunction):
    """The identity, which may not be differentiated twice: that of `logcumsumexp` would be NaN."""

    @staticmethod
    def forward(losses: Tensor) -> Tensor:
        return losses.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        return differentiated_once(upstream, *ctx.saved_tensors)


def _losses(left: Tensor, right: Tensor, scores: Tensor, scale: float, owner: str) -> Tensor:
    """Return the loss of every prefix, (d,)."""
    left, right, scores = check_scored(left, right, scores, owner)
    if not is_real(scale) or scale <= 0:
        raise bad_parameter("scale", owner, "a positive number", scale)
    with full_precision(left.device):
        scores, order = scores.sort()
        logits = prefix_cosines(left, right)[order] * scale  # (n, d)
        above = torch.logcumsumexp(-logits.flip(0), 0).flip(0)  # (n, d), over the pairs from each rank upwards
        nothing = logits.new_full((1, logits.shape[1]), -torch.inf)
        # Ties are not ordered: the sum starts at the first strictly higher score.
        first_higher = torch.searchsorted(scores, scores, right=True)
        terms = logits + torch.cat([above, nothing])[first_higher]
        return _FirstOrder.apply(torch.cat([torch.zeros_like(nothing), terms]).logsumexp(0))


@untraced
def cosent(
    left: Tensor, right: Tensor, scores: Tensor, *, scale: float = 20.0, omega: OmegaLike | Tensor = "harmonic"
) -> Tensor:
    """Return sum_k omega_k CoSENT_k, for pairs with graded scores.

    There is no sampled estimator: the loss is not a sum over rows, and all prefixes cost little more than one.

    Parameters
    ----------
    left, right : Tensors of shape (n, d)
    scores : Tensor of shape (n,)
        Similarity of each pair; only the order of the scores matters.
    scale : float
        Inverse temperature.
    omega : as in `cross_entropy`
        The weight of prefix 1 is set to zero: the cosine of one coordinate is +1 or -1.

    Examples
    --------
    >>> a = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> b = torch.tensor([[1.0, 0.1], [1.0, 2.0]])
    >>> bool(cosent(a, b, torch.tensor([1.0, 0.0])) < cosent(a, b, torch.tensor([0.0, 1.0])))
    True
    """
    losses = _losses(left, right, scores, scale, _OWNER)
    return losses @ omega_like(weights_of(omega, len(losses), _OWNER).without_first(), losses)


@untraced
@torch.no_grad()
def cosent_per_prefix(left: Tensor, right: Tensor, scores: Tensor, *, scale: float = 20.0) -> Tensor:
    """Return the d separate losses, (d,), for logging, without gradient. Parameters as in `cosent`."""
    return _losses(left, right, scores, scale, "cosent_per_prefix")
