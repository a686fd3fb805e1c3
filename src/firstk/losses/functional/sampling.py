"""Sampled full-prefix losses: one prefix per row, drawn with probability omega (Bao et al. 2020, section 5).

For a loss that is a sum over rows, loss and gradient are unbiased estimates of the exact weighted ones, at the
cost of one ordinary pass. The draws are stratified: the n rows of a batch use one point in each of n equal slices
of the unit interval, in random order, so that every prefix is covered as evenly as the batch allows, while each row
still draws k with probability omega_k.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from firstk._base.prefix_weights import PrefixWeights
from firstk.losses.functional.draws import Stratum, drawing


def draw_prefixes(
    weights: PrefixWeights, n: int, device: torch.device, generator: torch.Generator | Stratum | None = None
) -> Tensor:
    """Draw one prefix length in [1, d] for each of n rows, (n,) int64; with a `Stratum`, as part of a larger batch.

    Examples
    --------
    >>> from firstk._base.prefix_weights import resolve_omega
    >>> draws = draw_prefixes(resolve_omega("uniform", 4), 8, torch.device("cpu"))
    >>> torch.bincount(draws).tolist()
    [0, 2, 2, 2, 2]
    """
    source, n, taken = drawing(generator, n)
    at = torch.device("cpu") if source is None else source.device
    slices = torch.randperm(n, generator=source, device=at)
    points = (slices + torch.rand(n, generator=source, device=at, dtype=torch.float64)) / max(n, 1)
    points = points if taken is None else points[taken.to(at)]
    support, edges = (torch.from_numpy(part).to(at) for part in (weights.support, weights.edges))
    return support[torch.bucketize(points, edges, right=True)].to(device)


def _masked(x: Tensor, k: Tensor) -> Tensor:
    # A clamped difference instead of a comparison: boolean masks are ten times slower than float masks on the CPU.
    at = torch.arange(x.shape[1], dtype=x.dtype, device=x.device)
    return (k.to(x.dtype)[:, None] - at).clamp_(0, 1).mul_(x)


class _Cut(torch.autograd.Function):
    """Truncation by a mask that backward computes again: allocating memory to keep it would cost more."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, k: Tensor) -> Tensor:
        ctx.save_for_backward(k)
        return _masked(z, k)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return _masked(upstream, ctx.saved_tensors[0]), None


def cut(z: Tensor, k: Tensor) -> Tensor:
    """Set the coordinates of row i past k_i to zero, (n, d)."""
    return _Cut.apply(z, k)
