"""The choice is made on searches for new documents; what is kept on all of them follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from firstk import Choice, Evaluation, PrefixEncoder, Search, evaluate
from firstk.advice.evaluate import told_apart
from firstk.data.task import FEWEST_NEW
from firstk.exceptions import InvalidInputError
from firstk.moments.fingerprint import document_hashes, pair_hashes
from firstk.quality.choice import RAW, Limits, Offer, Point
from firstk.words.choice import ABOVE_RAW, answer, explanation, share_text

RNG = np.random.default_rng(5)
DOCUMENTS = RNG.standard_normal((120, 12)) * np.arange(12, 0, -1)
OF = RNG.integers(0, 120, 80)
QUERIES = DOCUMENTS[OF] + 2 * RNG.standard_normal((80, 12))
SEEN = np.arange(80) < 45
DATA = Search(
    queries=QUERIES,
    documents=DOCUMENTS,
    relevance=np.column_stack([np.arange(80), OF, np.ones(80, int)]),
    seen=SEEN,
)


@pytest.fixture(scope="module")
def encoder():
    return PrefixEncoder(8).fit(DOCUMENTS).encoder_


@pytest.fixture(scope="module")
def table(encoder):
    return evaluate(encoder, DATA, metric="ndcg@10", baselines=False)


def alone(chosen):
    """Return the searches of some queries, with no other query in them."""
    n = int(chosen.sum())
    relevance = np.column_stack([np.arange(n), OF[chosen], np.ones(n, int)])
    return Search(queries=QUERIES[chosen], documents=DOCUMENTS, relevance=relevance)


@pytest.mark.parametrize("on_new", [True, False])
def test_each_evaluation_is_that_of_its_queries_alone(encoder, table, on_new):
    found, chosen = (table, ~SEEN) if on_new else (table.over_all, np.ones(80, bool))
    expected = evaluate(encoder, alone(chosen), metric="ndcg@10", baselines=False)
    assert found.n_evaluated == expected.n_evaluated == chosen.sum()
    assert found.input_score == pytest.approx(expected.input_score)
    assert [point.score for point in found.points] == pytest.approx([point.score for point in expected.points])
    if on_new:
        own = found.choose(bytes_per_vector=8).own
        assert replace(own, over_all=None) == expected.choose(bytes_per_vector=8).own
    assert Evaluation.from_json(found.to_json()) == found


def test_what_is_kept_on_all_queries_follows_the_advice(table):
    choice = table.choose(bytes_per_vector=8)
    point, everything = choice.advised.point, table.over_all
    same = next(other for other in everything.points if other.key == point.key)
    assert choice.advised.over_all == pytest.approx(same.score / everything.input_score)
    assert (choice.n_known, choice.n_new, choice.n_evaluated) == (45, 35, 35)
    measured = f"{point.score:.3f} of {table.input_score:.3f}, 35 queries for new documents."
    kept = f"They keep {share_text(choice.advised)} of the raw vectors' ndcg@10: {measured}"
    assert answer(choice)[1] == kept
    after = next(line for line in explanation(choice) if line.startswith("New documents: "))
    assert after.endswith(f"Over all 80 queries they keep {100 * choice.advised.over_all:.0f} %.")
    assert Choice.from_json(choice.to_json()) == choice


def test_where_nothing_keeps_the_share_on_new_documents_that_is_said_first(table):
    choice = table.choose(keep=1.0, precision="binary", k=8)
    assert choice.own is None
    assert answer(choice)[0].startswith("No code of this model with k = 8 as binary keeps 100 % of")
    assert "on new documents. The best is" in answer(choice)[0]


@pytest.mark.parametrize("new", [0, 1, FEWEST_NEW - 1])
def test_too_few_new_documents_to_choose_by_are_told(encoder, new):
    found = evaluate(encoder, replace(DATA, seen=np.arange(80) >= new), metric="ndcg@10", baselines=False)
    expected = evaluate(encoder, replace(DATA, seen=None), metric="ndcg@10", baselines=False)
    assert found.points == expected.points
    choice = found.choose()
    assert not choice.on_new
    assert choice.own == expected.choose().own
    some = f"{80 - new} of the queries ask for documents that the fit has learned from, and {new} for new ones only"
    told = explanation(choice)[0]
    assert told.startswith(some if new else "All 80 queries ask for documents that the fit has learned from")
    assert told.endswith("new documents may fare worse.")


@pytest.mark.parametrize("seen", [np.zeros(80, bool), None])
def test_nothing_is_said_where_there_is_nothing_to_tell_apart(encoder, seen):
    found = evaluate(encoder, replace(DATA, seen=seen), metric="ndcg@10", baselines=False)
    assert (found.over_all, found.n_known) == (None, None)
    assert "new" not in " ".join([*answer(found.choose()), *explanation(found.choose())])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_encoder_knows_the_documents_of_its_pairs(tmp_path, dtype):
    documents, queries = DOCUMENTS.astype(dtype), QUERIES.astype(dtype)
    fitted = PrefixEncoder(8, objective="similarity").fit_pairs(queries[SEEN], documents[OF[SEEN]])
    fitted.save(tmp_path / "model")
    data = Search(queries=queries, documents=documents, relevance=DATA.relevance)
    wanted = np.isin(OF, OF[SEEN])
    for encoder in (fitted.encoder_, PrefixEncoder.load(tmp_path / "model").encoder_, fitted.encoder_[:4]):
        np.testing.assert_array_equal(told_apart(data, encoder.learned).seen, wanted)
    # In a file of float32 and another of float64 a document is the same one.
    np.testing.assert_array_equal(told_apart(data, document_hashes(DOCUMENTS[OF[SEEN]])).seen, wanted)


def test_batches_and_merged_encoders_know_the_documents_of_all_pairs():
    parts = [np.arange(30), np.arange(30, 80)]
    whole = PrefixEncoder(8, objective="similarity").fit_pairs(QUERIES, DOCUMENTS[OF])
    batches = PrefixEncoder(8, objective="similarity")
    apart = [PrefixEncoder(8, objective="similarity") for _ in parts]
    for rows, one in zip(parts, apart, strict=True):
        batches.partial_fit_pairs(QUERIES[rows], DOCUMENTS[OF[rows]])
        one.partial_fit_pairs(QUERIES[rows], DOCUMENTS[OF[rows]])
    for other in (batches, apart[0].merge(apart[1])):
        np.testing.assert_array_equal(other.encoder_.learned, whole.encoder_.learned)
    np.testing.assert_array_equal(whole.encoder_.learned, pair_hashes({"left": QUERIES, "right": DOCUMENTS[OF]}))


def test_python_is_advised_by_the_same_queries_as_the_commands():
    encoder = PrefixEncoder(8, objective="similarity").fit_pairs(QUERIES[:30], DOCUMENTS[OF[:30]]).encoder_
    data = Search(queries=QUERIES[30:], documents=DOCUMENTS, relevance=DATA.relevance[30:] - [30, 0, 0])
    new = ~np.isin(OF[30:], OF[:30])
    assert FEWEST_NEW <= new.sum() < 50
    table = evaluate(encoder, data, metric="ndcg@10", baselines=False)
    assert table.n_evaluated == new.sum() == table.choose().n_new
    assert told_apart(data, encoder.learned).new is not None


def test_queries_without_weight_are_in_neither_part():
    parts = replace(DATA, weight=np.where(np.arange(80) % 2, 1.0, 0.0)).parts
    assert [parts[name].sum() for name in ("known", "new")] == [22, 18]


def test_a_share_above_one_hundred_percent_is_explained():
    for share, said in ((1.1, True), (0.9, False)):
        offer = Offer(Point(8, "int8", 8, 0.9), "best", share, share - 0.05, share + 0.05)
        choice = Choice("ndcg@10", RAW, 0.8, (offer,), Limits(bytes_per_vector=8))
        assert (ABOVE_RAW in explanation(choice)) == said


def test_queries_without_relevant_documents_ask_for_none_that_is_new(encoder):
    relevance = np.asarray(DATA.relevance).copy()
    relevance[~SEEN, 2] = 0
    relevance[-5:, 2] = 1
    found = replace(DATA, relevance=relevance)
    assert [found.parts[name].sum() for name in ("known", "new")] == [45, 5]
    assert found.new is None
    relevance[:, 2] = 0
    nothing = evaluate(
        encoder, replace(DATA, relevance=relevance), metric="ndcg@10", baselines=False, ks=[8], precisions=["float32"]
    )
    assert nothing.chance is None
    assert {point.score for point in nothing.points} == {0.0}


@pytest.mark.parametrize("wrong", [SEEN[:10], SEEN.astype(int), np.where(SEEN, 1.0, np.nan)], ids=["few", "int", "nan"])
def test_queries_are_told_apart_by_booleans_alone(encoder, wrong):
    with pytest.raises(InvalidInputError, match="'seen' parameter of Search must be 80 booleans"):
        evaluate(encoder, replace(DATA, seen=wrong), metric="ndcg@10", baselines=False)
