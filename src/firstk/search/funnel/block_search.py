"""The search of a block of queries through a funnel: shortlist, narrow, finish; and a second pass that makes it exact.

The operations come from `_plain` or `_compiled`; here is the order in which they are called.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from firstk.search.funnel.arrays import FunnelArrays, Queries

# Share of a limit by which float64 sums may be off.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class BlockResult:
    """Neighbors of a block of queries: rows and costs, nearest first, and the multiply-adds of each query."""

    rows: np.ndarray
    costs: np.ndarray
    spent: np.ndarray


def search_block(layout: FunnelArrays, operations: ModuleType, Q: np.ndarray, n: int, exact: bool) -> BlockResult:
    """Find the n nearest rows of each query: by the schedule, or provably with `exact`.

    Exact: the funnel's n-th cost is an upper bound of the true one. A second scan collects every row whose lower
    bound does not exceed it, and those rows are finished, or abandoned when a longer prefix excludes them. No row
    that belongs to the answer can be lost, whatever the schedule.
    """
    queries = layout.prepare(Q)
    found = _by_schedule(layout, operations, queries, n)
    rows = len(layout.codes)
    # A schedule that finishes every row is exact already.
    if not exact or all(size == rows for size in layout.schedule.sizes(rows, n)):
        return found
    spent, worst = found.spent, found.costs[:, -1]
    scan, thresholds = layout.bound(queries, worst)
    limits, whole = _slackened(layout, queries, worst), (0, len(layout.edges) - 1)
    spent += scan.spent
    survivors = []
    for pairs in operations.collect(scan, thresholds):
        costs, more = operations.grow(layout, queries, pairs, np.zeros(len(pairs[0])), whole, limits)
        spent += more
        alive = np.isfinite(costs)
        survivors.append((pairs[0][alive], pairs[1][alive], costs[alive]))
    query, row, cost = (np.concatenate(parts) for parts in zip(*survivors, strict=True))
    return BlockResult(*_nearest(query, row, cost, len(queries), n), spent)


def _by_schedule(layout: FunnelArrays, operations: ModuleType, queries: Queries, n: int) -> BlockResult:
    """Shortlist on the first stage, narrow on the others, finish what is left."""
    m = len(queries)
    sizes = layout.schedule.sizes(len(layout.codes), n)
    rows, spent = operations.shortlist(layout, queries, sizes[0])
    spent = spent + layout.codes.shape[1]  # the query's own norms
    costs, at = np.zeros(rows.shape), 0
    for stage, size in zip(layout.schedule.stages, sizes, strict=True):
        edge = layout.edges.index(stage.k)
        pairs = np.repeat(np.arange(m), rows.shape[1]), rows.ravel()
        flat, more = operations.grow(layout, queries, pairs, costs.ravel(), (at, edge))
        spent += more
        costs, at = flat.reshape(rows.shape), edge
        if size < rows.shape[1]:
            order = np.argpartition(_estimates(layout, queries, rows, costs, edge), size - 1, axis=1)[:, :size]
            rows, costs = np.take_along_axis(rows, order, 1), np.take_along_axis(costs, order, 1)
    return _finish(layout, operations, queries, BlockResult(rows, costs, spent), at, n)


def _finish(
    layout: FunnelArrays, operations: ModuleType, queries: Queries, found: BlockResult, at: int, n: int
) -> BlockResult:
    """Add all coordinates that are missing: to the n most likely rows first, whose costs then limit the others."""
    m, last = len(queries), len(layout.edges) - 1
    estimates = _estimates(layout, queries, found.rows, found.costs, at)
    if n == 1:
        order = np.argsort(estimates, axis=1, kind="stable")
    elif n < estimates.shape[1]:
        order = np.argpartition(estimates, n - 1, axis=1)
    else:
        order = np.tile(np.arange(estimates.shape[1]), (m, 1))
    rows, costs = np.take_along_axis(found.rows, order, 1), np.take_along_axis(found.costs, order, 1)
    spent = found.spent
    likely = np.repeat(np.arange(m), n), rows[:, :n].ravel()
    done, more = operations.grow(layout, queries, likely, costs[:, :n].ravel(), (at, last))
    spent = spent + more
    limits = _slackened(layout, queries, done.reshape(m, n).max(axis=1))
    others = np.repeat(np.arange(m), rows.shape[1] - n), rows[:, n:].ravel()
    rest, more = operations.grow(layout, queries, others, costs[:, n:].ravel(), (at, last), limits)
    alive = np.isfinite(rest)
    query = np.concatenate([likely[0], others[0][alive]])
    row = np.concatenate([likely[1], others[1][alive]])
    return BlockResult(*_nearest(query, row, np.concatenate([done, rest[alive]]), m, n), spent + more)


def _slackened(layout: FunnelArrays, queries: Queries, costs: np.ndarray) -> np.ndarray:
    """Return limits a little above costs, for the rounding of float64."""
    scale = costs if layout.euclidean else queries.norms * float(layout.norms.max())
    return costs + _ROUNDING * scale


def _estimates(layout: FunnelArrays, queries: Queries, rows: np.ndarray, costs: np.ndarray, edge: int) -> np.ndarray:
    """Return the expected costs, given partial costs, up to a constant of the query."""
    cosine = layout.schedule.remainder_cosine
    if layout.euclidean or cosine == 0:
        return costs
    return costs - cosine * queries.remainders[:, edge, None] * layout.remainders[rows, edge]


def _nearest(query: np.ndarray, row: np.ndarray, cost: np.ndarray, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and costs of the n nearest of each query, nearest first, ties to the row that was added first."""
    order = np.lexsort((row, cost, query))
    first = np.searchsorted(query[order], np.arange(m))
    places = order[first[:, None] + np.arange(n)]
    return row[places], cost[places]
