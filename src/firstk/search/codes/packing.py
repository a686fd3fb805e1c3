"""Packing: the bits of an embedded code, moved so that every byte holds whole coordinates.

A stored string has the bits of a coordinate far apart, in the order in which they were given. A search wants them
together: a byte is then one look-up in a table of 256 entries, as in product quantization (Jégou, Douze and Schmid,
2011), and a coordinate of at most four bits lies within one half of its byte, so that a half is one look-up in a table
of sixteen. The bytes of codebooks come first and stay as they are: one look-up each. The order of the bits is all that
changes: strings are packed when rows come in, and unpacked when they are saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from firstk.bits import Embedded

# Bits of a byte and of its half, and the most bits that a coordinate can have.
BYTE, HALF = 8, 4
# Coordinates in one table, at most: one bit each in a half; five bits and three of one bit in a byte.
_SLOTS = 4
_ROWS_AT_ONCE = 8192


class BytePart(NamedTuple):
    """A coordinate within a byte: `depth` bits, the lowest of them at `shift`."""

    coordinate: int
    depth: int
    shift: int


@dataclass(frozen=True, eq=False)
class Slots:
    """Coordinates of tables of one size: entry v of table t is about the cells ``value[t, :, v]`` of its coordinates.

    Attributes
    ----------
    coordinate : ndarray of int, shape (tables, 4)
        One past the last where a table has fewer than four; values are zero there.
    value, variance : ndarray of float64, shape (tables, 4, entries)
        What cells are restored as, and the variance in them (`Embedded.cell_tables`).
    """

    coordinate: np.ndarray
    value: np.ndarray
    variance: np.ndarray

    def weighted(self, weights: np.ndarray) -> np.ndarray:
        """Return ``sum_c weights[c] value[c]`` of every entry, (m, tables, entries).

        Elementwise and in one order, so that a query has the same tables in any company.
        """
        padded = np.zeros((len(weights), weights.shape[1] + 1))  # slots that are not used have weight zero
        padded[:, :-1] = weights
        total = np.zeros((len(weights), *self.value.shape[::2]))
        for slot in range(_SLOTS):
            total += padded[:, self.coordinate[:, slot], None] * self.value[:, slot]
        return total


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
    table : ndarray of int, shape (planes - levels,)
        Of a byte after those, with a coordinate of more than four bits: its place in `wholes`; else -1 minus the place
        of its lower half in `halves`, which its upper half follows.
    halves, wholes : Slots
        Tables of sixteen and of 256 entries.
    fixed : ndarray of float64, shape (k,)
        What coordinates without bits are decoded as, whatever the row; zero for all others.
    metric : str
    fixed_variance : float
        Sum of the variances of coordinates without bits, whatever the row.
    """

    bytes: int
    source: np.ndarray
    books: list[tuple[slice, np.ndarray]]
    table: np.ndarray
    halves: Slots
    wholes: Slots
    fixed: np.ndarray
    metric: str
    fixed_variance: float

    @property
    def planes(self) -> int:
        """Bytes of a packed row."""
        return self.levels + len(self.table)

    @property
    def levels(self) -> int:
        """Bytes of codebooks, the first ones."""
        return len(self.books)

    @cached_property
    def places(self) -> np.ndarray:
        """Where a byte finds what it adds in the tables of a query, one after the other: int64 of shape (planes, 4).

        The tables of halves come first, then those of whole bytes, of codebooks, and a zero. Entry ``first + (byte &
        mask)`` and entry ``second + (byte >> shift)`` are added; for a whole byte the second is the zero.
        """
        size = 16 * len(self.halves.coordinate)
        books = size + 256 * len(self.wholes.coordinate)
        zero = books + 256 * self.levels
        places = [(books + 256 * level, 255, zero, BYTE) for level in range(self.levels)]
        places += [
            (size + 256 * at, 255, zero, BYTE) if at >= 0 else (16 * (-1 - at), 15, 16 * -at, HALF)
            for at in self.table.tolist()
        ]
        return np.array(places, dtype=np.int64).reshape(-1, 4)

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
            total[start : start + len(part)] = np.square(self._decoded(part)).sum(axis=0)
        if self.metric == "l2":
            total += self.fixed_variance
            no_books = np.zeros((1, self.levels, 256))
            parts = [each.variance.sum(axis=1)[None] for each in (self.halves, self.wholes)]
            for j, entries in enumerate(self.joined(no_books, *parts)[0]):
                total += entries[rows[:, j]]
        return total

    def _decoded(self, rows: np.ndarray) -> np.ndarray:
        """Return what packed rows decode to, (k, n)."""
        Z = np.tile(np.append(self.fixed, 0.0)[:, None], (1, len(rows)))  # the last one is of slots that are not used
        for j, at in enumerate(self.table.tolist(), start=self.levels):
            byte = rows[:, j]
            halves = ((self.halves, -1 - at, byte & 15), (self.halves, -at, byte >> HALF))
            for slots, t, entry in ((self.wholes, at, byte),) if at >= 0 else halves:
                for slot in range(_SLOTS):
                    if slots.coordinate[t, slot] < len(self.fixed):
                        Z[slots.coordinate[t, slot]] += slots.value[t, slot][entry]
        for level, (window, book) in enumerate(self.books):
            Z[window] += book.T[:, rows[:, level]]
        return Z[:-1]

    def book_tables(self, weights: np.ndarray) -> np.ndarray:
        """Return the products of weights with all centroids, (m, levels, 256), query by query and in one order."""
        total = np.empty((len(weights), self.levels, 256))
        for query, row in zip(total, weights, strict=True):
            for levels, coordinates, books in self._books_by_width:
                query[levels] = np.einsum("lec,lc->le", books, row[coordinates])
        return total

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

    def joined(self, books: np.ndarray, halves: np.ndarray, wholes: np.ndarray) -> np.ndarray:
        """Return one table of 256 entries for each byte, (m, planes, 256), from tables of codebooks, halves, bytes."""
        tables = np.empty((len(halves), self.planes, 256))
        tables[:, : self.levels] = books
        for j, at in enumerate(self.table, start=self.levels):
            if at >= 0:
                tables[:, j] = wholes[:, at]
            else:
                low, high = halves[:, -1 - at], halves[:, -at]
                tables[:, j] = (low[:, None, :] + high[:, :, None]).reshape(len(halves), 256)
        return tables


def packing_of(embedded: Embedded, metric: str) -> Packing:
    """Choose a packing for stored strings; `metric` says which number of a row its score needs."""
    cells = [(values.astype(np.float64), variances.astype(np.float64)) for values, variances in embedded.cell_tables]
    # How far apart the entries of a coordinate's table are for a typical query.
    spread = np.array([np.ptp(values) * np.sqrt(np.square(values).mean()) for values, _ in cells])
    depths = np.pad(embedded.bits, (0, len(cells) - len(embedded.bits)))
    bytes_ = _fold(_bytes(depths, spread), spread)
    halves: list[list[BytePart]] = []
    wholes: list[list[BytePart]] = []
    table = np.empty(len(bytes_), np.int64)
    for j, parts in enumerate(bytes_):
        if any(part.depth > HALF for part in parts):
            table[j] = len(wholes)
            wholes.append(parts)
        else:
            table[j] = -1 - len(halves)
            halves.append([part for part in parts if part.shift < HALF])
            halves.append([part._replace(shift=part.shift - HALF) for part in parts if part.shift >= HALF])
    return Packing(
        embedded.n_bytes,
        _source(bytes_, embedded.order, embedded.codebooks.levels),
        [(window, book.astype(np.float64)) for window, book in embedded.codebooks.books],
        table,
        _slots(halves, HALF, cells),
        _slots(wholes, BYTE, cells),
        np.array([0.0 if depth else values[0] for depth, (values, _) in zip(depths, cells, strict=True)]),
        metric,
        float(sum(variances[0] for depth, (_, variances) in zip(depths, cells, strict=True) if not depth)),
    )


def _bytes(depths: np.ndarray, spread: np.ndarray) -> list[list[BytePart]]:
    """Put coordinates into as few bytes as best-fit decreasing finds.

    A coordinate of more than four bits takes the upper bits of a byte of its own; what is left of it is room for others
    like that of any half.
    """
    wide = [[BytePart(c, int(depths[c]), BYTE - int(depths[c]))] for c in np.flatnonzero(depths > HALF).tolist()]
    bins, room = [list(parts) for parts in wide], [parts[0].shift for parts in wide]
    for c in np.argsort(-depths, kind="stable"):
        depth = int(depths[c])
        if not 0 < depth <= HALF:
            continue
        fits = [i for i, free in enumerate(room) if free >= depth]
        best = min(fits, key=lambda i: room[i], default=len(bins))
        if best == len(bins):
            bins.append([])
            room.append(HALF)
        room[best] -= depth
        bins[best].append(BytePart(int(c), depth, room[best]))
    halves = _fold(bins[len(wide) :], spread)
    halves += [[]] * (len(halves) % 2)
    pairs = zip(halves[::2], halves[1::2], strict=True)
    whole = [low + [part._replace(shift=part.shift + HALF) for part in high] for low, high in pairs]
    return bins[: len(wide)] + whole


def _fold(items: list[list[BytePart]], spread: np.ndarray) -> list[list[BytePart]]:
    """Order items so that neighbors have about the same weight together: largest, smallest, second largest, ..."""
    ranked = sorted(items, key=lambda parts: -sum(spread[part.coordinate] for part in parts))
    folded = []
    while ranked:
        folded.append(ranked.pop(0))
        if ranked:
            folded.append(ranked.pop())
    return folded


def _source(bytes_: list[list[BytePart]], bit_order: np.ndarray, levels: int) -> np.ndarray:
    """Place in the stored string of each packed bit."""
    source = np.full((len(bytes_), BYTE), BYTE * levels + len(bit_order))
    places: dict[int, list[int]] = {}
    for place, c in enumerate(bit_order.tolist(), start=BYTE * levels):
        places.setdefault(c, []).append(place)
    for j, parts in enumerate(bytes_):
        for part in parts:
            first = BYTE - part.shift - part.depth
            source[j, first : first + part.depth] = places[part.coordinate]
    return np.concatenate([np.arange(BYTE * levels), source.ravel()])


def _slots(tables: list[list[BytePart]], bits: int, cells: list[tuple[np.ndarray, np.ndarray]]) -> Slots:
    entries = np.arange(1 << bits)
    coordinate = np.full((len(tables), _SLOTS), len(cells))
    value, variance = np.zeros((2, len(tables), _SLOTS, len(entries)))
    for t, parts in enumerate(tables):
        for slot, part in enumerate(parts):
            # Bits that are not used are ignored here, so that no entry is one that cannot occur.
            cell = (entries >> part.shift) & ((1 << part.depth) - 1)
            coordinate[t, slot] = part.coordinate
            value[t, slot], variance[t, slot] = (each[cell] for each in cells[part.coordinate])
    return Slots(coordinate, value, variance)


def _moved(codes: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Return rows whose bit i is bit source[i] of the given ones, or zero past their end."""
    moved = np.empty((len(codes), len(source) // BYTE), np.uint8)
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        block = codes[start : start + _ROWS_AT_ONCE]
        bits = np.zeros((len(block), BYTE * codes.shape[1] + 1), np.uint8)
        bits[:, :-1] = np.unpackbits(block, axis=1)
        moved[start : start + len(block)] = np.packbits(np.take(bits, source, axis=1), axis=1)
    return moved
