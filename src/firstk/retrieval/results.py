"""SearchResult: the neighbors that a search returns, and its cost.

Costs are counted in multiply-adds, which do not depend on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Neighbors of each query, nearest first, and the work they took.

    Attributes
    ----------
    ids : ndarray of int64, shape (m, n_neighbors)
    scores : ndarray of float32, shape (m, n_neighbors)
        Squared distances ("l2", smaller is nearer), dot products or cosines (larger is nearer).
    multiply_adds : ndarray of int64, shape (m,)
        Work of each query: the scan of the first stage, every coordinate that was added afterwards, the bounds
        that were looked at, and the query's own norms.
    brute_force : int
        Work of one query without a funnel: rows times width.
    encoding : int
        Work of encoding one query, where the index holds an encoder and was given vectors; not part of the above,
        because a search without a funnel over codes would pay it too.
    """

    ids: np.ndarray
    scores: np.ndarray
    multiply_adds: np.ndarray
    brute_force: int
    encoding: int = 0

    @property
    def fraction(self) -> float:
        """Multiply-adds used, as a share of those of brute force."""
        return float(self.multiply_adds.mean()) / self.brute_force

    def __repr__(self) -> str:
        m, n = self.ids.shape
        return f"SearchResult({n} neighbors of {m} queries, {self.fraction:.1%} of brute force's multiply-adds)"
