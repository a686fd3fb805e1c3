"""Parquet: lists or plain columns, read page by page, written in row groups of bounded size.

Pages are written with checksums, and those of files that have them are checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.checks import require
from firstk.data.files.arrow_tables import TableReader, arrow, broken, record_batch, source_of
from firstk.data.files.contract import Format, Layout, Wanted, reading

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

# Bytes that are fetched at a time. A row group may be the whole file, so it is never fetched at once.
_FETCH = 1 << 20
# Numbers of a row group: 8 million float32 are 32 MiB, so that any reader of the file gets by with little memory.
_GROUP_NUMBERS = 8_000_000


class ParquetReader(TableReader):
    """One open parquet file."""

    def __init__(self, path: Path, wanted: Wanted):
        parquet = require("pyarrow.parquet", "tables", "Reading parquet")
        with reading(path, "parquet", broken()):
            columns = len(parquet.read_schema(source_of(path)))
            fetch = max(_FETCH // 64, min(_FETCH, 16 * _FETCH // max(1, columns)))
            self._file = parquet.ParquetFile(
                source_of(path), buffer_size=fetch, pre_buffer=False, page_checksum_verification=True
            )
            super().__init__(path, "parquet", self._file.schema_arrow, wanted)

    def count(self) -> int:
        """Return the number of rows."""
        return self._file.metadata.num_rows

    def batches(self, size: int, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        """Yield columns of at most `size` rows at a time."""
        found: Iterator[pyarrow.RecordBatch] = self._file.iter_batches(size, columns=list(columns), use_threads=False)
        return found


class ParquetWriter:
    """One parquet file that is being written."""

    def __init__(self, path: Path, layout: Layout):
        arrow("Writing parquet")
        self._path, self._layout = path, layout
        self._writer: pyarrow.parquet.ParquetWriter | None = None
        self._waiting: list[pyarrow.RecordBatch] = []
        self._rows = max(1, _GROUP_NUMBERS // layout.width)

    def write(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows; they reach the file a row group at a time."""
        batch = record_batch(self._layout, vectors, columns, None if self._writer is None else self._writer.schema)
        if self._writer is None:
            parquet = require("pyarrow.parquet", "tables", "Writing parquet")
            # Floats hardly repeat: a dictionary of them only costs time and space. Parquet has no integers below 32
            # bits, and holds single bytes as such by a dictionary.
            self._writer = parquet.ParquetWriter(
                self._path,
                batch.schema,
                use_dictionary=(self._layout.dtype.itemsize == 1 and not self._layout.binary)
                or list(self._layout.columns),
                write_statistics=False,
                write_page_checksum=True,
            )
        self._waiting.append(batch)
        if sum(map(len, self._waiting)) >= self._rows:
            self._flush()

    def _flush(self) -> None:
        pa = arrow("Writing parquet")
        if self._waiting and self._writer is not None:
            table = pa.Table.from_batches(self._waiting)
            self._writer.write_table(table, row_group_size=self._rows)
            self._waiting = []

    def close(self) -> None:
        """Write what is waiting, and the footer."""
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Let go of the file."""
        self._waiting = []
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()


FORMAT = Format("parquet", (".parquet", ".pq"), "anything", True, ParquetReader, ParquetWriter)
