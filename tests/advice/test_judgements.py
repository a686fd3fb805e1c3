"""Pairs and judgements from files, by ids, by row numbers and as vectors: the rows they mean, or an error."""

from dataclasses import replace

import numpy as np
import pytest

from firstk import Pairs, Search
from firstk.advice.baselines import plain_truncation
from firstk.advice.inputs import VectorSource
from firstk.advice.judgements import read_judged
from firstk.data.files import write_vectors
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import SEARCH, per_row_scores

N, M = 12, 5
RNG = np.random.default_rng(0)
X, Q = RNG.normal(size=(N, 3)).astype(np.float32), RNG.normal(size=(M, 3)).astype(np.float32)
HOLES = [2, 7]
# Ids that are row numbers too, of other rows.
IDS, QUERY_IDS = RNG.permutation(N), RNG.permutation(M)
FIELD = np.array(list("abcabcabcabc"))


def rows_of(ids):
    return {int(one): row for row, one in enumerate(ids)}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_vectors("a.npz", X, {"t2": np.linspace(0, 1, N), "other": X[:, ::-1].copy()}, name="e")
    write_vectors("docs.parquet", X, {"doc_id": IDS, "name": [f"d{i}" for i in IDS], "field": FIELD}, name="e")
    write_vectors("queries.csv", Q, {"qid": QUERY_IDS, "weight": np.arange(M), "field": FIELD[:M]})
    bad = X.copy()
    bad[HOLES, 1] = np.nan
    write_vectors("bad.csv", bad, {"id": [f"d{i}" for i in range(N)]})
    return tmp_path


def read(source, **options):
    return read_judged(VectorSource(source, **options))


def pairs_of(found):
    """Return the rows of the queries and of the documents that are judged."""
    return np.asarray(found.data.relevance)[:, :2]


# -- row numbers and vectors -------------------------------------------------------------------------------------


def test_pairs_of_row_numbers(place):
    (place / "p.csv").write_text("l,r,s\n0,3,0.5\n11,2,1.0\n7,1,0.25\n")
    for spec in ("p.csv", "p.csv:l,r,s"):
        pairs = read("a.npz", pairs=spec, vectors="e", by_row=True)
        np.testing.assert_array_equal(pairs.data.left, X[[0, 11, 7]])
        np.testing.assert_array_equal(pairs.data.right, X[[3, 2, 1]])
        np.testing.assert_array_equal(pairs.data.scores, [0.5, 1.0, 0.25])
        assert isinstance(pairs.data, Pairs)
    assert isinstance(read("a.npz", pairs="p.csv:r,l", vectors="e", by_row=True).data, Search)
    dropped = read("bad.csv", pairs="p.csv", nan="drop", by_row=True)  # rows 2 and 7 are gone, and their pairs too
    np.testing.assert_allclose(dropped.data.positives.left, X[[0]])  # scores of one pair do not differ


def test_pairs_of_vectors(place):
    pairs = read("a.npz", pairs="e,other,t2")
    np.testing.assert_array_equal(pairs.data.left, X)
    np.testing.assert_array_equal(pairs.data.right, X[:, ::-1])
    np.testing.assert_array_equal(pairs.data.scores, np.linspace(0, 1, N))
    bad = X.copy()
    bad[5, 0] = np.nan
    write_vectors("v.npz", X, {"right": bad, "s": np.arange(N)}, name="left")
    pairs = read("a.npz", pairs="v.npz:left,right,s", vectors="e", nan="drop")
    np.testing.assert_array_equal(pairs.data.scores, np.setdiff1d(np.arange(N), [5]))
    np.testing.assert_array_equal(pairs.data.left, np.delete(X, 5, axis=0))


def test_equal_vectors_of_a_side_are_one_query_or_document(place):
    write_vectors("v.npz", X[[0, 0, 1, 2]], {"right": X[[5, 6, 5, 7]]}, name="left")
    pairs = read("v.npz", pairs="left,right")
    assert (len(pairs.data.queries), len(pairs.data.documents)) == (3, 3)
    assert isinstance(pairs.data, Search)
    np.testing.assert_array_equal(pairs.data.positives.left, X[[0, 0, 1, 2]])
    np.testing.assert_array_equal(pairs.data.positives.right, X[[5, 6, 5, 7]])
    np.testing.assert_array_equal(pairs.data.relevance, [[0, 0, 1], [0, 1, 1], [1, 0, 1], [2, 2, 1]])


# -- ids ---------------------------------------------------------------------------------------------------------


JUDGED = [(0, 3, 2), (0, 4, 1), (3, 11, 1), (4, 0, 0), (4, 7, 3)]  # query id, document id, grade
OPTIONS = {"queries": "queries.csv", "vectors": None}


@pytest.fixture
def qrels(place):
    """Judgements in several formats and spellings."""
    lines = [f"{q}\t{d}\t{g}" for q, d, g in JUDGED]
    (place / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines))
    swapped = [f"{d},{q},{g}" for q, d, g in JUDGED]
    (place / "swapped.csv").write_text("corpus-id,query-id,score\n" + "\n".join(swapped))
    trec = [f"{q},0,{d},{g}" for q, d, g in JUDGED]
    (place / "trec.csv").write_text("qid,Q0,docid,rel\n" + "\n".join(trec))
    (place / "named.csv").write_text("q,d,g\n" + "\n".join(f"{q},d{d},{g}" for q, d, g in JUDGED))
    np.savez(place / "floats.npz", query=[float(q) for q, _, _ in JUDGED], document=[float(d) for _, d, _ in JUDGED],
             grade=[float(g) for _, _, g in JUDGED])  # fmt: skip
    return place


def expected_rows():
    queries, documents = rows_of(QUERY_IDS), rows_of(IDS)
    return [(queries[q], documents[d]) for q, d, _ in JUDGED]


@pytest.mark.parametrize("file", ["qrels.tsv", "swapped.csv", "trec.csv", "floats.npz", "qrels.tsv:query-id,corpus-id"])
def test_ids_name_the_rows_that_have_them(qrels, file):
    found = read("docs.parquet", queries="queries.csv", relevance=file, ids="qid,doc_id")
    np.testing.assert_array_equal(pairs_of(found), expected_rows())
    np.testing.assert_array_equal(found.data.relevance[:, 2], [1] * 5 if ":" in file else [g for _, _, g in JUDGED])
    assert isinstance(found.data, Search)
    data = found.data
    np.testing.assert_array_equal(data.documents, X)
    np.testing.assert_allclose(np.asarray(data.queries)[np.asarray(data.relevance)[:, 0]], Q[pairs_of(found)[:, 0]])
    np.testing.assert_array_equal(np.asarray(data.relevance)[:, 1], pairs_of(found)[:, 1])


# What is written between the query, the document and the grade, in files without a line of names.
BARE = {
    "three.tsv": "{q}\t{d}\t{g}",
    "three.csv": "{q},{d},{g}",
    "trec.qrels": "{q} 0 {d} {g}",
    "trec.txt": "{q} Q0  {d}\t{g}",
    "trec.tsv": "{q}\t0\t{d}\t{g}",
}


@pytest.mark.parametrize("file", BARE)
@pytest.mark.parametrize("ids", ["qid,doc_id", "name"])
def test_the_first_line_is_a_judgement_where_it_names_no_columns(place, file, ids):
    name = "d{}" if ids == "name" else "{}"
    write_vectors("asked.parquet", Q, {"qid": QUERY_IDS, "name": [f"d{i}" for i in QUERY_IDS]}, name="e")
    lines = [BARE[file].format(q=name.format(q), d=name.format(d), g=g) for q, d, g in JUDGED]
    (place / file).write_text("\n".join(lines) + "\n")
    found = read("docs.parquet", queries="asked.parquet", relevance=file, ids=ids)
    np.testing.assert_array_equal(pairs_of(found), expected_rows())
    np.testing.assert_array_equal(found.data.relevance[:, 2], [g for _, _, g in JUDGED])


@pytest.mark.parametrize("options", [{"ids": "name"}, {"by_row": True}])
def test_two_words_are_a_pair_where_they_name_rows(place, options):
    pairs = [(3, 0), (11, 3)]
    name = "{},{}\n" if "by_row" in options else "d{},d{}\n"
    (place / "p.csv").write_text("".join(name.format(*pair) for pair in pairs))
    places = np.arange(N) if "by_row" in options else rows_of(IDS)
    found = read("docs.parquet", pairs="p.csv", **options)
    np.testing.assert_array_equal(pairs_of(found), [(places[left], places[right]) for left, right in pairs])


def test_a_first_line_that_may_number_the_columns_is_asked_about(place):
    (place / "p.csv").write_text("0,1,2\n3,4,1\n")
    with pytest.raises(InvalidInputError, match=r"may number the columns, or judge\. .* say p\.csv:0,1,2; if not"):
        read("docs.parquet", relevance="p.csv", by_row=True)
    np.testing.assert_array_equal(pairs_of(read("docs.parquet", relevance="p.csv:0,1,2", by_row=True)), [(3, 4)])


@pytest.mark.parametrize(
    ("text", "said"),
    [("a 0 b 1\na 0 b\n", "has 3 cells in line 2"), ('"[1, 2]","[2, 3]",1\n', "holds a vector where the names")],
)
def test_lines_without_names_that_cannot_be_read(place, text, said):
    (place / "p.csv").write_text(text)
    with pytest.raises(InvalidInputError, match=said):
        read("docs.parquet", relevance="p.csv", by_row=True)


def test_an_id_column_is_found_where_only_ids_fit(qrels):
    write_vectors("far.parquet", X, {"_id": IDS + 100}, name="e")
    (qrels / "far.csv").write_text("query,document\n" + "\n".join(f"{q},{d + 100}" for q, d, _ in JUDGED))
    found = read("far.parquet", queries="queries.csv", relevance="far.csv")
    np.testing.assert_array_equal(pairs_of(found), expected_rows())


def test_ids_that_are_the_row_numbers_are_not_ambiguous(qrels):
    write_vectors("plain.parquet", X, {"id": np.arange(N)}, name="e")
    found = read("plain.parquet", relevance="qrels.tsv")
    np.testing.assert_array_equal(pairs_of(found), [(q, d) for q, d, _ in JUDGED])
    np.testing.assert_array_equal(found.data.query_rows, np.arange(N))


def test_two_id_columns_that_name_other_rows_are_refused(qrels):
    write_vectors("two.parquet", X, {"id": IDS, "doc_id": np.arange(N)}, name="e")
    (qrels / "few.csv").write_text("query,document\n0,1\n3,2\n")
    with pytest.raises(InvalidInputError, match="are in 'id' and 'doc_id' of"):
        read("two.parquet", queries="queries.csv", relevance="few.csv")
    found = read("two.parquet", queries="queries.csv", relevance="few.csv", ids="qid,doc_id")
    np.testing.assert_array_equal(pairs_of(found)[:, 1], [1, 2])


def test_ids_or_row_numbers_that_both_fit_are_refused_with_both_readings(qrels):
    with pytest.raises(InvalidInputError) as caught:
        read("docs.parquet", queries="queries.csv", relevance="qrels.tsv")
    said, (q, d) = str(caught.value), expected_rows()[0]
    assert f"as ids in 'qid' of 'queries.csv' and 'doc_id' of 'docs.parquet', rows {q} and {d};" in said
    assert "as row numbers, rows 0 and 3. Say ids='qid,doc_id' or by_row=True." in said
    by_row = read("docs.parquet", queries="queries.csv", relevance="qrels.tsv", by_row=True)
    np.testing.assert_array_equal(pairs_of(by_row), [(q, d) for q, d, _ in JUDGED])


def test_pairs_by_ids_of_one_file(place):
    (place / "p.csv").write_text("l,r\nd3,d0\nd11,d3\n")
    found = read("docs.parquet", pairs="p.csv", ids="name")
    places = rows_of(IDS)
    np.testing.assert_array_equal(pairs_of(found), [(places[3], places[0]), (places[11], places[3])])
    data = found.data
    np.testing.assert_array_equal(data.query_rows, np.arange(N))  # no row is its own answer


BAD = [
    ({"relevance": "qrels.tsv", "ids": "nothing"}, "has no column 'nothing'"),
    ({"relevance": "qrels.tsv", "ids": "qid,name"}, "judges document 3, which is not in 'docs.parquet' (12 rows)"),
    ({"relevance": "qrels.tsv", "ids": "qid,field"}, "has 9 ids twice"),
    ({"relevance": "qrels.tsv", "ids": "a,b,c"}, "ids= is COLUMN, or QUERYCOLUMN,DOCUMENTCOLUMN"),
    ({"relevance": "qrels.tsv", "ids": "qid,doc_id", "by_row": True}, "not by both"),
    ({"relevance": "named.csv", "by_row": True}, "which is not a row number. Say which column of 'docs.parquet' holds"),
    ({"relevance": "named.csv"}, "By its column 'doc_id', 'named.csv' judges document d3, which is not in"),
    ({"relevance": "garbage.csv"}, "judges query 900, which is not in 'queries.csv' (5 rows); 2 are missing in all"),
    ({"relevance": "garbage.csv"}, "As row numbers: 'garbage.csv' names query row 900"),
    ({"relevance": "garbage.csv", "by_row": True}, "names query row 900 (entry 0), and 'queries.csv' has rows 0 to 4"),
    ({"relevance": "grades.csv", "ids": "qid,doc_id"}, "Grades of relevance are whole numbers"),
    ({"relevance": "words.csv", "ids": "qid,doc_id"}, "Grades of relevance are numbers"),
    ({"relevance": "qrels.tsv", "pairs": "qrels.tsv"}, "not from both"),
    ({"relevance": "many.csv"}, "Which columns of 'many.csv' are the pairs?"),
    ({"relevance": "half.csv"}, "names rows in one column only"),
    ({"relevance": "qrels.tsv", "ids": "qid,doc_id", "filter": "color"}, "has no column 'color'"),
    ({"relevance": "qrels.tsv", "ids": "qid,doc_id", "filter": "field=z"}, "No document of 'docs.parquet' has field"),
    ({"relevance": "qrels.tsv", "ids": "qid,doc_id", "query_weight": "field"}, "column field"),
    ({"pairs": "v.npz:e,other", "ids": "id"}, "holds pairs of vectors, and ids=, queries= goes with"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "sentence"), BAD)
def test_what_does_not_fit_raises(qrels, options, sentence):
    (qrels / "garbage.csv").write_text("query,document\n900,1\n901,2\n")
    (qrels / "grades.csv").write_text("query,document,grade\n0,1,0.5\n")
    (qrels / "words.csv").write_text("query,document,grade\n0,1,yes\n")
    (qrels / "many.csv").write_text("a,b,c,d\n0,1,2,3\n")
    (qrels / "half.csv").write_text('query,document\n0,"[1.0, 2.0, 3.0]"\n')
    write_vectors("v.npz", X, {"other": X[:, ::-1].copy()}, name="e")
    with pytest.raises(InvalidInputError) as caught:
        read("docs.parquet", queries="queries.csv", **options)
    assert sentence in str(caught.value)


def test_swapped_files_and_columns_are_recognized(place):
    (place / "some.csv").write_text("query,document\nq1,d3\nq2,d5\n")
    write_vectors("q.parquet", X[:3], {"id": np.array(["q0", "q1", "q2"])})
    write_vectors("d.parquet", X[:6], {"id": np.array([f"d{i}" for i in range(6)])})
    found = read("d.parquet", queries="q.parquet", relevance="some.csv:query,document")
    np.testing.assert_array_equal(pairs_of(found)[:, :2], [(1, 3), (2, 5)])
    for source, queries, names in (("q", "d", "query,document"), ("d", "q", "document,query")):
        with pytest.raises(InvalidInputError, match=r"Swap the two files, or the two columns of 'some\.csv'"):
            read(f"{source}.parquet", queries=f"{queries}.parquet", relevance=f"some.csv:{names}")


def test_row_numbers_are_used_only_if_asked_for(place):
    (place / "p.csv").write_text("l,r\n0,3\n11,2\n")
    with pytest.raises(InvalidInputError) as caught:
        read("a.npz", pairs="p.csv", vectors="e")
    assert "ids or row numbers?" in str(caught.value)
    assert "Say by_row=True if they are row numbers (from 0)" in str(caught.value)


BAD_PAIRS = [
    ("p.csv:l,r", "names query row 12 (entry 1), and 'a.npz' has rows 0 to 11"),
    ("p.csv:l", "[FILE:]LEFT,RIGHT[,SCORE]"),
    ("p.csv:l,x", "has no column 'x'"),
    ("p.csv:ok,t,ok", "which is not a row number"),
    ("p.csv:ok,ok,t", "Scores are numbers"),
    ("p.csv", "Which columns of 'p.csv' are the pairs?"),
]


@pytest.mark.parametrize(("spec", "sentence"), BAD_PAIRS)
def test_pairs_that_do_not_fit(place, spec, sentence):
    (place / "p.csv").write_text("l,r,t,ok\n0,3,a,1\n12,2,b,2\n")
    with pytest.raises(InvalidInputError) as caught:
        read("a.npz", pairs=spec, vectors="e", by_row=True)
    assert sentence in str(caught.value)


# -- filters, weights, dropped rows --------------------------------------------------------------------------------


def test_a_filter_by_the_querys_own_value(qrels):
    found = read("docs.parquet", queries="queries.csv", relevance="qrels.tsv", ids="qid,doc_id", filter="field")
    data = found.data
    np.testing.assert_array_equal(data.document_field, FIELD)
    np.testing.assert_array_equal(data.query_field, FIELD[:M])


def test_a_filter_by_one_value_leaves_those_documents(qrels):
    found = read("docs.parquet", queries="queries.csv", relevance="qrels.tsv", ids="qid,doc_id", filter="field=a")
    data = found.data
    left = FIELD == "a"
    moved = np.cumsum(left) - 1
    alone = replace(
        data, documents=X[left], query_field=None, document_field=None,
        relevance=[(q, moved[d], g) for q, d, g in np.asarray(data.relevance) if left[d]],
    )  # fmt: skip
    plain = plain_truncation(X)
    for name in SEARCH:
        found_score, expected = (per_row_scores(plain, part, name, np.array([1, 2, 3])) for part in (data, alone))
        assert found_score.n == expected.n == 2
        np.testing.assert_allclose(found_score.score(), expected.score())
    assert "among 4 documents of docs.parquet that the filter leaves of 12" in found.described(data)


def test_weights_are_those_of_the_queries(qrels):
    found = read("docs.parquet", queries="queries.csv", relevance="qrels.tsv", ids="qid,doc_id", query_weight="weight")
    np.testing.assert_array_equal(found.data.weight, np.arange(M))


def test_judgements_of_dropped_documents_are_dropped_with_them(qrels):
    found = read("bad.csv", queries="queries.csv", relevance="named.csv", ids="qid,id", nan="drop")
    kept = [(q, d) for q, d, _ in JUDGED if d not in HOLES]
    np.testing.assert_allclose(found.data.documents[pairs_of(found)[:, 1]], X[[d for _, d in kept]], rtol=1e-6)
    assert len(found.data.documents) == N - len(HOLES)
