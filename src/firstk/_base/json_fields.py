"""Fields of records: checks that name the record and the field, and JSON text read without surprises.

Every record is made of the same few kinds of field, so the same mistake reads the same in each of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from firstk._base.checks import bad_parameter, is_int, is_real
from firstk.exceptions import InvalidInputError

# Counts and lengths are below it: no machine holds more of anything, and other libraries take no larger ints.
LIMIT = 2**63


@dataclass(frozen=True)
class Fields:
    """Checks of the fields of one kind of record, `owner`."""

    owner: str

    def wrong(self, name: str, allowed: str, got: Any) -> InvalidInputError:
        """Build the error for a field."""
        return bad_parameter(name, self.owner, allowed, got)

    def items(self, values: Any, name: str, allowed: str) -> list[Any]:
        """Return a sequence as a list."""
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
            raise self.wrong(name, allowed, values)
        return list(values)

    def lengths(self, values: Any, name: str) -> tuple[int, ...]:
        """Return prefix lengths: strictly increasing ints."""
        allowed = "strictly increasing ints from 1 on, at least one"
        ks = self.items(values, name, allowed)
        if not ks or not all(is_int(k) for k in ks) or ks[0] < 1:
            raise self.wrong(name, allowed, values)
        if any(b <= a for a, b in pairwise(ks)) or ks[-1] >= LIMIT:
            raise self.wrong(name, allowed, values)
        return tuple(int(k) for k in ks)

    def numbers(self, values: Any, name: str) -> tuple[float, ...]:
        """Return finite numbers."""
        allowed = "finite numbers"
        return tuple(
            self.number(value, name, allowed) for value in self.items(values, name, f"{allowed}, one for each k")
        )

    def number(self, value: Any, name: str, allowed: str = "a finite number or None") -> float:
        """Return a finite number."""
        # An int beyond the range of floats is finite to Python and is no score.
        if not is_real(value if not is_int(value) or abs(value) < 2**1023 else float("inf")):
            raise self.wrong(name, allowed, value)
        return float(value)

    def text(self, value: Any, name: str, *, empty: bool = True) -> str:
        """Return a str."""
        if not isinstance(value, str) or not (value or empty):
            raise self.wrong(name, "a str" if empty else "a str that is not empty", value)
        return value

    def flag(self, value: Any, name: str) -> bool:
        """Return True or False."""
        if not isinstance(value, bool):
            raise self.wrong(name, "True or False", value)
        return value

    def count(self, value: Any, name: str) -> int | None:
        """Return an int of at least 1, or None."""
        if value is None:
            return None
        if not is_int(value) or not 1 <= value < LIMIT:
            raise self.wrong(name, "an int of at least 1, or None", value)
        return int(value)

    def details(self, value: Any, name: str = "details") -> Any:
        """Return a mapping of JSON values in read-only form."""
        if not isinstance(value, Mapping):
            raise self.wrong(name, "a mapping from names to what JSON can hold", value)
        return self._frozen(value, name)

    def _frozen(self, value: Any, where: str) -> Any:
        """Copy a JSON value into read-only form, with Python's own numbers."""
        if isinstance(value, Mapping):
            if not all(isinstance(name, str) for name in value):
                raise self.wrong(where, "a mapping whose names are str", value)
            return MappingProxyType({name: self._frozen(item, f"{where}[{name!r}]") for name, item in value.items()})
        if hasattr(value, "tolist"):
            value = value.tolist()  # numpy arrays and scalars
        if isinstance(value, (list, tuple)):
            return tuple(self._frozen(item, f"{where}[{i}]") for i, item in enumerate(value))
        if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and is_real(value)):
            return value
        raise self.wrong(where, "str, bool, int, finite float, None, or lists and mappings of them", value)

    def complete(self, values: Mapping[str, Any], names: Iterable[str]) -> None:
        """Refuse a mapping that has not exactly these names."""
        names = list(names)
        missing = [name for name in names if name not in values]
        unknown = [str(name) for name in values if name not in names]
        if missing or unknown:
            raise InvalidInputError(
                f"A {self.owner} has the fields {', '.join(names)}. Missing: {', '.join(missing) or 'none'}; "
                f"unknown: {', '.join(unknown) or 'none'}. Write it with {self.owner}.to_json."
            )

    def from_json(self, text: str, formats: Collection[str]) -> dict[str, Any]:
        """Return the fields in JSON text whose "format" is one of `formats`; the last of them is the newest."""
        try:
            values = strict_json(text)
        except ValueError as error:
            raise InvalidInputError(
                f"{self.owner}.from_json takes JSON text as {self.owner}.to_json writes it; this is none ({error}). "
                "Read a file with path.read_text() first."
            ) from None
        if not isinstance(values, dict) or values.pop("format", None) not in formats:
            raise InvalidInputError(
                f"{self.owner}.from_json takes an object of format '{list(formats)[-1]}'. This is another record, "
                f"or of another version of firstk: write it again with {self.owner}.to_json."
            )
        return values


def strict_json(text: str | bytes) -> Any:
    """Read JSON without repeated names, NaN, infinities, or numbers that no float holds.

    Raises
    ------
    ValueError
        That says in a few words what is wrong.
    """
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        json.dumps(found, allow_nan=False)  # finds numbers such as 1e999, and nesting that cannot be written again
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)} is repeated")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def plain(value: Any) -> Any:
    """Copy read-only values into lists and dicts."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value
