"""Training task for the loop: a model, a loss, an ordering, and rows or moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from firstk.contracts import Ordering, View
from firstk.losses.functional.sampling import Stratum
from firstk.solvers.gradient.losses.base import BaseTrainingLoss, PrefixSum
from firstk.solvers.gradient.networks import Model
from firstk.solvers.gradient.processes import SingleProcess


@dataclass(frozen=True)
class TaskPart:
    """The rows of a batch that this process holds, and the sum over prefixes for them."""

    rows: dict[str, Tensor]
    prefix_sum: PrefixSum


@dataclass
class TrainingTask:
    """One training problem.

    Attributes
    ----------
    model, training_loss, ordering, prefix_sum
        Network with shared weights; loss to minimize; ordering with its hooks; weights of the prefixes.
    rows, held : dict of Tensors
        Training and validation rows, by name; empty if training uses moments only. Beside moments, which have the
        sample weights in them, "weight" holds those of the rows.
    gram : Tensor of shape (p, p), optional
        E[x x^T], when the encoder is linear.
    moments : bool
        Whether losses are computed from moments.
    weight : Tensor of shape (n,), optional
        Sample weights: rows are drawn in proportion to them.
    free_coordinates : bool
        Whether the ordering fixes axes or blocks and nothing else, so that gradients may be
        divided by curvature and the residual symmetry used between steps.
    watched : list of callables
        Functions from the model to named numbers for the trace.
    numbers, held_numbers : Tensor of int64, optional
        Global numbers of the rows of this process, ascending; None if it holds all rows.
    counts : tuple of int
        Numbers of training and validation rows over all processes; used with `numbers`.
    data : str
        Fingerprint of the rows of all processes, for checkpoints of distributed runs.
    """

    model: Model
    training_loss: BaseTrainingLoss
    ordering: Ordering
    prefix_sum: PrefixSum
    rows: dict[str, Tensor] = field(default_factory=dict)
    held: dict[str, Tensor] = field(default_factory=dict)
    gram: Tensor | None = None
    moments: bool = False
    weight: Tensor | None = None
    free_coordinates: bool = False
    watched: list[Callable[[Model], dict[str, float]]] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    numbers: Tensor | None = None
    held_numbers: Tensor | None = None
    counts: tuple[int, int] = (0, 0)
    data: str = ""

    @property
    def processes(self) -> SingleProcess:
        """The processes that share the training."""
        return self.prefix_sum.processes

    @property
    def n(self) -> int:
        """Number of training rows over all processes; 0 on moments."""
        if self.numbers is not None:
            return self.counts[0]
        return len(next(iter(self.rows.values()))) if self.rows else 0

    def part(self, index: Tensor | None) -> TaskPart:
        """Return the rows of a batch that this process holds; None takes all rows."""
        if self.numbers is None:
            if index is None:
                return TaskPart(self.rows, self.prefix_sum)
            # Faster than indexing, by a twentieth of a step.
            taken = {name: part.index_select(0, index.to(part.device)) for name, part in self.rows.items()}
            return TaskPart(taken, self.prefix_sum)
        if index is None:
            return TaskPart(self.rows, self._shared(self.numbers, self.counts[0]))
        at = torch.searchsorted(self.numbers, index)
        mine = (at < len(self.numbers)).nonzero()[:, 0]
        mine = mine[self.numbers[at[mine]] == index[mine]]
        return TaskPart({name: part[at[mine]] for name, part in self.rows.items()}, self._shared(mine, len(index)))

    def first(self, count: int) -> dict[str, Tensor]:
        """Return the first `count` training rows over all processes, in every process."""
        if self.numbers is None:
            return {name: part[:count] for name, part in self.rows.items()}
        here = int(torch.searchsorted(self.numbers, count))
        order = torch.cat(self.processes.all_gather(self.numbers[:here])).argsort()
        return {name: torch.cat(self.processes.all_gather(part[:here]))[order] for name, part in self.rows.items()}

    def _shared(self, positions: Tensor, total: int) -> PrefixSum:
        """Return the prefix sum of a batch of which this process holds the rows at these positions."""
        source = Stratum(self.prefix_sum.generator, positions, total)
        return replace(self.prefix_sum, generator=source, share=len(positions) / total)

    def encode(self, batch: dict[str, Tensor]) -> Any:
        """Return the codes of a batch, of both sides if rows are pairs; None if there are no rows."""
        if "left" in batch:
            return self.model.encoder(batch["left"]), self.model.encoder(batch["right"])
        return self.model.encoder(batch["input"]) if "input" in batch else None

    def view(self, code: Any, part: TaskPart | None = None) -> View:
        """Return the arguments of the ordering's hooks."""
        prefix_sum = self.prefix_sum if part is None else part.prefix_sum
        view = View(self.model, code, self.gram, prefix_sum.generator, self.memory)
        if part is not None:
            view.weight = part.rows.get("weight")
        if prefix_sum.share < 1:
            view.total = lambda mean: self.processes.sum(mean * prefix_sum.share)
        return view

    def loss(self, code: Any, part: TaskPart) -> Tensor:
        """Return this process's contribution to the weighted prefix loss; from moments where possible."""
        if self.moments:
            value = self.training_loss.moment_loss(self.model, part.prefix_sum)
        elif part.prefix_sum.share or not self.training_loss.row_sums:
            value = self.training_loss.loss(self.model, code, part.rows, part.prefix_sum)
        else:  # no row of this batch is in this process, but gradients of the other processes' rows may flow
            value = code.sum() + sum(parameter.sum() for parameter in self.model.parameters())
        return value if part.prefix_sum.share == 1 else part.prefix_sum.share * value

    def penalty(self, view: View, part: TaskPart) -> Tensor | float:
        """Return the penalty that the ordering adds to the loss."""
        share = part.prefix_sum.share
        return share * self.ordering.penalty(view) if share else 0.0

    @torch.no_grad()
    def held_loss(self) -> float:
        """Return the loss of the held-out rows, with the exact sum over prefixes."""
        self.model.eval()
        prefix_sum = self.prefix_sum if self.held_numbers is None else self._shared(self.held_numbers, self.counts[1])
        part = TaskPart(self.held, replace(prefix_sum, estimator="exact"))
        value = float(self.processes.sum(self.loss(self.encode(self.held), part)))
        self.model.train()
        return value
