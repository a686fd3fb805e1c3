"""Named arrays of numbers and text as one safetensors file or string of bytes, with facts in its header.

This is how moments travel between machines and survive a stop: nothing is pickled, and a file is whole or not there.
safetensors holds numbers; text is stored by its characters.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from firstk._checks import CorruptModel, InvalidInput

FORMAT = "firstk arrays 1"


def to_bytes(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any] | None = None) -> bytes:
    """Return arrays of at least one dimension, and facts that JSON can hold, as bytes.

    Examples
    --------
    >>> import numpy as np
    >>> arrays, facts = from_bytes(to_bytes({"labels": np.array(["a", "bc"])}, {"rows": 2}))
    >>> arrays["labels"], facts
    (array(['a', 'bc'], dtype='<U2'), {'rows': 2})
    """
    from safetensors.numpy import save

    stored, text = {}, {}
    for name, part in arrays.items():
        stored[name], kind = _stored(name, np.asarray(part))
        if kind:
            text[name] = kind
    header = {"format": FORMAT, "text": json.dumps(text), "facts": json.dumps(dict(facts or {}))}
    return save(stored, metadata=header)


def from_bytes(payload: bytes, what: str = "These bytes") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Undo `to_bytes`; `what` is how an error calls them."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        size = int.from_bytes(payload[:8], "little")
        header = json.loads(payload[8 : 8 + size])["__metadata__"]
        if header["format"] != FORMAT:
            raise ValueError(f"format '{header['format']}'")
        text, facts = json.loads(header["text"]), json.loads(header["facts"])
        arrays = {name: _restored(part, text.get(name)) for name, part in load(bytes(payload)).items()}
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CorruptModel(f"{what} cannot be read: damaged, or not written by firstk ({error!r}).") from None
    return arrays, facts


def _stored(name: str, part: np.ndarray) -> tuple[np.ndarray, str]:
    """Return an array as numbers, and the kind of text it was if it was text."""
    if part.dtype.kind in "fiub":
        return np.ascontiguousarray(part), ""
    if part.dtype.kind == "O" and not all(isinstance(entry, str) for entry in part.ravel()):
        raise InvalidInput(f"'{name}' holds objects that are neither numbers nor text, and cannot be stored.")
    if part.dtype.kind not in "OUT":
        raise InvalidInput(f"'{name}' holds {part.dtype}, and only numbers and text can be stored.")
    flat = np.ascontiguousarray(part.astype(str))
    width = flat.dtype.itemsize // 4
    return flat.view(np.uint32).reshape(*part.shape, width), "U" if part.dtype.kind == "U" else "O"


def _restored(part: np.ndarray, kind: str | None) -> np.ndarray:
    if kind is None:
        return part
    shape, width = part.shape[:-1], max(1, part.shape[-1])
    wide = part if part.shape[-1] else np.zeros((*shape, 1), np.uint32)
    text = np.ascontiguousarray(wide).view(f"<U{width}").reshape(shape)
    return text if kind == "U" else text.astype(object)


def write(path: str | Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any] | None = None) -> None:
    """Write a file, whole or not at all."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.draft")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            file.write(to_bytes(arrays, facts))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidInput(f"Cannot write '{target}': {error.strerror}. Choose another place.") from None


def read(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read a file that `write` wrote."""
    try:
        payload = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"Cannot read '{path}': {error.strerror}.") from None
    return from_bytes(payload, f"'{path}'")


def within(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Return the arrays under ``name.``, without that beginning."""
    return {key[len(name) + 1 :]: part for key, part in arrays.items() if key.startswith(f"{name}.")}


def under(name: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays with ``name.`` put before their names."""
    return {f"{name}.{key}": part for key, part in arrays.items()}
