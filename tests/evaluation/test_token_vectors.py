"""Token vectors: samples that treat documents alike, curves by MaxSim beside baselines, and inputs that raise."""

from __future__ import annotations

import numpy as np
import pytest

import firstk
from firstk import PrefixEncoder, Similarity, TokenVectors, compare_tokens, curve_tokens, fit_tokens
from firstk.exceptions import InvalidInputError
from firstk.metrics import max_sim_per_query

TOPICS, WIDTH = 12, 24


@pytest.fixture(scope="module")
def tokens():
    """Documents whose tokens mix one of twelve topics, which a few directions hold, with louder noise."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    topics = rng.normal(size=(TOPICS, 5)) @ basis[:5] * 2
    noise = basis[5:] * np.linspace(1.2, 0.3, WIDTH - 5)[:, None]

    def draw(topic, n):
        return topics[topic] + rng.normal(size=(n, WIDTH - 5)) @ noise

    documents = [draw(i % TOPICS, int(rng.integers(3, 30))) for i in range(60)]
    queries = [draw(i % TOPICS, 4) for i in range(24)]
    relevance = np.array([[q, d, 1] for q in range(24) for d in range(60) if q % TOPICS == d % TOPICS])
    return TokenVectors.from_list(queries), TokenVectors.from_list(documents), relevance


def test_curves_are_the_metric_on_codes(tokens):
    queries, documents, relevance = tokens
    encoder = fit_tokens(PrefixEncoder(8, objective="similarity"), documents)
    curve = curve_tokens(encoder, queries, documents, relevance, confidence=0.9)
    assert (curve.k, curve.metric, curve.n_evaluated) == (tuple(range(1, 9)), "MaxSim ndcg@10", 24)
    codes = encoder.encoder_.coordinates(documents.X), encoder.encoder_.coordinates(queries.X, side="query")
    wanted = max_sim_per_query(codes[0], documents.offsets, codes[1], queries.offsets, relevance)[1].mean(axis=0)
    np.testing.assert_allclose(curve.score, wanted)
    raw = max_sim_per_query(documents.X, documents.offsets, queries.X, queries.offsets, relevance, ks=[WIDTH])[1].mean()
    assert curve.input_score == pytest.approx(raw)
    assert all(a <= s <= b for a, s, b in zip(curve.low, curve.score, curve.high, strict=True))


def test_baselines_are_compared_on_the_same_searches(tokens):
    queries, documents, relevance = tokens
    encoder = fit_tokens(PrefixEncoder(WIDTH, objective=Similarity(keep="dot_products")), documents)
    found = compare_tokens(encoder, queries, documents, relevance, ks=[2, 5, WIDTH])
    assert list(found)[1:] == ["PCA", "uncentred SVD", "plain truncation", "random dimensions"]
    ours = next(iter(found.values()))
    np.testing.assert_allclose(ours.score, found["uncentred SVD"].score)  # which is what it is
    for name in ("uncentred SVD", "plain truncation", "random dimensions"):  # rotations and permutations
        assert found[name].at(WIDTH) == pytest.approx(found[name].input_score)


def test_a_sample_takes_as_many_tokens_of_each_document():
    sizes = [2, 100, 5, 50, 1]
    documents = TokenVectors(np.arange(158.0)[:, None] + 1, np.cumsum([0, *sizes]))
    rows = documents.sample(40)[:, 0] - 1
    counts = np.histogram(rows, documents.offsets)[0]
    assert counts.tolist() == [2, 16, 5, 16, 1]
    assert len(np.unique(rows)) == 40
    assert (np.diff(rows) > 0).all()
    assert len(documents.sample(158)) == 158
    assert not np.array_equal(rows, documents.sample(40, random_state=1)[:, 0] - 1)


def test_documents_are_grouped_by_a_column():
    X = np.arange(10.0).reshape(5, 2)
    found, names = TokenVectors.from_column(X, ["b", "b", "a", "c", "c"])
    assert names.tolist() == ["b", "a", "c"]
    assert found.offsets.tolist() == [0, 2, 3, 5]
    np.testing.assert_array_equal(found.document(2), X[3:])
    chosen = found.take([2, 0])
    assert chosen.offsets.tolist() == [0, 2, 4]
    np.testing.assert_array_equal(chosen.X, X[[3, 4, 0, 1]])
    with pytest.raises(InvalidInputError, match=r"Those of .*'a'.* are in 2 places"):
        TokenVectors.from_column(X, ["a", "b", "a", "c", "c"])
    with pytest.raises(InvalidInputError, match="the document of each of 5 tokens"):
        TokenVectors.from_column(X, ["a", "b"])


def test_errors(tokens):
    queries, documents, relevance = tokens
    encoder = PrefixEncoder(4).fit(documents.X)
    with pytest.raises(InvalidInputError, match=r"'documents' parameter of curve_tokens must be TokenVectors"):
        curve_tokens(encoder, queries, documents.X, relevance)
    with pytest.raises(InvalidInputError, match="'metric' parameter"):
        curve_tokens(encoder, queries, documents, relevance, metric="recall@10")
    with pytest.raises(InvalidInputError, match="'encoder' parameter"):
        curve_tokens("encoder", queries, documents, relevance)
    with pytest.raises(InvalidInputError, match=r"Got shapes \[\(3, 2\), \(3, 4\)\]"):
        TokenVectors.from_list([np.ones((3, 2)), np.ones((3, 4))])
    with pytest.raises(InvalidInputError, match="'documents' parameter of fit_tokens"):
        fit_tokens(PrefixEncoder(4), documents.X)
    assert firstk.TokenVectors is TokenVectors
