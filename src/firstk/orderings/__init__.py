"""How coordinates get their order: one file an ordering, one registry line."""

from __future__ import annotations

from typing import Any

from firstk._checks import resolve_member
from firstk.contracts import Ordering
from firstk.orderings.full_prefix import FullPrefix

PUBLIC: dict[str, Any] = {ordering.name: ordering for ordering in (FullPrefix,)}

__all__ = ["FullPrefix", "resolve", "restore"]


def resolve(ordering: Any) -> Ordering:
    """Return the ordering that a name or an object stands for."""
    return resolve_member(ordering, PUBLIC, "ordering", "FullPrefix()")


def restore(name: str, settings: dict[str, Any]) -> Ordering:
    """Rebuild an ordering from its name and recorded settings."""
    settings = dict(settings)
    if isinstance(settings.get("omega"), dict):  # JSON has text for keys
        settings["omega"] = {int(k): weight for k, weight in settings["omega"].items()}
    return resolve(PUBLIC[name](**settings))
