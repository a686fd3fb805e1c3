"""The interface of training by several processes, each with rows of its own, as a single process has it.

Rows have numbers over all processes, and a batch is a list of such numbers, the same in every process: each takes the
rows it has. What a process contributes to the loss is its share, and the shares add up to the loss of the batch.
Several processes are in `firstk.integrations.distributed`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from torch import Tensor, nn

from firstk.moments.statistics import Statistics

T = TypeVar("T")


class SingleProcess:
    """One process that has all the rows."""

    rank: int = 0
    size: int = 1

    def all_gather_rows(self, part: Tensor) -> Tensor:
        """Return the rows of all processes, one after the other; gradients go back to where each row came from."""
        return part

    def before(self, rows: int) -> int:
        """Return how many rows the processes before this one have in a batch."""
        return 0

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over processes, without gradient."""
        return value

    def sum_gradients(self, parameters: list[nn.Parameter]) -> None:
        """Add up the gradients over processes, in place."""

    def any(self, flag: bool) -> bool:
        """Tell whether the flag is up in any process."""
        return flag

    def all_gather(self, part: Tensor) -> list[Tensor]:
        """Return a tensor of each process, of any length, without gradient."""
        return [part]

    def broadcast_parameters(self, model: nn.Module) -> None:
        """Give every process the parameters of the first."""

    def broadcast_object(self, thing: T) -> T:
        """Return what the first process has."""
        return thing

    def merged(self, statistics: Statistics) -> Statistics:
        """Return the statistics of the rows of all processes."""
        return statistics

    def normalizing(self, model: nn.Module) -> AbstractContextManager[None]:
        """Let batch normalization see the rows of all processes while training."""
        return nullcontext()
