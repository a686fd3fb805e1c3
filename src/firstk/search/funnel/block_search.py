"""The search of a block of queries through a funnel: shortlist, narrow, finish; and a second pass that makes it exact.

Shortlists come from cells of faiss where the schedule has them, or else from all rows. What is returned is computed
from the codes, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from firstk.search.funnel.cells import RowsInCells, faiss_module
from firstk.search.funnel.prefixes import above, asked_at_most, asked_for, bound_of, columns_of, first_of, nearest
from firstk.search.funnel.schedule import Schedule

# Share of a limit by which float64 sums may be off.
_ROUNDING = 1e-9
# Rows beyond the neighbors that are finished in float64, after costs in float32 have chosen them.
_SPARE = 4
# Numbers of codes that are held in float64 at once.
_NUMBERS = 1 << 20
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class BlockResult:
    """Neighbors of a block of queries: rows and costs, nearest first, and the multiply-adds of each query."""

    rows: np.ndarray
    costs: np.ndarray
    spent: np.ndarray


@dataclass(frozen=True, eq=False)
class FunnelArrays:
    """What searches of a store share: computed when first needed, discarded when rows are added or removed.

    Attributes
    ----------
    codes : ndarray of float32, shape (n, d)
    euclidean : bool
        Squared distances; otherwise inner products.
    schedule : Schedule
    faiss : bool
        Whether faiss makes shortlists and narrows them; otherwise numpy does.
    centre : ndarray of float32, shape (d,)
        Subtracted from rows and queries; zero for inner products, which centring would change.
    cells : RowsInCells or None
    """

    codes: np.ndarray
    euclidean: bool
    schedule: Schedule
    faiss: bool
    centre: np.ndarray
    cells: RowsInCells | None
    _tables: dict[tuple[int, bool], np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def table(self, k: int, bounds: bool = False) -> np.ndarray:
        """Return the columns of all rows at prefix k: those of the estimate, or all, for bounds."""
        if (k, bounds) not in self._tables:
            width = None if bounds else k + 1
            parts = (self.codes[s : s + _BLOCK] - self.centre for s in range(0, len(self.codes), _BLOCK))
            self._tables[k, bounds] = np.concatenate([columns_of(Y, k, self.euclidean)[:, :width] for Y in parts])
        return self._tables[k, bounds]

    @cached_property
    def longest(self) -> float:
        """The largest norm of a centred row."""
        parts = (self.codes[s : s + _BLOCK] - self.centre for s in range(0, len(self.codes), _BLOCK))
        return float(max(np.sqrt(np.einsum("ij,ij->i", Y, Y, dtype=np.float64).max()) for Y in parts))

    @property
    def nbytes(self) -> int:
        """Memory without the codes."""
        laid = 0 if self.cells is None else len(self.codes) * (4 * self.cells.index.d + 8)
        return laid + sum(table.nbytes for table in self._tables.values())

    def shortlist(self, Y: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the `size` nearest rows of each centred query by the first prefix, and the multiply-adds."""
        k, n = self.schedule.stages[0].k, len(self.codes)
        if size == n:
            return np.tile(np.arange(n), (len(Y), 1)), np.zeros(len(Y), np.int64)
        queries = asked_for(Y, k, self.euclidean, self.schedule.remainder_cosine)
        if self.cells is not None:
            return self.cells.search(queries[:, : self.cells.index.d], size)
        return self.flat_shortlist(queries, k, size)

    def flat_shortlist(self, queries: np.ndarray, k: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest of all rows, and the multiply-adds."""
        table = self.table(k)
        if self.faiss:
            faiss = faiss_module()
            rows = faiss.knn(queries, table, size, faiss.METRIC_INNER_PRODUCT)[1]
        else:
            rows = nearest(table.__getitem__, len(table), queries, size)
        return rows, np.full(len(queries), table.size)

    def costs(self, Q: np.ndarray, query: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Return the costs of pairs (query, row) in float64; infinite where the row is -1."""
        costs, step = np.empty(len(row)), max(1, _NUMBERS // Q.shape[1])
        for start in range(0, len(row), step):
            some = slice(start, start + step)
            a, b = Q[query[some]].astype(np.float64), self.codes[row[some]].astype(np.float64)
            if self.euclidean:
                a -= b
                costs[some] = np.einsum("ij,ij->i", a, a)
            else:
                costs[some] = -np.einsum("ij,ij->i", a, b)
        costs[row < 0] = np.inf
        return costs

    def narrowed(self, Q: np.ndarray, rows: np.ndarray, k: int, size: int) -> np.ndarray:
        """Return those of some rows that are nearest by the first k coordinates, compared in float32."""
        if rows.shape[1] <= size:
            return rows
        if self.faiss and k == self.codes.shape[1]:
            faiss, near, there = faiss_module(), np.empty(rows.shape, np.float32), np.maximum(rows, 0)
            compare = faiss.fvec_L2sqr_by_idx if self.euclidean else faiss.fvec_inner_products_by_idx
            compare(*map(faiss.swig_ptr, (near, Q, self.codes, there)), k, *rows.shape)
            costs = near if self.euclidean else -near
        else:
            X = self.codes[rows, :k]
            costs = (
                np.square(X - Q[:, None, :k]).sum(axis=2) if self.euclidean else -np.einsum("mk,msk->ms", Q[:, :k], X)
            )
        costs[rows < 0] = np.inf
        return np.take_along_axis(rows, np.argpartition(costs, size - 1, axis=1)[:, :size], axis=1)


def centre_of(codes: np.ndarray, euclidean: bool) -> np.ndarray:
    """Return what rows and queries are centred by: the mean of the rows, or zeros for inner products."""
    if euclidean:
        return codes.mean(axis=0, dtype=np.float64).astype(np.float32)
    return np.zeros(codes.shape[1], np.float32)


def prefixes_of(codes: np.ndarray, centre: np.ndarray, k: int, euclidean: bool) -> Iterator[np.ndarray]:
    """Yield what cells are made of: prefixes of centred rows, for inner products with the norm of what is left."""
    for start in range(0, len(codes), _BLOCK):
        part = codes[start : start + _BLOCK]
        yield part[:, :k] - centre[:k] if euclidean else columns_of(part, k, euclidean)


def search_block(arrays: FunnelArrays, Q: np.ndarray, n: int, exact: bool) -> BlockResult:
    """Find the n nearest rows of each query: by the schedule, or provably with `exact`.

    Exact: the funnel's n-th cost is an upper bound of the true one. A second scan collects every row whose lower
    bound does not exceed it, and those rows are finished. No row that belongs to the answer can be lost, whatever the
    schedule.
    """
    (m, d), schedule, Y = Q.shape, arrays.schedule, Q - arrays.centre
    sizes = schedule.sizes(len(arrays.codes), n)
    rows, spent = arrays.shortlist(Y, sizes[0])
    if len(few := np.flatnonzero((rows >= 0).sum(axis=1) < n)):  # the probed cells hold too few rows
        k = schedule.stages[0].k
        queries = asked_for(Y[few], k, arrays.euclidean, schedule.remainder_cosine)
        rows[few], more = arrays.flat_shortlist(queries, k, sizes[0])
        spent[few] += more
    spent = spent + d  # the query's own norms
    for stage, size in zip(schedule.stages[1:], sizes[1:], strict=True):
        spent += rows.shape[1] * stage.k
        rows = arrays.narrowed(Q, rows, stage.k, size)
    finished = all(size == len(arrays.codes) for size in sizes)
    # Costs in float32 do not know ties, which an exact search gives to the row that was added first.
    if arrays.faiss and rows.shape[1] > n + _SPARE and not (exact and finished):
        spent += rows.shape[1] * d
        rows = arrays.narrowed(Q, rows, d, n + _SPARE)
    spent += rows.shape[1] * d
    query = np.repeat(np.arange(m), rows.shape[1])
    rows, costs = first_of(query, rows.ravel(), arrays.costs(Q, query, rows.ravel()), m, n)
    if not exact or finished:
        return BlockResult(rows, costs, spent)
    k, norms = schedule.exact_k, np.linalg.norm(Y.astype(np.float64), axis=1)
    table = arrays.table(k, bounds=True)
    longest = arrays.longest
    limits = costs[:, -1] + _ROUNDING * (costs[:, -1] if arrays.euclidean else norms * longest)
    found = []
    thresholds = bound_of(limits, norms, longest, k, arrays.euclidean)
    for query, row, _ in above(table.__getitem__, len(table), asked_at_most(Y, k, arrays.euclidean), thresholds):
        costs = arrays.costs(Q, query, row)
        spent += d * np.bincount(query, minlength=m)
        near = costs <= limits[query]
        found.append((query[near], row[near], costs[near]))
    query, row, cost = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return BlockResult(*first_of(query, row, cost, m, n), spent + table.size)
