"""Codes in PostgreSQL with pgvector: one column, an index on its prefix, and reranking in the same statement.

Codes of one length are kept in the precision of the index: as vector, halfvec, or bit, which is compared by Hamming
distance. With two lengths the column is of the longer codes in float32.

The SQL of index and search is in `pgvector_sql`, also for a table that exists. Needs the extra "stores".
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import require
from firstk.exceptions import InvalidInputError
from firstk.search.stores import filters
from firstk.search.stores.contract import (
    EXTRA,
    CodedRows,
    Engine,
    Hits,
    Id,
    NamedRows,
    Request,
    StoredRows,
    StoreLayout,
    check_ascending,
    explained,
)
from firstk.search.stores.filters import COMPARED, Condition, where_of
from firstk.search.stores.named_columns import check_filled, chosen_ids, chosen_vectors, stored
from firstk.search.stores.pgvector_sql import INDEXED, LONGEST, Statements, quoted, statements

if TYPE_CHECKING:
    import psycopg

# Types of vectors, and the columns of a table with their types and whether they are its primary key.
_TYPE = re.compile(r"(vector|halfvec)(?:\((\d+)\))?")
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod),
    EXISTS (SELECT 1 FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY(indkey))
FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_JSON_KINDS = {"bool": "boolean", "number": "number", "text": "string"}


@dataclass(frozen=True, eq=False)
class Pgvector(Engine):
    """A table of PostgreSQL: columns id, code and payload, and an HNSW index on the prefix of the code.

    Attributes
    ----------
    connection : psycopg.Connection
        With ``autocommit=True``. Credentials are those of the connection; they are kept nowhere else.
    table : str
        With its schema, if need be.
    precision : {"float32", "float16", "binary"}
        Of the index, and of the column where there is one length; "binary": signs.
    indexed : bool
        Without an index every prefix is compared, which is exact.
    owned : bool
        Whether `close` closes the connection.
    """

    connection: psycopg.Connection[Any]
    table: str = "documents"
    precision: str = "float32"
    indexed: bool = True
    owned: bool = False

    name = "pgvector"
    purpose = "A table of PostgreSQL"
    packages = ("psycopg", "pgvector")
    raises = ("psycopg:Error",)
    precisions = tuple(INDEXED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not getattr(self.connection, "autocommit", False):
            raise InvalidInputError(
                "Pgvector takes a psycopg.Connection with autocommit=True: each batch is a transaction of its own, so "
                "that an interrupted push keeps what was written."
            )

    @classmethod
    def connect(cls, address: str, name: str = "documents", **settings: Any) -> Pgvector:
        """Connect by a URL or key words of libpq; what is missing, such as the password, is from the environment."""
        psycopg = require("psycopg", EXTRA, cls.purpose)
        secrets = []
        with contextlib.suppress(psycopg.Error):
            secrets.append(psycopg.conninfo.conninfo_to_dict(address).get("password") or "")
        with explained("The connection to PostgreSQL", (psycopg.Error,), address, secrets):
            return cls(psycopg.connect(address, autocommit=True), name, owned=True, **settings)

    def check(self, layout: StoreLayout) -> None:
        """Raise an error for codes that are too long."""
        longest = INDEXED[self.precision][1]
        if layout.width > LONGEST or (self.indexed and layout.short > longest):
            raise InvalidInputError(
                f"pgvector indexes at most {longest} coordinates in {self.precision} and stores at most {LONGEST}. "
                f"Got short={layout.short} and full={layout.full}."
            )
        if self.precision == "binary" and layout.metric == "l2" and not layout.unit:
            raise InvalidInputError("Signs rank by angle, not by distance. Use another precision than 'binary' for l2.")

    def precision_of(self, layout: StoreLayout) -> str:
        """In which precision codes are kept: that of the column, where the table is there."""
        found = self.connection.execute(
            "SELECT format_type(atttypid, NULL) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attname = 'code'",
            (quoted(self.table),),
        ).fetchone()
        kinds = {kind: name for name, (kind, _) in INDEXED.items()}
        if found is not None:
            return kinds[found[0].rpartition(".")[2]]
        return self.precision if layout.full is None else "float32"

    def layout(self) -> StoreLayout | None:
        """Return the layout, which is the comment of the table."""
        found = self.connection.execute(
            "SELECT obj_description(to_regclass(%s), 'pg_class'), to_regclass(%s) IS NOT NULL",
            (quoted(self.table), quoted(self.table)),
        ).fetchone()
        if found is None or not found[1]:
            return None
        layout = StoreLayout.read(filters.record_in(found[0]), self.place)
        register(self.connection)
        return layout

    def create(self, layout: StoreLayout) -> None:
        """Create the extension if it is missing, and the table."""
        self._check_extension()
        kind = "bigint" if layout.ids == "int" else 'text COLLATE "C"'
        place, column = quoted(self.table), INDEXED[self.precision if layout.full is None else "float32"][0]
        with self.connection.transaction():
            self.connection.execute(
                f"CREATE TABLE {place} (id {kind} PRIMARY KEY, code {column}({layout.width}) NOT NULL, "
                "payload jsonb NOT NULL DEFAULT '{}')"
            )
            # A comment takes no parameters; the record is ours, and quotes are doubled.
            self.connection.execute(f"COMMENT ON TABLE {place} IS '" + layout.record().replace("'", "''") + "'")
        register(self.connection)

    def drop(self) -> None:
        """Delete the table."""
        self.connection.execute(f"DROP TABLE IF EXISTS {quoted(self.table)}")

    def upsert(self, rows: CodedRows) -> None:
        """Write rows in one transaction."""
        from pgvector import Bit, HalfVector, Vector
        from psycopg.types.json import Jsonb

        layout = self.layout()
        assert layout is not None
        kinds: Any = {"float32": Vector, "float16": HalfVector, "binary": lambda code: Bit(np.asarray(code) > 0)}
        held = kinds[self.precision_of(layout)]
        written = zip(rows.ids, map(held, rows.longest), map(Jsonb, rows.payloads), strict=True)
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {quoted(self.table)} (id, code, payload) VALUES (%s, %s, %s) ON CONFLICT (id) "
                "DO UPDATE SET code = EXCLUDED.code, payload = EXCLUDED.payload",
                list(written),
            )

    def finish(self) -> None:
        """Build the index, which is faster after the rows than before."""
        layout = self.layout()
        if self.indexed and layout is not None:
            self.connection.execute(self.statements(layout, 1, 1).index)
        self.connection.execute(f"ANALYZE {quoted(self.table)}")

    def statements(self, layout: StoreLayout, limit: int, shortlist: int, where: str = "") -> Statements:
        """Return the SQL of a search."""
        return statements(
            self.table,
            layout.short,
            layout.full,
            columns=("payload",),
            metric=layout.compared,
            precision=self.precision,
            stored=self.precision_of(layout),
            limit=limit,
            shortlist=shortlist,
            where=where,
        )

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows."""
        self.connection.execute(f"DELETE FROM {quoted(self.table)} WHERE id = ANY(%s)", (list(ids),))

    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return ids that are there."""
        found = self.connection.execute(f"SELECT id FROM {quoted(self.table)} WHERE id = ANY(%s)", (list(ids),))
        return {row[0] for row in found}

    def count(self) -> int:
        """Return the number of rows."""
        found = self.connection.execute(f"SELECT count(*) FROM {quoted(self.table)}").fetchone()
        return int(found[0]) if found else 0

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield rows in the order of their ids."""
        last: list[Any] = []
        for ids, codes, payloads in self._pages(size, "id", "code", "payload"):
            check_ascending(ids, *last)
            last = [ids[-1]]
            yield StoredRows(list(ids), codes, list(payloads))

    def _pages(self, size: int, key: str, code: str, payload: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield ids, codes and payloads in the order of ids, by names and expressions in SQL."""
        register(self.connection)
        last: list[Any] = []
        while found := self.connection.execute(
            f"SELECT {key}, {code}, {payload} FROM {quoted(self.table)} AS one {f'WHERE {key} > %s ' if last else ''}"
            f"ORDER BY {key} LIMIT {int(size)}",
            (*values, *last) or None,
        ).fetchall():
            ids, codes, payloads = zip(*found, strict=True)
            if type(codes[0]).__name__ == "Bit" or isinstance(codes[0], str):  # signs
                texts = [one if isinstance(one, str) else one.to_text() for one in codes]
                Z = np.where(np.array([list(one) for one in texts]) == "1", np.float32(1), np.float32(-1))
            else:
                Z = np.stack([np.asarray(one.to_numpy() if hasattr(one, "to_numpy") else one) for one in codes])
            yield ids, Z.astype(np.float32), payloads
            last = [ids[-1]]

    def read_columns(self, vectors: str | None, ids: str | None) -> NamedRows:
        """Open a table; ids are its primary key, and all other columns the payload, as PostgreSQL writes them in JSON.

        Vectors are of pgvector's types vector and halfvec.
        """
        register(self.connection)
        found = self.connection.execute(_COLUMNS, (quoted(self.table),)).fetchall()
        types = {name: _TYPE.fullmatch(kind.rpartition(".")[2]) for name, kind, _ in found}
        vector = chosen_vectors(self.place, vectors, [name for name, kind in types.items() if kind], list(types))
        key = chosen_ids(self.place, ids, [name for name, _, primary in found if primary], list(types))
        column, ident = filters.quoted(vector), filters.quoted(key)
        count, distinct, missing, width, widest = self.connection.execute(
            f"SELECT count(*), count(DISTINCT {ident}), count(*) FILTER (WHERE {column} IS NULL), "
            f"min(vector_dims({column})), max(vector_dims({column})) FROM {quoted(self.table)}"
        ).fetchone() or (0, 0, 0, None, None)
        check_filled(self.place, key, count, distinct, missing, width, widest)

        def read(size: int) -> Iterator[StoredRows]:
            beside, seen = "to_jsonb(one) - %s::text - %s::text", 0
            for names, codes, payloads in self._pages(size, ident, column, beside, (vector, key)):
                seen += len(names)  # in the order of the database's collation, which cannot be checked here
                if seen > count:
                    raise InvalidInputError(
                        f"{self.place} has {count:,} rows and gave more: it was changed while it was read, or its "
                        "index is damaged. Run REINDEX TABLE, or read it while nobody writes."
                    )
                yield stored(names, codes, payloads)

        return NamedRows(int(count), int(width or 0), vector, read)

    def hits(self, request: Request, layout: StoreLayout) -> Iterator[Hits]:
        """Find and rerank in one statement a query."""
        from pgvector import Vector

        where, values = where_of(request.where, request.native, _condition)
        if request.native is not None:
            where = where.replace("%", "%%")  # which psycopg would take for the place of a value
        found_by = self.statements(layout, request.limit, request.shortlist, where)
        queries = request.short if request.full is None else request.full
        with self.connection.transaction():
            for setting in found_by.settings:
                self.connection.execute(setting)
            for query in queries:
                found = self.connection.execute(found_by.search, {"query": Vector(query)} | values).fetchall()
                yield [row[0] for row in found], [row[1] for row in found], [row[2] for row in found]

    def _check_extension(self) -> None:
        there = self.connection.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
        found = there.fetchone()
        if found is None:
            raise InvalidInputError(
                "This PostgreSQL server has no extension 'vector'. Install pgvector on the server (0.7 or later), and "
                "run CREATE EXTENSION vector."
            )
        self.connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        (version,) = self.connection.execute(
            "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        ).fetchone() or ("0",)
        if tuple(int(part) for part in version.split(".")[:2]) < (0, 8):
            raise InvalidInputError(
                f"This PostgreSQL server has pgvector {version}; searches with a filter need 0.8 or later. Update it, "
                "and run ALTER EXTENSION vector UPDATE."
            )


def register(connection: psycopg.Connection[Any]) -> None:
    """Teach a connection the types of pgvector."""
    from pgvector.psycopg import register_vector

    register_vector(connection)


def _condition(one: Condition, i: int) -> tuple[str, dict[str, Any]]:
    """Compare JSON values as such: numbers by value and text by code points, and no row can fail a cast."""
    name, value = f"n{i}", f"v{i}"
    values: dict[str, Any] = {name: one.name}
    if one.operator in ("eq", "in"):
        # Containment can use an index: CREATE INDEX ON documents USING gin (payload).
        options = []
        for j, wanted in enumerate(one.values):
            values[f"{value}_{j}"] = json.dumps({one.name: wanted})
            options.append(f"payload @> %({value}_{j})s::jsonb")
        del values[name]
        return f"({' OR '.join(options)})", values
    values[value] = one.value if one.kind == "text" else json.dumps(one.value)
    of_kind = f"jsonb_typeof(payload -> %({name})s) = '{_JSON_KINDS[one.kind]}'"
    if one.kind == "text":
        compared = f'payload ->> %({name})s COLLATE "C" {COMPARED[one.operator]} %({value})s'
        return f"({of_kind} AND {compared})", values
    return f"({of_kind} AND payload -> %({name})s {COMPARED[one.operator]} %({value})s::jsonb)", values
