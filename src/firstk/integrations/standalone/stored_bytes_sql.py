"""Embedded bytes in SQL: functions for a bytea column of PostgreSQL, tables and views for blobs of SQLite.

Slow and exact, for thousands of rows: every string is decoded when it is asked. Bit t of a string, after its bytes of
codebooks, is bit 7 - t mod 8 of its byte; with the n bits of a coordinate, first to last, as a number b, its cell is
2^n - 1 + b.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice

import numpy as np

from firstk.integrations.standalone.stored_bytes import StoredBytes

_ROWS_PER_INSERT = 400

_POSTGRESQL = """
-- Stored bytes: SELECT id FROM docs ORDER BY {name}_score(code, {name}_query(ARRAY[...])) DESC LIMIT 10
-- `code` is a bytea of {bytes} bytes; where it has been cut to m: {name}_query(ARRAY[...], m).
-- Quantizer {fingerprint}.
BEGIN;
CREATE TABLE {name}_bits (places integer[] NOT NULL, firsts integer[] NOT NULL, cells real[] NOT NULL,
    offsets real[] NOT NULL);
INSERT INTO {name}_bits VALUES ('{{{places}}}', '{{{firsts}}}', '{{{cells}}}', '{{{offsets}}}');
CREATE TABLE {name}_books (n integer PRIMARY KEY, start integer NOT NULL, width integer NOT NULL,
    step double precision NOT NULL, centroids smallint[] NOT NULL);
{books}
CREATE TABLE {name}_query_axes (n integer PRIMARY KEY, axis real[] NOT NULL);
{axes}
CREATE FUNCTION {name}_decode(code bytea) RETURNS double precision[] LANGUAGE plpgsql STABLE PARALLEL SAFE STRICT AS $$
DECLARE
    found {name}_bits;
    book record;
    levels integer := least(length(code), {levels});
    cell integer[] := array_fill(0, ARRAY[{width}]);
    z double precision[];
    i integer;
BEGIN
    IF length(code) < 1 OR length(code) > {bytes} THEN
        RAISE EXCEPTION 'a code has 1 to {bytes} bytes, got %', length(code);
    END IF;
    SELECT * INTO found FROM {name}_bits;
    FOR t IN 0 .. 8 * (length(code) - levels) - 1 LOOP
        i := found.places[t + 1];
        cell[i] := 2 * cell[i] + 1 + ((get_byte(code, levels + t / 8) >> (7 - t % 8)) & 1);
    END LOOP;
    z := found.offsets;
    FOR j IN 1 .. cardinality(found.firsts) LOOP z[j] := z[j] + found.cells[found.firsts[j] + cell[j]]; END LOOP;
    FOR book IN SELECT * FROM {name}_books WHERE n < levels LOOP
        FOR c IN 1 .. book.width LOOP
            z[book.start + c] := z[book.start + c]
                + book.step * book.centroids[get_byte(code, book.n) * book.width + c];
        END LOOP;
    END LOOP;
    RETURN z;
END $$;
CREATE FUNCTION {name}_query(x double precision[], bytes integer DEFAULT {bytes}) RETURNS double precision[]
LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE z double precision[] := {name}(x, {d}, query => true);
BEGIN
    {query}
    RETURN z;
END $$;
CREATE FUNCTION {name}_score(code bytea, query double precision[]) RETURNS double precision LANGUAGE sql STABLE STRICT
AS $$
    SELECT coalesce(sum(z * q) / nullif(sqrt(sum(z * z)) * sqrt(sum(q * q)), 0), 0)
    FROM unnest({name}_decode(code), query) AS t(z, q)
$$;
COMMIT;
"""
_OF_VECTORS = """SELECT array_agg(s.value ORDER BY s.n) INTO z FROM (
        SELECT a.n, (SELECT sum(t.a * t.b) FROM unnest(a.axis, x) AS t(a, b)) AS value FROM {name}_query_axes AS a
    ) AS s;"""
_OF_CODES = """SELECT array_agg(CASE WHEN t.since <= bytes THEN t.v ELSE 0 END ORDER BY t.n) INTO z
        FROM unnest(z, '{{{since}}}'::integer[]) WITH ORDINALITY AS t(v, since, n);"""
_SQLITE = """-- Stored bytes: fill {name}_codes, put the code of a query, {width} numbers, into {name}_query, and ask.
--   INSERT INTO {name}_codes VALUES (1, x'...');
--   DELETE FROM {name}_query; INSERT INTO {name}_query SELECT key, value FROM json_each('[...]');
--   SELECT id, score FROM {name}_nearest ORDER BY score DESC LIMIT 10;
-- `code` is a blob of {bytes} bytes, or fewer where it has been cut. Quantizer {fingerprint}. Written by firstk.
BEGIN;
CREATE TABLE {name}_codes (id INTEGER PRIMARY KEY, code BLOB NOT NULL CHECK (length(code) BETWEEN 1 AND {bytes}));
CREATE TABLE {name}_query (coordinate INTEGER PRIMARY KEY, value REAL NOT NULL);
CREATE TABLE {name}_bits (t INTEGER PRIMARY KEY, coordinate INTEGER NOT NULL, nth INTEGER NOT NULL);
CREATE TABLE {name}_cells (coordinate INTEGER, cell INTEGER, value REAL NOT NULL, PRIMARY KEY (coordinate, cell));
CREATE TABLE {name}_offsets (coordinate INTEGER PRIMARY KEY, value REAL NOT NULL);
CREATE TABLE {name}_books (n INTEGER, entry INTEGER, coordinate INTEGER, value REAL NOT NULL,
    PRIMARY KEY (n, entry, coordinate)) WITHOUT ROWID;
{rows}
CREATE VIEW {name}_bytes AS WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})
    SELECT id, n, length(code) AS m,
        16 * instr('123456789ABCDEF', substr(hex(substr(code, n + 1, 1)), 1, 1))
        + instr('123456789ABCDEF', substr(hex(substr(code, n + 1, 1)), 2, 1)) AS byte
    FROM {name}_codes, numbers WHERE n < length(code);
CREATE VIEW {name}_parts AS
    SELECT x.id, x.coordinate, c.value FROM (
        SELECT b.id, t.coordinate,
            (1 << count(*)) - 1 + (sum(((b.byte >> (7 - t.t % 8)) & 1) << (7 - t.nth)) >> (8 - count(*))) AS cell
        FROM {name}_bytes AS b JOIN {name}_bits AS t ON b.n = min(b.m, {levels}) + t.t / 8 GROUP BY b.id, t.coordinate
    ) AS x JOIN {name}_cells AS c USING (coordinate, cell)
    UNION ALL
    SELECT b.id, k.coordinate, k.value FROM {name}_bytes AS b JOIN {name}_books AS k ON k.n = b.n AND k.entry = b.byte
    UNION ALL
    SELECT c.id, o.coordinate, o.value FROM {name}_codes AS c, {name}_offsets AS o;
CREATE VIEW {name}_values AS SELECT id, coordinate, sum(value) AS value FROM {name}_parts GROUP BY id, coordinate;
CREATE VIEW {name}_nearest AS
    SELECT v.id, coalesce(sum(v.value * q.value) / nullif(sqrt(sum(v.value * v.value))
        * (SELECT sqrt(sum(value * value)) FROM {name}_query), 0), 0) AS score
    FROM {name}_values AS v JOIN {name}_query AS q USING (coordinate) GROUP BY v.id;
COMMIT;
"""


def postgresql_bytes(stored: StoredBytes, name: str, width: int) -> str:
    """Return functions ``name_decode(code)``, ``name_query(x)`` and ``name_score(code, query)``."""
    firsts = np.cumsum([1] + [len(heap) for heap in stored.heaps])[:-1]
    axes = stored.query_axes
    return _POSTGRESQL.format(
        name=name,
        d=width,
        bytes=stored.quantizer.bytes,
        fingerprint=stored.quantizer.fingerprint,
        width=len(stored.heaps),
        levels=len(stored.books),
        places=numbers(np.array(stored.order, int) + 1),
        firsts=numbers(firsts),
        cells=numbers(np.concatenate(stored.heaps)),
        offsets=numbers(stored.offset),
        books="\n".join(
            f"INSERT INTO {name}_books VALUES ({n}, {start}, {book.shape[1]}, {step!r}, '{{{numbers(book.ravel())}}}');"
            for n, (start, step, book) in enumerate(stored.books)
        ),
        axes="\n".join(
            f"INSERT INTO {name}_query_axes VALUES ({n}, '{{{numbers(axis.astype(np.float32))}}}');"
            for n, axis in enumerate(() if axes is None else axes)
        ),
        query=(_OF_CODES if axes is None else _OF_VECTORS).format(name=name, since=numbers(stored.since)),
    )


def sqlite_bytes(stored: StoredBytes, name: str) -> str:
    """Return tables for codes and a query, and a view ``name_nearest`` with a score for each code."""
    roots = np.zeros(len(stored.offset))
    roots[: len(stored.heaps)] = [heap[0] for heap in stored.heaps]
    seen = np.zeros(len(stored.heaps), int)
    rows: list[tuple[str, tuple[object, ...]]] = []
    for t, i in enumerate(stored.order):
        rows.append(("bits", (t, i, int(seen[i]))))
        seen[i] += 1
    # Cells are told as differences from the root, which is in the offset: without bits a coordinate is its mean.
    rows += [("offsets", (i, repr(float(value)))) for i, value in enumerate(stored.offset + roots)]
    for i, heap in enumerate(stored.heaps):
        rows += [("cells", (i, cell, repr(float(value)))) for cell, value in enumerate(heap - roots[i]) if cell]
    for n, (start, step, book) in enumerate(stored.books):
        for entry, centroid in enumerate(book.tolist()):
            rows += [("books", (n, entry, start + c, repr(step * value))) for c, value in enumerate(centroid)]
    return _SQLITE.format(
        name=name,
        bytes=stored.quantizer.bytes,
        last=stored.quantizer.bytes - 1,
        levels=len(stored.books),
        width=len(stored.offset),
        fingerprint=stored.quantizer.fingerprint,
        rows="\n".join(_inserts(name, rows)),
    )


def _inserts(name: str, rows: Iterable[tuple[str, tuple[object, ...]]]) -> Iterator[str]:
    """Yield statements that fill tables, some hundred rows each."""
    for table, group in groupby(rows, key=lambda row: row[0]):
        texts = (f"({', '.join(map(str, row))})" for _, row in group)
        while several := list(islice(texts, _ROWS_PER_INSERT)):
            yield f"INSERT INTO {name}_{table} VALUES {', '.join(several)};"


def numbers(values: Iterable[object]) -> str:
    """Return numbers as the shortest text that is read as the same."""
    return ", ".join(
        np.format_float_scientific(value, trim="-") if isinstance(value, np.floating) else str(value)
        for value in values
    )
