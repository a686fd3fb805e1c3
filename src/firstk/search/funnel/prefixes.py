r"""Prefixes of rows as one matrix, whose product with a query says how near a row is, or at most can be.

A prefix of the code gives a partial cost, :math:`c_k = |q_k - x_k|^2` or :math:`-\langle q_k, x_k\rangle`, and the
norms of what is left, r_q and r_x, bound the rest (triangle inequality and Cauchy-Schwarz):

    |q - x|^2 >= c_k + (r_q - r_x)^2,        -<q, x> >= c_k - r_q r_x.

Nearness is larger for nearer rows: up to a constant of the query it is minus half the cost ("l2") or minus the cost.
Its estimate and its upper bound are products of columns, those of the estimate first:

    l2              [q_k, 1 | r_q, 1]  with  [x_k, -|x_k|^2 / 2 | r_x, -r_x^2 / 2]
    inner product   [q_k, c r_q]       with  [x_k, r_x]

where c is the cosine that is expected between what is left, and 1 for the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

# Rows whose nearness is computed at once: with 64 queries a block that fits a cache.
CHUNK = 4096
# Relative rounding of the norms of what is left: float32, from a rounded centre; the true error is below 2^-21.
_REMAINDER_ROUNDING = 2.0**-20
# From numbers of rows to their columns.
Columns = Callable[[slice | np.ndarray], np.ndarray]


def columns_of(Y: np.ndarray, k: int, euclidean: bool) -> np.ndarray:
    """Return the columns of centred rows, float32; the first k + 1 are those of the estimate."""
    rest = np.einsum("ij,ij->i", Y[:, k:], Y[:, k:], dtype=np.float64)
    parts = [Y[:, :k], np.sqrt(rest)[:, None]]
    if euclidean:
        half = -0.5 * np.einsum("ij,ij->i", Y[:, :k], Y[:, :k], dtype=np.float64)
        parts = [Y[:, :k], half[:, None], np.sqrt(rest)[:, None], -0.5 * rest[:, None]]
    return np.hstack(parts, dtype=np.float32, casting="same_kind")


def asked_for(Y: np.ndarray, k: int, euclidean: bool, cosine: float = 0.0) -> np.ndarray:
    """Return centred queries as the estimate takes them, (m, k + 1)."""
    last = np.ones(len(Y)) if euclidean else cosine * np.linalg.norm(Y[:, k:], axis=1)
    return np.hstack([Y[:, :k], last[:, None]], dtype=np.float32, casting="same_kind")


def asked_at_most(Y: np.ndarray, k: int, euclidean: bool) -> np.ndarray:
    """Return centred queries as the upper bound takes them."""
    left = np.linalg.norm(Y[:, k:].astype(np.float64), axis=1)[:, None] * (1 + _REMAINDER_ROUNDING)
    one = np.ones(left.shape)
    return np.hstack([Y[:, :k], *((one, left, one) if euclidean else (left,))], dtype=np.float32, casting="same_kind")


def bound_of(worst: np.ndarray, norms: np.ndarray, largest: float, k: int, euclidean: bool) -> np.ndarray:
    """Return the nearness below which the upper bound of no row of cost at most `worst` can fall.

    With y = x - centre and the rounding unit u of float32, nearness is off by less than (k + 32) 2u times
    (|y_q| + M)^2 / 2 for M the largest |y|: k + 3 roundings of sums, and a few of inputs.
    """
    exactly = 0.5 * (norms**2 - worst) if euclidean else -worst
    slack = (k + 32) * 2.0**-23 * 0.5 * (norms + largest) ** 2 + 2.0**-100
    return np.nextafter((exactly - slack).astype(np.float32), np.float32(-np.inf))


def chunks(n: int) -> list[slice]:
    """Cut n rows into chunks."""
    return [slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]


def above(
    columns: Columns, n: int, queries: np.ndarray, thresholds: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (query, row, nearness) of all pairs whose nearness is at least the query's threshold, chunk by chunk."""
    for chunk in chunks(n):
        N = queries @ columns(chunk).T
        query, place = np.nonzero(thresholds[:, None] <= N)
        yield query, chunk.start + place, N[query, place]


def nearest(columns: Columns, n: int, queries: np.ndarray, size: int) -> np.ndarray:
    """Return the rows of the largest nearness to each query, (m, size), ties to the lowest row.

    The nearest of every eighth row bound how far away the nearest of all may be: few of the others are looked at.
    """
    thresholds = np.full(len(queries), -np.inf, np.float32)
    if 16 * size < n:
        N = queries @ columns(np.arange(0, n, 8)).T
        thresholds = np.partition(N, -size, axis=1)[:, -size]
        # BLAS may round rows of another matrix differently: by parts of the sums, also where they cancel.
        thresholds = thresholds - 1e-5 * np.abs(thresholds) - 1e-6 * np.abs(N).max(axis=1)
    query, row, near = (np.concatenate(part) for part in zip(*above(columns, n, queries, thresholds), strict=True))
    return first_of(query, row, -near, len(queries), size)[0]


def first_of(query: np.ndarray, row: np.ndarray, cost: np.ndarray, m: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and costs of the `size` nearest of each query, nearest first, ties to the lowest row."""
    order = np.lexsort((row, cost, query))
    start = np.searchsorted(query[order], np.arange(m))
    places = order[start[:, None] + np.arange(size)]
    return row[places], cost[places]
