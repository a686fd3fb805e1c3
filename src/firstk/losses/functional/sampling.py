"""Full-prefix losses at drawn prefixes: a few lengths shared by all rows, or one per row (Bao et al. 2020, section 5).

For a loss that is a sum over rows, loss and gradient are unbiased estimates of the exact weighted ones, at the
cost of one ordinary pass. The draws are stratified: the n rows of a batch use one point in each of n equal slices
of the unit interval, in random order, so that every prefix is covered as evenly as the batch allows, while each row
still draws k with probability omega_k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from firstk._base.prefix_weights import PrefixWeights, beyond, resolve_omega


@dataclass(frozen=True)
class Stratum:
    """Source of the draws for the rows of one rank: those rows' part of the draws for the whole batch.

    Attributes
    ----------
    generator : torch.Generator
        In the same state on every rank.
    positions : Tensor of shape (n,), int64
        Positions of this rank's rows in the batch.
    total : int
        Number of rows of the batch.
    """

    generator: torch.Generator
    positions: Tensor
    total: int


def drawing(generator: torch.Generator | Stratum | None, n: int) -> tuple[torch.Generator | None, int, Tensor | None]:
    """Return the generator, the number of rows to draw for, and the positions of the draws to use (None: all)."""
    if isinstance(generator, Stratum):
        return generator.generator, generator.total, generator.positions
    return generator, n, None


def rank_shift() -> float:
    """Return by which part of a slice the draws of this process are moved: trainers seed all processes alike."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank() / torch.distributed.get_world_size()
    return 0.0


def normal_like(z: Tensor, generator: torch.Generator | Stratum | None) -> Tensor:
    """Draw standard normal numbers, one for each entry of a code."""
    source, n, taken = drawing(generator, len(z))
    draws = torch.randn((n, *z.shape[1:]), generator=source, dtype=z.dtype)
    return (draws if taken is None else draws[taken]).to(z.device)


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
    if source is None:
        slices = (slices + int(rank_shift() * n)) % max(n, 1)
    points = (slices + torch.rand(n, generator=source, device=at, dtype=torch.float64)) / max(n, 1)
    points = points if taken is None else points[taken.to(at)]
    support, edges = (torch.from_numpy(part).to(at) for part in (weights.support, weights.edges))
    return support[torch.bucketize(points, edges, right=True)].to(device)


def draw_weights(
    weights: PrefixWeights, draws: int, generator: torch.Generator | None = None, after: int = 0
) -> PrefixWeights:
    """Return weights on lengths that are drawn anew and shared by all rows: `draws` of those past `after`.

    One point in each of `draws` equal slices of the weight past `after` says the length, and each has the same share of
    it. The expected weights are those given, so a loss with the drawn ones is an unbiased estimate, of loss and
    gradient, for any loss. Without a generator, processes of torch.distributed draw different lengths.

    Examples
    --------
    >>> from firstk._base.prefix_weights import resolve_omega
    >>> drawn = draw_weights(resolve_omega("uniform", 64), 4)
    >>> len(drawn.support), drawn.omega.sum().item()
    (4, 1.0)
    """
    if int((weights.support > after).sum()) <= draws:
        return weights
    source = torch.device("cpu") if generator is None else generator.device
    points = torch.rand(draws, generator=generator, device=source, dtype=torch.float64).cpu().numpy()
    if generator is None:
        points = (points + rank_shift()) % 1.0
    share, rest = beyond(weights, after)
    at = np.searchsorted(rest.edges, (np.arange(draws) + points) / draws, side="right")
    omega = np.where(np.arange(weights.d) < after, weights.omega, 0.0)
    np.add.at(omega, rest.support[at] - 1, share / draws)
    return resolve_omega(omega, weights.d)


def _masked(x: Tensor, k: Tensor) -> Tensor:
    # A clamped difference instead of a comparison: boolean masks are ten times slower than float masks on the CPU.
    at = torch.arange(x.shape[1], dtype=x.dtype, device=x.device)
    return (k.to(x.dtype)[:, None] - at).clamp_(0, 1) * x


class _Cut(torch.autograd.Function):
    """Truncation by a mask that backward computes again: allocating memory to keep it would cost more."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor, k: Tensor) -> Tensor:
        return _masked(z, k)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return _masked(upstream, ctx.saved_tensors[0]), None


def cut(z: Tensor, k: Tensor) -> Tensor:
    """Set the coordinates of row i past k_i to zero, (n, d)."""
    return _Cut.apply(z, k)
