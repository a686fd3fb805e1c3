"""Shortlists reranked in numpy, for engines that cannot compare by a second vector."""

from __future__ import annotations

import numpy as np

from firstk._base.rows import unit_rows
from firstk.search.stores.contract import Hits, StoredRows


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


def reranked(shortlist: StoredRows, query: np.ndarray, metric: str, limit: int) -> Hits:
    """Return the best of a shortlist by its codes."""
    if not len(shortlist.ids):
        return [], [], []
    scores = scores_of(np.asarray(shortlist.codes, dtype=np.float32), query, metric)
    best = best_first(scores, metric, limit)
    return [shortlist.ids[i] for i in best], scores[best].tolist(), [shortlist.payloads[i] for i in best]
