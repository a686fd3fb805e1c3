"""Filters of payloads, in one form for all stores: ``{"kind": "news", "year": {"gte": 2000}, "lang": ["en", "de"]}``.

All conditions hold for a result. Text, numbers and truth values are different things: 1, True and "1" are three values.
A payload that lacks the name, or holds None there, meets no condition.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from firstk._base.checks import is_int, is_real
from firstk.exceptions import InvalidInputError

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda value, several: value in several,
}
Value = bool | int | float | str
# Some stores compare numbers as float64, which holds whole numbers up to this.
_LARGEST = 2**53


class Condition(NamedTuple):
    """One condition on one name of the payload.

    Attributes
    ----------
    name : str
    operator : str
        "eq", "gt", "gte", "lt", "lte", or "in", which takes a tuple of values of one kind.
    value : bool, int, float or str; or a tuple of them
    """

    name: str
    operator: str
    value: Any

    @property
    def values(self) -> tuple[Value, ...]:
        """The value, or the several values of "in"."""
        return self.value if self.operator == "in" else (self.value,)

    @property
    def kind(self) -> str:
        """What is compared: "bool", "number" or "text"."""
        return kind_of(self.values[0])


def kind_of(value: object) -> str:
    """Return "bool", "number" or "text"; "other" for what no condition compares."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return "text" if isinstance(value, str) else "other"


def read_filter(given: Mapping[str, object], owner: str) -> tuple[Condition, ...]:
    """Return the conditions of a filter, checked."""
    found: list[Condition] = []
    for name, wanted in given.items():
        if not isinstance(name, str) or not name or "\0" in name:
            raise InvalidInputError(f"A filter of {owner} names what is in the payload. Got {name!r}.")
        if isinstance(wanted, Mapping):
            if not wanted:
                raise InvalidInputError(f"The filter of '{name}' in {owner} has no condition, and would hold for all.")
            found += [_compared(name, how, value, owner) for how, value in wanted.items()]
        elif isinstance(wanted, (list, tuple, set, frozenset, np.ndarray)):
            found.append(_compared(name, "in", wanted, owner))
        else:
            found.append(_compared(name, "eq", wanted, owner))
    return tuple(found)


def _compared(name: str, how: object, value: Any, owner: str) -> Condition:
    if how not in OPERATORS:
        raise InvalidInputError(
            f"A filter of {owner} compares by {', '.join(map(repr, OPERATORS))}. Got {how!r} for '{name}'."
        )
    if how == "in":
        if not isinstance(value, (list, tuple, set, frozenset, np.ndarray)) or not len(value):
            raise InvalidInputError(f"The filter of '{name}' in {owner} needs a list of one or more values.")
        values = tuple(_plain(one, name, owner) for one in value)
        if len({kind_of(one) for one in values}) > 1:
            raise InvalidInputError(
                f"The filter of '{name}' in {owner} mixes text, numbers or truth values: {values!r:.80}. Give one kind."
            )
        return Condition(name, "in", values)
    plain = _plain(value, name, owner)
    if how != "eq" and isinstance(plain, bool):
        raise InvalidInputError(f"The filter of '{name}' in {owner} cannot order truth values by '{how}'. Use 'eq'.")
    return Condition(name, str(how), plain)


def _plain(value: object, name: str, owner: str) -> Value:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and not encodable(value):
        raise InvalidInputError(f"The filter of '{name}' in {owner} is text that UTF-8 cannot hold: {value!r:.60}.")
    if is_int(value) and abs(value) > _LARGEST:
        raise InvalidInputError(
            f"A filter of {owner} compares whole numbers of up to 2^53, as stores do. Got one of {len(bin(value)) - 2} "
            f"bits for '{name}'. Store such numbers as text."
        )
    if isinstance(value, (bool, str)) or is_int(value):
        return value
    if is_real(value) and np.isfinite(value):
        return float(value)
    raise InvalidInputError(
        f"A filter of {owner} compares with text, finite numbers and truth values. Got {value!r:.60} for '{name}'."
    )


def encodable(text: str) -> bool:
    """Tell whether UTF-8 can hold a text, which every store needs; it cannot hold a surrogate without the other."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def holds(payload: Mapping[str, object], where: Sequence[Condition]) -> bool:
    """Tell whether a payload meets all conditions."""
    return all(
        kind_of(value := payload.get(one.name)) == one.kind and OPERATORS[one.operator](value, one.value)
        for one in where
    )


# -- in SQL

COMPARED = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def quoted(name: str) -> str:
    """Return a name of a table or column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def record_in(comment: str | None) -> str | None:
    """Return the record of a store that is the comment of its table; None for a comment of others."""
    return comment if comment is not None and "firstk-store" in comment else None


def where_of(
    where: Sequence[Condition], native: object, condition: Callable[[Condition, int], tuple[str, dict[str, Any]]]
) -> tuple[str, dict[str, Any]]:
    """Return a condition in SQL and its values; a filter of one's own is SQL on the columns id and payload.

    `condition` makes SQL and values by name of a condition and its number.
    """
    if native is not None:
        return f"({native})", {}
    parts: list[str] = []
    values: dict[str, Any] = {}
    for i, one in enumerate(where):
        text, used = condition(one, i)
        parts.append(text)
        values |= used
    return " AND ".join(parts), values
