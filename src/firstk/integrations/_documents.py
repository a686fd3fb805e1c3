"""Documents to add to a search index, in blocks, with their ids and other columns.

They may be an array, or a table of files larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_matrix
from firstk.data.files import VectorTable
from firstk.data.files.contract import Batch
from firstk.data.files.vector_columns import missing_column
from firstk.exceptions import InvalidInputError

# The column that names documents, where nothing else is said.
ID_COLUMN = "id"


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

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the other columns of a table."""
        return self.source.columns if isinstance(self.source, VectorTable) else ()

    def column(self, name: str) -> np.ndarray:
        """Return one other column of a table, an entry for each row, those that will be dropped included."""
        if name not in self.columns:
            raise missing_column(getattr(self.source, "path", "an array"), name, self.columns)
        assert isinstance(self.source, VectorTable)
        return np.concatenate([np.asarray(shard.column(name)) for shard in self.source.shards])

    def blocks(self, size: int, columns: Sequence[str] = ()) -> Iterator[Batch]:
        """Yield vectors, their row numbers and other columns, at most `size` rows at a time."""
        if isinstance(self.source, VectorTable):
            yield from self.source.batches(size, columns)
            return
        for start in range(0, len(self.source), size):
            part = self.source[start : start + size]
            yield Batch(part, {}, np.arange(start, start + len(part)))

    def sample(self, most: int) -> np.ndarray:
        """Return at most `most` rows, evenly spaced, so that the sample is representative of sorted documents too."""
        step = -(-self.rows // most)
        return np.concatenate([block.vectors[block.rows % step == 0] for block in self.blocks(65_536)])
