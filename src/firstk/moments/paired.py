"""What is kept of a stream of pairs of vectors of two models: cross moments, and a bounded sample of the pairs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.array_types import MatrixLike
from firstk._base.arrays import under, within
from firstk._base.checks import check_weights
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.moments.cross import CrossMoments, check_two_sides
from firstk.moments.fingerprint import row_priorities
from firstk.moments.statistics import RowSample

# Pairs that are sampled, and numbers in them at most.
_SAMPLE_ROWS, _FEWEST_SAMPLED, _SAMPLE_NUMBERS = 4096, 256, 2**25


@dataclass
class PairedStatistics:
    """Cross moments of a stream of pairs, and the pairs of lowest hash: the same for any batches and any order.

    Attributes
    ----------
    moments : CrossMoments
    sample : RowSample
        "left" are old vectors, "right" new ones, "weight" their weights where they have any.
    """

    moments: CrossMoments = field(default_factory=CrossMoments)
    sample: RowSample = field(default_factory=lambda: RowSample(0))

    @classmethod
    def of(
        cls, old: MatrixLike, new: MatrixLike, sample_weight: ArrayLike | None = None, owner: str = "PairedStatistics"
    ) -> PairedStatistics:
        """Return the statistics of a batch of pairs."""
        old, new = check_two_sides(old, new, owner)
        weight = check_weights(sample_weight, len(old), owner)
        moments = CrossMoments(owner).update(old, new, weight)
        columns: dict[str, np.ndarray | None] = {"left": old, "right": new, "weight": weight}
        if weight is not None:  # rows of weight zero are as good as absent
            columns = {name: part[weight > 0] for name, part in columns.items() if part is not None}
        sample = RowSample(min(_SAMPLE_ROWS, max(_FEWEST_SAMPLED, _SAMPLE_NUMBERS // (moments.p + moments.q))))
        return cls(moments, sample.update(columns, row_priorities(columns)))

    def merge(self, other: PairedStatistics) -> PairedStatistics:
        """Take in the statistics of other pairs, exactly as if they had been seen here."""
        if not self.moments.rows:
            self.moments.merge(other.moments)
            self.sample = copy.deepcopy(other.sample)
            return self
        self.moments.merge(other.moments)
        self.sample.merge(other.sample)
        return self

    @property
    def unit_norms(self) -> tuple[bool, bool]:
        """Whether old and new vectors have unit norm, to 1 in 1,000, as far as the sample shows."""
        old, new = (np.linalg.norm(self.sample[name], axis=1) for name in ("left", "right"))
        return bool((np.abs(old - 1) < 1e-3).all()), bool((np.abs(new - 1) < 1e-3).all())

    def check_enough(self, owner: str) -> None:
        """Raise InvalidInputError if there is nothing to align: fewer than two pairs, or a side that is constant."""
        moments = self.moments
        if len(self.sample) < 2:
            raise InvalidInputError(
                f"{owner} needs at least two pairs whose weight is not zero. Got {len(self.sample)}: embed more texts "
                "by both models."
            )
        for side, scatter in (("old", moments.old_scatter), ("new", moments.new_scatter)):
            if not np.trace(scatter) > 0:
                raise InvalidInputError(
                    f"{owner} needs vectors that vary, and all {moments.rows} rows of '{side}' are the same. Check "
                    "that they are embeddings of different texts."
                )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what is kept as arrays: to be stored or sent, without pickle."""
        return under("moments", self.moments.to_arrays()) | under("sample", self.sample.to_arrays())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PairedStatistics:
        """Undo ``to_arrays``."""
        moments = CrossMoments.from_arrays(within(arrays, "moments"))
        sample = RowSample.from_arrays(within(arrays, "sample"))
        widths = tuple(sample[name].shape[1:] for name in ("left", "right") if name in sample)
        if widths != ((moments.p,), (moments.q,)):
            raise CorruptModelError(
                f"The sample of these statistics has widths {widths}, not {moments.p}, {moments.q}."
            )
        return cls(moments, sample)
