"""npz: arrays of as many rows, of which one matrix is the vectors; streamed, so that compression costs no memory."""

from __future__ import annotations

import math
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from firstk.data.files.contract import Format, Layout, Wanted, no_room, unreadable
from firstk.data.files.named_arrays import ArrayReader, Take
from firstk.data.files.npy import Header, NpyWriter, read_header


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        yield archive


@dataclass(frozen=True)
class _Member(Header):
    """An array of an archive."""

    path: Path
    entry: str

    def opened(self, stack: ExitStack) -> Take:
        """Return what reads rows from a stream; what lies column by column is read as a whole."""
        stream = stack.enter_context(stack.enter_context(_archive(self.path)).open(self.entry))
        if self.by_column or self.dtype.hasobject:
            whole = np.lib.format.read_array(stream, allow_pickle=False)
            return lambda start, stop: whole[start:stop]
        read_header(stream)

        def take(start: int, stop: int) -> np.ndarray:
            content = stream.read((stop - start) * self.row_bytes)
            if len(content) != (stop - start) * self.row_bytes:
                raise ValueError("an array ends before its rows do")
            return np.frombuffer(content, self.dtype).reshape(stop - start, *self.shape[1:])

        return take


class NpzReader(ArrayReader):
    """One npz file."""

    form = "npz"
    broken = (*ArrayReader.broken, zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError)

    def __init__(self, path: Path, wanted: Wanted):
        super().__init__(path, wanted)
        if not wanted.plain and getattr(self.vectors, "by_column", False):
            why = f"array {self.facts.vectors!r} lies column by column"
            raise unreadable(path, why, "Save np.ascontiguousarray of it")

    def header(self) -> tuple[dict[str, _Member], dict[str, str]]:
        """Return the arrays, and our own facts: bytes of UTF-8 in an array of no dimension, as text takes more."""
        held, metadata = {}, {}
        with _archive(self.path) as archive:
            for entry in archive.namelist():
                if not entry.endswith(".npy"):
                    continue
                name = entry.removesuffix(".npy")
                with archive.open(entry) as stream:
                    header = read_header(stream)
                    needed = stream.tell() + math.prod(header.shape) * header.dtype.itemsize
                    # A forged shape must not claim memory.
                    if not header.dtype.hasobject and needed > archive.getinfo(entry).file_size:
                        raise ValueError(f"array {name!r} ends before its rows do")
                    if name == "firstk" and header.shape == () and header.dtype.kind == "S":
                        metadata[name] = stream.read().rstrip(b"\0").decode()
                held[name] = _Member(header.shape, header.dtype, header.by_column, self.path, entry)
        return held, metadata


class NpzWriter(NpyWriter):
    """One npz file that is being written: the vectors first beside it, as the archive must know their number."""

    def __init__(self, path: Path, layout: Layout):
        self._path, self._beside = path, path.with_name(path.name + ".vectors")
        super().__init__(self._beside, layout)

    def close(self) -> None:
        """Put everything into one archive."""
        super().close()
        with zipfile.ZipFile(self._path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:

            def entry(name: str) -> IO[bytes]:  # without a time, so that the same rows give the same bytes
                return archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True)

            with self._beside.open("rb") as vectors, entry(self._layout.vectors) as stream:
                shutil.copyfileobj(vectors, stream, 1 << 20)
            arrays = self.columns() | {key: np.array(held.encode()) for key, held in self._layout.metadata.items()}
            for name, array in arrays.items():
                if array.dtype.kind == "O":
                    raise no_room("npz", "arrays of numbers or text", name)
                with entry(name) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)
        self._beside.unlink()

    def abandon(self) -> None:
        """Let go of the file, and of the one beside it."""
        super().abandon()
        with suppress(OSError):
            self._beside.unlink()


FORMAT = Format("npz", (".npz",), "arrays", True, NpzReader, NpzWriter)
