"""Arrow files: the IPC file format (also called feather) and the IPC stream.

A file may be one record batch, so it is mapped; blocks of rows are copied out of the map. In object storage there are
no maps, and a record batch is held in memory. Record batches are written with a checksum of their vectors, and those
that have one are checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from firstk.data.files.arrow_tables import TableReader, arrow, broken, record_batch, source_of
from firstk.data.files.contract import Format, Layout, Wanted, reading

if TYPE_CHECKING:
    import pyarrow

# Bytes that are read through one memory map.
_MAPPED = 1 << 26
# What the metadata of a record batch call the checksum of a column, before its name.
_SEAL = b"sha256:"


def _open(path: Path, columns: Sequence[str] | None = None) -> pyarrow.RecordBatchReader:
    """Open a file for `columns` (None: all); what does not start as the file format does is a stream."""
    pa = arrow("Reading Arrow files")
    options = None
    if columns is not None:
        names = _open(path).schema.names
        options = pa.ipc.IpcReadOptions(included_fields=sorted(names.index(name) for name in set(columns)))
    source = pa.memory_map(str(path)) if isinstance(path, Path) else source_of(path)
    opened = pa.ipc.open_file if source.read(6) == b"ARROW1" else pa.ipc.open_stream
    source.seek(0)
    return opened(source, options=options)


def _digest(vectors: pyarrow.Array) -> str:
    """Return the SHA-256 of the type and the values of a column of lists, or of strings of bytes, of one length."""
    values = vectors.flatten() if hasattr(vectors, "flatten") and vectors.type.num_fields else vectors
    width = values.type.bit_width // 8
    digest = hashlib.sha256(str(vectors.type).encode())
    digest.update(memoryview(values.buffers()[-1])[values.offset * width :][: len(values) * width])
    return digest.hexdigest()


def _record_batches(path: Path, columns: Sequence[str], *, checked: bool = True) -> Iterator[pyarrow.RecordBatch]:
    reader = _open(path, columns)
    if not hasattr(reader, "num_record_batches"):
        yield from reader
        return
    passed = 0
    for i in range(reader.num_record_batches):
        if passed > _MAPPED:  # the pages of a map stay with the process: a new map begins with none
            reader, passed = _open(path, columns), 0
        found = reader.get_batch_with_custom_metadata(i)
        batch, said = found.batch, found.custom_metadata or {}
        passed += batch.nbytes
        for name in batch.schema.names if checked else ():
            if (sealed := said.get(_SEAL + name.encode())) and sealed.decode() != _digest(batch.column(name)):
                raise ValueError(f"column {name!r} does not match its checksum")
        yield batch


class ArrowReader(TableReader):
    """One Arrow file, file format or stream."""

    def __init__(self, path: Path, wanted: Wanted):
        with reading(path, "Arrow", broken()):
            super().__init__(path, "Arrow", _open(path).schema, wanted)

    def count(self) -> int:
        """Return the number of rows, from a pass over one column."""
        with reading(self.path, "Arrow", broken()):
            return sum(len(batch) for batch in _record_batches(self.path, self.facts.members[:1], checked=False))

    def batches(self, size: int, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        """Yield columns of at most `size` rows at a time, copied: pages of a file that was cut off are gone."""
        pa = arrow("Reading Arrow files")
        for whole in _record_batches(self.path, columns):
            whole.validate(full=True)  # offsets of a damaged file would lead outside of it
            for at in range(0, len(whole), size):
                out = pa.BufferOutputStream()
                with pa.ipc.new_stream(out, whole.schema) as stream:
                    stream.write_batch(whole.slice(at, size))
                yield pa.ipc.open_stream(out.getvalue()).read_next_batch()


class ArrowWriter:
    """One Arrow file that is being written, unpacked so that it can be memory-mapped."""

    def __init__(self, path: Path, layout: Layout):
        arrow("Writing Arrow files")
        self._path, self._layout = path, layout
        self._writer: pyarrow.RecordBatchFileWriter | None = None
        self._schema: pyarrow.Schema | None = None

    def write(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows as one record batch."""
        pa = arrow("Writing Arrow files")
        batch = record_batch(self._layout, vectors, columns, self._schema)
        if self._writer is None:
            self._schema = batch.schema
            self._writer = pa.ipc.new_file(str(self._path), batch.schema)
        name = self._layout.vectors
        self._writer.write_batch(batch, {_SEAL + name.encode(): _digest(batch.column(name)).encode()})

    def close(self) -> None:
        """Write the footer."""
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Let go of the file."""
        with suppress(Exception):
            self.close()


FORMAT = Format("arrow", (".arrow", ".feather", ".ipc"), "anything", True, ArrowReader, ArrowWriter)
