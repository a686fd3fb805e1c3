"""Names and comparisons in SQL, for all engines that speak it."""

from __future__ import annotations

COMPARED = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def quoted(name: str) -> str:
    """Return a name of a table or column for SQL."""
    return '"' + name.replace('"', '""') + '"'
