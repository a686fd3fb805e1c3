"""safetensors: tensors of as many rows, of which one matrix is the vectors; bfloat16 is read as float32.

Tensors are written with checksums, in the metadata of the file, and those that have one are checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from firstk._base.input_file import Stamp
from firstk.data.files.contract import Format, Layout, Wanted, no_room
from firstk.data.files.file_array import FileArray
from firstk.data.files.named_arrays import ArrayReader, ArrayWriter, Take
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

    path: Path
    stamp: Stamp
    type: str
    shape: tuple[int, ...]
    offset: int
    sha256: str | None = None

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float32 if self.type == _BRAIN else _TYPES.get(self.type, object))

    @property
    def kind(self) -> str:
        return self.dtype.kind

    def opened(self, stack: ExitStack) -> Take:
        """Return what reads rows, and checks the last ones against the checksum of all."""
        if self.dtype.hasobject:
            raise ValueError(f"its type {self.type} is not read here")
        stored = np.dtype(np.uint16) if self.type == _BRAIN else self.dtype
        array, digest = FileArray(self.path, self.stamp, self.offset, stored, self.shape), _digest(self.type)

        def take(start: int, stop: int) -> np.ndarray:
            rows = array[start:stop]
            if self.sha256 is not None:
                digest.update(rows.reshape(-1).view(np.uint8).data)
                if stop == len(array) and digest.hexdigest() != self.sha256:
                    raise ValueError("a tensor does not match its checksum")
            # A bfloat16 is the upper half of a float32.
            return (rows.astype(np.uint32) << 16).view(np.float32) if self.type == _BRAIN else rows

        return take


def _digest(type_name: str) -> hashlib._Hash:
    return hashlib.sha256(type_name.encode())


class SafetensorsReader(ArrayReader):
    """One safetensors file."""

    form, called = "safetensors", "tensor"

    def __init__(self, path: Path, wanted: Wanted):
        from safetensors import SafetensorError

        self.broken = (*ArrayReader.broken, SafetensorError, KeyError, AttributeError, RecursionError)
        super().__init__(path, wanted)

    def header(self) -> tuple[dict[str, _Tensor], dict[str, str]]:
        """Return the tensors and the metadata; the library checks the header first, and only then is it believed."""
        from safetensors import safe_open

        with self.path.open("rb") as file:
            stamp = Stamp.of_open(self.path, file)
            with _local(self.path, file, stamp.size) as place, safe_open(place, framework="np"):
                pass
            file.seek(0)
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        said = header.pop("__metadata__", {})
        held = {
            name: _Tensor(
                self.path,
                stamp,
                fact["dtype"],
                tuple(fact["shape"]),
                8 + length + fact["data_offsets"][0],
                said.get(_SEAL + name),
            )
            for name, fact in header.items()
        }
        return held, {name: value for name, value in said.items() if not name.startswith(_SEAL)}


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


class SafetensorsWriter(ArrayWriter):
    """One safetensors file that is being written; its header is filled in when the number of rows is known."""

    def __init__(self, path: Path, layout: Layout):
        super().__init__(layout, path.open("wb"))
        # Twenty digits per number are more than any shape or offset takes.
        named = sum(2 * len(json.dumps(name)) + 300 for name in (layout.vectors, *layout.columns))
        self._room = -(-(named + len(json.dumps(dict(layout.metadata))) + 100) // 8) * 8
        self._digest = _digest(_NAMES[self.dtype])
        self._file.write(b" " * (8 + self._room))

    def append(self, content: memoryview) -> None:
        """Append bytes of vectors."""
        self._digest.update(content)
        super().append(content)

    def close(self) -> None:
        """Write the other columns, and fill in the header."""
        name, shape, end = self._layout.vectors, (self.rows, self._layout.width), 0
        seals, facts = {_SEAL + name: self._digest.hexdigest()}, dict[str, object]()

        def describe(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> None:
            nonlocal end
            start, end = end, end + math.prod(shape) * dtype.itemsize
            facts[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [start, end]}

        describe(name, self.dtype, shape)
        for name, column in self.columns().items():
            column = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            if column.dtype not in _NAMES:
                raise no_room("safetensors", "numbers", name)
            describe(name, column.dtype, column.shape)
            digest = _digest(_NAMES[column.dtype])
            digest.update(content := column.tobytes())
            seals[_SEAL + name] = digest.hexdigest()
            self._file.write(content)
        self._file.seek(0)
        header = json.dumps({"__metadata__": dict(sorted(self._layout.metadata.items())) | seals} | facts)
        self._file.write(self._room.to_bytes(8, "little") + header.encode().ljust(self._room))
        super().close()


FORMAT = Format("safetensors", (".safetensors",), "numbers", True, SafetensorsReader, SafetensorsWriter)
