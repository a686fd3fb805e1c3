"""Columns in a file of their own: labels, targets, pairs.

Such a file need not hold vectors. It has any of the formats, or is plain text with an entry a line (``.txt``). Columns
are held in memory, but for those of npy files, whose rows are read as they are asked for. A file that changes between
two columns raises an error, as their entries would not belong together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firstk._base.checks import check_no_nul
from firstk._base.input_file import Stamp
from firstk.data.files.contract import Facts, Format, Wanted, reading
from firstk.data.files.file_array import FileArray
from firstk.data.files.vector_columns import PLAIN_NAME, missing_column
from firstk.data.files.vector_table import Shard, find_files, format_of
from firstk.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class ColumnParts:
    """A column in one or more parts, a file each, of which some rows are taken at a time."""

    parts: Sequence[np.ndarray | FileArray]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the entries of the given rows, ascending."""
        found, first = [], 0
        for part in self.parts:
            own = rows[slice(*np.searchsorted(rows, (first, first + len(part))))] - first
            first += len(part)
            if len(own):
                found.append(part[int(own[0]) : int(own[-1]) + 1][own - own[0]])
        return np.concatenate(found) if found else np.asarray(self.parts[0][:0])

    def whole(self) -> np.ndarray:
        """Return all entries."""
        return np.concatenate([np.asarray(part) for part in self.parts])


@dataclass(frozen=True)
class Columns(Mapping[str, np.ndarray]):
    """Columns of a file or of its shards, each read when it is asked for."""

    shards: Sequence[Shard]
    names: tuple[str, ...]

    def parts(self, name: str) -> ColumnParts:
        """Return a column; all of its parts are text if one is: ids of csv are text in the shard that needs it."""
        found = [shard.column(name) for shard in self.shards]
        kinds = {part.dtype.kind for part in found}
        if "U" in kinds and kinds & set("iu"):
            found = [np.asarray(part).astype(str) if part.dtype.kind in "iu" else part for part in found]
        return ColumnParts(found)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.parts(name).whole()

    def __contains__(self, name: object) -> bool:
        return name in self.names  # without reading it

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def load_columns(path: str | os.PathLike[str]) -> Columns:
    """Return the columns of a file or of its shards, each read when it is asked for."""
    shards = [
        Shard(one, _LINES if one.suffix.lower() == ".txt" else format_of(one), Wanted(plain=True), Stamp.of(one))
        for one in find_files(path)
    ]
    return Columns(shards, shards[0].facts().columns)


def open_column(path: str | os.PathLike[str], name: str | None = None) -> ColumnParts:
    """Return one column of a file or of its shards; without a name, the only one there is."""
    held = load_columns(path)
    if name is None:
        if len(held) != 1:
            names = ", ".join(repr(other) for other in held.names[:20])
            raise InvalidInputError(f"'{path}' has {len(held)} columns: {names}. Name one: {path}:{held.names[0]}")
        name = held.names[0]
    if name not in held:
        raise missing_column(path, name, held.names)
    return held.parts(name)


class _LinesReader:
    """A text file, of which each line is an entry."""

    def __init__(self, path: Path, wanted: Wanted):
        with reading(path, "text", (OSError, ValueError)):
            self._lines = path.read_text(encoding="utf-8-sig").splitlines()
        check_no_nul(self._lines, f"'{path}'")
        self.facts = Facts("", (), 0, np.dtype(np.float64), (PLAIN_NAME,))

    def column(self, name: str) -> np.ndarray:
        """Return the lines."""
        return np.array(self._lines, dtype=str)


_LINES = Format("text", (".txt",), "nothing", False, _LinesReader)  # type: ignore[arg-type]
