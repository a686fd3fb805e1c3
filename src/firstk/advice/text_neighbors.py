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
    found : mapping from names of codes to ndarray of int of shape (d, queries, neighbors)
        Rows found by the first k coordinates, in entry k - 1, nearest first; "" has those of all numbers, in one entry.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    stored_texts: tuple[str, ...]
    stored_labels: tuple[str, ...]
    found: Mapping[str, np.ndarray]

    def of_raw(self, query: int) -> np.ndarray:
        """Return the rows that all numbers find, nearest first."""
        return self.at("", 1, query)

    def at(self, code: str, k: int, query: int) -> np.ndarray:
        """Return the rows that the first k coordinates of a code find, of its longest prefix if it is shorter."""
        found = self.found[code]
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

    def nearest(asked: np.ndarray, among: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
        found = np.empty((len(lengths), len(asked), n_neighbors), np.int64)
        for place, k in enumerate(lengths):
            left, right = (X[:, :k].astype(np.float64) for X in (asked, among))
            norms = np.linalg.norm(left, axis=1)[:, None] * np.linalg.norm(right, axis=1)
            cosines = np.divide(left @ right.T, norms, out=np.zeros_like(norms), where=norms > 0)
            found[place] = np.argsort(-np.round(cosines, ROUNDING), axis=1, kind="stable")[:, :n_neighbors]
        return found

    found = {"": nearest(queries, stored, [stored.shape[1]])}
    for name, encoder in codes.items():
        found[name] = nearest(encoder.encode(queries, side="query"), encoder.encode(stored), range(1, encoder.d + 1))
    return TextNeighbors(tuple(texts), tuple(labels), tuple(stored_texts), tuple(stored_labels), found)
