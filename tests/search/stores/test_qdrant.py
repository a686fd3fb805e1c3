"""Qdrant's own: precision, what is passed to create_collection, parameters of a search, and the REST of a server."""

from __future__ import annotations

import sqlite3
import uuid

import numpy as np
import pytest

from firstk.data.files import write_vectors
from firstk.exceptions import InvalidInputError
from firstk.search.moving import Recode, move
from firstk.search.stores import PrefixStore, Qdrant, connect, push
from fixtures.qdrant_server import qdrant_server

qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra 'stores'")
from qdrant_client import models  # noqa: E402


@pytest.fixture
def client():
    made = qdrant_client.QdrantClient(":memory:")
    yield made
    made.close()


def test_settings_reach_qdrant(client, coder, vectors, monkeypatch):
    created, asked = {}, []
    create, query = client.create_collection, client.query_batch_points
    monkeypatch.setattr(
        client, "create_collection", lambda name, **given: created.update(given) or create(name, **given)
    )
    monkeypatch.setattr(client, "query_batch_points", lambda name, many: asked.extend(many) or query(name, many))
    engine = Qdrant(
        client,
        precision="float16",
        params=models.SearchParams(exact=True),
        settings={"on_disk_payload": True, "metadata": {"owner": "me"}},
    )
    store = push(coder, vectors[0][:50], engine, 4, 8, verbose=False)
    found = store.search(vectors[0][:3], 2)
    assert [ids[0] for ids in found.ids] == [0, 1, 2]
    assert created["on_disk_payload"] is True
    assert {part.datatype for part in created["vectors_config"].values()} == {models.Datatype.FLOAT16}
    assert created["vectors_config"]["full"].on_disk
    assert created["vectors_config"]["full"].hnsw_config.m == 0
    kept = client.get_collection("documents").config.metadata
    assert kept["owner"] == "me"
    assert "firstk" in kept
    assert all(one.prefetch.params.exact for one in asked)
    assert PrefixStore.open(Qdrant(client), coder).count() == 50


def test_codes_are_stored_as_they_are(client, coder, vectors):
    push(coder, vectors[0][:20], Qdrant(client), 3, metric="inner_product", verbose=False)
    points = client.retrieve("documents", list(range(20)), with_vectors=True)
    short = np.array([point.vector["short"] for point in sorted(points, key=lambda point: point.id)])
    np.testing.assert_allclose(short, coder.encode_document(vectors[0][:20], k=3), atol=1e-6)


def test_errors(client, coder, vectors):
    with pytest.raises(InvalidInputError, match="'precision' parameter of Qdrant"):
        Qdrant(client, precision="int8")
    client.create_collection("theirs", vectors_config=models.VectorParams(size=4, distance=models.Distance.DOT))
    with pytest.raises(InvalidInputError, match="'theirs' of Qdrant is there already, and firstk"):
        push(coder, vectors[0][:5], Qdrant(client, "theirs"), 3, verbose=False)
    with pytest.raises(InvalidInputError, match="'documents' of Qdrant failed"):
        push(coder, vectors[0][:5], Qdrant(client, settings={"no_such_setting": 1}), 3, verbose=False)


@pytest.fixture(scope="module")
def server():
    with qdrant_server() as found:
        yield found


def test_a_server_is_asked_in_the_shape_of_its_rest(server, coder, vectors):
    """Every request passes the client's own models on the way; answers are those of the local mode."""
    endpoint, asked = server
    X, Q = vectors
    address = f"qdrant+{endpoint}#rest"
    payloads = [{"kind": "ab"[i % 2], "n": i} for i in range(300)]
    ids = [f"doc {i}" for i in range(300)]
    with push(coder, X[:300], connect(address), 6, 16, ids=ids, payloads=payloads, verbose=False) as store:
        found = store.search(Q[:5], 4, shortlist=40, filter={"kind": "a", "n": {"gte": 10}})
    local = push(coder, X[:300], connect("qdrant::memory:#rest"), 6, 16, ids=ids, payloads=payloads, verbose=False)
    wanted = local.search(Q[:5], 4, shortlist=40, filter={"kind": "a", "n": {"gte": 10}})
    assert (found.ids, found.payloads) == (wanted.ids, wanted.payloads)
    assert np.allclose(found.scores, wanted.scores, atol=1e-6)
    with PrefixStore.open(connect(address), coder) as store:
        assert store.push(X[:310], [*ids, *(f"new {i}" for i in range(10))], existing="skip", verbose=False) == 310
        assert store.delete(["doc 3", "nobody"]) == 309
        assert sorted(key for part in store.rows(100) for key in part.ids)[0] == "doc 0"
        assert PrefixStore.create(store.engine, coder, 4, replace=True).count() == 0
    assert set(asked) >= {"PUT", "GET exists", "PUT points", "POST points", "POST points/query/batch", "DELETE"}


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_a_move_to_float16_is_verified(metric, server, coder, vectors, tmp_path):
    """Codes come back rounded; a code of another row is noticed all the same."""
    rows = write_vectors(tmp_path / "rows.npz", vectors[0], {"id": np.arange(len(vectors[0]))})
    address = f"qdrant+{server[0]}#half_{metric}"
    recode = Recode(coder, 6, 16, metric=metric, precision="float16")
    moved = move(rows, address, recode)
    assert (moved.verified, moved.bytes_per_vector) == (True, 32)
    assert move(rows, address, recode, resume=True).there_before == len(vectors[0])
    with PrefixStore.open(connect(address), coder) as store:
        codes = np.concatenate([part.codes for part in store.rows()])
        assert np.abs(codes - codes.astype(np.float16)).max() == 0
        store.push(vectors[0][5:6], [7], verbose=False)
    with pytest.raises(InvalidInputError, match="the codes are not the same"):
        move(rows, address, recode, resume=True)


def test_a_text_that_is_the_uuid_of_another_is_a_row_of_its_own(client, coder, vectors):
    ids = ["a", str(uuid.uuid5(uuid.NAMESPACE_OID, "a")), str(uuid.UUID(int=7))]
    store = push(coder, vectors[0][:3], Qdrant(client), 4, ids=ids, verbose=False)
    assert store.engine.count() == 3
    assert store.engine.present(ids) == set(ids)


def test_errors_of_the_files_of_local_mode_are_messages(client):
    with pytest.raises(InvalidInputError, match="disk is full"), Qdrant(client).answering():
        raise sqlite3.OperationalError("database or disk is full")
