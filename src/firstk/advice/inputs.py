"""Rows with labels or targets, read from files: what encoders are fitted and evaluated on.

Every command and function that takes files reads them here, so that the same name means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from firstk._base.rows import half_as_single
from firstk.data.files import Batch, VectorTable, open_vectors
from firstk.data.files.column_files import ColumnParts, open_column
from firstk.data.remote import is_there
from firstk.estimator.fit_files import Stream, chunks_of
from firstk.exceptions import InvalidInputError
from firstk.moments.targets import check_none_missing

__all__ = ["VectorSource"]

File = str | Path


@dataclass(frozen=True)
class VectorSource:
    """Where rows, pairs, or queries with judged documents are.

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
        [FILE:]LEFT,RIGHT[,SCORE] or FILE: pairs of rows of `source` (with `queries`, of a row of that file and one of
        `source`), or pairs of vectors.
    nan : {"refuse", "drop"}
    queries : path, optional
        The queries, where `source` is the store that they search; of a log, where nothing is judged.
    relevance : str, optional
        FILE[:QUERY,DOCUMENT[,GRADE]]: judgements of documents, which are rows of `source`.
    ids : str, optional
        Column by which judgements and pairs name rows, or QUERYCOLUMN,DOCUMENTCOLUMN; looked for if not given.
    by_row : bool
        They name rows by number, from 0.
    filter : str, optional
        FIELD: a query looks among the documents that have its own value of that column. FIELD=VALUE: all look among
        those that have this value.
    query_weight : str, optional
        Column of the queries' file: what each counts in the mean.
    """

    source: File
    vectors: str | None = None
    label: str | None = None
    labels: str | None = None
    pairs: str | None = None
    nan: str = "refuse"
    queries: File | None = None
    relevance: str | None = None
    ids: str | None = None
    by_row: bool = False
    filter: str | None = None
    query_weight: str | None = None

    @property
    def judged(self) -> bool:
        """Whether there are judgements or pairs."""
        return self.pairs is not None or self.relevance is not None

    def check(self) -> None:
        """Raise for options that belong to judgements or pairs, where there are none."""
        given = {
            "ids=": self.ids, "by_row=True": self.by_row or None,
            "filter=": self.filter, "query_weight=": self.query_weight,
        }  # fmt: skip
        useless = [option for option, value in given.items() if value is not None]
        if useless and not self.judged:
            raise InvalidInputError(
                f"{' and '.join(useless)} belong to relevance= or pairs=, which name queries and documents. Give one "
                "of them."
            )
        if self.queries is not None and not self.judged and (self.label is not None or self.labels is not None):
            raise InvalidInputError(
                "Queries without judgements and labels ask for different codes: leave label= out, or queries=."
            )
        if self.query_weight is not None and self.queries is None:
            raise InvalidInputError("The weight of each query is a column of queries=, which is missing.")
        if self.pairs is not None and (self.label is not None or self.labels is not None):
            raise InvalidInputError("Pairs have scores, not labels: leave label= out, or pairs=.")


@dataclass(frozen=True, eq=False)
class RowsOfFile:
    """Vectors of a file with their labels or targets.

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
        """Return the labels of the rows of a batch; several targets as the columns of one array."""
        if self.column is not None:
            columns = {str(self.label): self.column.take(batch.rows)}
        else:
            columns = {name: batch.columns[name] for name in self.names}
        for name, column in columns.items():
            check_none_missing(column, f"Column '{name}'", batch.rows)
        if len(columns) < 2:
            return next(iter(columns.values()), None)
        if any(column.dtype.kind not in "fiub" for column in columns.values()):
            raise InvalidInputError("Several target columns must all be numbers. Name one column of labels instead.")
        return np.column_stack(list(columns.values()))

    def batches(self, size: int = 65536) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield vectors as stored, float16 too, with their labels."""
        for batch in self.table.batches(size, self.names):
            yield batch.vectors, self.labels(batch)

    def spread(self, rows: int, size: int = 65536) -> Iterator[tuple[np.ndarray, np.ndarray | None]] | None:
        """Return about `rows` rows in batches at even distances; None where the format has to be read as a whole."""
        batches = self.table.spread(rows, size)
        return None if batches is None else ((batch.vectors, self.labels(batch)) for batch in batches)


def open_stream(place: VectorSource) -> Stream:
    """Open rows, with their labels or targets."""
    found = open_labeled(place.source, vectors=place.vectors, label=place.label, labels=place.labels, nan=place.nan)
    table, chunks = found.table, chunks_of(found.table, found.labels, found.names)
    chunks = replace(chunks, job=dict(chunks.job) | {"labels": place.labels})
    return Stream(chunks, table.rows, table.width, table.dtype.itemsize, found.label, table.vectors)


def read_rows(
    path: File,
    *,
    vectors: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    nan: str = "refuse",
) -> RowsOfFile:
    """Read vectors with labels or targets from a column (`label`) or from a second file (`labels`).

    A label column is never a coordinate, and labels of rows that were dropped are dropped with them.
    """
    source = open_labeled(path, vectors=vectors, label=label, labels=labels, nan=nan)
    batch = source.table.read(columns=source.names)
    return RowsOfFile(half_as_single(batch.vectors), source.labels(batch), source.table, batch.rows)


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
        raise InvalidInputError(
            "Labels come from a column or from a file of their own (label= or labels=), not from both."
        )
    names = () if label is None else tuple(name.strip() for name in label.split(",") if name.strip())
    table = open_vectors(path, vectors, beside=names, nan=nan)
    column = None
    if labels is not None:  # FILE[:COLUMN]; a name with a colon that exists is a file
        alone = ":" not in labels or is_there(labels)
        column = open_column(*((labels, None) if alone else (labels.rpartition(":")[0], labels.rpartition(":")[2])))
        if len(column) != table.rows:
            raise InvalidInputError(f"'{labels}' has {len(column)} labels for the {table.rows} rows of '{table.path}'.")
    return LabeledTable(table, names, column, label or labels)
