"""Codes stored as embedded bits: the precision of which bytes, not coordinates, are the parameter.

One fit serves every number of bytes: the first m bytes of a stored code are the code of m bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_matrix, is_int
from firstk.data.bits.allocation import bit_order, bits_of
from firstk.data.bits.bit_string import packed, unpacked
from firstk.data.bits.trees import DEPTH, Trees, wrong_trees
from firstk.exceptions import InvalidInputError

# Numbers of a block of codes while they are written or read.
_BLOCK_NUMBERS = 4_000_000


@dataclass(frozen=True, eq=False)
class Embedded:
    """Bits for coordinates by what they are worth, so that every prefix of the bytes is a code.

    It satisfies :class:`firstk.data.precision.Precision`, with one difference: the size of a stored code is `bytes`,
    whatever the number of coordinates, and coordinates that get no bit are restored as their mean.

    Parameters
    ----------
    bytes : int, optional
        Of a stored code; None: all that lower the error.
    trees : Trees, optional
        Cells of each coordinate, once fitted.
    all_bits : ndarray of int, optional
        The coordinate of every bit that lowers the error, in the order of the bits, once fitted.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(500, 3)) * [4.0, 2.0, 1.0]
    >>> embedded = Embedded(bytes=1).fit(Z)
    >>> embedded.order
    array([0, 0, 1, 0, 1, 2, 0, 1])
    >>> embedded.quantise(Z).shape, embedded.restore(embedded.quantise(Z)).shape
    ((500, 1), (500, 3))
    """

    bytes: int | None = None
    trees: Trees | None = None
    all_bits: np.ndarray | None = None
    name: str = field(default="embedded", init=False)

    @classmethod
    def of(cls, trees: Trees, weights: np.ndarray | None = None) -> Embedded:
        """Return the precision of trees that are fitted, at all bytes they have; `weights` as in `bit_order`."""
        bits = bit_order(trees.distortion, weights)
        return cls(len(bits) // 8, trees, bits)

    # -- the protocol of a precision -------------------------------------------------------------------------

    def bytes_per_vector(self, k: int) -> int:
        """Bytes of a code of k coordinates: `bytes`, or one for each coordinate at most where it is not given."""
        if not is_int(k) or k < 1:
            raise bad_parameter("k", "bytes_per_vector", "an int of at least 1", k)
        return int(k) * DEPTH // 8 if self.bytes is None else self.bytes

    def fit(self, Z: ArrayLike, weights: np.ndarray | None = None) -> Embedded:
        """Fit the trees on codes and allocate the bits; raise an error where there are fewer than `bytes`."""
        return Embedded.of(Trees.fit(check_matrix(Z, "embedded.fit", "Z")), weights).at(self.bytes)

    def quantise(self, Z: ArrayLike) -> np.ndarray:
        """Return codes as they are stored, uint8 of shape (n, bytes)."""
        Z = check_matrix(Z, "embedded.quantise", "Z", width=self._trees.d)
        stored = np.empty((len(Z), self.n_bytes), dtype=np.uint8)
        step = max(1, _BLOCK_NUMBERS // Z.shape[1])
        for start in range(0, len(Z), step):
            rows = slice(start, start + step)
            columns = np.ascontiguousarray(Z[rows][:, self.used].T)
            stored[rows] = self.packed_cells(np.stack([self.cells_of(*pair) for pair in enumerate(columns)]))
        return stored

    def clipped(self, Z: ArrayLike) -> int:
        """Return 0: the outer cells stand for all that lies beyond them."""
        return 0

    def restore(self, stored: ArrayLike) -> np.ndarray:
        """Return stored codes, whole or cut, as float32 of shape (n, d)."""
        codes = self.checked(stored, "restore")
        cut, trees = self.at(codes.shape[1]), self._trees
        Z = np.tile(trees.centroids[:, 0], (len(codes), 1))
        step = max(1, _BLOCK_NUMBERS // trees.d)
        for start in range(0, len(codes), step):
            rows = slice(start, start + step)
            cells = unpacked(codes[rows], cut.order, trees.d)
            for i in cut.used:
                Z[rows, i] = trees.values(i, cut.bits[i])[cells[:, i]]
        return Z

    def record(self) -> dict[str, object]:
        """Return the order of the bits and the cells that they name: a few kilobytes for 32 bytes."""
        trees, bits = self._trees, self.bits
        parts = {
            "centroids": [row[: 2 ** (b + 1) - 1] for row, b in zip(trees.centroids, bits, strict=True)],
            "squares": [row[: 2 ** (b + 1) - 1] for row, b in zip(trees.squares, bits, strict=True)],
            "distortion": [row[: b + 1].astype(np.float32) for row, b in zip(trees.distortion, bits, strict=True)],
        }
        arrays = {name: _as_text(np.concatenate(part)) for name, part in parts.items()}
        return {"precision": self.name, "d": trees.d, "order": self.order.tolist()} | arrays

    # -- bytes -----------------------------------------------------------------------------------------------

    def at(self, bytes: int | None) -> Embedded:
        """Return the same precision with another number of bytes, of which its codes are cut; None: all there are."""
        most = len(self._all_bits) // 8
        if bytes is None:
            bytes = most
        if most == 0:
            raise InvalidInputError(
                "The codes do not vary enough for a byte: "
                f"{len(self._all_bits)} bits lower their error, and a byte has 8. Fit on more rows, or on others."
            )
        if not is_int(bytes) or not 1 <= bytes <= most:
            raise bad_parameter("bytes", "a quantizer", f"an int in [1, {most}] (the bytes that the code has)", bytes)
        return replace(self, bytes=int(bytes))

    @property
    def n_bytes(self) -> int:
        """Bytes of a stored code, once fitted."""
        return len(self._all_bits) // 8 if self.bytes is None else self.bytes

    @cached_property
    def order(self) -> np.ndarray:
        """The coordinate of each stored bit, shape (8 * bytes,)."""
        return self._all_bits[: 8 * self.n_bytes]

    @cached_property
    def bits(self) -> np.ndarray:
        """How many bits each coordinate has, shape (d,)."""
        return bits_of(self.order, self._trees.d)

    @cached_property
    def used(self) -> np.ndarray:
        """Coordinates that have bits, ascending."""
        return np.flatnonzero(self.bits)

    @cached_property
    def sorted_thresholds(self) -> list[np.ndarray]:
        """Thresholds between the cells of each used coordinate, ascending."""
        return [self._trees.sorted_thresholds(i, self.bits[i]) for i in self.used]

    def cells_of(self, number: int, column: np.ndarray) -> np.ndarray:
        """Return the cell of each entry of a column, that of the used coordinate of this number."""
        return np.searchsorted(self.sorted_thresholds[number], column).astype(np.uint8)

    def packed_cells(self, cells: np.ndarray) -> np.ndarray:
        """Return the bytes of cells of the used coordinates, uint8 of shape (u, n)."""
        return packed(cells.T, np.searchsorted(self.used, self.order))

    def cells(self, stored: ArrayLike) -> np.ndarray:
        """Return the cell of each coordinate that codes, whole or cut, name: uint8 of shape (n, d)."""
        codes = self.checked(stored, "read")
        return unpacked(codes, self.at(codes.shape[1]).order, self._trees.d)

    def checked(self, stored: ArrayLike, what: str) -> np.ndarray:
        """Return stored codes as an array of bytes; raise InvalidInputError for another type or too many bytes."""
        codes = np.asarray(stored)
        if codes.dtype != np.uint8 or codes.ndim != 2 or not 1 <= codes.shape[1] <= self.n_bytes:
            raise InvalidInputError(
                f"A quantizer of {self.n_bytes} bytes can {what} codes stored as uint8 of shape (n, m), m from 1 to "
                f"{self.n_bytes}. Got {codes.dtype} of shape {codes.shape}: give codes that it made, whole or cut."
            )
        return codes

    @property
    def _trees(self) -> Trees:
        if self.trees is None:
            raise InvalidInputError(
                "The precision 'embedded' must be fitted before use: Embedded(bytes).fit(Z), with codes like those "
                "that will be stored."
            )
        return self.trees

    @property
    def _all_bits(self) -> np.ndarray:
        _ = self._trees
        assert self.all_bits is not None
        return self.all_bits


def read_embedded(values: Mapping[str, object]) -> Embedded:
    """Return the precision that ``record()`` describes; raise InvalidInputError for anything else."""
    try:
        made = _read(values)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InvalidInputError(f"This is no record of the precision 'embedded' ({error!r:.100}).") from None
    if wrong := wrong_trees(made._trees, made._trees.d):
        raise InvalidInputError(f"This is no record of the precision 'embedded': {wrong}.")
    return made


def _read(values: Mapping[str, object]) -> Embedded:
    d, listed = values["d"], values["order"]
    if not is_int(d) or d < 1 or not isinstance(listed, list) or not listed or not all(is_int(i) for i in listed):
        raise ValueError("no order of bits")
    order = np.asarray(listed, dtype=np.int64)
    if len(order) % 8 or order.min() < 0 or order.max() >= d or (bits := bits_of(order, d)).max() > DEPTH:
        raise ValueError("the order of bits does not fit")
    depth = int(bits.max())
    centroids, squares = (
        np.stack([_deepened(row, depth) for row in _split(values[name], 2 ** (bits + 1) - 1)])
        for name in ("centroids", "squares")
    )
    error = [np.pad(row, (0, depth + 1 - len(row)), mode="edge") for row in _split(values["distortion"], bits + 1)]
    return Embedded(len(order) // 8, Trees(centroids, squares, np.stack(error).astype(np.float64)), order)


def _as_text(numbers: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f4").tobytes()).decode("ascii")


def _split(text: object, counts: np.ndarray) -> list[np.ndarray]:
    if not isinstance(text, str):
        raise TypeError("numbers are stored as text")
    numbers = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)
    if len(numbers) != counts.sum():
        raise ValueError(f"{len(numbers)} numbers where {counts.sum()} were expected")
    return np.split(numbers, np.cumsum(counts)[:-1])


def _deepened(heap: np.ndarray, depth: int) -> np.ndarray:
    """Return a heap with further levels, whose cells inherit from those above."""
    levels = [heap]
    last = heap[len(heap) // 2 :]
    while sum(map(len, levels)) < 2 ** (depth + 1) - 1:
        last = np.repeat(last, 2)
        levels.append(last)
    return np.concatenate(levels)
