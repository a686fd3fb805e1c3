"""The stored texts nearest to a few queries, by all numbers and by every prefix of some codes, as a record.

An accuracy says how often a short code errs; the texts that it finds say how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_same_length, is_int
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.encoder.fitted import FittedEncoder

# Cosines that differ by less are equal, and the earlier row comes first: their last digits are the processor's own.
ROUNDING = 6


@dataclass(frozen=True, eq=False)
class TextNeighbors:
    """What a few queries find.

    Attributes
    ----------
    texts, labels : tuple of str
        The queries, and the class of each.
    stored_texts, stored_labels : tuple of str
        Of the rows that are searched.
    raw : ndarray of int of shape (queries, neighbors)
        Rows found by all numbers, nearest first.
    by_prefix : mapping from names of codes to ndarray of int of shape (d, queries, neighbors)
        Rows found by the first k coordinates, in entry k - 1.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    stored_texts: tuple[str, ...]
    stored_labels: tuple[str, ...]
    raw: np.ndarray
    by_prefix: Mapping[str, np.ndarray]

    def of_raw(self, query: int) -> np.ndarray:
        """Return the rows that all numbers find, nearest first."""
        return self.raw[query]

    def at(self, code: str, k: int, query: int) -> np.ndarray:
        """Return the rows that the first k coordinates of a code find, of its longest prefix if it is shorter."""
        found = self.by_prefix[code]
        return found[min(k, len(found)) - 1, query]


def neighbors_of_texts(
    codes: Mapping[str, FittedEncoder],
    queries: ArrayLike,
    stored: ArrayLike,
    *,
    texts: Sequence[str],
    stored_texts: Sequence[str],
    labels: Sequence[str],
    stored_labels: Sequence[str],
    n_neighbors: int = 3,
) -> TextNeighbors:
    """Search by cosine, with all numbers and with every prefix of each code.

    Parameters
    ----------
    codes : mapping from names to FittedEncoder
    queries, stored : array-like of shape (n, p)
        Raw vectors.
    texts, labels : sequence of str
        One for each query.
    stored_texts, stored_labels : sequence of str
        One for each stored row.
    n_neighbors : int
        How many rows each query finds.
    """
    queries, stored = np.asarray(queries), np.asarray(stored)
    for name, column, rows in (
        ("texts", texts, queries),
        ("labels", labels, queries),
        ("stored_texts", stored_texts, stored),
        ("stored_labels", stored_labels, stored),
    ):
        check_same_length(rows, column, "vectors", name, "neighbors_of_texts")
    if not is_int(n_neighbors) or not 1 <= n_neighbors <= len(stored):
        raise InvalidInputError(
            f"n_neighbors must be an int from 1 to {len(stored)}, the number of stored rows. Got {n_neighbors!r}."
        )
    found = {
        name: _nearest(encoder.encode(queries, side="query"), encoder.encode(stored), n_neighbors)
        for name, encoder in codes.items()
    }
    raw = _nearest(queries, stored, n_neighbors, every=False)[-1]
    return TextNeighbors(tuple(texts), tuple(labels), tuple(stored_texts), tuple(stored_labels), raw, found)


def _nearest(queries: np.ndarray, stored: np.ndarray, count: int, *, every: bool = True) -> np.ndarray:
    """Return the rows of the largest cosines, of shape (prefixes, queries, count); with every=False of all numbers."""
    d = stored.shape[1]
    lengths = range(1, d + 1) if every else (d,)
    found = np.empty((len(lengths), len(queries), count), np.int64)
    for place, k in enumerate(lengths):
        left, right = (X[:, :k].astype(np.float64) for X in (queries, stored))
        norms = np.linalg.norm(left, axis=1)[:, None] * np.linalg.norm(right, axis=1)
        cosines = np.divide(left @ right.T, norms, out=np.zeros_like(norms), where=norms > 0)
        found[place] = np.argsort(-np.round(cosines, ROUNDING), axis=1, kind="stable")[:, :count]
    return found
