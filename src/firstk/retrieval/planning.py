"""Schedules chosen from the data: rows of the store serve as queries, and their true neighbors are ranked.

For a sample of rows the neighbors at full width are found by brute force. The rank of each of them by every short
prefix then says how long a shortlist must be to keep it. Of all schedules that keep the recall asked for, with a
margin for the size of the sample, the cheapest is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from firstk.retrieval.layout import norms_past
from firstk.retrieval.prefixes import FirstStage, Prefixes
from firstk.retrieval.schedule import OrderWarning, Schedule, Stage, full_scan

# Rows that serve as queries, at most; and rows they are ranked among: time stays bounded whatever the store.
_QUERIES, _ROWS = 512, 1 << 17
# Queries and rows whose nearness is held at once: a few passes over the store, and blocks that fit a cache.
_BLOCK, _CHUNK = 128, 8192
_GRID = (2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
# One-sided 99 % margin of a mean over the sampled queries, in standard errors.
_MARGIN = 2.326
# A row that is looked up alone costs as much as this many multiply-adds of a scan, once the store outgrows the caches
# (measured: 0.3 microseconds against 0.04 ns); before that, about as much as one row of the scan at full width.
_LOOK_UP, _CACHE_BYTES = 6000, 1 << 25
# A funnel that costs more than this share of brute force is not worth its code.
_WORTH = 0.5
# Rows from which a search takes long enough for a warning.
_NOTICEABLE = 1000
# Prefixes must need shortlists this much shorter than random coordinates do, or their order is no help.
_HELP = 0.7


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
    random_ranks : ndarray of int, shape (len(ks), some queries, n_neighbors)
        The same for k coordinates drawn at random.
    """

    ks: tuple[int, ...]
    ranks: np.ndarray
    kept: np.ndarray
    cosines: np.ndarray
    first_ks: tuple[int, ...]
    first_ranks: np.ndarray
    random_ranks: np.ndarray


def choose_schedule(
    codes: np.ndarray, euclidean: bool, first_stage: FirstStage, recall: float, n_neighbors: int, seed: int
) -> Schedule:
    """Return the cheapest schedule that reaches `recall` on sampled rows; warn where the order does not help."""
    n, d = codes.shape
    everything = full_scan(d, n, n_neighbors, first_stage.name, recall=recall, measured_recall=1.0)
    if n < 8 * (n_neighbors + 1) or d == 1:
        return everything
    rng = np.random.default_rng(seed)
    rows = codes if n <= _ROWS else codes[np.sort(rng.choice(n, _ROWS, replace=False))]
    calibration = calibration_sample(rows, euclidean, first_stage, n_neighbors, rng)
    schedule = _cheapest(calibration, first_stage, len(rows), d, recall, n_neighbors)
    share = 1.0 if schedule is None else _multiply_adds(schedule, d, first_stage) / (len(rows) * d)
    trouble = _check_order(calibration, recall, n_neighbors, schedule, min(share, 1.0))
    if schedule is None or share > _WORTH:
        trouble = trouble or (
            f"No schedule with {first_stage.name} prefixes reaches recall {recall:g} for less than {_WORTH:.0%} of "
            "brute force: short prefixes of these codes say too little. The index looks at every coordinate of every "
            "row."
        )
        schedule = None
    if trouble and n >= _NOTICEABLE:
        warnings.warn(trouble, OrderWarning, stacklevel=3)
    if schedule is None:
        return everything
    sizes = [-(-stage.size * n // len(rows)) for stage in schedule.stages]
    stages = tuple(Stage(stage.k, size) for stage, size in zip(schedule.stages, sizes, strict=True))
    return replace(schedule, stages=stages, rows=n)


# -- the sample ------------------------------------------------------------------------------------------------------


def calibration_sample(
    codes: np.ndarray, euclidean: bool, first_stage: FirstStage, n_neighbors: int, rng: np.random.Generator
) -> CalibrationSample:
    """Rank the true neighbors of sampled rows by every prefix of a grid."""
    n, d = codes.shape
    centre = codes.mean(axis=0, dtype=np.float64).astype(np.float32) if euclidean else np.zeros(d, np.float32)
    Y = codes - centre
    # Very short prefixes of long codes carry too little, and are the slowest to evaluate.
    ks = tuple(k for k in _GRID if d <= 128 * k and 2 * k <= d) or (1,)
    asked = np.sort(rng.choice(n, min(_QUERIES, n // 2), replace=False))
    sample = _Sample(Y, asked, _true_neighbors(Y, asked, euclidean, n_neighbors), ks, euclidean)
    first_ks = first_stage.lengths(ks, d)
    prefixes = None
    if first_stage.name != "float32":
        prefixes = first_stage.prefixes(Y, centre, first_ks[-1], euclidean)
    ranks, kept = sample.ranks_and_kept()
    return CalibrationSample(
        ks,
        ranks,
        kept,
        sample.cosines,
        first_ks,
        ranks if prefixes is None else _form_ranks(prefixes, sample, first_ks),
        sample.first_block(rng.permutation(d)).ranks_and_kept()[0],
    )


def _blocks(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _true_neighbors(Y: np.ndarray, asked: np.ndarray, euclidean: bool, n_neighbors: int) -> np.ndarray:
    """Nearest other rows of the asked ones at full width."""
    near = np.full((len(asked), n_neighbors), -np.inf, np.float32)
    rows = np.zeros((len(asked), n_neighbors), np.int64)
    for chunk in _blocks(len(Y), _CHUNK):
        part = Y[chunk]
        half = 0.5 * np.einsum("ij,ij->i", part, part) if euclidean else 0.0
        for block in _blocks(len(asked), _BLOCK):
            N = Y[asked[block]] @ part.T - half
            inside = np.flatnonzero((asked[block] >= chunk.start) & (asked[block] < chunk.stop))
            N[inside, asked[block][inside] - chunk.start] = -np.inf
            here = np.broadcast_to(np.arange(chunk.start, chunk.stop), N.shape)
            N, here = np.hstack([N, near[block]]), np.hstack([here, rows[block]])
            best = np.argpartition(N, -n_neighbors, axis=1)[:, -n_neighbors:]
            near[block], rows[block] = np.take_along_axis(N, best, 1), np.take_along_axis(here, best, 1)
    return rows


class _Sample:
    """Sampled queries with their true neighbors, ready to be ranked.

    A query of a row is near itself at every k: ranks leave that one row out.
    """

    def __init__(self, Y: np.ndarray, asked: np.ndarray, truth: np.ndarray, ks: tuple[int, ...], euclidean: bool):
        self.Y, self.asked, self.truth, self.ks, self.euclidean = Y, asked, truth, ks, euclidean
        edges = (0, *ks, Y.shape[1])
        zero = np.zeros(Y.shape[1], np.float32)
        self.left = norms_past(Y, zero, edges)[1][:, 1:-1]
        Q, X = Y[asked][:, None], Y[truth]
        dots = np.add.reduceat(Q * X, edges[:-1], axis=2, dtype=np.float64)
        squares = np.add.reduceat(X * X, edges[:-1], axis=2, dtype=np.float64)
        rest = np.cumsum(dots[..., ::-1], axis=2)[..., ::-1][..., 1:]
        norms = self.left[asked][:, None] * self.left[truth]
        self.cosines = np.divide(rest, norms, out=np.zeros(rest.shape), where=norms > 0).mean(axis=(0, 1)).clip(0, 1)
        grown = dots - 0.5 * squares if euclidean else dots
        self.limits = np.moveaxis(np.cumsum(grown, axis=2)[..., :-1], 2, 0)  # (len(ks), m, neighbors)
        own = np.square(Q - X).sum(axis=2) if euclidean else -dots.sum(axis=2)
        self.worst = own.max(axis=1, keepdims=True)

    def first_block(self, order: np.ndarray) -> _Sample:
        """Return a few of the queries, with the coordinates in another order."""
        few = slice(0, _BLOCK)
        some = order[: self.ks[-1] + 1]
        return _Sample(self.Y[:, some], self.asked[few], self.truth[few], self.ks, self.euclidean)

    def ranks_and_kept(self) -> tuple[np.ndarray, np.ndarray]:
        """Ranks at every k, shape (len(ks), m, neighbors), and the mean number of rows that no bound excludes."""
        ranks = np.zeros(self.limits.shape, np.int64)
        kept = np.zeros(len(self.ks))
        for chunk in _blocks(len(self.Y), _CHUNK):
            for block in _blocks(len(self.asked), _BLOCK):
                for i, N in self._nearness(block, chunk):
                    limits, lift = self.limits[i, block], 0.0
                    if not self.euclidean:
                        lift = self.cosines[i] * self.left[self.asked[block], i, None]
                        limits = limits + lift * self.left[self.truth[block], i]
                    if block.start == 0:
                        kept[i] += self._not_excluded(N, i, chunk) / len(N)
                    # A little above, so that rounding does not put a neighbor behind itself.
                    limits = (limits + 1e-6 * np.abs(limits)).astype(np.float32)
                    ranks[i, block] += _count_nearer(N + lift * self.left[chunk, i], limits)
        return ranks, kept

    def _nearness(self, block: slice, chunk: slice) -> Iterator[tuple[int, np.ndarray]]:
        """Yield minus half the partial cost at each k, up to what is the same for all rows."""
        asked, start = self.asked[block], 0
        N = np.zeros((len(asked), chunk.stop - chunk.start), np.float32)
        inside = np.flatnonzero((asked >= chunk.start) & (asked < chunk.stop))
        N[inside, asked[inside] - chunk.start] = -np.inf
        for i, k in enumerate(self.ks):
            part = self.Y[chunk, start:k]
            N += self.Y[asked, start:k] @ part.T
            if self.euclidean:
                N -= 0.5 * np.einsum("ij,ij->i", part, part)
            start = k
            yield i, N

    def _not_excluded(self, N: np.ndarray, i: int, chunk: slice) -> int:
        asked = self.asked[: len(N)]
        rest = self.left[asked, i, None]
        if self.euclidean:
            own = np.square(self.Y[asked, : self.ks[i]]).sum(axis=1, keepdims=True)
            bounds = own - 2 * N + (rest - self.left[chunk, i]) ** 2
        else:
            bounds = -N - rest * self.left[chunk, i]
        return int(np.count_nonzero(bounds <= self.worst[: len(N)]))


def _count_nearer(N: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """How many entries of each row of N exceed each of the row's limits."""
    rows, columns = np.nonzero(limits.min(axis=1, keepdims=True) < N)
    values = N[rows, columns]
    counts = [np.bincount(rows[values > limits[rows, t]], minlength=len(N)) for t in range(limits.shape[1])]
    return np.stack(counts, axis=1)


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


# -- the choice ----------------------------------------------------------------------------------------------------


def _cheapest(
    calibration: CalibrationSample, first_stage: FirstStage, n: int, d: int, recall: float, n_neighbors: int
) -> Schedule | None:
    """Search schedules of one and two shortlists."""
    look_up = _LOOK_UP if 4 * n * d > _CACHE_BYTES else d
    best: tuple[float, list[tuple[int, int]], np.ndarray, int] | None = None
    for i, k in enumerate(calibration.first_ks):
        scan = n * first_stage.cost(k)
        if best is not None and scan >= best[0]:
            break
        for stages, held in _candidates(calibration, i, recall, n_neighbors):
            later = stages[1:] or stages
            price = scan + stages[0][1] * (look_up + later[0][0]) + later[-1][1] * (look_up + d - later[-1][0]) / 2
            if best is None or price < best[0]:
                best = price, stages, held, i
    if best is None:
        return None
    prices = n * np.array(calibration.ks) + calibration.kept * (look_up + 64)
    return Schedule(
        tuple(Stage(k, size) for k, size in best[1]),
        n,
        n_neighbors,
        exact_k=calibration.ks[int(np.argmin(prices))],
        remainder_cosine=float(calibration.cosines[best[3]]) if first_stage.bounds_distances else 0.0,
        recall=recall,
        measured_recall=float(best[2].mean()),
    )


def _candidates(
    calibration: CalibrationSample, i: int, recall: float, n_neighbors: int
) -> Iterator[tuple[list[tuple[int, int]], np.ndarray]]:
    """Yield schedules that start at the i-th prefix and reach the recall, with the neighbors they hold."""
    k, ranks = calibration.first_ks[i], calibration.first_ranks[i]
    everyone = np.ones(ranks.shape, bool)
    alone = _smallest(everyone, ranks, recall, n_neighbors)
    if alone is None:
        return
    yield [(k, alone)], ranks < alone
    for share in (0.25, 0.5, 0.75):
        size = _smallest(everyone, ranks, 1 - share * (1 - recall), n_neighbors)
        if size is None:
            continue
        held = ranks < size
        for k2, ranks2 in zip(calibration.ks, calibration.ranks, strict=True):
            if k2 > k and (size2 := _smallest(held, ranks2, recall, n_neighbors)) is not None and size2 < size:
                yield [(k, size), (k2, size2)], held & (ranks2 < size2)


def _smallest(held: np.ndarray, ranks: np.ndarray, recall: float, least: int) -> int | None:
    """Smallest shortlist that keeps the recall, with the margin, of the neighbors that are still held."""
    sizes = np.unique(np.maximum(ranks + 1, least))
    low, high = 0, len(sizes) - 1
    if not _reaches(held, recall):
        return None
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


def _multiply_adds(schedule: Schedule, d: int, first_stage: FirstStage) -> float:
    """Multiply-adds of a query at most: without early abandoning."""
    stages = schedule.stages
    total = schedule.rows * first_stage.cost(stages[0].k)
    size, grown = stages[0].size, 0
    for stage in (*stages, Stage(d, 0)):
        total += size * (stage.k - grown)
        size, grown = stage.size, stage.k
    return total


def _check_order(
    calibration: CalibrationSample, recall: float, n_neighbors: int, schedule: Schedule | None, share: float
) -> str:
    """Return a warning where random coordinates do as well as the first ones; an empty text where they do not."""
    k = calibration.ks[len(calibration.ks) // 2] if schedule is None else schedule.stages[-1].k
    i = calibration.ks.index(k) if k in calibration.ks else len(calibration.ks) // 2
    few = calibration.random_ranks.shape[1]
    random, ordered = (
        _smallest(np.ones(ranks.shape, bool), ranks, recall, n_neighbors)
        for ranks in (calibration.random_ranks[i], calibration.ranks[i, :few])
    )
    if random is None or ordered is None or random <= 2 * n_neighbors or ordered < _HELP * random:
        return ""
    return (
        f"The order of these coordinates does not help a search: for recall {recall:g} the first {calibration.ks[i]} "
        f"need a shortlist of {ordered} rows, and {calibration.ks[i]} drawn at random {random}. The recall is kept, at "
        f"{share:.0%} of brute force. Fit a PrefixEncoder and index its codes instead."
    )
