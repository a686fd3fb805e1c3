"""The advice on real stores: ids shuffled away from row numbers, one answer from every command and from Python."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from firstk import Choice, PrefixEncoder, Search, evaluate
from firstk.advice.records import Report, read_report
from firstk.cli import app
from firstk.data.files import write_vectors
from firstk.data.precision import PRECISIONS
from firstk.words.choice import answer, share_text
from firstk_papers.datasets import data_folder


def held(folder: str, file: str):
    path = data_folder() / folder / file
    if not path.exists():
        pytest.skip(f"{folder} is not there: name a folder that holds it in FIRSTK_DATA")
    return np.load(path)


def run(*arguments, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(word) for word in arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """Write a part of SciFact: documents and queries in random order, each under an id that is no row number."""
    z, rng, home = (
        held("retrieval-scifact", "scifact_minilm.npz"),
        np.random.default_rng(0),
        tmp_path_factory.mktemp("a"),
    )
    relevance = z["qrels_test"]
    documents = rng.permutation(np.union1d(np.unique(relevance[:, 1]), np.arange(500)))
    queries = rng.permutation(np.unique(relevance[:, 0]))
    names = 10_000 + rng.permutation(len(documents)), 50_000 + rng.permutation(len(queries))
    for file, part, ids in (("docs", z["D"][documents], names[0]), ("queries", z["Q"][queries], names[1])):
        write_vectors(home / f"{file}.npz", part.astype(np.float32), {"id": ids})
    place = {int(row): int(name) for row, name in zip(documents, names[0], strict=True)}
    asked = {int(row): int(name) for row, name in zip(queries, names[1], strict=True)}
    lines = [f"{asked[q]},{place[d]},{grade}" for q, d, grade in relevance.tolist()]
    (home / "qrels.csv").write_text("\n".join(["query,doc,grade", *lines]) + "\n")
    wrong = [
        f"{asked[q]},{name},1" for (q, _, _), name in zip(relevance.tolist(), rng.choice(names[0], 339), strict=False)
    ]
    (home / "wrong.csv").write_text("\n".join(["query,doc,grade", *wrong]) + "\n")
    return home


JUDGED = ("--queries", "queries.npz", "--relevance", "qrels.csv:query,doc,grade", "--id", "id")


@pytest.fixture(scope="module")
def fitted(store):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(store)
        return run(
            "fit",
            "docs.npz",
            *JUDGED,
            "--objective",
            "similarity",
            "--set",
            "objective.keep=dot_products",
            "--explain",
            "-o",
            "model",
        )


def test_one_answer_from_every_command_and_from_python(store, fitted, monkeypatch):
    monkeypatch.chdir(store)
    said = read_report("model").choice
    evaluated = json.loads(run("curve", "model", "docs.npz", *JUDGED, "--json"))
    info = json.loads(run("info", "model", "--json"))
    for record in (evaluated, info):
        found = Choice.from_dict(record["choice"])
        assert (found.own, found.advised) == (said.own, said.advised)
    own = np.load(store / "docs.npz"), np.load(store / "queries.npz")
    rows = [{int(name): i for i, name in enumerate(part["id"])} for part in own]
    judged = [line.split(",") for line in (store / "qrels.csv").read_text().splitlines()[1:]]
    relevance = np.array([[rows[1][int(q)], rows[0][int(d)], int(g)] for q, d, g in judged])
    documents, queries = (part["vectors"] for part in own)
    encoder = PrefixEncoder.load(store / "model").encoder_
    table = evaluate(encoder, Search(queries, documents, relevance), baselines=False)
    assert table.choose().point == said.point
    assert table.input_score == pytest.approx(said.reference_score)
    assert table.input_score > 0.6  # MiniLM on SciFact: ids found their documents
    run("report", "model", "-o", "page.html")
    card = re.sub(r"\\(.)", r"\1", (store / "model" / "README.md").read_text())
    page = html.unescape(re.sub(r"<[^>]*>", "", (store / "page.html").read_text()))
    for text in (fitted, run("curve", "model", "docs.npz", *JUDGED), run("info", "model"), card, page):
        assert share_text(said.advised) in text
        assert str(said.advised.point) in text
        assert f"{said.advised.point.bytes:,} bytes" in text


def test_the_promise_is_over_the_whole_store(store, fitted):
    documents = len(np.load(store / "docs.npz")["vectors"])
    assert f"among {documents:,} documents of docs.npz" in fitted
    assert "ndcg@10: How high the relevant documents stand" in fitted


def test_ids_that_belong_to_other_documents_are_called_a_mistake(store, fitted, monkeypatch):
    monkeypatch.chdir(store)
    wrong = ("--queries", "queries.npz", "--relevance", "wrong.csv:query,doc,grade", "--id", "id")
    done = CliRunner().invoke(app, ["curve", "model", "docs.npz", *wrong])
    assert done.exit_code == 1
    assert "Check the inputs: neither the raw vectors" in done.output
    assert "% of the raw vectors" not in done.output.split("Check the inputs")[0]


def test_bytes_are_spent_on_the_best_precision(store, fitted, monkeypatch):
    monkeypatch.chdir(store)
    found = json.loads(
        run("curve", "model", "docs.npz", *JUDGED, "--bytes-per-vector", "64", "--rows", "10M", "--json")
    )
    table = Report.from_json(json.dumps(found["report"])).lead
    assert {point.stored_as for point in table.own} == set(PRECISIONS)
    assert {"binary, binary queries"} <= {point.stored_as for point in table if not point.code}
    assert {point.precision for point in table if point.code == "raw vectors"} >= {"float16", "int8", "int4", "binary"}
    chosen = table.choose(bytes_per_vector=64).point
    assert Choice.from_dict(found["choice"]).point == chosen
    assert chosen.score == max(point.score for point in table.own if point.bytes <= 64)
    sixteen = next(point for point in table.own if (point.k, point.precision) == (16, "float32"))
    assert chosen.score > sixteen.score + 0.1
    assert (found["rows"], table.input_bytes) == (10_000_000, 4 * 384)


def test_stored_bits_with_rounded_queries_are_another_promise(store, fitted, monkeypatch):
    monkeypatch.chdir(store)
    found = json.loads(run("curve", "model", "docs.npz", *JUDGED, "--json"))
    table = Report.from_json(json.dumps(found["report"])).lead
    ours = {(point.k, point.queries): point.score for point in table if not point.code and point.precision == "binary"}
    k = max(length for length, _ in ours)
    assert ours[k, "binary"] < ours[k, "float32"]


def test_a_share_is_of_the_raw_vectors_where_the_full_width_is_worse(tmp_path, monkeypatch):
    z = held("banking77", "banking77_minilm.npz")
    rows = np.random.default_rng(0).permutation(len(z["X_train"]))[:2000]
    labels = np.array([str(z["label_names"][i]) for i in z["y_train"][rows]])
    monkeypatch.chdir(tmp_path)
    write_vectors("intents.npz", z["X_train"][rows].astype(np.float32), {"intent": labels})
    printed = run("fit", "intents.npz", "--label", "intent", "--objective", "mixture", "-o", "model")
    said = read_report("model").choice
    assert said.reference == "raw vectors"
    curve = json.loads(run("curve", "model", "intents.npz", "--label", "intent", "--json"))
    assert Choice.from_dict(curve["choice"]).own == said.own
    chosen = said.point
    assert chosen.score >= 0.98 * said.reference_score  # 99 %, less what rounding to a row is
    for text in (printed, run("info", "model")):
        assert "\n".join(answer(said)) in text
