"""Base classes of objectives: the defaults of the contract, and settings shared by several objectives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from firstk._base.checks import bad_parameter, is_real
from firstk.contracts import (
    Columns,
    Objective,
    Pencil,
    Quadratic,
    ShrunkScatter,
    Supervision,
    TrainingLoss,
    TrainingLossName,
)
from firstk.encoder.fitted import Head
from firstk.exceptions import InvalidInputError
from firstk.moments.moments import Moments
from firstk.moments.pairs import PairMoments
from firstk.moments.statistics import Statistics

# Candidates of shrinkage="auto". For rows also none at all: shrinking hides columns of small scale, which may hold all
# there is to know of the classes.
SHRINKAGES = (0.1, 0.3, 0.5, 0.7, 0.9)
# Maximum number of rows used for "auto" choices and mined neighbors.
SAMPLE_ROWS = 8192


class ClosedFormObjective:
    """Defaults for an objective that is solved from moments only and has no decoder or head.

    A subclass sets `name`, `supervision` and `conventions`, and defines `pencil`; see
    :class:`firstk.contracts.Objective`.
    """

    # The loss of any pencil; see :mod:`firstk.solvers.gradient.losses` for others.
    training_loss: ClassVar[TrainingLossName | type[TrainingLoss]] = "ratio_trace"
    # Whether scores of the head are log-probabilities of classes, up to a constant.
    probabilities: ClassVar[bool] = False
    # Whether the axes are the leading singular vectors of the rows, about the mean or the origin as `conventions` say,
    # so that the first few can be found without a scatter; the decoder is then their transpose.
    principal: ClassVar[bool] = False

    @property
    def exact(self) -> bool:
        """Whether the axes of the pencil are the optimum: yes."""
        return True

    @property
    def rotation_free(self) -> bool:
        """Whether the solution rotates with the data."""
        return True

    @property
    def scale_free(self) -> bool:
        """Whether the objective is invariant to the scale of the code: yes, as a ratio of scatters."""
        return True

    @property
    def sample_size(self) -> int:
        """Number of rows needed in addition to the moments: none, unless a setting is "auto"."""
        return SAMPLE_ROWS if self.candidates() else 0

    @property
    def loss_settings(self) -> Mapping[str, float]:
        """Settings of the training loss: none."""
        return {}

    @property
    def tie_break(self) -> tuple[float, float]:
        """Prefer no candidate."""
        return 0.0, 0.0

    def resolved(self, pairs: bool) -> Objective:
        """Return the objective itself: it learns from one kind of data."""
        return self  # type: ignore[return-value]

    def check(self) -> None:
        """Accept, as there are no settings."""

    def check_data(self, statistics: Statistics) -> None:
        """Accept all data; `pencil` raises an error for data that cannot be solved."""

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return the pencil of these statistics."""
        raise InvalidInputError(
            f"{type(self).__name__} defines no 'pencil', which every objective needs: the solution in closed form, "
            "and the start of training. Define pencil(self, statistics) (docs/extending.md)."
        )

    def decoder(self, statistics: Statistics, components: np.ndarray) -> np.ndarray | None:
        """Return no decoder."""
        return None

    def head(self, statistics: Statistics, components: np.ndarray) -> Head | None:
        """Return no head."""
        return None

    def quadratic(self, statistics: Statistics) -> Quadratic:
        """Return the squared error that training minimizes; defined by subclasses of `LeastSquaresObjective`."""
        raise InvalidInputError(
            f"{type(self).__name__} is trained by its squared error and defines no 'quadratic'. Define "
            "quadratic(self, statistics), or name another training_loss (docs/extending.md)."
        )

    def targets(self, rows: Columns, statistics: Statistics) -> np.ndarray:
        """Return the centered targets of rows; there are none if the error is known by its moments only."""
        raise NotImplementedError

    def readouts(
        self, statistics: Statistics, shared: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray | None, Head | None]:
        """Split trained shared weights (q, d) into decoder and head; by default they are the decoder."""
        return shared, None

    def candidates(self) -> tuple[Self, ...]:
        """Return no candidates, as there is nothing to choose."""
        return ()


class LeastSquaresObjective(ClosedFormObjective):
    """Defaults for a squared-error objective; a subclass defines `quadratic`, and `targets` of rows."""

    training_loss: ClassVar[TrainingLossName | type[TrainingLoss]] = "least_squares"

    @property
    def scale_free(self) -> bool:
        """Whether the objective is invariant to the scale of the code: no, as targets have a scale."""
        return False


class ShrinkageObjective(ClosedFormObjective):
    """Defaults for an objective with a `shrinkage` that may be "auto"."""

    shrinkage: float | str | None

    def check(self) -> None:
        """Raise an error for a shrinkage outside [0, 1]."""
        check_shrinkage(self.shrinkage, type(self).__name__)

    def shrunk_pencil(self, pencil: Pencil, S: np.ndarray, n_features: int) -> Pencil:
        """Return the pencil with N the scatter S, shrunk: ``(1 - a) S + a tr(S)/p I``."""
        if not self.shrinkage:
            return replace(pencil, N=S)
        a = float(self.shrinkage)
        parts = ShrunkScatter(S, 1.0 - a, a * float(np.trace(S)) / n_features)
        return replace(pencil, N=parts.formed(), shrunk=parts)

    @property
    def tie_break(self) -> tuple[float, float]:
        """Prefer the largest shrinkage among tied candidates."""
        return number_or_zero(self.shrinkage), 0.0

    def candidates(self) -> tuple[Self, ...]:
        """Return one candidate per shrinkage if it is "auto"."""
        if self.shrinkage != "auto":
            return ()
        return tuple(replace(self, shrinkage=a) for a in (0.0, *SHRINKAGES))  # type: ignore[type-var]


class DiscriminantObjective(ShrinkageObjective):
    """Defaults for an objective of classes whose head is the Gaussian discriminant rule."""

    supervision: ClassVar[Supervision] = "labels"
    probabilities: ClassVar[bool] = True

    def check_data(self, statistics: Statistics) -> None:
        """Raise an error for fewer than two classes, or if no class has within-class variation."""
        check_spread_classes(rows_of(statistics), type(self).__name__)

    def head(self, statistics: Statistics, components: np.ndarray) -> Head:
        """Return the Gaussian discriminant rule of each prefix: ``log share_c - |z - m_c|^2 / 2``, linear in z."""
        moments = rows_of(statistics)
        means = (moments.class_means - moments.mean) @ components.T
        with np.errstate(divide="ignore"):
            return Head(means, np.log(moments.class_shares), means**2 / 2, moments.classes)


def rows_of(statistics: Statistics) -> Moments:
    """Return the moments of rows."""
    assert isinstance(statistics.moments, Moments)
    return statistics.moments


def pairs_of(statistics: Statistics) -> PairMoments:
    """Return the moments of pairs."""
    assert isinstance(statistics.moments, PairMoments)
    return statistics.moments


def number_or_zero(setting: object) -> float:
    """Return a setting as a number; 0 if it is None or "auto"."""
    return float(setting) if is_real(setting) else 0.0


def check_shrinkage(shrinkage: object, owner: str) -> None:
    """Accept None, "auto" or a number in [0, 1]."""
    if shrinkage is None or (isinstance(shrinkage, str) and shrinkage == "auto"):
        return
    if not is_real(shrinkage) or not 0 <= shrinkage <= 1:
        raise bad_parameter("shrinkage", owner, "None, 'auto' or a number in [0, 1]", shrinkage)


def least_squares_head(moments: Moments, components: np.ndarray) -> Head:
    """Return the least-squares head for targets or one-hot classes on a code orthonormal in N: weight = Syx B^T."""
    if moments.classes is not None:
        cross, offset, classes = one_hot_cross(moments), moments.class_shares, moments.classes
    else:
        cross, offset, classes = moments.Sxy, moments.target_mean, None
    weight = cross.T @ components.T
    return Head(weight, offset, np.zeros_like(weight), classes)


def one_hot_cross(moments: Moments) -> np.ndarray:
    """Return the cross scatter of rows and centered one-hot labels, (p, C): column c is share_c (mean_c - mean)."""
    return ((moments.class_means - moments.mean) * moments.class_shares[:, None]).T


def check_two_classes(moments: Moments, owner: str) -> np.ndarray:
    """Return the classes; raise an error if fewer than two have positive weight."""
    classes = moments.classes
    if classes is None:
        raise InvalidInputError(f"{owner} needs labels: pass y.")
    if np.sum(moments.group_weight > 0) < 2:
        raise InvalidInputError(
            f"{owner} needs at least two classes. Got {len(classes)} class ({str(classes[0])!r}); "
            "without several classes, use objective='reconstruction'."
        )
    return classes


def check_spread_classes(moments: Moments, owner: str) -> np.ndarray:
    """Return the classes; raise an error for fewer than two, or if every class is a single point."""
    classes, variances = check_two_classes(moments, owner), moments.variances(within=True)
    moments.check_digits(variances)
    if not np.any(variances > 0):
        raise InvalidInputError(
            f"{owner} needs variation within classes, and every class here is a single point "
            f"({moments.rows} rows, {len(classes)} classes). Pass more rows per class, or use "
            "objective='reconstruction'."
        )
    return classes


def one_hot(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the one-hot encoding of labels, shape (n, C)."""
    return (np.asarray(labels)[:, None] == classes).astype(np.float64)
