"""Shared parts of the compiled kernels: groups of rows, blocks of prefixes, and threads over rows.

A group of `ROWS` rows shares every load of a weight vector w_j; a block of `DEPTH` prefixes is stored so
that the suffix sums of docs/theory.md, 4.4 can run backwards without subtracting large numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numba
import numpy as np
import torch

from firstk._base.simd import LANES, fma, larger, load, max_lanes, splat, store

ROWS = 4
DEPTH = LANES
LN2 = float(np.log(2.0))
LOG2E = float(1 / np.log(2.0))
# Columns swept together: ROWS rows of them stay in the first-level cache.
CHUNK = 2048
# Below this many (row, prefix, column) triples a second thread costs more than it saves.
_TRIPLES_PER_THREAD = 1 << 21

T = TypeVar("T")
jit: Any = numba.njit(nogil=True, cache=True, error_model="numpy")


def padded(columns: int) -> int:
    """Round a number of columns up to a multiple of the vector length."""
    return -(-columns // LANES) * LANES


@jit
def accumulate(L: np.ndarray, wt: np.ndarray, z: np.ndarray, j0: int, j1: int, width: int) -> None:
    """Add z_j w_j for j in [j0, j1) to the running sums L of a group of rows."""
    for c in range(0, width, LANES):
        l0, l1 = load(L, c), load(L, width + c)
        l2, l3 = load(L, 2 * width + c), load(L, 3 * width + c)
        for j in range(j0, j1):
            w = load(wt, j * width + c)
            l0 = fma(splat(z[0, j]), w, l0)
            l1 = fma(splat(z[1, j]), w, l1)
            l2 = fma(splat(z[2, j]), w, l2)
            l3 = fma(splat(z[3, j]), w, l3)
        store(L, c, l0)
        store(L, width + c, l1)
        store(L, 2 * width + c, l2)
        store(L, 3 * width + c, l3)


@jit
def largest(values: np.ndarray, start: int, width: int) -> float:
    """Return the largest of `width` values from `start` on."""
    m = load(values, start)
    for c in range(LANES, width, LANES):
        m = larger(m, load(values, start + c))
    return max_lanes(m)


@jit
def take_group(z: np.ndarray, i: int, group: np.ndarray) -> int:
    """Copy rows i..i+ROWS into `group`, zero rows past the end; return how many are real."""
    real = min(ROWS, z.shape[0] - i)
    group[:] = 0
    for r in range(real):
        group[r] = z[i + r]
    return real


def over_rows(work: Callable[[slice], T], n: int, triples: int) -> list[T]:
    """Call `work` on as many slices of the rows as torch has threads, and return the results in order."""
    threads = max(1, min(torch.get_num_threads(), triples // _TRIPLES_PER_THREAD, -(-n // ROWS)))
    if threads == 1:
        return [work(slice(0, n))]
    step = -(-n // threads // ROWS) * ROWS
    slices = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    # A pool per call: its threads cost microseconds, and a pool kept across a fork would hang.
    with ThreadPoolExecutor(len(slices)) as pool:
        return list(pool.map(work, slices))
