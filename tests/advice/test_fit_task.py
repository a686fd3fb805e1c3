"""Fits that are evaluated by search: what they learn from, who is held out, and the store that is searched."""

from dataclasses import replace

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.advice.inputs import VectorSource
from firstk.advice.judgements import read_judged
from firstk.data.files import write_vectors
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.fit_files import draw, draw_groups, fit_stream
from firstk.exceptions import InvalidInputError
from firstk.metrics import METRICS
from firstk.objectives import Similarity

M, N, P = 40, 150, 8
RNG = np.random.default_rng(0)
DOCUMENTS = RNG.normal(size=(N, P)) * np.arange(P, 0, -1)
OF = np.concatenate([np.arange(30), RNG.integers(0, 30, 10)])  # the document that each query is about
QUERIES = DOCUMENTS[OF] + 0.5 * RNG.normal(size=(M, P))
# Rows of (query, document, grade): one good document, one fair, one that is not relevant.
JUDGED = np.array([(q, d, g) for q in range(M) for d, g in ((OF[q], 2), (30 + q, 1), (80 + q, 0))])
QUERY_IDS, DOCUMENT_IDS = RNG.permutation(M) + 500, RNG.permutation(N)  # documents' ids are row numbers of others
FIXED = Similarity(shrinkage=0.5, neighbor_weight=0.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_vectors("docs.parquet", DOCUMENTS, {"id": DOCUMENT_IDS, "part": np.arange(N) % 2}, name="e")
    write_vectors("queries.parquet", QUERIES, {"id": QUERY_IDS, "part": np.arange(M) % 2}, name="e")
    keyed = [(QUERY_IDS[q], DOCUMENT_IDS[d], g) for q, d, g in JUDGED]
    header, lines = "query,document,grade\n", ["{},{},{}\n"] * len(JUDGED)
    (tmp_path / "ids.csv").write_text(header + "".join(f.format(*row) for f, row in zip(lines, keyed, strict=True)))
    (tmp_path / "rows.csv").write_text(header + "".join(f.format(*row) for f, row in zip(lines, JUDGED, strict=True)))
    good = [row for row in keyed if row[2]]
    (tmp_path / "pairs.csv").write_text("left,right\n" + "".join(f"{q},{d}\n" for q, d, _ in good))
    return tmp_path


def search(**options):
    return VectorSource("docs.parquet", **{"queries": "queries.parquet", "relevance": "ids.csv"} | options)


def fitted(place, share="0.25", objective=FIXED, **options):
    task = open_fit(place, share, 1, **options)
    encoder = PrefixEncoder(3, objective=objective, random_state=1)
    return task, task.searched(fit_stream(encoder, task.stream.chunks, task.parts, task.held))


def queries_of(vectors):
    """Numbers of the queries that some vectors are."""
    return {int(np.flatnonzero((row == QUERIES).all(axis=1))[0]) for row in np.unique(vectors, axis=0)}


@pytest.mark.parametrize(
    "place",
    [
        search(),
        search(ids="id"),
        search(relevance="rows.csv", by_row=True),
        search(relevance=None, pairs="pairs.csv"),
    ],
    ids=["ids found", "ids named", "rows", "pairs"],
)
def test_a_search_learns_from_some_queries_and_is_evaluated_on_the_others_over_the_whole_store(folder, place):
    task, done = fitted(place)
    learned = [row for row in JUDGED if row[2] > 0 and row[0] not in queries_of(np.asarray(done.data.queries))]
    held = [row for row in JUDGED if row[0] in queries_of(np.asarray(done.data.queries))]
    assert len({q for q, _, _ in held}) == 10
    assert done.rows == len(learned) == 60
    expected = PrefixEncoder(3, objective=FIXED).fit_pairs(
        QUERIES[[q for q, _, _ in learned]], DOCUMENTS[[d for _, d, _ in learned]]
    )
    np.testing.assert_allclose(np.abs(done.encoder.components_), np.abs(expected.components_), atol=1e-8)
    np.testing.assert_array_equal(done.data.documents, DOCUMENTS)  # all are candidates
    if place.pairs is not None:
        held = [(q, d, 1) for q, d, g in held if g]
    curve = done.encoder.curve_search(QUERIES, DOCUMENTS, held)
    found = evaluate_fit(done, task.provenance(done, place))
    assert found.lead.ours.metric == "ndcg@10"
    np.testing.assert_allclose(found.lead.ours.score, curve.score, atol=1e-12)
    assert found.lead.ours.input_score == pytest.approx(curve.input_score)
    assert len(found.lead.baselines) == 4
    assert "Evaluated on 10 queries of queries.parquet" in found.held_out
    assert "among 150 documents of docs.parquet" in found.held_out
    assert (found.rows, found.facts["queries held out"], found.facts["pairs fitted on"]) == (N, 10, 60)


def test_an_objective_that_does_not_look_at_judgements_has_all_queries_held_out(folder):
    task, done = fitted(search(), objective="reconstruction", from_pairs=False)
    assert done.rows == N
    expected = PrefixEncoder(3).fit(DOCUMENTS).curve_search(QUERIES, DOCUMENTS, JUDGED)
    found = evaluate_fit(done, task.provenance(done, search()))
    assert found.lead.ours.n_evaluated == M
    np.testing.assert_allclose(found.lead.ours.score, expected.score, atol=1e-12)
    assert done.data.query_seen is None
    nothing, plain = fitted(search(), "0", objective="reconstruction", from_pairs=False)
    assert nothing.split is None
    assert plain.held == {}


def test_queries_of_seen_and_of_unseen_documents_are_told_apart(folder):
    _, done = fitted(search())
    held = sorted(queries_of(np.asarray(done.data.queries)))
    learned = {int(d) for q, d, g in JUDGED if g > 0 and q not in held}
    seen = [bool({int(d) for q, d, g in JUDGED if q == query and g > 0} & learned) for query in held]
    assert set(seen) == {True, False}
    where = {query: row for row, query in enumerate(queries_in_order(done))}
    np.testing.assert_array_equal(np.asarray(done.data.query_seen)[[where[q] for q in held]], seen)
    curves = curves_by_seen(done.encoder.encoder_, done.data, ks=[2, 3])
    for name, wanted in (("seen", True), ("unseen", False)):
        part = [row for row in JUDGED if row[0] in [q for q, s in zip(held, seen, strict=True) if s is wanted]]
        np.testing.assert_allclose(
            curves[name].score, done.encoder.curve_search(QUERIES, DOCUMENTS, part, ks=[2, 3]).score, atol=1e-12
        )
    assert curves_by_seen(done.encoder.encoder_, replace(done.data, query_seen=None)) == {}


def queries_in_order(done):
    return [int(np.flatnonzero((row == QUERIES).all(axis=1))[0]) for row in np.asarray(done.data.queries)]


def test_a_file_of_judgements_can_be_held_out(folder):
    keep = [5, 17, 33]
    lines = [f"{QUERY_IDS[q]},{DOCUMENT_IDS[d]},{g}\n" for q, d, g in JUDGED if q in keep]
    (folder / "own.csv").write_text("query,document,grade\n" + "".join(lines))
    task, done = fitted(search(ids="id"), "own.csv")
    assert queries_of(np.asarray(done.data.queries)) == set(keep)
    assert done.rows == 2 * (M - 3)  # what is evaluated is not learned from
    assert "3 queries of it are in the training judgements too" in task.provenance(done, search()).held_out
    _, other = fitted(search(ids="id"), "own.csv", objective="reconstruction", from_pairs=False)
    assert queries_of(np.asarray(other.data.queries)) == set(keep)


def test_pairs_of_one_file_are_searched_without_the_row_itself(folder):
    (folder / "alike.csv").write_text(
        "left,right\n" + "".join(f"{DOCUMENT_IDS[i]},{DOCUMENT_IDS[i + 40]}\n" for i in range(40))
    )
    _, done = fitted(VectorSource("docs.parquet", pairs="alike.csv", ids="id"))
    data = done.data
    np.testing.assert_array_equal(DOCUMENTS[np.asarray(data.query_rows)], data.queries)
    ranks = np.argsort(-unit(DOCUMENTS) @ unit(np.asarray(data.queries)).T, axis=0)
    assert (ranks[0] == np.asarray(data.query_rows)).all()  # the row itself would be first
    first = [
        1 / (1 + list(ranks[1:11, i]).index(d)) if d in ranks[1:11, i] else 0 for i, d, _ in np.asarray(data.relevance)
    ]
    assert METRICS["mrr@10"].raw(done.encoder.encoder_, data) == pytest.approx(np.mean(first))


def unit(V):
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def test_pairs_of_vectors_are_divided_by_their_left_sides_and_searched_among_all_right_sides(folder):
    left, right = QUERIES[[0, 0, *range(1, M)]], DOCUMENTS[[OF[0], 90, *OF[1:]]]
    write_vectors("v.npz", left, {"right": right}, name="left")
    task, done = fitted(VectorSource("v.npz", pairs="left,right"))
    held = queries_of(np.asarray(done.data.queries))
    assert len(held) == 10
    assert done.rows == (41 - 10 - (0 in held))
    assert len(np.asarray(done.data.documents)) == len(np.unique(right, axis=0))
    said = task.provenance(done, VectorSource("v.npz", pairs="left,right")).held_out
    assert "Candidates are the right sides of the pairs, and a larger store is harder to search" in said


def test_a_file_of_vector_pairs_can_be_held_out(folder):
    write_vectors("v.npz", QUERIES[:30], {"right": DOCUMENTS[OF[:30]]}, name="left")
    write_vectors("w.npz", QUERIES[29:], {"right": DOCUMENTS[100:111]}, name="left")
    _, done = fitted(VectorSource("v.npz", pairs="v.npz:left,right"), "w.npz:left,right")
    assert queries_of(np.asarray(done.data.queries)) == set(range(29, M))
    assert done.rows == 29
    assert len(np.asarray(done.data.documents)) == len(np.unique(OF[:30])) + 11


def test_a_part_of_many_queries_is_evaluated(folder):
    judged = read_judged(search())
    np.testing.assert_array_equal(judged.some_queries(M), np.arange(len(judged.pairs)))
    some = judged.some_queries(7)
    assert len(np.unique(judged.pairs[some, 0])) == 7
    assert len(some) == 3 * 7


def test_grades_given_as_scores_are_told_of_the_search(folder):
    place = search(relevance=None, pairs="ids.csv", ids="id")
    task, done = fitted(place)
    assert task.split is None
    assert "--relevance evaluates by search" in task.provenance(done, place).held_out


def test_scored_pairs_are_divided_by_their_left_sides(folder):
    left, scores = np.repeat(QUERIES, 2, axis=0), RNG.random(2 * M)
    write_vectors("s.npz", left, {"right": DOCUMENTS[: 2 * M], "s": scores}, name="left")
    task, done = fitted(VectorSource("s.npz", pairs="left,right,s"))
    assert task.split is None
    assert done.data.scores is not None
    assert queries_of(done.held["left"]).isdisjoint(queries_of(done.reference["left"]))
    assert len(done.held["left"]) == 2 * len(queries_of(done.held["left"])) == 20


def test_groups_of_one_row_are_drawn_as_rows_are():
    for share in (0.0, 0.2, 0.5):
        groups, rows = draw_groups(np.arange(50), share, 3), draw(50, share, 3)
        np.testing.assert_array_equal(groups.held, rows.held)
        np.testing.assert_array_equal(groups.reference, rows.reference)


@pytest.mark.parametrize("share", ["0.25", "0.1", "0"])
def test_a_model_knows_the_queries_that_it_was_not_fitted_on(folder, share):
    task, done = fitted(search(), share)
    done.encoder.save("model")
    saved = FittedEncoder.load("model")
    judged = read_judged(search())
    np.testing.assert_array_equal(pairs_of_new_queries(saved, judged), task.split.held)
    other = replace(judged, pairs=judged.pairs * [1, 0] + [0, 7])  # the same queries, judged otherwise
    np.testing.assert_array_equal(pairs_of_new_queries(saved, other), task.split.held)
    assert len(pairs_of_new_queries(saved, replace(judged, queries=judged.queries + 1))) == len(judged.pairs)


def test_a_model_knows_the_scored_pairs_that_it_was_not_fitted_on(folder):
    write_vectors(
        "s.npz", np.repeat(QUERIES, 2, axis=0), {"right": DOCUMENTS[: 2 * M], "s": np.arange(2 * M)}, name="l"
    )
    place = VectorSource("s.npz", pairs="l,right,s")
    task, done = fitted(place)
    done.encoder.save("model")
    judged = read_judged(place)
    np.testing.assert_array_equal(pairs_of_new_queries(FittedEncoder.load("model"), judged), task.parts.held)
    again = read_evaluation(FittedEncoder.load("model"), CurveRequest(place))
    assert f"The {M - len(np.unique(judged.pairs[task.parts.held, 0]))} left sides that the model was" in again.said
    np.testing.assert_array_equal(again.data.scores, done.held["scores"])


def test_what_cannot_be_learned_from_raises(folder):
    (folder / "none.csv").write_text("query,document,grade\n" + "".join(f"{i},0,0\n" for i in QUERY_IDS))
    with pytest.raises(InvalidInputError, match="calls a document relevant"):
        open_fit(search(relevance="none.csv", ids="id"), "0.2")
    with pytest.raises(InvalidInputError, match="belong to --relevance or --pairs"):
        open_fit(VectorSource("docs.parquet", ids="id"), "0.2")
    with pytest.raises(InvalidInputError, match="--query-weight is a column of --queries"):
        open_fit(VectorSource("docs.parquet", relevance="ids.csv", query_weight="w"), "0.2")
    with pytest.raises(InvalidInputError, match="a share of the rows"):
        open_fit(search(), "1.5")


def test_every_query_is_on_one_side_only():
    pairs = np.column_stack([np.repeat(np.arange(20), 3), np.arange(60)])
    judged = JudgedPairs(np.eye(20), np.eye(60)[:, :20], pairs, None)
    split = QuerySplit.by_query(judged, 0.3, 0)
    assert set(pairs[split.held, 0]).isdisjoint(pairs[split.learned, 0])
    assert sorted([*split.held, *split.learned]) == list(range(60))
    assert len(set(pairs[split.held, 0])) == 6
