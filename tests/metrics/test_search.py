"""nDCG, reciprocal rank and recall of judged documents at every prefix length against scikit-learn and loops."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from firstk.exceptions import InvalidInputError
from firstk.metrics import mrr, ndcg, relevant_recall, search_per_query
from firstk.metrics.search import MEASURES


def search_data(seed=2, n_docs=40, n_queries=12, d=5):
    rng = np.random.default_rng(seed)
    docs, queries = rng.normal(size=(n_docs, d)), rng.normal(size=(n_queries, d))
    rows = [
        (q, doc, rng.integers(0, 4))
        for q in range(0, n_queries, 2)
        for doc in rng.choice(n_docs, size=1 + 3 * q, replace=False)
    ]
    return docs, queries, np.array(rows)[rng.permutation(len(rows))]


def unit(V):
    norms = np.linalg.norm(V, axis=1, keepdims=True)
    return np.divide(V, norms, out=np.zeros_like(V), where=norms > 0)


def ranked_by_loop(docs, query, k, among):
    """Documents `among` which a query looks, nearest first; ties go to the lowest row."""
    similarity = unit(docs[:, :k]) @ unit(query[None, :k])[0]
    return sorted(among, key=lambda doc: (-round(float(similarity[doc]), 12), doc))


def score_by_loop(measure, order, relevance, at):
    """Score one ranking by one query's judgements, a mapping from documents to grades."""
    first = [max(0, relevance.get(doc, 0)) for doc in order[:at]]
    if measure == "ndcg":
        best = sum(g / np.log2(r + 2) for r, g in enumerate(sorted(relevance.values(), reverse=True)[:at]) if g > 0)
        return sum(g / np.log2(r + 2) for r, g in enumerate(first)) / best if best > 0 else 0.0
    if measure == "mrr":
        return next((1 / (r + 1) for r, g in enumerate(first) if g > 0), 0.0)
    relevant = sum(g > 0 for g in relevance.values())
    return sum(g > 0 for g in first) / relevant if relevant else 0.0


def search_by_loop(docs, queries, judgements, measure, at, k, fields=None, own=None):
    values = {}
    for q in np.unique(judgements[:, 0]):
        among = [d for d in range(len(docs)) if fields is None or fields[1][d] == fields[0][q]]
        among = [d for d in among if own is None or d != own[q]]
        relevance = {doc: rel for query, doc, rel in judgements if query == q and doc in among}
        if relevance:
            values[int(q)] = score_by_loop(measure, ranked_by_loop(docs, queries[q], k, among), relevance, at)
    return values


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("at", [1, 3, 10, 100])
def test_every_measure_equals_the_loop(measure, at):
    docs, queries, judgements = search_data(7)
    judgements[::9, 2] = -1
    rows, values = search_per_query(docs, queries, judgements, measure, at=at)
    for k in range(1, 6):
        expected = search_by_loop(docs, queries, judgements, measure, at, k)
        assert rows.tolist() == list(expected)
        np.testing.assert_allclose(values[:, k - 1], list(expected.values()), atol=1e-12)
    mean = {"ndcg": ndcg, "mrr": mrr, "recall": relevant_recall}[measure]
    np.testing.assert_allclose(mean(docs, queries, judgements, at=at), values.mean(axis=0))
    assert 0 < values.mean() < 1 or at == 100


@pytest.mark.parametrize("measure", MEASURES)
def test_a_filter_leaves_each_query_the_documents_of_its_own_value(measure):
    docs, queries, judgements = search_data(8)
    rng = np.random.default_rng(0)
    fields = rng.integers(0, 3, len(queries)), rng.integers(0, 3, len(docs))
    given = {"query_field": fields[0].astype(str), "document_field": fields[1]}  # one file has text, one numbers
    rows, values = search_per_query(docs, queries, judgements, measure, at=3, ks=[2, 5], **given)
    for i, k in enumerate((2, 5)):
        expected = search_by_loop(docs, queries, judgements, measure, 3, k, fields)
        assert rows.tolist() == list(expected)
        np.testing.assert_allclose(values[:, i], list(expected.values()), atol=1e-12)
    assert not np.allclose(
        values, search_per_query(docs, queries, judgements, measure, at=3, ks=[2, 5])[1][: len(values)]
    )


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("n_docs", [40, 64])  # 64 leaves no room after the last document
def test_no_query_is_its_own_answer(measure, n_docs):
    docs, queries, judgements = search_data(9, n_docs)
    own = np.where(np.arange(len(queries)) % 4 == 0, n_docs - 1 - np.arange(len(queries)), -1)
    judgements = judgements[own[judgements[:, 0]] != judgements[:, 1]]
    near = queries + 0.0
    docs[own[own >= 0]] = near[own >= 0]  # nearest of all, were they not left out
    rows, values = search_per_query(docs, near, judgements, measure, at=5, ks=[5], query_rows=own)
    expected = search_by_loop(docs, near, judgements, measure, 5, 5, own=own)
    assert rows.tolist() == list(expected)
    np.testing.assert_allclose(values[:, 0], list(expected.values()), atol=1e-12)
    if measure == "ndcg":  # which every rank changes
        assert not np.allclose(values, search_per_query(docs, near, judgements, measure, at=5, ks=[5])[1])


def test_search_refuses_what_cannot_be_meant():
    docs, queries, judgements = search_data()
    with pytest.raises(InvalidInputError, match="'measure'"):
        search_per_query(docs, queries, judgements, "map")
    with pytest.raises(InvalidInputError, match="both: 'query_field' and 'document_field'"):
        search_per_query(docs, queries, judgements, query_field=np.zeros(12))
    with pytest.raises(InvalidInputError, match=r"shape \(40,\). Got \(2,\)"):
        search_per_query(docs, queries, judgements, query_field=np.zeros(12), document_field=[1, 2])
    with pytest.raises(InvalidInputError, match="queries have 'a', documents 'b'"):
        search_per_query(docs, queries, judgements, query_field=["a"] * 12, document_field=["b"] * 40)
    with pytest.raises(InvalidInputError, match="12 document rows"):
        search_per_query(docs, queries, judgements, query_rows=[40] * 12)
    with pytest.raises(InvalidInputError, match="1 judgements say it is one"):
        search_per_query(docs, queries, [[0, 3, 1], [1, 2, 1]], query_rows=[3] * 12)


def test_ndcg_equals_scikit_learn():
    docs, queries, _ = search_data(3)
    relevance = np.random.default_rng(4).integers(0, 3, (len(queries), len(docs)))
    table = np.array([(q, doc, relevance[q, doc]) for q in range(len(queries)) for doc in range(len(docs))])
    assert ndcg(docs, queries, table, ks=[5])[0] == pytest.approx(
        ndcg_score(relevance, unit(queries) @ unit(docs).T, k=10)
    )


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
