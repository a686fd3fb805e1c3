"""What only pgvector has: the index on a prefix is used, in three precisions; SQL for tables that exist."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.exceptions import InvalidInputError
from firstk.search.stores import PrefixStore, connect, push
from search.stores.slow_search import recall, two_stages

psycopg = pytest.importorskip("psycopg", reason="needs the extra 'stores'")

from firstk.search.stores.pgvector import Pgvector  # noqa: E402
from firstk.search.stores.pgvector_sql import statements  # noqa: E402


@pytest.fixture
def connection(postgres):
    with psycopg.connect(postgres, autocommit=True) as found:
        found.execute("CREATE EXTENSION IF NOT EXISTS vector")
        found.execute("DROP SCHEMA IF EXISTS own CASCADE; CREATE SCHEMA own")
        yield found


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(4030, 24)) * np.arange(1, 25) ** -0.7).astype(np.float32)
    return X[:4000], X[4000:]


@pytest.mark.parametrize(("precision", "operator"), [("float32", "<=>"), ("float16", "<=>"), ("binary", "<~>")])
def test_the_index_of_the_prefix_is_used(connection, many, precision, operator):
    X, Q = many
    encoder = PrefixEncoder(20, objective="similarity").fit(X)
    engine = Pgvector(connection, "own.documents", precision=precision)
    short, shortlist = (16, 400) if precision == "binary" else (8, 60)
    store = push(encoder, X, engine, short, 20, payloads=[{"i": i} for i in range(len(X))])
    sql = engine.statements(store.layout, 10, shortlist)
    assert operator in sql.search
    query = {"query": str(encoder.encode_query(Q[:1])[0].tolist())}
    with connection.transaction():
        for setting in sql.settings:
            connection.execute(setting)
        if precision == "binary":  # a tenth of so few rows is found sooner without
            connection.execute("SET LOCAL enable_seqscan = off")
        plan = "\n".join(row[0] for row in connection.execute("EXPLAIN " + sql.search, query))
    assert "Index Scan using documents_code" in plan
    found = store.search(Q, 10, shortlist=shortlist)
    wanted, _ = two_stages(encoder, X, Q, 10, short, 20, shortlist)
    exact, _ = two_stages(encoder, X, Q, 10, 20, 20, 10)
    if precision == "binary":  # signs have many ties, so that shortlists differ
        signs, asked = encoder.encode_document(X, k=short) > 0, encoder.encode_query(Q, k=short) > 0
        apart = (asked[:, None] != signs).sum(axis=2)
        farthest = np.sort(apart, axis=1)[:, shortlist - 1]
        inside = [apart[i, ids] <= farthest[i] for i, ids in enumerate(found.ids)]
        assert np.mean(inside) > 0.97, "the shortlist is by Hamming distance"
    else:
        assert abs(recall(found.ids, exact) - recall(wanted, exact)) <= 0.02
    few = store.search(Q, 10, shortlist=shortlist, filter={"i": {"lt": 40}})
    assert all(len(ids) == 10 and max(ids) < 40 for ids in few.ids), "the graph goes on where a filter leaves few"


def test_without_an_index_search_is_exact(connection, many):
    X, Q = many
    encoder = PrefixEncoder(20, objective="similarity").fit(X)
    store = push(encoder, X[:500], Pgvector(connection, "own.plain", indexed=False), 8, 20)
    assert recall(store.search(Q, 10, shortlist=50).ids, two_stages(encoder, X[:500], Q, 10, 8, 20, 50)[0]) > 0.995
    indexes = connection.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'plain'").fetchall()
    assert len(indexes) == 1


def test_statements_run_on_a_table_that_exists(connection, many):
    X, Q = many
    encoder = PrefixEncoder(20, objective="similarity").fit(X)
    connection.execute('CREATE TABLE own."my texts" (key text PRIMARY KEY, "Code" vector(20), lang text)')
    Z = encoder.encode_document(X[:600])
    with connection.cursor() as cursor:
        cursor.executemany(
            'INSERT INTO own."my texts" VALUES (%s, %s, %s)',
            [(f"t{i}", str(z.tolist()), "en" if i % 2 else "de") for i, z in enumerate(Z)],
        )
    sql = statements(
        "own.my texts", 8, 20, code="Code", key="key", columns=["lang"], where="lang = 'en'", limit=5, shortlist=40
    )
    connection.execute(sql.index)
    allowed = np.arange(1, 600, 2)
    wanted, scores = two_stages(encoder, X[:600], Q, 5, 8, 20, 40, allowed=allowed)
    found = [
        connection.execute(sql.search, {"query": str(code.tolist())}).fetchall() for code in encoder.encode_query(Q)
    ]
    assert recall([[int(row[0][1:]) for row in one] for one in found], wanted) > 0.98
    assert {row[2] for one in found for row in one} == {"en"}
    assert found[0][0][1] == pytest.approx(scores[0][0], abs=1e-5)


def test_a_filter_in_sql(connection, many):
    encoder = PrefixEncoder(20, objective="similarity").fit(many[0])
    store = push(encoder, many[0][:50], Pgvector(connection, "own.some"), 8, 20, payloads=[{"a": "5%"}] * 50)
    assert store.search(many[1][:1], 3, filter="id % 7 = 0 AND payload->>'a' LIKE '5%'").ids[0]
    with pytest.raises(InvalidInputError, match="of PostgreSQL failed"):
        store.search(many[1][:1], 3, filter="no such column")
    assert store.count() == 50  # the connection still works


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"short": 0}, "'short'"),
        ({"short": 64, "full": 32}, "at least 64"),
        ({"short": 8, "full": 32, "limit": 20, "shortlist": 10}, "at least 20"),
        ({"short": 8, "metric": "hamming"}, "'metric'"),
    ],
)
def test_statements_that_would_not_run_raise(given, message):
    with pytest.raises(InvalidInputError, match=message):
        statements("documents", **given)


def test_what_does_not_fit_raises(connection, many):
    encoder = PrefixEncoder(20, objective="similarity").fit(many[0])
    connection.execute("CREATE TABLE own.theirs (id int)")
    with pytest.raises(InvalidInputError, match="did not make it"):
        push(encoder, many[0][:5], Pgvector(connection, "own.theirs"), 8)
    with psycopg.connect(connection.info.dsn) as other, pytest.raises(InvalidInputError, match="autocommit=True"):
        Pgvector(other)
    with pytest.raises(InvalidInputError, match="'binary', 'float16', 'float32'"):
        Pgvector(connection, precision="int8")
    wide = PrefixEncoder(2100, objective="reconstruction").fit(np.random.default_rng(0).normal(size=(2200, 2150)))
    with pytest.raises(InvalidInputError, match="at most 2000 coordinates in float32"):
        PrefixStore.create(Pgvector(connection, "own.wide"), wide, 2050)
    for wrong in ({"short": 0}, {"short": 8, "full": 20_000}, {"short": 8, "metric": "dot"}):
        with pytest.raises(InvalidInputError):
            statements("documents", **wrong)


def test_a_server_without_the_extension_raises(connection, many):
    encoder = PrefixEncoder(20, objective="similarity").fit(many[0])

    class Without:
        """A connection that finds no extension on the server."""

        def __getattr__(self, name):
            return getattr(connection, name)

        def execute(self, query, *values):
            return connection.execute(query.replace("'vector'", "'missing'"), *values)

    with pytest.raises(InvalidInputError, match="no extension 'vector'"):
        PrefixStore.create(Pgvector(Without(), "own.none"), encoder, 8)


def test_credentials_are_in_no_message(monkeypatch):
    with pytest.raises(InvalidInputError, match="connection to PostgreSQL failed") as raised:
        connect("postgresql://me:s3cret-word@127.0.0.1:9/search#documents")
    assert "s3cret-word" not in str(raised.value)
    assert raised.value.__cause__ is None
    monkeypatch.setenv("PGPASSWORD", "s3cret-word")
    with pytest.raises(InvalidInputError) as raised:
        connect("postgresql://me@127.0.0.1:9/search#documents")
    assert "s3cret-word" not in str(raised.value)
