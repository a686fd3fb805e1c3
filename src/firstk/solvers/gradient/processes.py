"""The interface of training in several processes, each with its own rows, implemented for a single process.

Rows are numbered over all processes. A batch is a list of such numbers, the same in every process, and each process
handles those rows it holds. The contributions of the processes add up to the loss of the batch.
`firstk.integrations.distributed` implements the interface for several processes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from torch import Tensor, nn

from firstk.moments.statistics import Statistics

T = TypeVar("T")


class SingleProcess:
    """A single process that holds all rows."""

    rank: int = 0
    size: int = 1

    def all_gather_rows(self, part: Tensor) -> Tensor:
        """Concatenate the rows of all processes; gradients flow back to the process of each row."""
        return part

    def before(self, rows: int) -> int:
        """Return the number of rows of a batch that are held by processes of lower rank."""
        return 0

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over processes, without gradient."""
        return value

    def sum_gradients(self, parameters: list[nn.Parameter]) -> None:
        """Add up the gradients over processes, in place."""

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        return flag

    def all_gather(self, part: Tensor) -> list[Tensor]:
        """Gather one tensor, of any length, from each process, without gradient."""
        return [part]

    def broadcast_parameters(self, model: nn.Module) -> None:
        """Copy the parameters of the first process to all."""

    def broadcast_object(self, thing: T) -> T:
        """Return the object of the first process."""
        return thing

    def merged(self, statistics: Statistics) -> Statistics:
        """Return the statistics of the rows of all processes."""
        return statistics

    def normalizing(self, model: nn.Module) -> AbstractContextManager[None]:
        """Make batch normalization use the rows of all processes during training."""
        return nullcontext()
