"""Full-prefix losses at drawn prefixes: a few lengths shared by all rows, or one per row (Bao et al. 2020, section 5).

For a loss that is a sum over rows, loss and gradient are unbiased estimates of the exact weighted ones, at the
cost of one ordinary pass. The draws are stratified: the n rows of a batch use one point in each of n equal slices
of the unit interval, in random order, so that every prefix is covered as evenly as the batch allows, while each row
still draws k with probability omega_k.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from firstk._base.prefix_weights import PrefixWeights, beyond, resolve_omega
from firstk.losses.functional._inputs import host_reads
from firstk.losses.functional.draws import Stratum, drawing, rank_shift
from firstk.losses.functional.once import OnceFunction, differentiated_once


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


# Multiply-adds of a product that groups of rows must save to pay for their calls.
_WORTH_GROUPS = 1 << 23


def groups_pay(weights: PrefixWeights, n: int, columns: int) -> bool:
    """Tell whether `cut_linear` is expected to be quicker than a product of masked codes.

    Examples
    --------
    >>> from firstk._base.prefix_weights import resolve_omega
    >>> [groups_pay(resolve_omega(name, 384), 512, 77) for name in ("uniform", "harmonic")]
    [False, True]
    """
    half, most = (int(weights.support[np.searchsorted(weights.edges, part)]) for part in (0.5, 0.75))
    longest = int(weights.support[-1])
    used = half / 2 + most / 4 + longest / 4
    return n * columns * (weights.d - used) >= _WORTH_GROUPS


def _groups(lengths: Tensor, d: int) -> tuple[list[int], list[int]]:
    """Cut rows in ascending order of length into groups; return their sizes, and the longest length of each.

    Most lengths are short: the shorter half of the rows, half of the rest, and what is left.
    """
    n = len(lengths)
    if n < 64 or not host_reads(lengths):  # elsewhere, reading lengths back would wait for all work before
        return [n], [d]
    sizes = [n // 2, n // 4, n - n // 2 - n // 4]
    return sizes, [int(lengths[end - 1]) for end in (sizes[0], n - sizes[2], n)]


class _CutLinear(OnceFunction):
    """A linear map of codes that are cut, in ascending order of length: short codes need short products.

    Returns the logits, the masks and the cut codes of each group of rows.
    """

    @staticmethod
    def forward(z: Tensor, weight: Tensor, bias: Tensor | None, k: Tensor, order: Tensor) -> tuple[Tensor, ...]:
        k, rows = k[order], z.index_select(0, order)
        sizes, longest = _groups(k, z.shape[1])
        lengths = k.to(z.dtype)[:, None].split(sizes)
        at = torch.arange(z.shape[1], dtype=z.dtype, device=z.device)
        masks = [(part - at[:most]).clamp_(0, 1) for part, most in zip(lengths, longest, strict=True)]
        codes = [mask * part[:, : mask.shape[1]] for mask, part in zip(masks, rows.split(sizes), strict=True)]
        logits = z.new_empty(len(z), len(weight))
        for part, code in zip(logits.split(sizes), codes, strict=True):
            torch.mm(code, weight[:, : code.shape[1]].t(), out=part)
        return logits if bias is None else logits.add_(bias), *masks, *codes

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs)
        ctx.kept = output[1:]
        ctx.mark_non_differentiable(*ctx.kept)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        z, weight, bias, _lengths, order = ctx.saved_tensors
        masks, codes = ctx.kept[: len(ctx.kept) // 2], ctx.kept[len(ctx.kept) // 2 :]
        sizes = [len(mask) for mask in masks]
        with torch.no_grad():
            dz, dw = upstream.new_zeros(len(order), weight.shape[1]), torch.zeros_like(weight)
            for found, own, mask, code in zip(dz.split(sizes), upstream.split(sizes), masks, codes, strict=True):
                most = mask.shape[1]
                torch.mul(own @ weight[:, :most], mask, out=found[:, :most])
                dw[:, :most].addmm_(own.t(), code)
            # Back in the order of the codes.
            dz = torch.empty_like(dz).index_copy_(0, order, dz)
            given = dz, dw, upstream.sum(0) if bias is not None else None
        inputs = (z, weight, bias, upstream)
        return (*(None if part is None else differentiated_once(part, *inputs) for part in given), None, None)


def cut_linear(z: Tensor, weight: Tensor, bias: Tensor | None, k: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``cut(z, k) @ weight.T + bias`` with its rows in ascending order of k, and that order; for float32 or 64.

    Examples
    --------
    >>> z, k = torch.ones(3, 4), torch.tensor([4, 1, 2])
    >>> logits, order = cut_linear(z, torch.ones(1, 4), None, k)
    >>> logits[:, 0].tolist(), order.tolist()
    ([1.0, 2.0, 4.0], [1, 2, 0])
    """
    order = k.argsort()
    return _CutLinear.apply(z, weight, bias, k, order)[0], order
