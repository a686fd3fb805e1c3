"""What a contender is: settings, each of a stated number of bytes per vector, and what they make of a store.

A setting either rebuilds the stored vectors from its codes, or searches its codes itself. Rebuilt vectors are compared
with float32 queries twice, as they are and divided by their norm (which costs no bytes): a contender keeps what is
better on validation queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.bytes.cases import Axes, Case, nearest

BYTES = (8, 12, 16, 24, 32, 48, 64, 96)


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """Coordinates on some axes that the codes decode to: the vectors are mean + coordinates · axes."""

    coordinates: np.ndarray
    axes: Axes

    def found(self, queries: np.ndarray) -> dict[str, np.ndarray]:
        """Return the nearest rows, by inner product with the vectors as they are, and with normalized ones."""
        Z, mean = self.coordinates, self.axes.mean
        Q = np.ascontiguousarray(queries @ self.axes.rows.T)
        along = self.axes.rows @ mean
        norms = np.sqrt(np.maximum((Z * Z).sum(axis=1) + 2 * Z @ along + mean @ mean, 1e-12))[:, None]
        # One more coordinate carries the product of query and mean, which the norm divides too.
        longer = np.concatenate([Z / norms, 1 / norms], axis=1)
        return {
            "as it is": nearest(Q, Z),
            "normalized": nearest(np.concatenate([Q, (queries @ mean)[:, None]], axis=1), longer),
        }


@dataclass(frozen=True, eq=False)
class Searched:
    """Rows that the contender's own search finds, by the name of the search."""

    rows: Mapping[str, Callable[[np.ndarray], np.ndarray]]

    def found(self, queries: np.ndarray) -> dict[str, np.ndarray]:
        """Return the nearest rows by each search."""
        return {name: np.asarray(search(queries)) for name, search in self.rows.items()}


@dataclass(frozen=True, eq=False)
class Encoded:
    """A store in codes: one or several ways to search them, and what they cost beside the codes."""

    ways: tuple[Rebuilt | Searched, ...]
    codebook_bytes: int
    seconds: Mapping[str, float] = field(default_factory=dict)

    def found(self, queries: np.ndarray) -> dict[str, np.ndarray]:
        """Return the nearest rows in every way."""
        return {name: rows for way in self.ways for name, rows in way.found(queries).items()}


@dataclass(frozen=True)
class Setting:
    """One way to spend bytes: `bytes` counts each number that is stored for a vector."""

    family: str
    name: str
    bytes: int
    encode: Callable[[Case], Encoded] = field(compare=False)
    # Takes minutes to train: left out of a quick run.
    slow: bool = False
    # Whether it may be chosen where more bytes are allowed: ours has nothing to choose.
    for_more_bytes: bool = True
    # Whether scores of an earlier run may be used: not those of code that is being worked on.
    cached: bool = True

    def serves(self, size: int) -> bool:
        """Whether it may be used where a vector may have so many bytes."""
        return self.bytes <= size if self.for_more_bytes else self.bytes == size
