"""Counts with their nouns and verbs."""

from __future__ import annotations


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun, which takes an s unless it is one.

    Examples
    --------
    >>> number_of(1, "claim"), number_of(0, "claim"), number_of(1200, "row")
    ('1 claim', '0 claims', '1,200 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def were(count: int) -> str:
    """Return the verb that goes with a count."""
    return "was" if count == 1 else "were"
