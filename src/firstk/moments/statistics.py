"""Statistics of the data that a fit needs: moments, and a bounded sample of rows; additive, and storable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from firstk._base.arrays import under, within
from firstk.exceptions import CorruptModelError
from firstk.moments.fingerprint import Fingerprint
from firstk.moments.moments import Moments
from firstk.moments.pairs import PairMoments
from firstk.moments.row_sample import RowSample

Derived = TypeVar("Derived")


@dataclass
class Statistics:
    """What is kept of the data: moments, and a bounded sample of rows where the objective needs one.

    Attributes
    ----------
    moments : Moments or PairMoments
    sample : RowSample
    n_features : int
        p, the width of the vectors.
    basis : ndarray of shape (p, r), optional
        Orthonormal; when it is there, moments and sample are written in its coordinates.
    derived : dict
        What was computed from the rest, once.
    fingerprint : Fingerprint
        Of the rows seen, as they came.
    """

    moments: Moments | PairMoments
    sample: RowSample
    n_features: int
    basis: np.ndarray | None = None
    derived: dict[str, Any] = field(default_factory=dict)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)

    def merge(self, other: Statistics) -> Statistics:
        """Take in the statistics of other data."""
        mine, theirs = self.in_full_coordinates(), other.in_full_coordinates()
        mine.moments.merge(theirs.moments)  # type: ignore[arg-type]
        mine.sample.merge(theirs.sample)
        mine.fingerprint += theirs.fingerprint
        return mine

    def in_full_coordinates(self) -> Statistics:
        """Return the statistics in full coordinates."""
        if self.basis is None:
            return Statistics(self.moments, self.sample, self.n_features, fingerprint=self.fingerprint)
        moments, sample = self.moments.from_basis(self.basis), self.sample.from_basis(self.basis)
        return Statistics(moments, sample, self.n_features, fingerprint=self.fingerprint)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what is kept of the data as arrays of numbers and text: to be stored or sent, without pickle."""
        full = self.in_full_coordinates()
        counts = np.array([full.n_features, full.fingerprint.rows, full.fingerprint.total], dtype=np.uint64)
        return (
            {"counts": counts} | under("moments", full.moments.to_arrays()) | under("sample", full.sample.to_arrays())
        )

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Statistics:
        """Undo ``to_arrays``."""
        try:
            n_features, rows, total = (int(count) for count in arrays["counts"])
            moments = within(arrays, "moments")
            kind: type[Moments | PairMoments] = PairMoments if "third" in moments else Moments
            made = cls(kind.from_arrays(moments), RowSample.from_arrays(within(arrays, "sample")), n_features)
            made.fingerprint = Fingerprint(rows, total)
            wrong = _nonsense(arrays) or _misfit(made)
        except CorruptModelError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise CorruptModelError(f"These are not the arrays of statistics ({error!r:.200}).") from None
        if wrong:
            raise CorruptModelError(f"These are not the arrays of statistics: {wrong}.")
        return made

    def once(self, key: str, compute: Callable[[], Derived]) -> Derived:
        """Return a derived quantity, computed the first time it is asked for."""
        if key not in self.derived:
            self.derived[key] = compute()
        return self.derived[key]


# Counts and flags are whole numbers, labels and targets of sampled rows may be anything; all else has fractions.
_WHOLE = (
    "counts",
    "moments.counts",
    "moments.joint.counts",
    "moments.with_scores",
    "sample.capacity",
    "sample.priority",
)


_FREE = ("sample.columns.", "moments.group_labels", "moments.joint.group_labels")


_TEXT = ("moments.precision", "moments.joint.precision")


def _nonsense(arrays: Mapping[str, np.ndarray]) -> str:
    """Say which array cannot be one of statistics; nothing where all can."""
    for name, part in arrays.items():
        kinds = "iu" if name in _WHOLE else "UO" if name in _TEXT else "biufUO" if name.startswith(_FREE) else "f"
        if part.dtype.kind not in kinds or not part.ndim:
            return f"'{name}' holds {part.dtype} of shape {part.shape}"
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            return f"'{name}' holds NaN or infinity"
        if name.endswith("group_weight") and (part < 0).any():
            return f"'{name}' holds a negative weight"
    return ""


def _misfit(made: Statistics) -> str:
    """Say which parts of statistics do not fit together; nothing where all do."""
    moments, sample = made.moments, made.sample
    if made.n_features < 1 or moments.rows < 0 or (moments.rows and moments.p != made.n_features):
        return f"{moments.rows} rows of width {moments.p} in a space of {made.n_features} dimensions"
    if made.fingerprint.rows < 0 or made.fingerprint.total < 0:
        return f"a fingerprint of {made.fingerprint.rows} rows"
    if sample.capacity < 0 or len(sample) > sample.capacity or sample.priority.dtype != np.uint64:
        return f"{len(sample)} rows in a sample of {sample.capacity}"
    return ""
