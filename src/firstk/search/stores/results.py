"""Results of searches, query by query, reranked in numpy where an engine cannot compare by a second vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstk._base.rows import unit_rows
from firstk.search.stores.contract import Id, Neighbors, StoredRows


def scores_of(codes: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    """Return cosines or inner products (higher is better) or distances (lower is better), in float64."""
    Z, q = codes.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        return np.asarray(np.linalg.norm(Z - q, axis=1))
    if metric == "cosine":
        Z, q = unit_rows(Z), unit_rows(q[None])[0]
    return np.asarray(Z @ q)


def best_first(scores: np.ndarray, metric: str, limit: int) -> np.ndarray:
    """Return the places of the best scores, best first, ties in the order given."""
    return np.argsort(scores if metric == "l2" else -scores, kind="stable")[:limit]


@dataclass(eq=False)
class Gathered:
    """Results that are being collected, query by query."""

    found: Neighbors = field(default_factory=lambda: Neighbors([], [], []))

    def add(self, ids: Sequence[Id], scores: Sequence[float], payloads: Sequence[Mapping[str, Any]]) -> None:
        """Add the results of the next query; the score of a code of zeros, which has no cosine, is 0."""
        self.found.ids.append(list(ids))
        self.found.scores.append([0.0 if score is None or score != score else float(score) for score in scores])
        self.found.payloads.append([dict(one) for one in payloads])

    def add_reranked(self, shortlist: StoredRows, query: np.ndarray, metric: str, limit: int) -> None:
        """Add the best of a shortlist by its codes."""
        if not len(shortlist.ids):
            self.add([], [], [])
            return
        scores = scores_of(np.asarray(shortlist.codes, dtype=np.float32), query, metric)
        best = best_first(scores, metric, limit)
        self.add([shortlist.ids[i] for i in best], scores[best].tolist(), [shortlist.payloads[i] for i in best])
