"""Codes in a SQLite file with sqlite-vec: a virtual table of short codes, and reranking in the same statement.

The full codes are in an ordinary table, from which `vec_slice` cuts the short ones, as floats or as signs. Needs the
extra "stores".
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from firstk._base.checks import require
from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import (
    EXTRA,
    CodedRows,
    Hits,
    Id,
    NamedRows,
    Request,
    StoredRows,
    StoreLayout,
)
from firstk.search.stores.filters import quoted, where_of
from firstk.search.stores.named_columns import chosen, chosen_ids, stored
from firstk.search.stores.sqlite_rows import RowsTable, SqliteEngine, condition

# A column of the declaration of a virtual table; sqlite-vec's other options are words after it.
_FLOATS = re.compile(r"^\s*[\"'`\[]?(\w+)[\"'`\]]?\s+float(?:32)?\s*\[(\d+)\]", re.IGNORECASE)
_COSINE = re.compile(r"distance_metric\s*=\s*cosine", re.IGNORECASE)
_DISTANCES = {"cosine": "vec_distance_cosine", "l2": "vec_distance_l2"}
# The widest vector of a virtual table.
_LONGEST = 8192


def _sqlite() -> ModuleType:
    """Return a module of SQLite that can load extensions: Python's own, unless it was built without."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        return require("pysqlite3", EXTRA, SqliteVec.purpose)
    except ImportError:
        raise InvalidInputError(
            "This Python was built without loading of SQLite extensions, which sqlite-vec needs. Install "
            "pysqlite3-binary (Linux; part of firstk[stores]), or use a Python that was built with them."
        ) from None


@dataclass(frozen=True, eq=False)
class SqliteVec(SqliteEngine):
    """A table of a SQLite file.

    Attributes
    ----------
    path : path
        ":memory:" for none.
    table : str
    precision : {"float32", "binary"}
        Of the short codes. "binary" keeps signs, in a 32nd of the bytes; give it a longer shortlist.
    """

    path: str | Path
    table: str = "documents"
    precision: str = "float32"

    name = "sqlite_vec"
    purpose = "A table of sqlite-vec"
    packages = ("sqlite_vec",)
    metrics = ("cosine", "l2")
    precisions = ("float32", "binary")
    # What one search of a virtual table returns at most.
    most = 4096

    @cached_property
    def connection(self) -> Any:
        """The connection, with the extension loaded; transactions are begun and ended here."""
        import sqlite_vec

        sqlite = _sqlite()
        with self.answering():
            found = sqlite.connect(str(self.path), isolation_level=None, check_same_thread=False)
            found.enable_load_extension(True)
            sqlite_vec.load(found)
            found.enable_load_extension(False)
            found.execute("PRAGMA busy_timeout = 10000")
        return found

    @property
    def _rows(self) -> RowsTable:
        return RowsTable(self.connection, self.table)

    @property
    def _short(self) -> str:
        return quoted(f"{self.table}_short")

    @property
    def errors(self) -> tuple[type[BaseException], ...]:
        """Those of the module of SQLite that loads extensions, too."""
        return _sqlite().Error, *super().errors

    def check(self, layout: StoreLayout) -> None:
        """Raise an error for codes that sqlite-vec cannot index."""
        if layout.short > _LONGEST:
            raise InvalidInputError(f"sqlite-vec indexes at most {_LONGEST} coordinates. Got short={layout.short}.")
        if self.precision == "binary" and layout.short % 8:
            raise InvalidInputError(
                f"sqlite-vec packs eight signs into a byte: 'short' must be a multiple of 8. Got {layout.short}."
            )

    def layout(self) -> StoreLayout | None:
        """Return the layout, which is in the table 'firstk_stores'."""
        return self._rows.layout(self.place)

    def create(self, layout: StoreLayout) -> None:
        """Create both tables."""
        if self.precision == "binary":
            kind = f"bit[{layout.short}]"
        else:
            kind = f"float[{layout.short}] distance_metric={'cosine' if layout.compared == 'cosine' else 'L2'}"
        with self._rows.transaction():
            self._rows.create(layout)
            self.connection.execute(f"CREATE VIRTUAL TABLE {self._short} USING vec0(short {kind})")

    def drop(self) -> None:
        """Delete both tables."""
        with self._rows.transaction():
            self._rows.drop()
            self.connection.execute(f"DROP TABLE IF EXISTS {self._short}")

    def upsert(self, rows: CodedRows) -> None:
        """Write rows in one transaction; the short codes are cut from the full ones by SQLite."""
        cut = f"vec_slice(code, 0, {rows.short.shape[1]})"
        if rows.full is None:
            cut = "code"
        if self.precision == "binary":
            cut = f"vec_quantize_binary({cut})"
        with self._rows.transaction():
            replaced = self._rows.upsert(rows)
            self._forget(replaced)
            self.connection.executemany(
                f"INSERT INTO {self._short} (rowid, short) SELECT key, {cut} FROM {quoted(self.table)} WHERE id = ?",
                [(key,) for key in rows.ids],
            )

    def _forget(self, keys: Sequence[int]) -> None:
        self.connection.executemany(f"DELETE FROM {self._short} WHERE rowid = ?", [(key,) for key in keys])

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows in one transaction."""
        with self._rows.transaction():
            self._forget(self._rows.delete(ids))

    def read_columns(self, vectors: str | None, ids: str | None) -> NamedRows:
        """Open a virtual table of sqlite-vec, or a table with a column of float32 bytes.

        Ids are its primary key or its rowid, and all other columns the payload.
        """
        run, table = self.connection.execute, quoted(self.table)
        (declared,) = run("SELECT sql FROM sqlite_master WHERE name = ?", (self.table,)).fetchone() or ("",)
        columns = run("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)", (self.table,)).fetchall()
        names = [name for name, _, _, hidden in columns if not hidden]
        possible = [name for name, kind, _, _ in columns if kind.upper() == "BLOB"]
        primary = [name for name, _, pk, _ in columns if pk]
        if virtual := "using vec0" in declared.lower():
            inside = declared[declared.index("(") + 1 : declared.rindex(")")]
            possible = [match[1] for part in re.split(r",(?![^\[]*\])", inside) if (match := _FLOATS.match(part))]
            primary = [match[1] for match in re.finditer(r"(\w+)\s+(?:integer|text)\s+primary\s+key", declared, re.I)]
        vector = chosen(self.place, "vectors", "vectors=...", vectors, possible, names)
        unnamed = ids is None and len(primary) != 1 and "id" not in names
        key = "rowid" if unnamed else chosen_ids(self.place, ids, primary, names)
        column = quoted(vector)
        count, blobs, least, most = run(
            f"SELECT count(*), sum(typeof({column}) = 'blob'), min(coalesce(length({column}), 0)), "
            f"max(length({column})) FROM {table}"
        ).fetchone()
        if count and (blobs != count or least != most or least % 4 or not least):
            raise InvalidInputError(
                f"{self.place} has vectors of {least} to {most} bytes in column {vector!r}, {count - blobs:,} of them "
                "missing or no bytes. Float32 vectors of one length are needed in each row: name another column, or a "
                "table that has them."
            )
        others = [name for name in names if name not in (vector, key)]
        wanted = ", ".join(["rowid" if key == "rowid" else quoted(key), *map(quoted, (vector, *others))])

        def read(size: int) -> Iterator[StoredRows]:
            # One statement to its end, in pieces: a virtual table is no faster at its end than at its beginning.
            cursor = self.connection.cursor().execute(f"SELECT {wanted} FROM {table}")
            while rows := cursor.fetchmany(size):
                codes = np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(rows), -1)
                yield stored([row[0] for row in rows], codes, [dict(zip(others, row[2:], strict=True)) for row in rows])

        metric = "cosine" if virtual and _COSINE.search(declared) else None
        return NamedRows(int(count), int(most or 0) // 4, vector, read, metric)

    def statement(self, layout: StoreLayout, shortlist: int, limit: int, where: str = "") -> str:
        """Return the SQL of a search; ``:query`` is the full code of a query as float32 bytes."""
        cut = ":query" if layout.full is None else f"vec_slice(:query, 0, {layout.short})"
        if self.precision == "binary":
            cut = f"vec_quantize_binary({cut})"
        rows = quoted(self.table)
        chosen = f" AND rowid IN (SELECT key FROM {rows} WHERE {where})" if where else ""
        distance = f"{_DISTANCES[layout.compared]}(code, :query)"
        return (
            f"WITH shortlist AS (\n    SELECT rowid FROM {self._short}\n    WHERE short MATCH {cut} AND k = {shortlist}"
            f"{chosen}\n)\nSELECT id, {distance} AS distance, payload\n"
            f"FROM shortlist JOIN {rows} ON key = shortlist.rowid\nORDER BY distance IS NULL, distance, id\n"
            f"LIMIT {limit}"
        )

    def hits(self, request: Request, layout: StoreLayout) -> Iterator[Hits]:
        """Find and rerank in one statement a query."""
        where, values = where_of(request.where, request.native, condition)
        sql = self.statement(layout, request.shortlist, request.limit, where)
        for query in np.ascontiguousarray(request.short if request.full is None else request.full, dtype="<f4"):
            found = self.connection.execute(sql, {"query": query.tobytes()} | values).fetchall()
            cosines = layout.compared == "cosine"
            scores = [1 - row[1] if cosines and row[1] is not None else row[1] for row in found]
            yield [row[0] for row in found], scores, [json.loads(row[2]) for row in found]
