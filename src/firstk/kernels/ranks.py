"""Training by several processes at once, each with rows of its own: what a loss and a loop ask of the others.

A *rank* is one of the processes. Rows have numbers over all ranks, and a batch is a list of such numbers, the same on
every rank: each takes the rows it has. What a rank contributes to the loss is its share, and the shares add up to the
loss of the batch. `Alone` is the answer of a process that has no others; `firstk.engines.distributed` has the other.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


class Alone:
    """One process that has all the rows."""

    rank = 0
    size = 1

    def joined(self, part: Tensor) -> Tensor:
        """Return the rows of all ranks, one after the other; gradients go back to the rank that each row came from."""
        return part

    def before(self, rows: int) -> int:
        """Return how many rows the ranks before this one have in a batch."""
        return 0

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over ranks, without gradient."""
        return value

    def sum_gradients(self, parameters: list[Any]) -> None:
        """Add up the gradients over ranks, in place."""

    def any(self, flag: bool) -> bool:
        """Tell whether the flag is up on any rank."""
        return flag

    def gathered(self, part: Tensor) -> list[Tensor]:
        """Return a tensor of each rank, of any length, without gradient."""
        return [part]

    def agree(self, model: Any) -> None:
        """Give every rank the parameters of the first."""

    def first_says(self, thing: Any) -> Any:
        """Return what the first rank has."""
        return thing

    def normalising(self, model: Any) -> AbstractContextManager[Any]:
        """Let batch normalisation see the rows of all ranks while training."""
        return nullcontext()


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


def drawing(generator: Any, n: int) -> tuple[Any, int, Tensor | None]:
    """Return the generator, for how many rows to draw, and which of the draws to take; None takes all."""
    if isinstance(generator, Stratum):
        return generator.generator, generator.total, generator.positions
    return generator, n, None


def normal_like(z: Tensor, generator: Any) -> Tensor:
    """Draw standard normal numbers, one for each entry of a code."""
    source, n, taken = drawing(generator, len(z))
    draws = torch.randn((n, *z.shape[1:]), generator=source, dtype=z.dtype)
    return (draws if taken is None else draws[taken]).to(z.device)
