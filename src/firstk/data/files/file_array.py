"""An array in a file, of which rows are read when they are asked for.

Rows are copied out of the file and never mapped: touching a mapped page of a file that was cut off since kills the
process, and pages of a map stay with the process for as long as the map does.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from firstk._base.input_file import Stamp
from firstk._base.memory import scratch_array
from firstk.data.files.contract import reading
from firstk.data.files.named_arrays import Take


@dataclass(frozen=True)
class FileArray:
    """Rows of an array in a file.

    Attributes
    ----------
    path : Path
    stamp : Stamp
        Of the file when its header was read, by ``os.fstat``; reading raises an error if the file changed since.
    offset : int
        Place of the first number.
    dtype : numpy dtype
    shape : tuple of int
        At least one dimension.
    by_column : bool
        Fortran order.
    """

    path: Path
    stamp: Stamp
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]
    by_column: bool = False

    def __post_init__(self) -> None:
        needed = self.offset + math.prod(self.shape) * self.dtype.itemsize
        if min(self.shape, default=0) < 0 or needed > self.stamp.size:
            raise ValueError(f"an array of shape {self.shape} needs {needed} bytes, and there are {self.stamp.size}")

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def kind(self) -> str:
        """The letter that numpy has for the type."""
        return self.dtype.kind

    def opened(self, stack: ExitStack) -> Take:
        """Return what reads rows."""
        return lambda start, stop: self[start:stop]

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return rows of a slice of step 1, in memory of their own."""
        start, stop, _ = rows.indices(len(self))
        shape = (max(0, stop - start), *self.shape[1:])
        with reading(self.path, "file of numbers", (OSError, EOFError)), self.path.open("rb", buffering=0) as file:
            self.stamp.check_open(self.path, file)
            if self.by_column:
                found = self._columns(file, start, shape)
            else:
                found = scratch_array(shape, self.dtype)
                _fill(file, self.offset + start * math.prod(self.shape[1:]) * self.dtype.itemsize, found)
            self.stamp.check_open(self.path, file)
        return found

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)

    def _columns(self, file: BinaryIO, start: int, shape: tuple[int, ...]) -> np.ndarray:
        """Read a piece of each column; columns of more than two dimensions are numbered through."""
        size, count = self.dtype.itemsize, math.prod(shape[1:])
        out = scratch_array((count, shape[0]), self.dtype)
        for j in range(count):
            _fill(file, self.offset + (j * len(self) + start) * size, out[j])
        return out.T.reshape(shape, order="F")


def _fill(file: BinaryIO, offset: int, out: np.ndarray) -> None:
    """Read exactly the bytes of a contiguous array."""
    if not out.nbytes:
        return
    file.seek(offset)
    view = out.reshape(-1).view(np.uint8).data
    while len(view):
        count = file.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise EOFError("it ends before its numbers do")
        view = view[count:]
