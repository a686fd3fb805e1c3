"""Training losses: what training by gradient lowers, for codes of rows or from moments alone.

An objective names its loss, or is given a class of the user's own. A loss knows no ordering and no optimizer: it is
given weights of prefixes, and returns a number; all that differs from loss to loss before and after training is in its
class too, so that nothing else asks which loss it has.
"""

from __future__ import annotations

from firstk.contracts import Objective, TrainingLossName
from firstk.solvers.gradient.losses.base import BaseTrainingLoss, Initial, PrefixSum
from firstk.solvers.gradient.losses.cross_entropy import CrossEntropy
from firstk.solvers.gradient.losses.least_squares import LeastSquares
from firstk.solvers.gradient.losses.pairs import Pairs, Positives, ScoredPairs
from firstk.solvers.gradient.losses.ratio_trace import RatioTrace

TRAINING_LOSSES: dict[TrainingLossName, type[BaseTrainingLoss]] = {
    "least_squares": LeastSquares,
    "ratio_trace": RatioTrace,
    "cross_entropy": CrossEntropy,
    "pairs": Pairs,
}

__all__ = [
    "TRAINING_LOSSES",
    "BaseTrainingLoss",
    "CrossEntropy",
    "Initial",
    "LeastSquares",
    "Pairs",
    "Positives",
    "PrefixSum",
    "RatioTrace",
    "ScoredPairs",
    "training_loss_of",
]


def training_loss_of(objective: Objective) -> type[BaseTrainingLoss]:
    """Return the class of the objective's training loss: the one it names, or the one it is."""
    loss = objective.training_loss
    return TRAINING_LOSSES[loss] if isinstance(loss, str) else loss  # type: ignore[return-value]
