"""Scores of guessing against guesses."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import Rows, Search
from firstk.metrics.curve import METRICS
from firstk.metrics.search import search_per_query

RNG = np.random.default_rng(0)
DOCUMENTS, QUERIES = 40, 30
JUDGED = np.array(
    [
        (q, d, RNG.integers(1, 3))
        for q in range(QUERIES)
        for d in RNG.choice(DOCUMENTS, RNG.integers(1, 5), replace=False)
    ]
)


@pytest.mark.parametrize(("metric", "measure", "at"), [("ndcg@10", "ndcg", 10), ("mrr@10", "mrr", 10)])
@pytest.mark.parametrize("filtered", [False, True])
def test_random_codes_score_what_chance_says(metric, measure, at, filtered):
    fields = {}
    if filtered:  # each query looks among some documents, its own relevant ones included
        fields = {"query_field": np.arange(QUERIES) % 2, "document_field": np.arange(DOCUMENTS) % 2}
    same = JUDGED[:, 0] % 2 == JUDGED[:, 1] % 2
    relevance = JUDGED[same] if filtered else JUDGED
    data = Search(np.zeros((QUERIES, 6)), np.zeros((DOCUMENTS, 6)), relevance, **fields)
    codes = [(RNG.standard_normal((DOCUMENTS, 6)), RNG.standard_normal((QUERIES, 6))) for _ in range(300)]
    drawn = [search_per_query(*pair, relevance, measure, at=at, ks=[6], **fields)[1].mean() for pair in codes]
    assert METRICS[metric].chance(data) == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / np.sqrt(300))


def test_weights_and_rows_that_are_queries_count():
    relevance = np.array([[0, 1, 1], [1, 2, 1]])
    data = Search(np.zeros((2, 3)), np.zeros((200, 3)), relevance, weight=[1.0, 0.0], query_rows=[0, -1])
    assert METRICS["relevant_recall@100"].chance(data) == pytest.approx(100 / 199)


def test_a_label_is_guessed_by_its_share():
    data = Rows(np.zeros((4, 1)), [0, 0, 1, 1], reference=Rows(np.zeros((4, 1)), [0, 0, 0, 1]))
    assert METRICS["1nn_accuracy"].chance(data) == pytest.approx(0.5)
    assert METRICS["spearman"].chance(data) == 0.0
    assert METRICS["recall@10"].chance(data) is None
