"""Tables that other programs filled are read: every store, with ids, vectors, payloads and the metric if it has one."""

from __future__ import annotations

import contextlib
import datetime
import uuid

import numpy as np
import pytest

from firstk.exceptions import InvalidInputError
from firstk.search.moving import Recode, move
from firstk.search.moving.sources import open_source
from firstk.search.stores import PrefixStore, connect, push


def _duckdb(place, X):
    import duckdb

    path, _, table = place.removeprefix("duckdb:").partition("#")
    with contextlib.closing(duckdb.connect(path)) as file:
        file.execute(f"CREATE TABLE {table} (key BIGINT PRIMARY KEY, v FLOAT[24], title TEXT, n INT, day DATE)")
        rows = [(i, x.tolist(), f"row {i}", i, "2020-01-02") for i, x in enumerate(X)]
        file.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", rows)


def _sqlite_vec(place, X):
    with contextlib.closing(connect(place)) as engine:
        run = engine.connection.execute
        run(
            f"CREATE VIRTUAL TABLE {engine.table} USING vec0(key integer primary key, "
            "v float[24] distance_metric=cosine, n integer, +title text)"
        )
        for i, x in enumerate(X):
            run(f"INSERT INTO {engine.table} (key, v, n, title) VALUES (?, ?, ?, ?)", (i, x.tobytes(), i, f"row {i}"))


def _lancedb(place, X):
    import lancedb

    path, _, table = place.removeprefix("lancedb:").partition("#")
    rows = [{"id": i, "v": x, "title": f"row {i}", "n": i} for i, x in enumerate(X)]
    lancedb.connect(path).create_table(table, rows)


def _chroma(place, X):
    engine = connect(place)
    collection = engine.connection.create_collection(engine.collection, configuration={"hnsw": {"space": "ip"}})
    ids = [f"key {i}" for i in range(len(X))]
    collection.add(ids, X, [{"n": i} for i in range(len(X))], documents=[f"row {i}" for i in range(len(X))])


def _milvus(place, X):
    with contextlib.closing(connect(place)) as engine:
        engine.client.create_collection(engine.collection, dimension=24, metric_type="L2")
        rows = [{"id": i, "vector": x, "title": f"row {i}", "n": i} for i, x in enumerate(X)]
        engine.client.insert(engine.collection, rows)


def _qdrant(place, X):
    from qdrant_client import models

    with contextlib.closing(connect(place)) as engine:
        vectors = {"v": models.VectorParams(size=24, distance="Dot"), "w": models.VectorParams(size=2, distance="Dot")}
        engine.client.create_collection(engine.collection, vectors)
        ids = [str(uuid.UUID(int=i)) for i in range(len(X))]
        held = {"v": X.tolist(), "w": X[:, :2].tolist()}
        payloads = [{"title": f"row {i}", "n": i} for i in range(len(X))]
        engine.client.upsert(engine.collection, models.Batch(ids=ids, vectors=held, payloads=payloads))


def _faiss(place, X):
    import faiss

    index = faiss.IndexIDMap2(faiss.IndexFlatIP(24))
    index.add_with_ids(X, np.arange(len(X)) + 100)
    faiss.write_index(index, place.removeprefix("faiss:"))


def _usearch(place, X):
    from usearch.index import Index

    index = Index(ndim=24, metric="cos", dtype="f32")
    index.add(np.arange(len(X), dtype=np.uint64) + 100, X)
    index.save(place.removeprefix("usearch:"))


def _pgvector(place, X):
    with contextlib.closing(connect(place)) as engine:
        engine._check_extension()
        engine.connection.execute(
            f"CREATE TABLE {engine.table} (key uuid PRIMARY KEY, title text, n int, day date, v vector(24))"
        )
        with engine.connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {engine.table} VALUES (%s, %s, %s, %s, %s::vector)",
                [
                    (uuid.UUID(int=i), f"row {i}", i, datetime.date(2020, 1, 2), str(x.tolist()))
                    for i, x in enumerate(X)
                ],
            )


FILL = {name.removeprefix("_"): make for name, make in globals().items() if name.startswith("_") and callable(make)}
METRICS = {"sqlite_vec": "cosine", "chroma": "inner_product", "milvus": "l2", "qdrant": "inner_product"}
METRICS |= {"faiss": "inner_product", "usearch": "cosine"}


def number(key):
    """Return the row of an id."""
    if isinstance(key, int):
        return key % 100
    return int(key.split()[1]) if " " in key else uuid.UUID(key).int


def test_rows_of_another_program_are_read(store, address, X, coder, tmp_path):
    place, wanted = address(store), X[:40]
    FILL[store](place, wanted)
    named = {"vectors": "v"} if store == "qdrant" else {}
    with contextlib.closing(open_source(place, **named)) as source:
        assert (source.facts.rows, source.facts.width, source.facts.stamp) == (40, 24, None)
        assert source.facts.metric == METRICS.get(store)
        seen = {}
        for part in source.read(16):
            assert len(part.ids) <= 16
            for key, vector, payload in zip(*part, strict=True):
                seen[number(key)] = (vector, payload)
    assert sorted(seen) == list(range(40))
    for i, (vector, payload) in seen.items():
        assert np.allclose(vector, wanted[i], atol=1e-6)
        if store not in ("faiss", "usearch"):
            assert payload["n"] == i
            assert payload.get("title", payload.get("document")) == f"row {i}"
        if store in ("duckdb", "pgvector"):
            assert payload["day"] == "2020-01-02"
    moved = move(place, target := f"sqlite:{tmp_path}/target.db#codes", Recode(coder, k=6), **named)
    assert (moved.rows, moved.k) == (40, 6)
    with PrefixStore.open(connect(target), coder) as there:
        found = there.search(wanted[:3], 1)
    assert [number(one[0]) for one in found.ids] == [0, 1, 2]


def test_a_column_must_be_named_where_several_could_be_meant(address, X):
    place = address("qdrant")
    pytest.importorskip("qdrant_client")
    FILL["qdrant"](place, X[:5])
    with pytest.raises(InvalidInputError, match=r"several columns.*'v', 'w'.*vectors="):
        open_source(place)
    with pytest.raises(InvalidInputError, match="no column 'x'"):
        open_source(place, vectors="x")


def test_rows_without_ids_of_their_own_raise(address, X):
    duckdb = pytest.importorskip("duckdb")
    place = address("duckdb")
    path, _, table = place.removeprefix("duckdb:").partition("#")
    with contextlib.closing(duckdb.connect(path)) as file:
        file.execute(f"CREATE TABLE {table} (n INT, v FLOAT[])")
        file.execute(f"INSERT INTO {table} VALUES (1, [1, 2]), (1, [3, 4])")
    with pytest.raises(InvalidInputError, match=r"no column that is ids for sure: 'n', 'v'.*--id"):
        open_source(place)
    with pytest.raises(InvalidInputError, match="2 rows, 1 different ids"):
        open_source(place, ids="n")


@pytest.mark.parametrize("second", [None, [3.0], [3.0, 4.0]])
def test_lists_of_other_lengths_do_not_move_the_numbers_of_later_rows(second, address):
    pa, lancedb = pytest.importorskip("pyarrow"), pytest.importorskip("lancedb")
    place = address("lancedb")
    path, _, table = place.removeprefix("lancedb:").partition("#")
    lists = [[1.0, 2.0], second, [6.0], [7.0, 8.0, 9.0]]
    rows = pa.table({"id": [0, 1, 2, 3], "v": pa.array(lists, pa.list_(pa.float32()))})
    lancedb.connect(path).create_table(table, rows)
    with pytest.raises(InvalidInputError, match="2 numbers like the first"):
        list(open_source(place).read(10))


def test_a_named_column_that_holds_no_vectors_raises(address, X):
    pytest.importorskip("duckdb")
    place = address("duckdb")
    FILL["duckdb"](place, X[:5])
    with pytest.raises(InvalidInputError, match=r"'title' of .* does not hold vectors.*'v'"):
        open_source(place, vectors="title")
    place = address("sqlite_vec")
    FILL["sqlite_vec"](place, X[:5])
    with pytest.raises(InvalidInputError, match="5 of them missing or no bytes"):
        open_source(place, vectors="title")


def test_ids_of_two_kinds_raise(address, X):
    client = pytest.importorskip("qdrant_client")
    place = address("qdrant")
    with contextlib.closing(connect(place)) as engine:
        size = client.models.VectorParams(size=24, distance=client.models.Distance.DOT)
        engine.client.create_collection(engine.collection, vectors_config=size)
        keys = [1, str(uuid.UUID(int=7))]
        points = [client.models.PointStruct(id=key, vector=x.tolist()) for key, x in zip(keys, X[:2], strict=True)]
        engine.client.upsert(engine.collection, points)
    with contextlib.closing(open_source(place)) as source, pytest.raises(InvalidInputError, match="of one kind"):
        list(source.read(10))


def test_what_others_made_is_not_written_to(address, X, coder, rows_file):
    pytest.importorskip("duckdb")
    place = address("duckdb")
    FILL["duckdb"](place, X[:5])
    for force in (False, True):
        with pytest.raises(InvalidInputError, match="did not make it"):
            move(rows_file, place, Recode(coder, k=4), force=force)
    assert open_source(place).facts.rows == 5


def test_an_index_of_rounded_vectors_raises(tmp_path, X):
    faiss = pytest.importorskip("faiss")
    index = faiss.index_factory(24, "SQ8")
    index.train(X)
    index.add(X)
    faiss.write_index(index, str(tmp_path / "rounded.faiss"))
    with pytest.raises(InvalidInputError, match="rounded"):
        open_source(f"faiss:{tmp_path}/rounded.faiss")


def test_names_of_columns_are_not_for_stores_that_firstk_filled(address, coder, X):
    place = address("duckdb")
    pytest.importorskip("duckdb")
    with contextlib.closing(connect(place)) as engine:
        push(coder, X, engine, 4, verbose=False)
    with pytest.raises(InvalidInputError, match=r"filled by firstk.*vectors= and ids="):
        open_source(place, vectors="short")
