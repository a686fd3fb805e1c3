"""Spearman and nDCG at every prefix length against scipy, scikit-learn and loops over k."""

import warnings

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import ndcg_score

from firstk.exceptions import InvalidInputError
from firstk.metrics import ndcg, ndcg_per_query, pair_spearman


def cosines(A, B):
    norms = np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)
    return np.divide((A * B).sum(axis=1), norms, out=np.zeros(len(A)), where=norms > 0)


def test_spearman_equals_scipy_with_ties():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(50, 6)), rng.normal(size=(50, 6))
    A[10:15], B[10:15] = A[10], B[10]
    A[20] = 0
    scores = rng.integers(0, 6, 50)
    expected = [spearmanr(cosines(A[:, :k], B[:, :k]), scores)[0] for k in range(1, 7)]
    np.testing.assert_allclose(pair_spearman(A, B, scores), expected, atol=1e-10)


def test_spearman_in_float32_and_at_extreme_scales():
    rng = np.random.default_rng(1)
    A, B, scores = rng.normal(size=(40, 5)), rng.normal(size=(40, 5)), rng.normal(size=40)
    expected = pair_spearman(A, B, scores)
    np.testing.assert_allclose(pair_spearman(A * 1e200, B * 1e-200, scores), expected, atol=1e-12)
    small = pair_spearman(A.astype(np.float32), B.astype(np.float32), scores)
    np.testing.assert_allclose(small, expected, atol=1e-3)


def test_spearman_of_equal_cosines_is_zero_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = pair_spearman([[1.0, 0], [2, 0], [3, 0]], np.zeros((3, 2)), [1, 2, 3])
    np.testing.assert_array_equal(curve, [0, 0])


def test_spearman_refuses():
    Z = np.eye(3)
    with pytest.raises(InvalidInputError, match="All 3 are 1; for positives"):
        pair_spearman(Z, Z, [1, 1, 1])
    with pytest.raises(InvalidInputError, match=r"shape \(3,\). Got \(2,\)"):
        pair_spearman(Z, Z, [1, 2])
    with pytest.raises(InvalidInputError, match="NaN or infinity in 1 of 3"):
        pair_spearman(Z, Z, [1, 2, np.nan])


def search_data(seed=2, n_docs=40, n_queries=12, d=5):
    rng = np.random.default_rng(seed)
    docs, queries = rng.normal(size=(n_docs, d)), rng.normal(size=(n_queries, d))
    rows = [
        (q, doc, rng.integers(0, 4))
        for q in range(0, n_queries, 2)
        for doc in rng.choice(n_docs, size=1 + 3 * q, replace=False)
    ]
    return docs, queries, np.array(rows)[rng.permutation(len(rows))]


def ndcg_by_loop(docs, queries, judgements, at, k):
    values = {}
    for q in np.unique(judgements[:, 0]):
        relevance = {doc: rel for query, doc, rel in judgements if query == q}
        similarity = cosines(docs[:, :k], np.repeat(queries[q : q + 1, :k], len(docs), axis=0))
        order = np.argsort(-np.round(similarity, 12), kind="stable")[:at]
        dcg = sum(relevance.get(doc, 0) / np.log2(r + 2) for r, doc in enumerate(order))
        best = sum(g / np.log2(r + 2) for r, g in enumerate(sorted(relevance.values(), reverse=True)[:at]))
        values[int(q)] = dcg / best if best > 0 else 0.0
    return values


@pytest.mark.parametrize("at", [1, 10, 100])
def test_ndcg_equals_the_loop(at):
    docs, queries, judgements = search_data()
    rows, values = ndcg_per_query(docs, queries, judgements, at=at)
    for k in range(1, 6):
        expected = ndcg_by_loop(docs, queries, judgements, at, k)
        assert rows.tolist() == list(expected)
        np.testing.assert_allclose(values[:, k - 1], list(expected.values()), atol=1e-12)
    np.testing.assert_allclose(ndcg(docs, queries, judgements, at=at), values.mean(axis=0))
    assert values.max() > 0


def test_ndcg_equals_scikit_learn():
    docs, queries, _ = search_data(3)
    relevance = np.random.default_rng(4).integers(0, 3, (len(queries), len(docs)))
    table = np.array([(q, doc, relevance[q, doc]) for q in range(len(queries)) for doc in range(len(docs))])
    unit = [V / np.linalg.norm(V, axis=1, keepdims=True) for V in (queries, docs)]
    assert ndcg(docs, queries, table, ks=[5])[0] == pytest.approx(ndcg_score(relevance, unit[0] @ unit[1].T, k=10))


def test_ndcg_at_some_prefix_lengths():
    docs, queries, judgements = search_data(5)
    every = ndcg(docs, queries, judgements)
    np.testing.assert_allclose(ndcg(docs, queries, judgements, ks=[2, 5]), every[[1, 4]], atol=1e-12)


def test_ndcg_counts_judged_queries_without_relevant_documents_as_zero():
    Z = np.eye(3)
    np.testing.assert_allclose(ndcg(Z, Z, [[0, 0, 2], [1, 1, 0], [2, 2, -1]])[-1], 1 / 3)


def test_ndcg_of_fewer_documents_than_at():
    value = ndcg([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.1]], [[0, 1, 1]], ks=[2])
    np.testing.assert_allclose(value, [1 / np.log2(3)])


@pytest.mark.parametrize(
    ("judgements", "sentence"),
    [
        ([[0, 1]], r"shape \(j, 3\)"),
        ([[0.0, 1.0, 1.0]], "Got float64"),
        (np.empty((0, 3), dtype=int), r"shape \(0, 3\)"),
        ([[3, 0, 1]], "query rows"),
        ([[0, -1, 1]], "document rows"),
        ([[0, 1, 1], [0, 1, 2]], "Got 1 repeated among 2"),
    ],
)
def test_ndcg_refuses(judgements, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        ndcg(np.eye(3), np.eye(3), judgements)
