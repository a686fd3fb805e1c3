"""npy: one matrix and nothing else, read by ranges of rows, appended to for writing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from firstk._base.input_file import Stamp
from firstk.data.files.contract import (
    AppendingWriter,
    Facts,
    Format,
    Layout,
    Loaded,
    Wanted,
    float_type,
    reading,
    unreadable,
)
from firstk.data.files.file_array import FileArray
from firstk.data.files.vector_columns import PLAIN_NAME, missing_column

BROKEN = (OSError, ValueError, EOFError, TypeError)
_VERSIONS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# Bytes reserved for the header, so that the number of rows can be filled in at the end.
_HEADER = 128


def check_vectors(path: object, name: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Check that an array is a matrix of numbers."""
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        raise unreadable(path, f"{name} holds {dtype}, not numbers of at most 64 bits", "Convert it to floats")
    if len(shape) != 2 or shape[1] == 0:
        raise unreadable(path, f"{name} has shape {shape}; vectors are a matrix, a row each", "Reshape it")


@dataclass(frozen=True)
class Header:
    """What is written before the numbers of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype
    by_column: bool

    @property
    def kind(self) -> str:
        """The letter that numpy has for the type."""
        return self.dtype.kind

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> Header:
    """Read the header of an array, in a file of its own or in an archive; raise ValueError for a damaged one."""
    try:
        version = np.lib.format.read_magic(stream)
        if version not in _VERSIONS:
            raise ValueError(f"an array has format version {version}")
        shape, by_column, dtype = _VERSIONS[version](stream)
    except (OSError, ValueError):
        raise
    except Exception as error:  # numpy hands the header to Python's own parser, which has errors of many kinds
        raise ValueError(f"the header of an array is damaged: {type(error).__name__}") from None
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"an array has shape {shape}")
    return Header(shape, dtype, by_column and len(shape) > 1)


def _array(path: Path) -> FileArray:
    with reading(path, "npy", BROKEN), path.open("rb") as file:
        stamp = Stamp.of_open(path, file)
        if file.read(2) == b"PK":
            raise ValueError("it is an archive: name it .npz")
        file.seek(0)
        header = read_header(file)
        if header.dtype.hasobject:
            raise ValueError("it holds Python objects, which are never unpickled")
        return FileArray(path, stamp, file.tell(), header.dtype, header.shape, header.by_column)


def load(path: Path) -> Loaded:
    """Return the array of a file as its only column, whose rows are read as they are asked for."""
    array = _array(path)
    if not array.shape:
        raise unreadable(path, "it holds a single number, not one a row", "Give an array")
    return Loaded((PLAIN_NAME,), lambda _: array)


class NpyReader:
    """One npy file."""

    def __init__(self, path: Path, wanted: Wanted):
        if wanted.vectors not in (None, PLAIN_NAME):
            raise missing_column(path, str(wanted.vectors), [PLAIN_NAME])
        self.path = path
        self._array = _array(path)
        check_vectors(path, "its array", self._array.shape, self._array.dtype)
        self.facts = Facts(PLAIN_NAME, (PLAIN_NAME,), self._array.shape[1], float_type(self._array.dtype))

    def count(self) -> int:
        """Return the number of rows."""
        return len(self._array)

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield at most `size` rows at a time."""
        for start in range(0, len(self._array), size):
            yield self.piece(start, start + size), {}

    def piece(self, start: int, stop: int) -> np.ndarray:
        """Return some rows, without those before them."""
        return self._array[start:stop].astype(self.facts.dtype, copy=False)


class NpyWriter(AppendingWriter):
    """One npy file that is being written; its header is filled in when the number of rows is known."""

    def __init__(self, path: Path, layout: Layout):
        super().__init__(layout, path.open("wb"))
        self._rows, self._dtype = 0, np.dtype(layout.dtype).newbyteorder("<")
        self._file.write(b" " * _HEADER)

    def write(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows."""
        self._file.write(np.ascontiguousarray(vectors, dtype=self._dtype).reshape(-1).view(np.uint8).data)
        self._rows += len(vectors)

    def close(self) -> None:
        """Fill in the header."""
        self._file.seek(0)
        # Format version 1.0, of exactly the length that was reserved for it.
        shape, room = (self._rows, self._layout.width), _HEADER - 10
        facts = f"{{'descr': {self._dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
        self._file.write(b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + facts.ljust(room - 1).encode() + b"\n")
        super().close()


FORMAT = Format("npy", (".npy",), "nothing", False, NpyReader, NpyWriter, load)
