"""One metric: what a curve promises is what an exported index finds, for every objective."""

import numpy as np
import pytest

from firstk import PrefixEncoder, Rows, Similarity
from firstk.metrics.curve import prefix_curve

OBJECTIVES = {
    "reconstruction": "reconstruction",
    "fisher": "fisher",
    "neighbors": "similarity",
    "dot_products": Similarity(keep="dot_products"),
}


@pytest.fixture(scope="module", params=OBJECTIVES)
def promised(request, digits):
    """Return an encoder, documents, queries, the neighbors of the vectors, and the recall that the curve promises."""
    X, Q = digits.X_train[:300].astype(np.float32), digits.X_test[:60].astype(np.float32)
    encoder = PrefixEncoder(objective=OBJECTIVES[request.param]).fit(digits.X_train, digits.y_train)
    curve = prefix_curve(encoder.encoder_, Rows(Q, reference=Rows(X)), "recall@10")
    units = [A / np.linalg.norm(A, axis=1, keepdims=True) for A in (Q, X)]
    truth = np.argsort(-(units[0] @ units[1].T), axis=1, kind="stable")[:, :10]
    return encoder, X, Q, truth, curve


def recall(found, truth):
    return np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(found, truth, strict=True)])


@pytest.mark.parametrize("k", [3, 8])
def test_faiss_keeps_what_the_curve_promises(promised, k):
    pytest.importorskip("faiss", reason="needs the extra 'search'")
    encoder, X, Q, truth, curve = promised
    found = encoder.to_faiss(k, documents=X).search(Q, 10)[1]
    # A tie among 600 neighbors may fall either way.
    assert recall(found, truth) == pytest.approx(curve.at(k), abs=2 / 600)
    other = encoder.to_faiss(k, documents=X, metric="l2").search(Q, 10)[1]
    if not encoder.encoder_.normalized:
        assert abs(recall(other, truth) - curve.at(k)) > 2 / 600  # the test can tell metrics apart


def test_qdrant_keeps_what_the_curve_promises(promised):
    qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra 'search'")
    from firstk.search.stores import Qdrant, push

    encoder, X, Q, truth, curve = promised
    client = qdrant_client.QdrantClient(":memory:")
    found = push(encoder, X, Qdrant(client, "digits"), 8, verbose=False).search(Q, 10).ids
    client.close()
    assert recall(found, truth) == pytest.approx(curve.at(8), abs=2 / 600)
