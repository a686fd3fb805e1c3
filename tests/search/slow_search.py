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


def counted_funnel(layout, q, n):
    """Walk one query through a funnel coordinate by coordinate, counting every multiplication that is added."""
    X, edges, schedule = layout.codes.astype(np.float64), layout.edges, layout.schedule
    q64 = q.astype(np.float64)
    count = X.shape[1]  # the query's own norms

    def grow(row, start, stop):
        nonlocal count
        cost = 0.0
        for j in range(start, stop):
            cost += (q64[j] - X[row, j]) ** 2 if layout.euclidean else -q64[j] * X[row, j]
            count += 1
        return cost

    def expected(row, cost, k):
        left = [np.linalg.norm((v - layout.centre)[k:]) for v in (q64, X[row])]
        return cost if layout.euclidean else cost - schedule.remainder_cosine * left[0] * left[1]

    sizes = schedule.sizes(len(X), n)
    first = schedule.stages[0].k
    alive = dict.fromkeys(range(len(X)), 0.0)
    if sizes[0] < len(X):
        scanned = {row: grow(row, 0, first) for row in alive}
        count += 0 if layout.euclidean else len(X)  # the expected rest of a product
        nearest = sorted(alive, key=lambda row: (expected(row, scanned[row], first), row))
        alive = dict.fromkeys(nearest[: sizes[0]], 0.0)
    at = 0
    for stage, size in zip(schedule.stages, sizes, strict=True):
        alive = {row: cost + grow(row, at, stage.k) for row, cost in alive.items()}
        at = stage.k
        alive = dict(sorted(alive.items(), key=lambda item: expected(*item, at))[:size])
    order = sorted(alive, key=lambda row: expected(row, alive[row], at))
    done = {row: alive[row] + grow(row, at, X.shape[1]) for row in order[:n]}
    limit = max(done.values())
    for row in order[n:]:
        cost = alive[row]
        for start, stop in zip(edges[edges.index(at) : -1], edges[edges.index(at) + 1 :], strict=True):
            left, right = (np.linalg.norm((v - layout.centre)[start:]) for v in (q64, X[row]))
            count += 1
            bound = cost + (left - right) ** 2 if layout.euclidean else cost - left * right
            if bound > limit:
                break
            cost += grow(row, start, stop)
        else:
            done[row] = cost
    return sorted(done, key=lambda row: (done[row], row))[:n], count
