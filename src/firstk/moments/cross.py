"""Moments of two sets of columns that describe the same rows: the vectors of one text under two models.

The scatter of either side and the cross scatter of the two, in one pass, on any partition: `Moments` of the old
vectors with the new ones as targets hold all three, so updates, merges, weights and folds are theirs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.array_types import MatrixLike
from firstk._base.arrays import under, within
from firstk._base.checks import check_matrix, check_same_length, check_weights
from firstk._base.linalg import ordered_eigh
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.moments.fingerprint import row_priorities
from firstk.moments.moments import Moments
from firstk.moments.statistics import RowSample

# Pairs that are sampled, and numbers in them at most.
_SAMPLE_ROWS, _FEWEST_SAMPLED, _SAMPLE_NUMBERS = 4096, 256, 2**25
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
    sample : RowSample
        The pairs of lowest hash, the same for any batches and any order: "left" are a, "right" b, "weight" their
        weights where they have any. Empty unless the moments come from `sampled`.

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
        self.sample = RowSample(0)
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
        single, batch = old.dtype == new.dtype == np.float32, CrossMoments(self.owner)
        batch.joint = Moments("auto" if single else "float64", owner=self.owner)
        batch.joint.update(old, targets=new, sample_weight=sample_weight)
        return self.merge(batch)

    @classmethod
    def sampled(
        cls, old: MatrixLike, new: MatrixLike, sample_weight: ArrayLike | None = None, owner: str = "CrossMoments"
    ) -> CrossMoments:
        """Return the moments of a batch of pairs, with a bounded sample of them."""
        old, new = check_two_sides(old, new, owner)
        weight = check_weights(sample_weight, len(old), owner)
        made = cls(owner).update(old, new, weight)
        columns: dict[str, np.ndarray | None] = {"left": old, "right": new, "weight": weight}
        if weight is not None:  # rows of weight zero are as good as absent
            columns = {name: part[weight > 0] for name, part in columns.items() if part is not None}
        made.sample = RowSample(min(_SAMPLE_ROWS, max(_FEWEST_SAMPLED, _SAMPLE_NUMBERS // (made.p + made.q))))
        made.sample.update(columns, row_priorities(columns))
        return made

    def merge(self, other: CrossMoments) -> CrossMoments:
        """Take in the moments of other pairs, exactly as if they had been seen here."""
        mine, theirs = (self.p, self.q), (other.p, other.q)
        if self.rows and other.rows and mine != theirs:
            raise InvalidInputError(
                f"{self.owner}: pairs of widths {self.p} and {self.q} cannot take in pairs of {other.p} and {other.q}."
            )
        if self.rows:
            self.sample.merge(other.sample)
        else:
            self.sample = copy.deepcopy(other.sample)
        self.joint.merge(other.joint)
        self._derived = {}
        return self

    def without(self, part: CrossMoments) -> CrossMoments:
        """Return the moments of the pairs that were seen here and not there; see :meth:`Moments.without`."""
        rest = CrossMoments(self.owner)
        rest.joint = self.joint.without(part.joint)
        return rest

    # -- state -----------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what is kept as arrays, to be stored or sent: ``from_arrays`` builds the same object from them."""
        return under("moments", self.joint.to_arrays()) | under("sample", self.sample.to_arrays())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> CrossMoments:
        """Undo ``to_arrays``."""
        made = cls()
        made.joint = Moments.from_arrays(within(arrays, "moments"))
        made.sample = RowSample.from_arrays(within(arrays, "sample"))
        if made.rows and not (made.p and made.q):
            raise CorruptModelError(f"These are not the arrays of two sides: widths {made.p} and {made.q}.")
        widths = tuple(made.sample[name].shape[1:] for name in ("left", "right") if name in made.sample)
        if made.sample.capacity and widths != ((made.p,), (made.q,)):
            raise CorruptModelError(f"The sample of these moments has widths {widths}, not {made.p}, {made.q}.")
        return made

    @property
    def unit_norms(self) -> tuple[bool, bool]:
        """Whether old and new vectors have unit norm, to 1 in 1,000, as far as the sample shows."""
        old, new = (np.linalg.norm(self.sample[name], axis=1) for name in ("left", "right"))
        return bool((np.abs(old - 1) < 1e-3).all()), bool((np.abs(new - 1) < 1e-3).all())

    def check_enough(self, owner: str) -> None:
        """Raise InvalidInputError if there is nothing to align: fewer than two pairs, or a side that is constant."""
        if len(self.sample) < 2:
            raise InvalidInputError(
                f"{owner} needs at least two pairs whose weight is not zero. Got {len(self.sample)}: embed more texts "
                "by both models."
            )
        for side, scatter in (("old", self.old_scatter), ("new", self.new_scatter)):
            if not np.trace(scatter) > 0:
                raise InvalidInputError(
                    f"{owner} needs vectors that vary, and all {self.rows} rows of '{side}' are the same. Check "
                    "that they are embeddings of different texts."
                )

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
