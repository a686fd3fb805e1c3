"""Documents on their way into a store, block by block: an array, or a table of files that is larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._base.checks import check_matrix
from firstk.data.files import VectorTable
from firstk.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class Documents:
    """Raw vectors and their row numbers.

    Attributes
    ----------
    source : ndarray of shape (n, p) or VectorTable
    """

    source: Any

    @classmethod
    def of(cls, source: Any, width: int, owner: str, name: str) -> Documents:
        """Check an array, or the width of a table of :func:`firstk.data.files.open_vectors`."""
        if not isinstance(source, VectorTable):
            return cls(check_matrix(source, owner, name, width=width))
        if source.width != width:
            raise InvalidInputError(f"{owner} takes '{name}' with {width} columns. '{source.path}' has {source.width}.")
        return cls(source)

    @property
    def rows(self) -> int:
        """How many there are; in a table, those that will be dropped included."""
        return self.source.rows if isinstance(self.source, VectorTable) else len(self.source)

    @property
    def gapless(self) -> bool:
        """Whether every row is sure to arrive, so that its number is its place."""
        return not isinstance(self.source, VectorTable) or self.source.nan == "refuse"

    def blocks(self, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield vectors and their row numbers, at most `size` at a time."""
        if isinstance(self.source, VectorTable):
            for batch in self.source.batches(size):
                yield batch.vectors, batch.rows
            return
        for start in range(0, len(self.source), size):
            part = self.source[start : start + size]
            yield part, np.arange(start, start + len(part))

    def sample(self, most: int) -> np.ndarray:
        """Return at most `most` rows, spaced evenly so that a sorted store is not judged by its beginning."""
        step = -(-self.rows // most)
        return np.concatenate([vectors[rows % step == 0] for vectors, rows in self.blocks(65_536)])
