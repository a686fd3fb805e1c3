"""Frozen dataclasses to JSON and back, by their type hints: no record needs a reader or a writer of its own.

A record holds numbers, text, tuples, mappings and other records. The same mistake reads the same in each of them: an
error names the record and the field. A hint says what a field may hold: ``Annotated[int, Allowed(...)]`` adds a
condition to a type. A field that has another name in files than in Python says ``metadata={"stored_as": name}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, ClassVar, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from firstk._base.checks import bad_parameter, is_int, is_real
from firstk.exceptions import InvalidInputError

Record = TypeVar("Record")
# Counts and lengths are below it: no machine holds more of anything, and other libraries take no larger ints.
LIMIT = 2**63


@dataclass(frozen=True)
class Allowed:
    """A condition that a field meets beyond its type, and how an error message describes it."""

    description: str
    holds: Callable[[Any], bool]


Count = Annotated[int, Allowed("an int of at least 1", lambda n: 1 <= n < LIMIT)]
Name = Annotated[str, Allowed("a str that is not empty", bool)]
Share = Annotated[float, Allowed("a number in [0, 1]", lambda value: 0 <= value <= 1)]
Lengths = Annotated[
    tuple[int, ...],
    Allowed(
        "strictly increasing ints from 1 on, at least one",
        lambda ks: bool(ks) and ks[0] >= 1 and ks[-1] < LIMIT and all(a < b for a, b in pairwise(ks)),
    ),
]
_DESCRIPTIONS: dict[Any, str] = {
    int: "an int",
    float: "a finite number",
    bool: "True or False",
    str: "a str",
    NoneType: "None",
    tuple[int, ...]: "ints",
    tuple[float, ...]: "finite numbers",
    tuple[str, ...]: "str",
    Mapping[str, str]: "a mapping from names to str",
    Mapping[str, Any]: "a mapping from names to what JSON can hold",
}


class JsonRecord:
    """A frozen dataclass that goes to JSON and back.

    `FORMAT` is the name and version of what is written, `AGAIN` how an error message says that a new one is made, and
    `IGNORED` further names in the text, which are no fields.
    """

    FORMAT: ClassVar[str]
    AGAIN: ClassVar[str] = ""
    IGNORED: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Fields as plain Python objects, all of which JSON can hold."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    def to_json(self) -> str:
        """Write as JSON text, from which `from_json` makes an equal record."""
        return json.dumps({"format": self.FORMAT, **self.to_dict()}, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a record from the fields that `to_dict` gives: all of them, and no others."""
        return from_plain(cls, values)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; anything else raises an error."""
        owner = cls.__name__
        try:
            values = strict_json(text)
        except ValueError as error:
            raise InvalidInputError(
                f"{owner}.from_json takes JSON text as {owner}.to_json writes it; this is none ({error}). "
                "Read a file with path.read_text() first."
            ) from None
        if not isinstance(values, dict) or values.pop("format", None) != cls.FORMAT:
            raise InvalidInputError(
                f"{owner}.from_json takes an object of format '{cls.FORMAT}'. This is another record, or of another "
                f"version of firstk: {cls.AGAIN or f'write it again with {owner}.to_json'}."
            )
        return cls.from_dict({name: value for name, value in values.items() if name not in cls.IGNORED})


# -- writing -------------------------------------------------------------------------------------------------------


def to_plain(value: Any, *, tagged: bool = False) -> Any:
    """Return a record as dicts, lists, text and finite numbers, all of which JSON can hold.

    With `tagged`, records in it begin with their name, so that a reader can tell which of several kinds they are; and
    numbers that are not finite pass, because settings may be such numbers until they are saved.
    """
    if is_dataclass(value) and not isinstance(value, type):
        tag = {"name": getattr(value, "name", type(value).__name__)} if tagged else {}
        return tag | {
            part.metadata.get("stored_as", part.name): to_plain(getattr(value, part.name), tagged=tagged)
            for part in fields(value)
        }
    if isinstance(value, Mapping):
        return {str(name): to_plain(item, tagged=tagged) for name, item in value.items()}
    if isinstance(value, (tuple, list, np.ndarray)):
        return [to_plain(item, tagged=tagged) for item in value]
    if isinstance(value, float) and not tagged and not math.isfinite(value):
        raise InvalidInputError(f"A record holds finite numbers only. Got {value}.")
    return value.item() if isinstance(value, np.generic) else value


def settings_of(member: object) -> dict[str, Any]:
    """Return the settings of an objective, ordering, solver or noise as JSON values, for records and saved models.

    Settings are the fields of a dataclass. A value that JSON does not have, as only a user's own class can hold, is
    recorded as its text.
    """
    if not is_dataclass(member):
        return {}
    plain = {part.name: to_plain(getattr(member, part.name), tagged=True) for part in fields(member)}
    return {name: _json_or_text(value) for name, value in plain.items()}


def _json_or_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json_or_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_json_or_text(item) for item in value]
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


# -- reading -------------------------------------------------------------------------------------------------------


def strict_json(text: str | bytes) -> Any:
    """Read JSON without repeated names, NaN, infinities, or numbers that no float holds.

    Raises
    ------
    ValueError
        With a few words on what is wrong.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            raise ValueError(f"{next(name for name in names if names.count(name) > 1)} is repeated")
        return found

    def no_number(name: str) -> float:
        raise ValueError(f"{name} is not a number of JSON")

    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        found = json.loads(text, object_pairs_hook=unique, parse_constant=no_number)
        json.dumps(found, allow_nan=False)  # finds numbers such as 1e999, and nesting that cannot be written again
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def from_plain(kind: type[Record], value: object) -> Record:
    """Return the record of type `kind` that `to_plain` was given.

    Raises
    ------
    InvalidInputError
        If a field is missing, unknown, or of another type than its hint says.
    """
    parts = fields(kind)  # type: ignore[arg-type]
    names = [part.name for part in parts]
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{kind.__name__} has the fields {', '.join(names)}. Got {value!r:.100}.")
    in_file = {part.metadata.get("stored_as", part.name): part.name for part in parts}
    found = {in_file.get(name, str(name)): item for name, item in value.items()}
    missing = [name for name in names if name not in found]
    unknown = [name for name in found if name not in names]
    if missing or unknown:
        raise InvalidInputError(
            f"{kind.__name__} has the fields {', '.join(names)}. Missing: {', '.join(missing) or 'none'}; "
            f"unknown: {', '.join(unknown) or 'none'}. Write it again with firstk."
        )
    hints = _hints(kind)  # type: ignore[arg-type]
    return kind(**{name: _Field(kind.__name__, name).checked(hints[name], item) for name, item in found.items()})


def check_fields(record: object) -> None:
    """Turn each field of a frozen record into the type that its hint says; to be called in ``__post_init__``.

    Raises
    ------
    InvalidInputError
        That names the record and the field, if it cannot be done.
    """
    kind: Any = type(record)
    for name, hint in _hints(kind).items():
        value = _Field(kind.__name__, name).checked(hint, getattr(record, name))
        object.__setattr__(record, name, value)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the hints of the fields of a dataclass or named tuple."""
    names = [part.name for part in fields(kind)] if is_dataclass(kind) else kind._fields
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name] for name in names}


@dataclass(frozen=True)
class _Field:
    """A field, by the names that an error message calls it and its record."""

    owner: str
    name: str

    def checked(self, hint: Any, value: object, allowed: str = "") -> Any:
        """Return a value as its hint says; an error message calls what is allowed `allowed`."""
        origin, inner = get_origin(hint), get_args(hint)
        if hint is Any:
            return value
        name = "a sequence" if origin is tuple else getattr(hint, "__name__", str(hint))
        allowed = allowed or _DESCRIPTIONS.get(hint, name)
        if origin is Annotated:
            rule = inner[1]
            found = self.checked(inner[0], value, rule.description)
            if not rule.holds(found):
                raise self.wrong(rule.description, value)
            return found
        if origin in (Union, UnionType):
            if value is None and NoneType in inner:
                return None
            others = [kind for kind in inner if kind is not NoneType]
            return self.checked(next((kind for kind in others if kind is type(value)), others[0]), value)
        if hint == Mapping[str, Any]:
            if not isinstance(value, Mapping):
                raise self.wrong(allowed, value)
            return self._frozen(value, self.name)
        if origin in (dict, Mapping) and isinstance(value, Mapping):
            return {name: self.checked(inner[1], item) for name, item in value.items()}
        if origin is tuple:
            return self._tuple(inner, value, allowed)
        if isinstance(hint, type) and is_dataclass(hint) and not isinstance(value, hint):
            return from_plain(hint, value)
        if hasattr(hint, "_fields") and isinstance(value, list):  # a named tuple
            return hint(*self._tuple(tuple(_hints(hint).values()), value, allowed))
        if hint is float and is_real(value):
            return float(value)
        if hint is int and is_int(value):
            return int(value)
        # A bool is an int to Python, and is none here.
        if hint not in (int, float) and isinstance(hint, type) and isinstance(value, hint):
            return value
        raise self.wrong(allowed, value)

    def wrong(self, allowed: str, got: object) -> InvalidInputError:
        """Build the error for a value that is not allowed."""
        return bad_parameter(self.name, self.owner, allowed, got)

    def _tuple(self, inner: tuple[Any, ...], value: Any, allowed: str) -> tuple[Any, ...]:
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise self.wrong(allowed, value)
        items = list(value)
        if inner[-1] is Ellipsis:
            inner = (inner[0],) * len(items)
        if len(inner) != len(items):
            raise self.wrong(allowed, value)
        allowed = allowed if inner and inner[0] in (int, float, str) else ""
        return tuple(self.checked(kind, item, allowed) for kind, item in zip(inner, items, strict=True))

    def _frozen(self, value: Any, where: str) -> Any:
        """Return a copy of a JSON value in read-only form, with Python's own numbers."""
        if isinstance(value, Mapping):
            if not all(isinstance(name, str) for name in value):
                raise bad_parameter(where, self.owner, "a mapping whose names are str", value)
            return MappingProxyType({name: self._frozen(item, f"{where}[{name!r}]") for name, item in value.items()})
        if hasattr(value, "tolist"):
            value = value.tolist()  # numpy arrays and scalars
        if isinstance(value, (list, tuple)):
            return tuple(self._frozen(item, f"{where}[{i}]") for i, item in enumerate(value))
        if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and is_real(value)):
            return value
        allowed = "str, bool, int, finite float, None, or lists and mappings of them"
        raise bad_parameter(where, self.owner, allowed, value)
