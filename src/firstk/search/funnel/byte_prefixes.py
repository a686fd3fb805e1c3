"""Embedded bytes as the first stage of a funnel: cells fitted on the codes of a store, and the bytes of its rows.

Unlike prefixes of coordinates they are not computed when an index is searched first: the bytes of a row stay what they
were when it was added, and are saved with the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy

import numpy as np

from firstk.bits import Embedded, read_embedded
from firstk.exceptions import InvalidInputError
from firstk.search.codes import scan as code_scan
from firstk.search.codes.packing import packing_of
from firstk.search.codes.scan import PackedRows, Tables

# Rows that the cells are fitted on, at most, and bytes of a row where their number is not given.
_SAMPLE, _BYTES = 8192, 32
# Rows whose similarities are computed at once.
_ROWS = 8192
Nearest = Callable[[PackedRows, Tables, int, np.ndarray, tuple[int, int]], tuple[np.ndarray, np.ndarray]]


def fit_cells(codes: np.ndarray, n_bytes: int | None, seed: int) -> Embedded:
    """Fit cells on a sample of codes, (n, d), and give them the bits of `n_bytes` bytes."""
    rows = codes
    if len(codes) > _SAMPLE:
        rows = codes[np.sort(np.random.default_rng(seed).choice(len(codes), _SAMPLE, replace=False))]
    wanted = _BYTES if n_bytes is None else n_bytes
    # No more coordinates than bits can get one.
    width = min(codes.shape[1], 8 * wanted) if isinstance(wanted, int) and wanted > 0 else codes.shape[1]
    cells = Embedded().fit(rows[:, :width])
    return cells.at(min(_BYTES, cells.n_bytes) if n_bytes is None else n_bytes)


class BytePrefixes:
    """The bytes of rows, in the place of `Tiles` or `Bits`.

    Attributes
    ----------
    embedded : Embedded
    euclidean : bool
    rows : PackedRows
    centre : ndarray
        What was subtracted from queries that `queries` is given.
    """

    bounds_distances = False

    def __init__(self, embedded: Embedded, euclidean: bool, stored: np.ndarray, centre: np.ndarray):
        self.embedded, self.euclidean, self.centre = embedded, euclidean, centre
        self.rows = PackedRows(packing_of(embedded, "l2" if euclidean else "inner_product"), stored)

    @classmethod
    def of(
        cls, embedded: Embedded, euclidean: bool, codes: np.ndarray, centre: np.ndarray | None = None
    ) -> BytePrefixes:
        """Round codes, (n, d), to bytes; `centre` is what is subtracted from queries."""
        width = len(embedded.bits)
        centre = np.zeros(width, np.float32) if centre is None else centre[:width]
        return cls(embedded, euclidean, embedded.quantise(codes[:, :width]), centre)

    @classmethod
    def read(cls, record: Mapping[str, object], stored: np.ndarray, codes: np.ndarray, euclidean: bool) -> BytePrefixes:
        """Rebuild from what was saved; raise InvalidInputError for bytes that do not belong to these codes."""
        embedded = read_embedded(record)
        if (
            stored.dtype != np.uint8
            or stored.shape != (len(codes), embedded.n_bytes)
            or embedded.bits.size > codes.shape[1]
        ):
            raise InvalidInputError(
                f"bytes are {stored.dtype}{stored.shape}, and {embedded.n_bytes} for each of {len(codes)} rows expected"
            )
        return cls(embedded, euclidean, stored, np.zeros(len(embedded.bits), np.float32))

    @property
    def width(self) -> int:
        """Coordinates that could get bits."""
        return len(self.embedded.bits)

    @property
    def data(self) -> np.ndarray:
        """What is stored."""
        return self.rows.tiles

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.rows)

    @property
    def padded(self) -> int:
        """Rows with padding."""
        return len(self.rows.tiles) * code_scan.TILE

    def appended(self, codes: np.ndarray) -> BytePrefixes:
        """Return prefixes with the codes of further rows."""
        return self._of_rows(self.rows.appended(self.embedded.quantise(codes[:, : self.width])))

    def kept(self, mask: np.ndarray) -> BytePrefixes:
        """Return the prefixes of the rows of a mask."""
        return self._of_rows(self.rows.kept(mask))

    def _of_rows(self, rows: PackedRows) -> BytePrefixes:
        other = copy(self)
        other.rows = rows
        return other

    def cost(self, k: int) -> int:
        """Look-ups that one row takes, counted as one multiply-add each: its bytes, whatever the prefix."""
        return self.rows.packing.planes

    def squared_norms(self, k: int) -> np.ndarray:
        """Return the expected squared norm of each row; nothing for inner products."""
        return self.rows.norms[: self.n].astype(np.float64) if self.euclidean else np.zeros(self.n)

    def queries(self, Y: np.ndarray, k: int) -> np.ndarray:
        """Return queries as they were before they were centred: cells know no centre."""
        return Y[:, : self.width] + self.centre

    def similarities(self, Q: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the dot products of queries with what rows are decoded to."""
        tables = Tables.of(self.rows.packing, Q)
        double = 2 if self.euclidean else 1  # tables of squared distances hold twice the products
        for start in range(0, self.n, _ROWS):
            rows = slice(start, min(start + _ROWS, self.n))
            near = code_scan.products(self.rows, tables.joined, tables.constant, rows.start, rows.stop)
            yield rows, (near / double).astype(np.float32)

    def shortlist(self, Q: np.ndarray, size: int, nearest: Nearest) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest rows of each query, in order of rows, and the look-ups."""
        tables = Tables.of(self.rows.packing, Q[:, : self.width])
        numbers = np.arange(self.n)
        rows, _ = nearest(self.rows, tables, size, numbers, (0, len(self.rows.tiles)))
        return np.sort(rows, axis=1), np.full(len(Q), self.n * self.cost(0))
