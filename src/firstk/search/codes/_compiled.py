"""The search of `scan`, compiled: the same sums in the same order, of which only the nearest are kept."""

from __future__ import annotations

import heapq

import numba
import numpy as np

from firstk.search.codes.scan import PackedRows, best


def nearest(rows: PackedRows, tables: np.ndarray, constant: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what `scan.nearest` returns, bit for bit."""
    near, found = np.empty((len(tables), size)), np.empty((len(tables), size), np.int64)
    norms = np.empty(0, np.float32) if rows.norms is None else rows.norms
    _scan(rows.packed, rows.ids, norms, rows.cosine, tables, constant, near, found)
    return best(near, found, size)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _scan(
    packed: np.ndarray,
    ids: np.ndarray,
    norms: np.ndarray,
    cosine: bool,
    tables: np.ndarray,
    constant: np.ndarray,
    near: np.ndarray,
    found: np.ndarray,
) -> None:
    """Keep a heap of the nearest rows of each query: (nearness, ~id), as ties go to the lower id."""
    n, planes = packed.shape
    for q in range(len(tables)):
        table, kept = tables[q], [(-np.inf, ~np.int64(0)) for _ in range(near.shape[1])]
        worst = -np.inf
        for start in range(0, n, 4):  # four rows at a time: additions of one wait for each other
            rows = (start, min(start + 1, n - 1), min(start + 2, n - 1), min(start + 3, n - 1))
            a = b = c = d = constant[q]
            for j in range(planes):
                a += table[j, packed[rows[0], j]]
                b += table[j, packed[rows[1], j]]
                c += table[j, packed[rows[2], j]]
                d += table[j, packed[rows[3], j]]
            for lane, total in enumerate((a, b, c, d)):
                i = start + lane
                if i >= n:
                    break
                if len(norms):
                    total = total / np.float64(norms[i]) if cosine else total - np.float64(norms[i])
                if total >= worst and (total, ~ids[i]) > kept[0]:
                    heapq.heapreplace(kept, (total, ~ids[i]))
                    worst = kept[0][0]
        for place in range(len(kept)):
            near[q, place], found[q, place] = kept[place][0], ~kept[place][1]
