"""How coordinates get their order: one file an ordering, one registry line."""

from __future__ import annotations

from typing import Any

from firstk._checks import bad_parameter
from firstk.contracts import Ordering
from firstk.orderings.full_prefix import FullPrefix

PUBLIC: dict[str, type] = {ordering.name: ordering for ordering in (FullPrefix,)}

__all__ = ["FullPrefix", "resolve"]


def resolve(ordering: Any) -> Ordering:
    """Return the ordering that a name or an object stands for."""
    if isinstance(ordering, str) and ordering in PUBLIC:
        return PUBLIC[ordering]()
    if not isinstance(ordering, tuple(PUBLIC.values())):
        names = ", ".join(repr(name) for name in PUBLIC)
        raise bad_parameter("ordering", "PrefixEncoder", f"one of {names}, or an object such as FullPrefix()", ordering)
    return ordering
