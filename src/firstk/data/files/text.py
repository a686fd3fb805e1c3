"""csv and tsv, perhaps in gzip: a header, then one row per line; a vector is columns of numbers, or a list in a cell.

Lines are read by the standard library, so that this format needs no extra, and errors name row and column. Numbers are
float64: text has no type. Other columns are passed on as the text that they are; only a command that computes with one
reads it as numbers.

A column of whole numbers stays text if numbers would not give its cells back: ``007`` and ``7`` are two labels. One of
numbers with fractions has no such labels, and ``0.5`` and ``0.50`` are one target.

Spreadsheets write other marks between cells and, in half of the world, decimal commas: both are recognized.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from firstk.data.files.contract import (
    AppendingWriter,
    Carried,
    Facts,
    Format,
    Layout,
    Wanted,
    exactly,
    ragged,
    unreadable,
)
from firstk.data.files.text_cells import (
    Cells,
    floats,
    have_decimal_commas,
    holed,
    is_missing,
    is_number,
    kind_of_cells,
    list_of,
)
from firstk.data.files.text_files import create_text, open_text, reading_text
from firstk.data.files.vector_columns import ChosenColumns, check_names, choose

# Marks between cells, the likeliest first.
_MARKS = ",;\t|"
# A first line by which a spreadsheet is told the mark.
_SEPARATOR_LINE = re.compile(r"sep=.[\r\n]*")
# Rows from which the kinds of columns are told, and cells that are held as text at one time.
_PEEK, _CELLS = 256, 400_000
# Share of cells with text, up to which a column of a plain table is one of numbers with a slip in it.
_STRAY = 0.1
# A list of numbers in one cell can be long: 16,384 coordinates of 25 characters fit. A line that is longer is
# no row of a table, and in gzip a small file may hold it.
_LONGEST_CELL, _LONGEST_LINE = 1 << 22, 1 << 24


class TextReader:
    """One csv or tsv file."""

    def __init__(self, path: Path, wanted: Wanted, delimiter: str):
        self.path = path
        csv.field_size_limit(_LONGEST_CELL)
        with reading_text(path, "text", csv.Error):
            self._delimiter = self._mark(delimiter)
            with closing(self._rows(self._delimiter)) as rows:
                self._names = next(rows, [])
                first = list(islice(self._as_long(rows), _PEEK))
        check_names(path, self._names)
        numbers = all(is_number(name) or is_number(name, commas=True) for name in self._names)
        # 0, 1, 2, ... is the header that pandas gives to a bare matrix.
        counts = [[str(j + start) for j in range(len(self._names))] for start in (0, 1)]
        if self._names and numbers and list(self._names) not in counts:
            raise unreadable(
                path,
                f"its first line holds numbers ({self._names[0]}, ...) where the names of the columns should be",
                "Put a line of names before the rows",
            )
        if not first and wanted.vectors is None and not wanted.plain:  # cells tell what a column is
            raise unreadable(path, "it has no rows")
        cells = {name: [row[j] for row in first] for j, name in enumerate(self._names)}
        self._commas = have_decimal_commas(cells.values())
        self._kinds = {name: kind_of_cells(column, commas=self._commas) for name, column in cells.items()}
        choice = ChosenColumns("", (), spread=True) if wanted.plain else choose(path, self._kinds, wanted)
        if choice.spread and wanted.vectors is None and not wanted.plain:
            # Text in a column of numbers would silently be no coordinate.
            for name, column in cells.items():
                text = [
                    i for i, cell in enumerate(column) if not (is_missing(cell) or is_number(cell, commas=self._commas))
                ]
                if name not in wanted.beside and text and len(text) <= _STRAY * len(first):
                    raise unreadable(
                        path,
                        f"row {text[0]} of column {name!r} holds {column[text[0]][:40]!r}, and the other rows numbers",
                        "Mend that row, or name the coordinates with vectors=",
                    )
        self._spread, self._members = choice.spread, choice.members
        width = len(choice.members)
        if not choice.spread:
            lists = [cell for cell in cells[choice.members[0]] if not is_missing(cell)]
            width = len(list_of(lists[0])) if lists else 0
        columns = tuple(name for name in self._names if name not in choice.members)
        self._text = {name for name in columns if Cells().taken(cells[name]).are_text} | wanted.text
        self.facts = Facts(choice.name, choice.members, width, np.dtype(np.float64), columns, typed=False)

    def _mark(self, expected: str) -> str:
        """Return the mark between cells: the expected one, unless only another gives both first lines as many cells."""
        fitting = {}
        for mark in (expected, *_MARKS.replace(expected, "")):
            with suppress(csv.Error), closing(self._rows(mark)) as rows:
                first = list(islice(rows, 2))
                if first and len(first[0]) > 1 and len(first[0]) == len(first[-1]):
                    fitting[mark] = first[0]
        # Without names, rows such as 0,5;1,5 have as many cells by commas as well.
        bare = [mark for mark, cells in fitting.items() if all(is_number(cell, commas=True) for cell in cells)]
        return next(iter((*bare, *fitting)), expected)

    def _rows(self, mark: str) -> Generator[list[str]]:
        """Yield the cells of each line that is not blank."""
        with open_text(self.path) as file:

            def lines() -> Iterator[str]:
                for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), ""), start=1):
                    if len(line) == _LONGEST_LINE:
                        why = f"line {number} is longer than {_LONGEST_LINE:,} characters"
                        raise unreadable(self.path, why, "Write one row per line, or another format")
                    if "\0" in line:  # numpy drops it at the end of a text, so that two labels become one
                        why = f"line {number} holds a NUL character"
                        raise unreadable(self.path, why, "Write it again as UTF-8 text")
                    if number > 1 or not _SEPARATOR_LINE.fullmatch(line):
                        yield line

            # strict: a quote that is never closed would take all lines after it for one cell.
            try:
                yield from (row for row in csv.reader(lines(), delimiter=mark, strict=True) if row)
            except csv.Error as error:
                if "end of data" in str(error):
                    raise csv.Error("a quote is opened and never closed") from None
                raise

    def _as_long(self, rows: Iterator[list[str]]) -> Iterator[list[str]]:
        """Pass rows on; raise InvalidInputError for one with too few or too many cells."""
        for number, row in enumerate(rows):
            if len(row) != len(self._names):
                why = f"row {number} has {len(row)} cells, and the first line {len(self._names)}"
                raise unreadable(self.path, why, "Mend that row")
            yield row

    def _records(self) -> Iterator[list[str]]:
        """Yield the cells of each row after the first line."""
        with reading_text(self.path, "text", csv.Error), closing(self._rows(self._delimiter)) as rows:
            next(rows, None)
            yield from self._as_long(rows)

    def _tables(self, size: int = _CELLS) -> Iterator[tuple[np.ndarray, dict[str, tuple[str, ...]]]]:
        """Yield the numbers and the columns of at most `size` rows at a time."""
        start, step, rows = 0, max(1, min(size, _CELLS // max(1, len(self._names)))), self._records()
        while block := list(islice(rows, step)):
            columns = zip(*block, strict=True)
            yield np.arange(start, start + len(block)), dict(zip(self._names, columns, strict=True))
            start += len(block)

    def count(self) -> int:
        """Return the number of rows, from a pass over the file."""
        return sum(1 for _ in self._records())

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield vectors and other columns of at most `size` rows at a time."""
        for rows, held in self._tables(size):
            if self._spread:
                out = np.empty((len(rows), len(self._members)))
                for j, name in enumerate(self._members):
                    out[:, j] = self._numbers(held[name], name, rows)
            else:
                out = np.full((len(rows), self.facts.width), np.nan)
                for i, cell in enumerate(held[self._members[0]]):
                    if not is_missing(cell):
                        out[i] = self._vector(cell, int(rows[i]))
            yield out, TextColumns({name: np.array(held[name], dtype=str) for name in columns}, rows, self._typed)

    def column(self, name: str) -> np.ndarray:
        """Return a whole column."""
        self._text |= self.survey((name,))[1]
        parts = [found[name] for _, found in self.blocks(_CELLS, (name,))]
        return np.concatenate(parts) if parts else np.empty(0, str)

    def _vector(self, cell: str, row: int) -> np.ndarray:
        try:
            entries = list_of(cell)
        except ValueError:
            why = f"row {row} of column {self.facts.vectors!r} is not a list of numbers"
            raise unreadable(self.path, why, "Mend that row") from None
        if len(entries) != self.facts.width:
            raise ragged(self.path, self.facts.width, [row], [len(entries)])
        return entries

    def survey(self, names: Sequence[str]) -> tuple[int, frozenset[str]]:
        """Return the number of rows, and the columns of `names` that must be read as text: one pass."""
        found, n = {name: Cells() for name in names}, 0
        for rows, held in self._tables():
            n += len(rows)
            for name, cells in found.items():
                cells.taken(held[name])
        return n, frozenset(name for name, cells in found.items() if cells.are_text or name in self._text)

    def _typed(self, name: str, cells: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return a column as whole numbers, as numbers, or as text."""
        if self._kinds[name] != "number":
            return cells
        missing = np.array([is_missing(cell) for cell in cells], dtype=bool)
        held = Cells().taken(cells.tolist())
        if name in self._text or held.are_text:
            return holed(cells, missing)
        if held.whole:
            return holed(cells, missing, np.int64)
        return self._numbers(cells.tolist(), name, rows)

    def _numbers(self, cells: Sequence[str], name: str, rows: np.ndarray) -> np.ndarray:
        return floats(self.path, cells, name, rows, commas=self._commas)


class TextColumns(Carried):
    """Cells of some rows, converted to numbers on access."""

    def __init__(self, cells: Mapping[str, np.ndarray], rows: np.ndarray, read: Callable[..., np.ndarray]):
        super().__init__(cells)
        self._rows, self._read = rows, read

    def __getitem__(self, name: str) -> np.ndarray:
        return self._read(name, self.held[name], self._rows)

    def exact(self, name: str) -> np.ndarray:
        """Return the cells as text."""
        return self.held[name]

    def take(self, kept: np.ndarray) -> TextColumns:
        """Return the rows `kept`."""
        return TextColumns({name: cells[kept] for name, cells in self.held.items()}, self._rows[kept], self._read)


# What a missing number is called, as pyarrow compares it.
_NO_NUMBER = [form(word) for word in ("", "nan", "na", "n/a", "null", "none") for form in (str, str.upper, str.title)]
_NO_NUMBER += ["NaN"]


class TextWriter(AppendingWriter):
    """One csv or tsv file that is being written: a column a coordinate, then the other columns."""

    def __init__(self, path: Path, layout: Layout, delimiter: str, packed: bool):
        super().__init__(layout, create_text(path, packed=packed))
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


def _texts(column: np.ndarray) -> list[object]:
    """Return a column as cells; lists as JSON, which the reader takes."""
    if column.ndim == 2:
        return [json.dumps(row) for row in column.tolist()]
    return (column.astype(str) if column.dtype.kind in "fmM" else column).tolist()  # None is an empty cell


def _separated(name: str, endings: tuple[str, ...], delimiter: str, *, packed: bool = False) -> Format:
    reader, writer = partial(TextReader, delimiter=delimiter), partial(TextWriter, delimiter=delimiter, packed=packed)
    return Format(name, endings, "anything", False, reader, writer)


FORMATS = (
    _separated("csv", (".csv",), ","),
    _separated("csv.gz", (".csv.gz",), ",", packed=True),
    _separated("tsv", (".tsv", ".tab"), "\t"),
    _separated("tsv.gz", (".tsv.gz", ".tab.gz"), "\t", packed=True),
)
