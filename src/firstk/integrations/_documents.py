"""Documents to add to a search index, in blocks.

They may be an array, or a table of files larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

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

    source: np.ndarray | VectorTable

    @classmethod
    def of(cls, source: ArrayLike | VectorTable, width: int, owner: str, name: str) -> Documents:
        """Check an array, or the width of a table of :func:`firstk.data.files.open_vectors`."""
        if not isinstance(source, VectorTable):
            return cls(check_matrix(source, owner, name, width=width))
        if source.width != width:
            raise InvalidInputError(f"{owner} takes '{name}' with {width} columns. '{source.path}' has {source.width}.")
        return cls(source)

    @property
    def rows(self) -> int:
        """Number of documents; for a table, including rows that will be dropped."""
        return self.source.rows if isinstance(self.source, VectorTable) else len(self.source)

    @property
    def gapless(self) -> bool:
        """Whether no row is dropped, so that row numbers are positions."""
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
        """Return at most `most` rows, evenly spaced, so that the sample is representative of sorted documents too."""
        step = -(-self.rows // most)
        return np.concatenate([vectors[rows % step == 0] for vectors, rows in self.blocks(65_536)])
