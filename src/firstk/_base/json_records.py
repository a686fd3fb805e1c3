"""Frozen records to plain values and back: one rule for the records of a diagnosis, of a study, and any other.

A record is a frozen dataclass of numbers, texts, tuples, mappings and other records. Its type hints say how to read it
back, so no record needs a reader of its own; one that has its own (`to_dict`, `from_dict`) is asked for it.
A field that had another name in earlier files says so: ``field(metadata={"formerly": name})``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from firstk.exceptions import InvalidInputError


def to_plain(value: Any) -> Any:
    """Return a record as dicts, lists, texts and finite numbers, all of which JSON can hold."""
    if hasattr(value, "from_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: to_plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"A record holds finite numbers only. Got {value}.")
    return value


def from_plain(kind: Any, value: Any) -> Any:
    """Read back what `to_plain` made of a value of type `kind`; anything else is refused with a sentence."""
    if hasattr(kind, "from_dict") and isinstance(value, Mapping):
        return kind.from_dict(value)
    if is_dataclass(kind):
        return _record(kind, value)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _one_of(inner, value)
    if origin is tuple and isinstance(value, list) and (inner[-1] is Ellipsis or len(inner) == len(value)):
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(from_plain(part, item) for part, item in zip(kinds, value, strict=True))
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {name: from_plain(inner[1], item) for name, item in value.items()}
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    # True is an int to Python, and is no count.
    if isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise InvalidInputError(f"This is no record of firstk: {value!r:.100} stands where {kind} should. Make it again.")


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    """Read a value of one of several types: nothing, a record, or numbers and texts."""
    if value is None and type(None) in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not type(None))
    exact = [kind for kind in kinds if kind is type(value)]
    return from_plain((exact or kinds)[0], value)


def _record(kind: Any, value: Any) -> Any:
    names = [part.name for part in fields(kind)]
    formerly = {part.metadata["formerly"]: part.name for part in fields(kind) if "formerly" in part.metadata}
    if isinstance(value, Mapping):
        value = {formerly.get(name, name): item for name, item in value.items()}
    if not isinstance(value, Mapping) or sorted(value) != sorted(names):
        found = ", ".join(map(str, value)) if isinstance(value, Mapping) else repr(value)
        raise InvalidInputError(f"A record {kind.__name__} has the fields {', '.join(names)}. Got {found}.")
    hints = get_type_hints(kind)
    return kind(**{name: from_plain(hints[name], value[name]) for name in names})
