"""What the torch halves share: which of the possible things a half can do, and the shape of a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from firstk._base.prefix_weights import PrefixWeights
from firstk.solvers.gradient.processes import SingleProcess


@dataclass(frozen=True)
class PrefixSum:
    """Weights of the prefixes and how their sum is found; what part of the batch is here, and who has the rest."""

    weights: PrefixWeights
    estimator: str = "exact"
    generator: Any = None
    ranks: SingleProcess = field(default_factory=SingleProcess)
    share: float = 1.0

    def options(self) -> dict[str, Any]:
        """Return the arguments that the kernels take."""
        return {"omega": self.weights, "estimator": self.estimator, "generator": self.generator}


@dataclass
class TrainingLoss:
    """Defaults of a torch half.

    Attributes
    ----------
    settings : dict
        Numbers and tensors that the loss needs beside the rows.
    """

    settings: dict[str, Any] = field(default_factory=dict)

    # Whether the loss is a sum over rows, so that a prefix may be drawn for each.
    row_sums: ClassVar[bool] = True
    # Whether a linear encoder can be trained from moments alone.
    from_moments: ClassVar[bool] = False
    # Whether scaling the whole code changes nothing.
    scale_free: ClassVar[bool] = False
    sampled_by_default: ClassVar[bool] = False
    # Whether a linear encoder is trained with an offset: where cosines are measured from is part of what is learnt.
    offset: ClassVar[bool] = False
    # Whether white coordinates are turned at random before training, so that none is a quiet direction alone.
    turned: ClassVar[bool] = False
    # Adam's step in whitened coordinates, rows of a batch, and the passes and steps a linear encoder needs on batches.
    learning_rate: ClassVar[float] = 5e-3
    weight_decay: ClassVar[float] = 0.0
    batch_size: ClassVar[int] = 256
    epochs: ClassVar[int] = 15
    steps: ClassVar[int] = 600

    def loss(self, model: Any, code: Any, batch: dict[str, Tensor], measure: PrefixSum) -> Tensor:
        """Return the weighted loss of a batch: where rows are compared with one another, with those of all ranks.

        The shares of all ranks times what they return add up to the loss of the whole batch, and gradients likewise.
        """
        raise NotImplementedError

    def moment_loss(self, model: Any, measure: PrefixSum) -> Tensor:
        """Return the weighted loss of a linear encoder from moments."""
        raise NotImplementedError

    def precondition(self, model: Any, measure: PrefixSum) -> None:
        """Divide the gradients by the curvature of each coordinate, in place."""
        raise NotImplementedError

    def regauge(self, model: Any) -> None:
        """Move along the residual symmetry to where the next step is best conditioned; the loss does not change."""
