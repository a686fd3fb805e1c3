"""Data frames as tables of vectors: pandas, Polars and Arrow tables come in through narwhals and go on as Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import require
from firstk.data.files.contract import Format, Layout, Loaded, Wanted, Writer
from firstk.data.files.opening import Shard, VectorTable
from firstk.data.files.tables import Columns, TableView, as_numpy
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas
    import pyarrow


class FrameReader:
    """One table in memory."""

    def __init__(self, table: pyarrow.Table, wanted: Wanted):
        self._table = table
        self._view = TableView("the table", table.schema, wanted, lambda names: table.select(names).to_batches())
        self.facts = self._view.facts

    def count(self) -> int:
        """Return the number of rows."""
        return self._table.num_rows

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield vectors and other columns of at most `size` rows at a time."""
        start = 0
        for batch in self._table.to_batches(max_chunksize=size):
            yield self._view.matrix(batch, start), Columns({name: batch.column(name) for name in columns})
            start += len(batch)


def load(table: pyarrow.Table) -> Loaded:
    """Return the columns of a table."""
    return Loaded(tuple(table.column_names), lambda name: as_numpy(table.column(name)))


def _no_writer(path: object, layout: Layout) -> Writer:
    raise InvalidInputError("A table in memory is not written to. Use write_vectors with the name of a file.")


_IN_MEMORY = Format("table", (), "anything", True, FrameReader, _no_writer, load)


def shard_of(frame: Any, wanted: Wanted) -> Shard:
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
        return VectorTable("the table", [shard_of(frame, Wanted())], "refuse").read(()).vectors, False
    return table.to_numpy(), True


def _holds_lists(column: pandas.Series) -> bool:
    """Tell whether a pandas column holds lists: as objects, or as an Arrow type."""
    if str(column.dtype).startswith(("list", "fixed_size_list", "large_list")):
        return True
    first = next(iter(column.dropna().head(1)), None) if column.dtype == object else None
    return isinstance(first, (list, tuple, np.ndarray))
