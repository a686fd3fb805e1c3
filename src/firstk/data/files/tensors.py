"""safetensors: tensors of as many rows, of which one matrix is the vectors; bfloat16 is read as float32.

Tensors are written with checksums, in the metadata of the file, and those that have one are checked.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from firstk._base.input_file import Stamp
from firstk.data.files.contract import (
    AppendingWriter,
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
from firstk.data.files.file_array import FileArray
from firstk.data.files.npy import BROKEN, check_vectors
from firstk.data.files.vector_columns import beside_matrix, choose_matrix
from firstk.data.remote import RemotePath

_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
_WHOLE = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1"}
_TYPES = _FLOATS | _WHOLE | {"BOOL": "?"}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_BRAIN = "BF16"
# As the library limits it.
_LONGEST_HEADER = 100_000_000
# What the metadata call the checksum of a tensor, before its name.
_SEAL = "sha256:"


@dataclass(frozen=True)
class _Tensor:
    """A tensor as the header describes it."""

    type: str
    shape: tuple[int, ...]
    offset: int
    sha256: str | None = None

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float32 if self.type == _BRAIN else _TYPES[self.type])

    @property
    def kind(self) -> str:
        return "O" if self.type == "unknown" else self.dtype.kind

    def stored(self, path: Path, stamp: Stamp) -> FileArray:
        """Return the numbers in the file; bfloat16 as the bits that they are."""
        dtype = np.dtype(np.uint16) if self.type == _BRAIN else self.dtype
        return FileArray(path, stamp, self.offset, dtype, self.shape)

    def numbers(self, stored: np.ndarray) -> np.ndarray:
        """Return numbers of numpy: a bfloat16 is the upper half of a float32."""
        if self.type != _BRAIN:
            return stored
        return (stored.astype(np.uint32) << 16).view(np.float32)


class _Seal:
    """The SHA-256 of a tensor whose rows go by in order."""

    def __init__(self, tensor: _Tensor):
        self._tensor, self._digest, self._left = tensor, _started(tensor.type), tensor.shape[0]

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return rows that were read; raise ValueError if they are the last, and the tensor is not what was written."""
        if self._tensor.sha256 is not None:
            self._digest.update(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
            self._left -= len(rows)
            if not self._left and self._digest.hexdigest() != self._tensor.sha256:
                raise ValueError("a tensor does not match its checksum")
        return rows


def _started(type_name: str) -> hashlib._Hash:
    return hashlib.sha256(type_name.encode())


class TensorReader:
    """One safetensors file."""

    def __init__(self, path: Path, wanted: Wanted):
        self.path = path
        with reading(path, "safetensors", _broken()):
            held, metadata, self._stamp = _header(path)
        name = choose_matrix(path, held, wanted.with_default(vectors_named(metadata), held), "tensors")
        self._vectors = held[name]
        if self._vectors.type == "unknown":
            raise unreadable(path, f"tensor {name!r} has a type that is not read here", "Convert it to floats")
        check_vectors(path, f"tensor {name!r}", self._vectors.shape, self._vectors.dtype)
        self._rows, width = self._vectors.shape
        self._held = beside_matrix(path, held, name, wanted)
        self.facts = Facts(name, (name,), width, float_type(self._vectors.dtype), tuple(self._held), metadata)

    def count(self) -> int:
        """Return the number of rows."""
        return self._rows

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield at most `size` rows at a time."""
        if not self._rows:
            return
        tensors = {name: self._held[name] for name in columns}
        with reading(self.path, "safetensors", _broken()):
            vectors = self._vectors.stored(self.path, self._stamp)
            beside = {name: tensor.stored(self.path, self._stamp) for name, tensor in tensors.items()}
        seal, seals = _Seal(self._vectors), {name: _Seal(tensor) for name, tensor in tensors.items()}
        for start in range(0, self._rows, size):
            rows = slice(start, start + size)
            with reading(self.path, "safetensors", _broken()):
                found = {name: tensor.numbers(seals[name].take(beside[name][rows])) for name, tensor in tensors.items()}
                here = self._vectors.numbers(seal.take(vectors[rows]))
            yield here.astype(self.facts.dtype, copy=False), found


def _broken() -> tuple[type[BaseException], ...]:
    from safetensors import SafetensorError

    return (*BROKEN, SafetensorError, KeyError, AttributeError, RecursionError)


def _header(path: Path) -> tuple[dict[str, _Tensor], dict[str, str], Stamp]:
    """Return tensors, metadata and stamp; the library checks the header first, and only then is it believed."""
    from safetensors import safe_open

    with path.open("rb") as file:
        stamp = Stamp.of_open(path, file)
        with _local(path, file, stamp.size) as place, safe_open(place, framework="np"):
            pass
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    metadata = header.pop("__metadata__", {})
    return (
        {
            name: _Tensor(
                fact["dtype"] if fact["dtype"] in (*_TYPES, _BRAIN) else "unknown",
                tuple(fact["shape"]),
                8 + length + fact["data_offsets"][0],
                metadata.get(_SEAL + name),
            )
            for name, fact in header.items()
        },
        {name: value for name, value in metadata.items() if not name.startswith(_SEAL)},
        stamp,
    )


@contextmanager
def _local(path: Path, file: BinaryIO, size: int) -> Iterator[Path]:
    """Yield the path; for a file in object storage that of a file with its header and size, and holes for tensors."""
    if not isinstance(path, RemotePath):
        yield path
        return
    head = file.read(8)
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as copy:
        copy.write(head + file.read(min(size, int.from_bytes(head, "little"), _LONGEST_HEADER)))
        copy.truncate(size)
        copy.flush()
        yield Path(copy.name)


def load(path: Path) -> Loaded:
    """Return the tensors of a file."""
    with reading(path, "safetensors", _broken()):
        held, _, stamp = _header(path)
    known = {name: tensor for name, tensor in held.items() if tensor.type != "unknown" and tensor.shape}

    def one(name: str) -> np.ndarray:
        with reading(path, "safetensors", _broken()):
            return known[name].numbers(_Seal(known[name]).take(known[name].stored(path, stamp)[:]))

    return Loaded(tuple(known), one)


class TensorWriter(AppendingWriter):
    """One safetensors file that is being written; its header is filled in when the number of rows is known."""

    def __init__(self, path: Path, layout: Layout):
        super().__init__(layout, path.open("wb"))
        self._rows = 0
        self._dtype = np.dtype(layout.dtype).newbyteorder("<")
        self._columns: dict[str, list[np.ndarray]] = {name: [] for name in layout.columns}
        # Twenty digits per number are more than any shape or offset takes.
        named = sum(2 * len(json.dumps(name)) + 300 for name in (layout.vectors, *layout.columns))
        self._room = -(-(named + len(json.dumps(dict(layout.metadata))) + 100) // 8) * 8
        self._digest = _started(_NAMES[self._dtype])
        self._file.write(b" " * (8 + self._room))

    def write(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows; the other columns wait in memory."""
        content = np.ascontiguousarray(vectors, dtype=self._dtype).reshape(-1).view(np.uint8).data
        self._digest.update(content)
        self._file.write(content)
        self._rows += len(vectors)
        for name, parts in self._columns.items():
            parts.append(exactly(columns, name))

    def close(self) -> None:
        """Write the other columns, and fill in the header."""
        seals, facts = {_SEAL + self._layout.vectors: self._digest.hexdigest()}, {}
        end = self._rows * self._layout.width * self._dtype.itemsize
        facts[self._layout.vectors] = _fact(self._dtype, (self._rows, self._layout.width), 0, end)
        for name, parts in self._columns.items():
            column = np.concatenate(parts)
            column = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            if column.dtype not in _NAMES:
                raise no_room("safetensors", "numbers", name)
            content = column.tobytes()
            digest = _started(_NAMES[column.dtype])
            digest.update(content)
            seals[_SEAL + name] = digest.hexdigest()
            self._file.write(content)
            facts[name] = _fact(column.dtype, column.shape, end, end + column.nbytes)
            end += column.nbytes
        self._file.seek(0)
        header = json.dumps({"__metadata__": dict(sorted(self._layout.metadata.items())) | seals} | facts)
        self._file.write(self._room.to_bytes(8, "little") + header.encode().ljust(self._room))
        super().close()


def _fact(dtype: np.dtype, shape: tuple[int, ...], start: int, end: int) -> dict[str, object]:
    return {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [start, end]}


FORMAT = Format("safetensors", (".safetensors",), "numbers", True, TensorReader, TensorWriter, load)
