"""Cosine similarity of every prefix, and the loss that fits it to graded scores.

cos_k(a, b) = sum_{j<=k} a_j b_j / (|a|_k |b|_k): three cumulative sums give it for all k in O(n d).
"""

from __future__ import annotations

import torch
from torch import Tensor

from firstk._base.prefix_weights import OmegaLike
from firstk.exceptions import InvalidInputError
from firstk.losses.functional._inputs import (
    check_codes,
    check_estimator,
    check_rows,
    full_precision,
    omega_like,
    promoted,
    untraced,
    weights_of,
)
from firstk.losses.functional.sampling import draw_prefixes

_OWNER = "cosine_similarity"
# A prefix norm below this fraction of its row's largest entry counts as zero; its square is still a float32.
SHORTEST = 1e-18


def bounded(x: Tensor) -> Tensor:
    """Divide each row by its largest absolute entry, which leaves every cosine unchanged.

    The divisor is treated as a constant by autograd: the loss does not depend on it, so neither does the gradient.
    """
    top = x.detach().abs().amax(1, keepdim=True)
    return x / torch.where(top > 0, top, torch.ones_like(top))


def inverse_roots(squares: Tensor) -> Tensor:
    """Return 1 / sqrt(squares), and 0 where a squared norm counts as zero."""
    alive = squares > SHORTEST**2
    return torch.where(alive, squares, 1.0).rsqrt() * alive


def inverse_prefix_norms(x: Tensor) -> Tensor:
    """Return 1 / |x_{1..k}| for every k, (n, d), and 0 for prefixes that are zero."""
    return inverse_roots(x.square().cumsum(1))


def inverse_norms_at(x: Tensor, k: Tensor) -> Tensor:
    """Return 1 / |x_{1..k_i}| of every row at each of the prefix lengths k, (n, len(k))."""
    return inverse_roots(x.square().cumsum(1).index_select(1, k - 1))


def prefix_cosines(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosine of each pair of rows at every prefix, (n, d); zero prefixes give 0."""
    a, b = bounded(a), bounded(b)
    return (a * b).cumsum(1) * inverse_prefix_norms(a) * inverse_prefix_norms(b)


def check_scored(left: Tensor, right: Tensor, scores: Tensor, owner: str) -> tuple[Tensor, ...]:
    """Return both sides and their scores in the working dtype; raise an error if their shapes do not match."""
    check_codes(left, owner, "left")
    check_codes(right, owner, "right", width=left.shape[1])
    check_rows(left, right, "left", "right", owner)
    check_rows(left, scores, "left", "scores", owner)
    if scores.ndim != 1:
        raise InvalidInputError(f"{owner} needs one score per pair. Got 'scores' of shape {tuple(scores.shape)}.")
    left, right = promoted(left, right)
    return left, right, scores.to(left.dtype)


@untraced
def cosine_similarity(
    left: Tensor,
    right: Tensor,
    scores: Tensor,
    *,
    omega: OmegaLike | Tensor = "harmonic",
    estimator: str = "exact",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return sum_k omega_k mean_i (cos_k(left_i, right_i) - scores_i)^2, for pairs with graded scores.

    Parameters
    ----------
    left, right : Tensors of shape (n, d)
    scores : Tensor of shape (n,)
        Target cosines, in [-1, 1]; divide STS scores by their largest value first.
    omega, estimator, generator
        As in `cross_entropy`. The weight of prefix 1 is set to zero: the cosine of one coordinate is +1 or -1.

    Examples
    --------
    >>> a = torch.tensor([[1.0, 0.0, 1.0]])
    >>> cosine_similarity(a, a, torch.ones(1)).item() < 1e-12
    True
    """
    left, right, scores = check_scored(left, right, scores, _OWNER)
    weights = weights_of(omega, left.shape[1], _OWNER).without_first()
    with full_precision(left.device):
        cosines = prefix_cosines(left, right)
        if check_estimator(estimator, _OWNER):
            k = draw_prefixes(weights, len(left), left.device, generator)
            return (cosines.gather(1, k[:, None] - 1)[:, 0] - scores).square().mean()
        return (cosines - scores[:, None]).square().mean(0) @ omega_like(weights, left)


@untraced
@torch.no_grad()
def cosine_similarity_per_prefix(left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
    """Return the d separate losses, (d,), for logging, without gradient. Parameters as in `cosine_similarity`."""
    left, right, scores = check_scored(left, right, scores, "cosine_similarity_per_prefix")
    with full_precision(left.device):
        return (prefix_cosines(left, right) - scores[:, None]).square().mean(0)
