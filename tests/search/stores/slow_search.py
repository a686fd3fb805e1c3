"""The slow way: filter, rank by the short code, rank the shortlist by the full one, all of it in float64."""

from __future__ import annotations

import numpy as np


def unit(Z):
    norms = np.linalg.norm(Z, axis=1, keepdims=True)
    return Z / np.where(norms > 0, norms, 1)


def codes(encoder, X, k, side, metric):
    Z = encoder.encoder_.coordinates(np.asarray(X, np.float64), k, side=side)
    return unit(Z) if metric == "cosine" or encoder.encoder_.normalized else Z


def closeness(queries, documents, metric):
    if metric == "l2":
        return -np.linalg.norm(queries[:, None] - documents, axis=2)
    return queries @ documents.T


def two_stages(encoder, X, Q, limit, short, full, shortlist, metric="cosine", allowed=None):
    """Return row numbers and scores (closeness) of each query, best first."""
    allowed = np.arange(len(X)) if allowed is None else np.asarray(allowed)
    by = {
        k: closeness(codes(encoder, Q, k, "query", metric), codes(encoder, X, k, "document", metric)[allowed], metric)
        for k in {short, full}
    }
    rows, scores = [], []
    for i in range(len(Q)):
        first = np.argsort(-by[short][i], kind="stable")[:shortlist]
        best = first[np.argsort(-by[full][i, first], kind="stable")[:limit]]
        rows.append(allowed[best].tolist())
        scores.append(by[full][i, best].tolist())
    return rows, scores


def recall(found, truth):
    return float(np.mean([len(set(a) & set(b)) / max(1, len(b)) for a, b in zip(found, truth, strict=True)]))
