"""JSON lines, as embedding services return them: an object a line, one of whose fields is a list of numbers.

The other fields are columns. Of what services return, three shapes are known by the first line: an object a vector;
a response (``{"data": [{"embedding": [...], "index": 0}, ...]}``), which holds several; and a line of a batch
(``{"custom_id": ..., "response": {"body": <a response>}}``). Lines are read one by one with the standard library, so
that this format needs no extra, and errors name the line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from firstk.data.files.contract import AppendingWriter, Facts, Format, Layout, Wanted, exactly, unreadable
from firstk.data.files.json_values import JsonColumns, as_array, is_vector, joined, kinds_of, type_of, vector_of
from firstk.data.files.text_files import create_text, open_text, reading_text
from firstk.data.files.vector_columns import PLAIN_NAME, ChosenColumns, choose

Record = dict[str, Any]

# Rows from which the fields and their types are told, and numbers that are held at one time.
_PEEK, _NUMBERS = 256, 4_000_000
# Characters of a line: a response of 2,048 vectors of 3,072 numbers fits.
_LONGEST_LINE = 1 << 28
_ONE_A_LINE = 'Write one JSON object a line, such as {"id": 7, "embedding": [0.1, 0.2]}'


class JsonReader:
    """One file of JSON lines."""

    def __init__(self, path: Path, wanted: Wanted):
        self.path = path
        self._shape: Callable[[Record], Iterator[Record]] = _flat
        with reading_text(path, "JSON lines"):
            _, first = next(self._lines(), (0, {}))
            if _items(first) is not None:
                self._shape = _response
            elif "response" in first and "custom_id" in first:
                self._shape = _batch
            peeked = [record for _, record in islice(self._records(), _PEEK)]
        if not peeked and not wanted.plain:
            raise unreadable(path, "it has no rows")
        names = tuple(dict.fromkeys(name for record in peeked for name in record))
        fields = {name: [record.get(name) for record in peeked] for name in names}
        self._types = {name: joined(map(type_of, values)) for name, values in fields.items()}
        self._types |= dict.fromkeys(wanted.text & set(names), "text")
        choice = ChosenColumns("", (), spread=True) if wanted.plain else choose(path, kinds_of(fields), wanted)
        self._spread, self._members = choice.spread, choice.members
        width = len(choice.members)
        if not choice.spread:
            values = (value for value in fields[choice.members[0]] if isinstance(value, list) and is_vector(value))
            width = len(next(values, ()))
        columns = tuple(name for name in names if name not in choice.members)
        self.facts = Facts(choice.name, choice.members, width, np.dtype(np.float64), columns, typed=False)

    def _lines(self) -> Iterator[tuple[int, Record]]:
        """Yield the object of each line that is not blank, with its number from 1."""
        for number, line in self._texts():
            try:
                found = json.loads(line, object_pairs_hook=_unique)
            except _Twice as error:
                raise unreadable(self.path, f"line {number} has two fields called {error}", "Rename one") from None
            except (ValueError, RecursionError) as error:
                why = "it is nested too deeply" if isinstance(error, RecursionError) else error
                raise unreadable(self.path, f"line {number} is not JSON ({why})", _ONE_A_LINE) from None
            if isinstance(found, list) and not any(isinstance(entry, (dict, list)) for entry in found):
                found = {PLAIN_NAME: found}
            if not isinstance(found, dict):
                what = "a list of objects" if isinstance(found, list) else "no object"
                raise unreadable(self.path, f"line {number} holds {what}", _ONE_A_LINE)
            yield number, found

    def _texts(self) -> Iterator[tuple[int, str]]:
        number = 0
        with open_text(self.path) as file:
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if len(line) == _LONGEST_LINE:
                    raise unreadable(
                        self.path, f"line {number} has more than {_LONGEST_LINE:,} characters", _ONE_A_LINE
                    )
                if not line.isspace():
                    yield number, line

    def _records(self) -> Iterator[tuple[int, Record]]:
        return ((number, record) for number, held in self._lines() for record in self._shape(held))

    def count(self) -> int:
        """Return the number of rows, from a pass over the file."""
        with reading_text(self.path, "JSON lines"):
            return sum(1 for _ in (self._texts() if self._shape is _flat else self._records()))

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield vectors and other columns of at most `size` rows at a time."""
        step = max(1, min(size, _NUMBERS // max(1, self.facts.width)))
        with reading_text(self.path, "JSON lines"):
            records = self._records()
            while block := self._block(islice(records, step), columns):
                yield block

    def _block(
        self, records: Iterator[tuple[int, Record]], columns: Sequence[str]
    ) -> tuple[np.ndarray, JsonColumns] | None:
        """Return vectors and other columns; lists become rows of the matrix one by one, as they take much memory."""
        rows: list[np.ndarray] = []
        lines: list[int] = []
        held: dict[str, list[object]] = {name: [] for name in columns}
        everything = bool(columns) and set(columns) >= set(self.facts.columns)
        for number, record in records:
            if everything:
                new = next((name for name in record if name not in self._types), None)
                if new is not None:  # whoever carries all columns along would lose it
                    raise unreadable(
                        self.path,
                        f"line {number} has a field {new!r} that none of the first {_PEEK} rows has",
                        f'Add "{new}": null to the first line, or name the columns to take by columns=',
                    )
            rows.append(self._vector(number, record))
            lines.append(number)
            for name, values in held.items():
                values.append(record.get(name))
        if not rows:
            return None
        return np.stack(rows), JsonColumns(self.path, held, np.array(lines), self._types)

    def _vector(self, number: int, record: Record) -> np.ndarray:
        width = self.facts.width
        value = [record.get(name) for name in self._members] if self._spread else record.get(self._members[0])
        if value is None:
            return np.full(width, np.nan)
        found = vector_of(value, width)
        if found is not None:
            return found
        name = self.facts.vectors
        if self._spread and isinstance(value, list):
            wrong = next(j for j, entry in enumerate(value) if vector_of([entry], 1) is None)
            why = f"line {number} holds {json.dumps(value[wrong])[:40]} in field {self._members[wrong]!r}, not a number"
        elif isinstance(value, list) and len(value) != width:
            why = f"line {number} has {len(value)} numbers in field {name!r}, and the first vector has {width}"
        else:
            why = f"line {number} holds no list of numbers in field {name!r} ({json.dumps(value)[:40]})"
        raise unreadable(self.path, why, "Mend that line")

    def column(self, name: str) -> np.ndarray:
        """Return a whole column."""
        with reading_text(self.path, "JSON lines"):
            values = [record.get(name) for _, record in self._records()]
        return as_array(values, joined(map(type_of, values)))

    def survey(self, names: Sequence[str]) -> tuple[int, frozenset[str]]:
        """Return the number of rows, and the columns of `names` that must be read as text: one pass."""
        found, rows = dict.fromkeys(names, "missing"), 0
        with reading_text(self.path, "JSON lines"):
            for _, record in self._records():
                rows += 1
                for name, held in found.items():
                    found[name] = joined((held, type_of(record.get(name))))
        return rows, frozenset(name for name, held in found.items() if held in ("text", "nested"))


def _unique(pairs: list[tuple[str, Any]]) -> Record:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(repr(next(name for name in names if names.count(name) > 1)))
    return found


class _Twice(ValueError):
    """A name that an object has twice, of which JSON readers keep one."""


# -- the shapes of what services return ----------------------------------------------------------------------------


def _flat(line: Record) -> Iterator[Record]:
    yield line


def _response(line: Record) -> Iterator[Record]:
    for item in _items(line) or [{}]:
        yield {name: value for name, value in item.items() if name != "object"}


def _batch(line: Record) -> Iterator[Record]:
    """Yield the vectors of one request; one that failed is a row without a vector."""
    response = line.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    for item in _response(body if isinstance(body, dict) else {}):
        yield {"custom_id": line.get("custom_id")} | item


def _items(line: Record) -> list[Record] | None:
    """Return the objects of a response that hold an embedding each; None for other objects."""
    items = line.get("data")
    if isinstance(items, list) and items and all(isinstance(item, dict) and "embedding" in item for item in items):
        return items
    return None


# -- writing --------------------------------------------------------------------------------------------------------


class JsonWriter(AppendingWriter):
    """One file of JSON lines that is being written: the vector first, then the other columns."""

    def __init__(self, path: Path, layout: Layout, packed: bool):
        super().__init__(layout, create_text(path, packed=packed))

    def write(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows; a number has the fewest digits that give it back, and one that is not finite is null."""
        # A float16 or float32 turned into a float of Python would show digits that it does not have.
        cells = vectors.astype(str)
        cells[~np.isfinite(vectors)] = "null"
        begin, names = f"{{{json.dumps(self._layout.vectors, ensure_ascii=False)}: [", self._layout.columns
        held = columns.held if isinstance(columns, JsonColumns) else {n: _plain(exactly(columns, n)) for n in names}
        beside = zip(*(held[name] for name in names), strict=True) if names else repeat(())
        for row, values in zip(cells.tolist(), beside, strict=False):
            others = json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False, default=str)[1:]
            self._file.write(f"{begin}{', '.join(row)}]{', ' if names else ''}{others}\n")


def _plain(column: np.ndarray) -> list[Any]:
    """Return an array as values of JSON."""
    if column.dtype.kind in "mM":
        column = column.astype(str)
    if column.dtype.kind != "f":
        return column.tolist()
    digits = column.astype(str).astype(np.float64) if column.dtype.itemsize < 8 else column
    if not (finite := np.isfinite(digits)).all():
        digits = digits.astype(object)
        digits[~finite] = None
    return digits.tolist()


FORMATS = tuple(
    Format(name, endings, "anything", False, JsonReader, partial(JsonWriter, packed=packed))
    for name, endings, packed in (
        ("jsonl", (".jsonl", ".ndjson"), False),
        ("jsonl.gz", (".jsonl.gz", ".ndjson.gz"), True),
    )
)
