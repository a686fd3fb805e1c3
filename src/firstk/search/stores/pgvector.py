"""Codes in PostgreSQL with pgvector: one column, an index on its prefix, and reranking in the same statement.

Codes of one length are kept in the precision of the index: as vector, halfvec, or bit, which is compared by Hamming
distance. With two lengths the column is of the longer codes in float32.

`subvector` cuts a code in the database, so the short code is not stored twice: an expression index holds it. The SQL is
also there without a connection (`statements`), for a table that exists. Needs the extra "stores".
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_count, require
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
from firstk.search.stores.named_columns import chosen_ids, chosen_vectors, stored

if TYPE_CHECKING:
    import psycopg

__all__ = ["statements"]

# By the metric: pgvector's operator, the name in its operator classes, and a score in SQL from a distance.
OPERATORS = {
    "cosine": ("<=>", "cosine", "1 - ({})"),
    "inner_product": ("<#>", "ip", "-({})"),
    "l2": ("<->", "l2", "{}"),
}
# By the precision of the index: the type of what is indexed, and the longest that an HNSW index takes.
_INDEXED = {"float32": ("vector", 2000), "float16": ("halfvec", 4000), "binary": ("bit", 64000)}
_LONGEST = 16000
# Types of vectors, and the columns of a table with their types and whether they are its primary key.
_TYPE = re.compile(r"(vector|halfvec)(?:\((\d+)\))?")
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod),
    EXISTS (SELECT 1 FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY(indkey))
FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_JSON_KINDS = {"bool": "boolean", "number": "number", "text": "string"}


def quoted(name: str) -> str:
    """Return a name of a table or column for SQL; a dot separates a schema from a table."""
    return ".".join(map(filters.quoted, name.split(".")))


@dataclass(frozen=True)
class Statements:
    """The SQL of a table of codes: what to run once, and what to run for each query.

    Attributes
    ----------
    index : str
        Creates the index of the short prefix.
    settings : tuple of str
        Run in the transaction of a search: how far the graph is searched.
    search : str
        Takes the full code of a query as ``%(query)s``; gives ids, scores and the other columns, best first.
    """

    index: str
    settings: tuple[str, ...]
    search: str

    def __str__(self) -> str:
        return ";\n\n".join((self.index, "BEGIN", *self.settings, self.search, "COMMIT")) + ";"


def statements(
    table: str,
    short: int,
    full: int | None = None,
    *,
    code: str = "code",
    key: str = "id",
    columns: Sequence[str] = (),
    metric: str = "cosine",
    precision: str = "float32",
    stored: str = "float32",
    limit: int = 10,
    shortlist: int = 100,
    where: str = "",
) -> Statements:
    """Return the SQL for a table that exists: an index on the first `short` coordinates, and a search with reranking.

    Parameters
    ----------
    table : str
        With its schema, if need be.
    short : int
        Length of the indexed prefix.
    full : int, optional
        Width of the column of codes; None ranks by the short prefix alone.
    code, key : str
        Columns of codes (type ``vector``) and of ids.
    columns : sequence of str
        Further columns to return.
    metric : {"cosine", "inner_product", "l2"}
        Cosine for codes of unit norm: a prefix of a unit vector has no unit norm.
    precision : {"float32", "float16", "binary"}
        Of the index. "binary" indexes signs; give it a longer shortlist.
    stored : {"float32", "float16", "binary"}
        Type of the column: ``vector``, or of codes of one length ``halfvec`` or ``bit``, which are indexed as they are.
    limit, shortlist : int
    where : str
        A condition in SQL.

    Examples
    --------
    >>> print(statements("documents", 32, 384, limit=10, shortlist=100).search)
    SELECT "id", 1 - ("code" <=> %(query)s::vector(384)) AS score
    FROM (
        SELECT "id", "code" FROM "documents"
        ORDER BY subvector("code", 1, 32)::vector(32) <=> subvector(%(query)s::vector(384), 1, 32)::vector(32)
        LIMIT 100
    ) AS shortlist
    ORDER BY "code" <=> %(query)s::vector(384), "id"
    LIMIT 10
    """
    owner = "pgvector.statements"
    short = check_count(short, "short", owner, most=_LONGEST)
    width = check_count(short if full is None else full, "full", owner, most=_LONGEST)
    sign, classes, score = OPERATORS[check_choice(metric, tuple(OPERATORS), "metric", owner)]
    check_choice(precision, tuple(_INDEXED), "precision", owner)
    limit, shortlist = check_count(limit, "limit", owner), check_count(shortlist, "shortlist", owner)
    if width < short:
        raise bad_parameter("full", owner, f"None or an int of at least {short} (the length of 'short')", full)
    if (full is not None or precision == "binary") and shortlist < limit:
        raise bad_parameter("shortlist", owner, f"an int of at least {limit} (the limit)", shortlist)
    place, column, ident = quoted(table), quoted(code), quoted(key)
    given = f"%(query)s::vector({width})"
    wide = shortlist if full is not None or precision == "binary" else limit
    if stored != "float32":
        wide, precision = max(100, 4 * limit), stored
        held, asked = column, _prefix(given, short, width, stored)
    else:
        held, asked = _prefix(column, short, width, precision), _prefix(given, short, width, precision)
    near = again = f"{held} {'<~>' if precision == 'binary' else sign} {asked}"
    if stored == "float32":
        again = f"{column} {sign} {given}"
    elif stored == "binary":
        score = f"1 - 2 * ({{}}) / {short}.0"  # the cosine of signs
    family = "bit_hamming_ops" if precision == "binary" else f"{_INDEXED[precision][0]}_{classes}_ops"
    name = quoted(f"{table.rpartition('.')[2][:40]}_{code[:12]}_{short}_{precision}")
    index = f"CREATE INDEX IF NOT EXISTS {name} ON {place} USING hnsw (({held}) {family})"
    named = ", ".join([ident, column, *map(quoted, columns)])
    beside = "".join(f", {quoted(one)}" for one in columns)
    condition = f"\n    WHERE {where}" if where else ""
    # The graph is searched as far as the shortlist, and further where a filter leaves too few.
    settings = (
        f"SET LOCAL hnsw.ef_search = {min(1000, max(40, wide))}",
        "SET LOCAL hnsw.iterative_scan = 'relaxed_order'",
    )
    search = (
        f"SELECT {ident}, {score.format(again)} AS score{beside}\n"
        f"FROM (\n    SELECT {named} FROM {place}{condition}\n"
        f"    ORDER BY {near}\n    LIMIT {wide}\n) AS shortlist\n"
        f"ORDER BY {again}, {ident}\nLIMIT {limit}"
    )
    return Statements(index, settings, search)


def _prefix(code: str, short: int, width: int, precision: str) -> str:
    """Return the first coordinates of a code as they are indexed."""
    cut = code if short == width else f"subvector({code}, 1, {short})"
    if precision == "binary":
        return f"binary_quantize({cut})::bit({short})"
    return f"{cut}::{_INDEXED[precision][0]}({short})"


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
    precisions = tuple(_INDEXED)

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
        longest = _INDEXED[self.precision][1]
        if layout.width > _LONGEST or (self.indexed and layout.short > longest):
            raise InvalidInputError(
                f"pgvector indexes at most {longest} coordinates in {self.precision} and stores at most {_LONGEST}. "
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
        kinds = {kind: name for name, (kind, _) in _INDEXED.items()}
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
        place, column = quoted(self.table), _INDEXED[self.precision if layout.full is None else "float32"][0]
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
        count, distinct, missing, width = self.connection.execute(
            f"SELECT count(*), count(DISTINCT {ident}), count(*) FILTER (WHERE {column} IS NULL), "
            f"min(vector_dims({column})) FROM {quoted(self.table)}"
        ).fetchone() or (0, 0, 0, 0)
        if distinct != count or missing:
            raise InvalidInputError(
                f"{self.place} has {count:,} rows, {distinct:,} different ids in column {key!r} and {missing:,} rows "
                "without a vector. Each row needs an id of its own and a vector: name another column, or a view that "
                "has both."
            )

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
