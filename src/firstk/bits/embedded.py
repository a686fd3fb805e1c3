"""Codes stored as embedded bits: the precision of which bytes, not coordinates, are the parameter.

One fit serves every number of bytes: the first m bytes of a stored code are the code of m bytes. A string has two
stages. Each turns numbers into bits and leaves a residual; what its bits stand for is added to what those before it
stand for. The bytes of codebooks come first, because they need all coordinates at once; the bits of trees follow in the
order of `allocation`, which knows the error that codebooks leave.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_matrix, check_weights, is_int
from firstk.bits.allocation import bit_order, bits_of
from firstk.bits.bit_string import packed, unpacked
from firstk.bits.codebooks import Codebooks, wrong_codebooks
from firstk.bits.k_means import ENTRIES
from firstk.bits.trees import DEPTH, Trees, wrong_trees
from firstk.exceptions import InvalidInputError

# Names of stored arrays.
_TREES, _BOOKS = "trees.", "codebooks."
# What a record holds besides the name; codebooks beside these, where there are any.
FIELDS = ("d", "order", "offset", "centroids", "squares", "distortion")
CODEBOOKS = "codebooks"
# Rows that trees are fitted on, at most.
_TREE_ROWS = 32_768
# Numbers of a block of codes while they are written or read.
_BLOCK_NUMBERS = 4_000_000


@dataclass(frozen=True, eq=False)
class Embedded:
    """Bits for coordinates by what they are worth, so that every prefix of the bytes is a code.

    It satisfies :class:`firstk.data.precision.Rounded`, with one difference: the size of a stored code is `bytes`,
    whatever the number of coordinates, and coordinates that get no bit are restored as their mean.

    Parameters
    ----------
    bytes : int, optional
        Of a stored code; None: all that lower the error.
    all_trees : Trees, optional
        What bits stand for, once fitted: a tree for each coordinate of what codebooks leave over.
    all_books : Codebooks, optional
        Codebooks of the first coordinates; none (``levels == 0``) where there were too few rows or none were wanted.
    all_bits : ndarray of int, optional
        The coordinate of every bit of trees that lowers the error, in the order of the bits, once fitted.
    offset : ndarray of float32 of shape (d,) or (d + 1,), optional
        What restoring adds to each coordinate; a number more is a further coordinate, the same for all codes.

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
    all_trees: Trees | None = None
    all_books: Codebooks = field(default_factory=Codebooks.none)
    all_bits: np.ndarray | None = None
    offset: np.ndarray | None = None
    name: str = field(default="embedded", init=False)

    # -- the protocol of a precision -------------------------------------------------------------------------

    def bytes_per_vector(self, k: int) -> int:
        """Bytes of a code of k coordinates: `bytes`, or one for each coordinate at most where it is not given."""
        if not is_int(k) or k < 1:
            raise bad_parameter("k", "bytes_per_vector", "an int of at least 1", k)
        return int(k) * DEPTH // 8 if self.bytes is None else self.bytes

    def fit(self, Z: ArrayLike) -> Embedded:
        """Fit codebooks and trees and allocate the bits; raise an error where there are fewer than `bytes`."""
        return Embedded.fitted(Z).at(self.bytes)

    @classmethod
    def fitted(
        cls, Z: ArrayLike, weight: ArrayLike | None = None, *, codebooks: bool = True, shared_by: float = np.inf
    ) -> Embedded:
        """Fit on codes of shape (n, d), whose rows may have weights: a random sample, in random order.

        Without `codebooks`, trees have all bits; `shared_by` rows share the bytes of codebooks, which are then as many
        as pay for themselves. It need not have a byte, as `fit` demands.
        """
        Z = check_matrix(Z, "embedded.fit", "Z")
        weight = check_weights(weight, len(Z), "embedded.fit", "weight")
        books, left = Codebooks.fit(Z, weight, shared_by) if codebooks else (Codebooks.none(), Z)
        trees = Trees.fit(left[:_TREE_ROWS], None if weight is None else weight[:_TREE_ROWS])
        return cls(None, trees, books).weighted(None)

    def weighted(self, weights: np.ndarray | None) -> Embedded:
        """Return all bytes with bits given anew; `weights`, of shape (d,), are what errors of coordinates cost."""
        return replace(self, bytes=None, all_bits=bit_order(self.trees.distortion, weights))

    def quantise(self, Z: ArrayLike) -> np.ndarray:
        """Return codes as they are stored, uint8 of shape (n, bytes).

        Codes in float32 are rounded already: about one bit in a million differs from what vectors give.
        """
        Z = check_matrix(Z, "embedded.quantise", "Z", width=self.trees.d)
        books, stored = self.codebooks, np.empty((len(Z), self.n_bytes), dtype=np.uint8)
        step = max(1, _BLOCK_NUMBERS // Z.shape[1])
        for start in range(0, len(Z), step):
            part = Z[start : start + step]
            first, left = books.encode(part[:, : books.width])
            columns = [left[:, i] if i < books.width else part[:, i] for i in self.split]
            cells = [
                np.searchsorted(*part).astype(np.uint8) for part in zip(self.sorted_thresholds, columns, strict=True)
            ]
            stored[start : start + step] = self.joined(first, cells)
        return stored

    def clipped(self, Z: ArrayLike) -> int:
        """Return 0: the outer cells stand for all that lies beyond them."""
        return 0

    def restore(self, stored: ArrayLike) -> np.ndarray:
        """Return stored codes, whole or cut, as float32 of shape (n, width)."""
        codes = self.checked(stored, "restore")
        cut, trees, books = self.at(codes.shape[1]), self.trees, self.codebooks
        Z = np.tile(np.pad(trees.centroids[:, 0], (0, self.width - trees.d)), (len(codes), 1))
        step = max(1, _BLOCK_NUMBERS // trees.d)
        for start in range(0, len(codes), step):
            rows = slice(start, start + step)
            cells = unpacked(codes[rows, cut.levels :], cut.order, trees.d)
            for i in cut.split:
                Z[rows, i] = trees.values(i, cut.bits[i])[cells[:, i]]
            Z[rows, : books.width] += books.sums(codes[rows, : cut.levels])
        if self.offset is not None:
            Z += self.offset
        return Z

    def record(self) -> dict[str, object]:
        """Return the order of the bits and what they stand for: some kilobytes, and 0.2 MB of codebooks."""
        trees, bits = self.trees, self.bits
        parts = {
            "centroids": [row[: 2 ** (b + 1) - 1] for row, b in zip(trees.centroids, bits, strict=True)],
            "squares": [row[: 2 ** (b + 1) - 1] for row, b in zip(trees.squares, bits, strict=True)],
            "distortion": [row[: b + 1].astype(np.float32) for row, b in zip(trees.distortion, bits, strict=True)],
        }
        arrays = {name: _as_text(np.concatenate(part)) for name, part in parts.items()}
        offset = None if self.offset is None else _as_text(self.offset)
        told = {"precision": self.name, "d": trees.d, "order": self.order.tolist(), "offset": offset} | arrays
        stages = self.codebooks
        books = [stages.windows.tolist(), _as_text(stages.steps), _as_text(stages.centroids, "i1")]
        return told | ({CODEBOOKS: books} if self.levels else {})

    # -- what is stored, and cuts ----------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what is stored with an encoder, by name."""
        named = {_TREES + name: part for name, part in self.trees.arrays().items()}
        named[_TREES + "order"] = self._all_bits.astype(np.int32)
        return named | {_BOOKS + name: part for name, part in self.all_books.arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], d: int) -> Embedded:
        """Rebuild from `arrays`, of which none may be missing; raise ValueError for anything else."""
        trees, books = (
            {name.removeprefix(stage): part for name, part in arrays.items() if name.startswith(stage)}
            for stage in (_TREES, _BOOKS)
        )
        if set(trees) != {"centroids", "squares", "distortion", "order"}:
            raise ValueError(f"arrays {sorted(trees)} of trees; trees have centroids, distortion, order and squares")
        if set(books) not in ({"centroids", "steps", "windows", "errors"}, set()):
            raise ValueError(f"arrays {sorted(books)} of codebooks; these have centroids, errors, steps and windows")
        order = trees.pop("order")
        made = cls(None, Trees(**trees), Codebooks(**books) if books else Codebooks.none(), order.astype(np.int64))
        if wrong := made._wrong(d):
            raise ValueError(wrong)
        return made

    def _wrong(self, d: int) -> str:
        """Say what makes this no code of d coordinates; nothing where it is one."""
        if wrong := wrong_trees(self.trees, d):
            return f"its trees are damaged: {wrong}"
        if wrong := wrong_codebooks(self.all_books, d):
            return f"its codebooks are damaged: {wrong}"
        order = self._all_bits
        if order.ndim != 1 or (len(order) and (order.min() < 0 or order.max() >= d)):
            return f"the order of its bits names no coordinates from 0 to {d - 1}"
        if len(order) and bits_of(order, d).max() > self.trees.depth:
            return f"the order of its bits gives a coordinate more than {self.trees.depth} bits"
        return ""

    def cut(self, k: int) -> Embedded:
        """Return all bytes of the first k coordinates: their bits in the same order."""
        order = self._all_bits[self._all_bits < k]
        return Embedded(None, self.trees.cut(k), self.all_books.cut(k), order)

    # -- bytes -----------------------------------------------------------------------------------------------

    def at(self, bytes: int | None) -> Embedded:
        """Return the same precision with another number of bytes, of which its codes are cut; None: all there are."""
        most = self._most
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
    def trees(self) -> Trees:
        """The trees, one for each coordinate of what codebooks leave over."""
        if self.all_trees is None:
            raise InvalidInputError(
                "The precision 'embedded' must be fitted before use: Embedded(bytes).fit(Z), with codes like those "
                "that will be stored."
            )
        return self.all_trees

    @property
    def coordinate_variances(self) -> np.ndarray:
        """Variances of the coordinates before anything is taken off, on the rows of the fit."""
        variances = self.trees.distortion[:, 0].copy()
        variances[: self.all_books.errors.shape[1]] = self.all_books.errors[0]
        return variances

    @property
    def width(self) -> int:
        """Coordinates of a restored code."""
        return self.trees.d if self.offset is None else len(self.offset)

    @property
    def n_bytes(self) -> int:
        """Bytes of a stored code, once fitted."""
        return self._most if self.bytes is None else self.bytes

    @cached_property
    def codebooks(self) -> Codebooks:
        """The codebooks of the first bytes, as many as there are bytes for."""
        return self.all_books.first(self.n_bytes)

    @property
    def levels(self) -> int:
        """Number of bytes that are numbers of centroids; the bits of trees follow them."""
        return self.codebooks.levels

    @cached_property
    def order(self) -> np.ndarray:
        """The coordinate of each stored bit after the bytes of codebooks, shape (8 * (bytes - levels),)."""
        return self._all_bits[: 8 * (self.n_bytes - self.levels)]

    @cached_property
    def bits(self) -> np.ndarray:
        """How many bits of its tree each coordinate has, shape (d,)."""
        return bits_of(self.order, self.trees.d)

    @cached_property
    def split(self) -> np.ndarray:
        """Coordinates that have bits of their own, ascending."""
        return np.flatnonzero(self.bits)

    @cached_property
    def used(self) -> np.ndarray:
        """Coordinates that any byte says something about, ascending."""
        return np.union1d(np.arange(self.codebooks.width if self.levels else 0), self.split)

    @cached_property
    def sorted_thresholds(self) -> list[np.ndarray]:
        """Thresholds between the cells of each coordinate of `split`, ascending."""
        return [self.trees.sorted_thresholds(i, self.bits[i]) for i in self.split]

    @cached_property
    def variances(self) -> list[np.ndarray]:
        r"""Variance of what is left over of each coordinate, :math:`E[z^2 | cell] - E[z | cell]^2`, in each cell.

        Where only some codebooks are stored, it is the mean error that these leave over.
        """
        cut = self.levels < self.all_books.levels
        errors = self.codebooks.errors[-1].astype(np.float32)
        found = []
        for i, bits in enumerate(self.bits):
            mean = self.trees.values(i, bits)
            spread = np.maximum(self.trees.square_values(i, bits) - np.square(mean), np.float32(0))
            found.append(errors[i : i + 1] if cut and i < len(errors) else spread)
        return found

    @cached_property
    def cell_tables(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each coordinate of a restored code what its cells add to what codebooks give, and `variances`."""
        offset = np.zeros(self.width, np.float32) if self.offset is None else self.offset
        values = [self.trees.values(i, bits) + offset[i] for i, bits in enumerate(self.bits)]
        tables = list(zip(values, self.variances, strict=True))
        return tables + [(offset[i : i + 1], np.zeros(1, np.float32)) for i in range(self.trees.d, self.width)]

    @property
    def stored_once(self) -> int:
        """Bytes that the codes of any number of vectors share: codebooks in int8, cells in float32, the order."""
        cells = (2 ** (self.bits[self.split] + 1) - 1).sum()
        return int(self.codebooks.centroids.nbytes + self.codebooks.steps.nbytes + 4 * cells + 2 * len(self.order))

    @property
    def expected_error(self) -> float:
        """Mean squared error of a code, on the rows of the fit."""
        error = self.trees.distortion[np.arange(self.trees.d), self.bits]
        if self.levels < self.all_books.levels:
            error[: self.codebooks.errors.shape[1]] = self.codebooks.errors[-1]
        return float(error.sum())

    def joined(self, first: np.ndarray, cells: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Return strings of the bytes of codebooks, (n, levels), and the cells of each coordinate of `split`."""
        if not len(self.split):
            return first
        bits = packed(np.stack(list(cells), axis=1), np.searchsorted(self.split, self.order))
        return np.hstack([first, bits])

    def named_cells(self, stored: ArrayLike) -> np.ndarray:
        """Return the cell of each coordinate that the bits of codes, whole or cut, name: uint8 of shape (n, d)."""
        codes = self.checked(stored, "read")
        cut = self.at(codes.shape[1])
        return unpacked(codes[:, cut.levels :], cut.order, self.trees.d)

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
    def _all_bits(self) -> np.ndarray:
        _ = self.trees
        assert self.all_bits is not None
        return self.all_bits

    @property
    def _most(self) -> int:
        return self.all_books.levels + len(self._all_bits) // 8


def read_embedded(values: Mapping[str, object]) -> Embedded:
    """Return the precision that ``record()`` describes; raise InvalidInputError for anything else.

    What codebooks leave over is known to the model alone, and is nothing here.
    """
    try:
        d, listed, books, offset = values["d"], values["order"], Codebooks.none(), None
        if not is_int(d) or d < 1 or not isinstance(listed, list) or not all(is_int(i) for i in listed):
            raise ValueError("no order of bits")
        order = np.asarray(listed, dtype=np.int64)
        if (told := values.get(CODEBOOKS)) is not None:
            if not isinstance(told, list) or len(told) != 3 or not told[0]:
                raise ValueError("no codebooks")
            windows, steps, centroids = np.array(told[0]), _numbers(told[1]), _numbers(told[2], "i1")
            books = Codebooks(centroids.reshape(ENTRIES, -1), steps, windows, np.zeros((len(windows) + 1, d)))
        if not len(order) and not books.levels:
            raise ValueError("no bits")
        if len(order) % 8 or (len(order) and (order.min() < 0 or order.max() >= d)):
            raise ValueError("the order of bits does not fit")
        bits = bits_of(order, d)
        if bits.max() > DEPTH:
            raise ValueError("the order of bits does not fit")
        depth = max(1, int(bits.max()))
        means, squares = (
            np.stack([_deepened(row, depth) for row in _split(values[name], 2 ** (bits + 1) - 1)])
            for name in ("centroids", "squares")
        )
        errors = [np.pad(row, (0, depth + 1 - len(row)), mode="edge") for row in _split(values["distortion"], bits + 1)]
        if values["offset"] is not None:
            offset = _numbers(values["offset"])
            if len(offset) not in (d, d + 1) or not np.isfinite(offset).all():
                raise ValueError(f"an offset of {len(offset)} numbers for {d} coordinates")
        trees = Trees(means, squares, np.stack(errors).astype(np.float64))
        made = Embedded(books.levels + len(order) // 8, trees, books, order, offset)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InvalidInputError(f"This is not a record of the precision 'embedded' ({error!r:.100}).") from None
    if wrong := made._wrong(made.trees.d):
        raise InvalidInputError(f"This is not a record of the precision 'embedded': {wrong}.")
    return made


def _as_text(numbers: np.ndarray, dtype: str = "<f4") -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, dtype=dtype).tobytes()).decode("ascii")


def _numbers(text: object, dtype: str = "<f4") -> np.ndarray:
    if not isinstance(text, str):
        raise TypeError("numbers are stored as text")
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=dtype).astype(dtype[-2:])


def _split(text: object, counts: np.ndarray) -> list[np.ndarray]:
    numbers = _numbers(text)
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
