"""Numbers of rows as people write them: 10M, 1.5B, 200k, 10_000_000, 10,000,000."""

from __future__ import annotations

import re
from decimal import Decimal

import typer

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9}
_COUNT = re.compile(r"([0-9]+|[0-9]{1,3}(?:[,_ ][0-9]{3})+)(\.[0-9]+)?([kmbg]?)", re.IGNORECASE)
_LARGEST = 10**15


def read_count(text: str | int) -> int:
    """Read a number of rows; raise typer.BadParameter for anything else.

    Examples
    --------
    >>> read_count("10M"), read_count("1.5B"), read_count("200k"), read_count("10,000,000")
    (10000000, 1500000000, 200000, 10000000)
    """
    found = _COUNT.fullmatch(str(text).strip())
    # Without a unit there is no fraction: in half of the world 10.000 is ten thousand.
    if found and (found[3] or not found[2]):
        count = Decimal(re.sub("[,_ ]", "", found[1]) + (found[2] or "")) * _UNITS[found[3].lower()]
        if count == int(count) and 1 <= count <= _LARGEST:
            return int(count)
    raise typer.BadParameter(f"{text!r} is no number of rows. Write 10M, 1.5B, 200k, 10_000_000 or 10,000,000.")
