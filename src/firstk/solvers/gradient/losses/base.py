"""Base class of training losses: capabilities, initial weights, and how the result of training is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from firstk._base.prefix_weights import PrefixWeights
from firstk.contracts import FitRequest
from firstk.encoder.fitted import Head
from firstk.exceptions import IllegalCombinationError
from firstk.moments.statistics import Statistics
from firstk.solvers.gradient.canonical import Code, sorted_form
from firstk.solvers.gradient.processes import SingleProcess

if TYPE_CHECKING:
    from firstk.solvers.gradient.networks import Model
    from firstk.solvers.gradient.task import TrainingTask

_SMALL = 1e-2  # standard deviation of N(0, 1e-4), Bao et al. 2020 H.1
# Rows on which the gain of each prefix is computed after training.
GAIN_ROWS = 8192

ToTensor = Callable[[Any], Tensor]


@dataclass(frozen=True)
class PrefixSum:
    """Prefix weights, the estimator of the weighted sum, and how the batch is shared among processes."""

    weights: PrefixWeights
    estimator: str = "exact"
    generator: Any = None
    processes: SingleProcess = field(default_factory=SingleProcess)
    share: float = 1.0

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the functional losses."""
        return {"omega": self.weights, "estimator": self.estimator, "generator": self.generator}


@dataclass(frozen=True)
class Initial:
    """Initial encoder in training coordinates, shared weights (q, d) and bias (q,); None where there are none."""

    encoder: np.ndarray | None = None
    shared: np.ndarray | None = None
    bias: np.ndarray | None = None


@dataclass
class BaseTrainingLoss:
    """Base class: the defaults of a training loss without decoder or head.

    Attributes
    ----------
    settings : dict
        Numbers and tensors that the loss needs in addition to the rows.
    """

    settings: dict[str, Any] = field(default_factory=dict)

    # Whether the loss is a sum over rows, so that one prefix per row may be drawn.
    row_sums: ClassVar[bool] = True
    # Whether a linear encoder can be trained from moments alone.
    from_moments: ClassVar[bool] = False
    # Whether the optimal linear encoder has the axes of the pencil, where the objective is exact.
    solves_pencil: ClassVar[bool] = False
    sampled_by_default: ClassVar[bool] = False
    # Whether a linear encoder is trained with an offset, because the origin of the cosines is learned.
    offset: ClassVar[bool] = False
    # Whether whitened coordinates are rotated at random before training, so that they mix low and high variance.
    turned: ClassVar[bool] = False
    # For a linear encoder on batches: Adam's learning rate in whitened coordinates, batch size, passes over the rows:
    # `epochs`, or fewer, at least `fewest_epochs`, where these make `enough_steps`; and at least `steps` steps.
    learning_rate: ClassVar[float] = 5e-3
    weight_decay: ClassVar[float] = 0.0
    batch_size: ClassVar[int] = 256
    epochs: ClassVar[int] = 15
    fewest_epochs: ClassVar[int] = 15
    enough_steps: ClassVar[int] = 0
    steps: ClassVar[int] = 600

    # -- before training ---------------------------------------------------------------------------------------

    @classmethod
    def for_statistics(cls, statistics: Statistics) -> type[BaseTrainingLoss]:
        """Return the class to use for such data: this one, unless it is a family of losses."""
        return cls

    @classmethod
    def from_request(cls, request: FitRequest, R: np.ndarray | None, tensor: ToTensor) -> Self:
        """Build the loss in training coordinates: rows times R, where there is one."""
        return cls(dict(request.objective.loss_settings))

    @classmethod
    def metric(cls, request: FitRequest) -> np.ndarray:
        """Return N, the metric used to whiten the data and to scale the rows of the encoder."""
        N = request.pencil.N
        return np.eye(len(request.statistics.moments.St)) if N is None else N

    @classmethod
    def second_moment(cls, request: FitRequest) -> np.ndarray:
        """Return E[x x^T] of the encoder's input."""
        return request.statistics.moments.St

    @classmethod
    def initial(cls, request: FitRequest, R: np.ndarray | None, axes: np.ndarray) -> Initial:
        """Return a linear encoder with these axes (d, p), and the best shared weights for it given the moments."""
        return Initial(cls.in_training_coordinates(request, R, axes))

    @classmethod
    def random_initial(
        cls, request: FitRequest, R: np.ndarray | None, rng: np.random.Generator, small: bool
    ) -> Initial:
        """Return a random linear encoder, orthonormal in training coordinates, or with small entries."""
        d, p = request.start.components.shape
        if small:
            return cls.initial(request, R, rng.normal(0, _SMALL, (d, p)))
        A = orthonormal_columns(rng, p, d)
        if R is None:
            return cls.initial(request, None, A.T)
        return cls.initial(request, R, orthonormal_columns(rng, R.shape[1], d).T @ R.T)

    @classmethod
    def network_initial(cls, request: FitRequest, d: int) -> Initial:
        """Return random shared weights for a network of width d, which has its own initial weights."""
        return Initial()

    @classmethod
    def in_training_coordinates(cls, request: FitRequest, R: np.ndarray | None, B: np.ndarray) -> np.ndarray:
        """Return C with C R^T = B on the range of N: R^T N R = I gives C = B N R."""
        return B if R is None else B @ cls.metric(request) @ R

    @classmethod
    def targets(cls, request: FitRequest, tensor: ToTensor) -> dict[str, Tensor]:
        """Return the targets of the rows as named tensors."""
        return {}

    def own_heads(
        self, request: FitRequest, initial: Initial, weights: PrefixWeights
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return initial weights (K, q, K) and offsets (K, q) of the separate heads of the first K prefixes."""
        return None

    # -- in training -------------------------------------------------------------------------------------------

    def loss(self, model: Model, code: Any, batch: dict[str, Tensor], prefix_sum: PrefixSum) -> Tensor:
        """Return the weighted loss of a batch; losses that compare rows with one another use the rows of all processes.

        The loss of the whole batch is the sum over processes of share times returned value; gradients likewise.
        """
        raise NotImplementedError

    def direct(self, model: Model, prefix_sum: PrefixSum) -> Callable[[dict[str, Tensor]], float] | None:
        """Return a function that sets the gradients for a batch and returns its loss, without autograd; None: no such.

        It works on one thread, on all rows of a batch, for orderings that change neither codes nor gradients.
        """
        return None

    def moment_loss(self, model: Model, prefix_sum: PrefixSum) -> Tensor:
        """Return the weighted loss of a linear encoder from moments."""
        raise NotImplementedError

    def precondition(self, model: Model, prefix_sum: PrefixSum) -> None:
        """Divide the gradients by the curvature of each coordinate, in place."""
        raise NotImplementedError

    def regauge(self, model: Model) -> None:
        """Apply the transformation that leaves the loss unchanged and conditions the next step best."""

    # -- after training ----------------------------------------------------------------------------------------

    def learned(self, request: FitRequest, model: Model) -> Code:
        """Return the code of a trained linear encoder, with the metric of its rows."""
        return Code(
            numbers(model.encoder.weight), optional(model.decoder), self.metric(request), own=optional(model.own_weight)
        )

    def canonical(self, request: FitRequest, code: Code, second_moment: np.ndarray) -> Code:
        """Return the canonical form of a code under the request's ordering (docs/theory.md, section 2).

        `second_moment` is E[x x^T] of the input of the code's matrix.
        """
        if request.ordering.residual == "permutation":
            return sorted_form(code)
        return self.representative(request, code, second_moment)

    def representative(self, request: FitRequest, code: Code, second_moment: np.ndarray) -> Code:
        """Return the canonical form for ordered axes: one common scale, unless the loss leaves more free."""
        size = np.sqrt(np.trace(code.gram) / len(code.components))
        return code.scaled(np.full(len(code.components), 1 / size))

    def spectrum(self, request: FitRequest, task: TrainingTask, code: Code) -> np.ndarray:
        """Return the value of each axis of a linear encoder, (d,): its Rayleigh quotient in the pencil."""
        B, N = code.components, request.pencil.N
        size = np.square(B).sum(axis=1) if N is None else ((B @ N) * B).sum(axis=1)
        value = ((B @ request.pencil.formed()) * B).sum(axis=1)
        return np.divide(value, size, out=np.zeros_like(value), where=size > 0)

    def network_spectrum(self, task: TrainingTask, codes: np.ndarray, batch: dict[str, Tensor]) -> np.ndarray:
        """Return the value of each coordinate of a network's code, (d,): its second moment."""
        return np.diag(codes.T @ codes) / len(codes)

    def network_metric(self, codes: np.ndarray, batch: dict[str, Tensor], gram: np.ndarray) -> np.ndarray:
        """Return the metric that scales the axes of a network's codes: their second moment."""
        return gram

    def network_form(
        self, request: FitRequest, codes: np.ndarray, batch: dict[str, Tensor]
    ) -> tuple[Code, Head, np.ndarray] | None:
        """Return canonical code, head and spectrum if a network's codes alone determine them, else None."""
        return None

    def optimum(self, request: FitRequest) -> tuple[Code, float]:
        """Return the code of the pencil with its shared weights, and the loss of an empty code."""
        return Code(request.start.components, None, self.metric(request)), 0.0


def orthonormal_columns(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Return a random matrix with orthonormal columns, by reduced QR (Talukder et al. 2026 C.1)."""
    return np.linalg.qr(rng.normal(size=(rows, columns)))[0]


def prefix_gains(losses: Tensor, empty: Tensor) -> np.ndarray:
    """Return the decrease of the loss by each coordinate, from the losses of all prefixes and of an empty code."""
    return -np.diff(numbers(losses), prepend=float(empty))


def numbers(tensor: Tensor) -> np.ndarray:
    """Convert a tensor to a float64 array."""
    found: np.ndarray = tensor.detach().cpu().double().numpy()
    return found


def optional(tensor: Tensor | None) -> np.ndarray | None:
    """Convert a tensor to a float64 array; None stays None."""
    return None if tensor is None else numbers(tensor)


def labels_of(batch: dict[str, Tensor]) -> np.ndarray:
    """Return the labels of a batch as integers."""
    return numbers(batch["label"]).astype(int)


def check_linear(request: FitRequest) -> None:
    """Raise an error for a share of the objective for the vectors with a network: it is known by moments of rows."""
    if not request.linear:
        share = request.objective.loss_settings["reconstruction"]
        raise IllegalCombinationError(
            f"objective '{request.objective.name}' with reconstruction={share} and a nonlinear network",
            "what a prefix keeps of the vectors is computed from their moments, for a linear encoder",
            "network='linear', reconstruction=0, or objective='mixture'",
        )


def label_tensor(request: FitRequest, like: torch.device) -> Tensor:
    """Return the labels of the request's rows as class indices."""
    assert request.rows is not None
    classes = request.statistics.moments.group_labels  # type: ignore[union-attr]
    return torch.as_tensor(np.searchsorted(classes, request.rows["y"]), device=like)
