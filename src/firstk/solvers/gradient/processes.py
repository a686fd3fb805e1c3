"""Training by several processes at once, each with rows of its own: what a loss and a loop ask of the others.

A *rank* is one of the processes. Rows have numbers over all ranks, and a batch is a list of such numbers, the same on
every rank: each takes the rows it has. What a rank contributes to the loss is its share, and the shares add up to the
loss of the batch. `SingleProcess` is the answer of a process that has no others; the other is in
`firstk.integrations.distributed`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor


class SingleProcess:
    """One process that has all the rows."""

    rank = 0
    size = 1

    def all_gather_rows(self, part: Tensor) -> Tensor:
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

    def all_gather(self, part: Tensor) -> list[Tensor]:
        """Return a tensor of each rank, of any length, without gradient."""
        return [part]

    def broadcast_parameters(self, model: Any) -> None:
        """Give every rank the parameters of the first."""

    def broadcast_object(self, thing: Any) -> Any:
        """Return what the first rank has."""
        return thing

    def normalizing(self, model: Any) -> AbstractContextManager[Any]:
        """Let batch normalization see the rows of all ranks while training."""
        return nullcontext()
