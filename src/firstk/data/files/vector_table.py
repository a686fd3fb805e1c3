"""Open a file, a folder of shards, a pattern of names or a data frame as one table of vectors, whatever its format.

What is the same for all formats is done here: which files, which format, one width throughout, NaN, row numbers.
"""

from __future__ import annotations

import copy
import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from firstk._base.atomic_file import beside
from firstk._base.checks import bad_parameter, check_choice, is_int, require, some_rows
from firstk._base.input_file import Stamp
from firstk.data.files import arrow, jsonl, npy, npz, parquet, safetensors, text
from firstk.data.files.arrow_tables import MemoryReader
from firstk.data.files.contract import (
    Batch,
    Carried,
    Facts,
    Format,
    Restoring,
    Wanted,
    reading_unchanged,
    unreadable,
)
from firstk.data.files.shards import RECORD, UNFINISHED
from firstk.data.files.vector_columns import missing_column
from firstk.data.remote import RemotePath, check_there, is_remote, place_of
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas

Answer = TypeVar("Answer")
# The formats that are known; a new one is a file with a `Format`, and a line here.
FORMATS: tuple[Format, ...] = (
    npy.FORMAT,
    npz.FORMAT,
    parquet.FORMAT,
    arrow.FORMAT,
    *text.FORMATS,
    *jsonl.FORMATS,
    safetensors.FORMAT,
)
NAN = ("refuse", "drop")
# Bits of float16: those of infinity, and the sign.
_INFINITE, _SIGN = 0x7C00, 0x8000


@dataclass(frozen=True)
class Shard:
    """One file of a table, opened anew for every pass: thousands of shards must not need thousands of open files.

    A file that changed since its stamp was taken raises an error, in every pass and after every block.
    """

    path: Any
    format: Format
    wanted: Wanted
    stamp: Stamp | None = None

    def ask(self, question: Callable[[Any], Answer]) -> Answer:
        """Open the file, and return what its reader answers."""
        with reading_unchanged(self.path, self.stamp):
            return question(self.format.read(self.path, self.wanted))

    def facts(self) -> Facts:
        """Return what is known of the file before its rows are read."""
        return self.ask(lambda reader: reader.facts)

    def count(self) -> int:
        """Return the number of rows."""
        return self.ask(lambda reader: reader.count())

    def piece(self, start: int, stop: int) -> np.ndarray | None:
        """Return the vectors of some rows without reading others; None where the format has to read all before."""
        return self.ask(lambda reader: reader.piece(start, stop) if hasattr(reader, "piece") else None)

    def survey(self, columns: Sequence[str]) -> tuple[int, frozenset[str]]:
        """Return the number of rows, and the columns that must be read as text."""
        return self.ask(lambda reader: reader.survey(columns))

    def column(self, name: str) -> Any:
        """Return a whole column: an array, or what is sliced and measured as one."""
        return self.ask(lambda reader: reader.column(name))

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield vectors and other columns of at most `size` rows at a time."""
        blocks = self.ask(lambda reader: reader.blocks(size, columns))
        while True:
            with reading_unchanged(self.path, self.stamp):
                block = next(blocks, None)
            if block is None:
                return
            yield block


class VectorTable:
    """Rows of vectors with their other columns, read in batches.

    Attributes
    ----------
    path : str
        What was opened.
    shards : tuple of Shard
    vectors : str
        Name of the vector column.
    members : tuple of str
        The columns that make it up: one that holds lists, or one a coordinate.
    width : int
    dtype : numpy dtype
        Of the vectors as they are read: float16, float32 or float64.
    columns : tuple of str
        Names of the other columns.
    metadata : mapping of str to str
        What firstk stored with the rows.
    """

    def __init__(self, path: str, shards: Sequence[Shard], nan: str):
        self.path, self.shards, self.nan = path, tuple(shards), nan
        facts = [(shard, shard.facts()) for shard in self.shards]
        # A shard without rows may not know its width.
        self.facts = next((one for _, one in facts if one.width), facts[0][1])
        for shard, one in facts:
            if one.vectors != self.facts.vectors or (one.width and one.width != self.facts.width):
                raise unreadable(
                    path,
                    f"{shard.path} has {one.width} numbers in {one.vectors!r}, and others have {self.facts.width} in "
                    f"{self.facts.vectors!r}",
                    "All shards must be alike",
                )
            if set(one.columns) != set(self.facts.columns) or (one.width and one.dtype != self.facts.dtype):
                own, others = (
                    f"{', '.join((found.vectors, *sorted(found.columns)))} ({found.dtype})"
                    for found in (one, self.facts)
                )
                raise unreadable(
                    path, f"{shard.path} has columns {own}, and others {others}", "All shards must be alike"
                )
        self.vectors, self.members, self.columns = self.facts.vectors, self.facts.members, self.facts.columns
        self.metadata = self.facts.metadata
        self._restored = Restoring(path, self.metadata, self.facts.width, self.facts.dtype)
        self.width, self.dtype = self._restored.width, self._restored.dtype
        self._rows: int | None = None
        if not any(True for shard in self.shards for _ in shard.blocks(1, ())):
            raise unreadable(path, "it has no rows")
        if not self.width:
            raise unreadable(path, f"column {self.vectors!r} holds no vectors")
        # Which labels of an untyped format are text: all cells of all files decide, and not those of one.
        first = self.shards[0]
        names = [name for name in first.wanted.beside if name in self.columns]
        if names and not self.facts.typed:
            found = [shard.survey(names) for shard in self.shards]
            self._rows = sum(rows for rows, _ in found)
            wanted = replace(first.wanted, text=frozenset().union(*(text for _, text in found)))
            self.shards = tuple(replace(shard, wanted=wanted) for shard in self.shards)

    def as_stored(self) -> VectorTable:
        """Return the same rows as the numbers or bytes that are stored, not what they stand for."""
        part = copy.copy(self)
        part.width, part.dtype = self.facts.width, self.facts.dtype
        part._restored = Restoring(self.path, {}, part.width, part.dtype)
        return part

    @property
    def rows(self) -> int:
        """Number of rows, those to be dropped included; formats that do not store it are read once to count."""
        if self._rows is None:
            self._rows = sum(shard.count() for shard in self.shards)
        return self._rows

    def parts(self) -> Iterator[tuple[Path, VectorTable]]:
        """Yield each file as a table of its own, of which this one has checked that they are alike."""
        for shard in self.shards:
            part = copy.copy(self)
            part.path, part.shards, part._rows = str(shard.path), (shard,), None
            yield shard.path, part

    def batches(self, size: int = 65536, columns: Sequence[str] = (), start: int = 0) -> Iterator[Batch]:
        """Yield at most `size` rows at a time, in order, with the other columns that are asked for.

        Parameters
        ----------
        size : int
        columns : sequence of str
            Names; ``table.columns`` for all.
        start : int
            Go on from here: the number of rows, dropped ones included, of the batches that came before. Files that are
            done with are not read again.
        """
        if not is_int(size) or size < 1:
            raise bad_parameter("size", "batches", "a positive int", size)
        for name in columns:
            if name not in self.columns:
                raise missing_column(self.path, name, (self.vectors, *self.columns))
        at = 0
        for shard in self.shards:
            if at < start and at + (count := shard.count()) <= start:
                at += count
                continue
            for vectors, held in shard.blocks(int(size), tuple(columns)):
                if at >= start:
                    yield self._checked(vectors, held, at)
                at += len(vectors)

    def spread(self, rows: int, size: int) -> Iterator[Batch] | None:
        """Return batches of `size` rows, about `rows` in all and at even distances; None where that reads all rows.

        The last batch of a file may be shorter. Batches have no other columns: files that could be skipped hold none.
        """
        if self.columns or any(shard.piece(0, 0) is None for shard in self.shards[:1]):
            return None

        def pieces() -> Iterator[Batch]:
            shards = iter(self.shards)
            first = end = 0
            shard = None
            for start in range(0, self.rows, max(1, self.rows // max(1, rows // size))):
                while shard is None or start >= end:
                    shard = next(shards)
                    first, end = end, end + shard.count()
                vectors = shard.piece(start - first, start - first + size)
                assert vectors is not None
                yield self._checked(vectors, {}, start)

        return pieces()

    def _checked(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray], start: int) -> Batch:
        """Return a batch without NaN: raise an error with the numbers of such rows, or drop them."""
        if vectors.shape[1] != self.facts.width:  # a block in which every vector is missing
            vectors = np.full((len(vectors), self.facts.width), np.nan, self.dtype)
        rows, bad = np.arange(start, start + len(vectors)), rows_with_nan(vectors)
        if not len(bad):
            return Batch(self._restored(vectors), columns, rows)
        if self.nan == "refuse":
            raise InvalidInputError(
                f"'{self.path}' has NaN, infinity or nothing in {len(bad)} of the vectors from row {start} to row "
                f"{start + len(vectors) - 1} (row {some_rows(bad + start)}). Mend them, or leave those rows out "
                "with nan='drop'."
            )
        kept = np.setdiff1d(np.arange(len(vectors)), bad)
        beside = (
            columns.take(kept) if isinstance(columns, Carried) else {name: part[kept] for name, part in columns.items()}
        )
        return Batch(self._restored(vectors[kept]), beside, rows[kept], len(bad))

    def read(self, columns: Sequence[str] | None = None) -> Batch:
        """Return everything as one batch; all columns unless some are named."""
        columns = self.columns if columns is None else tuple(columns)
        out, rows = np.empty((self.rows, self.width), self.dtype), np.empty(self.rows, np.int64)
        parts: dict[str, list[np.ndarray]] = {name: [] for name in columns}
        filled = 0
        for batch in self.batches(columns=columns):
            out[filled : filled + len(batch)], rows[filled : filled + len(batch)] = batch.vectors, batch.rows
            filled += len(batch)
            for name in columns:
                parts[name].append(np.asarray(batch.columns[name]))
        if not filled:
            raise unreadable(self.path, "none of its vectors is free of NaN")
        return Batch(out[:filled], {name: np.concatenate(part) for name, part in parts.items()}, rows[:filled])


def open_vectors(
    path: Any, vectors: str | None = None, *, beside: Sequence[str] = (), nan: str = "refuse"
) -> VectorTable:
    """Open a table of vectors.

    Parameters
    ----------
    path : path, or a pandas, Polars or Arrow table
        A file, a folder of shards, or a pattern such as ``"shards/*.parquet"``. Formats: npy, npz, parquet, arrow (also
        feather), csv, tsv and jsonl (also in gzip), safetensors.
    vectors : str, optional
        The vector column. Needed only where there are several: a column of lists, the shared name of numbered columns
        (``x`` for x0, x1, ...), a pattern (``x*``), or names with commas between them.
    beside : sequence of str
        Columns that are not vectors, such as labels. In a table without lists, all other numbers are coordinates.
    nan : {"refuse", "drop"}
        What happens to vectors with NaN, infinity or missing entries.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from firstk.data.files import write_vectors
    >>> path = tempfile.mkdtemp() + "/vectors.csv"
    >>> _ = write_vectors(path, np.eye(3, dtype=np.float32), {"label": ["a", "b", "c"]})
    >>> table = open_vectors(path)
    >>> table.rows, table.width, table.vectors, table.columns
    (3, 3, 'vectors', ('label',))
    """
    check_choice(nan, NAN, "nan", "open_vectors")
    wanted = Wanted(vectors, tuple(beside))
    if not isinstance(path, (str, os.PathLike, RemotePath)):
        return VectorTable(type(path).__name__, [_shard_of(path, wanted)], nan)
    paths = find_files(path)
    kinds = {format_of(one).name for one in paths}
    if len(kinds) > 1:
        raise unreadable(path, f"it holds files of several formats ({', '.join(sorted(kinds))})", "Name one: a pattern")
    name = str(place_of(path)) if is_remote(path) else str(path)
    return VectorTable(name, [Shard(one, format_of(one), wanted, Stamp.of(one)) for one in paths], nan)


def format_of(path: str | Path) -> Format:
    """Return the format of a file by its ending.

    Examples
    --------
    >>> format_of("vectors.feather").name
    'arrow'
    """
    name = place_of(path).name.lower()
    for form in FORMATS:
        if name.endswith(form.endings):
            return form
    known = ", ".join(ending for form in FORMATS for ending in form.endings)
    raise InvalidInputError(f"The format of '{place_of(path)}' is not known: its name must end in one of {known}.")


def find_files(path: Any) -> list[Any]:
    """Return the files that a path means: itself, those of a folder, or those that match a pattern, in order."""
    check_there(path)
    place = place_of(path)
    if place.is_dir():
        # In object storage, where folders have no rename, its files are moved one by one.
        if isinstance(place, RemotePath) and (beside(place, UNFINISHED) / RECORD).is_file():
            raise unreadable(place, "it is not complete yet", "Wait for the command that writes it, or run it again")
        endings = tuple(ending for form in FORMATS for ending in form.endings)
        found = [one for one in place.iterdir() if one.is_file() and one.name.lower().endswith(endings)]
        found = [one for one in found if not one.name.startswith((".", "_"))]
        if not found:
            raise unreadable(path, f"the folder holds no file that ends in {', '.join(endings)}", "Give another folder")
    elif place.exists():
        found = [place]
    elif isinstance(place, RemotePath):
        found = place.matches()
    else:
        found = [one for one in map(Path, glob.glob(str(place), recursive=True)) if one.is_file()]
    for one in found:
        if Stamp.of(one).size == 0:
            raise unreadable(one, "it is empty (0 bytes)")

    def natural(path: Path) -> list[tuple[int, str]]:  # shard-2 before shard-10
        parts = re.split(r"(\d+)", str(path))
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]

    return sorted(found, key=natural)


def rows_with_nan(vectors: np.ndarray) -> np.ndarray:
    """Return the positions of rows that hold NaN or infinity."""
    # One quick look, which may not tell; the search, row by row, runs on suspicion.
    if vectors.dtype == np.float16 and vectors.size:
        # Half precision is slow to add up. By their bits, infinity and NaN are the largest of their sign.
        finite = vectors.view(np.int16).max() < _INFINITE and vectors.view(np.uint16).max() < _SIGN | _INFINITE
    else:
        with np.errstate(over="ignore", invalid="ignore"):  # a finite sum has only finite terms
            finite = np.isfinite(np.sum(vectors, dtype=np.float64 if vectors.dtype.itemsize == 8 else np.float32))
    return np.empty(0, np.int64) if finite else np.flatnonzero(~np.isfinite(vectors).all(axis=1))


# -- data frames, which come in through narwhals and go on as Arrow --------------------------------------------------


_IN_MEMORY = Format("table", (), "anything", True, MemoryReader)


def _shard_of(frame: Any, wanted: Wanted) -> Shard:
    """Return a data frame as the one shard of a table."""
    narwhals = require("narwhals", "tables", "Reading a data frame")
    require("pyarrow", "tables", "Reading a data frame")
    try:
        table = narwhals.from_native(frame, eager_only=True).to_arrow()
    except TypeError:
        raise InvalidInputError(
            "open_vectors takes the path of a file or a pandas, Polars or Arrow table. "
            f"Got {type(frame).__name__}; collect a lazy frame first."
        ) from None
    return Shard(table, _IN_MEMORY, wanted)


def rows_of(frame: Any) -> tuple[np.ndarray, bool] | None:
    """Return the rows of a data frame, and whether its columns are their coordinates; None for what is no frame.

    A frame with lists of numbers has its vectors in one column, and the other columns are not looked at. In any other
    frame every column is a coordinate. pandas frames of numbers are left to scikit-learn (None), which knows them.
    """
    library = type(frame).__module__.partition(".")[0]
    if library not in ("pandas", "polars", "pyarrow") or not hasattr(type(frame), "columns"):
        return None
    if library == "pandas" and not any(map(_holds_lists, (frame[name] for name in frame.columns))):
        return None
    narwhals = require("narwhals", "tables", "Reading a data frame")
    try:
        table = narwhals.from_native(frame, eager_only=True)
    except TypeError:
        raise InvalidInputError(f"A {type(frame).__name__} of {library} has no rows yet: collect it first.") from None
    if library == "pandas" or any(kind in (narwhals.List, narwhals.Array) for kind in table.schema.values()):
        return VectorTable("the table", [_shard_of(frame, Wanted())], "refuse").read(()).vectors, False
    return table.to_numpy(), True


def _holds_lists(column: pandas.Series) -> bool:
    """Tell whether a pandas column holds lists: as objects, or as an Arrow type."""
    if str(column.dtype).startswith(("list", "fixed_size_list", "large_list")):
        return True
    first = next(iter(column.dropna().head(1)), None) if column.dtype == object else None
    return isinstance(first, (list, tuple, np.ndarray))
