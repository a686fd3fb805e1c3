"""Vectors in a table of DuckDB: a column of arrays or lists of floats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk.search.stores._sql import quoted
from firstk.search.stores.contract import StoredRows
from firstk.search.stores.foreign._rows import ForeignRows, chosen, chosen_vectors, possible_ids, stored

if TYPE_CHECKING:
    from firstk.search.stores.duckdb import DuckDB

_TYPE = re.compile(r"(?:FLOAT|DOUBLE)\[(\d*)\]")


def open_rows(engine: DuckDB, vectors: str | None, ids: str | None) -> ForeignRows:
    """Open a table; ids are its primary key, and all other columns the payload."""
    found = engine.rows_of(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index", [engine.table]
    )
    names = [name for name, _ in found]
    possible = [name for name, kind in found if _TYPE.fullmatch(kind)]
    vector = chosen_vectors(engine.place, vectors, possible, names)
    primary = engine.rows_of(
        "SELECT constraint_column_names FROM duckdb_constraints() WHERE table_name = ? AND "
        "constraint_type = 'PRIMARY KEY'",
        [engine.table],
    )
    keys = possible_ids(primary[0][0] if primary else [], names)
    key = chosen(engine.place, "ids", "ids=... (--id)", ids, keys, names)
    table, column, ident = quoted(engine.table), quoted(vector), quoted(key)
    ((count, distinct, missing, width, widest),) = engine.rows_of(
        f"SELECT count(*), count(DISTINCT {ident}), count(*) FILTER (WHERE {column} IS NULL), min(len({column})), "
        f"max(len({column})) FROM {table}"
    )
    if distinct != count or missing or width != widest:
        raise InvalidInputError(
            f"{engine.place} has {count:,} rows, {distinct:,} different ids in column {key!r}, {missing:,} rows "
            f"without a vector, and vectors of {width} to {widest} numbers. Each row needs its own id and a vector "
            "of one length: name other columns, or a table that has both."
        )
    others = [name for name in names if name not in (vector, key)]
    wanted = ", ".join(["rowid", ident, column, *map(quoted, others)])

    def read(size: int) -> Iterator[StoredRows]:
        last = -1
        # By rowid, whose order is that of the file: a page reads what it returns, and not all before it.
        while rows := engine.rows_of(
            f"SELECT {wanted} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT {int(size)}", [last]
        ):
            last = rows[-1][0]
            payloads = [dict(zip(others, row[3:], strict=True)) for row in rows]
            yield stored([row[1] for row in rows], np.array([row[2] for row in rows], np.float32), payloads)

    return ForeignRows(int(count), int(width or 0), vector, read)
