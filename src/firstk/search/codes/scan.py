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

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firstk.search.codes.packing import Packing

# Rows of a tile: what one instruction looks up.
TILE = 32
# Places of a tile's rows: sums are widened by even and odd places, and the first half of the rows is at the even ones.
_PLACES = np.arange(TILE).reshape(2, TILE // 2).T.ravel()
_ROWS_OF_PLACES = np.argsort(_PLACES)
# Numbers that the numpy search holds at once.
_NUMBERS = 1 << 22
# Rows that are packed or unpacked together: a multiple of the tile.
_BLOCK = 1 << 16
# Largest sums of four look-ups, and of all of them.
_BYTE, _WORD = 255, 65_535


class PackedRows:
    """Packed rows in tiles of 32: ``tiles[t, j]`` holds byte j of a tile.

    They do not change while they are read. Additions write past them, into memory that the next ones share, under a
    lock; an addition to earlier ones, such as those of a copied index, gets memory of its own.

    Attributes
    ----------
    packing : Packing
        Its metric says whether a row has a number of its own, and what that is.
    n : int
        Rows; the rest of the last tile is padding.
    """

    def __init__(self, packing: Packing, codes: np.ndarray):
        self.packing, self.n = packing, 0
        self._used = [0]  # rows of the memory that are taken, by whichever of those that share it
        self._tiles = np.zeros((0, packing.planes, TILE), np.uint8)
        self._norms = np.zeros(0, np.float32)
        self._append(codes)

    def __len__(self) -> int:
        return self.n

    @property
    def tiles(self) -> np.ndarray:
        """uint8 of shape (T, planes, 32)."""
        return self._tiles[: -(-self.n // TILE)]

    @property
    def cosine(self) -> bool:
        """Whether nearness is divided by `norms`; otherwise they are subtracted, if there are any."""
        return self.packing.metric == "cosine"

    @property
    def norms(self) -> np.ndarray:
        """One number a row, float32 of shape (32 T,); empty for inner products.

        For cosines the norm of what it decodes to, one where that is zero; for distances what is subtracted.
        """
        return self._norms[: -(-self.n // TILE) * TILE]

    @property
    def nbytes(self) -> int:
        """Memory of tiles and norms."""
        return self._tiles.nbytes + self._norms.nbytes

    def appended(self, codes: np.ndarray) -> PackedRows:
        """Return rows with stored strings at the end; capacity doubles, so that many additions cost what one does."""
        grown = copy(self)
        grown._append(codes)
        return grown

    def kept(self, mask: np.ndarray) -> PackedRows:
        """Return the rows of a mask, in their order."""
        fewer = PackedRows(self.packing, np.empty((0, self.packing.bytes), np.uint8))
        fewer._reserve(int(mask.sum()))
        for start in range(0, self.n, _BLOCK):
            fewer._write(self.rows(start, start + _BLOCK)[mask[start : start + _BLOCK]])
        return fewer

    def rows(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return packed rows from `start` to `stop`, (n, planes)."""
        stop, first = self.n if stop is None else min(stop, self.n), start // TILE
        some = self._tiles[first : -(-stop // TILE)][:, :, _ROWS_OF_PLACES]
        rows = some.transpose(0, 2, 1).reshape(-1, self.packing.planes)
        return rows[start - first * TILE : stop - first * TILE]

    def codes(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the stored strings, (n, bytes), of all rows or of those with these numbers."""
        if rows is not None:
            tile, inside = np.divmod(rows, TILE)
            return self.packing.unpacked(self._tiles[tile, :, _ROWS_OF_PLACES[inside]])
        codes = np.empty((self.n, self.packing.bytes), np.uint8)
        for start in range(0, self.n, _BLOCK):
            codes[start : start + _BLOCK] = self.packing.unpacked(self.rows(start, start + _BLOCK))
        return codes

    def _reserve(self, rows: int) -> None:
        needed, held = -(-rows // TILE), len(self._tiles)
        if needed > held or self._used[0] != self.n:
            capacity, self._used = needed if held == 0 else max(needed, 2 * held), [self.n]
            tiles = np.zeros((capacity, *self._tiles.shape[1:]), np.uint8)
            tiles[:held] = self._tiles
            norms = np.ones(0 if self.packing.metric == "inner_product" else capacity * TILE, np.float32)
            norms[: len(self._norms)] = self._norms
            self._tiles, self._norms = tiles, norms

    def _append(self, codes: np.ndarray) -> None:
        self._reserve(self.n + len(codes))
        for start in range(0, len(codes), _BLOCK):
            self._write(self.packing.packed(codes[start : start + _BLOCK]))

    def _write(self, packed: np.ndarray) -> None:
        """Put packed rows at the end, where there is room; nothing is written to the rows before them."""
        stop = self.n + len(packed)
        tile, inside = np.divmod(np.arange(self.n, stop), TILE)
        self._tiles[tile, :, _ROWS_OF_PLACES[inside]] = packed
        if self._norms.size:
            squares = self.packing.squares(packed)
            norms = np.sqrt(squares).astype(np.float32)
            self._norms[self.n : stop] = np.where(norms > 0, norms, 1) if self.cosine else squares
        self.n = self._used[0] = stop


@dataclass(frozen=True, eq=False)
class Tables:
    """A block of queries as tables.

    Attributes
    ----------
    constant : ndarray of float64, shape (m,)
        What coordinates without bits add, the same for every row.
    books : ndarray of float64, shape (m, levels, 256)
        What the first bytes add, those of codebooks.
    halves, wholes : ndarray of float64, shape (m, tables, 16) and (m, tables, 256)
        What a half and a byte add: see `Packing`.
    """

    packing: Packing
    constant: np.ndarray
    books: np.ndarray
    halves: np.ndarray
    wholes: np.ndarray

    @classmethod
    def of(cls, packing: Packing, Q: np.ndarray) -> Tables:
        """Compute the tables of queries, of unit norm for cosines."""
        weights = Q.astype(np.float64) * (2.0 if packing.metric == "l2" else 1.0)
        # Row by row: a product of matrices would round differently in other company.
        constant = np.array([float(np.sum(row * packing.fixed)) for row in weights])
        parts = (packing.book_tables(weights), packing.halves.weighted(weights), packing.wholes.weighted(weights))
        return cls(packing, constant, *parts)

    def __len__(self) -> int:
        return len(self.constant)

    @cached_property
    def flat(self) -> np.ndarray:
        """All tables of a query in a row, and a zero: see `Packing.places`."""
        m = len(self)
        parts = (self.halves, self.wholes, self.books)
        return np.hstack([*(part.reshape(m, -1) for part in parts), np.zeros((m, 1))])

    @cached_property
    def book_reach(self) -> np.ndarray:
        """The most that the bytes of codebooks can add or take off, (m,)."""
        return np.asarray(np.abs(self.books).max(axis=2, initial=0).sum(axis=1))

    @property
    def joined(self) -> np.ndarray:
        """One table of 256 entries for each byte, (m, planes, 256)."""
        return self.packing.joined(self.books, self.halves, self.wholes)

    def only(self, some: np.ndarray) -> Tables:
        """Return the tables of some of the queries."""
        return Tables(self.packing, self.constant[some], self.books[some], self.halves[some], self.wholes[some])

    def bounds(self, thresholds: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Round the tables to bytes: an upper bound of a row's sum from look-ups of sixteen entries.

        Parameters
        ----------
        thresholds : ndarray of float64, shape (m,), optional
            Sums below which a row does not matter: bounds are then closer for rows that do.

        Returns
        -------
        bytes : ndarray of uint8, shape (m, planes - levels, 2, 16)
            Tables of the lower and upper half of each byte after those of codebooks, which are not rounded.
        base, step : ndarray of float64, shape (m,)
            The sum of a row is at most base + step * (the sum of its look-ups), up to the rounding of float64.

        Notes
        -----
        A byte with a coordinate of more than four bits is no sum over its halves. With T[h, l] its table, b[l] is the
        mean over h of T[h, l] less its mean over l, and a[h] = max_l T[h, l] - b[l], so that a[h] + b[l] >= T[h, l].
        Sums of the four look-ups of two neighboring bytes fit into a byte, and all of them into sixteen bits: the
        largest sum decides the step. Entries are rounded to the nearest step, and what a table loses at most by that is
        part of `base`: next to nothing for tables whose entries differ by less than a step, which most do where the
        first coordinates have most of the variance. A row reaches a threshold only if each of its entries is within
        the largest sum there could be less the threshold of the largest of its table. Smaller entries are raised to
        that, which narrows the range.
        """
        table = self.packing.table
        m, planes = len(self), len(table)
        if not planes:
            return np.zeros((m, 0, 2, 16), np.uint8), self.constant.copy(), np.ones(m)
        parts = np.empty((m, planes, 2, 16))
        split, halved = np.flatnonzero(table >= 0), np.flatnonzero(table < 0)
        low = -1 - table[halved]
        H, W = self.halves, self.wholes
        if thresholds is not None:
            most = self.constant + sum(part.max(axis=2).sum(axis=1) for part in (H, W, self.books))
            room = np.maximum(most - thresholds, 0)[:, None, None]
            H, W = (np.maximum(each, each.max(axis=2, keepdims=True) - room) for each in (H, W))
        parts[:, halved, 0], parts[:, halved, 1] = H[:, low], H[:, low + 1]
        T = W[:, table[split]].reshape(m, len(split), 16, 16)
        # Upper halves whose entries are all at the bottom need no help from the lower ones.
        counted = (T.max(axis=3) > T.min(axis=(2, 3))[..., None]) + 1e-9
        b = ((T - T.mean(axis=3, keepdims=True)) * counted[..., None]).sum(axis=2) / counted.sum(axis=2)[..., None]
        parts[:, split, 0], parts[:, split, 1] = b, (T - b[:, :, None]).max(axis=3)
        least = parts.min(axis=3, keepdims=True)
        parts -= least
        pairs = np.add.reduceat(parts.max(axis=3).sum(axis=2), np.arange(0, planes, 2), axis=1)
        # Rounding adds half a step at most.
        room = min(_BYTE, _WORD // pairs.shape[1]) - 2
        step = pairs.max(axis=1) / room
        step[~(step > 0)] = 1.0
        parts /= step[:, None, None, None]
        rounded = np.rint(parts)
        lost = (parts - rounded).max(axis=3)
        base = self.constant + least.sum(axis=(1, 2, 3)) + step * lost.sum(axis=(1, 2))
        return rounded.astype(np.uint8), base, step


def products(rows: PackedRows, tables: np.ndarray, constant: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return the sums of look-ups of rows `start` to `stop` for each query, (m, stop - start)."""
    packed = rows.rows(start, stop)
    total = np.repeat(constant[:, None], len(packed), axis=1)
    for j in range(rows.packing.planes):
        total += np.take(tables[:, j], packed[:, j], axis=1)
    return total


def nearness(rows: PackedRows, tables: np.ndarray, constant: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return the nearness of rows `start` to `stop` to each query, (m, stop - start), from tables of bytes."""
    total = products(rows, tables, constant, start, stop)
    if not rows.norms.size:
        return total
    norms = rows.norms[start:stop].astype(np.float64)
    return total / norms if rows.cosine else total - norms


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
    tables = queries.joined
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
