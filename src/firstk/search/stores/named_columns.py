"""The columns of a table that firstk did not make: which hold vectors and ids, and their values as plain ones."""

from __future__ import annotations

import base64
import datetime
import decimal
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import StoredRows


def chosen(place: str, what: str, option: str, named: str | None, possible: Sequence[str], held: Sequence[str]) -> str:
    """Return the column that was named, or the only one possible."""
    if named is not None:
        if named not in held:
            raise InvalidInputError(f"{place} has no column {named!r}. It has {', '.join(map(repr, held))}.")
        return named
    if len(possible) == 1:
        return possible[0]
    several = f"several columns that could be {what} ({', '.join(map(repr, possible))})"
    none = f"no column that is {what} for sure: {', '.join(map(repr, held))}"
    raise InvalidInputError(f"{place} has {several if possible else none}. Name one: {option}.")


def chosen_vectors(place: str, named: str | None, possible: Sequence[str], held: Sequence[str]) -> str:
    """Return the column of vectors, of a table whose columns have types: one that was named must be possible."""
    found = chosen(place, "vectors", "vectors=...", named, possible, held)
    if found not in possible:
        way_out = f"Name one that does: {', '.join(map(repr, possible))}" if possible else "No other column does"
        raise InvalidInputError(f"Column {found!r} of {place} does not hold vectors of floats. {way_out}.")
    return found


def chosen_ids(place: str, named: str | None, keys: Sequence[str], held: Sequence[str]) -> str:
    """Return the column of ids: the one that was named, the key of the table if it is one column, or 'id'."""
    possible = list(keys) if len(keys) == 1 else [name for name in held if name == "id"]
    return chosen(place, "ids", "ids=... (--id)", named, possible, held)


def check_filled(
    place: str, key: str, rows: int, distinct: int, missing: int, least: int | None, most: int | None
) -> None:
    """Raise for a table in which ids occur twice, or vectors are missing or of several lengths."""
    if distinct != rows or missing or least != most:
        raise InvalidInputError(
            f"{place} has {rows:,} rows, {distinct:,} different ids in column {key!r}, {missing:,} rows without a "
            f"vector, and vectors of {least} to {most} numbers. Each row needs its own id and a vector of one length: "
            "name other columns, or a table or view that has both."
        )


def stored(ids: Sequence[Any], vectors: Any, payloads: Sequence[Mapping[str, Any]]) -> StoredRows:
    """Return rows with ids and payloads of plain values; payloads lack what is missing."""
    codes = np.asarray(vectors, dtype=np.float32)
    keys = [key.item() if isinstance(key, np.generic) else key for key in ids]
    keys = [str(key) if isinstance(key, uuid.UUID) else key for key in keys]
    # JSON values: dates and UUIDs as text, bytes as base64.
    held = [{str(name): _plain(value) for name, value in one.items() if value is not None} for one in payloads]
    return StoredRows(keys, codes, held)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (datetime.date, datetime.datetime, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
