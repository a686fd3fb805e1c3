"""Schedules chosen from the data, by the ranks that short prefixes give to true neighbors (`calibration`).

Of all schedules that keep the recall asked for, with a margin for the size of the sample, the cheapest is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from firstk.search.funnel.neighbor_ranks import CalibrationSample, calibration_sample
from firstk.search.funnel.prefixes import FirstStage
from firstk.search.funnel.schedule import OrderWarning, Schedule, Stage, full_scan

# Rows that neighbors are ranked among, at most: time stays bounded whatever the store.
_ROWS = 1 << 17
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
    by_chance = calibration.random_ranks(i)
    random, ordered = (
        _smallest(np.ones(ranks.shape, bool), ranks, recall, n_neighbors)
        for ranks in (by_chance, calibration.ranks[i, : len(by_chance)])
    )
    if random is None or ordered is None or random <= 2 * n_neighbors or ordered < _HELP * random:
        return ""
    return (
        f"The order of these coordinates does not help a search: for recall {recall:g} the first {calibration.ks[i]} "
        f"need a shortlist of {ordered} rows, and {calibration.ks[i]} drawn at random {random}. The recall is kept, at "
        f"{share:.0%} of brute force. Fit a PrefixEncoder and index its codes instead."
    )
