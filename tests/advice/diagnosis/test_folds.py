"""Folds: nothing that is held out is fitted on, whatever is repeated, and everything is searched."""

import numpy as np
import pytest

from firstk.advice.diagnosis import folds
from firstk.advice.diagnosis.folds import (
    judged_trials,
    lengths_for,
    pair_trials,
    row_trials,
)
from firstk.advice.judgements import as_search
from firstk.data.task import Search

RNG = np.random.default_rng(0)


def as_set(X):
    return {row.tobytes() for row in X}


def test_each_row_is_held_out_once_and_copies_together():
    X = np.repeat(RNG.standard_normal((100, 5)), 3, axis=0)
    trials = row_trials(X, np.arange(300) % 2, "labels")
    assert trials.n == 300
    assert len(trials.folds) == folds.N_FOLDS
    for fold in trials.folds:
        assert not as_set(fold.rows.X) & as_set(fold.data.X)
        assert len(fold.rows.X) + fold.n == 300
        assert fold.data.reference.X is fold.rows.X


def test_folds_do_not_depend_on_the_order_of_rows():
    X = RNG.standard_normal((200, 4))
    order = RNG.permutation(200)
    first, second = (row_trials(part, None, "none").folds for part in (X, X[order]))
    for one, other in zip(first, second, strict=True):
        assert as_set(one.data.X) == as_set(other.data.X)


def test_many_rows_need_no_more_than_one_fold(monkeypatch):
    monkeypatch.setattr(folds, "ENOUGH", 40)
    assert len(row_trials(RNG.standard_normal((400, 4)), None, "none").folds) == 1


def test_pairs_are_held_out_by_their_right_sides():
    documents = RNG.standard_normal((30, 6))
    which = RNG.integers(0, 30, 200)
    left, scores = RNG.standard_normal((200, 6)), RNG.random(200)
    trials = pair_trials(documents, left, documents[which], scores)
    assert trials.n == 200
    for fold in trials.folds:
        assert not as_set(fold.pairs.right) & as_set(fold.data.right)
        assert len(fold.pairs.left) == len(fold.pairs.scores) == 200 - fold.n


def test_judged_queries_are_held_out_and_search_all_documents():
    documents, queries = RNG.standard_normal((50, 6)), RNG.standard_normal((80, 6))
    relevance = np.column_stack([np.repeat(np.arange(10, 80), 2), RNG.integers(0, 50, 140), np.tile([1, 0], 70)])
    trials = judged_trials(Search(queries=queries, documents=documents, relevance=relevance))
    assert trials.n - trials.known == 70  # each is new in one fold
    for fold in trials.folds:
        assert fold.data.documents is documents
        assert not as_set(fold.pairs.left) & as_set(fold.data.queries)
        assert len(fold.pairs.left) == 70 - fold.n  # judged irrelevant is not learned from
        for query, document, grade in fold.data.relevance:
            original = np.flatnonzero((queries == fold.data.queries[query]).all(axis=1))[0]
            assert [original, document, grade] in relevance.tolist()


def test_a_large_store_keeps_what_is_judged(monkeypatch):
    monkeypatch.setattr(folds, "MOST_DOCUMENTS", 60)
    documents, queries = RNG.standard_normal((500, 6)), RNG.standard_normal((50, 6))
    relevance = np.column_stack([np.arange(50), RNG.choice(500, 50, replace=False), np.ones(50, int)])
    search = Search(queries=queries, documents=documents, relevance=relevance)
    for fold in judged_trials(search).folds:
        assert 60 <= len(fold.data.documents) <= 110
        for query, document, _ in fold.data.relevance:
            original = np.flatnonzero((queries == fold.data.queries[query]).all(axis=1))[0]
            assert np.array_equal(fold.data.documents[document], documents[relevance[original, 1]])


def test_positives_as_judgements_count_copies_once():
    left = np.eye(3)[[0, 1, 1, 2]]
    right = np.arange(8.0).reshape(4, 2)[[0, 1, 1, 2]]
    search = as_search(left, right, np.arange(8.0).reshape(4, 2))
    assert search.documents.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert search.queries.tolist() == np.eye(3).tolist()
    assert search.relevance.tolist() == [[0, 0, 1], [1, 1, 1], [2, 2, 1]]


@pytest.mark.parametrize("width", range(1, 70))
def test_lengths_are_shorter_than_the_vectors_where_they_can_be(width):
    ks = lengths_for(width)
    assert list(ks) == sorted(set(ks))
    assert 1 <= ks[0] <= ks[-1] <= width
    assert width <= 2 or ks[-1] < width


def test_copies_of_a_judged_query_are_held_out_together():
    documents, queries = RNG.standard_normal((80, 6)), np.repeat(RNG.standard_normal((40, 6)), 2, axis=0)
    relevance = np.column_stack([np.arange(80), np.arange(80), np.ones(80, dtype=int)])
    for fold in judged_trials(Search(queries=queries, documents=documents, relevance=relevance)).folds:
        assert not as_set(fold.pairs.left) & as_set(fold.data.queries)


def test_judgements_without_a_relevant_document_make_folds():
    documents, queries = RNG.standard_normal((80, 6)), RNG.standard_normal((80, 6))
    relevance = np.column_stack([np.arange(80), np.arange(80), np.zeros(80, dtype=int)])
    trials = judged_trials(Search(queries=queries, documents=documents, relevance=relevance))
    assert (trials.known, trials.known_share) == (0, 0.0)
