"""An index on disk: one safetensors file whose header holds the facts as JSON, written atomically.

Nothing is ever unpickled. A checksum over the file is checked before anything is used. An encoder is stored as the
files that it saves itself as.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base import tensors
from firstk._base.atomic_file import atomic_file
from firstk._base.input_file import Stamp
from firstk._base.json_records import strict_json
from firstk.encoder import FittedEncoder
from firstk.exceptions import CorruptModelError, FirstkError, InvalidInputError

if TYPE_CHECKING:
    import torch

FORMAT, FORMAT_VERSION = "firstk-funnel", "1"
BYTES_FORMAT = "firstk-bytes"
_OWNERS = {FORMAT: "FunnelIndex", BYTES_FORMAT: "CodeIndex"}
_ENCODER = "encoder/"


def write_index(
    path: str | Path, facts: Mapping[str, object], arrays: Mapping[str, np.ndarray], kind: str = FORMAT
) -> Path:
    """Write a file in one atomic step."""
    text = json.dumps(dict(facts), sort_keys=True, allow_nan=False)
    header = {"format": kind, "format_version": FORMAT_VERSION, "facts": text}
    with atomic_file(path, "An index", durable=True) as temporary, temporary.open("wb") as file:
        file.writelines(tensors.sealed(arrays, header))
    return Path(path).resolve()


def kind_of_index(path: str | Path) -> str | None:
    """Return the format of a saved index, by the header of the file; None where it is none."""
    from safetensors import SafetensorError, safe_open

    with suppress(SafetensorError, OSError), safe_open(path, framework="numpy") as content:
        found = (content.metadata() or {}).get("format")
        return found if found in _OWNERS else None
    return None


def read_index(path: str | Path, kind: str = FORMAT) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and arrays of a file that `write_index` wrote."""
    from safetensors import SafetensorError, safe_open

    file = Path(path)
    if not file.exists():
        raise CorruptModelError(f"'{file}' is not a firstk index: there is no such file.")
    stamp = Stamp.of(file)
    try:
        with safe_open(file, framework="numpy") as content:
            header = content.metadata() or {}
            found = header.get("format")
            if found != kind and found in _OWNERS:
                raise CorruptModelError(
                    f"'{file}' is a {_OWNERS[found]}, and no {_OWNERS[kind]}. Read it with {_OWNERS[found]}.load."
                )
            if found != kind:
                raise CorruptModelError(f"'{file}' is not a firstk index: its header does not say format '{kind}'.")
            if header.get("format_version") != FORMAT_VERSION:
                raise CorruptModelError(
                    f"'{file}' has format version {header.get('format_version')!r}; this firstk reads version "
                    f"{FORMAT_VERSION}. Use the firstk that wrote it, or save it again."
                )
            arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, CorruptModelError):
            raise
        raise CorruptModelError(f"'{file}' is not a firstk index: it is not a safetensors file ({error}).") from None
    try:
        with file.open("rb") as again:
            tensors.check_seal(again)
        facts = strict_json(header["facts"])
    except (OSError, KeyError, ValueError) as error:
        raise CorruptModelError(f"'{file}' cannot be read: {error}. Copy or save the index again.") from None
    stamp.check(file)
    return facts, arrays


@contextmanager
def fitting_parts(path: str | Path) -> Iterator[None]:
    """Turn errors of facts and arrays that do not fit each other into CorruptModelError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, FirstkError) and not isinstance(error, InvalidInputError):
            raise
        raise CorruptModelError(f"'{path}' is a damaged firstk index: its parts do not fit ({error}).") from None


def pack_encoder(encoder: FittedEncoder) -> dict[str, np.ndarray]:
    """Return the files of a saved encoder as arrays of bytes."""
    return {_ENCODER + name: np.frombuffer(payload or b" ", np.uint8) for name, payload in encoder.files().items()}


def unpack_encoder(
    arrays: Mapping[str, np.ndarray], where: str, module: torch.nn.Module | None = None
) -> FittedEncoder | None:
    """Return the encoder that was packed, or None; an error message calls its place `where`, `module` is a network."""
    files = {name.removeprefix(_ENCODER): array for name, array in arrays.items() if name.startswith(_ENCODER)}
    if not files:
        return None
    return FittedEncoder.from_files({name: array.tobytes() for name, array in files.items()}, where, module)
