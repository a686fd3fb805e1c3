"""The compiled sweep, in numpy's terms: how codes are laid out for the kernels, and in which order they run.

The bounds of a sweep do not start from nothing: the nearest at a few lengths are found first, and what they reach at
the lengths between is a bound there. Blocks of queries are shared out among the cores; what is found for a query
depends on no other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike

from firstk._base.concurrency import cores, ordered_map
from firstk.metrics import _sweep_kernels as kernels
from firstk.metrics._sweep import balanced
from firstk.metrics._sweep_kernels import LANES, TOGETHER, Bounds, Notes, Rule

# Queries that share a pass over all references, at most.
_QUERIES = 64
# What is noted of each query and length at least, and of all queries of a pass together.
_ROOM, _NOTES = 64, 1 << 21
# Each of the lengths that are looked at first is so many times the one before; they pay when few among many.
_RATIO, _FEW = 1.7, 4


def _prefix_norms(codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    norms = np.empty((len(codes), len(lengths)))
    kernels.prefix_norms(np.array(codes, order="C"), lengths, norms)  # of one kind, or each would be compiled for
    return norms


def _tiled(codes: np.ndarray, width: int) -> np.ndarray:
    """Cut rows into tiles of `width` rows, laid out by coordinate, the last one filled up with zeros."""
    whole, rest = divmod(len(codes), width)
    tiles = np.zeros((whole + (rest > 0), codes.shape[1], width), codes.dtype)
    tiles[:whole] = codes[: whole * width].reshape(whole, width, codes.shape[1]).transpose(0, 2, 1)
    if rest:
        tiles[whole, :, :rest] = codes[whole * width :].T
    return tiles


def _laid_out(Z_ref: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return references by tiles and one over the norms of their prefixes, 0 for a norm of 0.

    Block by block, so that tiles are the only copy.
    """
    step, count = 64 * LANES, -(-len(Z_ref) // LANES)
    tiles = np.empty((count, Z_ref.shape[1], LANES), Z_ref.dtype)
    scales = np.empty((count, len(lengths), LANES), Z_ref.dtype)
    for start in range(0, len(Z_ref), step):
        part, place = balanced(Z_ref[start : start + step]), slice(start // LANES, (start + step) // LANES)
        norms = _prefix_norms(part, lengths)
        np.divide(1.0, norms, out=norms, where=norms > 0)
        scales[place] = _tiled(norms, LANES)
        tiles[place] = _tiled(part, LANES)
    return tiles, scales


def _first_lengths(lengths: np.ndarray) -> np.ndarray:
    """Return the positions of the lengths that are looked at first; none where they are not few among many."""
    places = [0]
    for place, length in enumerate(lengths.tolist()):
        if length >= _RATIO * lengths[places[-1]]:
            places.append(place)
    if places[-1] < len(lengths) - 1:
        places.append(len(lengths) - 1)
    return np.array(places if _FEW * len(places) <= len(lengths) else [], dtype=np.int64)


def _empty_notes(m: int, lengths: int, room: int, own: np.ndarray, dtype: DTypeLike) -> Notes:
    bounds = np.full((len(own) // TOGETHER, lengths, TOGETHER), np.inf, dtype)
    bounds[-1, :, m - len(own) + TOGETHER :] = -np.inf  # nothing passes: there is no such query
    near, rows = np.empty((len(own), lengths, room), dtype), np.empty((len(own), lengths, room), np.int32)
    return Notes(near, rows, np.zeros((len(own), lengths), np.int64), bounds, own, np.empty(LANES, dtype))


def nearest(
    Z_ref: np.ndarray,
    Z: np.ndarray,
    ks: np.ndarray,
    n: int,
    rule: Rule,
    roundings: np.ndarray,
    exclude: np.ndarray | None,
    ordered: bool,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of queries and their n nearest references at each length, shape (len(rows), len(ks), n)."""
    lengths = np.ascontiguousarray(ks, dtype=np.int64)
    first = _first_lengths(lengths)
    n_rows, room = len(Z_ref), max(_ROOM, 3 * n)
    tiles, scales = _laid_out(Z_ref, lengths)
    first_scales = np.ascontiguousarray(scales[:, first])

    def work(rows: slice) -> tuple[slice, np.ndarray]:
        part = balanced(Z[rows])
        queries = _tiled(part, TOGETHER)
        own = np.full(len(queries) * TOGETHER, -1)
        if exclude is not None:
            own[: len(part)] = exclude[rows]
        limits = Bounds(_prefix_norms(part, lengths), roundings, n_rows)
        notes = _empty_notes(len(part), len(lengths), room, own, Z.dtype)
        if len(first):
            trial = _empty_notes(len(part), len(first), room, own, Z.dtype)
            fewer = Bounds(np.ascontiguousarray(limits.norms[:, first]), roundings[first], n_rows)
            kernels.scan(tiles, first_scales, queries, lengths[first], trial, fewer, n, rule)
            hints = np.empty((len(part), len(first), n), np.int64)
            kernels.hints(trial, n, hints)
            kernels.seed(tiles, queries, lengths, first, hints, notes.bounds, limits, rule)
        kernels.scan(tiles, scales, queries, lengths, notes, limits, n, rule)
        found = np.empty((len(part), len(lengths), n), np.int64)
        kernels.decide(tiles, scales, queries, lengths, notes, limits, ordered, rule, found)
        return rows, found

    step = min(_QUERIES, max(1, _NOTES // (len(lengths) * room * TOGETHER)) * TOGETHER)
    blocks = (slice(start, min(start + step, len(Z))) for start in range(0, len(Z), step))
    yield from ordered_map(work, blocks, cores())
