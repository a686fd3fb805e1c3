"""npz: arrays of as many rows, of which one matrix is the vectors; streamed, so that compression costs no memory."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

from firstk.data.files.contract import (
    Facts,
    Format,
    Layout,
    Loaded,
    Wanted,
    exactly,
    float_type,
    no_room,
    reading,
    unreadable,
    vectors_named,
)
from firstk.data.files.npy import BROKEN, Header, NpyWriter, check_vectors, read_header
from firstk.data.files.vector_columns import beside_matrix, choose_matrix

_BROKEN = (*BROKEN, zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError)


class NpzReader:
    """One npz file."""

    def __init__(self, path: Path, wanted: Wanted):
        self.path = path
        with reading(path, "npz", _BROKEN):
            held = _members(path)
        metadata = _metadata(path, held)
        name = choose_matrix(path, held, wanted.with_default(vectors_named(metadata), held), "arrays")
        self._vectors = held[name]
        check_vectors(path, f"array {name!r}", self._vectors.shape, self._vectors.dtype)
        if self._vectors.by_column:
            raise unreadable(path, f"array {name!r} lies column by column", "Save np.ascontiguousarray of it")
        self._rows = self._vectors.shape[0]
        self._held = beside_matrix(path, held, name, wanted)
        width, dtype = self._vectors.shape[1], float_type(self._vectors.dtype)
        self.facts = Facts(name, (name,), width, dtype, tuple(self._held), metadata)

    def count(self) -> int:
        """Return the number of rows."""
        return self._rows

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield at most `size` rows at a time, reading each array once from its beginning to its end."""
        with reading(self.path, "npz", _BROKEN), ExitStack() as opened:
            archive = opened.enter_context(_archive(self.path))
            beside = {
                name: opened.enter_context(archive.open(f"{name}.npy"))
                for name in columns
                if not self._held[name].by_column
            }
            whole = {name: _read_whole(archive, name) for name in columns if name not in beside}
            vectors = opened.enter_context(archive.open(f"{self.facts.vectors}.npy"))
            for stream in (vectors, *beside.values()):
                read_header(stream)
            for start in range(0, self._rows, size):
                n = min(size, self._rows - start)
                found = {name: _take(stream, self._held[name], n) for name, stream in beside.items()}
                found |= {name: array[start : start + n] for name, array in whole.items()}
                yield _take(vectors, self._vectors, n).astype(self.facts.dtype, copy=False), found


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        yield archive


def _members(path: Path) -> dict[str, Header]:
    found = {}
    with _archive(path) as archive:
        for entry in archive.namelist():
            if entry.endswith(".npy"):
                found[entry.removesuffix(".npy")] = _checked_header(archive, entry)
    return found


def _checked_header(archive: zipfile.ZipFile, entry: str) -> Header:
    """Return the header of an array that has as many bytes as its shape says: a forged shape must not claim memory."""
    with archive.open(entry) as stream:
        header = read_header(stream)
        needed = stream.tell() + math.prod(header.shape) * header.dtype.itemsize
    if not header.dtype.hasobject and needed > archive.getinfo(entry).file_size:
        raise ValueError(f"array {entry.removesuffix('.npy')!r} ends before its rows do")
    return header


def _read_whole(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    _checked_header(archive, f"{name}.npy")
    with archive.open(f"{name}.npy") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _take(stream: IO[bytes], member: Header, n: int) -> np.ndarray:
    """Read the next `n` rows."""
    content = stream.read(n * member.row_bytes)
    if len(content) != n * member.row_bytes:
        raise ValueError("an array ends before its rows do")
    return np.frombuffer(content, member.dtype).reshape(n, *member.shape[1:])


def load(path: Path) -> Loaded:
    """Return the arrays of an archive."""
    with reading(path, "npz", _BROKEN):
        names = tuple(_members(path))

    def one(name: str) -> np.ndarray:
        with reading(path, "npz", _BROKEN), _archive(path) as archive:
            return _read_whole(archive, name)

    return Loaded(names, one)


def _metadata(path: Path, held: Mapping[str, Header]) -> Mapping[str, str]:
    """Return our own facts, kept as bytes of UTF-8 in an array of no dimension: text takes four bytes a character."""
    member = held.get("firstk")
    if member is None or member.shape != () or member.dtype.kind != "S":
        return {}
    with reading(path, "npz", (*_BROKEN, UnicodeDecodeError)), _archive(path) as archive:
        return {"firstk": _read_whole(archive, "firstk").item().decode()}


class NpzWriter:
    """One npz file that is being written: the vectors first beside it, as the archive must know their number."""

    def __init__(self, path: Path, layout: Layout):
        self._path, self._layout = path, layout
        self._beside = path.with_name(path.name + ".vectors")
        self._vectors = NpyWriter(self._beside, layout)
        self._columns: dict[str, list[np.ndarray]] = {name: [] for name in layout.columns}

    def write(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows; the other columns wait in memory."""
        self._vectors.write(vectors, columns)
        for name, parts in self._columns.items():
            parts.append(exactly(columns, name))

    def close(self) -> None:
        """Put everything into one archive."""
        self._vectors.close()
        with zipfile.ZipFile(self._path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            archive.write(self._beside, f"{self._layout.vectors}.npy")
            arrays = {name: np.concatenate(parts) for name, parts in self._columns.items()}
            arrays |= {key: np.array(value.encode()) for key, value in self._layout.metadata.items()}
            for name, array in arrays.items():
                if array.dtype.kind == "O":
                    raise no_room("npz", "arrays of numbers or text", name)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)
        self._beside.unlink()

    def abandon(self) -> None:
        """Let go of the file, and of the one beside it."""
        self._vectors.abandon()
        with suppress(OSError):
            self._beside.unlink()


FORMAT = Format("npz", (".npz",), "arrays", True, NpzReader, NpzWriter, load)
