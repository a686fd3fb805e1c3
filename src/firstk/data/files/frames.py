"""Data frames as tables of vectors: pandas, Polars and Arrow tables come in through narwhals and go on as Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from firstk._checks import InvalidInput, require
from firstk.data.files.contract import Format, Layout, Loaded, Wanted, Writer
from firstk.data.files.opening import Shard
from firstk.data.files.tables import Columns, TableView, as_numpy


class FrameReader:
    """One table in memory."""

    def __init__(self, table: Any, wanted: Wanted):
        self._table = table
        self._view = TableView("the table", table.schema, wanted, lambda names: table.select(names).to_batches())
        self.facts = self._view.facts

    def count(self) -> int:
        """Return the number of rows."""
        return self._table.num_rows

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, Any]]]:
        """Yield vectors and other columns of at most `size` rows at a time."""
        start = 0
        for batch in self._table.to_batches(max_chunksize=size):
            yield self._view.matrix(batch, start), Columns({name: batch.column(name) for name in columns})
            start += len(batch)


def load(table: Any) -> Loaded:
    """Return the columns of a table."""
    return Loaded(tuple(table.column_names), lambda name: as_numpy(table.column(name)))


def _no_writer(path: Any, layout: Layout) -> Writer:
    raise InvalidInput("A table in memory is not written to. Use write_vectors with the name of a file.")


_IN_MEMORY = Format("table", (), "anything", FrameReader, _no_writer, load)


def shard_of(frame: Any, wanted: Wanted) -> Shard:
    """Return a data frame as the one shard of a table."""
    narwhals = require("narwhals", "tables", "Reading a data frame")
    require("pyarrow", "tables", "Reading a data frame")
    try:
        table = narwhals.from_native(frame, eager_only=True).to_arrow()
    except TypeError:
        raise InvalidInput(
            "open_vectors takes the path of a file or a pandas, Polars or Arrow table. "
            f"Got {type(frame).__name__}; collect a lazy frame first."
        ) from None
    return Shard(table, _IN_MEMORY, wanted)
