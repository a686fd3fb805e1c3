"""Advice is given on searches for new documents; what is kept on all of them follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from firstk import Choice, Evaluation, PrefixEncoder, Search, evaluate
from firstk.advice.evaluate import told_apart
from firstk.data.task import FEWEST_NEW
from firstk.exceptions import InvalidInputError
from firstk.moments.fingerprint import document_hashes, pair_hashes
from firstk.quality.choose import Limits
from firstk.words.choice import ABOVE_RAW

RNG = np.random.default_rng(5)
DOCUMENTS = RNG.standard_normal((120, 12)) * np.arange(12, 0, -1)
OF = RNG.integers(0, 120, 80)
QUERIES = DOCUMENTS[OF] + 2 * RNG.standard_normal((80, 12))
SEEN = np.arange(80) < 45
DATA = Search(
    queries=QUERIES,
    documents=DOCUMENTS,
    relevance=np.column_stack([np.arange(80), OF, np.ones(80, int)]),
    query_seen=SEEN,
)


@pytest.fixture(scope="module")
def encoder():
    return PrefixEncoder(8).fit(DOCUMENTS).encoder_


@pytest.fixture(scope="module")
def table(encoder):
    return evaluate(encoder, DATA, "ndcg@10")


def alone(chosen):
    """Return the searches of some queries, with no other query in them."""
    n = int(chosen.sum())
    relevance = np.column_stack([np.arange(n), OF[chosen], np.ones(n, int)])
    return Search(queries=QUERIES[chosen], documents=DOCUMENTS, relevance=relevance)


@pytest.mark.parametrize(
    ("name", "chosen"), [(None, ~SEEN), ("known", SEEN), ("everything", np.ones(80, bool))], ids=["new", "seen", "all"]
)
def test_each_table_is_that_of_its_queries_alone(encoder, table, name, chosen):
    found = table if name is None else getattr(table, name)
    expected = evaluate(encoder, alone(chosen), "ndcg@10")
    assert found.n_evaluated == expected.n_evaluated == chosen.sum()
    assert found.input_score == pytest.approx(expected.input_score)
    assert [point.score for point in found.points] == pytest.approx([point.score for point in expected.points])
    if name is None:
        assert found.choose(Limits(bytes_per_vector=8)).chosen == expected.choose(Limits(bytes_per_vector=8)).chosen
    assert Evaluation.from_json(found.to_json()) == found


def test_what_is_kept_on_all_queries_follows_the_advice(table):
    advice = table.choose(Limits(bytes_per_vector=8))
    point = advice.advised.point
    for found, other in ((advice.everything, table.everything), (advice.known, table.known)):
        same = next(
            o
            for o in other.points
            if (o.code, o.k, o.stored_as, o.bytes) == (point.code, point.k, point.stored_as, point.bytes)
        )
        assert found.kept == pytest.approx(same.score / other.input_score)
    assert (advice.n_known, advice.n_new, advice.n_evaluated) == (45, 35, 35)
    first, measured, *others = advice.lines()
    after = next(line for line in others if line.startswith("New documents: "))
    assert f"On new documents (35 queries) they keep {advice.advised.share}" in first
    raw = table.input_score
    assert measured == f"Measured: ndcg@10 {point.score:.3f}, where the raw vectors have {raw:.3f}."
    assert f"they keep {100 * advice.known.kept:.0f} % (45 queries)" in after
    assert after.endswith(f"over all 80 queries it is {100 * advice.everything.kept:.0f} %.")
    assert Choice.from_json(advice.to_json()) == advice


def test_where_nothing_keeps_the_share_on_new_documents_that_is_said_first(table):
    advice = table.choose(Limits(keep=1.0, precisions=("binary",), k=8))
    assert advice.chosen is None
    assert advice.lines()[0].startswith("No code of this model with k = 8 as binary keeps 100 % of")
    assert "on new documents. The best is" in advice.lines()[0]


@pytest.mark.parametrize("new", [0, 1, FEWEST_NEW - 1])
def test_too_few_new_documents_to_choose_by_are_told(encoder, new):
    found = evaluate(encoder, replace(DATA, query_seen=np.arange(80) >= new), "ndcg@10")
    expected = evaluate(encoder, replace(DATA, query_seen=None), "ndcg@10")
    assert found.points == expected.points
    advice = found.choose()
    assert not advice.on_new
    assert advice.chosen == expected.choose().chosen
    said = (
        f"{80 - new} of the queries ask for documents that the fit has learned from, and {new or 'none'} for new ones"
    )
    told = advice.lines()[2]
    assert told.startswith(said)
    assert "too few to choose by (30 are needed)" in told


@pytest.mark.parametrize("seen", [np.zeros(80, bool), None])
def test_nothing_is_said_where_there_is_nothing_to_tell_apart(encoder, seen):
    found = evaluate(encoder, replace(DATA, query_seen=seen), "ndcg@10")
    assert (found.everything, found.known, found.n_known) == (None, None, None)
    assert "new" not in " ".join(found.choose().lines())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_encoder_knows_the_documents_of_its_pairs(tmp_path, dtype):
    documents, queries = DOCUMENTS.astype(dtype), QUERIES.astype(dtype)
    fitted = PrefixEncoder(8, objective="similarity").fit_pairs(queries[SEEN], documents[OF[SEEN]])
    fitted.save(tmp_path / "model")
    data = Search(queries=queries, documents=documents, relevance=DATA.relevance)
    wanted = np.isin(OF, OF[SEEN])
    for encoder in (fitted.encoder_, PrefixEncoder.load(tmp_path / "model").encoder_, fitted.encoder_[:4]):
        np.testing.assert_array_equal(told_apart(data, encoder.learned).query_seen, wanted)
    # In a file of float32 and another of float64 a document is the same one.
    np.testing.assert_array_equal(told_apart(data, document_hashes(DOCUMENTS[OF[SEEN]])).query_seen, wanted)
    assert PrefixEncoder(8).fit(documents).encoder_.learned is None


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
    table = evaluate(encoder, data, "ndcg@10")
    assert table.n_evaluated == new.sum() == table.choose().n_new
    assert population_of(told_apart(data, encoder.learned)).on_new


def test_queries_without_weight_are_in_neither_part():
    parts = parts_by_seen(replace(DATA, query_weight=np.where(np.arange(80) % 2, 1.0, 0.0)))
    assert [len(parts[name].relevance) for name in ("seen", "unseen")] == [22, 18]


def test_a_share_above_one_hundred_percent_is_explained(table):
    advice = replace(
        table.choose(Limits(bytes_per_vector=8)), better=None, safe=None, as_good=None, everything=None, known=None
    )
    above = replace(advice, chosen=replace(advice.chosen, kept=1.1, low=1.05, high=1.2))
    below = replace(advice, chosen=replace(advice.chosen, kept=0.9, low=0.85, high=0.95))
    assert above.lines()[-1] == ABOVE_RAW
    assert ABOVE_RAW not in below.lines()


def test_queries_without_relevant_documents_ask_for_none_that_is_new(encoder):
    relevance = np.asarray(DATA.relevance).copy()
    relevance[~SEEN, 2] = 0
    relevance[-5:, 2] = 1
    found = population_of(replace(DATA, relevance=relevance))
    assert (found.n_known, found.n_new, found.on_new) == (45, 5, False)
    relevance[:, 2] = 0
    nothing = evaluate(encoder, replace(DATA, relevance=relevance), "ndcg@10", ks=[8], precisions=["float32"])
    assert nothing.chance is None
    assert {point.score for point in nothing.points} == {0.0}


@pytest.mark.parametrize("wrong", [SEEN[:10], SEEN.astype(int), np.where(SEEN, 1.0, np.nan)], ids=["few", "int", "nan"])
def test_queries_are_told_apart_by_booleans_alone(encoder, wrong):
    with pytest.raises(InvalidInputError, match="'query_seen' parameter of EvaluationData must be 80 booleans"):
        evaluate(encoder, replace(DATA, query_seen=wrong), "ndcg@10")
