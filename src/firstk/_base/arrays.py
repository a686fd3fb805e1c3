"""Named arrays of numbers and text as one safetensors file or string of bytes, with facts in its header.

This is how moments travel between machines and how runs survive a stop: nothing is pickled, writes are atomic, and a
checksum over arrays, facts and header is checked before anything is used. safetensors holds numbers; text is stored by
its characters.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base import tensors
from firstk._base.atomic_file import atomic_file
from firstk._base.input_file import check_regular
from firstk.exceptions import CorruptModelError, InvalidInputError

# Version 1 had no checksum, and is not read.
FORMAT = "firstk arrays 2"
_LAST_CHARACTER = 0x10FFFF


def to_bytes(arrays: Mapping[str, np.ndarray], facts: Mapping[str, object] | None = None) -> bytes:
    """Return arrays, of at least one dimension if they are text, and facts that JSON can hold, as bytes.

    Examples
    --------
    >>> import numpy as np
    >>> arrays, facts = from_bytes(to_bytes({"labels": np.array(["a", "bc"])}, {"rows": 2}))
    >>> arrays["labels"], facts
    (array(['a', 'bc'], dtype='<U2'), {'rows': 2})
    """
    stored, text = {}, {}
    for name, part in arrays.items():
        stored[name], kind = _stored(name, np.asarray(part))
        if kind:
            text[name] = kind
    said = {"text": json.dumps(text, sort_keys=True), "facts": json.dumps(dict(facts or {}), sort_keys=True)}
    return b"".join(tensors.sealed(stored, {"format": FORMAT} | said))


def from_bytes(
    payload: bytes, what: str = "These bytes", again: str = "Make them again."
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Undo `to_bytes`; an error message calls the bytes `what`, and says how to start again."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors.check_seal(io.BytesIO(payload))
        parts, header = load(payload), tensors.metadata_of(payload)
        if header["format"] != FORMAT:
            raise ValueError(f"its format is '{header['format']:.40}', and this firstk reads '{FORMAT}'")
        text, facts = json.loads(header["text"]), json.loads(header["facts"])
        if not isinstance(facts, dict):
            raise ValueError("its facts are not a mapping")
        arrays = {name: _restored(part, text.get(name)) for name, part in parts.items()}
    except (SafetensorError, ValueError) as error:
        raise CorruptModelError(f"{what} cannot be read: {error}. {again}") from None
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CorruptModelError(
            f"{what} cannot be read: its parts do not fit together ({error!r:.200}). {again}"
        ) from None
    return arrays, facts


def _stored(name: str, part: np.ndarray) -> tuple[np.ndarray, str]:
    """Return an array as numbers, and the kind of text it was if it was text."""
    if part.dtype.kind in "fiub":
        return part, ""
    if part.dtype.kind == "O" and not all(isinstance(entry, str) for entry in part.ravel()):
        raise InvalidInputError(f"'{name}' holds objects that are neither numbers nor text, and cannot be stored.")
    if part.dtype.kind not in "OUT":
        raise InvalidInputError(f"'{name}' holds {part.dtype}, and only numbers and text can be stored.")
    flat = np.ascontiguousarray(part.astype(str))
    width = flat.dtype.itemsize // 4
    return flat.view(np.uint32).reshape(*part.shape, width), "U" if part.dtype.kind == "U" else "O"


def _restored(part: np.ndarray, kind: str | None) -> np.ndarray:
    if kind is None:
        return part
    if kind not in ("U", "O") or part.dtype != np.uint32 or not part.ndim or (part > _LAST_CHARACTER).any():
        raise ValueError("its text is not valid Unicode")
    shape, width = part.shape[:-1], max(1, part.shape[-1])
    wide = part if part.shape[-1] else np.zeros((*shape, 1), np.uint32)
    text = np.ascontiguousarray(wide).view(f"<U{width}").reshape(shape)
    return text if kind == "U" else text.astype(object)


def write(
    path: str | Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, object] | None = None, what: str = "A file"
) -> None:
    """Write a file in one atomic step; an error message calls it `what`."""
    payload = to_bytes(arrays, facts)
    with atomic_file(path, what, durable=True) as temporary:
        temporary.write_bytes(payload)


def read(path: str | Path, again: str = "Remove it to start again.") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read a file that `write` wrote."""
    try:
        check_regular(path)
        payload = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"Cannot read '{path}': {error.strerror}. Check the path and its permissions."
        ) from None
    return from_bytes(payload, f"'{path}'", again)


def within(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Return the arrays under ``name.``, without that beginning."""
    return {key[len(name) + 1 :]: part for key, part in arrays.items() if key.startswith(f"{name}.")}


def under(name: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays with ``name.`` put before their names."""
    return {f"{name}.{key}": part for key, part in arrays.items()}


def are_hashes(part: np.ndarray) -> bool:
    """Tell whether an array is a set of hashes: whole numbers of 64 bits, each once, ascending."""
    return part.dtype == np.uint64 and part.ndim == 1 and bool((part[1:] > part[:-1]).all())
