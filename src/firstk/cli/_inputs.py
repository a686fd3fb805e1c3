"""What a command reads: rows with their labels or targets, pairs with their scores; and the options that say where.

Every command that takes a file of vectors takes it through here, so that the same option means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    import numpy as np

    from firstk.data.files import Batch, VectorTable
    from firstk.data.files.beside import ColumnParts

VectorsArgument = Annotated[
    str, typer.Argument(metavar="VECTORS", help="File of vectors, folder of shards, or pattern in quotes.")
]
VectorsOption = Annotated[
    str | None,
    typer.Option(
        "--vectors", help="The vector column, where there are several: a name, a pattern, or names with commas."
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option("--label", "--target", help="Column of labels or targets; several columns of numbers with commas."),
]
LabelsOption = Annotated[
    str | None, typer.Option("--labels", help="Labels or targets in a file of their own.", metavar="FILE[:COLUMN]")
]
PairsOption = Annotated[
    str | None,
    typer.Option(
        "--pairs",
        help="Pairs: two columns of row numbers or of vectors, then perhaps one of scores; in VECTORS or in a FILE.",
        metavar="[FILE:]LEFT,RIGHT[,SCORE]",
    ),
]
NanOption = Annotated[
    str,
    typer.Option("--nan", help="Vectors with NaN, infinity or missing numbers: refuse or drop.", metavar="refuse|drop"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]


@dataclass(frozen=True, eq=False)
class Rows:
    """Vectors, and what stands beside them.

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
    label : str or None
        What the labels are called.
    """

    X: np.ndarray
    y: np.ndarray | None
    table: VectorTable
    rows: np.ndarray
    label: str | None = None

    @property
    def dropped(self) -> int:
        """How many rows were dropped."""
        return self.table.rows - len(self.X)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Vectors that have been opened, and where their labels or targets are: in columns, or in a file of their own."""

    table: VectorTable
    names: tuple[str, ...]
    beside: ColumnParts | None
    label: str | None

    def labels(self, batch: Batch) -> np.ndarray | None:
        """Return the labels of the rows of a batch."""
        from firstk.moments.targets import check_none_missing

        if self.beside is not None:
            columns = {str(self.label): self.beside.take(batch.rows)}
        else:
            columns = {name: batch.columns[name] for name in self.names}
        for name, column in columns.items():
            check_none_missing(column, f"Column '{name}'", batch.rows)
        return _side_by_side(list(columns.values()))

    def batches(self, size: int = 65536) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield vectors as stored, float16 too, with their labels."""
        for batch in self.table.batches(size, self.names):
            yield batch.vectors, self.labels(batch)


@dataclass(frozen=True, eq=False)
class PairRows:
    """Two sides of equal shape, and scores or None."""

    left: np.ndarray
    right: np.ndarray
    scores: np.ndarray | None
    source: str


def read_rows(
    path: Any,
    *,
    vectors: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    nan: str = "refuse",
) -> Rows:
    """Read vectors with labels or targets from a column (`label`) or from a second file (`labels`).

    A label column is never a coordinate, and labels of rows that were dropped are dropped with them.
    """
    from firstk._base.rows import half_as_single

    source = open_labelled(path, vectors=vectors, label=label, labels=labels, nan=nan)
    batch = source.table.read(columns=source.names)
    return Rows(half_as_single(batch.vectors), source.labels(batch), source.table, batch.rows, source.label)


def open_labelled(
    path: Any,
    *,
    vectors: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    nan: str = "refuse",
) -> Labelled:
    """Open what `read_rows` reads as a stream, in bounded memory."""
    from firstk.data.files import open_vectors

    if label is not None and labels is not None:
        raise InvalidInputError("Labels come from a column (--label) or from a file (--labels), not from both.")
    names = _split(label)
    table = open_vectors(path, vectors, beside=names, nan=nan)
    return Labelled(table, names, None if labels is None else _labels_of(labels, table), label or labels)


def read_pairs(path: Any, pairs: str, *, vectors: str | None = None, nan: str = "refuse") -> PairRows:
    """Read pairs: columns of row numbers of `path`, or of vectors, with or without a column of scores."""
    from firstk.data.files.beside import load_columns

    source, names = _source_of_pairs(path, pairs)
    held = load_columns(source)
    names = names or _usual_names(source, list(held))
    for name in names:
        if name not in held:
            from firstk.data.files.choosing import missing_column

            raise missing_column(source, name, list(held))
    first = held[names[0]]
    scores = None if len(names) == 2 else _numbers(held[names[2]], names[2], source)
    if first.ndim == 1 and first.dtype.kind in "iu":
        table = read_rows(path, vectors=vectors, nan=nan)
        left, right, kept = _by_row(table, first, held[names[1]], source)
    else:
        left, right, kept = _by_vectors(source, names, nan)
    return PairRows(left, right, None if scores is None else scores[kept], str(source))


def _split(names: str | None) -> tuple[str, ...]:
    return () if names is None else tuple(name.strip() for name in names.split(",") if name.strip())


def _side_by_side(columns: Sequence[np.ndarray]) -> np.ndarray | None:
    import numpy as np

    if len(columns) < 2:
        return columns[0] if columns else None
    if any(column.dtype.kind not in "fiub" for column in columns):
        raise InvalidInputError("Several target columns must all be numbers. Name one column of labels instead.")
    return np.column_stack(columns)


def _labels_of(spec: str, table: VectorTable) -> ColumnParts:
    from firstk.data.files.beside import open_column

    found = open_column(*split_spec(spec))
    if len(found) != table.rows:
        raise InvalidInputError(f"'{spec}' has {len(found)} labels for the {table.rows} rows of '{table.path}'.")
    return found


def split_spec(spec: str) -> tuple[str, str | None]:
    """Split FILE[:COLUMN]; a name with a colon that exists is a file."""
    if ":" not in spec or Path(spec).expanduser().exists():
        return spec, None
    file, _, column = spec.rpartition(":")
    return file, column


def _source_of_pairs(path: Any, pairs: str) -> tuple[Any, tuple[str, ...]]:
    if Path(pairs).expanduser().exists():
        return pairs, ()
    file, _, names = pairs.rpartition(":")
    found = _split(names)
    if len(found) not in (2, 3):
        raise InvalidInputError(
            f"Pairs are [FILE:]LEFT,RIGHT[,SCORE], two or three names of columns, or the name of a file. Got '{pairs}'."
        )
    return file or path, found


def _usual_names(source: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a file that holds pairs and nothing else."""
    if len(names) in (2, 3):
        return tuple(names)
    shown = ", ".join(map(repr, names[:20]))
    raise InvalidInputError(
        f"Which columns of '{source}' are the pairs? Say {source}:LEFT,RIGHT[,SCORE]. It has: {shown}."
    )


def _by_row(table: Rows, left: np.ndarray, right: np.ndarray, source: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import numpy as np

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


def _by_vectors(source: Any, names: Sequence[str], nan: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import numpy as np

    left, right = (read_rows(source, vectors=name, nan=nan) for name in names[:2])
    kept, at_left, at_right = np.intersect1d(left.rows, right.rows, assume_unique=True, return_indices=True)
    return left.X[at_left], right.X[at_right], kept


def _numbers(column: np.ndarray, name: str, source: Any) -> np.ndarray:
    if column.ndim != 1 or column.dtype.kind not in "fiu":
        raise InvalidInputError(f"Scores are numbers, and column {name!r} of '{source}' holds {column.dtype}.")
    return column
