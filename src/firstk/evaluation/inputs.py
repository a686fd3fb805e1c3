"""Rows with labels or targets, and pairs with scores, read from files: what encoders are fitted and evaluated on.

Every command and function that takes files reads them here, so that the same name means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from firstk._base.rows import half_as_single
from firstk.data.files import Batch, VectorTable, open_vectors
from firstk.data.files.beside import ColumnParts, load_columns, open_column
from firstk.data.files.choosing import missing_column
from firstk.estimator.fit_files import chunks_of
from firstk.exceptions import InvalidInputError
from firstk.moments.stream import Chunks, Columns
from firstk.moments.targets import check_none_missing

File = str | Path


@dataclass(frozen=True)
class VectorSource:
    """Where rows or pairs are.

    Attributes
    ----------
    source : path
        A file, a folder of shards or a pattern of names.
    vectors : str, optional
        The vector column, where there are several.
    label : str, optional
        Column of labels or targets; several columns of numbers with commas.
    labels : str, optional
        In place of `label`: FILE or FILE:COLUMN, the labels in a file of their own.
    pairs : str, optional
        [FILE:]LEFT,RIGHT[,SCORE] or FILE: pairs instead of rows, as row numbers of `source` or as vectors.
    nan : {"refuse", "drop"}
    """

    source: File
    vectors: str | None = None
    label: str | None = None
    labels: str | None = None
    pairs: str | None = None
    nan: str = "refuse"


@dataclass(frozen=True, eq=False)
class Rows:
    """Vectors with their labels or targets.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        float32 or float64; float16 has been widened.
    y : ndarray of shape (n,) or (n, q), or None
        Labels or targets.
    table : VectorTable
        Where the vectors came from: its path, the name of the vector column, the other columns.
    rows : ndarray of shape (n,)
        Row numbers in the file; rows with NaN are missing here when they were dropped.
    """

    X: np.ndarray
    y: np.ndarray | None
    table: VectorTable
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class LabeledTable:
    """Vectors that have been opened, and where their labels or targets are: in columns, or in a file of their own."""

    table: VectorTable
    names: tuple[str, ...]
    column: ColumnParts | None
    label: str | None

    def labels(self, batch: Batch) -> np.ndarray | None:
        """Return the labels of the rows of a batch."""
        if self.column is not None:
            columns = {str(self.label): self.column.take(batch.rows)}
        else:
            columns = {name: batch.columns[name] for name in self.names}
        for name, column in columns.items():
            check_none_missing(column, f"Column '{name}'", batch.rows)
        return _as_one(list(columns.values()))

    def batches(self, size: int = 65536) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield vectors as stored, float16 too, with their labels."""
        for batch in self.table.batches(size, self.names):
            yield batch.vectors, self.labels(batch)


@dataclass(frozen=True, eq=False)
class Stream:
    """Batches of rows or pairs, and what is known of them before they are read.

    Attributes
    ----------
    rows : int
        How many rows or pairs there are, those to be dropped included.
    width, itemsize : int
        Of a vector, and bytes of each of its numbers in the file.
    label : str or None
        What labels or targets are called.
    vectors : str
        What the vectors are called.
    chunks : Chunks
        The rows themselves.
    """

    rows: int
    width: int
    itemsize: int
    label: str | None
    vectors: str
    chunks: Chunks

    def batches(self) -> Iterator[Columns]:
        """Yield mappings from names to arrays: "X" and maybe "y", or "left", "right" and maybe "scores"."""
        return (chunk.columns for chunk in self.chunks.after(0))

    def take(self, wanted: Sequence[np.ndarray]) -> list[dict[str, np.ndarray]]:
        """Read the rows with the given numbers, ascending: memory for those and one batch."""
        found: list[dict[str, list[np.ndarray]]] = [{} for _ in wanted]
        start = 0
        for batch in self.batches():
            count = len(next(iter(batch.values())))
            for rows, parts in zip(wanted, found, strict=True):
                here = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + count)] - start
                for name, part in batch.items():
                    if len(here):
                        parts.setdefault(name, []).append(half_as_single(part[here]))
            start += count
        return [{name: np.concatenate(batches) for name, batches in parts.items()} for parts in found]


def open_stream(place: VectorSource) -> Stream:
    """Open rows or pairs; pairs are held in memory, as they look rows up in any order."""
    if place.pairs is not None:
        if place.label is not None or place.labels is not None:
            raise InvalidInputError("Pairs have scores, not labels: leave --label and --labels out, or --pairs.")
        whole = read_pairs(place.source, place.pairs, vectors=place.vectors, nan=place.nan)
        n, width = whole["left"].shape
        return Stream(n, width, whole["left"].dtype.itemsize, None, "", Chunks.of([whole]))
    found = open_labeled(place.source, vectors=place.vectors, label=place.label, labels=place.labels, nan=place.nan)
    table, chunks = found.table, chunks_of(found.table, found.labels, found.names)
    chunks = replace(chunks, job=dict(chunks.job) | {"labels": place.labels})
    return Stream(table.rows, table.width, table.dtype.itemsize, found.label, table.vectors, chunks)


def read_held_out(place: VectorSource, file: str, width: int) -> Columns:
    """Read the rows, or pairs, of a user's own held-out file; its vectors must have `width` numbers."""
    held: dict[str, np.ndarray]
    if place.pairs is not None:
        held = read_pairs(place.source, file, vectors=place.vectors, nan=place.nan)
    else:
        if place.labels is not None:
            raise InvalidInputError(
                "A held-out file has its labels in a column of its own: name the column with --label, or hold out a "
                "share of the rows."
            )
        rows = read_rows(file, vectors=place.vectors, label=place.label, nan=place.nan)
        held = {"X": rows.X} if rows.y is None else {"X": rows.X, "y": rows.y}
    found = held["X" if "X" in held else "left"].shape[1]
    if found != width:
        raise InvalidInputError(f"'{file}' has vectors of {found} numbers, and '{place.source}' of {width}.")
    return held


def read_rows(
    path: File,
    *,
    vectors: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    nan: str = "refuse",
) -> Rows:
    """Read vectors with labels or targets from a column (`label`) or from a second file (`labels`).

    A label column is never a coordinate, and labels of rows that were dropped are dropped with them.
    """
    source = open_labeled(path, vectors=vectors, label=label, labels=labels, nan=nan)
    batch = source.table.read(columns=source.names)
    return Rows(half_as_single(batch.vectors), source.labels(batch), source.table, batch.rows)


def open_labeled(
    path: File,
    *,
    vectors: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    nan: str = "refuse",
) -> LabeledTable:
    """Open what `read_rows` reads as a stream, in bounded memory."""
    if label is not None and labels is not None:
        raise InvalidInputError("Labels come from a column (--label) or from a file (--labels), not from both.")
    names = _split(label)
    table = open_vectors(path, vectors, beside=names, nan=nan)
    return LabeledTable(table, names, None if labels is None else _labels_of(labels, table), label or labels)


def read_pairs(path: File, pairs: str, *, vectors: str | None = None, nan: str = "refuse") -> dict[str, np.ndarray]:
    """Read pairs: columns of row numbers of `path`, or of vectors, with or without a column of scores.

    Returns
    -------
    pairs : dict of ndarray
        "left" and "right", of equal shape, and "scores" where there are any.
    """
    source, held, names = read_columns(path, pairs)
    first = held[names[0]]
    scores = None if len(names) == 2 else _scores(held[names[2]], names[2], source)
    if first.ndim == 1 and first.dtype.kind in "iu":
        left, right, kept = _by_row(read_rows(path, vectors=vectors, nan=nan), first, held[names[1]], source)
    else:
        left, right, kept = _by_vectors(source, names, nan)
    sides = {"left": left, "right": right}
    return sides if scores is None else sides | {"scores": scores[kept]}


def rows_of_pairs(place: VectorSource) -> tuple[np.ndarray, VectorSource]:
    """Return the vectors that objectives without pairs are fitted on, and where a fit finds them.

    They are all rows where pairs are row numbers, and the left sides where pairs are vectors.
    """
    assert place.pairs is not None
    source, held, names = read_columns(place.source, place.pairs)
    by_row = held[names[0]].ndim == 1 and held[names[0]].dtype.kind in "iu"
    rows = replace(place, pairs=None) if by_row else replace(place, source=source, vectors=names[0], pairs=None)
    return read_rows(rows.source, vectors=rows.vectors, nan=rows.nan).X, rows


def read_columns(path: File | None, spec: str) -> tuple[File, Mapping[str, np.ndarray], tuple[str, ...]]:
    """Open the two or three columns that [FILE:]LEFT,RIGHT[,SCORE] or FILE names; of `path` where no file is named."""
    source, names = _source_of_pairs(path, spec)
    if source is None:
        raise InvalidInputError(f"Judgements are FILE or FILE:QUERY,DOCUMENT[,GRADE], and '{spec}' names no file.")
    held = load_columns(source)
    names = names or _usual_names(source, list(held))
    for name in names:
        if name not in held:
            raise missing_column(source, name, list(held))
    return source, held, names


def _split(names: str | None) -> tuple[str, ...]:
    return () if names is None else tuple(name.strip() for name in names.split(",") if name.strip())


def _as_one(columns: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return one column as it is, and several targets as the columns of one array."""
    if len(columns) < 2:
        return columns[0] if columns else None
    if any(column.dtype.kind not in "fiub" for column in columns):
        raise InvalidInputError("Several target columns must all be numbers. Name one column of labels instead.")
    return np.column_stack(columns)


def _labels_of(spec: str, table: VectorTable) -> ColumnParts:
    """Open the labels that FILE[:COLUMN] names; a name with a colon that exists is a file."""
    alone = ":" not in spec or Path(spec).expanduser().exists()
    file, column = (spec, None) if alone else (spec.rpartition(":")[0], spec.rpartition(":")[2])
    found = open_column(file, column)
    if len(found) != table.rows:
        raise InvalidInputError(f"'{spec}' has {len(found)} labels for the {table.rows} rows of '{table.path}'.")
    return found


def _source_of_pairs(path: File | None, pairs: str) -> tuple[File | None, tuple[str, ...]]:
    if Path(pairs).expanduser().exists():
        return pairs, ()
    file, _, names = pairs.rpartition(":")
    found = _split(names)
    if len(found) not in (2, 3):
        raise InvalidInputError(
            f"Pairs are [FILE:]LEFT,RIGHT[,SCORE], two or three names of columns, or the name of a file. Got '{pairs}'."
        )
    return file or path, found


def _usual_names(source: File, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a file that holds pairs and nothing else."""
    if len(names) in (2, 3):
        return tuple(names)
    shown = ", ".join(map(repr, names[:20]))
    raise InvalidInputError(
        f"Which columns of '{source}' are the pairs? Say {source}:LEFT,RIGHT[,SCORE]. It has: {shown}."
    )


def _by_row(
    table: Rows, left: np.ndarray, right: np.ndarray, source: File
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = table.table.rows
    for side in (left, right):
        if side.dtype.kind not in "iu" or side.ndim != 1:
            raise InvalidInputError(
                f"'{source}' has row numbers on one side of its pairs only. Give two columns of one kind."
            )
        outside = np.flatnonzero((side < 0) | (side >= n))
        if len(outside):
            raise InvalidInputError(
                f"'{source}' names row {side[outside[0]]} (pair {outside[0]}), and '{table.table.path}' has rows 0 to "
                f"{n - 1}."
            )
    place = np.full(n, -1)
    place[table.rows] = np.arange(len(table.rows))
    kept = np.flatnonzero((place[left] >= 0) & (place[right] >= 0))
    return table.X[place[left[kept]]], table.X[place[right[kept]]], kept


def _by_vectors(source: File, names: Sequence[str], nan: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    left, right = (read_rows(source, vectors=name, nan=nan) for name in names[:2])
    kept, at_left, at_right = np.intersect1d(left.rows, right.rows, assume_unique=True, return_indices=True)
    return left.X[at_left], right.X[at_right], kept


def _scores(column: np.ndarray, name: str, source: File) -> np.ndarray:
    if column.ndim != 1 or column.dtype.kind not in "fiu":
        raise InvalidInputError(f"Scores are numbers, and column {name!r} of '{source}' holds {column.dtype}.")
    return column
