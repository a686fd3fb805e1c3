"""npy: one matrix and nothing else, read by ranges of rows, appended to for writing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from firstk._base.input_file import Stamp
from firstk.data.files.contract import Format, Layout, Wanted
from firstk.data.files.file_array import FileArray
from firstk.data.files.named_arrays import ArrayReader, ArrayWriter
from firstk.data.files.vector_columns import PLAIN_NAME

_VERSIONS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# Bytes reserved for the header, so that the number of rows can be filled in at the end.
_HEADER = 128


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


class NpyReader(ArrayReader):
    """One npy file, whose array has the name of vectors in formats without names."""

    form = "npy"

    def __init__(self, path: Path, wanted: Wanted):
        super().__init__(path, wanted.with_default(PLAIN_NAME, (PLAIN_NAME,)))

    def header(self) -> tuple[dict[str, FileArray], dict[str, str]]:
        """Return the array."""
        with self.path.open("rb") as file:
            stamp = Stamp.of_open(self.path, file)
            if file.read(2) == b"PK":
                raise ValueError("it is an archive: name it .npz")
            file.seek(0)
            header = read_header(file)
            if header.dtype.hasobject:
                raise ValueError("it holds Python objects, which are never unpickled")
            array = FileArray(self.path, stamp, file.tell(), header.dtype, header.shape, header.by_column)
        return {PLAIN_NAME: array}, {}

    def piece(self, start: int, stop: int) -> np.ndarray:
        """Return some rows, without those before them."""
        assert isinstance(self.vectors, FileArray)
        return self.vectors[start:stop].astype(self.facts.dtype, copy=False)

    def column(self, name: str) -> FileArray:
        """Return the array, whose rows are read as they are asked for."""
        array = self.beside[name]
        assert isinstance(array, FileArray)
        return array


class NpyWriter(ArrayWriter):
    """One npy file that is being written; its header is filled in when the number of rows is known."""

    def __init__(self, path: Path, layout: Layout):
        super().__init__(layout, path.open("wb"))
        self._file.write(b" " * _HEADER)

    def close(self) -> None:
        """Fill in the header."""
        self._file.seek(0)
        # Format version 1.0, of exactly the length that was reserved for it.
        shape, room = (self.rows, self._layout.width), _HEADER - 10
        facts = f"{{'descr': {self.dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
        self._file.write(b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + facts.ljust(room - 1).encode() + b"\n")
        super().close()


FORMAT = Format("npy", (".npy",), "nothing", False, NpyReader, NpyWriter)
