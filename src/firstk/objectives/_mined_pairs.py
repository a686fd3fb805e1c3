"""Mined pairs: each row of a sample and its nearest other row, for objectives that learn from what is similar.

Neighbors are searched once for a sample. A fold of it keeps those neighbors that are in the fold, and looks again for
rows whose nearest few are all held out: a held-out row is never a neighbor of what is fitted on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk._base.linalg import symmetrised
from firstk._base.rows import distinct_rows
from firstk.exceptions import InvalidInputError
from firstk.metrics import nearest_neighbors
from firstk.moments.statistics import Statistics
from firstk.objectives._common import SAMPLE_ROWS

# Neighbors that are listed for each row: of eight, a fold of five rarely holds out all.
LISTED = 8


def mined_agreement(statistics: Statistics) -> np.ndarray:
    """Return ``sym E[x x'^T]`` over pairs of each row of the sample and its nearest other row, each side centered.

    Duplicate rows are used once: a copy is not informative as a neighbor.
    """
    part = statistics.part_of
    whole = statistics if part is None else part.whole
    mined = whole.shared("mined neighbors", lambda: _Mined.of(whole))
    products = whole.shared("mined products", mined.products)
    if part is None:
        return mined.agreement(None, products)
    # The vectors of a pair stand one after the other.
    places = part.rows if "X" in statistics.sample else (2 * part.rows[:, None] + [0, 1]).ravel()
    kept = np.unique(mined.which[places])
    if kept[-1] >= len(mined.rows):  # more rows than were searched
        return _Mined.of(statistics).agreement()
    return mined.agreement(kept, products)


@dataclass(frozen=True, eq=False)
class _Mined:
    """Distinct rows of a sample, and the nearest others of each.

    Attributes
    ----------
    rows : ndarray of shape (m, p)
        Distinct rows, less their mean: no digits are lost to an offset. In the precision in which they were given.
    which : ndarray of int
        The distinct row that each vector of the sample is; beyond m, one that was not searched.
    nearest : ndarray of int of shape (m, n)
        Nearest first.
    short : ndarray of shape (m, p)
        The rows by which neighbors are found.
    """

    rows: np.ndarray
    which: np.ndarray
    nearest: np.ndarray
    short: np.ndarray

    @classmethod
    def of(cls, statistics: Statistics) -> _Mined:
        """Search the first distinct rows of a sample."""
        X = _vectors(statistics)
        first, which = distinct_rows(X)
        given = X.dtype
        X = X[first[:SAMPLE_ROWS]].astype(np.float64)
        if len(X) < 3:
            raise InvalidInputError(f"Mining neighbors needs at least three distinct rows. Got {len(X)}.")
        size = np.abs(X).max(axis=1, keepdims=True)  # none too large or too small for single precision
        short = (X / np.where(size > 0, size, 1.0)).astype(np.float32)
        n = min(LISTED, len(X) - 1) if statistics.shares else 1
        X -= X.mean(axis=0)  # a copy of the sample's rows already
        return cls(X.astype(given, copy=False), which, nearest_neighbors(short, short, n, exclude_self=True), short)

    def products(self) -> np.ndarray:
        """Return the sum of x x'^T over all rows and their nearest others."""
        return (self.rows.T @ self.rows[self.nearest[:, 0]]).astype(np.float64)

    def agreement(self, kept: np.ndarray | None = None, products: np.ndarray | None = None) -> np.ndarray:
        """Return the symmetric cross scatter of rows and their nearest others, among the rows `kept` alone.

        `products` are those of all rows; terms that change are corrected, where they are fewer than those that stay.
        """
        X = self.rows
        if kept is None:
            kept, neighbor = np.arange(len(X)), self.nearest[:, 0]
        else:
            if len(kept) < 3:
                raise InvalidInputError(f"Mining neighbors needs at least three distinct rows. Got {len(kept)}.")
            # The nearest other row of each that is kept, among those that are kept.
            allowed = np.zeros(len(X), dtype=bool)
            allowed[kept] = True
            listed = self.nearest[kept]
            among = allowed[listed]
            neighbor = listed[np.arange(len(kept)), among.argmax(axis=1)]
            again = np.flatnonzero(~among.any(axis=1))
            if len(again):
                nearest = nearest_neighbors(self.short[kept], self.short[kept[again]], 1, exclude_self=again)
                neighbor[again] = kept[nearest[:, 0]]
        old = self.nearest[kept, 0]
        changed = np.flatnonzero(neighbor != old)
        gone = np.setdiff1d(np.arange(len(X)), kept, assume_unique=True)
        if products is None or len(changed) + len(gone) > len(kept):
            total = X[kept].T @ X[neighbor]
        else:
            left = np.vstack([X[kept[changed]], X[gone]])
            right = np.vstack([X[neighbor[changed]] - X[old[changed]], -X[self.nearest[gone, 0]]])
            total = products + left.T @ right
        means = (X[part].mean(axis=0, dtype=np.float64) for part in (kept, neighbor))
        return symmetrised(total / len(kept) - np.outer(*means))


def _vectors(statistics: Statistics) -> np.ndarray:
    """Return the vectors of the first rows of a sample: its rows, or left, right, left, right, ... of its pairs."""
    sample = statistics.sample.first(SAMPLE_ROWS)
    if "X" in sample:
        return sample["X"]
    left, right = sample["left"], sample["right"]
    return np.stack([left, right], axis=1).reshape(-1, left.shape[1])
