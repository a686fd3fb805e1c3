"""Search by judgements from the command line: ids, row numbers, whole stores; the same answer from every command."""

from __future__ import annotations

import html
import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import command_line
from firstk import Choice, PrefixCurve, PrefixEncoder, Search, evaluate
from firstk.advice.records import Report, read_report
from firstk.data.files import write_vectors
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.fit_files import draw_groups
from firstk.exceptions import CorruptModelError
from firstk.words.text import number_of
from firstk_papers.datasets import load_scifact

M, N, P = 60, 200, 10
RNG = np.random.default_rng(3)
DOCUMENTS = (RNG.normal(size=(N, P)) * np.arange(P, 0, -1)).astype(np.float32)
OF = RNG.integers(0, 80, M)
QUERIES = (DOCUMENTS[OF] + RNG.normal(size=(M, P))).astype(np.float32)
JUDGED = np.array([(q, OF[q], 1) for q in range(M)] + [(q, 100 + q, 1) for q in range(M)])
# Both are row numbers too, of other rows.
QUERY_IDS, DOCUMENT_IDS = RNG.permutation(M), RNG.permutation(N)
SEARCH = ("docs.parquet", "--queries", "queries.parquet", "--relevance")
FAST = ("--set", "objective.shrinkage=0.5", "--set", "objective.neighbor_weight=0", "--components", "6")


def firstk(folder, *arguments, code=0):
    done = command_line.firstk(*arguments, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def write_store(path, queries, documents, judged, query_ids, document_ids):
    """Write a store, its queries and their judgements, the judgements by ids and by rows."""
    write_vectors(
        path / "docs.parquet", documents, {"_id": document_ids, "part": np.arange(len(documents)) % 2}, name="e"
    )
    columns = {"_id": query_ids, "part": np.arange(len(queries)) % 2, "often": 1 + np.arange(len(queries)) % 3}
    write_vectors(path / "queries.parquet", queries, columns, name="e")
    header = "query-id\tcorpus-id\tscore\n"
    rows = "".join(f"{q}\t{d}\t{g}\n" for q, d, g in judged)
    keyed = "".join(f"{query_ids[q]}\t{document_ids[d]}\t{g}\n" for q, d, g in judged)
    (path / "rows.tsv").write_text(header + rows)
    (path / "ids.tsv").write_text(header + keyed)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store")
    write_store(path, QUERIES, DOCUMENTS, JUDGED, QUERY_IDS, DOCUMENT_IDS)
    PrefixEncoder(6).fit(DOCUMENTS).save(path / "pca")
    for name, judgements in (("by ids", ("ids.tsv", "--id", "_id")), ("by rows", ("rows.tsv", "--id", ":row"))):
        firstk(path, "fit", *SEARCH, *judgements, "--objective", "similarity", *FAST, "-o", name)
    return path


@pytest.mark.parametrize("metric", ["ndcg@10", "mrr@10", "relevant_recall@100"])
def test_ids_and_row_numbers_give_the_scores_of_python(store, metric):
    expected = PrefixEncoder.load(store / "pca").curve_search(QUERIES, DOCUMENTS, JUDGED, metric=metric)
    for judgements in (("ids.tsv", "--id", "_id"), ("rows.tsv", "--id", ":row")):
        done = firstk(store, "curve", "pca", *SEARCH, *judgements, "--metric", metric, "--json")
        curve = json.loads(done.stdout)["curve"]
        np.testing.assert_allclose(curve["score"], expected.score, atol=1e-12)
        assert curve["input_score"] == pytest.approx(expected.input_score)


def test_both_ways_to_name_rows_fit_the_same_encoder(store):
    by_ids, by_rows = (FittedEncoder.load(store / name) for name in ("by ids", "by rows"))
    np.testing.assert_array_equal(by_ids.components, by_rows.components)
    curves = [read_report(store / name).lead.curve() for name in ("by ids", "by rows")]
    assert curves[0] == curves[1]
    assert (curves[0].metric, curves[0].n_evaluated) == ("ndcg@10", 12)


@pytest.mark.parametrize("objective", [("similarity", *FAST), ("reconstruction",)])
def test_the_store_of_a_fit_needs_no_refit(objective, tmp_path):
    """The profile is of the documents, all of them: neither of the queries nor of those documents that are judged."""
    rng = np.random.default_rng(5)
    documents = (rng.normal(size=(1500, P)) * np.arange(P, 0, -1)).astype(np.float32)
    documents[:400] += 3.0
    queries = (documents[:400] + rng.normal(size=(400, P)) - 1.0).astype(np.float32)
    judged = [(q, q, 1) for q in range(400)]
    write_store(tmp_path, queries, documents, judged, np.arange(400), np.arange(1500))
    firstk(tmp_path, "fit", *SEARCH, "ids.tsv", "--id", "_id", "--objective", *objective, "-o", "model")
    profile = FittedEncoder.load(tmp_path / "model").profile
    assert profile.rows == len(documents)
    np.testing.assert_allclose(profile.mean, documents.astype(np.float64).mean(axis=0), atol=1e-5)
    found = json.loads(firstk(tmp_path, "check", "model", "docs.parquet", "--json").stdout)
    assert found["verdict"] != "refit"
    assert found["drift"]["mean_shift"] < 1e-5


def test_curve_evaluates_the_queries_that_the_fit_held_out(store):
    found = json.loads(firstk(store, "curve", "by ids", *SEARCH, "ids.tsv", "--id", "_id", "--json").stdout)
    saved = read_report(store / "by ids")
    np.testing.assert_array_equal(found["curve"]["score"], saved.lead.curve().score)
    assert "The 48 queries that the model was fitted on are left out." in found["report"]["held_out"]
    evaluated, fitted = Choice.from_dict(found["choice"]), saved.choice
    assert (evaluated.n_known, evaluated.n_new) == (fitted.n_known, fitted.n_new)
    assert fitted.n_known > 0


def test_one_more_judgement_brings_no_query_back_that_taught_the_model(store):
    before = json.loads(firstk(store, "curve", "by ids", *SEARCH, "ids.tsv", "--id", "_id", "--json").stdout)
    lines = (store / "ids.tsv").read_text().splitlines()
    taught = set(map(str, QUERY_IDS)) - {line.split("\t")[0] for line in held_out_lines(store)}
    query = sorted(taught)[0]
    (store / "more.tsv").write_text("\n".join([*lines, f"{query}\t{DOCUMENT_IDS[90]}\t1"]) + "\n")
    after = json.loads(firstk(store, "curve", "by ids", *SEARCH, "more.tsv", "--id", "_id", "--json").stdout)
    assert after["curve"] == before["curve"]
    only = [lines[0], *(line for line in lines[1:] if line.split("\t")[0] in taught)]
    (store / "taught.tsv").write_text("\n".join(only) + "\n")
    every = json.loads(firstk(store, "curve", "by ids", *SEARCH, "taught.tsv", "--id", "_id", "--json").stdout)
    assert any("was fitted on all of these queries" in note for note in every["notes"])


def held_out_lines(store):
    """Return the lines of judgements whose queries the fit has held out, by its own draw."""
    held = {str(QUERY_IDS[query]) for query in draw_groups(np.arange(M), 0.2).held}
    return [line for line in (store / "ids.tsv").read_text().splitlines()[1:] if line.split("\t")[0] in held]


def test_what_is_printed_names_the_store(store):
    fit = ("fit", *SEARCH, "ids.tsv", "--id", "_id", "--components", 4, "-o", "rebuilt", "--explain")
    said = firstk(store, *fit).stdout
    assert (
        "Evaluated on 60 queries of queries.parquet with 120 judgements, among 200 documents of docs.parquet." in said
    )
    assert "By mrr@10 at k = 4: " in said
    firstk(store, "report", "rebuilt", "-o", "page.html")
    assert "among 200 documents of docs.parquet" in (store / "page.html").read_text()


def test_curve_without_judgements_says_that_it_asks_another_question(store):
    said = firstk(store, "curve", "by ids", "docs.parquet").stdout
    (line,) = [line for line in said.splitlines() if "another question" in line]
    assert "give --queries and --relevance" in line
    judged = firstk(store, "curve", "by ids", *SEARCH, "ids.tsv", "--id", "_id").stdout
    assert "another question" not in judged


def test_a_model_of_pairs_says_pairs_and_one_length(store):
    said = firstk(store, "info", "by ids").stdout
    assert "Objective similarity, pairs, ordering full_prefix, fitted on" in said
    assert "pairs by firstk" in said
    assert "pairs seen" in said
    assert "rows seen" not in said
    assert "smallest k" not in said
    fit = ("fit", *SEARCH, "ids.tsv", "--id", "_id", *FAST, "--objective", "similarity", "-o", "named")
    assert "\nsimilarity, pairs: " in firstk(store, *fit).stdout


def test_a_page_for_so_many_bytes(store):
    firstk(store, "report", "by ids", "-o", "bytes.html", "--bytes-per-vector", 3)
    advised = read_report(store / "by ids").lead.choose(bytes_per_vector=3).advised.point
    text = (store / "bytes.html").read_text()
    assert f"{number_of(advised.bytes, 'byte')} per vector instead of 40" in text


def test_ids_of_two_names_are_asked_for_where_one_file_has_the_name_alone(store, tmp_path):
    write_vectors(tmp_path / "q.npz", QUERIES, {"qid": QUERY_IDS})
    search = (SEARCH[0], "--queries", tmp_path / "q.npz", "--relevance", "ids.tsv")
    said = firstk(store, "curve", "by ids", *search, "--id", "_id", code=1).stderr
    assert "q.npz' has none. If the two files call their ids differently: --id QUERYCOLUMN,DOCUMENTCOLUMN" in said
    firstk(store, "curve", "by ids", *search, "--id", "qid,_id")


def test_a_judgement_that_is_repeated_counts_once_and_two_grades_are_refused(store):
    lines = (store / "ids.tsv").read_text()
    query, document, grade = lines.splitlines()[1].split("\t")
    curve = ("curve", "by ids", *SEARCH)
    (store / "twice.tsv").write_text(lines + lines.splitlines()[1] + "\n")
    done = firstk(store, *curve, "twice.tsv", "--id", "_id", "--json")
    assert "note: 1 line repeats an earlier line of 'twice.tsv'" in done.stderr
    once = firstk(store, *curve, "ids.tsv", "--id", "_id", "--json")
    assert json.loads(done.stdout)["curve"] == json.loads(once.stdout)["curve"]
    (store / "two.tsv").write_text(f"{lines}{query}\t{document}\t{int(grade) + 1}\n")
    said = firstk(store, *curve, "two.tsv", "--id", "_id", code=1).stderr
    assert "'two.tsv' gives a document more than one grade for one query in 1 of 121 lines" in said
    assert f"document {document} for query {query}" in said


def test_others_stand_on_a_line_for_each_size(store):
    said = firstk(store, "curve", "pca", *SEARCH, "ids.tsv", "--id", "_id", "--explain").stdout.splitlines()
    begin = said.index("Others, the best score of each in as many bytes")
    assert "raw vectors" in said[begin + 1]
    rows = itertools.takewhile(lambda line: line[:1] == " ", said[begin + 2 :])
    sizes = [int(line.split()[0]) for line in rows]
    assert sizes == sorted(set(sizes))
    assert max(sizes) == 4 * P


def test_filters_and_weights(store):
    arguments = ("curve", "pca", *SEARCH, "ids.tsv", "--id", "_id", "--json")
    often = [f"{word}:often" if word == "queries.parquet" else word for word in arguments]
    found = json.loads(firstk(store, *often, "--filter", "part").stdout)
    enc = PrefixEncoder.load(store / "pca")
    fields = {"query_field": np.arange(M) % 2, "document_field": np.arange(N) % 2}
    expected = enc.curve_search(QUERIES, DOCUMENTS, JUDGED, query_weight=1 + np.arange(M) % 3, **fields)
    np.testing.assert_allclose(found["curve"]["score"], expected.score, atol=1e-12)
    one = json.loads(firstk(store, *arguments, "--filter", "part=1").stdout)
    odd = JUDGED[JUDGED[:, 1] % 2 == 1]
    within = enc.curve_search(QUERIES, DOCUMENTS[1::2], np.column_stack([odd[:, 0], odd[:, 1] // 2, odd[:, 2]]))
    np.testing.assert_allclose(one["curve"]["score"], within.score, atol=1e-12)
    assert "among 100 documents of docs.parquet that the filter leaves of 200" in one["report"]["held_out"]


@pytest.mark.parametrize(
    "command", [("fit", "--objective", "similarity", "-o", "none"), ("fit", "-o", "none"), ("curve", "pca")]
)
@pytest.mark.parametrize(
    ("judgements", "sentence"),
    [
        (("ids.tsv",), "Say --id _id or --id :row"),
        (("garbage.tsv", "--id", "_id"), "judges query q1, which is not in 'queries.parquet'"),
        (("garbage.tsv",), "judges query q1, which is not in 'queries.parquet' (60 rows); 2 are missing in all"),
        (("garbage.tsv", "--id", ":row"), "which is not a row number"),
        (("far.tsv",), "judges query 9000"),
    ],
)
def test_ids_that_may_mean_something_else_are_refused(store, command, judgements, sentence):
    (store / "garbage.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n")
    (store / "far.tsv").write_text("query-id\tcorpus-id\tscore\n9000\t1\t1\n")
    name, *rest = command
    before, after = (rest, ()) if name == "curve" else ((), rest)
    done = firstk(store, name, *before, *SEARCH, *judgements, *after, code=1)
    assert sentence in done.stderr
    assert not (store / "none").exists()


def test_judgements_given_as_pairs_are_learned_by_ids(store):
    """Grades that are all alike are positives: the same pairs, and the same search, as of --relevance."""
    options = ("--objective", "similarity", *FAST, "-o", "pairs")
    spec = ("docs.parquet", "--queries", "queries.parquet", "--pairs", "ids.tsv:query-id,corpus-id,score")
    assert "Say --id _id or --id :row" in firstk(store, "fit", *spec, *options, code=1).stderr
    firstk(store, "fit", *spec, "--id", "_id", *options)
    np.testing.assert_allclose(
        FittedEncoder.load(store / "pairs").components, FittedEncoder.load(store / "by ids").components, atol=1e-6
    )
    assert read_report(store / "pairs").lead.curve().score == read_report(store / "by ids").lead.curve().score
    without = firstk(store, "fit", "docs.parquet", *spec[3:], "--id", "_id", *options, "--force", "--explain")
    assert "of docs.parquet" in without.stdout  # queries are rows of the store where no file of them is named


@pytest.mark.full
def test_scifact_by_ids_away_from_row_numbers(data_folder, tmp_path):
    sets = load_scifact(data_folder)
    rng = np.random.default_rng(0)
    queries, documents = rng.permutation(len(sets.queries)), rng.permutation(len(sets.documents))
    place = np.argsort(queries), np.argsort(documents)
    judged = sets.judgements_test.copy()
    judged[:, 0], judged[:, 1] = place[0][judged[:, 0]], place[1][judged[:, 1]]
    ids = sets.query_ids[queries], sets.document_ids[documents]
    write_store(tmp_path, sets.queries[queries], sets.documents[documents], judged, *ids)
    enc = PrefixEncoder(64).fit(sets.documents)
    enc.save(tmp_path / "pca")
    expected = enc.curve_search(sets.queries, sets.documents, sets.judgements_test, ks=[16, 64])
    for judgements in (("ids.tsv",), ("rows.tsv", "--id", ":row")):
        done = firstk(tmp_path, "curve", "pca", *SEARCH, *judgements, "--precision", "float32", "--json")
        curve = PrefixCurve.from_dict(json.loads(done.stdout)["curve"])
        # Which document of a tie comes first depends on the order of the file.
        np.testing.assert_allclose([curve.at(16), curve.at(64)], expected.score, atol=1e-6)
        assert curve.input_score == pytest.approx(expected.input_score, abs=1e-6)
    refused = firstk(tmp_path, "curve", "pca", *SEARCH, "rows.tsv", code=1)
    assert "which is not in 'queries.parquet'" in refused.stderr


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """Fit on judgements of 60 queries; 90 others ask for documents of those, or for documents of their own."""
    path, rng = tmp_path_factory.mktemp("taught"), np.random.default_rng(8)
    of = np.concatenate([np.arange(60), rng.integers(0, 60, 50), np.arange(100, 140)])
    queries = (DOCUMENTS[of] + 3 * rng.normal(size=(150, P))).astype(np.float32)
    judged = np.column_stack([np.arange(150), of, np.ones(150, int)])
    write_store(path, queries, DOCUMENTS, judged, 1000 + rng.permutation(150), DOCUMENT_IDS)
    header, *lines = (path / "ids.tsv").read_text().splitlines()
    for name, part in (("train", lines[:60]), ("test", lines[60:]), ("few", lines[60:120])):
        (path / f"{name}.tsv").write_text("\n".join([header, *part]) + "\n")
    learning = ("--id", "_id", "--objective", "similarity", *FAST, "--held-out", "test.tsv")
    firstk(path, "fit", *SEARCH, "train.tsv", *learning, "-o", "model")
    return path


def test_a_model_that_learned_from_judgements_is_advised_on_new_documents_by_every_command(taught):
    said = read_report(taught / "model").choice
    assert (said.n_known, said.n_new, said.n_evaluated) == (50, 40, 40)
    # Judgements of their own: the model knows by hashes which documents it has learned from.
    found = json.loads(firstk(taught, "curve", "model", *SEARCH, "test.tsv", "--id", "_id", "--json").stdout)
    advice = Choice.from_dict(found["choice"])
    assert (advice.own, advice.get("most"), advice.n_known) == (said.own, said.get("most"), said.n_known)
    assert advice.on_new
    assert advice.advised.over_all is not None
    assert found["curve"]["n_evaluated"] == 40
    assert Report.from_json(json.dumps(found["report"])).lead.over_all.n_evaluated == 90
    info = json.loads(firstk(taught, "info", "model", "--json").stdout)
    assert Choice.from_dict(info["choice"]) == said
    firstk(taught, "report", "model", "-o", "page.html")
    page = html.unescape(re.sub(r"<[^>]*>", "", (taught / "page.html").read_text()))
    card = re.sub(r"\\(.)", r"\1", (taught / "model" / "README.md").read_text())
    for text in (page, card, firstk(taught, "info", "model").stdout):
        assert "40 queries for new documents" in text
        assert str(said.advised.point) in text
    encoder = PrefixEncoder.load(taught / "model").encoder_
    queries, judged = (part["test"] for part in searches(taught))
    table = evaluate(encoder, Search(queries, DOCUMENTS, judged))
    assert table.choose().own == said.own
    six = table.choose(bytes_per_vector=6).own
    assert six == read_report(taught / "model").lead.choose(bytes_per_vector=6).own
    other = firstk(taught, "curve", "model", *SEARCH, "test.tsv", "--id", "_id", "--bytes-per-vector", 6, "--json")
    assert Choice.from_dict(json.loads(other.stdout)["choice"]).own == six


def searches(path):
    """Return queries and judgements by rows, by file."""
    z = pq.read_table(path / "queries.parquet").to_pydict()
    vectors = np.array(z["e"], dtype=np.float32)
    rows = {str(name): row for row, name in enumerate(z["_id"])}
    place = {str(name): row for row, name in enumerate(DOCUMENT_IDS)}
    queries, judged = {}, {}
    for name in ("train", "test"):
        lines = [line.split("\t") for line in (path / f"{name}.tsv").read_text().splitlines()[1:]]
        queries[name] = vectors[[rows[q] for q, _, _ in lines]]
        judged[name] = np.array([(i, place[d], 1) for i, (_, d, _) in enumerate(lines)])
    return queries, judged


def test_too_few_new_documents_to_choose_by_are_said(taught):
    said = firstk(taught, "curve", "model", *SEARCH, "few.tsv", "--id", "_id", "--explain").stdout
    assert "documents that the fit has learned from, and 10 for new ones only, too few to choose by" in said


def test_a_model_without_hashes_says_that_it_cannot_tell(taught):
    encoder = FittedEncoder.load(taught / "model")
    replace(encoder, learned=None).save(taught / "earlier")
    said = firstk(taught, "curve", "earlier", *SEARCH, "test.tsv", "--id", "_id").stdout
    assert "saved without the hashes of the documents that it has learned from" in said
    assert "Evaluated on 90 queries" in said
    assert "for new documents" not in said.splitlines()[1]


@pytest.mark.parametrize("hashes", [[2, 1], [1, 1], [1.0, 2.0], [[1], [2]]], ids=["order", "twice", "floats", "shape"])
def test_damaged_hashes_are_refused(taught, hashes):
    kind = np.float64 if isinstance(hashes[0], float) else np.uint64
    replace(FittedEncoder.load(taught / "model"), learned=np.array(hashes, dtype=kind)).save(taught / "damaged")
    with pytest.raises(CorruptModelError, match="'learned' is not an ascending list of hashes"):
        FittedEncoder.load(taught / "damaged")
