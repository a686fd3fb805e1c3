"""Bytes in the format of safetensors, the same for the same content, with a checksum over all of them where asked for.

The safetensors library writes metadata in the order of a hash map, which differs from process to process. Files are
read by that library: what is written here is its format and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import BinaryIO

import numpy as np

from firstk.exceptions import InvalidInputError

_TYPES = {
    np.dtype(kind): name
    for kind, name in {
        "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
        "uint64": "U64", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64",
    }.items()
}  # fmt: skip
# The checksum is the first thing in the header, so that it is found before anything is parsed.
_BEGINNING = b'{"__metadata__":{"sha256":"'
_PLACE = slice(8 + len(_BEGINNING), 8 + len(_BEGINNING) + 64)
_BLANK = b"0" * 64
_BLOCK = 1 << 20


def pieces(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file: its header, then each array, wide types first, so that all are aligned."""
    ready = {name: _ready(name, part) for name, part in arrays.items()}
    names = sorted(ready, key=lambda name: (-ready[name].dtype.itemsize, name))
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in names:
        start, end = end, end + ready[name].nbytes
        shape = list(ready[name].shape)
        header[name] = {"dtype": _TYPES[ready[name].dtype], "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text = text.ljust(-(-len(text) // 8) * 8)
    yield len(text).to_bytes(8, "little") + text
    for name in names:
        if ready[name].size:
            yield ready[name].reshape(-1).view(np.uint8).data


def to_bytes(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes of a file."""
    return b"".join(pieces(arrays, metadata))


def sealed(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file whose metadata begin with the SHA-256 of everything else in it."""
    header, *rest = pieces(arrays, {"sha256": _BLANK.decode()} | dict(metadata))
    yield bytes(header[: _PLACE.start]) + _checksum([header, *rest]) + bytes(header[_PLACE.stop :])
    yield from rest


def check_seal(file: BinaryIO) -> None:
    """Raise ValueError, with a few words that say why, unless a file holds the bytes that `sealed` yields."""
    header = file.read(_PLACE.stop)
    if header[8 : _PLACE.start] != _BEGINNING or len(header) < _PLACE.stop:
        raise ValueError("there is no checksum in it: it is damaged, or an older firstk wrote it")
    if header[_PLACE] != _checksum(chain([header], iter(lambda: file.read(_BLOCK), b""))):
        raise ValueError("it does not match its checksum: it is damaged")


def metadata_of(payload: bytes) -> dict[str, str]:
    """Return the metadata of a file that safetensors has been found able to read."""
    size = int.from_bytes(payload[:8], "little")
    return json.loads(payload[8 : 8 + size])["__metadata__"]


def _checksum(parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the SHA-256 of a file in parts, in hexadecimal; the checksum in the first is taken as zeros."""
    digest = None
    for part in parts:
        if digest is None:
            digest = hashlib.sha256(part[: _PLACE.start])
            digest.update(_BLANK)
            part = part[_PLACE.stop :]
        digest.update(part)
    return b"" if digest is None else digest.hexdigest().encode()


def _ready(name: str, part: np.ndarray) -> np.ndarray:
    """Return an array as it is stored: contiguous and little-endian."""
    array = np.asarray(part)
    array = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    if array.dtype not in _TYPES:
        raise InvalidInputError(
            f"'{name}' holds {array.dtype}, which safetensors cannot store. Convert it to float64 first."
        )
    return array
