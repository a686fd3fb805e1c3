"""Searches that are slow and obvious, to compare with."""

import numpy as np


def costs_of(q, X, metric):
    """Squared distances, or minus the dot products, in float64; smaller is nearer."""
    q, X = q.astype(np.float64), X.astype(np.float64)
    return -(X @ q) if metric == "inner_product" else ((X - q) ** 2).sum(axis=1)


def stored(Z, metric):
    Z = np.asarray(Z, dtype=np.float64)
    return (Z / np.linalg.norm(Z, axis=1, keepdims=True) if metric == "cosine" else Z).astype(np.float32)


def brute_force(Z, Q, n, metric):
    """Rows and scores of the n nearest; ties to the lowest row."""
    X, rows, scores = stored(Z, metric), [], []
    for q in stored(Q, metric):
        costs = costs_of(q, X, metric)
        order = np.lexsort((np.arange(len(X)), costs))[:n]
        rows.append(order)
        scores.append({"l2": 1, "inner_product": -1, "cosine": -0.5}[metric] * costs[order] + (metric == "cosine"))
    return np.array(rows), np.array(scores)
