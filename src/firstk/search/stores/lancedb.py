"""Codes in a LanceDB table, which is a folder: two vector columns, and reranking in numpy.

LanceDB filters typed columns, so a payload has a column for each name, and a name that a row lacks is null there. The
types are those of the first rows. Needs the extra "stores".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import (
    CodedRows,
    Engine,
    Id,
    NamedRows,
    Request,
    StoredRows,
    StoreLayout,
)
from firstk.search.stores.filters import COMPARED, Condition
from firstk.search.stores.named_columns import chosen_ids, chosen_vectors, stored

if TYPE_CHECKING:
    import lancedb
    import pyarrow as pa

_DISTANCES = {"cosine": "cosine", "inner_product": "dot", "l2": "l2"}
_KEY = b"firstk"
_OWN = ("id", "short", "full")
# Columns that LanceDB adds to results.
_ADDED = ("_distance", "_rowid", "_score", "_relevance_score")


@dataclass(frozen=True, eq=False)
class LanceDB(Engine):
    """A table of LanceDB.

    Attributes
    ----------
    path : path, or a connection of lancedb.connect
    table : str
    """

    path: str | Path | lancedb.DBConnection
    table: str = "documents"

    name = "lancedb"
    purpose = "A table of LanceDB"
    packages = ("lancedb",)
    raises = (OSError, RuntimeError, ValueError, TypeError, "pyarrow:ArrowException")
    reserved = frozenset((*_OWN, *_ADDED))

    @cached_property
    def connection(self) -> lancedb.DBConnection:
        """The connection."""
        import lancedb

        if not isinstance(self.path, (str, Path)):
            return self.path
        with self.answering():
            return lancedb.connect(str(self.path))

    @property
    def _there(self) -> Any:
        return self.connection.open_table(self.table)

    def layout(self) -> StoreLayout | None:
        """Return the layout, which is in the metadata of the schema."""
        try:
            table = self._there
        except (FileNotFoundError, ValueError):
            return None
        record = (table.schema.metadata or {}).get(_KEY)
        return StoreLayout.read(None if record is None else record.decode(), self.place)

    def create(self, layout: StoreLayout) -> None:
        """Create the table; columns of payloads come with the first rows."""
        import pyarrow as pa

        columns = [
            pa.field("id", pa.int64() if layout.ids == "int" else pa.string(), nullable=False),
            pa.field("short", pa.list_(pa.float32(), layout.short)),
        ]
        if layout.full is not None:
            columns.append(pa.field("full", pa.list_(pa.float32(), layout.full)))
        schema = pa.schema(columns, metadata={_KEY: layout.record().encode()})
        self.connection.create_table(self.table, schema=schema)

    def drop(self) -> None:
        """Delete the table."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            self.connection.drop_table(self.table)

    def upsert(self, rows: CodedRows) -> None:
        """Write rows, as a new version of the table."""
        table = self._there
        odd = sorted(name for one in rows.payloads for name in one if set(name) & set(".`"))
        if odd:
            raise InvalidInputError(f"LanceDB takes names of columns without dots and backticks. Got {odd[0]!r}.")
        block = _arrow(rows, table.schema)
        missing = [one for one in block.schema if one.name not in table.schema.names]
        if missing:
            import pyarrow as pa

            table.add_columns(pa.schema(missing))
        table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(block)

    def finish(self) -> None:
        """Compact what was written in batches. An index is yours to choose: ``table.create_index(...)``."""
        self._there.optimize()

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows."""
        self._there.delete(f"id IN ({', '.join(map(_literal, ids))})")

    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return ids that are there."""
        found = self._there.search().where(f"id IN ({', '.join(map(_literal, ids))})").select(["id"]).limit(len(ids))
        return set(found.to_arrow()["id"].to_pylist())

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._there.count_rows())

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield rows in the order of the table."""
        yield from map(_rows, self._parts(size))

    def _parts(self, size: int) -> Iterator[Any]:
        table = self._there
        for batch in table.search().limit(max(1, table.count_rows())).to_batches(size):
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)

    def read_columns(self, vectors: str | None, ids: str | None) -> NamedRows:
        """Open a table; ids are in its column 'id', or in one that is named; all other columns are the payload."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self._there
        names = list(table.schema.names)
        lists = [one for one in table.schema if pa.types.is_fixed_size_list(one.type) or pa.types.is_list(one.type)]
        possible = [one.name for one in lists if pa.types.is_floating(one.type.value_type)]
        vector = chosen_vectors(self.place, vectors, possible, names)
        key = chosen_ids(self.place, ids, [], names)
        first = table.search().limit(1).to_arrow()[vector].to_pylist()
        width = len(first[0] or ()) if first else 0

        def read(size: int) -> Iterator[StoredRows]:
            for part in self._parts(size):
                # Lists that are missing, or of another length, would move the numbers of later rows.
                if not pc.all(pc.equal(pc.fill_null(pc.list_value_length(part[vector]), -1), width)).as_py():
                    raise InvalidInputError(
                        f"{self.place} has rows without a vector in column {vector!r}, or with one that has not "
                        f"{width} numbers like the first. Delete them, or name another column with vectors=."
                    )
                yield _rows(part, vector, key, ())

        return NamedRows(int(table.count_rows()), width, vector, read)

    def shortlists(self, request: Request, layout: StoreLayout) -> Iterator[StoredRows]:
        """Find by the short codes."""
        table = self._there
        where = request.native or " AND ".join(_condition(one, table.schema) for one in request.where)
        for short in request.short:
            # By cosine, LanceDB finds nothing for a code of zeros, which is as near to one row as to another.
            kind = _DISTANCES[layout.compared if short.any() else "l2"]
            found = table.search(short, vector_column_name="short").distance_type(kind).limit(request.shortlist)
            hits = (found.where(where, prefilter=True) if where else found).to_arrow().combine_chunks()
            yield _rows(hits)


def _arrow(rows: CodedRows, schema: pa.Schema) -> pa.Table:
    """Return rows as a table, payloads in the types of the columns that are there."""
    import pyarrow as pa

    names = [name for name in schema.names if name not in _OWN]
    names += sorted({name for one in rows.payloads for name in one} - set(names))
    arrays = {"id": pa.array(rows.ids, schema.field("id").type), "short": _lists(rows.short)}
    if rows.full is not None:
        arrays["full"] = _lists(rows.full)
    for name in names:
        values = [one.get(name) for one in rows.payloads]
        there = schema.field(name).type if name in schema.names else None
        try:
            column = pa.array(values, there)
        except (pa.ArrowException, TypeError):
            raise InvalidInputError(
                f"LanceDB keeps one type a column, and '{name}' of the payload holds another"
                + (f" than {there}." if there is not None else " in some rows.")
                + " Convert its values to one type."
            ) from None
        if not pa.types.is_null(column.type):
            arrays[name] = column
    return pa.table(arrays)


def _lists(codes: np.ndarray) -> pa.Array:
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(codes, dtype=np.float32).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, codes.shape[1])


def _rows(table: Any, vector: str | None = None, key: str = "id", own: Sequence[str] = (*_OWN, *_ADDED)) -> StoredRows:
    """Return rows of Arrow by the names of their vectors and ids: of our own, with the longest codes."""
    name = vector or ("full" if "full" in table.schema.names else "short")
    column = table[name].combine_chunks() if hasattr(table[name], "combine_chunks") else table[name]
    codes = np.asarray(column.flatten().to_numpy(zero_copy_only=False), np.float32)
    names = [one for one in table.schema.names if one not in (name, key, *own)]
    payloads = table.select(names).to_pylist() if names else [{}] * len(column)
    width = codes.size // len(column) if len(column) else 1
    return stored(table[key].to_pylist(), codes.reshape(len(column), width), payloads)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _condition(one: Condition, schema: pa.Schema) -> str:
    import pyarrow.types as types

    if one.name not in schema.names or one.name in _OWN:
        return "false"
    kind = schema.field(one.name).type
    of_kind = {
        "bool": types.is_boolean(kind),
        "number": types.is_integer(kind) or types.is_floating(kind),
        "text": types.is_string(kind) or types.is_large_string(kind),
    }
    if not of_kind[one.kind]:
        return "false"
    column = "`" + one.name + "`"
    if one.operator == "in":
        return f"({column} IN ({', '.join(map(_literal, one.values))}))"
    return f"({column} {COMPARED[one.operator]} {_literal(one.value)})"
