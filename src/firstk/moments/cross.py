"""Moments of two sets of columns that describe the same rows: the vectors of one text under two models.

The scatter of either side and the cross scatter of the two, in one pass, on any partition: `Moments` of the old
vectors with the new ones as targets hold all three, so updates, merges, weights and folds are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.array_types import MatrixLike
from firstk._base.checks import check_matrix, check_same_length
from firstk._base.linalg import ordered_eigh
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.moments.moments import Moments

Derived = TypeVar("Derived")


class CrossMoments:
    """Weight, means and scatters of a stream of pairs (a, b) of vectors, whose widths may differ.

    Parameters
    ----------
    owner : str
        What an error message calls the caller.

    Attributes
    ----------
    joint : Moments
        Of the rows a, with b as targets.

    Examples
    --------
    >>> import numpy as np
    >>> old, new = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[1.0], [5.0]])
    >>> CrossMoments().update(old, new).cross
    array([[2.],
           [2.]])
    """

    def __init__(self, owner: str = "CrossMoments.update"):
        self.owner = owner
        self.joint = Moments(owner=owner)
        self._derived: dict[Hashable, Any] = {}

    # -- accumulation ----------------------------------------------------------------------------------------

    def update(self, old: MatrixLike, new: MatrixLike, sample_weight: ArrayLike | None = None) -> CrossMoments:
        """Take in a batch of rows; on bad input nothing changes.

        Parameters
        ----------
        old, new : array-like of shape (n, p) and (n, q)
            Row i of both is the same thing.
        sample_weight : array-like of shape (n,), optional
        """
        old, new = check_two_sides(old, new, self.owner)
        single = old.dtype == new.dtype == np.float32
        batch = Moments("auto" if single else "float64", owner=self.owner)
        batch.update(old, targets=new, sample_weight=sample_weight)
        return self._take_in(batch)

    def merge(self, other: CrossMoments) -> CrossMoments:
        """Take in the moments of other pairs, exactly as if they had been seen here."""
        return self._take_in(other.joint)

    def _take_in(self, joint: Moments) -> CrossMoments:
        if self.rows and joint.rows and (joint.p, joint.q) != (self.p, self.q):
            raise InvalidInputError(
                f"{self.owner}: pairs of widths {self.p} and {self.q} cannot take in pairs of {joint.p} and {joint.q}."
            )
        self.joint.merge(joint)
        self._derived = {}
        return self

    def without(self, part: CrossMoments) -> CrossMoments:
        """Return the moments of the pairs that were seen here and not there; see :meth:`Moments.without`."""
        rest = CrossMoments(self.owner)
        rest.joint = self.joint.without(part.joint)
        return rest

    # -- state -----------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return all that is known as arrays, from which ``from_arrays`` builds the same object."""
        return self.joint.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> CrossMoments:
        """Undo ``to_arrays``."""
        made = cls()
        made.joint = Moments.from_arrays(arrays)
        if made.rows and not (made.p and made.q):
            raise CorruptModelError(f"These are not the arrays of two sides: widths {made.p} and {made.q}.")
        return made

    # -- what follows from them ------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Number of pairs seen."""
        return self.joint.rows

    @property
    def n(self) -> float:
        """Total weight."""
        return self.joint.n

    @property
    def p(self) -> int:
        """Width of the old vectors."""
        return self.joint.p

    @property
    def q(self) -> int:
        """Width of the new vectors."""
        return self.joint.q

    @property
    def old_mean(self) -> np.ndarray:
        """Mean of the old vectors."""
        return self.joint.mean

    @property
    def new_mean(self) -> np.ndarray:
        """Mean of the new vectors."""
        return self.joint.target_mean

    @property
    def old_scatter(self) -> np.ndarray:
        """Covariance of the old vectors, shape (p, p)."""
        return self._scatters[: self.p, : self.p]

    @property
    def new_scatter(self) -> np.ndarray:
        """Covariance of the new vectors, shape (q, q)."""
        return self._scatters[self.p :, self.p :]

    @property
    def cross(self) -> np.ndarray:
        """Cross-covariance of old and new vectors, shape (p, q)."""
        return self._scatters[: self.p, self.p :]

    @property
    def _scatters(self) -> np.ndarray:
        return self.once("scatters", lambda: self.joint._total)

    @property
    def old_eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, descending and none negative, and eigenvectors of the old covariance."""
        return self.once("old", lambda: _eigen(self.old_scatter))

    @property
    def new_eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, descending and none negative, and eigenvectors of the new covariance."""
        return self.once("new", lambda: _eigen(self.new_scatter))

    @property
    def correlated(self) -> bool:
        """Whether the cross-covariance is larger, by three standard deviations, than that of unrelated rows.

        For unrelated rows ``|E[a b^T]|^2`` has mean ``tr C_a tr C_b / n`` and standard deviation about
        ``sqrt(2) |C_a| |C_b| / n`` (the RV coefficient: Escoufier 1973; Kazi-Aoual et al. 1995).
        """
        old, new, n = self.old_scatter, self.new_scatter, self.rows
        expected = np.trace(old) * np.trace(new) / n
        spread = np.sqrt(2.0) * np.linalg.norm(old) * np.linalg.norm(new) / n
        return bool(np.square(self.cross).sum() > expected + 3 * spread)

    def once(self, key: Hashable, compute: Callable[[], Derived]) -> Derived:
        """Return what `compute` gives, computed the first time it is asked for: several methods share it."""
        if key not in self._derived:
            self._derived[key] = compute()
        found: Derived = self._derived[key]
        return found

    def about_zero(self) -> CrossMoments:
        """Return the same moments with scatters about zero in place of covariances: ``E[a b^T]`` of raw vectors."""

        def compute() -> CrossMoments:
            raw = CrossMoments(self.owner)
            raw.joint = self.joint
            mean = np.concatenate([self.old_mean, self.new_mean])
            raw._derived["scatters"] = self._scatters + np.outer(mean, mean)
            return raw

        return self.once("about zero", compute)

    def exchanged(self) -> CrossMoments:
        """Return the same moments with old and new exchanged: what the other direction is fitted on."""

        def compute() -> CrossMoments:
            turned, held = CrossMoments(self.owner), self.joint
            joint, order = Moments(held.precision), np.r_[self.p : self.p + self.q, : self.p]
            joint.rows, joint.p, joint.q, joint.eps = self.rows, self.q, self.p, held.eps
            joint.input_eps, joint.target_eps = held.target_eps, held.input_eps
            joint.group_labels, joint.group_weight = held.group_labels, held.group_weight
            joint.group_mean, joint.within = held.group_mean[:, order], held.within[np.ix_(order, order)]
            turned.joint = joint
            turned._derived["scatters"] = self._scatters[np.ix_(order, order)]
            turned._derived |= {"old": self.new_eigen, "new": self.old_eigen}
            return turned

        return self.once("exchanged", compute)


def check_two_sides(old: MatrixLike, new: MatrixLike, owner: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of two models as finite matrices with as many rows."""
    old, new = (check_matrix(side, owner, name) for side, name in ((old, "old"), (new, "new")))
    check_same_length(old, new, "old", "new", owner)
    return old, new


def _eigen(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = ordered_eigh(S)
    return np.maximum(values, 0.0), vectors
