"""How coordinates get their order: one file an ordering, one registry line."""

from __future__ import annotations

from typing import Any

from firstk._checks import resolve_member
from firstk.contracts import Ordering
from firstk.orderings.full_prefix import FullPrefix

PUBLIC: dict[str, Any] = {ordering.name: ordering for ordering in (FullPrefix,)}

__all__ = ["FullPrefix", "resolve"]


def resolve(ordering: Any) -> Ordering:
    """Return the ordering that a name or an object stands for."""
    return resolve_member(ordering, PUBLIC, "ordering", "FullPrefix()")
