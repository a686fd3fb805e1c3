"""Similarity: the code whose cosines or dot products reflect which vectors are similar.

*Pairs* learns from pairs of rows that are labeled as similar. *Neighbors* has no pairs and pairs each row with its
nearest neighbor (relevance). *Projections* has the same axes and codes that hold on other kinds of vectors too.
*Variance* has principal components that are whitened in part (relevance). *DotProducts* preserves the dot products of
the full width (fidelity).
:class:`Similarity` is the public class and resolves to one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, is_real
from firstk._base.linalg import symmetrised
from firstk._base.rows import as_dense
from firstk.contracts import (
    Columns,
    Conventions,
    Objective,
    Pencil,
    Quadratic,
    Supervision,
    TrainingLoss,
    TrainingLossName,
)
from firstk.exceptions import InvalidInputError
from firstk.moments.statistics import Statistics
from firstk.objectives._common import (
    SAMPLE_ROWS,
    SHRINKAGES,
    ClosedFormObjective,
    LeastSquaresObjective,
    ShrinkageObjective,
    check_shrinkage,
    number_or_zero,
    pairs_of,
    rows_of,
)
from firstk.objectives._mined_pairs import mined_agreement

# Candidates of neighbor_weight="auto".
NEIGHBOR_WEIGHTS = (0.0, 0.25, 0.5)
# Training targets are half full-width cosines, half annotators' scores (figures in docs/decisions/solvers.md).
FIDELITY = 0.5
# Temperature of the softmax over cosines in training, as in most contrastive models of sentences.
TEMPERATURE = 0.05
# Of the variances by which coordinates of keep="variance" are divided: half-whitened (figures in docs/relevance.md).
POWER = 0.5
# Smaller differences between cosines of float32 vectors are rounding errors.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Similarity(ClosedFormObjective):
    """Similarity of vectors, learned from pairs (``fit_pairs``), or without pairs as `keep` specifies (``fit``).

    Parameters
    ----------
    keep : {"neighbors", "dot_products", "projections", "variance"}
        Without pairs: pair each row with its nearest neighbor (relevance); preserve all dot products (fidelity to the
        full width); the axes of neighbors with codes that are projections of the vectors, for codes of other kinds
        of vectors than those of the fit; or principal components whitened by `power` (relevance). Ignored with pairs.
    shrinkage : float in [0, 1], None or "auto", default: "auto" with pairs, 0.5 with neighbors and projections
        Replaces N = St by (1 - a) St + a tr(St)/p I.
    neighbor_weight : float in [0, 1] or "auto"
        With pairs: the weight of mined neighbors relative to the pairs. "auto" chooses it together with the shrinkage
        by the score on held-out documents; among ties, the largest.
    fidelity : float in [0, 1]
        With scored pairs and solver="gradient": the weight of the full-width cosine in the scores used for training.
        The closed form does not benefit from it and uses the scores only.
    temperature : float above 0
        With pairs and solver="gradient": cosines are divided by it in the loss. A low temperature emphasizes the
        pairs with the largest errors, a high one weights all pairs similarly.
    power : float in [0, 1]
        With keep="variance": each coordinate is divided by the power/2 of its variance. 0 is PCA, 1 gives all
        coordinates the same variance.
    """

    keep: Literal["neighbors", "dot_products", "projections", "variance"] = "neighbors"
    shrinkage: float | Literal["auto", "default"] | None = "default"
    neighbor_weight: float | Literal["auto"] = "auto"
    fidelity: float = FIDELITY
    temperature: float = TEMPERATURE
    power: float = POWER

    name: ClassVar[str] = "similarity"
    supervision: ClassVar[Supervision] = "rows"
    conventions: ClassVar[Conventions] = Conventions("metric", "mean", True, "harmonic", "recall@10")

    def check(self) -> None:
        """Raise an error for settings that are out of range."""
        check_choice(self.keep, ("neighbors", "dot_products", "projections", "variance"), "keep", "Similarity")
        Variance(self.power).check()
        if self.shrinkage != "default":
            check_shrinkage(self.shrinkage, "Similarity")
        _check_pair_settings(self.neighbor_weight, self.fidelity, self.temperature, "Similarity")

    def resolved(self, pairs: bool) -> Objective:
        """Return the objective for pairs, or the one for rows without pairs."""
        if pairs:
            shrinkage = "auto" if self.shrinkage == "default" else self.shrinkage
            return PairSimilarity(shrinkage, self.neighbor_weight, self.fidelity, self.temperature)
        if self.keep == "variance":
            return Variance(self.power)
        if self.keep == "dot_products":
            return DotProducts()
        mined = Projections if self.keep == "projections" else NeighborSimilarity
        return mined(0.5 if self.shrinkage == "default" else self.shrinkage)


@dataclass(frozen=True)
class DotProducts(LeastSquaresObjective):
    """Preservation of all dot products: pencil (X^T X / n, I), the uncentered singular vectors; optimal at every k."""

    name: ClassVar[str] = "dot_products"
    supervision: ClassVar[Supervision] = "rows"
    conventions: ClassVar[Conventions] = Conventions("orthonormal", "none", False, "uniform", "recall@10")
    principal: ClassVar[bool] = True

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return (St + mean mean^T, I)."""
        moments = rows_of(statistics)
        return Pencil(M=moments.St + np.outer(moments.mean, moments.mean))

    def decoder(self, statistics: Statistics, components: np.ndarray) -> np.ndarray:
        """Return the transpose of the encoder."""
        return components.T

    def quadratic(self, statistics: Statistics) -> Quadratic:
        """Return the uncentered second moments: preserving dot products is reconstruction about the origin."""
        moments = rows_of(statistics)
        S = moments.St + np.outer(moments.mean, moments.mean)
        return Quadratic(float(np.trace(S)), S, S)

    def targets(self, rows: Columns, statistics: Statistics) -> np.ndarray:
        """Return the rows unchanged."""
        return as_dense(rows["X"])


@dataclass(frozen=True)
class NeighborSimilarity(ShrinkageObjective):
    """Similarity from mined pairs, each row of a sample with its nearest neighbor: pencil (sym E[x x'^T], St)."""

    shrinkage: float | Literal["auto"] | None = 0.5

    name: ClassVar[str] = "neighbors"
    supervision: ClassVar[Supervision] = "rows"
    conventions: ClassVar[Conventions] = Conventions("metric", "mean", True, "harmonic", "recall@10")

    @property
    def sample_size(self) -> int:
        """Number of rows among which neighbors are mined."""
        return SAMPLE_ROWS

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return (sym E[x x'^T] of mined pairs, St of all rows)."""
        St = statistics.shared("St", lambda: rows_of(statistics).St)
        M = statistics.shared("mined", lambda: _varying(mined_agreement(statistics), St))
        return self.shrunk_pencil(Pencil(M=M), St, statistics.n_features)


@dataclass(frozen=True)
class Projections(NeighborSimilarity):
    """The nested spans of `NeighborSimilarity`, with codes that are projections of the vectors onto them.

    Axes are orthonormal instead of orthonormal in St, and no mean is subtracted: mean and variances are those of the
    rows of the fit, and vectors of another kind have others. Cosines of codes are those of the projected vectors.
    """

    name: ClassVar[str] = "projections"
    conventions: ClassVar[Conventions] = Conventions("projection", "none", True, "harmonic", "recall@10")


@dataclass(frozen=True)
class Variance(ClosedFormObjective):
    """Principal components whitened in part: pencil (St, I), each axis divided by ``gamma^(power / 2)``.

    Cosines of vectors are dominated by the few directions in which all of them vary, and whitening gives noise the
    weight of everything else; half of it is nearer to what people call relevant than either (docs/relevance.md).
    """

    power: float = POWER

    name: ClassVar[str] = "variance"
    supervision: ClassVar[Supervision] = "rows"
    conventions: ClassVar[Conventions] = Conventions("power", "mean", True, "harmonic", "recall@10")

    def check(self) -> None:
        """Raise an error for a power outside [0, 1]."""
        if not (is_real(self.power) and 0 <= self.power <= 1):
            raise bad_parameter("power", "Similarity", "a number in [0, 1]", self.power)

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return (St, I) with the power."""
        return Pencil(M=rows_of(statistics).St, power=float(self.power))


@dataclass(frozen=True)
class PairSimilarity(ShrinkageObjective):
    """Similarity from pairs: N = St of both sides; M = sym E[(s - mean s) x x'^T], or sym E[x x'^T] without scores.

    cov(s, <z_k, z'_k>) is the cumulative sum of gamma. Mined neighbors are mixed in with weight `neighbor_weight`, each
    part divided by its nuclear norm (the trace, for a positive semidefinite matrix), so that the weight does not depend
    on scale. Training uses scores mixed with the full-width cosine with weight `fidelity`, and divides cosines by
    `temperature`.
    """

    shrinkage: float | Literal["auto"] | None = "auto"
    neighbor_weight: float | Literal["auto"] = "auto"
    fidelity: float = FIDELITY
    temperature: float = TEMPERATURE

    name: ClassVar[str] = "pairs"
    supervision: ClassVar[Supervision] = "pairs"
    training_loss: ClassVar[TrainingLossName | type[TrainingLoss]] = "pairs"
    conventions: ClassVar[Conventions] = Conventions("metric", "sides", True, "harmonic", "pair_agreement")

    def check(self) -> None:
        """Raise an error for settings that are out of range."""
        super().check()
        _check_pair_settings(self.neighbor_weight, self.fidelity, self.temperature, "PairSimilarity")

    @property
    def sample_size(self) -> int:
        """Number of rows needed to mine neighbors and to resolve "auto"."""
        return SAMPLE_ROWS if self.neighbor_weight or self.candidates() else 0

    @property
    def loss_settings(self) -> dict[str, float]:
        """Return the temperature."""
        return {"temperature": self.temperature}

    @property
    def tie_break(self) -> tuple[float, float]:
        """Prefer the largest shrinkage among tied candidates, then the largest weight of mined neighbors."""
        return number_or_zero(self.shrinkage), number_or_zero(self.neighbor_weight)

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return M, mixed from pairs and mined neighbors, and N."""
        moments = pairs_of(statistics)
        if moments.rows < 2:
            raise InvalidInputError(f"Similarity needs at least two pairs to learn from. Got {moments.rows}.")
        St = statistics.shared("St", lambda: moments.St)

        def mixed() -> np.ndarray:
            weight = number_or_zero(self.neighbor_weight)
            own = statistics.shared("M", lambda: moments.agreement if moments.scored else moments.positive)
            if not weight:
                return own
            mined = statistics.shared("unit mined", lambda: _unit(_varying(mined_agreement(statistics), St)))
            return (1 - weight) * statistics.shared("unit M", lambda: _unit(own)) + weight * mined

        M = statistics.shared(("M", self.neighbor_weight), mixed)
        return self.shrunk_pencil(Pencil(M=M), St, statistics.n_features)

    def candidates(self) -> tuple[PairSimilarity, ...]:
        """Return the grid of candidates for the settings that are "auto"."""
        if "auto" not in (self.shrinkage, self.neighbor_weight):
            return ()
        weights: Any = NEIGHBOR_WEIGHTS if self.neighbor_weight == "auto" else (self.neighbor_weight,)
        shrinkages: Any = SHRINKAGES if self.shrinkage == "auto" else (self.shrinkage,)
        return tuple(replace(self, shrinkage=a, neighbor_weight=w) for w in weights for a in shrinkages)

    def mixed_scores(self, rows: Columns, over_all: Callable[[np.ndarray], np.ndarray] = np.asarray) -> np.ndarray:
        """Return ``(1 - f) s + f cos(x, x')``, each term standardized over the pairs; f is `fidelity`.

        Annotators score few pairs, while cosines are known for all of them: a short code trained on both generalizes
        better than with either alone. `over_all` gathers a column from all processes.
        """
        given = np.asarray(rows["scores"], dtype=np.float64)
        own = _cosines(as_dense(rows["left"]), as_dense(rows["right"]))
        scores = _standardised(given, over_all(given))
        cosines = _standardised(own, over_all(own), _ROUNDING)
        return (1 - self.fidelity) * scores + self.fidelity * cosines


def _check_pair_settings(weight: object, fidelity: object, temperature: object, owner: str) -> None:
    automatic = isinstance(weight, str) and weight == "auto"
    if not automatic and not (is_real(weight) and 0 <= weight <= 1):
        raise bad_parameter("neighbor_weight", owner, "'auto' or a number in [0, 1]", weight)
    if not (is_real(fidelity) and 0 <= fidelity <= 1):
        raise bad_parameter("fidelity", owner, "a number in [0, 1]", fidelity)
    if not (is_real(temperature) and temperature > 0):
        raise bad_parameter("temperature", owner, "a positive number", temperature)


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair, 0 if a side is zero."""
    sizes = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.einsum("ij,ij->i", left, right, dtype=np.float64) / np.where(sizes > 0, sizes, 1.0)


def _standardised(values: np.ndarray, among: np.ndarray, least: float = 0.0) -> np.ndarray:
    """Standardize by the mean and deviation of `among`; return zeros if the deviation is at most `least`."""
    centred, spread = values - among.mean(), among.std()
    return centred / spread if spread > least else np.zeros_like(centred)


def _varying(M: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """Set rows and columns of numerically constant columns, which are zero in the scatter, to exactly zero."""
    constant = np.diag(scatter) == 0
    M[constant] = 0.0
    M[:, constant] = 0.0
    return M


def _unit(M: np.ndarray) -> np.ndarray:
    """Divide by the nuclear norm, because the trace of an indefinite matrix can be zero."""
    size = np.abs(np.linalg.eigvalsh(symmetrised(M))).sum()
    return M / size if size > 0 else M
