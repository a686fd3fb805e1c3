"""Packing: the bits of an embedded code, moved so that every byte holds whole coordinates.

A stored string has the bits of a coordinate far apart, in the order in which they were given. A search wants them
together: a byte is then one look-up in a table of 256 entries, as in product quantization (Jégou, Douze and Schmid,
2011). The bytes of codebooks come first and stay as they are: one look-up each. The order of the bits is all that
changes: strings are packed when rows come in, and unpacked when they are saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firstk.bits import Embedded

BYTE, _ENTRIES = 8, 256
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the bits of a string go, and what the bytes then stand for.

    Attributes
    ----------
    bytes : int
        Length of a stored string.
    source : ndarray of int, shape (8 * planes,)
        Place in the string of each packed bit, highest bit of a byte first; 8 * bytes where a bit is not used.
    books : list of tuple
        Of each of the first bytes the coordinates that its codebook sees, a slice, and its centroids there, float64.
    coordinate : ndarray of int, shape (planes - levels, slots)
        The coordinates in each byte after those; one past the last where it has fewer than others.
    value, variance : ndarray of float64, shape (planes - levels, slots, 256)
        What a byte says these are restored as, and the variance in their cells (`Embedded.cell_tables`).
    fixed : ndarray of float64, shape (k,)
        What coordinates without bits are decoded as, whatever the row; zero for all others.
    metric : str
    fixed_variance : float
        Sum of the variances of coordinates without bits, whatever the row.
    """

    bytes: int
    source: np.ndarray
    books: list[tuple[slice, np.ndarray]]
    coordinate: np.ndarray
    value: np.ndarray
    variance: np.ndarray
    fixed: np.ndarray
    metric: str
    fixed_variance: float

    @classmethod
    def of(cls, embedded: Embedded, metric: str) -> Packing:
        """Choose a packing for stored strings; `metric` says which number of a row its score needs."""
        cells = [tuple(part.astype(np.float64) for part in tables) for tables in embedded.cell_tables]
        depths = np.pad(embedded.bits, (0, len(cells) - len(embedded.bits)))
        # Best-fit decreasing: the coordinate of most bits first, into the fullest byte that has room for it.
        held: list[list[tuple[int, int, int]]] = []  # of each byte: coordinates, their bits, and where the lowest is
        room: list[int] = []
        for c in np.argsort(-depths, kind="stable").tolist():
            depth = int(depths[c])
            if not depth:
                break
            best = min((i for i, free in enumerate(room) if free >= depth), key=room.__getitem__, default=len(room))
            if best == len(room):
                held.append([])
                room.append(BYTE)
            room[best] -= depth
            held[best].append((c, depth, room[best]))
        first = BYTE * embedded.codebooks.levels
        places: dict[int, list[int]] = {}
        for place, c in enumerate(embedded.order.tolist(), start=first):
            places.setdefault(c, []).append(place)
        source = np.full((len(held), BYTE), BYTE * embedded.n_bytes)
        slots = max(map(len, held), default=0)
        coordinate = np.full((len(held), slots), len(cells))
        value, variance = np.zeros((2, len(held), slots, _ENTRIES))
        for j, parts in enumerate(held):
            for slot, (c, depth, shift) in enumerate(parts):
                source[j, BYTE - shift - depth : BYTE - shift] = places[c]
                cell = (np.arange(_ENTRIES) >> shift) & ((1 << depth) - 1)
                coordinate[j, slot] = c
                value[j, slot], variance[j, slot] = (each[cell] for each in cells[c])
        without = [i for i, depth in enumerate(depths) if not depth]
        fixed = np.zeros(len(cells))
        fixed[without] = [cells[i][0][0] for i in without]
        return cls(
            embedded.n_bytes,
            np.concatenate([np.arange(first), source.ravel()]),
            [(window, book.astype(np.float64)) for window, book in embedded.codebooks.books],
            coordinate,
            value,
            variance,
            fixed,
            metric,
            float(sum(cells[i][1][0] for i in without)),
        )

    @property
    def planes(self) -> int:
        """Bytes of a packed row."""
        return self.levels + len(self.coordinate)

    @property
    def levels(self) -> int:
        """Bytes of codebooks, the first ones."""
        return len(self.books)

    def packed(self, codes: np.ndarray) -> np.ndarray:
        """Return packed rows (n, planes) of stored strings (n, bytes)."""
        return _moved(codes, self.source)

    def unpacked(self, rows: np.ndarray) -> np.ndarray:
        """Return the stored strings of packed rows."""
        back = np.full(BYTE * self.bytes, BYTE * self.planes)
        used = self.source < BYTE * self.bytes
        back[self.source[used]] = np.flatnonzero(used)
        return _moved(rows, back)

    def squares(self, rows: np.ndarray) -> np.ndarray:
        """Return the squared norm of what each packed row decodes to, and for distances the variances on top of it."""
        total = np.empty(len(rows))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            Z = np.repeat(self.fixed[:, None], len(part), axis=1)  # (k, n)
            for level, (window, book) in enumerate(self.books):
                Z[window] += book.T[:, part[:, level]]
            for j, coordinates in enumerate(self.coordinate):
                for slot in np.flatnonzero(coordinates < len(Z)):
                    Z[coordinates[slot]] += self.value[j, slot][part[:, self.levels + j]]
            total[start : start + len(part)] = np.square(Z).sum(axis=0)
        if self.metric == "l2":
            total += self.fixed_variance
            for j, entries in enumerate(self.variance.sum(axis=1), start=self.levels):
                total += entries[rows[:, j]]
        return total

    def norms(self, rows: np.ndarray) -> np.ndarray:
        """Return the number that the score of each packed row needs, float32; see `firstk.search.codes.scan`."""
        squares = self.squares(rows)
        if self.metric == "l2":
            return squares.astype(np.float32)
        norms = np.sqrt(squares).astype(np.float32)
        return np.where(norms > 0, norms, np.float32(1))

    def tables(self, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what each byte adds to the score of a row, (m, planes, 256), and what all rows have in common, (m,).

        Query by query, elementwise and in one order: a product of matrices would round differently in other company.
        """
        weights = np.zeros((len(Q), Q.shape[1] + 1))  # slots that are not used have weight zero
        weights[:, :-1] = Q.astype(np.float64) * (2.0 if self.metric == "l2" else 1.0)
        tables = np.zeros((len(Q), self.planes, _ENTRIES))
        for slot in range(self.coordinate.shape[1]):
            tables[:, self.levels :] += weights[:, self.coordinate[:, slot], None] * self.value[:, slot]
        for table, row in zip(tables, weights, strict=True):
            for levels, coordinates, books in self._books_by_width:
                table[levels] = np.einsum("lec,lc->le", books, row[coordinates])
        return tables, np.array([float(np.sum(row[:-1] * self.fixed)) for row in weights])

    @cached_property
    def _books_by_width(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Codebooks of each width: their numbers, the coordinates that they see, (l, w), and centroids, (l, 256, w)."""
        starts = np.array([window.start for window, _ in self.books], np.int64)
        widths = np.array([book.shape[1] for _, book in self.books], np.int64)
        groups = []
        for width in np.unique(widths):
            levels = np.flatnonzero(widths == width)
            coordinates = starts[levels, None] + np.arange(width)
            groups.append((levels, coordinates, np.stack([self.books[level][1] for level in levels])))
        return groups


def _moved(codes: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Return rows whose bit i is bit source[i] of the given ones, or zero past their end."""
    moved = np.empty((len(codes), len(source) // BYTE), np.uint8)
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        block = codes[start : start + _ROWS_AT_ONCE]
        bits = np.zeros((len(block), BYTE * codes.shape[1] + 1), np.uint8)
        bits[:, :-1] = np.unpackbits(block, axis=1)
        moved[start : start + len(block)] = np.packbits(np.take(bits, source, axis=1), axis=1)
    return moved
