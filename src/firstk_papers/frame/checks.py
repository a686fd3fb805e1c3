"""Checks with an error message that names the way out: of choices, of numbers, and of optional packages."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from math import isfinite
from types import ModuleType

from firstk.exceptions import InvalidInputError, MissingExtraError


def check_choice(value: object, choices: Collection[str], name: str, owner: str) -> str:
    """Return `value` if it is one of `choices`.

    Examples
    --------
    >>> check_choice("full", ("smoke", "full"), "tier", "reproduce")
    'full'
    """
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(map(repr, sorted(choices)))
        raise InvalidInputError(f"The '{name}' parameter of {owner} must be one of {known}. Got {value!r}.")
    return value


def is_number(value: object) -> bool:
    """Tell whether a value is a finite number; True and False are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def require(package: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or raise an error that names the extra that installs it."""
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtraError(package.split(".")[0], extra, purpose) from None
