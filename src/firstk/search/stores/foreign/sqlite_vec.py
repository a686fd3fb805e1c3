"""Vectors in a SQLite file: a virtual table of sqlite-vec, or a table with a column of float32 bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk.search.stores._sql import quoted
from firstk.search.stores.contract import StoredRows
from firstk.search.stores.foreign._rows import ForeignRows, chosen, possible_ids, stored

if TYPE_CHECKING:
    from firstk.search.stores.sqlite_vec import SqliteVec

# A column of the declaration of a virtual table; sqlite-vec's other options are words after it.
_FLOATS = re.compile(r"^\s*[\"'`\[]?(\w+)[\"'`\]]?\s+float(?:32)?\s*\[(\d+)\]", re.IGNORECASE)
_COSINE = re.compile(r"distance_metric\s*=\s*cosine", re.IGNORECASE)


def open_rows(engine: SqliteVec, vectors: str | None, ids: str | None) -> ForeignRows:
    """Open a table; ids are its primary key or its rowid, and all other columns the payload."""
    run, table = engine.connection.execute, quoted(engine.table)
    (declared,) = run("SELECT sql FROM sqlite_master WHERE name = ?", (engine.table,)).fetchone() or ("",)
    virtual = "using vec0" in declared.lower()
    columns = run("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)", (engine.table,)).fetchall()
    names = [name for name, _, _, hidden in columns if not hidden]
    if virtual:
        inside = declared[declared.index("(") + 1 : declared.rindex(")")]
        possible = [match[1] for part in re.split(r",(?![^\[]*\])", inside) if (match := _FLOATS.match(part))]
    else:
        possible = [name for name, kind, _, _ in columns if kind.upper() == "BLOB"]
    vector = chosen(engine.place, "vectors", "vectors=... (--vectors)", vectors, possible, names)
    primary = [name for name, _, pk, _ in columns if pk]
    if virtual:
        primary = [match[1] for match in re.finditer(r"(\w+)\s+(?:integer|text)\s+primary\s+key", declared, re.I)]
    keys = possible_ids(primary, names)
    key = "rowid" if ids is None and not keys else chosen(engine.place, "ids", "ids=... (--id)", ids, keys, names)
    column = quoted(vector)
    count, blobs, least, most = run(
        f"SELECT count(*), sum(typeof({column}) = 'blob'), min(coalesce(length({column}), 0)), max(length({column})) "
        f"FROM {table}"
    ).fetchone()
    if count and (blobs != count or least != most or least % 4 or not least):
        raise InvalidInputError(
            f"{engine.place} has vectors of {least} to {most} bytes in column {vector!r}, {count - blobs:,} of them "
            "missing or no bytes. Float32 vectors of one length are needed in each row: name another column, or a "
            "table that has them."
        )
    others = [name for name in names if name not in (vector, key)]
    wanted = ", ".join(["rowid" if key == "rowid" else quoted(key), *map(quoted, (vector, *others))])

    def read(size: int) -> Iterator[StoredRows]:
        # One statement to its end, fetched in pieces: a virtual table is no faster at its end than at its beginning.
        cursor = engine.connection.cursor().execute(f"SELECT {wanted} FROM {table}")
        while rows := cursor.fetchmany(size):
            codes = np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(rows), -1)
            yield stored([row[0] for row in rows], codes, [dict(zip(others, row[2:], strict=True)) for row in rows])

    metric = "cosine" if virtual and _COSINE.search(declared) else None
    return ForeignRows(int(count), int(most or 0) // 4, vector, read, metric)
