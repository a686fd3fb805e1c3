"""Members of an axis that a user writes: taken for one by their attributes, so that nothing need be registered."""

from __future__ import annotations

from inspect import getattr_static
from typing import TypeVar

from firstk._base.checks import bad_parameter
from firstk.exceptions import InvalidInputError

Member = TypeVar("Member")


def check_member(value: object, protocol: type[Member], name: str, expected: str) -> Member:
    """Return `value` if it has every attribute of the protocol; else raise an error that names what is missing.

    Parameters
    ----------
    value : object
        Given as the parameter `name` of PrefixEncoder.
    protocol : type
        `Objective`, `Ordering` or `Solver`.
    expected : str
        What the parameter must be, for an object that has nothing in common with the protocol.
    """
    parts = [part for part in (*protocol.__annotations__, *vars(protocol)) if not part.startswith("_")]
    absent = object()
    missing = [part for part in dict.fromkeys(parts) if getattr_static(value, part, absent) is absent]
    if isinstance(value, type) or "name" in missing:
        raise bad_parameter(name, "PrefixEncoder", expected, value)
    if missing:
        raise InvalidInputError(
            f"The '{name}' of PrefixEncoder, a {type(value).__name__}, lacks {len(missing)} of the {len(set(parts))} "
            f"attributes of firstk.contracts.{protocol.__name__}: {', '.join(missing)}. Derive it from the base class "
            "that has defaults for them (docs/extending.md)."
        )
    return value  # type: ignore[return-value]


def class_path(thing: object) -> str:
    """Return the full name of an object's class."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
