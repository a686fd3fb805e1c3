"""npy: one matrix and nothing else, memory-mapped for reading, appended to for writing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from firstk.data.files.choosing import PLAIN_NAME, missing_column
from firstk.data.files.contract import Facts, Format, Layout, Loaded, Wanted, float_type, reading, unreadable

BROKEN = (OSError, ValueError, EOFError, SyntaxError, TypeError)
# Room for the header, so that the number of rows can be filled in at the end.
_HEADER = 128


def check_vectors(path: Any, name: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuse an array that is no matrix of numbers."""
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        raise unreadable(path, f"{name} holds {dtype}, not numbers of at most 64 bits", "Convert it to floats")
    if len(shape) != 2 or shape[1] == 0:
        raise unreadable(path, f"{name} has shape {shape}; vectors are a matrix, a row each", "Reshape it")


def _array(path: Path) -> np.ndarray:
    with reading(path, "npy", BROKEN):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("it is an archive: name it .npz")
        return array


def load(path: Path) -> Loaded:
    """Return the array of a file, mapped, as its only column."""
    array = _array(path)
    if not array.ndim:
        raise unreadable(path, "it holds a single number, not one a row", "Give an array")
    return Loaded((PLAIN_NAME,), lambda _: array)


def fresh_view(array: np.ndarray, start: int, size: int) -> np.ndarray:
    """Return rows of a memory-mapped array from a map of their own, which goes when they go.

    The pages of one map for the whole file would stay with the process until the last row has been read.
    """
    rows = array[start : start + size]
    if not isinstance(array, np.memmap) or array.filename is None or not array.flags.c_contiguous or not len(rows):
        return np.asarray(rows)
    offset = array.offset + start * array.strides[0]
    return np.asarray(np.memmap(array.filename, array.dtype, "r", offset, rows.shape))


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

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, Any]]]:
        """Yield at most `size` rows at a time, as views of the file."""
        for start in range(0, len(self._array), size):
            yield fresh_view(self._array, start, size).astype(self.facts.dtype, copy=False), {}


class NpyWriter:
    """One npy file that is being written; its header is filled in when the number of rows is known."""

    def __init__(self, path: Path, layout: Layout):
        self._layout, self._rows = layout, 0
        self._dtype = np.dtype(layout.dtype).newbyteorder("<")
        self._file: BinaryIO = path.open("wb")
        self._file.write(b" " * _HEADER)

    def write(self, vectors: np.ndarray, columns: Mapping[str, Any]) -> None:
        """Append rows."""
        self._file.write(np.ascontiguousarray(vectors, dtype=self._dtype).data.cast("B"))
        self._rows += len(vectors)

    def close(self) -> None:
        """Fill in the header."""
        self._file.seek(0)
        self._file.write(_header(self._dtype, (self._rows, self._layout.width)))
        self._file.close()

    def abandon(self) -> None:
        """Let go of the file."""
        with suppress(Exception):
            self._file.close()


def _header(dtype: np.dtype, shape: tuple[int, int]) -> bytes:
    """Return a header of format version 1.0 that takes exactly the room that was left for it."""
    facts = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
    room = _HEADER - 10
    return b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + facts.ljust(room - 1).encode("latin1") + b"\n"


FORMAT = Format("npy", (".npy",), "nothing", False, NpyReader, NpyWriter, load)
