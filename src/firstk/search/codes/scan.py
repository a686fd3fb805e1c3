"""Search on packed bytes: a query becomes tables, a row's score is a sum of look-ups, and the nearest rows are kept.

Queries stay in floating point, rows stay bytes (asymmetric distances; Jégou, Douze and Schmid, 2011). With c what a row
decodes to, the sum of what its bytes stand for, and v_i the variance of coordinate i in its cell,

    <q, z>      about  sum_i q_i c_i                         inner product, and cosine after division by |c| and |q|,
    |q - z|^2   about  |q|^2 - 2 sum_i q_i c_i + s,          s = |c|^2 + sum_i v_i.

Nearness is larger for nearer rows: the sum, divided by |c| for cosines, or twice the sum less s for distances. |c| or s
is one number a row, computed when it comes in: the square of a sum of codebooks is no sum over bytes. Nearness is
summed in float64 in the order of the bytes, so that every engine, block of queries and number of threads gives the same
numbers, and rows of equal nearness are returned in the order of their ids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Numbers that the numpy search holds at once.
_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Rows as they are searched.

    Attributes
    ----------
    packed : ndarray of uint8, shape (n, planes)
    ids : ndarray of int64, shape (n,)
    norms : ndarray of float32, shape (n,), or None
        One number a row; None for inner products.
    cosine : bool
        Whether nearness is divided by `norms`; otherwise they are subtracted, if there are any.
    """

    packed: np.ndarray
    ids: np.ndarray
    norms: np.ndarray | None
    cosine: bool

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, stop: int) -> PackedRows:
        """Return the rows from `start` to `stop`."""
        norms = None if self.norms is None else self.norms[start:stop]
        return PackedRows(self.packed[start:stop], self.ids[start:stop], norms, self.cosine)


def nearness(rows: PackedRows, tables: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return the nearness of rows to each query, (m, n), from what `Packing.tables` gives."""
    total = np.repeat(constant[:, None], len(rows), axis=1)
    for j in range(rows.packed.shape[1]):
        total += np.take(tables[:, j], rows.packed[:, j], axis=1)
    if rows.norms is None:
        return total
    return total / rows.norms.astype(np.float64) if rows.cosine else total - rows.norms.astype(np.float64)


def nearest(rows: PackedRows, tables: np.ndarray, constant: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nearness and ids, (m, size), of the nearest rows of each query, nearest first; -inf where there are fewer.

    In numpy: the reference of `_compiled.nearest`.
    """
    m = len(tables)
    near, found = np.full((m, size), -np.inf), np.zeros((m, size), np.int64)
    step = max(size, _NUMBERS // m, 1)
    for start in range(0, len(rows), step):
        part = rows.part(start, start + step)
        here = np.hstack([found, np.broadcast_to(part.ids, (m, len(part)))])
        near, found = best(np.hstack([near, nearness(part, tables, constant)]), here, size)
    return near, found


def best(near: np.ndarray, ids: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nearness and ids of the `size` nearest of each query, nearest first, ties to the lower id."""
    if near.shape[1] > 4 * size:
        # Everything that is as near as the last: ties are decided below, among few.
        worst = np.partition(near, near.shape[1] - size, axis=1)[:, near.shape[1] - size, None]
        most = int((near >= worst).sum(axis=1).max())
        kept = np.argpartition(-near, most - 1, axis=1)[:, :most]
        near, ids = np.take_along_axis(near, kept, 1), np.take_along_axis(ids, kept, 1)
    order = np.lexsort((ids, -near), axis=1)[:, :size]
    return np.take_along_axis(near, order, 1), np.take_along_axis(ids, order, 1)
