"""A linear encoder as SQL: a function for PostgreSQL or a macro for DuckDB, and a table with its axes.

The axes are a row each, so that a prefix reads its own only.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from firstk._base.atomic_file import atomic_file
from firstk._base.checks import check_choice
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.integrations._codes import EncoderLike, exportable, single
from firstk.integrations.standalone.stored_bytes import StoredBytes
from firstk.integrations.standalone.stored_bytes_sql import numbers, postgresql_bytes, sqlite_bytes

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")

_POSTGRESQL = """-- Codes of vectors of {p} numbers: their first k coordinates, k from 1 to {d}. Written by firstk.
-- SELECT {name}(ARRAY[...], 64), {name}(ARRAY[...], 64, query => true); with pgvector: {name}(x::real[], 64)::vector
BEGIN;
CREATE TABLE {name}_axes (n integer PRIMARY KEY, axis real[] NOT NULL);
CREATE TABLE {name}_means (of_queries boolean PRIMARY KEY, mean double precision[] NOT NULL);
{rows}
CREATE FUNCTION {name}(x double precision[], k integer DEFAULT {d}, query boolean DEFAULT false) RETURNS real[]
LANGUAGE plpgsql STABLE PARALLEL SAFE STRICT AS $$
DECLARE
    z double precision[];
    norm double precision;
BEGIN
    IF k < 1 OR k > {d} THEN RAISE EXCEPTION 'k must be from 1 to {d}, got %', k; END IF;
    IF cardinality(x) <> {p} THEN RAISE EXCEPTION 'a vector has {p} numbers, got %', cardinality(x); END IF;
    IF array_position(x, NULL) IS NOT NULL OR x && '{{NaN,Infinity,-Infinity}}' THEN
        RAISE EXCEPTION 'a vector has finite numbers';
    END IF;
    SELECT array_agg(s.value ORDER BY s.n) INTO z FROM (
        SELECT a.n, (SELECT sum(t.a * (t.b - t.c)) FROM unnest(a.axis, x, m.mean) AS t(a, b, c)) AS value
        FROM {name}_axes AS a, {name}_means AS m WHERE a.n <= k AND m.of_queries = query
    ) AS s;
{unit}    RETURN z;
END $$;
COMMIT;
"""
_POSTGRESQL_UNIT = """    SELECT sqrt(sum(v * v)) INTO norm FROM unnest(z) AS v;
    IF norm > 0 THEN SELECT array_agg(v / norm ORDER BY i) INTO z FROM unnest(z) WITH ORDINALITY AS t(v, i); END IF;
"""
_DUCKDB = """-- Codes of vectors of {p} numbers: their first k coordinates, k from 1 to {d}. Written by firstk.
-- SELECT {name}([...], k := 64), {name}([...], k := 64, query := true);
-- SELECT id, {name}(x, k := 64) FROM vectors
BEGIN;
CREATE TABLE {name}_axes (n INTEGER PRIMARY KEY, axis DOUBLE[] NOT NULL);
CREATE TABLE {name}_means (of_queries BOOLEAN PRIMARY KEY, mean DOUBLE[] NOT NULL);
{rows}
CREATE MACRO {name}(x, k := {d}, query := false) AS CASE
    WHEN k < 1 OR k > {d} THEN error('k must be from 1 to {d}, got ' || k)
    WHEN len(x) <> {p} THEN error('a vector has {p} numbers, got ' || len(x))
    WHEN NOT list_bool_and(list_transform(x::DOUBLE[], lambda v: v IS NOT NULL AND isfinite(v)))
        THEN error('a vector has finite numbers')
    WHEN x IS NOT NULL THEN {body}::FLOAT[]
END;
COMMIT;
"""
_DUCKDB_CODE = """(
        SELECT list(list_dot_product(a.axis, c.x) ORDER BY a.n) AS z
        FROM {name}_axes AS a, (
            SELECT list_transform(list_zip(coalesce(x::DOUBLE[], m.mean), m.mean), lambda pair: pair[1] - pair[2]) AS x
            FROM {name}_means AS m WHERE m.of_queries = query
        ) AS c
        WHERE a.n <= k
    )"""
_DUCKDB_UNIT = """(
        SELECT CASE WHEN t.norm > 0 THEN list_transform(t.z, lambda v: v / t.norm) ELSE t.z END
        FROM (SELECT s.z, sqrt(list_dot_product(s.z, s.z)) AS norm FROM {code} AS s) AS t
    )"""
DIALECTS = ("postgresql", "duckdb", "sqlite")


def to_sql(
    encoder: EncoderLike,
    path: str | Path,
    *,
    dialect: str = "postgresql",
    name: str = "firstk_encode",
    bytes: int | None = None,
) -> Path:
    """Write a file of SQL, which ends in .sql, that makes a function for PostgreSQL or a macro for DuckDB.

    ``name(x, k, query)`` takes a vector as an array of numbers and gives the codes of the library, to 1e-5 and better.
    With `bytes`, PostgreSQL and SQLite also decode and score embedded bits, which are kept as bytea or as blobs.

    Parameters
    ----------
    encoder : PrefixEncoder or FittedEncoder
        Linear: SQL is no place for a network.
    path : path
    dialect : {"postgresql", "duckdb", "sqlite"}
        SQLite has neither arrays nor functions: it needs `bytes`, and its queries are encoded elsewhere.
    name : str
        Of the function; the names of its tables, views and further functions begin with it.
    bytes : int, optional
        Of embedded bits, at most.
    """
    owner = "to_sql"
    found, network = exportable(encoder, owner)
    if network is not None:
        raise InvalidInputError(
            "to_sql takes linear encoders, and this one has an MLP. Export it to ONNX, numpy or js."
        )
    check_choice(dialect, DIALECTS, "dialect", owner)
    if dialect == "sqlite" and bytes is None:
        raise InvalidInputError(
            "SQLite has no arrays to encode vectors with. Give bytes, of embedded bits that it decodes."
        )
    if dialect == "duckdb" and bytes is not None:
        raise InvalidInputError("Embedded bits are decoded in PostgreSQL and SQLite. Leave bytes out for DuckDB.")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInputError(
            f"The name of a function is of small letters, digits and underscores, at most 51. Got {name!r:.60}."
        )
    file = Path(path)
    if file.suffix != ".sql":
        raise InvalidInputError(f"A file of SQL ends in .sql. Got '{file.name}'.")
    stored = None if bytes is None else StoredBytes.of(found, bytes)
    if dialect == "sqlite":
        assert stored is not None
        program = sqlite_bytes(stored, name)
    elif dialect == "duckdb":
        code = _DUCKDB_CODE.format(name=name)
        body = _DUCKDB_UNIT.format(code=code) if found.normalized else code
        program = _DUCKDB.format(name=name, p=found.p, d=found.d, rows=_rows(found, name, "[{}]"), body=body)
    else:
        unit, rows = _POSTGRESQL_UNIT if found.normalized else "", _rows(found, name, "'{{{}}}'")
        program = _POSTGRESQL.format(name=name, p=found.p, d=found.d, rows=rows, unit=unit)
        program += "" if stored is None else postgresql_bytes(stored, name, found.d)
    with atomic_file(file, "A file of SQL", kinds=(".sql",)) as temporary:
        temporary.write_text(program, "utf-8")
    return file


def _rows(encoder: FittedEncoder, name: str, array: str) -> str:
    """Return the statements that fill the tables."""
    axes = single(encoder.components, "to_sql")
    lines = [f"INSERT INTO {name}_axes VALUES ({n}, {array.format(numbers(axis))});" for n, axis in enumerate(axes, 1)]
    for query, mean in ((False, encoder.mean), (True, encoder.query_mean)):
        values = array.format(numbers(np.asarray(mean, np.float64)))
        lines.append(f"INSERT INTO {name}_means VALUES ({str(query).lower()}, {values});")
    return "\n".join(lines)
