"""Scores under a store's own comparison are those of the product itself."""

import numpy as np
import pytest

from firstk import Rows
from firstk.advice.baselines import plain_truncation
from firstk.advice.store_scores import as_compared, rescored
from firstk.data.stores import STORES
from firstk.metrics.neighbors import nearest_neighbors

LIMIT = 10
pytestmark = pytest.mark.wings


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.fixture(scope="module", params=[1500, pytest.param(20_000, marks=pytest.mark.full)])
def rows(request, data_folder):
    """Return rows and queries with their true neighbors: package descriptions, embedded."""
    with np.load(data_folder / "debian" / "debian_potion.npz", allow_pickle=False) as held:
        every = held["X"].astype(np.float32)
    every = every[np.random.default_rng(0).permutation(len(every))[: request.param + 200]]
    X, Q = every[200:], every[:200]
    return X, Q, nearest_neighbors(X, Q, LIMIT)


def bits(Z):
    return np.packbits(Z > 0, axis=1)


def int8(X, Q):
    scale = np.abs(X).max() / 127
    return tuple(np.clip(np.rint(part / scale), -127, 127).astype(np.int8) for part in (X, Q))


# -- products: (store, form) to the ids that it finds ------------------------------------------------------------


def pgvector(cast, sign):
    def search(X, Q, tmp_path, request):
        import psycopg
        from pgvector.psycopg import register_vector

        connection = psycopg.connect(request.getfixturevalue("postgres"), autocommit=True)
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(connection)
        name, k = f"scores_{abs(hash((cast, len(X)))):x}", X.shape[1]
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} (id bigint, code vector({k}))")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for i, row in enumerate(X):
                copy.write_row((i, f"[{','.join(map(str, row.tolist()))}]"))
        stored, asked = cast.format(x="code", k=k), cast.format(x="%s::vector", k=k)
        found = [
            connection.execute(
                f"SELECT id FROM {name} ORDER BY {stored} {sign} {asked}, id LIMIT {LIMIT}", (str(q.tolist()),)
            ).fetchall()
            for q in Q
        ]
        connection.execute(f"DROP TABLE {name}")
        return np.array(found)[:, :, 0]

    return search


def pgvector_rescored(expression):
    def search(X, Q, tmp_path, request, factor):
        ids = []
        import psycopg

        connection = psycopg.connect(request.getfixturevalue("postgres"), autocommit=True)
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        name, k = f"rescored_{abs(hash((expression, len(X)))):x}", X.shape[1]
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} (id bigint, code vector({k}))")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for i, row in enumerate(X):
                copy.write_row((i, f"[{','.join(map(str, row.tolist()))}]"))
        near = expression.format(x="code", q="%(q)s::vector", k=k, s=k // 4)
        for q in Q:
            found = connection.execute(
                f"SELECT id FROM (SELECT id, code FROM {name} ORDER BY {near}, id LIMIT {factor * LIMIT}) AS one "
                f"ORDER BY code <=> %(q)s::vector, id LIMIT {LIMIT}",
                {"q": str(q.tolist())},
            ).fetchall()
            ids.append([row[0] for row in found])
        connection.execute(f"DROP TABLE {name}")
        return np.array(ids)

    return search


def sqlite(path):
    import sqlite_vec as package

    from firstk.search.stores.sqlite_vec import _sqlite

    connection = _sqlite().connect(str(path))
    connection.enable_load_extension(True)
    package.load(connection)
    return connection


def sqlite_vec(kind, value, by=""):
    def search(X, Q, tmp_path, request):
        connection = sqlite(tmp_path / f"{kind}.db")
        connection.execute(f"CREATE VIRTUAL TABLE one USING vec0(code {kind}[{X.shape[1]}]{by})")
        stored, asked = held_as(kind, X, Q)
        connection.executemany(
            f"INSERT INTO one(rowid, code) VALUES (?, {value})", [(i, row.tobytes()) for i, row in enumerate(stored)]
        )
        sql = f"SELECT rowid FROM one WHERE code MATCH {value} AND k = {LIMIT} ORDER BY distance"
        found = [connection.execute(sql, (q.tobytes(),)).fetchall() for q in asked]
        connection.close()
        return np.array(found)[:, :, 0]

    return search


def held_as(kind, X, Q):
    if kind == "bit":
        return bits(X), bits(Q)
    return int8(X, Q) if kind == "int8" else (X, Q)


def sqlite_vec_rescored(X, Q, tmp_path, request, factor):
    connection = sqlite(tmp_path / "rescored.db")
    k = X.shape[1]
    connection.execute(f"CREATE VIRTUAL TABLE one USING vec0(code float[{k}], bits bit[{k}])")
    connection.executemany(
        "INSERT INTO one(rowid, code, bits) VALUES (?, ?, vec_quantize_binary(?))",
        [(i, row.tobytes(), row.tobytes()) for i, row in enumerate(X)],
    )
    sql = (
        f"SELECT rowid FROM (SELECT rowid, code FROM one WHERE bits MATCH vec_quantize_binary(?) AND k = "
        f"{factor * LIMIT}) ORDER BY vec_distance_cosine(code, ?) LIMIT {LIMIT}"
    )
    return np.array([connection.execute(sql, (q.tobytes(), q.tobytes())).fetchall() for q in Q])[:, :, 0]


def duckdb(column, sql):
    def search(X, Q, tmp_path, request):
        import duckdb as package

        connection = package.connect()
        connection.execute(f"CREATE TABLE one (id BIGINT, code {column.format(k=X.shape[1])})")
        as_text = column == "BIT"
        stored, asked = (
            ["".join("01"[int(bit)] for bit in row) if as_text else row.tolist() for row in (Z > 0 if as_text else Z)]
            for Z in (X, Q)
        )
        frame = {"id": list(range(len(X))), "code": stored}
        import pyarrow

        table = pyarrow.table(frame)
        connection.register("given", table)
        connection.execute(f"INSERT INTO one SELECT id, code::{column.format(k=X.shape[1])} FROM given")
        text = f"SELECT id FROM one ORDER BY {sql.format(k=X.shape[1])}, id LIMIT {LIMIT}"
        return np.array([connection.execute(text, [q]).fetchall() for q in asked])[:, :, 0]

    return search


def faiss(factory):
    def search(X, Q, tmp_path, request):
        import faiss as package

        index = package.index_factory(X.shape[1], factory.format(k=X.shape[1]), package.METRIC_INNER_PRODUCT)
        index.train(unit(X))
        index.add(unit(X))
        return index.search(unit(Q), LIMIT)[1]

    return search


def faiss_bits(X, Q, tmp_path, request):
    import faiss as package

    index = package.IndexBinaryFlat(X.shape[1])
    index.add(bits(X))
    return index.search(bits(Q), LIMIT)[1]


def usearch(dtype):
    def search(X, Q, tmp_path, request):
        from usearch.index import Index

        held, metric = (bits, "hamming") if dtype == "b1" else ((lambda Z: Z), "cos")
        index = Index(ndim=X.shape[1], metric=metric, dtype=dtype)
        stored, asked = int8(X, Q) if dtype == "i8" else (held(X), held(Q))
        index.add(np.arange(len(X)), stored)
        return index.search(asked, LIMIT, exact=True).keys.astype(np.int64)

    return search


def lancedb(kind, by):
    def search(X, Q, tmp_path, request):
        import lancedb as package
        import pyarrow

        held = bits if by == "hamming" else (lambda Z: Z.astype(kind))
        stored = held(X)
        column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(stored.ravel()), stored.shape[1])
        table = package.connect(tmp_path).create_table(
            "one", pyarrow.table({"id": np.arange(len(X)), "vector": column})
        )
        return np.array(
            [
                table.search(q).distance_type(by).select(["id", "_distance"]).limit(LIMIT).to_arrow()["id"].to_pylist()
                for q in held(Q)
            ]
        )

    return search


def lancedb_rotated(X, Q, tmp_path, request, factor):
    import lancedb as package
    import pyarrow
    from lancedb.index import IvfRq

    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), X.shape[1])
    table = package.connect(tmp_path).create_table("one", pyarrow.table({"id": np.arange(len(X)), "vector": column}))
    table.create_index("vector", config=IvfRq(distance_type="cosine", num_partitions=1))
    return np.array(
        [table.search(q).nprobes(1).refine_factor(factor).limit(LIMIT).to_arrow()["id"].to_pylist() for q in Q]
    )


def milvus(kind, by, index):
    def search(X, Q, tmp_path, request):
        from pymilvus import DataType, MilvusClient

        client = MilvusClient(str(tmp_path / "one.db"))
        schema = client.create_schema()
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("vector", getattr(DataType, kind), dim=X.shape[1])
        parameters = client.prepare_index_params()
        parameters.add_index("vector", index_type=index, metric_type=by)
        client.create_collection("one", schema=schema, index_params=parameters)
        stored, asked = {
            "FLOAT_VECTOR": lambda: (X, Q),
            "FLOAT16_VECTOR": lambda: (X.astype(np.float16), Q.astype(np.float16)),
            "BINARY_VECTOR": lambda: (bits(X), bits(Q)),
            "INT8_VECTOR": lambda: int8(X, Q),
        }[kind]()
        as_given = (lambda row: row.tobytes()) if kind in ("BINARY_VECTOR",) else (lambda row: row)
        for start in range(0, len(X), 1000):
            part = range(start, min(start + 1000, len(X)))
            client.insert("one", [{"id": i, "vector": as_given(stored[i])} for i in part])
        found = client.search("one", [as_given(q) for q in asked], limit=LIMIT, search_params={"metric_type": by})
        client.close()
        return np.array([[hit["id"] for hit in one] for one in found])

    return search


def qdrant(X, Q, tmp_path, request):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    client.create_collection("one", models.VectorParams(size=X.shape[1], distance=models.Distance.COSINE))
    client.upload_collection("one", X, ids=range(len(X)))
    found = client.query_batch_points("one", [models.QueryRequest(query=q.tolist(), limit=LIMIT) for q in Q])
    return np.array([[point.id for point in one.points] for one in found])


def chroma(X, Q, tmp_path, request):
    import chromadb

    client = chromadb.PersistentClient(str(tmp_path))
    held = client.create_collection("one", configuration={"hnsw": {"space": "cosine", "ef_search": 500}})
    for start in range(0, len(X), 1000):
        held.add([str(i) for i in range(start, min(start + 1000, len(X)))], embeddings=X[start : start + 1000])
    return np.array(held.query(query_embeddings=Q, n_results=LIMIT)["ids"]).astype(int)


PRODUCTS = {
    ("pgvector", "vector"): pgvector("({x})", "<=>"),
    ("pgvector", "halfvec"): pgvector("({x})::halfvec({k})", "<=>"),
    ("pgvector", "bit"): pgvector("binary_quantize({x})::bit({k})", "<~>"),
    ("sqlite-vec", "float"): sqlite_vec("float", "?", " distance_metric=cosine"),
    ("sqlite-vec", "int8"): sqlite_vec("int8", "vec_int8(?)", " distance_metric=cosine"),
    ("sqlite-vec", "bit"): sqlite_vec("bit", "vec_bit(?)"),
    ("duckdb", "FLOAT"): duckdb("FLOAT[{k}]", "array_cosine_distance(code, ?::FLOAT[{k}])"),
    ("duckdb", "BIT"): duckdb("BIT", "bit_count(xor(code, ?::BIT))"),
    ("faiss", "Flat"): faiss("Flat"),
    ("faiss", "SQfp16"): faiss("SQfp16"),
    ("faiss", "SQ8"): faiss("SQ8"),
    ("faiss", "binary Flat"): faiss_bits,
    ("usearch", "f32"): usearch("f32"),
    ("usearch", "f16"): usearch("f16"),
    ("usearch", "i8"): usearch("i8"),
    ("usearch", "b1"): usearch("b1"),
    ("lancedb", "float32 column"): lancedb(np.float32, "cosine"),
    ("lancedb", "float16 column"): lancedb(np.float16, "cosine"),
    ("lancedb", "uint8 column of bits"): lancedb(np.uint8, "hamming"),
    ("milvus", "FLOAT_VECTOR"): milvus("FLOAT_VECTOR", "COSINE", "FLAT"),
    ("qdrant", "datatype float32"): qdrant,
    ("chroma", "float32 vectors"): chroma,
}
RESCORED = {
    ("pgvector", "vector, index of bits"): pgvector_rescored(
        "binary_quantize({x})::bit({k}) <~> binary_quantize({q})::bit({k})"
    ),
    ("pgvector", "vector, index of a prefix"): pgvector_rescored(
        "subvector({x}, 1, {s})::vector({s}) <=> subvector({q}, 1, {s})::vector({s})"
    ),
    ("sqlite-vec", "float, rescored bits"): sqlite_vec_rescored,
    ("lancedb", "float32, IVF_RQ"): lancedb_rotated,
}


def recall(found, truth):
    return (
        np.mean([len(set(one) & set(other)) for one, other in zip(found.tolist(), truth.tolist(), strict=True)]) / LIMIT
    )


def form_of(store, name):
    return next(one for one in STORES if one.name == store).form(name)


@pytest.mark.parametrize(("store", "form"), list(PRODUCTS), ids=[": ".join(one) for one in PRODUCTS])
def test_score_is_that_of_the_product(store, form, rows, tmp_path, request):
    X, Q, truth = rows
    pytest.importorskip({"pgvector": "psycopg", "sqlite-vec": "sqlite_vec", "milvus": "milvus_lite",
                         "qdrant": "qdrant_client", "chroma": "chromadb"}.get(store, store))  # fmt: skip
    storage = as_compared(form_of(store, form).precision, X)
    expected = recall(nearest_neighbors(storage.store(X), storage.ask(Q), LIMIT), truth)

    found = PRODUCTS[store, form](X, Q, tmp_path, request)

    assert recall(found, truth) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("store", "form"), list(RESCORED), ids=[": ".join(one) for one in RESCORED])
def test_rescored_score_is_that_of_the_product(store, form, rows, tmp_path, request):
    X, Q, truth = rows
    pytest.importorskip({"pgvector": "psycopg", "sqlite-vec": "sqlite_vec"}.get(store, store))
    columns = plain_truncation(np.zeros((1, X.shape[1])))
    factor, scores = rescored(columns, Rows(Q, reference=Rows(X)), "recall@10", form_of(store, form), X.shape[1])

    found = RESCORED[store, form](X, Q, tmp_path, request, factor)

    assert recall(found, truth) == pytest.approx(float(scores.score()[0]), abs=0.01)


def test_rotated_bits_are_those_of_faiss(rows):
    package = pytest.importorskip("faiss")
    X, Q, truth = rows
    ours, theirs, k = [], [], X.shape[1]
    for seed in range(4):  # of one rotation the recall is known to 0.01 only
        storage = as_compared("rotated bits", X, seed=seed)
        ours.append(recall(nearest_neighbors(storage.store(X), storage.ask(Q), LIMIT), truth))
        rotation = package.RandomRotationMatrix(k, k)
        rotation.init(seed)
        index = package.IndexPreTransform(rotation, package.IndexRaBitQ(k, package.METRIC_L2))
        index.train(unit(X))
        index.add(unit(X))
        theirs.append(recall(index.search(unit(Q), LIMIT)[1], truth))

    assert np.mean(theirs) == pytest.approx(np.mean(ours), abs=0.01)
