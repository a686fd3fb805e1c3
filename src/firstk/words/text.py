"""Numbers as text: counts with their nouns, bytes, shares and scores."""

from __future__ import annotations

import math

# Codes that are not the encoder's own, beside baselines by name; and bytes that can be cut anywhere, without a k.
RAW, PRODUCT_QUANTIZER, EMBEDDED = "raw vectors", "product quantizer", "embedded"
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def number_of(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun, which takes an s unless it is one, or becomes `several`.

    Examples
    --------
    >>> number_of(1, "claim"), number_of(0, "claim"), number_of(1200, "row")
    ('1 claim', '0 claims', '1,200 rows')
    """
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def were(count: int) -> str:
    """Return the verb that goes with a count."""
    return "was" if count == 1 else "were"


def bytes_text(count: float) -> str:
    """Write bytes with three digits and a decimal unit.

    Examples
    --------
    >>> bytes_text(15_360_000_000), bytes_text(999), bytes_text(1000)
    ('15.4 GB', '999 bytes', '1.00 kB')
    """
    if count < 1000:
        return f"{count:g} bytes"
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    digits = 2 if count < 9.995 else 1 if count < 99.95 else 0
    return f"{count:.{digits}f} {_UNITS[power]}"


def percent(share: float, digits: int = 0) -> str:
    """Write a share as percent, without the sign."""
    return f"{100 * share:.{digits}f}"


def share_text(share: float) -> str:
    """Write a share as percent with one decimal, which no line ends before."""
    return f"{percent(share, 1)}\u00a0%"


def at_least(share: float, digits: int = 0) -> str:
    """Write a lower end as percent, rounded down: what is promised is not more than what is known."""
    return f"{math.floor(100 * share * 10**digits + 1e-6) / 10**digits:.{digits}f}"


def score_text(score: float, decimals: int = 3) -> str:
    """Return a score with so many decimals; a small one with two digits, which decimals would hide.

    Examples
    --------
    >>> score_text(0.12345), score_text(0.00081), score_text(0.0), score_text(12345.678)
    ('0.123', '0.00081', '0.000', '1.23e+04')
    """
    if abs(score) >= 1e4:
        return f"{score:.3g}"
    return f"{score:.{decimals}f}" if score == 0 or abs(score) >= 10 ** (1 - decimals) else f"{score:#.2g}"


def rounded_up(count: int) -> int:
    """Return a count with two digits: an estimate that pretends no more.

    Examples
    --------
    >>> rounded_up(1234)
    1300
    """
    size: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // size) * size
