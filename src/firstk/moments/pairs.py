"""Moments of pairs: two sides and a score, in one pass, on any partition.

A pair (x, x', s) is one joint row. Its ordinary moments hold the scatter of each side and of the two together;
scored pairs also need the third co-moment of s, x and x', which shifts and adds just as the second ones do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from firstk._base.array_types import MatrixLike
from firstk._base.arrays import under, within
from firstk._base.checks import check_matrix, check_same_length
from firstk._base.linalg import symmetrised
from firstk._base.rows import Rows
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.moments.moments import Moments


class PairMoments:
    """Weight, means, scatters and score co-moment of a stream of pairs.

    Parameters
    ----------
    precision : {"auto", "float64"}
        As in :class:`firstk.moments.moments.Moments`.

    Attributes
    ----------
    joint : Moments
        Of the rows (left, right), 2 p columns, with the score as target.
    with_scores : bool or None
        Whether pairs came with scores; None before any pair.
    third : ndarray of shape (p, p)
        sum over pairs of (s - mean s) (x - mean x) (x' - mean x')^T.

    Examples
    --------
    >>> import numpy as np
    >>> left, right = np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[0.0, 2.0], [1.0, 0.0]])
    >>> PairMoments().update(left, right).positive
    array([[ 0.5  , -0.625],
           [-0.625,  0.5  ]])
    """

    def __init__(self, precision: str = "auto"):
        self.joint = Moments(precision)
        self.with_scores: bool | None = None
        self.third = np.zeros((0, 0))

    def update(self, left: ArrayLike, right: ArrayLike, scores: ArrayLike | None = None) -> PairMoments:
        """Take in a batch of pairs; `scores` None means that every pair is a positive."""
        left, right, scores = check_pairs(left, right, scores, "PairMoments.update")
        block = PairMoments(self.joint.precision)
        block.with_scores = scores is not None
        s = np.ones(len(left)) if scores is None else scores
        block.joint.update(np.hstack([left, right]), targets=s)
        if scores is None:  # equal scores vary with nothing
            block.third = np.zeros((left.shape[1], left.shape[1]))
        else:
            weighted = (left - block.left_mean) * (s - block.joint.target_mean)[:, None]
            block.third = weighted.T @ (right - block.right_mean)
        return self.merge(block)

    def merge(self, other: PairMoments) -> PairMoments:
        """Take in the moments of other pairs, exactly as if they had been seen here."""
        if not other.joint.rows:
            return self
        if self.joint.rows and self.p != other.p:
            raise InvalidInputError(f"Pairs of {self.p} columns cannot take in pairs of {other.p} columns.")
        if not self.joint.rows:
            self.joint.merge(other.joint)
            self.third, self.with_scores = other.third.copy(), other.with_scores
            return self
        if self.with_scores != other.with_scores:
            raise InvalidInputError(
                "Some pairs came with scores and some without: on what scale are those without? Give scores to all."
            )
        if not self.with_scores:
            self.joint.merge(other.joint)
            return self
        before = Moments(self.joint.precision).merge(self.joint)
        self.joint.merge(other.joint)
        self.third = _about(self.joint, self.third, before) + _about(self.joint, other.third, other.joint)
        return self

    def without(self, part: PairMoments) -> PairMoments:
        """Return the moments of the pairs that were seen here and not there; see :meth:`Moments.without`."""
        rest = PairMoments(self.joint.precision)
        rest.with_scores, rest.joint = self.with_scores, self.joint.without(part.joint)
        if not self.with_scores:
            rest.third = self.third
            return rest
        # The third co-moment of all pairs about their means is that of both parts, each shifted to these means.
        about_all = self.third - _about(self.joint, part.third, part.joint)
        rest.third = about_all - _about(self.joint, np.zeros_like(self.third), rest.joint)
        return rest

    def moved(self, offset: np.ndarray, *given: Rows) -> None:
        """Add `offset`, shape (p,), to both sides of every pair; `given` are the sides as they had come, if others."""
        self.joint.moved(np.concatenate([offset, offset]), *given)

    def from_basis(self, basis: np.ndarray) -> PairMoments:
        """Return these moments in full coordinates, when they were taken in those of an orthonormal basis."""
        full = PairMoments(self.joint.precision)
        full.with_scores = self.with_scores
        full.joint = self.joint.from_basis(block_diag(basis, basis))
        full.third = basis @ self.third @ basis.T
        return full

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return all that is known as arrays, from which ``from_arrays`` builds the same object."""
        scored = -1 if self.with_scores is None else int(self.with_scores)
        return under("joint", self.joint.to_arrays()) | {"third": self.third, "with_scores": np.array([scored])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PairMoments:
        """Undo ``to_arrays``."""
        made = cls()
        made.joint = Moments.from_arrays(within(arrays, "joint"))
        try:
            scored, made.third = int(arrays["with_scores"][0]), np.array(arrays["third"])
        except (KeyError, ValueError, IndexError) as error:
            raise CorruptModelError(f"These are not the arrays of pair moments ({error!r}).") from None
        made.with_scores = None if scored < 0 else bool(scored)
        if made.third.shape != ((made.p, made.p) if made.rows else (0, 0)):
            raise CorruptModelError(f"The arrays of pair moments do not fit together: third is {made.third.shape}.")
        return made

    @property
    def p(self) -> int:
        """Width of a side."""
        return self.joint.p // 2

    @property
    def rows(self) -> int:
        """Number of pairs seen."""
        return self.joint.rows

    @property
    def n(self) -> float:
        """Number of pairs seen, as the divisor of every scatter."""
        return self.joint.n

    @property
    def eps(self) -> float:
        """Precision of the products, for the rank rule."""
        return self.joint.eps

    @property
    def left_mean(self) -> np.ndarray:
        """Mean of the left sides (queries)."""
        return self.joint.mean[: self.p]

    @property
    def right_mean(self) -> np.ndarray:
        """Mean of the right sides (documents)."""
        return self.joint.mean[self.p :]

    @property
    def scored(self) -> bool:
        """Whether the scores differ at all; with equal scores, all that is known is that the pairs are positives."""
        return bool(self.joint.Syy[0, 0] > 0)

    @property
    def St(self) -> np.ndarray:
        """Scatter averaged over both sides, each centred by its own mean, shape (p, p)."""
        S, p = self.joint.St, self.p
        return (S[:p, :p] + S[p:, p:]) / 2

    @property
    def positive(self) -> np.ndarray:
        """``sym E[x x'^T]``, each side centred by its own mean: random negatives cancel under this centring."""
        return symmetrised(self.joint.St[: self.p, self.p :])

    @property
    def agreement(self) -> np.ndarray:
        """``sym E[(s - mean s) x x'^T]``, each side centred by its own mean."""
        return symmetrised(self.third) / self.n


def check_pairs(
    left: MatrixLike, right: MatrixLike, scores: ArrayLike | None, owner: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the two sides as matrices of one shape and the scores as float64; None stays None."""
    left = check_matrix(left, owner, "left")
    right = check_matrix(right, owner, "right", width=left.shape[1])
    check_same_length(left, right, "left", "right", owner)
    if left.dtype != right.dtype:
        left, right = left.astype(np.float64), right.astype(np.float64)
    if scores is None:
        return left, right, None
    scores = np.asarray(scores)
    if scores.shape != (len(left),):
        raise InvalidInputError(f"{owner} takes one score a pair: shape ({len(left)},). Got shape {scores.shape}.")
    return left, right, check_matrix(scores[:, None], owner, "scores")[:, 0].astype(np.float64)


def _about(whole: Moments, third: np.ndarray, part: Moments) -> np.ndarray:
    """Third co-moment of the pairs behind `part` about the means of `whole`.

    With ds, dx, dx' about the old means and a, u, v the old means less the new,
    sum (ds + a)(dx + u)(dx' + v)^T = third + a Cxx' + Csx v^T + u Csx'^T + n a u v^T.
    """
    p, n = part.p // 2, part.n
    u, v = np.split(part.mean - whole.mean, 2)
    a = float((part.target_mean - whole.target_mean)[0])
    S, s = part.St * n, part.Sxy[:, 0] * n
    return third + a * S[:p, p:] + np.outer(s[:p], v) + np.outer(u, s[p:]) + n * a * np.outer(u, v)
