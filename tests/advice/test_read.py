"""Fits that are evaluated by search: what they learn from, who is held out, and the store that is searched."""

import numpy as np
import pytest

from firstk import Pairs, PrefixEncoder, evaluate
from firstk.advice.evaluate import told_apart
from firstk.advice.fit_report import report_on
from firstk.advice.inputs import VectorSource
from firstk.advice.read import evaluated_on, open_task, read_for
from firstk.data.files import write_vectors
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.fit_files import draw, draw_groups
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


def fitted(place, share="0.25", objective=FIXED):
    task = open_task(place, share, 1)
    return task, PrefixEncoder(3, objective=objective, random_state=1).fit(task.train)


def rows_of(search):
    """Numbers of the queries of a search, in its order."""
    return [int(np.flatnonzero((row == QUERIES).all(axis=1))[0]) for row in np.asarray(search.queries)]


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
    task, encoder = fitted(place)
    asked = rows_of(task.held_out)
    assert len(asked) == len(set(asked)) == 10
    learned, held = ([row for row in JUDGED if (row[0] in asked) == side] for side in (False, True))
    learned = [row for row in learned if row[2] > 0]
    assert task.train.positives.n == len(learned) == 60
    expected = PrefixEncoder(3, objective=FIXED).fit_pairs(
        QUERIES[[q for q, _, _ in learned]], DOCUMENTS[[d for _, d, _ in learned]]
    )
    np.testing.assert_allclose(np.abs(encoder.components_), np.abs(expected.components_), atol=1e-8)
    np.testing.assert_array_equal(task.held_out.documents, DOCUMENTS)  # all are candidates
    if place.pairs is not None:
        held = [(q, d, 1) for q, d, g in held if g]
    curve = encoder.curve_search(QUERIES, DOCUMENTS, held)
    found, _ = report_on(encoder, task, settings={"precisions": ["float32"]})
    assert found.lead.metric == "ndcg@10"
    np.testing.assert_allclose(found.lead.curve().score, curve.score, atol=1e-12)
    assert found.lead.input_score == pytest.approx(curve.input_score)
    assert len(found.lead.baselines) == 4
    assert "Evaluated on 10 queries of queries.parquet" in found.held_out
    assert "among 150 documents of docs.parquet" in found.held_out
    assert (found.rows, found.facts["queries held out"], found.facts["pairs fitted on"]) == (N, 10, 60)


def test_an_objective_that_does_not_look_at_judgements_has_all_queries_held_out(folder):
    task, encoder = fitted(search(), "1", "reconstruction")
    assert encoder.encoder_.record.rows == N
    expected = PrefixEncoder(3).fit(DOCUMENTS).curve_search(QUERIES, DOCUMENTS, JUDGED)
    found = evaluate(encoder, task.held_out, precisions=["float32"], baselines=False)
    assert found.n_evaluated == M
    np.testing.assert_allclose(found.curve().score, expected.score, atol=1e-12)
    assert found.n_known is None
    assert fitted(search(), "0", "reconstruction")[0].held_out is None


def test_queries_of_known_and_of_new_documents_are_told_apart(folder):
    task, encoder = fitted(search())
    held = rows_of(task.held_out)
    learned = {int(d) for q, d, g in JUDGED if g > 0 and q not in held}
    seen = [bool({int(d) for q, d, g in JUDGED if q == query and g > 0} & learned) for query in held]
    assert set(seen) == {True, False}
    np.testing.assert_array_equal(told_apart(task.held_out, encoder.encoder_.learned).seen, seen)


def test_a_file_of_judgements_can_be_held_out(folder):
    keep = [5, 17, 33]
    lines = [f"{QUERY_IDS[q]},{DOCUMENT_IDS[d]},{g}\n" for q, d, g in JUDGED if q in keep]
    (folder / "own.csv").write_text("query,document,grade\n" + "".join(lines))
    task, _ = fitted(search(ids="id"), "own.csv")
    assert set(rows_of(task.held_out)) == set(keep)
    assert task.train.positives.n == 2 * (M - 3)  # what is evaluated is not learned from
    assert "3 queries of it are in the training judgements too" in evaluated_on(task)


def test_pairs_of_one_file_are_searched_without_the_row_itself(folder):
    (folder / "alike.csv").write_text(
        "left,right\n" + "".join(f"{DOCUMENT_IDS[i]},{DOCUMENT_IDS[i + 40]}\n" for i in range(40))
    )
    task, encoder = fitted(VectorSource("docs.parquet", pairs="alike.csv", ids="id"))
    data = task.held_out
    np.testing.assert_array_equal(DOCUMENTS[np.asarray(data.query_rows)], data.queries)
    ranks = np.argsort(-unit(DOCUMENTS) @ unit(np.asarray(data.queries)).T, axis=0)
    assert (ranks[0] == np.asarray(data.query_rows)).all()  # the row itself would be first
    first = [
        1 / (1 + list(ranks[1:11, i]).index(d)) if d in ranks[1:11, i] else 0 for i, d, _ in np.asarray(data.relevance)
    ]
    assert METRICS["mrr@10"].raw(encoder.encoder_, data) == pytest.approx(np.mean(first))


def unit(V):
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def test_pairs_of_vectors_are_divided_by_their_left_sides_and_searched_among_all_right_sides(folder):
    left, right = QUERIES[[0, 0, *range(1, M)]], DOCUMENTS[[OF[0], 90, *OF[1:]]]
    write_vectors("v.npz", left, {"right": right}, name="left")
    task, _ = fitted(VectorSource("v.npz", pairs="left,right"))
    held = set(rows_of(task.held_out))
    assert len(held) == 10
    assert task.train.positives.n == (41 - 10 - (0 in held))
    assert len(np.asarray(task.held_out.documents)) == len(np.unique(right, axis=0))
    assert "Candidates are the right sides of the pairs, and a larger store is harder to search" in evaluated_on(task)


def test_a_file_of_vector_pairs_can_be_held_out(folder):
    write_vectors("v.npz", QUERIES[:30], {"right": DOCUMENTS[OF[:30]]}, name="left")
    write_vectors("w.npz", QUERIES[29:], {"right": DOCUMENTS[100:111]}, name="left")
    task, _ = fitted(VectorSource("v.npz", pairs="v.npz:left,right"), "w.npz:left,right")
    assert set(rows_of(task.held_out)) == set(range(29, M))
    assert task.train.positives.n == 29
    assert len(np.asarray(task.held_out.documents)) == len(np.unique(OF[:30])) + 11


def test_grades_given_as_scores_are_told_of_the_search(folder):
    place = search(relevance=None, pairs="ids.csv", ids="id")
    task, _ = fitted(place)
    assert isinstance(task.held_out, Pairs)
    assert "relevance= evaluates by search" in evaluated_on(task)


def test_scored_pairs_are_divided_by_their_left_sides(folder):
    left, scores = np.repeat(QUERIES, 2, axis=0), RNG.random(2 * M)
    write_vectors("s.npz", left, {"right": DOCUMENTS[: 2 * M], "s": scores}, name="left")
    task, _ = fitted(VectorSource("s.npz", pairs="left,right,s"))
    assert task.held_out.scored
    held = queries_of(task.held_out.left)
    assert held.isdisjoint(queries_of(task.train.left))
    assert task.held_out.n == 2 * len(held) == 20


def test_groups_of_one_row_are_drawn_as_rows_are():
    for share in (0.0, 0.2, 0.5):
        groups, rows = draw_groups(np.arange(50), share, 3), draw(50, share, 3)
        np.testing.assert_array_equal(groups.held, rows.held)
        np.testing.assert_array_equal(groups.reference, rows.reference)


@pytest.mark.parametrize("share", ["0.25", "0.1", "0"])
def test_queries_that_taught_a_model_are_left_out(folder, share):
    task, encoder = fitted(search(), share)
    encoder.save("model")
    saved = FittedEncoder.load("model")
    again = read_for(saved, search())
    if task.held_out is None:  # all of them taught, and the task says so
        assert again.held_out.n == M
        assert "fitted on all of these queries" in again.files.notes[0]
        return
    assert rows_of(again.held_out) == rows_of(task.held_out)
    assert f"The {M - task.held_out.n} queries that the model was fitted on are left out" in evaluated_on(again)
    # The same queries, judged otherwise, are no new ones.
    (folder / "more.csv").write_text((folder / "ids.csv").read_text() + f"{QUERY_IDS[0]},{DOCUMENT_IDS[149]},1\n")
    assert rows_of(read_for(saved, search(relevance="more.csv")).held_out) == rows_of(task.held_out)
    write_vectors("queries.parquet", QUERIES + 1, {"id": QUERY_IDS}, name="e")
    assert read_for(saved, search()).held_out.n == M


def test_left_sides_that_taught_a_model_are_left_out(folder):
    write_vectors(
        "s.npz", np.repeat(QUERIES, 2, axis=0), {"right": DOCUMENTS[: 2 * M], "s": np.arange(2 * M)}, name="l"
    )
    place = VectorSource("s.npz", pairs="l,right,s")
    task, encoder = fitted(place)
    encoder.save("model")
    again = read_for(FittedEncoder.load("model"), place)
    assert f"The {M - task.held_out.n // 2} left sides that the model was" in evaluated_on(again)
    np.testing.assert_array_equal(again.held_out.scores, task.held_out.scores)


def test_what_cannot_be_learned_from_raises(folder):
    (folder / "none.csv").write_text("query,document,grade\n" + "".join(f"{i},0,0\n" for i in QUERY_IDS))
    with pytest.raises(InvalidInputError, match="calls a document relevant"):
        open_task(search(relevance="none.csv", ids="id"), "0.2")
    with pytest.raises(InvalidInputError, match="belong to relevance= or pairs="):
        open_task(VectorSource("docs.parquet", ids="id"), "0.2")
    with pytest.raises(InvalidInputError, match="a column of queries=, which is missing"):
        open_task(VectorSource("docs.parquet", relevance="ids.csv", query_weight="w"), "0.2")
    with pytest.raises(InvalidInputError, match="a share of the rows"):
        open_task(search(), "1.5")


def test_baselines_are_fitted_on_rows_that_nobody_searches(tmp_path):
    """What is fitted on the rows that are searched remembers them, and looks better than the model that is not."""
    X = RNG.normal(size=(400, 6)).astype(np.float32)
    write_vectors(tmp_path / "new.npz", X, {"label": np.arange(400) % 4})
    encoder = PrefixEncoder(3).fit(RNG.normal(size=(300, 6))).encoder_
    task = read_for(encoder, VectorSource(tmp_path / "new.npz", label="label"))
    searched, fitted = (
        {row.tobytes() for row in np.asarray(rows)} for rows in (task.held_out.reference.X, task.train.X)
    )
    assert (task.held_out.n, len(searched), len(fitted)) == (80, 160, 160)
    assert not searched & fitted
    # Nor has a saved encoder rows of its fit to fit baselines on.
    codes = evaluate(encoder, task.held_out, precisions=["float32"], draws=2).codes
    assert {"plain truncation", "random dimensions"} <= set(codes)
    assert not {"PCA", "uncentred SVD"} & set(codes)


@pytest.mark.parametrize("share", ["0.25", "0", "1", "mine.npy"])
def test_queries_without_judgements_are_a_log_of_which_a_part_asks(folder, share):
    np.save("mine.npy", QUERIES[:7] + 1.0)
    place = VectorSource("docs.parquet", queries="queries.parquet")
    task, encoder = fitted(place, share)
    assert task.train.seen == N  # every row of the store is fitted on
    log = encoder.encoder_.sample.get("queries", np.empty((0, P)))
    held = np.empty((0, P)) if task.held_out is None else np.asarray(task.held_out.queries)
    assert (len(log), len(held)) == {"0.25": (30, 10), "0": (40, 0), "1": (0, 40), "mine.npy": (40, 7)}[share]
    if share == "0":
        return
    assert task.held_out.relevance is None
    np.testing.assert_allclose(np.sort(np.asarray(task.held_out.documents), axis=0), np.sort(DOCUMENTS, axis=0))
    found, _ = report_on(encoder, task)
    assert [each.metric for each in found.evaluations] == ["recall@10"]
    assert f"{len(held)} held-out queries" in evaluated_on(task)
    assert f"among {N} rows of docs.parquet" in evaluated_on(task)
    later = read_for(encoder.encoder_, place)
    assert (later.held_out.n, evaluate(encoder, later.held_out, precisions=["float32"]).metric) == (M, "recall@10")
    with pytest.raises(InvalidInputError, match=r"scored by recall@10. Got 'ndcg@10'"):
        read_for(encoder.encoder_, place, metric="ndcg@10")


def test_queries_of_another_width_and_with_labels_are_refused(folder):
    np.save("wide.npy", np.ones((40, P + 1)))
    with pytest.raises(InvalidInputError, match=r"wide.npy' has vectors of 9 numbers, and .* of 8"):
        open_task(VectorSource("docs.parquet", queries="wide.npy"), "0.2", 0)
    with pytest.raises(InvalidInputError, match="ask for different codes"):
        open_task(VectorSource("docs.parquet", label="part", queries="queries.parquet"), "0.2", 0)
    with pytest.raises(InvalidInputError, match="filter= belong"):
        open_task(VectorSource("docs.parquet", queries="queries.parquet", filter="part"), "0.2", 0)
