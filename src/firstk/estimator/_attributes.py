"""What a fitted PrefixEncoder shows: names that end in an underscore, all read off its fitted encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from firstk import objectives
from firstk.contracts import Objective
from firstk.moments.statistics import Statistics

if TYPE_CHECKING:
    from firstk.encoder.fitted import FittedEncoder


class FittedAttributes:
    """Read-only attributes of an estimator that has an ``encoder_``."""

    _statistics: Statistics
    objective: Any

    @property
    def encoder_(self) -> FittedEncoder:
        """The fitted encoder."""
        raise NotImplementedError

    @property
    def components_(self) -> np.ndarray:
        """Axes in order, shape (d, p)."""
        if self.encoder_.body is not None:
            raise AttributeError("components_ are the axes of a linear encoder; this one is a network: use transform.")
        return self.encoder_.components

    @property
    def optimality_gap_(self) -> float | None:
        """Share of the possible decrease of the loss that a fit misses; 0 for closed forms, None if unknown."""
        config = self.encoder_.config
        return config.get("optimality_gap", 0.0 if config["solver"] == "closed_form" else None)

    @property
    def trace_(self) -> list[dict[str, float]]:
        """What happened during training: epoch, loss, seconds, distances to a closed form; empty for closed forms."""
        _ = self.encoder_
        return list(self._statistics.derived.get("trace", [])) if hasattr(self, "_statistics") else []

    @property
    def mean_(self) -> np.ndarray:
        """What is subtracted from a vector (from a document, for pairs)."""
        return self.encoder_.mean

    @property
    def spectrum_(self) -> np.ndarray:
        """Eigenvalues of the objective's pencil, descending."""
        return self.encoder_.spectrum

    @property
    def decoder_(self) -> np.ndarray | None:
        """Decoder of shape (p, d), where the objective has one."""
        return self.encoder_.decoder

    @property
    def solver_(self) -> str:
        """Name of the solver that was used."""
        return str(self.encoder_.config["solver"])

    @property
    def objective_(self) -> Objective:
        """The objective with everything "auto" settled."""
        return objectives.settled(self.objective, self.encoder_.config)

    @property
    def n_components_(self) -> int:
        """Width of the code."""
        return self.encoder_.d
