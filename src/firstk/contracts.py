"""Objective, ordering, solver, and what they exchange: the library on one page.

An objective turns statistics of the data into a pencil; the closed-form solver turns a pencil into a solution; an
ordering says which prefixes count and how much. :mod:`firstk.estimator.problem` is the only place where the three meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np

from firstk._base.prefix_weights import PrefixWeights
from firstk.encoder.head import Head
from firstk.moments.statistics import Statistics

Supervision = Literal["rows", "labels", "targets", "labels or targets", "pairs"]
# Under which loss an objective is trained; the class of that name is in :mod:`firstk.solvers.gradient.losses`.
Form = Literal["least_squares", "ratio_trace", "cross_entropy", "pairs"]


@dataclass(frozen=True)
class Conventions:
    """What an objective does unless told otherwise: one line of the table in docs/objectives.md.

    Attributes
    ----------
    scaling : {"orthonormal", "metric", "noise"}
        Rows of the encoder are orthonormal, or orthonormal in the pencil's N, or of one length in N, with mean
        squared norm of the code 1.
    centring : {"mean", "none", "sides"}
        What is subtracted from a vector before it is encoded; "sides": each side of a pair its own mean.
    normalized : bool
        Whether codes are brought to unit norm after truncation.
    omega : str
        Default weights of prefixes.
    metric : str
        Default metric of the curve.
    """

    scaling: Literal["orthonormal", "metric", "noise"]
    centring: Literal["mean", "none", "sides"]
    normalized: bool
    omega: str
    metric: str


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
    """

    M: np.ndarray | None = None
    factor: np.ndarray | None = None
    N: np.ndarray | None = None
    most: int | None = None


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
        E[x x^T], regularised if the objective says so.
    """

    total: float
    cross: np.ndarray
    gram: np.ndarray


@dataclass(frozen=True)
class Solution:
    """What a solver found, in the coordinates of the statistics it was given."""

    components: np.ndarray  # (d, p)
    spectrum: np.ndarray  # (d,)
    pinned: int  # how many axes the objective determines


@runtime_checkable
class Objective(Protocol):
    """What makes a prefix good. A frozen dataclass whose fields are its settings."""

    name: ClassVar[str]
    supervision: ClassVar[Supervision]
    conventions: ClassVar[Conventions]
    form: ClassVar[Form]

    @property
    def exact(self) -> bool:
        """Whether the pencil's axes are the answer, and not only where training starts."""

    @property
    def rotation_free(self) -> bool:
        """Whether rotating the data rotates the answer, so that a basis of the row space may be used."""

    @property
    def sample_size(self) -> int:
        """How many rows of the data the objective must see beside the moments."""

    def check(self) -> None:
        """Refuse settings that mean nothing."""

    def check_data(self, statistics: Statistics) -> None:
        """Refuse data for which the objective means nothing."""

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return the pencil of these statistics, or refuse them with a sentence."""

    def decoder(self, statistics: Statistics, components: np.ndarray) -> np.ndarray | None:
        """Return A of shape (p, d) such that prefix k is decoded by its first k columns; None if nothing is."""

    def head(self, statistics: Statistics, components: np.ndarray) -> Head | None:
        """Return the readout of the targets; None if the objective has none."""

    def quadratic(self, statistics: Statistics) -> Quadratic:
        """Return the squared error that training lowers, where the form is "least_squares"."""

    def targets(self, rows: dict[str, Any], statistics: Statistics) -> np.ndarray:
        """Return the centred targets of rows, shape (n, q), where the form is "least_squares"."""

    def readouts(
        self, statistics: Statistics, shared: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray | None, Head | None]:
        """Split trained shared weights (q, d) and their bias (q,) into a decoder and a head."""

    def candidates(self) -> tuple[Self, ...]:
        """Return the settings among which "auto" chooses; empty when nothing is left to choose."""


@dataclass
class View:
    """What an ordering's hooks see of a training step. Tensors are torch's; this page imports none of it.

    Attributes
    ----------
    model : Model
        ``encoder`` (with ``weight`` when linear), ``decoder`` (q, d) or None, ``extras`` by name.
    code : Tensor of shape (n, d) or None
        Codes of the batch; None when the step needs moments alone.
    gram : Tensor of shape (p, p) or None
        E[x x^T], when the step runs on moments.
    generator : torch.Generator
        Source of every draw.
    memory : dict
        What a hook computes once a fit.
    total : callable
        From what this process has found in its rows, a mean, to the mean over the rows of all processes.
    """

    model: Any
    code: Any
    gram: Any
    generator: Any
    memory: dict[str, Any] = field(default_factory=dict)
    total: Callable[[Any], Any] = lambda mean: mean

    def second_moment(self) -> Any:
        """Second moment of the code, (d, d): from the rows at hand, or B gram B^T."""
        if self.code is not None:
            return self.code.t() @ self.code / len(self.code)
        B = self.model.encoder.weight
        return B @ self.gram @ B.t()

    def once(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return what `compute` gives, computed the first time it is asked for."""
        if key not in self.memory:
            self.memory[key] = compute()
        return self.memory[key]


@runtime_checkable
class Ordering(Protocol):
    """How coordinates get their order: five hooks, each the identity unless an ordering fills it.

    A step of training is: encode; `perturb`; losses of the prefixes weighted by `measure`; add `penalty`; backward;
    `correct`; update; `retract`.
    """

    name: ClassVar[str]
    residual: ClassVar[Literal["axes", "blocks", "signs", "permutation", "none"]]
    traits: ClassVar[frozenset[str]]

    def check(self, d: int) -> None:
        """Refuse settings that mean nothing for a code of width d."""

    def measure(self, d: int, default: Any) -> PrefixWeights:
        """Return the weights of the prefixes; `default` is the objective's omega."""

    @property
    def estimator(self) -> str:
        """How the weighted sum is found: "exact", "sampled", or "auto"."""

    def perturb(self, view: View) -> Any:
        """Return the code that the losses see."""

    def penalty(self, view: View) -> Any:
        """Return what is added to the loss."""

    def correct(self, view: View) -> None:
        """Change the gradients in place."""

    def retract(self, view: View) -> None:
        """Change the parameters in place after the update."""

    def extras(self, d: int) -> dict[str, np.ndarray]:
        """Start values of parameters that the ordering trains for itself."""

    def blocks(self, d: int) -> tuple[int, ...]:
        """Return the prefix lengths at which the order is fixed: those that a curve may recommend."""


@runtime_checkable
class Solver(Protocol):
    """How the encoder is found: `solve` from a pencil, or `train` on a task."""

    name: ClassVar[str]
    trains: ClassVar[bool]

    def check(self) -> None:
        """Refuse settings that mean nothing."""


def settings_of(thing: Any) -> dict[str, Any]:
    """Return the settings of an objective, ordering or noise as plain JSON values, for records and saved models."""
    return {part.name: _plain(getattr(thing, part.name)) for part in fields(thing)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {"name": getattr(value, "name", type(value).__name__)} | settings_of(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
