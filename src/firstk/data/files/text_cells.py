"""What the cells of a text file mean: numbers, whole numbers that are labels, lists, or nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from firstk.data.files.contract import unreadable

_MISSING = {"", "nan", "na", "n/a", "null", "none"}
# Whole numbers: as they may be written, and without the leading zeros that make an id or a code of them.
_WHOLE, _CANONICAL = re.compile(r"[+-]?[0-9]+"), re.compile(r"[+-]?(0|[1-9][0-9]*)")
# Digits that 64 bits hold, whichever they are.
_DIGITS = 18
# A number with a decimal comma, and one that may as well be whole, with a comma between thousands.
_COMMA, _THOUSANDS = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?"), re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_SWAPPED = str.maketrans(",.", ".,")


class Cells:
    """What the cells of a column are, seen one by one; missing ones are passed over.

    Attributes
    ----------
    whole : bool
        Whether all are whole numbers.
    changed : bool
        Whether some begin with zeros, or are longer than 64 bits: as numbers they would lose what tells them apart.
    """

    def __init__(self) -> None:
        self.whole, self.changed = True, False

    @property
    def are_text(self) -> bool:
        """Whether the column must be read as text."""
        return self.whole and self.changed

    def take(self, cell: str) -> None:
        """Look at a cell."""
        cell = cell.strip()
        if _CANONICAL.fullmatch(cell):
            self.changed |= len(cell) > _DIGITS and (len(cell) > _DIGITS + 2 or not -(2**63) <= int(cell) < 2**63)
        elif cell.lower() not in _MISSING:
            self.whole &= _WHOLE.fullmatch(cell) is not None
            self.changed = True

    def taken(self, cells: Iterable[str]) -> Cells:
        """Look at cells, and return what was found."""
        for cell in cells:
            self.take(cell)
        return self


def holed(cells: np.ndarray, missing: np.ndarray, dtype: type = str) -> np.ndarray:
    """Return cells as text or whole numbers, None where one is missing."""
    found = cells[~missing].astype(dtype)
    if not missing.any():
        return found
    out = np.full(len(cells), None, dtype=object)
    out[~missing] = found.tolist()
    return out


def have_decimal_commas(columns: Iterable[Iterable[str]]) -> bool:
    """Tell whether a file writes 0,5 for a half: a column does, none has points, and not all may be thousands."""
    sure = False
    for cells in columns:
        present = [cell.strip() for cell in cells if not is_missing(cell)]
        commas = [cell for cell in present if _COMMA.fullmatch(cell)]
        if present and all(is_number(cell) for cell in present) and any("." in cell for cell in present):
            return False
        if commas and all(_COMMA.fullmatch(cell) or is_number(cell) for cell in present):
            sure |= not all(_THOUSANDS.fullmatch(cell) for cell in commas)
    return sure


def kind_of_cells(cells: list[str], *, commas: bool = False) -> str:
    """Tell what a column holds from its first cells; missing ones are passed over."""
    present = [cell for cell in cells if not is_missing(cell)]
    if present and all(is_number(cell, commas=commas) for cell in present):
        return "number"
    lists = present and all(cell.lstrip().startswith("[") and cell.rstrip().endswith("]") for cell in present)
    if lists:
        with suppress(ValueError):
            list_of(present[0])
            return "vector"
    return "other"


def is_missing(cell: str) -> bool:
    """Tell whether a cell is empty, or says that it is."""
    return cell.strip().lower() in _MISSING


def is_number(cell: str, *, commas: bool = False) -> bool:
    """Tell whether a cell is a number, with a decimal point or with a comma."""
    with suppress(ValueError):
        _number(cell, commas)
        return is_plain(cell)
    return False


def _number(cell: str, commas: bool) -> float:
    # Swapped, not replaced: where commas are decimal, a point is between thousands, and 1.500 must not be read as 1.5.
    return float(cell.translate(_SWAPPED) if commas else cell)


def is_plain(text: str) -> bool:
    """Tell whether text is free of what only Python takes for numbers: 1_0, and digits of other scripts."""
    return "_" not in text and text.isascii()


def list_of(cell: str) -> np.ndarray:
    """Return the numbers of a cell such as ``[0.1, 0.2]``; numpy prints them without commas."""
    try:
        entries = json.loads(cell) if "," in cell else cell.strip()[1:-1].split()
        vector = np.array(entries, dtype=np.float64)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise ValueError("no list of numbers") from None
    if vector.ndim != 1 or not len(vector) or not is_plain(cell):
        raise ValueError("no list of numbers")
    return vector


def floats(path: Path, cells: Sequence[str], name: str, rows: np.ndarray, *, commas: bool = False) -> np.ndarray:
    """Return cells as numbers, NaN where one is missing; raise InvalidInputError for text."""
    if not commas and is_plain("".join(cells)):
        with suppress(ValueError):
            return np.fromiter(map(float, cells), np.float64, len(cells))
    out = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if is_missing(cell):
            continue
        if not is_number(cell, commas=commas):
            written = " (numbers have decimal commas here)" if commas else ""
            why = f"row {rows[i]} of column {name!r} holds {cell[:40]!r}, not a number{written}"
            raise unreadable(path, why, "Mend that row")
        out[i] = _number(cell, commas)
    return out
