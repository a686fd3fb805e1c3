"""Fields of JSON records as columns: which type the values of a field have together, and how they become arrays.

JSON has types, so ``7`` and ``"007"`` differ; a field that holds both is text. A field that holds objects, or lists of
anything but numbers, is text too: its JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from firstk._base.checks import check_no_nul
from firstk.data.files.contract import Carried, unreadable

# What the entries of a vector may be; bool is not among them.
_ENTRIES = {int, float, type(None)}
_NAMES = {"bool": "true or false", "int": "whole numbers", "float": "numbers", "ints": "lists", "floats": "lists"}


def type_of(value: object) -> str:
    """Return what a value is: missing, bool, int, float, text, nested, or a list such as "floats 3" or "ints 3"."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(2**63) <= value < 2**63 else "text"
    if isinstance(value, (float, str)):
        return "float" if isinstance(value, float) else "text"
    if isinstance(value, list) and value:
        kinds = {type(entry) for entry in value}
        if kinds <= _ENTRIES and kinds != {type(None)}:
            return f"{'ints' if kinds == {int} else 'floats'} {len(value)}"
    return "nested"


def joined(types: Iterable[str]) -> str:
    """Return the type that holds values of several types; "missing" where there are none."""
    found = set(types) - {"missing"}
    if len(found) <= 1:
        return found.pop() if found else "missing"
    if found <= {"int", "float"}:
        return "float"
    if all(map(_is_list, found)):
        lengths = {one.split()[1] for one in found}
        return f"floats {lengths.pop()}" if len(lengths) == 1 else "nested"
    return "text"


def _is_list(one: str) -> bool:
    return one.startswith(("ints ", "floats "))


def is_vector(value: object) -> bool:
    """Tell whether a value is a list of numbers."""
    return _is_list(type_of(value))


def kinds_of(fields: Mapping[str, Iterable[object]]) -> dict[str, str]:
    """Return what `choose` calls each field, by its first values.

    A field of which most values are lists of numbers is a vector, so that the line of another value can be named. Lists
    of several lengths are no vectors where another field has lists of one length.
    """
    found, ragged = {}, []
    for name, values in fields.items():
        types = [one for one in map(type_of, values) if one != "missing"]
        lists = [one for one in types if _is_list(one)]
        if 2 * len(lists) > len(types):
            found[name] = "vector" if any(one.startswith("floats") for one in lists) else "list"
            ragged += [name] if len({one.split()[1] for one in lists}) > 1 else []
        else:
            found[name] = "number" if joined(types) in ("int", "float") else "other"
    if any(kind == "vector" and name not in ragged for name, kind in found.items()):
        found |= dict.fromkeys(ragged, "other")
    return found


def vector_of(value: object, width: int) -> np.ndarray | None:
    """Return a list of numbers as a vector, null as NaN; None for another value, or for a list of another length."""
    if not isinstance(value, list) or len(value) != width or not {type(entry) for entry in value} <= _ENTRIES:
        return None
    try:
        return np.array(value, dtype=np.float64)
    except OverflowError:  # a whole number that no float holds
        return None


class JsonColumns(Carried):
    """Fields of some records, as arrays to compute with; a file of the same format gets the values as they are.

    Parameters
    ----------
    path : path
        For error messages.
    values : mapping of str to sequence
        The values of each field.
    lines : ndarray of int
        Where they are in the file, from 1.
    types : mapping of str to str
        What the beginning of the file says of the fields.
    """

    def __init__(
        self, path: object, values: Mapping[str, Sequence[object]], lines: np.ndarray, types: Mapping[str, str]
    ):
        super().__init__(values)
        self._path, self._lines, self._types = path, lines, types

    def __getitem__(self, name: str) -> np.ndarray:
        settled = self._types[name]
        own = joined(map(type_of, self.held[name]))
        return as_array(self.held[name], settled if settled in ("text", "nested") else own)

    def exact(self, name: str) -> np.ndarray:
        """Return a column as the type that the file began with; raise InvalidInputError for a value of another type."""
        settled = self._types[name]
        for value, line in zip(self.held[name], self._lines, strict=True):
            if settled not in ("text", "missing", "nested") and joined((settled, type_of(value))) != settled:
                usual, held = _NAMES[settled.split()[0]], json.dumps(value, ensure_ascii=False)[:40]
                raise unreadable(
                    self._path,
                    f"line {line} holds {held} in field {name!r}, and the first lines hold {usual}",
                    "Give the field one type, leave it out by columns=, or write .jsonl, which keeps all values",
                )
        return as_array(self.held[name], settled)

    def take(self, kept: np.ndarray) -> JsonColumns:
        """Return the rows `kept`."""
        raw = {name: [held[i] for i in kept] for name, held in self.held.items()}
        return JsonColumns(self._path, raw, self._lines[kept], self._types)


def as_array(values: Sequence[object], held: str) -> np.ndarray:
    """Return values of one type as an array: NaN, or None, where one is missing."""
    if _is_list(held):
        width = int(held.split()[1])
        return np.array([[np.nan] * width if value is None else value for value in values], dtype=np.float64)
    if held == "float":
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    found = list(values)
    if held not in ("int", "bool"):
        found = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
    if None in found:
        out = np.empty(len(found), dtype=object)
        out[:] = found
        return out
    check_no_nul(found, "A column of text")
    return np.array(found, dtype={"int": np.int64, "bool": bool}.get(held, str))
