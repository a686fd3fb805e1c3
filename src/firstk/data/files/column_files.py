"""Columns in a file of their own: labels, targets, pairs.

Such a file need not hold vectors. It has any of the formats, or is plain text with an entry a line (``.txt``). Columns
are held in memory, but for those of npy files, whose rows are read as they are asked for. A file that changes between
two columns raises an error, as their entries would not belong together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firstk._base.checks import check_no_nul
from firstk._base.input_file import Stamp
from firstk.data.files.contract import Loaded, reading, reading_unchanged
from firstk.data.files.file_array import FileArray
from firstk.data.files.vector_columns import PLAIN_NAME, missing_column
from firstk.data.files.vector_table import find_files, format_of
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


def load_columns(path: str | os.PathLike[str]) -> Mapping[str, np.ndarray]:
    """Return the columns of a file or of its shards, each read when it is asked for."""
    parts = [_load(one) for one in find_files(path)]
    return Loaded(tuple(parts[0]), lambda name: ColumnParts([part[name] for part in parts]).whole())


def open_column(path: str | os.PathLike[str], name: str | None = None) -> ColumnParts:
    """Return one column of a file or of its shards; without a name, the only one there is."""
    parts = [_load(one) for one in find_files(path)]
    held = list(parts[0])
    if name is None:
        if len(held) != 1:
            names = ", ".join(repr(other) for other in held[:20])
            raise InvalidInputError(f"'{path}' has {len(held)} columns: {names}. Name one: {path}:{held[0]}")
        name = held[0]
    if name not in held:
        raise missing_column(path, name, held)
    return ColumnParts(_of_one_kind([part[name] for part in parts]))


def _of_one_kind(parts: Sequence[np.ndarray | FileArray]) -> Sequence[np.ndarray | FileArray]:
    """Return parts of which all are text if one is: whole numbers of csv files are text where one would be changed."""
    kinds = {part.dtype.kind for part in parts}
    if "U" not in kinds or not kinds & set("iu"):
        return parts
    return [np.asarray(part).astype(str) if part.dtype.kind in "iu" else part for part in parts]


def _load(path: Path) -> Loaded:
    stamp = Stamp.of(path)
    with reading_unchanged(path, stamp):
        if path.suffix.lower() == ".txt":
            with reading(path, "text", (OSError, ValueError)):
                lines = path.read_text(encoding="utf-8-sig").splitlines()
            check_no_nul(lines, f"'{path}'")
            held = Loaded((PLAIN_NAME,), lambda _: np.array(lines, dtype=str))
        else:
            held = format_of(path).load(path)

    def one(name: str) -> np.ndarray | FileArray:
        with reading_unchanged(path, stamp):
            return held[name]

    return Loaded(tuple(held), one)


def _loaded_text(path: Path) -> Loaded:
    with reading(path, "text", (OSError, ValueError)):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    check_no_nul(lines, f"'{path}'")
    return Loaded((PLAIN_NAME,), lambda _: np.array(lines, dtype=str))
