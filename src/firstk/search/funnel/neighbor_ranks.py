"""Ranks of true neighbors by short prefixes: rows of the store serve as queries.

For a sample of rows the neighbors at full width are found by brute force. The rank of each of them by every short
prefix then says how long a shortlist must be to keep it. Rows go by in chunks, on all cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from firstk._base.concurrency import cores, ordered_map
from firstk._base.progress import progress_bar
from firstk.search.funnel.prefixes import FirstStage, Prefixes

# Rows that serve as queries, at most.
QUERIES = 512
# Queries and rows whose nearness is held at once: few calls, and blocks that fit a cache.
_BLOCK, _CHUNK = 128, 4096
# Share of the mean square of rows up to which that of their mean costs float32 no digit.
_SMALL_MEAN = 0.01
_GRID = (2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)


@dataclass(frozen=True, eq=False)
class CalibrationSample:
    """Ranks of the true neighbors of sampled queries, by every prefix of a grid.

    Attributes
    ----------
    ks : tuple of int
        Prefix lengths, increasing.
    ranks : ndarray of int, shape (len(ks), m, n_neighbors)
        How many other rows each true neighbor comes after, by the partial cost at k.
    kept : ndarray of float, shape (len(ks),)
        Mean number of rows that the bound at k cannot exclude.
    cosines : ndarray of float, shape (len(ks),)
        Mean cosine between what is left of a query and of its neighbors.
    first_ks, first_ranks : as `ks` and `ranks`, for the form in which the first stage keeps prefixes.
    random_ranks : callable
        From the place of a length in `ks` to ranks by as many coordinates drawn at random, for some of the queries.
    """

    ks: tuple[int, ...]
    ranks: np.ndarray
    kept: np.ndarray
    cosines: np.ndarray
    first_ks: tuple[int, ...]
    first_ranks: np.ndarray
    random_ranks: Callable[[int], np.ndarray]


def calibration_sample(
    codes: np.ndarray, euclidean: bool, first_stage: FirstStage, n_neighbors: int, rng: np.random.Generator
) -> CalibrationSample:
    """Rank the true neighbors of sampled rows by every prefix of a grid."""
    n, d = codes.shape
    centre = np.zeros(d, np.float32)
    if euclidean:
        # Sums of chunks are added up in float64.
        sums = (np.ones(c.stop - c.start, codes.dtype) @ codes[c] for c in _blocks(n, _CHUNK))
        total = sum(sums, start=np.zeros(d))
        mean, few = (total / n).astype(np.float32), codes[:: max(1, n // _CHUNK)]
        # Squared distances lose digits to means that are large beside the rows; others need not be taken off.
        small = np.square(mean).sum() <= _SMALL_MEAN * np.square(few).sum() / len(few)
        centre = centre if small and first_stage.name == "float32" else mean
    Y = codes - centre if centre.any() else codes
    # Very short prefixes of long codes carry too little, and are the slowest to evaluate.
    ks = tuple(k for k in _GRID if d <= 128 * k and 2 * k <= d) or (1,)
    asked = np.sort(rng.choice(n, min(QUERIES, n // 2), replace=False))
    order = rng.permutation(d)
    with progress_bar(2 * len(_blocks(n, _CHUNK)), "planning", "chunk") as done:
        truth = true_neighbors(Y, asked, euclidean, n_neighbors, done)
        sample = _Sample(Y, asked, truth, ks, euclidean)
        ranks, kept = sample.ranks_and_kept(done)
    first_ks = first_stage.lengths(ks, d)
    first_ranks = ranks
    if first_stage.name != "float32":
        first_ranks = _form_ranks(first_stage.prefixes(Y, centre, first_ks[-1], euclidean), sample, first_ks)
    return CalibrationSample(
        ks, ranks, kept, sample.cosines, first_ks, first_ranks, partial(sample.random_ranks, order)
    )


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def true_neighbors(
    Y: np.ndarray, asked: np.ndarray, euclidean: bool, n_neighbors: int, done: Callable[[], object] = lambda: None
) -> np.ndarray:
    """Return the nearest other rows of the asked ones at full width, nearest first; of equal ones the first.

    The neighbors among some rows bound how far away the true ones may be: few of the others are looked at.
    """
    blocks = _blocks(len(asked), _BLOCK)

    def nearness(block: slice, rows: np.ndarray, part: np.ndarray) -> np.ndarray:
        N: np.ndarray = Y[asked[block]] @ part.T
        if euclidean:
            N -= 0.5 * np.einsum("ij,ij->i", part, part)
        _, query, place = np.intersect1d(asked[block], rows, assume_unique=True, return_indices=True)
        N[query, place] = -np.inf  # a row is not its own neighbor
        return N

    some = np.arange(0, len(Y), max(1, len(Y) // max(_CHUNK, 2 * (n_neighbors + 1))))
    seen = [nearness(block, some, Y[some]) for block in blocks]
    bound = np.concatenate([np.partition(N, -n_neighbors, axis=1)[:, -n_neighbors] for N in seen])[:, None]
    # BLAS may round rows of another matrix differently: by parts of the sums, also where they cancel.
    length = np.linalg.norm(Y[asked], axis=1, keepdims=True)
    typical = np.sqrt(np.square(Y[some]).sum() / len(some))
    bound -= 1e-5 * np.abs(bound) + 1e-6 * length * (length + typical)

    def near(chunk: slice) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        rows, found = np.arange(chunk.start, chunk.stop), []
        for block in blocks:
            N = nearness(block, rows, Y[chunk])
            query, place = np.divmod(np.flatnonzero(bound[block] <= N), len(rows))
            found.append((block.start + query, rows[place], N[query, place]))
        return found

    hits = []
    for found in ordered_map(near, _blocks(len(Y), _CHUNK), cores()):
        hits += found
        done()
    query, row, value = (np.concatenate(part) for part in zip(*hits, strict=True))
    best = np.lexsort((row, -value, query))
    start = np.searchsorted(query[best], np.arange(len(asked)))
    nearest: np.ndarray = row[best[start[:, None] + np.arange(n_neighbors)]]
    return nearest


class _Sample:
    """Sampled queries with their true neighbors, ready to be ranked.

    A query of a row is near itself at every k: ranks leave that one row out.
    """

    def __init__(self, Y: np.ndarray, asked: np.ndarray, truth: np.ndarray, ks: tuple[int, ...], euclidean: bool):
        self.Y, self.asked, self.truth, self.ks, self.euclidean = Y, asked, truth, ks, euclidean
        edges = (0, *ks, Y.shape[1])
        parts = [Y[:, start:stop] for start, stop in pairwise(edges)]
        self.squares = np.stack([np.einsum("ij,ij->i", part, part) for part in parts])  # (len(ks) + 1, n)
        # Norms of what lies past each k.
        self.left = np.sqrt(np.cumsum(self.squares[::-1], axis=0)[::-1][1:])
        Q, X = Y[asked][:, None], Y[truth]
        dots = np.add.reduceat(Q * X, edges[:-1], axis=2, dtype=np.float64)
        squares = np.add.reduceat(X * X, edges[:-1], axis=2, dtype=np.float64)
        rest = np.moveaxis(np.cumsum(dots[..., ::-1], axis=2)[..., ::-1][..., 1:], 2, 0)
        norms = self.left[:, asked, None] * self.left[:, truth]
        self.cosines = np.divide(rest, norms, out=np.zeros(rest.shape), where=norms > 0).mean(axis=(1, 2)).clip(0, 1)
        grown = dots - 0.5 * squares if euclidean else dots
        limits = np.moveaxis(np.cumsum(grown, axis=2)[..., :-1], 2, 0)  # (len(ks), m, neighbors)
        if not euclidean:  # a guess of what is left: the mean cosine
            limits = limits + self.cosines[:, None, None] * norms
        # A little above, so that rounding does not put a neighbor behind itself: by parts of what is summed, which may
        # cancel.
        own = np.cumsum(self.squares[:-1][:, asked], axis=0)[..., None]
        summed = 0.5 * (np.moveaxis(np.cumsum(squares, axis=2)[..., :-1], 2, 0) + own)
        self.limits = (limits + 1e-6 * (np.abs(limits) + summed)).astype(np.float32)
        self.worst = (np.square(Q - X).sum(axis=2) if euclidean else -dots.sum(axis=2)).max(axis=1)

    def random_ranks(self, order: np.ndarray, i: int) -> np.ndarray:
        """Return the ranks of a few queries by the first ``ks[i]`` coordinates of another order."""
        few, k = slice(0, _BLOCK), self.ks[i]
        some = order[: (k if self.euclidean else self.ks[-1]) + 1]
        other = _Sample(self.Y.take(some, axis=1), self.asked[few], self.truth[few], (k,), self.euclidean)
        ranks: np.ndarray = other.ranks_and_kept()[0][0]
        return ranks

    def ranks_and_kept(self, done: Callable[[], object] = lambda: None) -> tuple[np.ndarray, np.ndarray]:
        """Ranks at every k, shape (len(ks), m, neighbors), and the mean number of rows that no bound excludes."""
        ranks, kept = np.zeros(self.limits.shape, np.int64), np.zeros(len(self.ks), np.int64)
        for counted, left in ordered_map(self._of_chunk, _blocks(len(self.Y), _CHUNK), cores()):
            ranks += counted
            kept += left
            done()
        return ranks, kept / min(_BLOCK, len(self.asked))

    def _of_chunk(self, chunk: slice) -> tuple[np.ndarray, np.ndarray]:
        """Count the rows of a chunk that come before each neighbor, and those that no bound excludes."""
        ranks, kept = np.zeros(self.limits.shape, np.int64), np.zeros(len(self.ks), np.int64)
        room = np.empty((min(_BLOCK, len(self.asked)), chunk.stop - chunk.start), np.float32)
        for block in _blocks(len(self.asked), _BLOCK):
            T = room[: block.stop - block.start]
            for i, N in self._nearness(block, chunk, T):
                if block.start == 0:  # a few queries are enough
                    kept[i] = self._not_excluded(N, i, chunk, T)
                if not self.euclidean:
                    lift = (self.cosines[i] * self.left[i, self.asked[block], None]).astype(np.float32)
                    N = np.add(np.multiply(lift, self.left[i, chunk], out=T), N, out=T)
                ranks[i, block] = _count_nearer(N, self.limits[i, block])
        return ranks, kept

    def _nearness(self, block: slice, chunk: slice, room: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield minus half the partial cost at each k, up to what is the same for all rows."""
        asked, start = self.asked[block], 0
        N = np.zeros(room.shape, np.float32)
        inside = np.flatnonzero((asked >= chunk.start) & (asked < chunk.stop))
        N[inside, asked[inside] - chunk.start] = -np.inf
        for i, k in enumerate(self.ks):
            N += np.matmul(self.Y[asked, start:k], self.Y[chunk, start:k].T, out=room)
            if self.euclidean:
                N -= 0.5 * self.squares[i, chunk]
            start = k
            yield i, N

    def _not_excluded(self, N: np.ndarray, i: int, chunk: slice, room: np.ndarray) -> int:
        """Count the pairs whose bound does not exceed the cost of the query's last neighbor.

        The bound of a squared distance is ``|q_k - x_k|^2 + (|q'| - |x'|)^2``, of minus a dot product
        ``-q_k x_k - |q'| |x'|``; a dash marks what lies past k.
        """
        asked = self.asked[: len(N)]
        rest, left = self.left[i, asked, None], self.left[i, chunk]
        T = np.add(np.multiply(rest, left, out=room), N, out=room)
        if not self.euclidean:
            return int(np.count_nonzero(-self.worst[: len(N), None].astype(np.float32) <= T))
        T -= 0.5 * left**2
        own = np.square(self.Y[asked, : self.ks[i]]).sum(axis=1, keepdims=True)
        return int(np.count_nonzero(0.5 * (own + rest**2 - self.worst[: len(N), None]) <= T))


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


def _form_ranks(prefixes: Prefixes, sample: _Sample, ks: tuple[int, ...]) -> np.ndarray:
    """Ranks by the first stage's own form; ties, common among signs, count as nearer: few make the shortlist."""
    ranks = np.zeros((len(ks), *sample.truth.shape), np.int64)
    for i, k in enumerate(ks):
        half = (0.5 * prefixes.squared_norms(k) if sample.euclidean else np.zeros(prefixes.n)).astype(np.float32)
        for block in _blocks(len(sample.asked), _BLOCK // 4):
            asked, truth = sample.asked[block], sample.truth[block]
            N = np.empty((len(asked), prefixes.n), np.float32)
            for rows, S in prefixes.similarities(prefixes.queries(sample.Y[asked], k)):
                np.subtract(S, half[rows], out=N[:, rows])
            N[np.arange(len(asked)), asked] = -np.inf
            limits = np.nextafter(np.take_along_axis(N, truth, axis=1), np.float32(-np.inf))
            ranks[i, block] = _count_nearer(N, limits) - 1
    return ranks
