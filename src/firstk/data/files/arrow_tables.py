"""Arrow tables as vectors: which columns they are, and how a block of them becomes a matrix without a copy.

Parquet, Arrow files and data frames all arrive here as record batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import check_no_nul, require
from firstk.data.files.contract import (
    Carried,
    Facts,
    Layout,
    Wanted,
    exactly,
    float_type,
    ragged,
    reading,
    unreadable,
    vectors_named,
)
from firstk.data.files.vector_columns import ChosenColumns, check_names, choose
from firstk.data.remote import is_remote
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pyarrow

# Rows that are looked at to learn the length of lists, and rows of a column that are read at a time.
_PEEK, _COLUMN_ROWS = 1024, 1 << 16
# The key of our own facts in the metadata of a schema.
METADATA = b"firstk"


def arrow(purpose: str) -> ModuleType:
    """Import pyarrow; raise MissingExtraError where it is not installed."""
    return require("pyarrow", "tables", purpose)


def broken() -> tuple[type[BaseException], ...]:
    """Return what pyarrow raises for a damaged file."""
    pa = arrow("Reading tables")
    return (pa.ArrowException, OSError, ValueError, KeyError, TypeError, NotImplementedError)


def source_of(path: Any) -> Any:
    """Return what pyarrow reads: the path of a file, or an open file in object storage."""
    return arrow("Reading tables").PythonFile(path.open("rb", buffering=0), mode="r") if is_remote(path) else path


class ArrowColumns(Carried):
    """Columns of a record batch: arrays of numpy to compute with, Arrow unchanged to write to another file."""

    def __getitem__(self, name: str) -> np.ndarray:
        return as_numpy(self.held[name])

    def take(self, kept: np.ndarray) -> ArrowColumns:
        """Return the rows `kept`."""
        pa = arrow("Reading tables")
        return ArrowColumns({name: part.take(pa.array(kept)) for name, part in self.held.items()})


class TableReader:
    """A reader of record batches: which columns are the vectors, how wide, and how a batch becomes a matrix.

    Parameters
    ----------
    path : path
        For error messages.
    form : str
        Name of the format, for error messages.
    schema : pyarrow.Schema
    wanted : Wanted
    """

    def __init__(self, path: Any, form: str, schema: pyarrow.Schema, wanted: Wanted):
        self.path, self._form = path, form
        self._schema = schema
        check_names(path, schema.names)
        if wanted.plain:
            self.facts = Facts("", (), 0, np.dtype(np.float64), tuple(schema.names))
            return
        held = schema.metadata or {}
        metadata = {METADATA.decode(): held[METADATA].decode()} if METADATA in held else {}
        wanted = wanted.with_default(vectors_named(metadata), schema.names)
        self.choice: ChosenColumns = choose(path, {field.name: kind_of(field.type) for field in schema}, wanted)
        types = [schema.field(name).type for name in self.choice.members]
        self.binary = _is_binary(types[0])
        if self.choice.spread:
            self.width, self.dtype = len(types), np.result_type(*(numpy_type(one) for one in types))
        elif self.binary:
            if vectors_named(metadata) != self.choice.name:
                raise unreadable(
                    path,
                    f"column {self.choice.name!r} holds {types[0].byte_width} bytes a row, and the file does not say "
                    "what they are",
                    "Decode them with the model that made them: quantizer.decode",
                )
            self.width, self.dtype = types[0].byte_width, np.dtype(np.float32)
        else:
            self.dtype = numpy_type(values_of(types[0]))
            self.width = fixed_width(types[0]) or self._measured()
        columns = tuple(name for name in schema.names if name not in self.choice.members)
        self.facts = Facts(self.choice.name, self.choice.members, self.width, self.dtype, columns, metadata)

    def batches(self, size: int, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        """Yield columns of at most `size` rows at a time, in memory of their own."""
        raise NotImplementedError

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield vectors and other columns of at most `size` rows at a time."""
        names, start = list(dict.fromkeys((*self.facts.members, *columns))), 0
        with reading(self.path, self._form, broken()):
            for batch in self.batches(size, names):
                yield self.matrix(batch, start), ArrowColumns({name: batch.column(name) for name in columns})
                start += len(batch)

    def column(self, name: str) -> np.ndarray:
        """Return a whole column."""
        pa = arrow("Reading tables")
        with reading(self.path, self._form, broken()):
            parts, schema = self.batches(_COLUMN_ROWS, [name]), pa.schema([self._schema.field(name)])
            return as_numpy(pa.Table.from_batches(parts, schema).column(0))

    def _measured(self) -> int:
        """Return the length of the first list that is not missing; 0 where there is none."""
        for batch in self.batches(_PEEK, self.choice.members):
            lists = batch.column(0).drop_null()
            if len(lists):
                if len(lists[0]):
                    return len(lists[0])
                raise unreadable(self.path, "its first vector has no entries")
        return 0

    def matrix(self, batch: pyarrow.RecordBatch, start: int) -> np.ndarray:
        """Return the vectors of a record batch whose first row has the number `start`."""
        if self.choice.spread:
            out = np.empty((len(batch), self.width), self.dtype)
            for j, name in enumerate(self.choice.members):
                out[:, j] = _numbers(batch.column(name), self.dtype)
            return out
        if self.binary:
            return self._bytes(batch.column(self.choice.members[0]))
        lists = _plain_lists(batch.column(self.choice.members[0]))

        missing = np.asarray(lists.is_null()) if lists.null_count else np.zeros(len(lists), bool)
        if hasattr(lists, "offsets"):
            lengths = np.diff(np.asarray(lists.offsets))
            if len(bad := np.flatnonzero(~missing & (lengths != self.width))):
                raise ragged(self.path, self.width, bad + start, lengths[bad])
        if not self.width:
            return np.full((len(lists), 0), np.nan, self.dtype)
        # flatten leaves out the lists that are missing, whatever values they have.
        values = _numbers(lists.flatten(), self.dtype).reshape(-1, self.width)
        if not missing.any():
            return values
        out = np.full((len(lists), self.width), np.nan, self.dtype)
        out[~missing] = values
        return out

    def _bytes(self, strings: pyarrow.Array) -> np.ndarray:
        """Return strings of bytes as uint8; as floats where one is missing, and NaN."""
        present = strings.drop_null()
        held = np.frombuffer(present.buffers()[1] or b"", np.uint8)[present.offset * self.width :]
        codes = held[: len(present) * self.width].reshape(-1, self.width)
        if not strings.null_count:
            return codes
        out = np.full((len(strings), self.width), np.nan, self.dtype)
        out[~np.asarray(strings.is_null())] = codes
        return out


class MemoryReader(TableReader):
    """A table or record batch in memory; `path` is what error messages call it."""

    def __init__(self, table: pyarrow.Table | pyarrow.RecordBatch, wanted: Wanted, path: str = "the table"):
        pa = arrow("Reading tables")
        self._table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        super().__init__(path, "Arrow", table.schema, wanted)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._table.num_rows)

    def batches(self, size: int, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        """Yield columns of at most `size` rows at a time."""
        yield from self._table.select(list(columns)).to_batches(max_chunksize=size)


def kind_of(column: pyarrow.DataType) -> str:
    """Return what `choose` calls a column of this Arrow type."""
    pa = arrow("Reading tables")
    inner = values_of(column)
    if _is_binary(column):
        return "bytes"
    if inner is not None:
        if pa.types.is_floating(inner):
            return "vector"
        return "list" if pa.types.is_integer(inner) else "other"
    numeric = pa.types.is_floating(column) or pa.types.is_integer(column) or pa.types.is_decimal(column)
    return "number" if numeric else "other"


def _is_binary(column: pyarrow.DataType) -> bool:
    """Tell whether a column holds strings of bytes of one length."""
    return bool(arrow("Reading tables").types.is_fixed_size_binary(column))


def values_of(column: pyarrow.DataType) -> pyarrow.DataType | None:
    """Return the type inside a list type; None for other types."""
    pa = arrow("Reading tables")
    if isinstance(column, pa.FixedShapeTensorType):
        return column.value_type if len(column.shape) == 1 else None
    if isinstance(column, pa.BaseExtensionType):
        return values_of(column.storage_type)
    if pa.types.is_fixed_size_list(column) or pa.types.is_list(column) or pa.types.is_large_list(column):
        return column.value_type
    return None


def fixed_width(column: pyarrow.DataType) -> int | None:
    """Return the length of the lists of a fixed-size type; None for others."""
    pa = arrow("Reading tables")
    if isinstance(column, pa.BaseExtensionType):
        return fixed_width(column.storage_type)
    return column.list_size if pa.types.is_fixed_size_list(column) else None


def numpy_type(inner: pyarrow.DataType) -> np.dtype:
    """Return the float type in which an Arrow type of numbers is read."""
    pa = arrow("Reading tables")
    return np.dtype(np.float64) if pa.types.is_decimal(inner) else float_type(inner.to_pandas_dtype())


def as_numpy(column: pyarrow.Array) -> np.ndarray:
    """Return an Arrow array as one of numpy: lists of numbers of one length as a matrix, all else as it can be."""
    pa = arrow("Reading tables")
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if kind_of(column.type) in ("vector", "list") and not column.null_count:
        lists = _plain_lists(column)
        flat, n = lists.flatten(), len(lists)
        lengths = np.diff(np.asarray(lists.offsets)) if hasattr(lists, "offsets") else None
        if n and not flat.null_count and (lengths is None or (lengths == lengths[0]).all()):
            return flat.to_numpy(zero_copy_only=False).reshape(n, -1)
    if column.null_count and pa.types.is_integer(column.type):
        return np.array(column.to_pylist(), dtype=object)  # Arrow would make floats of them, which do not hold them all
    found = column.to_numpy(zero_copy_only=False)
    if found.dtype.kind == "O" and not column.null_count and pa.types.is_string(column.type):
        check_no_nul(found, "A column of text")
        return found.astype(str)
    return found


def as_arrow(column: np.ndarray | pyarrow.Array) -> pyarrow.Array:
    """Return an array of numpy (of one or two dimensions) as one of Arrow."""
    pa = arrow("Writing tables")
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return list_array(column)
    if isinstance(column, pa.Array):
        return column
    found = pa.array(column)
    # Rows in which every entry is missing tell no type, and text has room for any that comes.
    return found.cast(pa.string()) if pa.types.is_null(found.type) else found


def list_array(matrix: np.ndarray) -> pyarrow.Array:
    """Return the rows of a matrix as a fixed-size-list array that shares its memory."""
    pa = arrow("Writing tables")
    flat = pa.array(np.ascontiguousarray(matrix).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


def binary_array(codes: np.ndarray) -> pyarrow.Array:
    """Return the rows of a matrix of bytes as a fixed-size-binary array that shares its memory."""
    pa = arrow("Writing tables")
    held = pa.py_buffer(np.ascontiguousarray(codes))
    return pa.Array.from_buffers(pa.binary(codes.shape[1]), len(codes), [None, held])


def record_batch(
    layout: Layout, vectors: np.ndarray, columns: Mapping[str, np.ndarray], schema: pyarrow.Schema | None = None
) -> pyarrow.RecordBatch:
    """Return rows as a record batch: the vectors first, then the other columns, types as they came or of `schema`."""
    pa = arrow("Writing tables")
    held = columns.held if isinstance(columns, ArrowColumns) else None
    beside = [exactly(columns, name) if held is None else held[name] for name in layout.columns]
    codes = binary_array(vectors) if layout.binary else list_array(vectors)
    arrays = [codes, *map(as_arrow, beside)]
    fields = [pa.field(name, one.type) for name, one in zip((layout.vectors, *layout.columns), arrays, strict=True)]
    metadata = {key.encode(): value.encode() for key, value in layout.metadata.items()}
    batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata or None))
    if schema is None or schema.equals(batch.schema):
        return batch
    try:
        return batch.cast(schema)
    except (pa.ArrowException, ValueError, NotImplementedError) as error:
        raise InvalidInputError(
            f"A column has entries of another type than in the first rows ({str(error).splitlines()[0][:100]}). Give "
            "each column one type, or leave it out by columns=."
        ) from None


def _plain_lists(column: pyarrow.Array) -> pyarrow.Array:
    pa = arrow("Reading tables")
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _numbers(values: pyarrow.Array, dtype: np.dtype) -> np.ndarray:
    """Return Arrow numbers as floats: a view where they are floats already, NaN where one is missing."""
    pa = arrow("Reading tables")
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    return values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
