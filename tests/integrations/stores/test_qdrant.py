"""Settings of Qdrant's own: precision, what is passed to create_collection, and the parameters of a search."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.exceptions import InvalidInputError
from firstk.integrations.stores import PrefixStore, Qdrant, push

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
