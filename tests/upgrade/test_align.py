"""``firstk align`` from files to a verdict, a saved alignment, a page and an order; ``firstk transform`` uses it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import command_line
from firstk import PrefixAlignment
from firstk.data.files import open_vectors, write_vectors
from firstk.upgrade import UpgradeReport
from fixtures.made_upgrade import made_texts, made_upgrade

DATA = made_upgrade(n=400, m=150, pairs=240)
IDS, QUERY_IDS = np.array([f"d{i}" for i in range(400)]), np.array([f"q{i}" for i in range(150)])
JUDGED = ("--queries-old", "q_old.parquet", "--queries-new", "q_new.parquet", "--relevance", "qrels.tsv")
FAST = ("--methods", "procrustes", "--quiet")


def firstk(folder, *arguments, code=0):
    done = command_line.firstk(*arguments, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def write_files(path):
    write_vectors(path / "old.parquet", DATA.old.astype(np.float32), {"id": IDS})
    write_vectors(path / "new.parquet", DATA.new.astype(np.float32), {"id": IDS[DATA.paired]})
    write_vectors(path / "q_old.parquet", DATA.queries_old.astype(np.float32), {"id": QUERY_IDS})
    write_vectors(path / "q_new.parquet", DATA.asked.queries.astype(np.float32), {"id": QUERY_IDS})
    lines = [f"{QUERY_IDS[q]}\t{IDS[d]}\t{g}\n" for q, d, g in DATA.asked.relevance]
    (path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of an upgrade, aligned once."""
    path = tmp_path_factory.mktemp("upgrade")
    write_files(path)
    done = firstk(
        path, "align", "old.parquet", "new.parquet", *JUDGED, *FAST, "-o", "up",
        "--report", "page.html", "--order", "order.csv",
    )  # fmt: skip
    (path / "printed.txt").write_text(done.stdout)
    return path


def test_eight_lines_say_what_to_do_and_how(folder):
    lines = (folder / "printed.txt").read_text().splitlines()
    assert len(lines) <= 8
    assert lines[0].startswith("Translate the store into a shared code (procrustes, k = 17): it gains")
    assert lines[1].startswith("Re-embedding all shows no clear gain over translating (procrustes, k = 17)")
    assert lines[2] == "  firstk transform up old.parquet -o translated.parquet"
    assert lines[3] == "  firstk transform up q_new.parquet --side query -o queries.parquet"
    assert lines[4] == "Saved in up. Every option, with intervals: --explain."


def test_explain_shows_every_option(folder):
    done = firstk(folder, "align", "old.parquet", "new.parquet", *JUDGED, *FAST, "-o", "explained", "--explain")
    assert "240 rows are paired by their 'id'." in done.stdout
    assert "ndcg@10, 150 queries among all 400 rows of the store:" in done.stdout
    assert "pairs that were held out; alignments are fitted on the other 160:" in done.stdout
    assert "re-embed the best 20 %, translate the rest" in done.stdout


def test_what_is_saved_can_be_loaded(folder):
    alignment = PrefixAlignment.load(folder / "up")
    assert alignment.encode_old(DATA.old, 4).shape == (400, 4)
    report = UpgradeReport.from_json((folder / "up" / "upgrade.json").read_text())
    assert (report.rows, report.pairs, report.metric) == (400, 240, "ndcg@10")
    assert "<h1>Translate the store</h1>" in (folder / "page.html").read_text()
    assert (folder / "order.csv").read_text().startswith("id,worth\n")


def test_the_commands_that_it_prints_run_and_find_what_it_says(folder):
    firstk(folder, "transform", "up", "old.parquet", "-o", "translated.parquet")
    done = firstk(folder, "transform", "up", "q_new.parquet", "--side", "query", "-o", "queries.parquet")
    documents, queries = (open_vectors(folder / f"{name}.parquet").read() for name in ("translated", "queries"))
    assert documents.columns["id"].tolist() == IDS.tolist()
    D, Q = (part.vectors / np.linalg.norm(part.vectors, axis=1, keepdims=True) for part in (documents, queries))
    found = np.argmax(Q @ D.T, axis=1)
    assert (found == DATA.asked.relevance[:, 1]).mean() > 0.8
    assert "150 vectors of 24 written to queries.parquet" in done.stdout


def test_translations_go_into_either_space(folder):
    alignment = PrefixAlignment.load(folder / "up")
    firstk(folder, "transform", "up", "old.parquet", "--into", "new", "-o", "as_new.npy")
    firstk(folder, "transform", "up", "q_new.parquet", "--into", "old", "-o", "as_old.npy")
    old, new = (open_vectors(folder / f"{name}.parquet").read().vectors for name in ("old", "q_new"))
    np.testing.assert_allclose(np.load(folder / "as_new.npy"), alignment.old_to_new(old), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.load(folder / "as_old.npy"), alignment.new_to_old(new), rtol=1e-5, atol=1e-6)


def test_codes_can_be_cut_and_rounded(folder):
    firstk(folder, "transform", "up", "old.parquet", "-k", "8", "--precision", "int8", "-o", "short.npz")
    firstk(folder, "transform", "up", "q_new.parquet", "--side", "query", "--like", "short.npz", "-o", "alike.npz")
    assert open_vectors(folder / "alike.npz").read().vectors.shape == (150, 8)
    failed = firstk(folder, "transform", "up", "old.parquet", "--bytes-per-vector", "8", "-o", "bits.npz", code=1)
    assert "An alignment has no embedded bits" in failed.stderr
    failed = firstk(folder, "transform", "up", "q_new.parquet", "-o", "wrong.npy", code=1)
    assert "have 24 numbers" in failed.stderr
    failed = firstk(folder, "transform", "up", "old.parquet", "--into", "new", "--side", "query", "-o", "x.npy", code=1)
    assert "Only vectors of the old model can be translated into the new space" in failed.stderr
    failed = firstk(folder, "transform", "raw", "old.parquet", "--into", "new", "-o", "x.npy", code=1)
    assert "--into new is for alignments" in failed.stderr


def test_named_methods_are_what_is_compared_and_saved(folder):
    firstk(folder, "align", "old.parquet", "new.parquet", *JUDGED, "--methods", "ridge", "--quiet", "-o", "by_ridge")
    assert PrefixAlignment.load(folder / "by_ridge").method_.name == "ridge"
    report = UpgradeReport.from_json((folder / "by_ridge" / "upgrade.json").read_text())
    assert {one.option.method for one in report.pools[0].options} == {"", "ridge"}


@pytest.fixture(scope="module")
def labelled(folder):
    """The same files, with labels: which quarter of a turn the first two coordinates of the text are in."""
    texts, _ = made_texts(400, 150)
    for name, X, rows in (("l_old", DATA.old, np.arange(400)), ("l_new", DATA.new, DATA.paired)):
        kind = np.array(["a", "b", "c", "d"])[2 * (texts[rows, 0] > 0) + (texts[rows, 1] > 0)]
        write_vectors(folder / f"{name}.parquet", X.astype(np.float32), {"id": IDS[rows], "kind": kind})
    return folder


def test_labels_take_the_place_of_a_file_of_judgements(labelled):
    done = firstk(
        labelled, "align", "l_old.parquet", "l_new.parquet", "--label", "kind", *FAST, "-o", "by_label",
        "--order", "by_label.csv", "--explain",
    )  # fmt: skip
    assert "48 of them are the queries, and no alignment is fitted on these" in done.stdout
    assert "1nn_accuracy, 48 queries among all 352 rows of the store:" in done.stdout
    assert len((labelled / "by_label.csv").read_text().splitlines()) == 1 + 352
    report = UpgradeReport.from_json((labelled / "by_label" / "upgrade.json").read_text())
    assert (report.judged, report.metric, report.pairs) == (True, "1nn_accuracy", 192)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--label", "colour"), "colour"),
        (("--label", "kind", *JUDGED), "give --label or --relevance, not both"),
        (("--label", "kind", "--queries-old", "q_old.parquet", "--queries-new", "q_new.parquet"), "kind"),
    ],
)
def test_labels_that_are_not_there_are_told(labelled, arguments, words):
    failed = firstk(labelled, "align", "l_old.parquet", "l_new.parquet", *arguments, "-o", "nowhere", code=1)
    assert words in failed.stderr
    assert not (labelled / "nowhere").exists()


def test_json_has_the_verdict_and_every_number(folder):
    done = firstk(
        folder, "align", "old.parquet", "new.parquet", *JUDGED, *FAST, "-o", "other", "--json", "--budget-rows", "100",
        "--old-model-retired",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["verdict"][0].startswith(("Translate the store", "Re-embed"))
    assert "retired" in " ".join(found["verdict"])
    shares = {one["option"]["share"] for one in found["report"]["pools"][1]["options"]}
    assert 0.25 in shares  # what the budget pays for


def test_without_judgements_it_is_fidelity(folder):
    done = firstk(folder, "align", "old.parquet", "new.parquet", *FAST, "-o", "unjudged", "--explain")
    assert "fidelity to the new model, not relevance" in done.stdout
    assert "neighbor_recall@10, 80 queries among 80 pairs" in done.stdout


def test_what_is_there_is_not_replaced(folder):
    for outputs in (("-o", "up"), ("-o", "fresh", "--report", "page.html"), ("-o", "fresh", "--order", "order.csv")):
        failed = firstk(folder, "align", "old.parquet", "new.parquet", *FAST, *outputs, code=1)
        assert "is there already. Pass --force" in failed.stderr
        assert not (folder / "fresh").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("old.parquet", "missing.parquet"), "missing.parquet"),
        (("old.parquet", "new.parquet", "--queries-old", "q_old.parquet"), "--queries-old needs --queries-new"),
        (("old.parquet", "new.parquet", "--methods", "magic"), "--methods"),
        (("old.parquet", "new.parquet", "--methods", ","), "--methods"),
        (("old.parquet", "new.parquet", "--order", "order.txt"), "written as .csv"),
        (("old.parquet", "new.parquet", "--report", "page.txt"), "A page ends in .html"),
        (("old.parquet", "few.npy"), "share no column of ids"),
        (("few.npy", "few.npy"), "40 pairs are too few"),
    ],
)
def test_wrong_words_are_told_before_the_work(folder, arguments, words):
    np.save(folder / "few.npy", DATA.new[:40])
    failed = firstk(folder, "align", *arguments, "-o", "nowhere", code=1)
    assert words in failed.stderr
    assert not (folder / "nowhere").exists()


def test_info_shows_the_alignment_and_the_verdict(folder):
    text = firstk(folder, "info", "up").stdout
    assert "An alignment of vectors of 16 numbers (old) and 24 (new)" in text
    assert (folder / "printed.txt").read_text().splitlines()[0] in text
    facts = json.loads(firstk(folder, "info", "up", "--json").stdout)
    assert (facts["old_width"], facts["new_width"], facts["pairs"]) == (16, 24, 240)


def test_help_teaches():
    text = " ".join(command_line.firstk("align", "--help").stdout.split())
    for word in ("stay, translate or re-embed", "--relevance", "--budget-rows", "--old-model-retired", "Example:"):
        assert word in text
