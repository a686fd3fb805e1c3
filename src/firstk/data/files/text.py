"""csv and tsv: a header line, then a row a line; a vector is a column a coordinate, or one cell that holds a list.

Cells are read by the standard library, so that this format needs no extra. Its numbers are float64: text has no type.
Other columns are passed on as the text that they are; only a command that computes with one reads it as numbers.

A column of whole numbers stays text if numbers would not give its cells back: ``007`` and ``7`` are two labels. One of
numbers with fractions has no such labels, and ``0.5`` and ``0.50`` are one target.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from firstk.data.files.choosing import Choice, choose
from firstk.data.files.contract import (
    Carried,
    Facts,
    Format,
    Layout,
    Loaded,
    Wanted,
    exactly,
    ragged,
    reading,
    unreadable,
)

_BROKEN = (OSError, ValueError, csv.Error)
# Rows from which the kinds of columns are told, and cells that are held as text at one time.
_PEEK, _CELLS = 256, 400_000
# Share of cells with text, up to which a column of a plain table is one of numbers with a slip in it.
_STRAY = 0.1
_MISSING = {"", "nan", "na", "n/a", "null", "none"}
# Whole numbers: as they may be written, and without the leading zeros that make an id or a code of them.
_WHOLE, _CANONICAL = re.compile(r"[+-]?[0-9]+"), re.compile(r"[+-]?(0|[1-9][0-9]*)")
# Digits that 64 bits hold, whichever they are.
_DIGITS = 18
# A list of numbers in one cell can be long: 16,384 coordinates of 25 characters fit.
_LONGEST_CELL = 1 << 22


class TextReader:
    """One csv or tsv file."""

    def __init__(self, path: Path, wanted: Wanted, delimiter: str, *, plain: bool = False):
        self.path, self._delimiter = path, delimiter
        csv.field_size_limit(_LONGEST_CELL)
        with reading(path, "text", _BROKEN):
            rows = self._lines()
            self._names = next(rows, [])
            first = list(islice(rows, _PEEK))
        self._check_header()
        if self._names and not first and wanted.vectors is None and not plain:  # cells tell what a column is
            raise unreadable(path, "it has no rows")
        self._kinds = {name: _kind([row[j] for row in first]) for j, name in enumerate(self._names)}
        choice = Choice("", (), spread=True) if plain else choose(path, self._kinds, wanted)
        if choice.spread and wanted.vectors is None and not plain:
            self._check_stray_text(first, wanted)
        self._spread, self._members = choice.spread, choice.members
        width = len(choice.members) if choice.spread else self._measured(first)
        columns = tuple(name for name in self._names if name not in choice.members)
        self._text = {name for name in columns if self._cells(first, name).are_text} | wanted.text
        self.facts = Facts(choice.name, choice.members, width, np.dtype(np.float64), columns)

    def _cells(self, rows: list[list[str]], name: str) -> _Cells:
        j = self._names.index(name)
        return _Cells().taken(row[j] for row in rows)

    def _check_header(self) -> None:
        doubled = sorted({name for name in self._names if self._names.count(name) > 1})
        if doubled:
            raise unreadable(self.path, f"it has two columns called {doubled[0]!r}", "Rename one")
        other = next((mark for mark in ";\t|," if self._names[1:] == [] and mark in "".join(self._names)), None)
        if other is not None:
            raise unreadable(
                self.path,
                f"its cells are separated by {other!r}, and by its ending {self._delimiter!r} was expected",
                "Save it with commas as .csv, or with tabs as .tsv",
            )
        if self._names and all(_is_number(name) for name in self._names) and not _counts(self._names):
            raise unreadable(
                self.path,
                f"its first line holds numbers ({self._names[0]}, ...) where the names of the columns should be",
                "Put a line of names before the rows",
            )

    def _check_stray_text(self, first: list[list[str]], wanted: Wanted) -> None:
        """Raise InvalidInputError for text in a column of numbers: it would silently be no coordinate."""
        for j, name in enumerate(self._names):
            text = [i for i, row in enumerate(first) if not _is_missing(row[j]) and not _is_number(row[j])]
            if name not in wanted.beside and text and len(text) <= _STRAY * len(first):
                raise unreadable(
                    self.path,
                    f"row {text[0]} of column {name!r} holds {first[text[0]][j][:40]!r}, and the other rows numbers",
                    "Mend that row, or name the coordinates with vectors= (--vectors)",
                )

    def _lines(self) -> Iterator[list[str]]:
        """Yield the cells of each line; raise InvalidInputError for a line with too few or too many."""
        # utf-8-sig: spreadsheets put a mark before the first name.
        with self.path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(self._checked(file), delimiter=self._delimiter)
            header = next(rows, None)
            if header is None:
                return
            yield header
            for number, row in enumerate(row for row in rows if row):
                if len(row) != len(header):
                    raise unreadable(
                        self.path,
                        f"row {number} has {len(row)} cells, and the first line {len(header)}",
                        "Mend that row",
                    )
                yield row

    def _checked(self, lines: Iterable[str]) -> Iterator[str]:
        for number, line in enumerate(lines, start=1):
            if "\0" in line:  # numpy drops it at the end of a text, so that two labels become one
                raise unreadable(self.path, f"line {number} holds a NUL character", "Write it again as UTF-8 text")
            yield line

    def _measured(self, first: list[list[str]]) -> int:
        j = self._names.index(self._members[0])
        for row in first:
            if not _is_missing(row[j]):
                return len(_list_of(row[j]))
        return 0

    def count(self) -> int:
        """Return the number of rows, from a pass over the file."""
        with reading(self.path, "text", _BROKEN):
            return max(0, sum(1 for _ in self._lines()) - 1)

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield vectors and other columns of at most `size` rows at a time."""
        step = max(1, min(size, _CELLS // len(self._names)))
        with reading(self.path, "text", _BROKEN):
            rows, start = self._lines(), 0
            next(rows, None)
            while cells := list(islice(rows, step)):
                table = np.array(cells, dtype=object)
                rows_here = np.arange(start, start + len(cells))
                beside = {name: table[:, self._names.index(name)].astype(str) for name in columns}
                yield self._matrix(table, start), TextColumns(beside, rows_here, self._column)
                start += len(cells)

    def _matrix(self, table: np.ndarray, start: int) -> np.ndarray:
        places = [self._names.index(name) for name in self._members]
        if self._spread:
            if not places:
                return np.empty((len(table), 0))
            rows = np.arange(start, start + len(table))
            return np.column_stack([_floats(self.path, table[:, j], self._names[j], rows) for j in places])
        out = np.full((len(table), self.facts.width), np.nan)
        for i, cell in enumerate(table[:, places[0]]):
            if not _is_missing(cell):
                out[i] = self._vector(cell, start + i)
        return out

    def _vector(self, cell: str, row: int) -> np.ndarray:
        try:
            entries = _list_of(cell)
        except ValueError:
            why = f"row {row} of column {self.facts.vectors!r} is no list of numbers"
            raise unreadable(self.path, why, "Mend that row") from None
        if len(entries) != self.facts.width:
            raise ragged(self.path, self.facts.width, [row], [len(entries)])
        return entries

    def survey(self, names: Sequence[str]) -> tuple[int, frozenset[str]]:
        """Return the number of rows, and the columns of `names` that must be read as text: one pass."""
        found, rows = {name: _Cells() for name in names}, 0
        places = [(self._names.index(name), cells) for name, cells in found.items()]
        with reading(self.path, "text", _BROKEN):
            lines = self._lines()
            next(lines, None)
            for row in lines:
                rows += 1
                for j, cells in places:
                    cells.take(row[j])
        return rows, frozenset(name for name, cells in found.items() if cells.are_text or name in self._text)

    def _column(self, name: str, cells: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return a column as whole numbers, as numbers, or as text."""
        if self._kinds[name] != "number":
            return cells
        missing = np.array([_is_missing(cell) for cell in cells], dtype=bool)
        held = _Cells().taken(cells.tolist())
        if name in self._text or held.are_text:
            return _holed(cells, missing)
        if held.whole:
            return _holed(cells, missing, np.int64)
        return _floats(self.path, cells, name, rows)


class _Cells:
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

    def taken(self, cells: Iterable[str]) -> _Cells:
        """Look at cells, and return what was found."""
        for cell in cells:
            self.take(cell)
        return self


class TextColumns(Carried):
    """Cells of some rows, converted to numbers on access."""

    def __init__(self, cells: Mapping[str, np.ndarray], rows: np.ndarray, read: Callable[..., np.ndarray]):
        self._cells, self._rows, self._read = dict(cells), rows, read

    def __getitem__(self, name: str) -> np.ndarray:
        return self._read(name, self._cells[name], self._rows)

    def exact(self, name: str) -> np.ndarray:
        """Return the cells as text."""
        return self._cells[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    def take(self, kept: np.ndarray) -> TextColumns:
        """Return the rows `kept`."""
        return TextColumns({name: cells[kept] for name, cells in self._cells.items()}, self._rows[kept], self._read)


def _holed(cells: np.ndarray, missing: np.ndarray, dtype: type = str) -> np.ndarray:
    """Return cells as text or whole numbers, None where one is missing."""
    found = cells[~missing].astype(dtype)
    if not missing.any():
        return found
    out = np.full(len(cells), None, dtype=object)
    out[~missing] = found.tolist()
    return out


def survey(path: Path, names: Sequence[str], delimiter: str) -> tuple[int, frozenset[str]]:
    """Return the number of rows, and the columns of `names` that must be read as text."""
    return TextReader(path, Wanted(), delimiter, plain=True).survey(names)


def load(path: Path, delimiter: str) -> Loaded:
    """Return the columns of a file."""
    names = TextReader(path, Wanted(), delimiter, plain=True).facts.columns

    def one(name: str) -> np.ndarray:
        _, text = survey(path, (name,), delimiter)
        reader = TextReader(path, Wanted(text=text), delimiter, plain=True)
        parts = [found[name] for _, found in reader.blocks(_CELLS, (name,))]
        return np.concatenate(parts) if parts else np.empty(0, str)

    return Loaded(names, one)


def _kind(cells: list[str]) -> str:
    """Tell what a column holds from its first cells; missing ones are passed over."""
    present = [cell for cell in cells if not _is_missing(cell)]
    if present and all(_is_number(cell) for cell in present):
        return "number"
    lists = present and all(cell.lstrip().startswith("[") and cell.rstrip().endswith("]") for cell in present)
    if lists:
        with suppress(ValueError):
            _list_of(present[0])
            return "vector"
    return "other"


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in _MISSING


def _is_number(cell: str) -> bool:
    with suppress(ValueError):
        float(cell)
        return _is_plain(cell)
    return False


def _is_plain(text: str) -> bool:
    """Tell whether text is free of what only Python takes for numbers: 1_0, and digits of other scripts."""
    return "_" not in text and text.isascii()


def _counts(names: Sequence[str]) -> bool:
    """Tell whether names are 0, 1, 2, ...: the header that pandas gives to a bare matrix."""
    return list(names) in ([str(j) for j in range(len(names))], [str(j + 1) for j in range(len(names))])


def _list_of(cell: str) -> np.ndarray:
    """Return the numbers of a cell such as ``[0.1, 0.2]``; numpy prints them without commas."""
    try:
        entries = json.loads(cell) if "," in cell else cell.strip()[1:-1].split()
        vector = np.array(entries, dtype=np.float64)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise ValueError("no list of numbers") from None
    if vector.ndim != 1 or not len(vector) or not _is_plain(cell):
        raise ValueError("no list of numbers")
    return vector


def _floats(path: Path, cells: np.ndarray, name: str, rows: np.ndarray) -> np.ndarray:
    """Return cells as numbers, NaN where one is missing; raise InvalidInputError for text."""
    if _is_plain("".join(cells.tolist())):
        with suppress(ValueError):
            return cells.astype(np.float64)
    out = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if _is_missing(cell):
            continue
        if not _is_number(cell):
            raise unreadable(
                path, f"row {rows[i]} of column {name!r} holds {cell[:40]!r}, not a number", "Mend that row"
            )
        out[i] = float(cell)
    return out


class TextWriter:
    """One csv or tsv file that is being written: a column a coordinate, then the other columns."""

    def __init__(self, path: Path, layout: Layout, delimiter: str):
        self._layout = layout
        self._file: TextIO = path.open("w", newline="", encoding="utf-8")
        self._rows = csv.writer(self._file, delimiter=delimiter, lineterminator="\n")
        digits = len(str(layout.width - 1))
        coordinates = [f"{layout.vectors}_{j:0{digits}d}" for j in range(layout.width)]
        self._rows.writerow([*coordinates, *layout.columns])

    def write(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows; a number has the fewest digits that give it back."""
        # A float16 or float32 turned into a float of Python would show digits that it does not have.
        cells = vectors.astype(str) if vectors.dtype.itemsize < 8 else vectors
        beside = [_texts(exactly(columns, name)) for name in self._layout.columns]
        for i, row in enumerate(cells.tolist()):
            self._rows.writerow([*row, *(column[i] for column in beside)])

    def close(self) -> None:
        """Finish the last line."""
        self._file.close()

    def abandon(self) -> None:
        """Let go of the file."""
        with suppress(Exception):
            self._file.close()


def _texts(column: np.ndarray) -> list[object]:
    """Return a column as cells; lists as JSON, which the reader takes."""
    if column.ndim == 2:
        return [json.dumps(row) for row in column.tolist()]
    return (column.astype(str) if column.dtype.kind in "fmM" else column).tolist()  # None is an empty cell


def _separated(name: str, endings: tuple[str, ...], delimiter: str) -> Format:
    return Format(
        name,
        endings,
        "anything",
        False,
        partial(TextReader, delimiter=delimiter),
        partial(TextWriter, delimiter=delimiter),
        partial(load, delimiter=delimiter),
        partial(survey, delimiter=delimiter),
    )


COMMAS = _separated("csv", (".csv",), ",")
TABS = _separated("tsv", (".tsv", ".tab"), "\t")
