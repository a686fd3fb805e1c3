"""Random draws for the rows of a batch: the same whether one process has all the rows or several share them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Stratum:
    """A source of draws for the rows of one rank: as if all rows of the batch had been drawn for, in their order.

    Attributes
    ----------
    generator : torch.Generator
        In the same state on every rank.
    positions : Tensor of shape (n,), int64
        Where in the batch the rows of this rank are.
    total : int
        Rows of the batch.
    """

    generator: torch.Generator
    positions: Tensor
    total: int


def drawing(generator: torch.Generator | Stratum | None, n: int) -> tuple[torch.Generator | None, int, Tensor | None]:
    """Return the generator, for how many rows to draw, and which of the draws to take; None takes all."""
    if isinstance(generator, Stratum):
        return generator.generator, generator.total, generator.positions
    return generator, n, None


def normal_like(z: Tensor, generator: torch.Generator | Stratum | None) -> Tensor:
    """Draw standard normal numbers, one for each entry of a code."""
    source, n, taken = drawing(generator, len(z))
    draws = torch.randn((n, *z.shape[1:]), generator=source, dtype=z.dtype)
    return (draws if taken is None else draws[taken]).to(z.device)
