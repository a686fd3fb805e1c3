"""Objective, ordering, solver, training loss, and what they exchange: the library on one page.

An objective turns statistics of the data into a pencil; an ordering says which prefixes count; a solver turns a
:class:`FitRequest` into a fitted encoder. They meet in :mod:`firstk.estimator.problem` alone. See docs/extending.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from firstk._base.prefix_weights import OmegaLike, PrefixWeights
from firstk._base.progress import Verbose
from firstk.encoder.fitted import FittedEncoder, Head
from firstk.encoder.network import MLP
from firstk.moments.statistics import Statistics

if TYPE_CHECKING:
    import torch
    from numpy.typing import ArrayLike
    from torch import Tensor, nn

Supervision = Literal["rows", "labels", "targets", "labels or targets", "pairs"]
# The training losses that have a name; :mod:`firstk.solvers.gradient.losses` holds the classes.
TrainingLossName = Literal["least_squares", "ratio_trace", "cross_entropy", "pairs"]
# A number of coordinates; "rank": all that carry signal; None: the default, see :class:`firstk.PrefixEncoder`.
Width = int | Literal["rank"] | None
Residual = Literal["axes", "blocks", "signs", "permutation", "none"]
# The arrays of Rows or Pairs by name ("X" with "y" and "weight", or "left" and "right" with "scores"); vectors may also
# be sparse matrices.
Columns = Mapping[str, np.ndarray]
T = TypeVar("T")


@dataclass(frozen=True)
class Conventions:
    """What an objective does unless told otherwise: one line of the table in docs/objectives.md.

    Attributes
    ----------
    scaling : {"orthonormal", "metric", "noise", "projection", "power"}
        Rows of the encoder are orthonormal, or orthonormal in the pencil's N, or of one length in N, with mean
        squared norm of the code 1. "projection": orthonormal in N, and then orthonormalized in order, which keeps the
        span of each prefix; for objectives without decoder and head. "power": orthonormal, and then divided by powers
        of gamma, as the pencil's `power` says.
    centring : {"mean", "none", "sides"}
        What is subtracted from a vector before it is encoded; "sides": each side of a pair its own mean.
    normalized : bool
        Whether codes are brought to unit norm after truncation.
    omega : str
        Default weights of prefixes.
    metric : str
        Default metric of the curve.
    """

    scaling: Literal["orthonormal", "metric", "noise", "projection", "power"]
    centring: Literal["mean", "none", "sides"]
    normalized: bool
    omega: str
    metric: str


@dataclass(frozen=True)
class ShrunkScatter:
    """The matrix ``scale S + ridge I``, in parts: it has the eigenvectors of S for every scale and ridge.

    Attributes
    ----------
    S : ndarray of shape (p, p)
        Symmetric positive semi-definite.
    scale, ridge : float
    """

    S: np.ndarray
    scale: float
    ridge: float

    def formed(self) -> np.ndarray:
        """Return the matrix."""
        return self.scale * self.S + self.ridge * np.eye(len(self.S))


@dataclass(frozen=True)
class Pencil:
    """The problem ``M v = gamma N v``, largest gamma first.

    Attributes
    ----------
    M : ndarray of shape (p, p), optional
        Symmetric; None when `factor` is given.
    factor : ndarray of shape (p, r), optional
        F with ``M = F F^T``, where such a factor is at hand: quicker and more accurate than M.
    N : ndarray of shape (p, p), optional
        Symmetric positive semi-definite; None is the identity.
    most : int, optional
        Upper bound on the number of directions that M can pin, where theory gives one (C - 1 for Fisher).
    shrunk : ShrunkScatter, optional
        N in parts, where it is a shrunk scatter. Pencils of several candidates for "auto" that hold the same arrays S,
        and M or `factor`, as `Statistics.shared` gives them, share the work on them; others are solved one by one.
    power : float
        Axes are divided by ``gamma^(power / 2)``: 0 leaves them as they are, 1 gives all coordinates one variance where
        M is the scatter of the data.
    """

    M: np.ndarray | None = None
    factor: np.ndarray | None = None
    N: np.ndarray | None = None
    most: int | None = None
    shrunk: ShrunkScatter | None = None
    power: float = 0.0

    def formed(self) -> np.ndarray:
        """Return M, computed from its factor where need be."""
        return self.factor @ self.factor.T if self.factor is not None else np.asarray(self.M)


@dataclass(frozen=True)
class Quadratic:
    """A squared error ``E|t - A B x|^2`` by its moments: total - 2 tr(A B cross) + tr(A^T A B gram B^T).

    Reconstruction, denoising, regression and mixtures differ in these three alone; their pencil is
    (cross cross^T, gram).

    Attributes
    ----------
    total : float
        E|t|^2 of the centred targets t.
    cross : ndarray of shape (p, q)
        E[x t^T].
    gram : ndarray of shape (p, p)
        E[x x^T], regularised where the objective regularises.
    """

    total: float
    cross: np.ndarray
    gram: np.ndarray


@dataclass(frozen=True)
class Solution:
    """Axes of a pencil, in the coordinates of the statistics it was computed from."""

    components: np.ndarray  # (d, p)
    spectrum: np.ndarray  # (d,)
    pinned: int  # how many axes the objective determines


@runtime_checkable
class Objective(Protocol):
    """What makes a prefix good. A frozen dataclass whose fields are its settings.

    :class:`firstk.objectives.ClosedFormObjective` has defaults for everything but `name`, `supervision`,
    `conventions` and `pencil`.
    """

    name: ClassVar[str]
    supervision: ClassVar[Supervision]
    conventions: ClassVar[Conventions]
    # What training by gradient lowers: a name, or a class that satisfies `TrainingLoss`.
    training_loss: ClassVar[TrainingLossName | type[TrainingLoss]]

    @property
    def exact(self) -> bool:
        """Whether the pencil's axes are the answer, and not only where training starts."""

    @property
    def rotation_free(self) -> bool:
        """Whether rotating the data rotates the answer, so that a basis of the row space may be used."""

    @property
    def scale_free(self) -> bool:
        """Whether scaling the code changes no loss, so that a penalty on its size could be lowered for nothing."""

    @property
    def sample_size(self) -> int:
        """How many rows of the data the objective needs beside the moments."""

    @property
    def loss_settings(self) -> Mapping[str, float]:
        """Numbers that the training loss takes, by name."""

    @property
    def tie_break(self) -> tuple[float, float]:
        """Of candidates with tied scores, the largest first number wins, then the largest second."""

    def resolved(self, pairs: bool) -> Objective:
        """Return the objective that learns from pairs, or from rows; itself, where there is one."""

    def check(self) -> None:
        """Raise an error for settings that are out of range."""

    def check_data(self, statistics: Statistics) -> None:
        """Raise an error for data on which the objective is not defined."""

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return the pencil of these statistics, or raise an error where there is none."""

    def decoder(self, statistics: Statistics, components: np.ndarray) -> np.ndarray | None:
        """Return A of shape (p, d) such that prefix k is decoded by its first k columns; None without a decoder."""

    def head(self, statistics: Statistics, components: np.ndarray) -> Head | None:
        """Return the readout of the targets; None if the objective has none."""

    def quadratic(self, statistics: Statistics) -> Quadratic:
        """Return the squared error that training lowers, where the training loss is "least_squares"."""

    def targets(self, rows: Columns, statistics: Statistics) -> np.ndarray:
        """Return the centred targets of rows, shape (n, q), where the training loss is "least_squares"."""

    def readouts(
        self, statistics: Statistics, shared: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray | None, Head | None]:
        """Split trained shared weights (q, d) and their bias (q,) into a decoder and a head."""

    def candidates(self) -> tuple[Self, ...]:
        """Return the settings among which "auto" chooses; empty when nothing is left to choose."""


class PrefixCriterion(Protocol):
    """A loss of every prefix of a rotated code that depends on the data through moments alone."""

    def losses(self, Q: np.ndarray) -> np.ndarray:
        """Return the losses of the prefixes of length 0 to d, shape (d + 1,), for orthonormal columns Q, (r, d)."""

    def weighted(self, Q: np.ndarray, omega: np.ndarray) -> tuple[float, np.ndarray]:
        """Return ``sum_k omega_k loss_k`` over the prefixes of length 1 to d, and its gradient with respect to Q."""


@runtime_checkable
class MomentObjective(Objective, Protocol):
    """An objective whose losses are functions of moments and which no pencil solves: its axes are rotated."""

    def criterion(self, statistics: Statistics, components: np.ndarray) -> PrefixCriterion:
        """Return the losses of rotations of these axes, (r, p), which are orthonormal in the pencil's N."""


class TrainedModel(Protocol):
    """What hooks see of the model: ``encoder.weight`` (d, p) when it is linear, the shared decoder (q, d), extras."""

    encoder: Any
    decoder: Any
    extras: Any


@dataclass
class View:
    """What an ordering's hooks see of a training step. Tensors are torch's; this page imports none of it.

    Attributes
    ----------
    model : TrainedModel
    code : Tensor of shape (n, d), or two of them for pairs, or None
        Codes of the batch; None when the step needs moments alone.
    gram : Tensor of shape (p, p) or None
        E[x x^T], when the step runs on moments.
    generator : torch.Generator
        Source of every draw.
    memory : dict
        What a hook computes once a fit.
    total : callable
        From what this process has found in its rows, a mean, to the mean over the rows of all processes.
    weight : Tensor of shape (n,), optional
        Sample weights of the rows, of mean 1 over all processes; None where rows count alike, or are drawn by weight.
    """

    model: TrainedModel
    code: Any
    gram: Tensor | None
    generator: torch.Generator | None
    memory: dict[str, Any] = field(default_factory=dict)
    total: Callable[[Tensor], Tensor] = lambda mean: mean
    weight: Tensor | None = None

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean over the rows of values, (n, d), by the rows' weights."""
        weighted = values if self.weight is None else values * self.weight[:, None]
        return weighted.mean(0)

    def second_moment(self) -> Tensor:
        """Return the second moment of the code, (d, d): from the rows at hand, or B gram B^T."""
        if self.code is not None:
            code: Tensor = self.code
            weighted = code if self.weight is None else code * self.weight[:, None]
            return weighted.t() @ code / len(code)
        B: Tensor = self.model.encoder.weight
        assert self.gram is not None
        return B @ self.gram @ B.t()

    def once(self, key: str, compute: Callable[[], T]) -> T:
        """Return what `compute` gives, computed the first time it is asked for."""
        if key not in self.memory:
            self.memory[key] = compute()
        found: T = self.memory[key]
        return found


@runtime_checkable
class Ordering(Protocol):
    """How coordinates get their order: five hooks, each the identity unless an ordering fills it.

    A step of training is: encode; `perturb`; losses of the prefixes weighted by `prefix_weights`; add `penalty`;
    backward; `correct`; update; `retract`. The booleans say what an ordering needs of the rest, so that nothing asks
    which ordering it is. :class:`firstk.orderings.Hooks` has defaults for everything but `name`.
    """

    name: ClassVar[str]
    # What stays undetermined: nothing but axes' scales, blocks, signs, the order of axes; "none": nothing is fixed.
    residual: ClassVar[Residual]
    # Whether the axes of a pencil answer this ordering, so that nothing need be trained.
    has_closed_form: ClassVar[bool]
    # Whether it is defined for encoders that are a matrix only.
    needs_linear_encoder: ClassVar[bool]
    # Whether it is defined for objectives with a decoder of the vectors only.
    needs_decoder: ClassVar[bool]
    # Whether updates must be plain gradient steps, with momentum at most.
    needs_plain_gradient: ClassVar[bool]
    # Whether training starts with the decoder the transpose of the encoder.
    starts_tied: ClassVar[bool]
    # Whether it penalizes the size of codes or weights, which means nothing where the objective is scale-free.
    penalizes_scale: ClassVar[bool]
    # Whether it depends on the weights themselves, so that training cannot run in other coordinates.
    acts_on_weights: ClassVar[bool]
    # Whether it needs the codes of rows, not only moments.
    acts_on_codes: ClassVar[bool]

    @property
    def estimator(self) -> str:
        """How the weighted sum is computed: "exact", "sampled", or "auto"."""

    @property
    def omega(self) -> OmegaLike | None:
        """Weights of the prefixes in the mean of a curve when "auto" chooses; None: the objective's."""

    def check(self, d: int) -> None:
        """Raise an error for settings that do not fit a code of width d."""

    def prefix_weights(self, d: int, default: OmegaLike | None) -> PrefixWeights:
        """Return the weights of the prefixes; `default` is the objective's omega."""

    def perturb(self, view: View) -> Any:
        """Return the code that the losses see."""

    def penalty(self, view: View) -> Tensor | float:
        """Return what is added to the loss."""

    def correct(self, view: View) -> None:
        """Change the gradients in place."""

    def retract(self, view: View) -> None:
        """Change the parameters in place after the update."""

    def extras(self, d: int) -> dict[str, np.ndarray]:
        """Return initial values of the parameters that the ordering trains for itself."""

    def blocks(self, d: int) -> tuple[int, ...]:
        """Return the prefix lengths at which the order is fixed, ascending, in 1..d: those a curve may recommend."""


class Processes(Protocol):
    """The processes that train together, each with rows of its own; `rank` is the number of this one."""

    rank: int
    size: int

    def merged(self, statistics: Statistics) -> Statistics:
        """Return the statistics of the rows of all processes."""


@dataclass(frozen=True)
class FitRequest:
    """What a solver is asked to find, with everything settled but how.

    Attributes
    ----------
    objective, ordering
        With nothing left to "auto".
    statistics : Statistics
        Of all rows.
    pencil : Pencil
        The objective's, of these statistics.
    mean, query_mean : ndarray of shape (p,)
        What is subtracted from documents, and from queries.
    n_components : int, "rank" or None
        Width asked for; "rank" takes the axes that carry signal, None a multiple of 8 of them where that costs little.
    rows : mapping, optional
        The rows themselves; None where only their statistics were kept.
    network : "linear", MLP or torch module
    init : "auto", "random", "small" or array of shape (d, p)
    device : str
    seed : int
    verbose : bool or "auto"
    processes : Processes, optional
        Those that share the rows; None where all rows are here.
    axes : Solution, optional
        Axes of the pencil, filled in by a solver that starts from them.
    """

    objective: Objective
    ordering: Ordering
    statistics: Statistics
    pencil: Pencil
    mean: np.ndarray
    query_mean: np.ndarray
    n_components: Width = None
    rows: Columns | None = None
    network: str | MLP | nn.Module = "linear"
    init: str | ArrayLike = "auto"
    device: str | torch.device = "auto"
    seed: int = 0
    verbose: Verbose = False
    processes: Processes | None = None
    axes: Solution | None = None

    @property
    def given_width(self) -> int | None:
        """The width, where a number was asked for."""
        return None if isinstance(self.n_components, str) else self.n_components

    @property
    def linear(self) -> bool:
        """Whether the encoder is a matrix."""
        return isinstance(self.network, str) and self.network == "linear"

    @cached_property
    def quadratic(self) -> Quadratic:
        """Moments of the squared error, for objectives that have one."""
        return self.objective.quadratic(self.statistics)

    @property
    def start(self) -> Solution:
        """The axes, in a request that holds them."""
        assert self.axes is not None
        return self.axes


@runtime_checkable
class Solver(Protocol):
    """How the encoder is found. A frozen dataclass whose fields are its settings."""

    name: ClassVar[str]
    # Whether it starts somewhere and draws at random: then `init`, `device` and `random_state` have a meaning.
    trains: ClassVar[bool]

    @property
    def precision(self) -> str:
        """Precision of the products behind the moments; see :class:`firstk.moments.moments.Moments`."""

    @property
    def shows_coordinates(self) -> bool:
        """Whether the user looks at weights during the fit, so that they must be in the coordinates of the data."""

    def check(self) -> None:
        """Raise an error for settings that are out of range."""

    def check_combination(self, objective: Objective, ordering: Ordering, network: str | MLP | nn.Module) -> None:
        """Raise an error where the solver cannot find what the three ask for."""

    def check_streamable(
        self, objective: Objective, ordering: Ordering, network: str | MLP | nn.Module, what: str
    ) -> None:
        """Raise an error where `what`, which keeps statistics alone, is not enough to solve from."""

    def solve(self, request: FitRequest) -> FittedEncoder:
        """Return the encoder; its config holds what the solver has to say about the fit."""


@runtime_checkable
class TrainingLoss(Protocol):
    """What training by gradient lowers, and everything in which objectives differ before and after training.

    :class:`firstk.solvers.gradient.losses.BaseTrainingLoss` has defaults for everything but `loss` and
    `from_request`, and says what each attribute and method means; torch is imported there, not here.
    """

    row_sums: ClassVar[bool]
    from_moments: ClassVar[bool]
    solves_pencil: ClassVar[bool]

    @classmethod
    def for_statistics(cls, statistics: Statistics) -> type[Self]:
        """Return the class that trains on such data: the class itself, unless it is a family."""

    @classmethod
    def from_request(cls, request: FitRequest, R: np.ndarray | None, tensor: Callable[[Any], Tensor]) -> Self:
        """Return the loss, with the moments it needs in the coordinates of training."""

    def loss(self, model: Any, code: Any, batch: dict[str, Tensor], prefix_sum: Any) -> Tensor:
        """Return the weighted loss of a batch."""
