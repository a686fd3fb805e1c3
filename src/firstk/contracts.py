"""Objective, ordering, solver, and what they exchange: the library on one page.

An objective turns statistics of the data into a pencil; the closed-form solver turns a pencil into a solution; an
ordering says which prefixes count and how much. :mod:`firstk.problem` is the only place where the three meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np

from firstk.moments import Moments
from firstk.pairs import PairMoments
from firstk.sampling import RowSample

Takes = Literal["rows", "labels", "targets", "labels or targets", "pairs"]


@dataclass(frozen=True)
class NormativeLine:
    """What an objective does unless told otherwise: one line of the table in docs/objectives.md.

    Attributes
    ----------
    scaling : {"orthonormal", "metric"}
        Rows of the encoder are orthonormal, or orthonormal in the pencil's N.
    centring : {"mean", "none", "sides"}
        What is subtracted from a vector before it is encoded; "sides": each side of a pair its own mean.
    normalised : bool
        Whether codes are brought to unit norm after truncation.
    omega : str
        Default weights of prefixes.
    metric : str
        Default metric of the curve.
    """

    scaling: Literal["orthonormal", "metric"]
    centring: Literal["mean", "none", "sides"]
    normalised: bool
    omega: str
    metric: str


@dataclass
class Statistics:
    """What is kept of the data: moments, and a bounded sample of rows where the objective needs one.

    Attributes
    ----------
    moments : Moments or PairMoments
    sample : RowSample
    ambient : int
        p, the width of the vectors.
    basis : ndarray of shape (p, r), optional
        Orthonormal; when it is there, moments and sample are written in its coordinates.
    """

    moments: Moments | PairMoments
    sample: RowSample
    ambient: int
    basis: np.ndarray | None = None
    derived: dict[str, Any] = field(default_factory=dict)

    def merge(self, other: Statistics) -> Statistics:
        """Take in the statistics of other data."""
        mine, theirs = self.expanded(), other.expanded()
        mine.moments.merge(theirs.moments)  # type: ignore[arg-type]
        mine.sample.merge(theirs.sample)
        return mine

    def expanded(self) -> Statistics:
        """Return the statistics in full coordinates."""
        if self.basis is None:
            return Statistics(self.moments, self.sample, self.ambient)
        return Statistics(self.moments.lifted(self.basis), self.sample.lifted(self.basis), self.ambient)

    def once(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return a derived quantity, computed the first time it is asked for."""
        if key not in self.derived:
            self.derived[key] = compute()
        return self.derived[key]


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
class Head:
    """A linear readout that serves every prefix: ``offset_k + Z[:, :k] @ weight[:, :k].T``.

    Attributes
    ----------
    weight : ndarray of shape (q, d)
    offset : ndarray of shape (q,)
    quadratic : ndarray of shape (q, d)
        Per-axis constants that a prefix of length k subtracts the first k of; zeros for regression.
    classes : ndarray or None
        Labels, when the readout is an argmax over them.
    """

    weight: np.ndarray
    offset: np.ndarray
    quadratic: np.ndarray
    classes: np.ndarray | None = None


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
    takes: ClassVar[Takes]
    line: ClassVar[NormativeLine]

    @property
    def rotation_free(self) -> bool:
        """Whether rotating the data rotates the answer, so that a basis of the row space may be used."""

    @property
    def sample_size(self) -> int:
        """How many rows of the data the objective must see beside the moments."""

    def check(self) -> None:
        """Refuse settings that mean nothing."""

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return the pencil of these statistics, or refuse them with a sentence."""

    def decoder(self, statistics: Statistics, components: np.ndarray) -> np.ndarray | None:
        """Return A of shape (p, d) such that prefix k is decoded by its first k columns; None if nothing is."""

    def head(self, statistics: Statistics, components: np.ndarray) -> Head | None:
        """Return the readout of the targets; None if the objective has none."""

    def candidates(self) -> tuple[Self, ...]:
        """Return the settings among which "auto" chooses; empty when nothing is left to choose."""


@runtime_checkable
class Ordering(Protocol):
    """How coordinates get their order."""

    name: ClassVar[str]

    def check(self, d: int) -> None:
        """Refuse settings that mean nothing for a code of width d."""


@runtime_checkable
class Solver(Protocol):
    """How the encoder is found."""

    name: ClassVar[str]

    def check(self) -> None:
        """Refuse settings that mean nothing."""

    def solve(self, pencil: Pencil, n_components: int | None, eps: float) -> Solution:
        """Return the axes of the pencil, in order."""


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
