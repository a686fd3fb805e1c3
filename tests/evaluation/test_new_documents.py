"""What is said of new documents: seen and unseen searches apart, and first in every text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from firstk import PrefixEncoder, precision_table
from firstk.encoder.recommendation import ABOVE_RAW, Recommendation
from firstk.evaluation.advice_for_new import with_unseen
from firstk.evaluation.new_documents import FEWEST, parts_by_seen, table_of_unseen
from firstk.evaluation.recommending import Limits
from firstk.metrics import EvaluationData

RNG = np.random.default_rng(5)
DOCUMENTS = RNG.standard_normal((120, 12)) * np.arange(12, 0, -1)
OF = RNG.integers(0, 120, 60)
QUERIES = DOCUMENTS[OF] + 2 * RNG.standard_normal((60, 12))
SEEN = np.arange(60) < 40
DATA = EvaluationData(
    queries=QUERIES,
    documents=DOCUMENTS,
    relevance=np.column_stack([np.arange(60), OF, np.ones(60, int)]),
    query_seen=SEEN,
)


@pytest.fixture(scope="module")
def encoder():
    return PrefixEncoder(8).fit(DOCUMENTS).encoder_


@pytest.fixture(scope="module")
def tables(encoder):
    table = precision_table(encoder, DATA, "ndcg@10")
    return table, table_of_unseen(encoder, DATA, table, {})


def test_the_unseen_table_is_that_of_unseen_queries_alone(encoder, tables):
    alone = EvaluationData(
        queries=QUERIES[~SEEN],
        documents=DOCUMENTS,
        relevance=np.column_stack([np.arange(20), OF[~SEEN], np.ones(20, int)]),
    )
    expected = precision_table(encoder, alone, "ndcg@10")
    assert tables[1].n_evaluated == 20
    assert tables[1].input_score == pytest.approx(expected.input_score)
    assert [point.score for point in tables[1].points] == pytest.approx([point.score for point in expected.points])


def test_the_choice_is_the_same_and_its_share_is_of_unseen_queries(tables):
    table, unseen = tables
    advice = with_unseen(table.recommend(Limits(bytes_per_vector=8)), unseen, Limits(bytes_per_vector=8))
    point = advice.chosen.point
    same = next(o for o in unseen.own if (o.k, o.precision) == (point.k, point.precision))
    assert advice.unseen.kept == pytest.approx(same.score / unseen.input_score, abs=0.01)  # less optimism
    assert advice.n_unseen == 20
    assert Recommendation.from_json(advice.to_json()) == advice
    if advice.leads_with_unseen:
        first = advice.headline()
        assert first.index(advice.unseen.share) < first.index("over all 60")
        assert "documents that the fit has not seen" in first


@pytest.mark.parametrize("seen", [np.zeros(60, bool), np.ones(60, bool), np.arange(60) >= FEWEST - 1, None])
def test_nothing_is_said_where_there_is_nothing_to_tell_apart(encoder, tables, seen):
    data = replace(DATA, query_seen=seen)
    assert table_of_unseen(encoder, data, tables[0], {}) is None
    assert with_unseen(tables[0].recommend(), None) == tables[0].recommend()


def test_queries_without_weight_are_in_neither_part():
    parts = parts_by_seen(replace(DATA, query_weight=np.where(np.arange(60) % 2, 1.0, 0.0)))
    assert [len(parts[name].relevance) for name in ("seen", "unseen")] == [20, 10]


def test_a_share_above_one_hundred_percent_is_explained(tables):
    advice = replace(tables[0].recommend(), better=None, safe=None, as_good=None)
    above = replace(advice, chosen=replace(advice.chosen, kept=1.1, low=1.05, high=1.2))
    below = replace(advice, chosen=replace(advice.chosen, kept=0.9, low=0.85, high=0.95))
    assert above.lines()[-1] == ABOVE_RAW
    assert ABOVE_RAW not in below.lines()
