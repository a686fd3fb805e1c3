"""A bounded sample of rows that does not depend on how the rows arrived.

Mining neighbors and choosing what is left to "auto" need some rows, not only moments. Each row gets a priority by
hashing its content, and the rows of lowest priority stay. So the sample is the same for any batching, any
partition and any order of merging, and choices made from it are too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from firstk._base.arrays import under, within
from firstk._base.rows import Rows, as_dense, projected, sliceable
from firstk.exceptions import CorruptModelError
from firstk.moments.fingerprint import row_hashes

_FIRST_PASS = 4096
# Columns that hold vectors; others hold what belongs to them.
VECTORS = ("X", "left", "right")


class RowSample:
    """The `capacity` rows of lowest hash among all rows seen, each with whatever belongs to it.

    Parameters
    ----------
    capacity : int
        How many rows are kept; 0 keeps none.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> one = RowSample(4).update({"X": X})
    >>> two = RowSample(4).update({"X": X[5:]}).merge(RowSample(4).update({"X": X[:5]}))
    >>> np.array_equal(one["X"], two["X"])
    True
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.priority = np.zeros(0, dtype=np.uint64)
        self.columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.priority)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def update(self, columns: Mapping[str, Rows | None], priority: np.ndarray | None = None) -> RowSample:
        """Take in a batch: a mapping from names to arrays with one row each; None is left out.

        `priority` is a hash of each row where one is at hand, always of the same kind; `row_hashes` if not given.
        """
        present = {name: sliceable(part) for name, part in columns.items() if part is not None}
        if not self.capacity:
            return self
        n = next(iter(present.values())).shape[0]
        for start in range(0, n, _FIRST_PASS):
            rows = slice(start, start + _FIRST_PASS)
            block = {name: part[rows] for name, part in present.items()}
            hashes = row_hashes(block) if priority is None else priority[rows]
            self._keep_lowest(hashes, {name: as_dense(part) for name, part in block.items()})
        return self

    def merge(self, other: RowSample) -> RowSample:
        """Take in another sample."""
        if len(other) and self.capacity:
            self._keep_lowest(other.priority, other.columns)
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the sample as arrays, from which ``from_arrays`` builds the same object."""
        facts = {"capacity": np.array([self.capacity], dtype=np.int64), "priority": self.priority}
        return facts | under("columns", self.columns)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> RowSample:
        """Undo ``to_arrays``."""
        try:
            made = cls(int(arrays["capacity"][0]))
            made.priority, made.columns = np.array(arrays["priority"]), within(arrays, "columns")
        except (KeyError, ValueError, IndexError) as error:
            raise CorruptModelError(f"These are not the arrays of a sample of rows ({error!r}).") from None
        if any(len(part) != len(made) for part in made.columns.values()):
            raise CorruptModelError("The columns of a sample of rows differ in length.")
        return made

    def take(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the given rows of every column."""
        return {name: part[rows] for name, part in self.columns.items()}

    def from_basis(self, basis: np.ndarray) -> RowSample:
        """Return the sample in full coordinates, when it was taken in those of an orthonormal basis."""
        return self.in_basis(basis.T)

    def in_basis(self, basis: np.ndarray) -> RowSample:
        """Return the sample with its vectors in the coordinates of a basis, in the order that it has."""
        turned = RowSample(self.capacity)
        turned.priority = self.priority
        vectors = {name: part for name, part in self.columns.items() if name in VECTORS}
        turned.columns = self.columns | projected(vectors, basis)
        return turned

    def _keep_lowest(self, priority: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        if len(self) >= self.capacity:  # most rows of a long stream lose at once
            winners = priority < self.priority[-1]
            if not winners.any():
                return
            priority, columns = priority[winners], {name: part[winners] for name, part in columns.items()}
        before, own = len(self), self.columns if len(self) else {}
        joined = np.concatenate([self.priority, priority])
        order = np.argsort(joined, kind="stable")[: self.capacity]
        self.priority = joined[order]
        self.columns = {name: _stacked(own, columns, name, before, len(priority))[order] for name in {**own, **columns}}


def _stacked(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], name: str, n_first: int, n_second: int
) -> np.ndarray:
    """Put two parts of a column together; only weights come and go, and without one a row counts once."""
    if not n_first:
        return np.array(second[name])
    parts = (columns.get(name, np.ones(n)) for columns, n in ((first, n_first), (second, n_second)))
    return np.concatenate(list(parts))
