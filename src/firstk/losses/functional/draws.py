"""Random draws for the rows of a batch, independent of how the rows are split over processes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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
