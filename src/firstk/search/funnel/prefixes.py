"""Prefixes as the first stage scans them: by coordinate, in tiles that fit a cache, as float32, int8, bits or bytes.

A tile holds `TILE` rows, coordinate by coordinate, so that one instruction takes sixteen rows and a tile serves a
whole block of queries. A copy is only ever used to choose rows: what is returned is computed from the codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstk.bits import Embedded
from firstk.search.funnel.byte_prefixes import BytePrefixes

# Rows of a tile: with 32 coordinates of float32 a tile takes 128 KiB, which a second-level cache keeps.
TILE = 1024
# Rows are padded to whole groups of this many.
GROUP = 64


@dataclass(frozen=True, eq=False)
class Tiles:
    """Prefixes of n rows as numbers: ``scale * tiles[t, j, i]`` is about coordinate j of row ``t * tile + i``.

    Attributes
    ----------
    tiles : ndarray of shape (T, k, tile), float32 or int8
    n : int
        Rows; the rest of the last tile is padding.
    scale : float
    error : float
        The largest distance between a prefix and what is stored of it.
    """

    bounds_distances: ClassVar[bool] = True
    tiles: np.ndarray
    n: int
    scale: float = 1.0
    error: float = 0.0

    @property
    def data(self) -> np.ndarray:
        """What is stored."""
        return self.tiles

    @property
    def tile(self) -> int:
        """Rows of a tile."""
        return self.tiles.shape[2]

    @property
    def padded(self) -> int:
        """Rows with padding."""
        return self.tiles.shape[0] * self.tile

    def cost(self, k: int) -> int:
        """Multiply-adds that one row takes at prefix k."""
        return k

    def squared_norms(self, k: int) -> np.ndarray:
        """Squared norm of what is stored of each row's first k coordinates."""
        squares = np.empty((len(self.tiles), self.tile))
        for t, block in enumerate(self.tiles):
            part = block[:k].astype(np.float64)
            squares[t] = np.einsum("ji,ji->i", part, part)
        return self.scale**2 * squares.ravel()[: self.n]

    def queries(self, Y: np.ndarray, k: int) -> np.ndarray:
        """Return centred queries in the form in which they meet the tiles."""
        return np.ascontiguousarray(Y[:, :k] * np.float32(self.scale))

    def similarities(self, Q: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the dot products of queries with the rows of each tile."""
        for t, block in enumerate(self.tiles):
            rows = slice(t * self.tile, min((t + 1) * self.tile, self.n))
            part = block[: Q.shape[1], : rows.stop - rows.start]
            yield rows, Q @ part.astype(np.float32, copy=False)


@dataclass(frozen=True, eq=False)
class Bits:
    """Signs of the first coordinates, 64 to a word: one exclusive-or and one count of bits compare 64 of them.

    Attributes
    ----------
    words : ndarray of uint64, shape (w, n)
    n : int
    """

    bounds_distances: ClassVar[bool] = False
    words: np.ndarray
    n: int

    @property
    def data(self) -> np.ndarray:
        """What is stored."""
        return self.words

    @property
    def padded(self) -> int:
        """Rows; there is no padding."""
        return self.n

    def squared_norms(self, k: int) -> np.ndarray:
        """Signs all have the same norm, which changes no order: zero."""
        return np.zeros(self.n)

    def cost(self, k: int) -> int:
        """Operations that one row takes at prefix k: one a word, counted as one multiply-add each."""
        return -(-k // 64)

    def queries(self, Y: np.ndarray, k: int) -> np.ndarray:
        """Return the signs of centred queries."""
        return _packed(Y[:, :k])

    def similarities(self, Q: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield minus the number of signs that differ, for blocks of rows; words past those of `Q` are not read."""
        for start in range(0, self.n, TILE):
            rows = slice(start, min(start + TILE, self.n))
            differing = sum(
                _count_bits(Q[:, j, None] ^ self.words[j, rows]).astype(np.float32) for j in range(Q.shape[1])
            )
            yield rows, -np.asarray(differing)


def float_prefixes(Y: np.ndarray, k: int) -> Tiles:
    """Keep the first k coordinates of centred rows as they are."""
    return Tiles(_tiled(Y[:, :k]), len(Y))


def int8_prefixes(Y: np.ndarray, k: int) -> Tiles:
    """Round the first k coordinates to 255 steps of one size, so that rounding costs every axis the same distance."""
    Y = Y[:, :k]
    scale = float(np.abs(Y).max()) / 127 or 1.0
    steps = np.rint(Y / np.float32(scale)).clip(-127, 127)
    error = np.sqrt(((Y - steps * scale) ** 2).sum(axis=1, dtype=np.float64).max())
    return Tiles(_tiled(steps.astype(np.int8)), len(Y), scale, float(error) * (1 + 1e-6))


def bit_prefixes(Y: np.ndarray, k: int) -> Bits:
    """Keep the signs of the first k coordinates."""
    return Bits(np.ascontiguousarray(_packed(Y[:, :k]).T), len(Y))


Prefixes = Tiles | Bits | BytePrefixes
_MADE: dict[str, Callable[[np.ndarray, int], Tiles | Bits]] = {
    "float32": float_prefixes,
    "int8": int8_prefixes,
    "binary": bit_prefixes,
}
FIRST_STAGES = (*_MADE, "embedded")
# Numbers of signs that are tried: whole words.
_WORDS = (64, 128, 256, 512, 1024)


@dataclass(frozen=True, eq=False)
class FirstStage:
    """How the first scan keeps its prefixes.

    Attributes
    ----------
    name : {"float32", "int8", "binary", "embedded"}
    cells : Embedded or None
        Of "embedded", fitted.
    """

    name: str
    cells: Embedded | None = None

    def prefixes(self, Y: np.ndarray, centre: np.ndarray, k: int, euclidean: bool) -> Prefixes:
        """Return the prefixes of centred rows."""
        if self.cells is None:
            return _MADE[self.name](Y, k)
        return BytePrefixes.of(self.cells, euclidean, Y + centre[: Y.shape[1]], centre)

    def lengths(self, ks: tuple[int, ...], d: int) -> tuple[int, ...]:
        """Return the prefix lengths to try, of those that coordinates are tried at; bytes reach as far as they do."""
        if self.cells is not None:
            return (1 + int(self.cells.used.max()),)
        return (*(k for k in _WORDS if k < d), d) if self.name == "binary" else ks

    def cost(self, k: int) -> int:
        """Multiply-adds that one row takes at prefix k: a word of signs and a byte count as one each."""
        if self.cells is not None:
            return self.cells.n_bytes
        return -(-k // 64) if self.name == "binary" else k

    @property
    def bounds_distances(self) -> bool:
        """Whether an exact search can exclude rows by it."""
        return self.name in ("float32", "int8")


def _tiled(Y: np.ndarray) -> np.ndarray:
    n, k = Y.shape
    tile = min(TILE, -(-n // GROUP) * GROUP)
    padded = np.zeros((-(-n // tile) * tile, k), dtype=Y.dtype)
    padded[:n] = Y
    return np.ascontiguousarray(padded.reshape(-1, tile, k).transpose(0, 2, 1))


def _packed(Y: np.ndarray) -> np.ndarray:
    """Signs as words of 64 bits, shape (n, w); the last word is filled with zeros."""
    n, k = Y.shape
    positive = np.zeros((n, -(-k // 64) * 64), dtype=bool)
    positive[:, :k] = Y > 0
    return np.packbits(positive, axis=1).view(np.uint64)


_BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1).astype(np.uint8)


def _count_bits(words: np.ndarray) -> np.ndarray:
    if hasattr(np, "bitwise_count"):  # numpy 2
        return np.bitwise_count(words)
    return _BITS_OF_BYTE[np.ascontiguousarray(words).view(np.uint8)].reshape(*words.shape, 8).sum(axis=-1)
