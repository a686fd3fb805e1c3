"""Search on packed bytes: a query becomes tables, a row's score is a sum of look-ups, and the nearest rows are kept.

Queries stay in floating point, rows stay bytes (asymmetric distances; Jégou, Douze and Schmid, 2011). With c the
centroid of the cell of coordinate i,

    <q, z>      about  sum_i q_i c_i                     inner product, and cosine after division by |c| and |q|,
    |q - z|^2   about  |q|^2 - sum_i (2 q_i c_i - s_i),  s_i = E[z_i^2 | cell].

Nearness is larger for nearer rows: the sum, divided by |c| for cosines. It is summed in float64 in the order of the
bytes, so that every engine, block of queries and number of threads gives the same numbers, and rows of equal nearness
are returned in the order of their ids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk.retrieval.packing import Packing

# Rows of a tile: what one instruction looks up.
TILE = 32
# Places of a tile's rows: sums are widened by even and odd places, and the first half of the rows is at the even ones.
_PLACES = np.arange(TILE).reshape(2, TILE // 2).T.ravel()
_ROWS_OF_PLACES = np.argsort(_PLACES)
# Numbers that the numpy search holds at once.
_NUMBERS = 1 << 22
# Largest sums of four look-ups, and of all of them.
_BYTE, _WORD = 255, 65_535


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Packed rows in tiles of 32: ``tiles[t, j]`` holds byte j of the rows of tile t.

    Attributes
    ----------
    packing : Packing
    tiles : ndarray of uint8, shape (T, planes, 32)
    n : int
        Rows; the rest of the last tile is padding.
    norms : ndarray of float32, shape (32 T,), or of no entries
        Norms of what the rows decode to, one where that is zero: for cosines only.
    """

    packing: Packing
    tiles: np.ndarray
    n: int
    norms: np.ndarray

    @classmethod
    def of(cls, packing: Packing, codes: np.ndarray, *, cosine: bool) -> PackedRows:
        """Pack stored strings."""
        return cls.of_packed(packing, packing.packed(codes), cosine=cosine)

    @classmethod
    def of_packed(cls, packing: Packing, rows: np.ndarray, *, cosine: bool) -> PackedRows:
        """Arrange packed rows in tiles, and take their norms."""
        n = len(rows)
        padded = np.zeros((-(-n // TILE) * TILE, packing.planes), np.uint8)
        padded[:n] = rows
        tiles = padded.reshape(-1, TILE, packing.planes)[:, _PLACES].transpose(0, 2, 1)
        norms = np.empty(0, np.float32)
        if cosine:
            norms = np.sqrt(packing.squared_norms(padded)).astype(np.float32)
            norms[norms == 0] = 1
        return cls(packing, np.ascontiguousarray(tiles), n, norms)

    def rows(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return packed rows from `start` to `stop`."""
        stop = self.n if stop is None else min(stop, self.n)
        first = start // TILE
        some = self.tiles[first : -(-stop // TILE), :, _ROWS_OF_PLACES]
        rows = some.transpose(0, 2, 1).reshape(-1, self.packing.planes)
        return rows[start - first * TILE : stop - first * TILE]

    @property
    def codes(self) -> np.ndarray:
        """The stored strings, (n, bytes)."""
        return self.packing.unpacked(self.rows())

    @property
    def nbytes(self) -> int:
        """Memory of tiles and norms."""
        return self.tiles.nbytes + self.norms.nbytes


@dataclass(frozen=True, eq=False)
class Tables:
    """A block of queries as tables.

    Attributes
    ----------
    constant : ndarray of float64, shape (m,)
        What coordinates without bits add, the same for every row.
    halves, wholes : ndarray of float64, shape (m, tables, 16) and (m, tables, 256)
        What a half and a byte add: see `Packing`.
    """

    packing: Packing
    constant: np.ndarray
    halves: np.ndarray
    wholes: np.ndarray

    @classmethod
    def of(cls, packing: Packing, Q: np.ndarray, metric: str) -> Tables:
        """Compute the tables of queries, of unit norm for cosines."""
        weights, squares = (2.0 * Q, 1.0) if metric == "l2" else (Q, 0.0)
        weights = weights.astype(np.float64)
        unused = packing.unused
        # Row by row: a product of matrices would round differently in other company.
        constant = np.array([float(np.sum(row)) for row in weights[:, unused] * packing.mean[unused]])
        constant = constant - squares * float(packing.mean_square[unused].sum())
        return cls(
            packing, constant, packing.halves.weighted(weights, squares), packing.wholes.weighted(weights, squares)
        )

    def __len__(self) -> int:
        return len(self.constant)

    def only(self, some: np.ndarray) -> Tables:
        """Return the tables of some of the queries."""
        return Tables(self.packing, self.constant[some], self.halves[some], self.wholes[some])

    def bounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Round the tables up to bytes: an upper bound of a row's sum from look-ups of sixteen entries.

        Returns
        -------
        bytes : ndarray of uint8, shape (m, planes, 2, 16)
            Tables of the lower and upper half of each byte.
        base, step : ndarray of float64, shape (m,)
            The sum of a row is at most base + step * (the sum of its look-ups), up to the rounding of float64.

        Notes
        -----
        A byte with a coordinate of more than four bits is no sum over its halves. With T[h, l] its table, b[l] is the
        mean over h of T[h, l] less its mean over l, and a[h] = max_l T[h, l] - b[l], so that a[h] + b[l] >= T[h, l].
        Sums of the four look-ups of two neighboring bytes fit into a byte, and all of them into sixteen bits: the
        largest sum decides the step.
        """
        m, planes, table = len(self), self.packing.planes, self.packing.table
        parts = np.empty((m, planes, 2, 16))
        split, halved = np.flatnonzero(table >= 0), np.flatnonzero(table < 0)
        low = -1 - table[halved]
        parts[:, halved, 0], parts[:, halved, 1] = self.halves[:, low], self.halves[:, low + 1]
        T = self.wholes[:, table[split]].reshape(m, len(split), 16, 16)
        b = (T - T.mean(axis=3, keepdims=True)).mean(axis=2)
        parts[:, split, 0], parts[:, split, 1] = b, (T - b[:, :, None]).max(axis=3)
        least = parts.min(axis=3, keepdims=True)
        parts -= least
        ranges = parts.max(axis=3).sum(axis=2)
        pairs = np.add.reduceat(ranges, np.arange(0, planes, 2), axis=1)
        # Each look-up is rounded up, by one at most.
        room = min(_BYTE, _WORD // pairs.shape[1]) - 4
        step = pairs.max(axis=1) / room
        step[~(step > 0)] = 1.0
        rounded = np.ceil(parts / step[:, None, None, None]).astype(np.uint8)
        return rounded, self.constant + least.sum(axis=(1, 2, 3)), step


def nearness(rows: PackedRows, tables: np.ndarray, constant: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return the nearness of rows `start` to `stop` to each query, (m, stop - start), from tables of bytes."""
    packed = rows.rows(start, stop)
    total = np.repeat(constant[:, None], len(packed), axis=1)
    for j in range(rows.packing.planes):
        total += np.take(tables[:, j], packed[:, j], axis=1)
    return total / rows.norms[start:stop].astype(np.float64) if rows.norms.size else total


def nearest(
    rows: PackedRows, queries: Tables, size: int, ids: np.ndarray, span: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and nearness, (m, size), of the nearest rows of tiles span[0] to span[1], in no order.

    In numpy: the reference of `_compiled_codes.nearest`. With fewer rows than `size`, the rest has nearness -inf.

    Parameters
    ----------
    rows : PackedRows
    queries : Tables
    size : int
    ids : ndarray of int64, shape (n,)
    span : tuple of int
    """
    tables = queries.packing.joined(queries.halves, queries.wholes)
    start, stop = span[0] * TILE, min(span[1] * TILE, rows.n)
    near, found = np.full((len(queries), size), -np.inf), np.zeros((len(queries), size), np.int64)
    step = max(size, _NUMBERS // len(queries), TILE)
    for first in range(start, stop, step):
        last = min(first + step, stop)
        N = np.hstack([near, nearness(rows, tables, queries.constant, first, last)])
        here = np.hstack([found, np.broadcast_to(ids[first:last], (len(queries), last - first))])
        near, found = best(N, here, size)
    return found, near


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
