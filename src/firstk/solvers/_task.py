"""What the training loop is given: a model, a loss, an ordering and rows or moments. It asks no names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from firstk.contracts import View


@dataclass
class Task:
    """One training problem.

    Attributes
    ----------
    model, half, ordering, measure
        Network with shared weights; torch half of the objective; hooks; weights of the prefixes.
    rows, held : dict of Tensors
        Training and validation rows, by name; empty when moments suffice.
    gram : Tensor of shape (p, p), optional
        E[x x^T], when the encoder is linear.
    moments : bool
        Whether losses come from moments.
    weight : Tensor of shape (n,), optional
        Sample weights: rows are drawn in proportion.
    free_coordinates : bool
        Whether the ordering fixes axes or blocks and nothing else, so that gradients may be
        divided by curvature and the residual symmetry used between steps.
    distances : callable, optional
        From the model to numbers for the trace.
    """

    model: Any
    half: Any
    ordering: Any
    measure: Any
    rows: dict[str, Tensor] = field(default_factory=dict)
    held: dict[str, Tensor] = field(default_factory=dict)
    gram: Tensor | None = None
    moments: bool = False
    weight: Tensor | None = None
    free_coordinates: bool = False
    distances: Callable[[Any], dict[str, float]] | None = None
    memory: dict[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of training rows at hand; 0 on moments."""
        return len(next(iter(self.rows.values()))) if self.rows else 0

    def batch(self, index: Tensor | None) -> dict[str, Tensor]:
        """Return the rows of a batch; None takes all."""
        return self.rows if index is None else {name: part[index] for name, part in self.rows.items()}

    def encode(self, batch: dict[str, Tensor]) -> Any:
        """Return the codes of a batch, of both sides where rows are pairs; None where there are no rows."""
        if "left" in batch:
            return self.model.encoder(batch["left"]), self.model.encoder(batch["right"])
        return self.model.encoder(batch["input"]) if "input" in batch else None

    def view(self, code: Any) -> View:
        """Return what hooks see."""
        return View(self.model, code, self.gram, self.measure.generator, self.memory)

    def loss(self, code: Any, batch: dict[str, Tensor]) -> Tensor:
        """Return the weighted loss of the prefixes, from moments where that is possible."""
        if self.moments:
            return self.half.moment_loss(self.model, self.measure)
        return self.half.loss(self.model, code, batch, self.measure)

    @torch.no_grad()
    def held_loss(self) -> float:
        """Return the loss of the rows held out, every prefix counted exactly."""
        from dataclasses import replace

        self.model.eval()
        measure = replace(self.measure, estimator="exact")
        value = float(self.half.loss(self.model, self.encode(self.held), self.held, measure))
        self.model.train()
        return value
