"""Payloads of rows as columns of a file, and back: a name is a column, of one type throughout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import Payload, StoredRows

# Whole numbers that floats hold exactly.
_LARGEST = 2**53


@dataclass(frozen=True, eq=False)
class PayloadColumns:
    """The columns of payloads.

    Attributes
    ----------
    key : str
        The column of ids.
    kinds : mapping of str to str
        By name: "bool", "int", "float", "text", or "json" for lists, mappings and what is of several kinds, which are
        written as JSON text.
    typed : bool
        Whether the format has types; otherwise everything is read back as text.
    """

    key: str
    kinds: Mapping[str, str] = field(default_factory=dict)
    typed: bool = True

    @classmethod
    def of(cls, parts: Iterable[StoredRows], place: str, key: str, *, typed: bool) -> PayloadColumns:
        """Return the columns of all rows of a source: a name may come with the last one."""
        found: dict[str, set[str]] = {}
        for part in parts:
            for payload in part.payloads:
                for name, value in payload.items():
                    if value is None:
                        continue
                    kind = "text" if isinstance(value, str) else "json"
                    if isinstance(value, bool):
                        kind = "bool"
                    elif isinstance(value, (int, float)):
                        whole = "int" if abs(value) <= _LARGEST else "large"
                        kind = "float" if isinstance(value, float) else whole
                    found.setdefault(name, set()).add(kind)
        if key in found:
            raise InvalidInputError(
                f"{place} has the name {key!r} in its payloads, which in a file is the column of ids. Leave it out: "
                "columns=... (--columns)."
            )
        kept = {}
        for name, kinds in found.items():
            kept[name] = "json" if len(kinds) > 1 else next(iter(kinds))
            if kinds <= {"int", "large"}:
                kept[name] = "int"
            elif kinds == {"int", "float"}:
                kept[name] = "float"
        return cls(key, kept, typed)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns but the vectors."""
        return (self.key, *self.kinds)

    def arrays(self, rows: StoredRows) -> dict[str, np.ndarray]:
        """Return columns to write; what is missing is None, or NaN among floats."""
        found = {self.key: np.array(rows.ids)}
        for name, kind in self.kinds.items():
            values = [_written(payload.get(name), kind) for payload in rows.payloads]
            if kind == "float":
                found[name] = np.array([np.nan if value is None else value for value in values], np.float64)
                continue
            # numpy drops a NUL at the end of a text.
            plain = None not in values and not any(isinstance(value, str) and "\0" in value for value in values)
            types = {"bool": bool, "int": np.int64, "text": str, "json": str}
            if plain:
                found[name] = np.array(values, dtype=types[kind])
            else:
                found[name] = np.empty(len(values), dtype=object)
                found[name][:] = values
        return found

    def read_back(self, payload: Payload) -> Payload:
        """Return a payload as it will be read from the file."""
        held = {name: _written(value, self.kinds[name]) for name, value in payload.items() if value is not None}
        if self.typed:
            return held
        return {name: text for name, value in held.items() if (text := str(value))}

    def payloads(self, columns: Mapping[str, np.ndarray], rows: int) -> list[Payload]:
        """Return the payloads of rows that were read."""
        types = {"bool": bool, "int": int, "float": float} if self.typed else {}
        found: list[Payload] = [{} for _ in range(rows)]
        for name, kind in self.kinds.items():
            read = types.get(kind, str)
            for payload, value in zip(found, columns[name].tolist(), strict=True):
                # NaN is not equal to itself, and text formats have nothing where a value is missing.
                if value is not None and value == value and (self.typed or value != ""):
                    payload[name] = read(value)
        return found


def _written(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "json":
        return json.dumps(value, ensure_ascii=False)
    return float(value) if kind == "float" else value
