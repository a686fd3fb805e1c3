r"""From vectors to cells, the same for any batches: near a threshold, the product decides that does not depend on them.

A product of matrices rounds differently in batches of different size and on different processors. So it only decides
where its rounding cannot matter. A coordinate :math:`z = v^T (x - m)` of p products, summed in any order with unit
roundoff u, is off by more than :math:`8 \sqrt{p}\, u\, |v| |x - m|` with probability below :math:`10^{-13}` (Higham and
Mary 2019). Entries that are as near as that to a threshold, some in ten thousand, are summed again in float64, each on
its own and in a fixed order.

One wrong byte of a codebook would change all that follows. So coordinates that codebooks see are computed in float64
and rounded to a grid (`firstk.bits.codebooks`). Rows that are as near as that to the edge of its cells, next to none,
are summed again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk._base.progress import tracked
from firstk._base.rows import as_dense, unit_rows
from firstk.bits.embedded import Embedded

if TYPE_CHECKING:
    from firstk.encoder.fitted import FittedEncoder

# Entries of a block of vectors that are encoded together.
_BLOCK_ENTRIES = 4_000_000
# Standard errors of a rounded sum that are allowed for.
_LAMBDA = 8.0
# Relative error of codes of a network: of firstk's own in float64, and of a user's module in float32.
_NETWORK_ERROR, _MODULE_ERROR = 1e-12, 1e-5
# Entries that are summed again together.
_AGAIN = 4096


def encoded(encoder: FittedEncoder, bits: Embedded, X: MatrixLike, owner: str, effort: int) -> np.ndarray:
    """Return vectors as bytes, uint8 of shape (n, bytes)."""
    rows = encoder._checked(X, owner)
    stored = np.empty((rows.shape[0], bits.n_bytes), dtype=np.uint8)
    # The best of several candidates is known after the last codebook, however short the code.
    whole = bits.at(max(bits.n_bytes, bits.all_books.levels)) if effort > 1 else bits
    step = max(1, _BLOCK_ENTRIES // encoder.p)
    parts = (slice(start, start + step) for start in range(0, rows.shape[0], step))
    blocks = ((block, as_dense(rows[block])) for block in parts)
    for block, part in tracked(blocks, rows.shape[0], "encoding", "row", lambda found: len(found[1])):
        stored[block] = _strings(encoder, whole, part, effort)[:, : bits.n_bytes]
    return stored


def _strings(encoder: FittedEncoder, bits: Embedded, X: np.ndarray, effort: int) -> np.ndarray:
    """Return the bytes of a block of vectors: those of codebooks, then the bits of trees on what they leave over."""
    books = bits.codebooks
    source = _Coordinates(encoder, bits.used, X, np.float64 if books.levels else None)
    Z, doubt = source.approximated
    first = np.empty((len(X), 0), dtype=np.uint8)
    if books.levels:
        sizes = doubt * source.lengths[: books.width].max()
        first, left = books.encode(Z[: books.width].T, sizes, source.exact_rows(books.width), effort)
        Z[: books.width] = left.T
    return bits.joined(first, _cells(source, Z, bits, first))


def _cells(source: _Coordinates, Z: np.ndarray, bits: Embedded, first: np.ndarray) -> np.ndarray:
    """Return the cell of each coordinate of `bits.split`, uint8 of shape (u, n), by what codebooks left over in Z."""
    cells = np.empty((len(bits.split), Z.shape[1]), dtype=np.uint8)
    doubt, books = source.approximated[1], bits.codebooks
    places, near = np.searchsorted(source.used, bits.split), []
    for number, i in enumerate(places):
        thresholds = bits.sorted_thresholds[number]
        cells[number] = np.searchsorted(thresholds, Z[i])
        walls = np.concatenate([[-np.inf], thresholds, [np.inf]]).astype(Z.dtype)
        # Every codebook rounds once more: a few roundoffs, where the doubt is some hundred of them.
        margin = doubt * (2 if books.levels else 1) * source.lengths[i]
        close = (Z[i] - walls[cells[number]] <= margin) | (walls[1:][cells[number]] - Z[i] <= margin)
        if close.any():
            near.append((number, np.flatnonzero(close)))
    for number, rows in near:
        thresholds = bits.sorted_thresholds[number].astype(np.float64)
        for start in range(0, len(rows), _AGAIN):
            some = rows[start : start + _AGAIN]
            column = source.exact(some, int(places[number])) - books.sums_of(first[some], int(bits.split[number]))
            cells[number, some] = np.searchsorted(thresholds, column)
    return cells


class _Coordinates:
    """Some coordinates of a block of vectors, quickly, or one by one in float64.

    Attributes
    ----------
    dtype : type
        Of products; float32 if not given where vectors are.
    lengths : ndarray of shape (u,)
        What the doubt about a row is multiplied by for each coordinate: the norm of its axis.
    """

    def __init__(self, encoder: FittedEncoder, used: np.ndarray, X: np.ndarray, dtype: type | None = None):
        self.encoder, self.used, self.X = encoder, used, X
        self.dtype = dtype or (np.float32 if X.dtype == np.float32 else np.float64)
        self.linear = encoder.network is None and not encoder.normalized
        self.axes = encoder.components[used]
        self.lengths = np.linalg.norm(self.axes, axis=1) if self.linear else np.ones(len(used))

    @cached_property
    def approximated(self) -> tuple[np.ndarray, np.ndarray]:
        """What `approximate` gives, computed once."""
        return self.approximate()

    def approximate(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coordinates, (u, n), and for each row how far they may be off on an axis of unit length."""
        if not self.linear:
            Z, network = self._whole(self.X), self.encoder.network
            error = _NETWORK_ERROR if network is None or network.width is not None else _MODULE_ERROR
            return np.ascontiguousarray(Z[:, self.used].T), error * np.maximum(np.linalg.norm(Z, axis=1), 1.0)
        mean, dtype = self.encoder.mean, self.dtype
        centred = self.X - mean.astype(dtype)
        Z = self.axes.astype(dtype) @ centred.T
        roundoff = float(np.finfo(dtype).eps) / 2
        size = np.sqrt(np.einsum("ij,ij->i", centred, centred)).astype(np.float64)
        # Rounding of the mean, of the difference and of the axes: a few roundoffs of everything.
        once = 4 * (size + np.linalg.norm(mean))
        return Z, roundoff * (_LAMBDA * np.sqrt(self.encoder.p) * size + once)

    def exact_rows(self, width: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that gives the first coordinates of some rows in float64, whatever rows are beside them."""
        if self.linear:
            return lambda rows: np.stack([self.exact(rows, i) for i in range(width)], axis=1)
        return lambda rows: np.vstack([self._whole(self.X[row : row + 1])[:, self.used[:width]] for row in rows])

    def exact(self, rows: np.ndarray, i: int) -> np.ndarray:
        """Return coordinate `i` of some rows in float64, whatever rows are beside them."""
        if self.linear:
            centred = self.X[rows].astype(np.float64) - self.encoder.mean
            axis = np.broadcast_to(self.axes[i], centred.shape)
            return np.asarray(np.einsum("ij,ij->i", centred, np.ascontiguousarray(axis)))
        return np.array([self._whole(self.X[row : row + 1])[0, self.used[i]] for row in rows])

    def _whole(self, X: np.ndarray) -> np.ndarray:
        """Return whole codes in float64."""
        Z = self.encoder.coordinates(X.astype(np.float64), exact=True)
        return unit_rows(Z, out=Z) if self.encoder.normalized else Z
