"""Names and comparisons in SQL, for all engines that speak it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firstk.search.stores.contract import Request
from firstk.search.stores.filters import Condition

COMPARED = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def quoted(name: str) -> str:
    """Return a name of a table or column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def record_in(comment: str | None) -> str | None:
    """Return the record of a store that is the comment of its table; None for a comment of others."""
    return comment if comment is not None and "firstk-store" in comment else None


def where_of(
    request: Request, condition: Callable[[Condition, int], tuple[str, dict[str, Any]]]
) -> tuple[str, dict[str, Any]]:
    """Return a condition in SQL and its values; a filter of one's own is SQL on the columns id and payload.

    `condition` makes SQL and values by name of a condition and its number.
    """
    if request.native is not None:
        return f"({request.native})", {}
    parts: list[str] = []
    values: dict[str, Any] = {}
    for i, one in enumerate(request.where):
        text, used = condition(one, i)
        parts.append(text)
        values |= used
    return " AND ".join(parts), values
