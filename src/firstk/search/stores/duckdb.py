"""Codes in a DuckDB table of fixed-size arrays: every prefix is compared, and the shortlist reranked, in one statement.

DuckDB scans columns, so the short codes have a column of their own. There is no index: the extension vss is not needed.
Needs the extra "stores".
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk.search.stores.contract import (
    CodedRows,
    Engine,
    Hits,
    Id,
    NamedRows,
    Request,
    StoredRows,
    StoreLayout,
    check_ascending,
)
from firstk.search.stores.filters import COMPARED, Condition, quoted, record_in, where_of
from firstk.search.stores.named_columns import check_filled, chosen_ids, chosen_vectors, stored

if TYPE_CHECKING:
    import duckdb

# By the metric: DuckDB's function, and whether larger is nearer.
_FUNCTIONS = {
    "cosine": ("array_cosine_similarity", True),
    "inner_product": ("array_inner_product", True),
    "l2": ("array_distance", False),
}
_TYPE = re.compile(r"(?:FLOAT|DOUBLE)\[(\d*)\]")
_JSON_KINDS = {
    "bool": ("BOOLEAN",),
    "number": ("BIGINT", "UBIGINT", "HUGEINT", "DOUBLE", "DECIMAL"),
    "text": ("VARCHAR",),
}


@dataclass(frozen=True, eq=False)
class DuckDB(Engine):
    """A table of a DuckDB file.

    Attributes
    ----------
    path : path, or duckdb.DuckDBPyConnection
        ":memory:" for none. A connection stays open.
    table : str
    """

    path: str | Path | duckdb.DuckDBPyConnection
    table: str = "documents"

    name = "duckdb"
    purpose = "A table of DuckDB"
    packages = ("duckdb", "pyarrow")
    raises = ("duckdb:Error", OSError, ValueError)

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection."""
        import duckdb

        if not isinstance(self.path, (str, Path)):
            return self.path
        with self.answering():
            return duckdb.connect(str(self.path))

    def rows_of(self, sql: str, values: Any = None) -> list[Any]:
        """Run a statement to its end: a result that is not fetched wholly blocks the connection."""
        return self.connection.execute(sql, values).fetchall()

    def layout(self) -> StoreLayout | None:
        """Return the layout, which is the comment of the table."""
        found = self.rows_of("SELECT comment FROM duckdb_tables() WHERE table_name = ? AND NOT temporary", [self.table])
        return StoreLayout.read(record_in(found[0][0]), self.place) if found else None

    def create(self, layout: StoreLayout) -> None:
        """Create the table."""
        kind, place = "BIGINT" if layout.ids == "int" else "VARCHAR", quoted(self.table)
        full = "" if layout.full is None else f'"full" FLOAT[{layout.full}] NOT NULL, '
        with self._transaction():
            self.rows_of(
                f"CREATE TABLE {place} (id {kind} PRIMARY KEY, short FLOAT[{layout.short}] NOT NULL, {full}"
                "payload JSON NOT NULL)"
            )
            self.rows_of(f"COMMENT ON TABLE {place} IS '" + layout.record().replace("'", "''") + "'")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.begin()
        try:
            yield
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.commit()

    def drop(self) -> None:
        """Delete the table."""
        self.rows_of(f"DROP TABLE IF EXISTS {quoted(self.table)}")

    def upsert(self, rows: CodedRows) -> None:
        """Write rows in one transaction."""
        import pyarrow as pa

        columns = {"id": pa.array(rows.ids), "short": _arrays(rows.short)}
        if rows.full is not None:
            columns["full"] = _arrays(rows.full)
        columns["payload"] = pa.array([json.dumps(one) for one in rows.payloads])
        names = ", ".join(map(quoted, columns))
        replaced = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in columns if name != "id")
        self.connection.register("firstk_rows", pa.table(columns))
        try:
            with self._transaction():
                self.rows_of(
                    f"INSERT INTO {quoted(self.table)} ({names}) SELECT {names} FROM firstk_rows "
                    f"ON CONFLICT (id) DO UPDATE SET {replaced}"
                )
        finally:
            self.connection.unregister("firstk_rows")

    def finish(self) -> None:
        """Write the log into the file."""
        self.rows_of("CHECKPOINT")

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows."""
        self.rows_of(f"DELETE FROM {quoted(self.table)} WHERE id IN (SELECT unnest(?))", [list(ids)])

    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return ids that are there."""
        found = self.rows_of(f"SELECT id FROM {quoted(self.table)} WHERE id IN (SELECT unnest(?))", [list(ids)])
        return {row[0] for row in found}

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.rows_of(f"SELECT count(*) FROM {quoted(self.table)}")[0][0])

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield rows in the order of their ids."""
        layout = self.layout()
        column = "short" if layout is None or layout.full is None else '"full"'
        for rows in self._pages(size, "id", [column, "payload"]):
            ids, codes, payloads = zip(*rows, strict=True)
            yield StoredRows(list(ids), np.array(codes, dtype=np.float32), [json.loads(one) for one in payloads])

    def _pages(self, size: int, key: str, columns: Sequence[str]) -> Iterator[list[Any]]:
        """Yield a key and columns in the order of the key; by rowid, a page reads no more than it returns."""
        wanted, last = ", ".join([key, *columns]), list[Any]()
        while rows := self.rows_of(
            f"SELECT {wanted} FROM {quoted(self.table)} {f'WHERE {key} > ? ' if last else ''}ORDER BY {key} "
            f"LIMIT {int(size)}",
            last,
        ):
            check_ascending([row[0] for row in rows], *last)
            yield rows
            last = [rows[-1][0]]

    def read_columns(self, vectors: str | None, ids: str | None) -> NamedRows:
        """Open a table; ids are its primary key, and all other columns the payload."""
        found = self.rows_of(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
            [self.table],
        )
        names = [name for name, _ in found]
        vector = chosen_vectors(self.place, vectors, [name for name, kind in found if _TYPE.fullmatch(kind)], names)
        primary = self.rows_of(
            "SELECT constraint_column_names FROM duckdb_constraints() WHERE table_name = ? AND "
            "constraint_type = 'PRIMARY KEY'",
            [self.table],
        )
        key = chosen_ids(self.place, ids, primary[0][0] if primary else [], names)
        column, ident = quoted(vector), quoted(key)
        ((count, distinct, missing, width, widest),) = self.rows_of(
            f"SELECT count(*), count(DISTINCT {ident}), count(*) FILTER (WHERE {column} IS NULL), min(len({column})), "
            f"max(len({column})) FROM {quoted(self.table)}"
        )
        check_filled(self.place, key, count, distinct, missing, width, widest)
        others = [name for name in names if name not in (vector, key)]

        def read(size: int) -> Iterator[StoredRows]:
            for rows in self._pages(size, "rowid", [ident, column, *map(quoted, others)]):
                payloads = [dict(zip(others, row[3:], strict=True)) for row in rows]
                yield stored([row[1] for row in rows], np.array([row[2] for row in rows], np.float32), payloads)

        return NamedRows(int(count), int(width or 0), vector, read)

    def statement(self, layout: StoreLayout, shortlist: int, limit: int, where: str = "") -> str:
        """Return the SQL of a search; ``$short`` and ``$full`` are the codes of a query."""
        function, larger = _FUNCTIONS[layout.compared]
        order = "DESC NULLS LAST" if larger else "ASC NULLS LAST"
        near = _no_nan(f"{function}(short, $short::FLOAT[{layout.short}])")
        if layout.full is None:
            again, shortlist = near, limit
        else:
            again = _no_nan(f'{function}("full", $full::FLOAT[{layout.full}])')
        condition = f"\n    WHERE {where}" if where else ""
        return (
            f"SELECT id, {again} AS score, payload\nFROM (\n    SELECT * FROM {quoted(self.table)}{condition}\n"
            f"    ORDER BY {near} {order}\n    LIMIT {shortlist}\n) AS shortlist\n"
            f"ORDER BY score {order}, id\nLIMIT {limit}"
        )

    def hits(self, request: Request, layout: StoreLayout) -> Iterator[Hits]:
        """Find and rerank in one statement a query."""
        where, values = where_of(request.where, request.native, _condition)
        sql = self.statement(layout, request.shortlist, request.limit, where)
        for i, short in enumerate(request.short):
            query = {"short": short.tolist()}
            if request.full is not None:
                query["full"] = request.full[i].tolist()
            found = self.rows_of(sql, query | values)
            yield [row[0] for row in found], [row[1] for row in found], [json.loads(row[2]) for row in found]


def _no_nan(value: str) -> str:
    """Return NULL for the cosine of a code of zeros, as NaN would be sorted as the largest number."""
    return f"nullif({value}, 'nan'::FLOAT)"


def _arrays(codes: np.ndarray) -> Any:
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(codes, dtype=np.float32).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, codes.shape[1])


def _condition(one: Condition, i: int) -> tuple[str, dict[str, Any]]:
    """Compare JSON values of one type only."""
    path = f"p{i}"
    values: dict[str, Any] = {path: '$."' + one.name.replace('"', '\\"') + '"'}
    kinds = ", ".join(f"'{kind}'" for kind in _JSON_KINDS[one.kind])
    of_kind = f"json_type(payload, ${path}) IN ({kinds})"
    taken = f"json_extract_string(payload, ${path})"
    cast = {"text": taken, "number": f"TRY_CAST({taken} AS DOUBLE)", "bool": f"TRY_CAST({taken} AS BOOLEAN)"}[one.kind]
    names = []
    for j, value in enumerate(one.values):
        names.append(f"v{i}_{j}")
        values[names[-1]] = float(value) if one.kind == "number" else value
    if one.operator == "in":
        return f"({of_kind} AND {cast} IN ({', '.join('$' + name for name in names)}))", values
    return f"({of_kind} AND {cast} {COMPARED[one.operator]} ${names[0]})", values
