"""Judgements keyed by ids, by rows, in arrays and in mappings: the same rows from all of them."""

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics.judgements import judgement_rows

RNG = np.random.default_rng(0)
M, N, P = 12, 30, 6
QUERIES, DOCUMENTS = RNG.normal(size=(M, P)), RNG.normal(size=(N, P))
ROWS = np.array([(q, d, 1 + (q + d) % 2) for q in range(M) for d in RNG.choice(N, 4, replace=False)])
# Numbers that are row numbers too, of other rows.
QUERY_IDS, DOCUMENT_IDS = RNG.permutation(M), np.array([f"d{i}" for i in RNG.permutation(N)])
KEYED = [(QUERY_IDS[q], DOCUMENT_IDS[d], g) for q, d, g in ROWS.tolist()]


def nested(rows):
    found = {}
    for q, d, g in rows:
        found.setdefault(q, {})[d] = g
    return found


@pytest.mark.parametrize(
    "relevance",
    [KEYED, np.array(KEYED, dtype=object), np.array(KEYED), nested(KEYED)],
    ids=["tuples", "objects", "text", "mapping"],
)
def test_ids_give_the_rows_they_name(relevance):
    np.testing.assert_array_equal(judgement_rows(relevance, QUERY_IDS, DOCUMENT_IDS), ROWS)


def test_rows_are_taken_where_no_ids_are_given():
    np.testing.assert_array_equal(judgement_rows(ROWS), ROWS)
    np.testing.assert_array_equal(judgement_rows(ROWS[:, :2].tolist())[:, 2], 1)
    floats = judgement_rows([(17.0, 3.0, 1.0)], ["17"], ["3", "4"])  # as a table with missing values stores ids
    np.testing.assert_array_equal(floats, [[0, 0, 1]])


@pytest.mark.parametrize(
    ("relevance", "ids", "sentence"),
    [
        ([("x", "d1", 1), ("y", "d2", 1)], (["x"], ["d1", "d2"]), "judges query y, which is not in 'query_ids'"),
        ([("x", "d1", 1)], (["x"], ["d1", "d1"]), "1 ids twice"),
        ([("x", "d1", 1)], (None, None), "queries of 'relevance' are whole numbers, or ids that 'query_ids' has"),
        ([("x", "d1", 0.5)], (["x"], ["d1"]), "grades of 'relevance' are whole numbers"),
        ([("x", "d1", "no")], (["x"], ["d1"]), "grades of 'relevance' are whole numbers"),
        ([1, 2, 3], (None, None), "Judgements are rows"),
        ({}, (None, None), "Judgements are rows"),
    ],
)
def test_what_cannot_be_meant_raises(relevance, ids, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        judgement_rows(relevance, *ids)


def test_curves_and_fits_are_the_same_by_ids_and_by_rows():
    ids = {"query_ids": QUERY_IDS, "document_ids": DOCUMENT_IDS}
    by_rows = PrefixEncoder(2, objective="similarity").fit_search(QUERIES, DOCUMENTS, ROWS)
    by_ids = PrefixEncoder(2, objective="similarity").fit_search(QUERIES, DOCUMENTS, KEYED, **ids)
    expected = PrefixEncoder(2, objective="similarity").fit_pairs(QUERIES[ROWS[:, 0]], DOCUMENTS[ROWS[:, 1]])
    np.testing.assert_array_equal(by_ids.components_, by_rows.components_)
    np.testing.assert_array_equal(by_ids.components_, expected.components_)
    for metric in ("ndcg@10", "mrr@10", "relevant_recall@100"):
        curves = [
            by_rows.curve_search(QUERIES, DOCUMENTS, ROWS, metric=metric),
            by_rows.curve_search(QUERIES, DOCUMENTS, KEYED, metric=metric, **ids),
        ]
        assert curves[0] == curves[1]
    with pytest.raises(InvalidInputError, match="query rows"):
        by_rows.curve_search(QUERIES, DOCUMENTS, [(M, 0, 1)])
    with pytest.raises(InvalidInputError, match="query rows"):
        PrefixEncoder(objective="similarity").fit_search(QUERIES, DOCUMENTS, [(M, 0, 1)])


def test_documents_of_no_relevance_are_not_learned_from():
    graded = ROWS.copy()
    graded[::3, 2] = 0
    kept = graded[graded[:, 2] > 0]
    found = PrefixEncoder(2, objective="similarity").fit_search(QUERIES, DOCUMENTS, graded)
    expected = PrefixEncoder(2, objective="similarity").fit_pairs(QUERIES[kept[:, 0]], DOCUMENTS[kept[:, 1]])
    np.testing.assert_array_equal(found.components_, expected.components_)


def test_weights_and_fields_of_a_search():
    enc = PrefixEncoder(4).fit(DOCUMENTS)
    weights = np.arange(M) % 3
    found = enc.curve_search(QUERIES, DOCUMENTS, ROWS, query_weight=weights, confidence=0.9)
    each = [enc.curve_search(QUERIES, DOCUMENTS, ROWS[ROWS[:, 0] == q]).score for q in range(M)]
    np.testing.assert_allclose(found.score, np.average(each, axis=0, weights=weights))
    assert found.n_evaluated == np.sum(weights > 0)
    raw = [enc.curve_search(QUERIES, DOCUMENTS, ROWS[ROWS[:, 0] == q], ks=[1]).input_score for q in range(M)]
    assert found.input_score == pytest.approx(np.average(raw, weights=weights))
    fields = {"query_field": np.arange(M) % 2, "document_field": np.arange(N) % 2}
    within = enc.curve_search(QUERIES, DOCUMENTS, ROWS, **fields)
    part = [ROWS[(ROWS[:, 0] % 2 == v) & (ROWS[:, 1] % 2 == v)] for v in (0, 1)]
    scores = [
        enc.curve_search(QUERIES, DOCUMENTS[v::2], np.column_stack([p[:, 0], p[:, 1] // 2, p[:, 2]]))
        for v, p in enumerate(part)
    ]
    counts = [len(np.unique(p[:, 0])) for p in part]
    np.testing.assert_allclose(within.score, np.average([one.score for one in scores], axis=0, weights=counts))
    for bad in (np.zeros(M), -np.ones(M), np.ones(M - 1)):
        with pytest.raises(InvalidInputError, match="query_weight"):
            enc.curve_search(QUERIES, DOCUMENTS, ROWS, query_weight=bad)
