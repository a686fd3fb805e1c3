"""Training losses: the functions that gradient training minimizes, for codes of rows or from moments alone.

An objective gives the name of its loss, or a class defined by the user. A loss is independent of ordering and
optimizer: it takes prefix weights and returns a number. Everything that differs between losses before and after
training is in its class too, so that no other code needs to know which loss is used.
"""

from __future__ import annotations

from firstk.contracts import Objective, TrainingLossName
from firstk.solvers.gradient.losses.base import BaseTrainingLoss, Initial, PrefixSum
from firstk.solvers.gradient.losses.cross_entropy import CrossEntropy
from firstk.solvers.gradient.losses.least_squares import LeastSquares
from firstk.solvers.gradient.losses.pairs import PairLoss, Positives, ScoredPairLoss
from firstk.solvers.gradient.losses.ratio_trace import RatioTrace

TRAINING_LOSSES: dict[TrainingLossName, type[BaseTrainingLoss]] = {
    "least_squares": LeastSquares,
    "ratio_trace": RatioTrace,
    "cross_entropy": CrossEntropy,
    "pairs": PairLoss,
}

__all__ = [
    "TRAINING_LOSSES",
    "BaseTrainingLoss",
    "CrossEntropy",
    "Initial",
    "LeastSquares",
    "PairLoss",
    "Positives",
    "PrefixSum",
    "RatioTrace",
    "ScoredPairLoss",
    "training_loss_of",
]


def training_loss_of(objective: Objective) -> type[BaseTrainingLoss]:
    """Return the class of the objective's training loss, which is given by name or as a class."""
    loss = objective.training_loss
    return TRAINING_LOSSES[loss] if isinstance(loss, str) else loss  # type: ignore[return-value]
