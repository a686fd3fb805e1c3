r"""k-means whose result does not depend on the last bits of a product: rows are integers, and sums of them are exact.

Rows lie on a grid of which the largest number is :math:`2^{20}`, so that means are sums of integers in float64. The
nearest centroid is the one of the largest :math:`2\, x \cdot c - |c|^2`, on a coarser grid where no row is longer than
:math:`2^{11}`: all partial sums are then integers below :math:`2^{24}`, in whatever order a product of float32 matrices
adds them up. Both grids are powers of two.

Reference: Lloyd 1982.
"""

from __future__ import annotations

import numpy as np

from firstk._base.concurrency import cores, ordered_map

# Centroids of a codebook: one byte.
ENTRIES = 256
# Coordinates that are seen before all are, and rounds for each number of them, at most.
_WIDTHS, _ROUNDS = (4, 16, 64), 8
# The largest number on the grid of rows, and the largest norm on that of distances.
_LARGEST, _LONGEST = 2.0**20, 2.0**11
# Rows whose distances are computed at once: they stay in the cache; and those that a core takes on at a time.
_ROWS, _SHARE = 512, 16_384


def as_integers(rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Return rows on the grid, integers in float64, and the power of two that they were multiplied by."""
    scale = float(2.0 ** np.floor(np.log2(_LARGEST / np.abs(rows).max())))
    return np.rint(rows * scale), scale


def k_means(rows: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the centroids of integer rows with weights, integers of shape (256, m), and the nearest of each row."""
    # Sums of integers are exact in any order. Large arrays are changed in place: there are few copies of the rows.
    longest = np.sqrt(np.einsum("ij,ij->i", rows, rows).max())
    coarse = np.array(rows.T, order="C")
    coarse *= min(1.0, 2.0 ** np.floor(np.log2(_LONGEST / max(longest, 1.0))))
    np.rint(coarse, out=coarse)
    doubled = np.ones((len(coarse) + 1, len(rows)), dtype=np.float32)
    np.multiply(coarse, 2, out=doubled[:-1], casting="same_kind")
    # Few coordinates of large variance first: groups found there are good starts for all of them.
    m, owner = len(coarse), np.zeros(0, dtype=np.int64)
    centroids = coarse[:, np.linspace(0, len(rows) - 1, ENTRIES).astype(np.int64)].T.copy()
    largest = np.argsort(-np.einsum("ij,ij->i", coarse, coarse), kind="stable")
    for width in (*(w for w in _WIDTHS if w < m), m):
        seen = np.sort(largest[:width])
        some, columns = (doubled, coarse) if width == m else (doubled[[*seen, m]], coarse[seen])
        for _ in range(_ROUNDS):
            if len(owner):
                centroids[:, seen] = means(columns, share, owner, centroids[:, seen])
            before, owner = owner, nearest(some, centroids[:, seen])
            if np.array_equal(before, owner):
                break
        centroids[:, seen] = means(columns, share, owner, centroids[:, seen])
    owner = nearest(doubled, centroids)
    coarse[...] = rows.T
    return means(coarse, share, owner, np.zeros(centroids.shape), fill=False), owner


def nearest(doubled: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Return the nearest of some integer centroids to each row: exact, of equals the first.

    The columns of `doubled`, float32 of shape (m + 1, n), are twice the rows, which are integers, and a one.
    """
    book = np.column_stack([centroids, -np.square(centroids).sum(axis=1)]).astype(np.float32).T
    found = np.empty(doubled.shape[1], dtype=np.int64)

    def work(first: int) -> None:
        for start in range(first, min(first + _SHARE, len(found)), _ROWS):
            part = slice(start, start + _ROWS)
            (doubled[:, part].T @ book).argmax(axis=1, out=found[part])

    for _ in ordered_map(work, range(0, len(found), _SHARE), cores()):
        pass
    return found


def means(
    columns: np.ndarray, share: np.ndarray, owner: np.ndarray, centroids: np.ndarray, *, fill: bool = True
) -> np.ndarray:
    """Return the rounded mean of the rows of each centroid, of which `columns`, (m, n), are the coordinates.

    Sums are in the order of the rows. One without rows moves to a row that is far from its own, or stays.
    """
    weight = np.bincount(owner, share, minlength=len(centroids))
    total = np.stack([np.bincount(owner, share * column, minlength=len(centroids)) for column in columns], axis=1)
    made = centroids.copy()
    heavy = weight > 0
    made[heavy] = np.rint(total[heavy] / weight[heavy, None])
    empty = np.flatnonzero(np.bincount(owner, minlength=len(centroids)) == 0)
    if fill and len(empty):
        apart = np.square(columns.T - centroids[owner]).sum(axis=1)
        made[empty] = columns.T[np.argsort(-apart, kind="stable")[: len(empty)]]
    return made


def runner_up(rows: np.ndarray, centroids: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the number of the nearest centroid to each row that is not its own; sums of integers, so exact."""
    near = 2 * rows @ centroids.T - np.square(centroids).sum(axis=1)
    near[np.arange(len(rows)), owner] = -np.inf
    return np.asarray(near.argmax(axis=1))
