"""Vectors in a table of PostgreSQL, of pgvector's types vector and halfvec."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk.search.stores import _sql
from firstk.search.stores.contract import StoredRows
from firstk.search.stores.foreign._rows import ForeignRows, chosen, chosen_vectors, possible_ids, stored
from firstk.search.stores.pgvector import floats, quoted, register

if TYPE_CHECKING:
    from firstk.search.stores.pgvector import Pgvector

_TYPE = re.compile(r"(vector|halfvec)(?:\((\d+)\))?")
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod),
    EXISTS (SELECT 1 FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY(indkey))
FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


def open_rows(engine: Pgvector, vectors: str | None, ids: str | None) -> ForeignRows:
    """Open a table; ids are its primary key, and all other columns the payload, as PostgreSQL writes them in JSON."""
    register(engine.connection)
    found = engine.connection.execute(_COLUMNS, (quoted(engine.table),)).fetchall()
    types = {name: _TYPE.fullmatch(kind.rpartition(".")[2]) for name, kind, _ in found}
    possible = [name for name, kind in types.items() if kind]
    vector = chosen_vectors(engine.place, vectors, possible, list(types))
    keys = possible_ids([name for name, _, primary in found if primary], list(types))
    key = chosen(engine.place, "ids", "ids=... (--id)", ids, keys, list(types))
    table, column, ident = quoted(engine.table), _sql.quoted(vector), _sql.quoted(key)
    count, distinct, missing, width = engine.connection.execute(
        f"SELECT count(*), count(DISTINCT {ident}), count(*) FILTER (WHERE {column} IS NULL), "
        f"(SELECT vector_dims({column}) FROM {table} WHERE {column} IS NOT NULL LIMIT 1) FROM {table}"
    ).fetchone() or (0, 0, 0, 0)
    if distinct != count or missing:
        raise InvalidInputError(
            f"{engine.place} has {count:,} rows, {distinct:,} different ids in column {key!r} and {missing:,} rows "
            "without a vector. Each row needs an id of its own and a vector: name another column, or a view that has "
            "both."
        )

    def read(size: int) -> Iterator[StoredRows]:
        last: tuple[Any, ...] = ()
        while True:
            after = f"WHERE {ident} > %s " if last else ""
            rows = engine.connection.execute(
                f"SELECT {ident}, {column}, to_jsonb(one) - %s::text - %s::text FROM {table} AS one {after}"
                f"ORDER BY {ident} LIMIT {int(size)}",
                (vector, key, *last),
            ).fetchall()
            if not rows:
                return
            names, held, payloads = zip(*rows, strict=True)
            yield stored(names, np.stack([floats(one) for one in held]), payloads)
            last = (names[-1],)

    return ForeignRows(int(count), int(width or 0), vector, read)
