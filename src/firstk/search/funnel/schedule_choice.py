"""Schedules chosen from the data, by the ranks that short prefixes give to the true neighbors of sampled rows.

Rows of the store serve as queries. The rank of each of their neighbors by a prefix says how long a shortlist must be to
keep it, and the rank of its cell how many cells must be looked into. Of all prefixes the cheapest is taken whose
shortlist keeps the recall asked for, with a margin for the size of the sample.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from firstk._base.concurrency import cores, ordered_map
from firstk._base.progress import progress_bar
from firstk.search.funnel.block_search import prefixes_of
from firstk.search.funnel.cells import cells_of, fit_centroids, nearest_cells, sample_size
from firstk.search.funnel.prefixes import asked_at_most, asked_for, bound_of, chunks, columns_of, nearest
from firstk.search.funnel.schedule import OrderWarning, Schedule, Stage, full_scan

# Rows that serve as queries, and pairs of a query and a row that are looked at for each prefix, at most.
_QUERIES, _FEWEST, _PAIRS = 512, 128, 1 << 28
# Queries whose bounds are counted, and which random coordinates are tried on.
_FEW = 64
_GRID = (2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
# One-sided 99 % margin of a mean over the sampled queries, in standard errors.
_MARGIN = 2.326
# A row that is looked up alone costs as much as this many multiply-adds of a scan more than its width, once the store
# outgrows the caches: of all rows in numpy, and in cells by faiss (0.24 microseconds against 0.25 ns).
_LOOK_UP, _LOOK_UP_IN_CELLS, _CACHE_BYTES = 6000, 1000, 1 << 25
# The share of the rows that cells are expected to leave, and the most that is worth their overhead.
_EXPECTED, _VISITED = 0.05, 0.25
# A funnel that costs more than this share of brute force is not worth its code.
_WORTH = 0.5
# Rows from which a search takes long enough for a warning, and for cells.
_NOTICEABLE, _CELLS = 1000, 10_000
# Prefixes must need shortlists this much shorter than random coordinates do, or their order is no help.
_HELP = 0.7


@dataclass(frozen=True, eq=False)
class Chosen:
    """A schedule, and the centroids and the cell of each row where it looks into cells."""

    schedule: Schedule
    centroids: np.ndarray | None = None
    cells: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class NeighborRanks:
    """Ranks of the true neighbors of sampled queries by the first k coordinates.

    Attributes
    ----------
    k : int
    ranks : ndarray of int, shape (m, n_neighbors)
        How many other rows each true neighbor comes after.
    bounded : float
        Mean number of rows that the bound at k cannot exclude.
    cosine : float
        Mean cosine between what is left of a query and of its neighbors.
    """

    k: int
    ranks: np.ndarray
    bounded: float
    cosine: float


class QuerySample:
    """Sampled rows of a store with their true neighbors.

    Parameters
    ----------
    codes : ndarray of float32, shape (n, d)
    centre : ndarray of float32, shape (d,)
        Subtracted from rows and queries.
    euclidean : bool
    n_neighbors : int
    rng : numpy Generator
    """

    def __init__(
        self, codes: np.ndarray, centre: np.ndarray, euclidean: bool, n_neighbors: int, rng: np.random.Generator
    ):
        self.codes, self.euclidean, self.centre = codes, euclidean, centre
        n, d = codes.shape
        self.asked = np.sort(rng.choice(n, min(max(_FEWEST, min(_QUERIES, _PAIRS // n)), n // 2), replace=False))
        self.order = rng.permutation(d)
        self.Y = codes[self.asked] - self.centre
        queries = asked_for(self.Y, d, euclidean)
        found = nearest(lambda rows: self.columns(rows, d)[:, : d + 1], n, queries, n_neighbors + 1)
        # A row is no neighbor of itself; equal rows may have taken its place.
        others = np.argsort(found == self.asked[:, None], axis=1, kind="stable")[:, :n_neighbors]
        self.truth = np.take_along_axis(found, others, axis=1)
        self.neighbors = codes[self.truth] - self.centre  # (m, n_neighbors, d)

    def columns(self, rows: slice | np.ndarray, k: int, order: np.ndarray | None = None) -> np.ndarray:
        """Return the columns of rows; with `order`, of their coordinates in another order."""
        Y = self.codes[rows] - self.centre
        return columns_of(Y if order is None else Y[:, order], k, self.euclidean)

    def ranks(
        self, k: int, done: Callable[[], object] = lambda: None, order: np.ndarray | None = None
    ) -> NeighborRanks:
        """Rank the true neighbors by the first k coordinates; with `order`, few of them by coordinates of another."""
        some = slice(None) if order is None else slice(0, _FEW)
        turn = slice(None) if order is None else order
        Y, X, asked = self.Y[some][:, turn], self.neighbors[some][:, :, turn], self.asked[some]
        cosine = 0.0
        if not self.euclidean and k < Y.shape[1]:
            rest, left = Y[:, None, k:], X[..., k:]
            norms = np.linalg.norm(rest, axis=2) * np.linalg.norm(left, axis=2)
            dots = (rest * left).sum(axis=2)
            cosine = float(np.divide(dots, norms, out=np.zeros(dots.shape), where=norms > 0).mean().clip(0, 1))
        queries = asked_for(Y, k, self.euclidean, cosine)
        own = columns_of(X.reshape(-1, X.shape[2]), k, self.euclidean)[:, : k + 1].reshape(*X.shape[:2], -1)
        limits = np.einsum("mk,msk->ms", queries, own)
        # A little above, so that rounding does not put a neighbor behind itself: by parts of what may cancel.
        limits += 1e-6 * np.einsum("mk,msk->ms", np.abs(queries), np.abs(own))
        norms = np.linalg.norm(Y.astype(np.float64), axis=1)[:_FEW]
        few = asked_at_most(Y[:_FEW], k, self.euclidean)
        near = np.square(Y[:, None] - X).sum(axis=2) if self.euclidean else -(Y[:, None] * X).sum(axis=2)
        least = bound_of(near.max(axis=1)[:_FEW].astype(np.float64), norms, 0.0, k, self.euclidean)

        def of_chunk(chunk: slice) -> tuple[np.ndarray, int]:
            part = self.columns(chunk, k, order)
            N = queries @ part[:, : k + 1].T
            inside = np.flatnonzero((asked >= chunk.start) & (asked < chunk.stop))
            N[inside, asked[inside] - chunk.start] = -np.inf  # a query is near itself at every k
            return _count_nearer(N, limits), int(np.count_nonzero(least[:, None] <= few @ part.T))

        ranks, bounded = np.zeros(limits.shape, np.int64), 0
        for counted, more in ordered_map(of_chunk, chunks(len(self.codes)), cores()):
            ranks += counted
            bounded += more
            done()
        return NeighborRanks(k, ranks, bounded / len(few), cosine)


def choose_schedule(
    codes: np.ndarray, centre: np.ndarray, euclidean: bool, recall: float, n_neighbors: int, seed: int, faiss: bool
) -> Chosen:
    """Return the cheapest schedule that reaches `recall` on sampled rows; warn where the order does not help."""
    n, d = codes.shape
    everything = full_scan(d, n, n_neighbors, recall)
    if n < 8 * (n_neighbors + 1) or d == 1:
        return Chosen(everything)
    calibration = QuerySample(codes, centre, euclidean, n_neighbors, np.random.default_rng(seed))
    # Very short prefixes of long codes carry too little, and are the slowest to evaluate.
    ks = [k for k in _GRID if d <= 128 * k and 2 * k <= d] or [1]
    with progress_bar(len(ks) * len(chunks(n)), "planning", "chunk") as done:
        every = [calibration.ranks(k, done) for k in ks]
    chosen = _in_cells(calibration, every, recall, n_neighbors, seed) if faiss and n >= _CELLS else None
    if chosen is None:
        chosen = _cheapest(every, n, d, recall, n_neighbors, 1.0)
    share = 1.0
    if chosen is not None:  # multiply-adds of a query, as a share of those of brute force
        (stage,), visited = chosen.schedule.stages, 1.0 if chosen.cells is None else _VISITED
        share = (visited * n * stage.k + stage.size * d) / (n * d)
    trouble = _check_order(calibration, every, recall, n_neighbors, chosen, min(share, 1.0))
    if chosen is None or share > _WORTH:
        trouble = trouble or (
            f"No schedule reaches recall {recall:g} for less than {_WORTH:.0%} of brute force: short prefixes of these "
            "codes say too little. The index looks at every coordinate of every row."
        )
        chosen = None
    if trouble and n >= _NOTICEABLE:
        warnings.warn(trouble, OrderWarning, stacklevel=3)
    return chosen or Chosen(everything)


def _cheapest(
    every: list[NeighborRanks], n: int, d: int, recall: float, n_neighbors: int, visited: float
) -> Chosen | None:
    """Return the cheapest schedule with one shortlist, where a scan reads this share of the rows."""
    look_up = (_LOOK_UP if visited == 1 else _LOOK_UP_IN_CELLS) if 4 * n * d > _CACHE_BYTES else 0
    found = []
    for one in every:
        size = _smallest(np.ones(one.ranks.shape, bool), one.ranks, recall, n_neighbors)
        if size is not None and size < n:
            found.append((visited * n * one.k + size * (look_up + d), one, size))
    if not found:
        return None
    _, one, size = min(found, key=lambda each: each[0])
    exact_k = min(every, key=lambda each: n * each.k + each.bounded * (look_up + d)).k
    kept = float((one.ranks < size).mean())
    stage = Stage(one.k, size)
    return Chosen(Schedule((stage,), n, n_neighbors, exact_k, one.cosine, recall, measured_recall=kept))


def _in_cells(
    calibration: QuerySample, every: list[NeighborRanks], recall: float, n_neighbors: int, seed: int
) -> Chosen | None:
    """Return a schedule that looks into few cells; None where too many of them are needed.

    Shortlists may lose half of what may be lost, and cells the rest.
    """
    codes, euclidean, (n, d) = calibration.codes, calibration.euclidean, calibration.codes.shape
    flat = _cheapest(every, n, d, (1 + recall) / 2, n_neighbors, _EXPECTED)
    if flat is None:
        return None
    stage, cosine = flat.schedule.stages[0], flat.schedule.remainder_cosine
    some = np.sort(np.random.default_rng(seed).choice(n, sample_size(n), replace=False))
    sample = np.concatenate(list(prefixes_of(codes[some], calibration.centre, stage.k, euclidean)))
    centroids = fit_centroids(sample, n, seed)
    cells = cells_of(prefixes_of(codes, calibration.centre, stage.k, euclidean), centroids)
    queries = asked_for(calibration.Y, stage.k, euclidean, cosine)[:, : centroids.shape[1]]
    order = nearest_cells(queries, centroids, euclidean, len(centroids))
    places = np.argsort(order, axis=1)  # of each cell
    ranks = next(one.ranks for one in every if one.k == stage.k)
    of_neighbors = np.take_along_axis(places, cells[calibration.truth], axis=1)
    probes = _smallest(ranks < stage.size, of_neighbors, recall, 1)
    sizes = np.bincount(cells, minlength=len(centroids))
    if probes is None or sizes[order[:, :probes]].sum(axis=1).mean() > _VISITED * n:
        return None
    kept = float(((ranks < stage.size) & (of_neighbors < probes)).mean())
    schedule = replace(flat.schedule, recall=recall, measured_recall=kept, probes=probes)
    return Chosen(schedule, centroids, cells)


def _smallest(held: np.ndarray, ranks: np.ndarray, recall: float, least: int) -> int | None:
    """Smallest shortlist that keeps the recall, with the margin, of the neighbors that are still held."""
    if not _reaches(held, recall):
        return None
    sizes = np.unique(np.maximum(ranks + 1, least))
    low, high = 0, len(sizes) - 1
    while low < high:
        middle = (low + high) // 2
        if _reaches(held & (ranks < sizes[middle]), recall):
            high = middle
        else:
            low = middle + 1
    return int(sizes[low])


def _reaches(kept: np.ndarray, recall: float) -> bool:
    """Tell whether the mean recall exceeds the target by the margin; keeping everything always does."""
    per_query = kept.mean(axis=1)
    return per_query.mean() - _MARGIN * per_query.std() / np.sqrt(len(per_query)) >= recall


def _check_order(
    calibration: QuerySample,
    every: list[NeighborRanks],
    recall: float,
    n_neighbors: int,
    chosen: Chosen | None,
    share: float,
) -> str:
    """Return a warning where random coordinates do as well as the first ones; an empty text where they do not."""
    k = None if chosen is None else chosen.schedule.stages[-1].k
    one = next((each for each in every if each.k == k), every[len(every) // 2])
    by_chance = calibration.ranks(one.k, order=calibration.order).ranks
    random, ordered = (
        _smallest(np.ones(ranks.shape, bool), ranks, recall, n_neighbors)
        for ranks in (by_chance, one.ranks[: len(by_chance)])
    )
    if random is None or ordered is None or random <= 2 * n_neighbors or ordered < _HELP * random:
        return ""
    return (
        f"The order of these coordinates does not help a search: for recall {recall:g} the first {one.k} need a "
        f"shortlist of {ordered} rows, and {one.k} drawn at random {random}. The recall is kept, at {share:.0%} of "
        "brute force. Fit a PrefixEncoder and index its codes instead."
    )


def _count_nearer(N: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """How many entries of each row of N exceed each of the row's limits."""
    count, most = limits.shape
    order = np.argsort(limits, axis=1)
    ascending = np.take_along_axis(limits, order, axis=1)
    rows, columns = np.divmod(np.flatnonzero(ascending[:, :1] < N), N.shape[1])
    passed = (N[rows, columns][:, None] > ascending[rows]).sum(axis=1)
    table = np.bincount(rows * (most + 1) + passed, minlength=count * (most + 1)).reshape(count, most + 1)
    # An entry that passes j limits exceeds the lowest j of them.
    exceeding = np.cumsum(table[:, ::-1], axis=1)[:, ::-1][:, 1:]
    counts = np.empty((count, most), np.int64)
    np.put_along_axis(counts, order, exceeding, axis=1)
    return counts
