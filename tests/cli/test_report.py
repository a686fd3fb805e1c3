"""``firstk report`` and ``firstk curve --report``: the page of an evaluation on files, by judgements too."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from advice.report.test_html import Outline
from firstk import Choice, PrefixEncoder
from firstk.advice.records import read_report
from firstk.cli import app
from firstk.data import load_digits
from firstk.data.files import write_vectors
from firstk.words.choice import answer


def run(*arguments, code=0) -> str:
    """Run a command in this process; a refusal is returned as its sentence."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if code == 0:
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.output
    assert result.exit_code != 0
    return str(result.exception)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """Return a folder with a store, queries, judgements keyed by ids, and a model that was saved from Python."""
    home = tmp_path_factory.mktemp("search")
    digits, rng = load_digits(), np.random.default_rng(0)
    ids = np.array([f"d{i}" for i in rng.permutation(len(digits.X_train))])
    asked = digits.X_test[:80]
    write_vectors(home / "docs.npz", digits.X_train, {"id": ids})
    write_vectors(home / "queries.npz", asked, {"id": np.array([f"q{i}" for i in range(80)])})
    found = [(f"q{i}", rng.choice(ids[digits.y_train == digits.y_test[i]])) for i in range(80) for _ in range(20)]
    lines = ["query\tdocument", *sorted({f"{query}\t{document}" for query, document in found})]
    (home / "qrels.tsv").write_text("\n".join(lines) + "\n")
    PrefixEncoder(12, objective="reconstruction").fit(digits.X_train).save(home / "model")
    PrefixEncoder(4, objective="reconstruction").fit(digits.X_train).save(home / "short")
    return home


@pytest.fixture(scope="module")
def evaluated(home) -> tuple[Path, Path]:
    """Return what one run of ``firstk curve`` wrote: its JSON document, and its page."""
    judged = ("--queries", home / "queries.npz", "--relevance", home / "qrels.tsv")
    printed = run(
        "curve", home / "model", home / "docs.npz", *judged, "--keep", 0.9, "--json", "--report", home / "page.html"
    )
    (home / "curve.json").write_text(printed)
    return home / "curve.json", home / "page.html"


def words_of(page: Path) -> list[str]:
    return Outline(page.read_text("utf-8")).text_in("header")


def test_the_first_line_is_the_recommendation_that_curve_made(evaluated):
    document, page = evaluated
    choice = Choice.from_dict(json.loads(document.read_text())["choice"])
    title, first, *others = words_of(page)
    assert [first, *others[: len(answer(choice)) - 1]] == answer(choice, len(load_digits().X_train))
    assert title.startswith(f"docs.npz: {choice.advised.point.bytes:,} bytes per vector instead of 256")
    assert title.endswith("% of the search quality kept")


def test_the_page_has_the_command_and_says_what_was_judged(home, evaluated):
    text = evaluated[1].read_text("utf-8")
    (command,) = re.findall(r"<pre[^>]*><code>(.*?)</code>", text, flags=re.DOTALL)
    assert "firstk transform" in command
    assert str(home / "docs.npz") in command
    assert "Are relevant documents found?" in text
    assert "80 queries of queries.npz" in text


def test_what_is_asked_of_curve_is_what_its_page_and_the_record_headline(home, tmp_path):
    """A fit recommends by a share; a page of 64 bytes is asked of `curve`, and is not that of the fit."""
    digits = load_digits()
    write_vectors(tmp_path / "x.npz", digits.X_train)
    fitted = ("fit", tmp_path / "x.npz", "-o", tmp_path / "model")
    run(*fitted)
    asked = ("curve", tmp_path / "model", home / "docs.npz", "--bytes-per-vector", 4)
    printed = run(*asked)
    assert "the same command with --report page.html" in printed.splitlines()[-1]
    run(*asked, "--report", tmp_path / "page.html", "--json")
    assert words_of(tmp_path / "page.html")[1].startswith(printed.splitlines()[0])
    assert "4 bytes per vector" in words_of(tmp_path / "page.html")[1]
    plain = run("report", tmp_path / "model", "-o", tmp_path / "own.html").splitlines()
    assert plain[1].startswith("Its first line: ")
    assert plain[1].removeprefix("Its first line: ").split(". ")[0] in words_of(tmp_path / "own.html")[1]
    assert "--bytes-per-vector" in plain[2]
    four = run("report", tmp_path / "model", "--bytes-per-vector", 4, "-o", tmp_path / "four.html").splitlines()
    assert len(four) == 2
    assert "4 bytes per vector" in four[1]


def test_a_baseline_that_is_advised_is_fitted_with_the_judgements(home, tmp_path):
    """The codes of noise are worse than those of PCA; the page says how to fit that one, judgements included."""
    noise = np.random.default_rng(1).normal(size=(500, 64))
    PrefixEncoder(12, objective="reconstruction").fit(noise).save(tmp_path / "noise")
    judged = ("--queries", home / "queries.npz", "--relevance", home / "qrels.tsv")
    limit = ("--bytes-per-vector", 4, "--precision", "int8")
    run("curve", tmp_path / "noise", home / "docs.npz", *judged, *limit, "--report", tmp_path / "page.html")
    (command,) = re.findall(r"<pre[^>]*><code>(.*?)</code>", (tmp_path / "page.html").read_text("utf-8"), flags=re.S)
    fit, transform, queries = command.splitlines()
    assert fit.startswith(f"firstk fit {home / 'docs.npz'} --objective ")
    assert f"--queries {home / 'queries.npz'} --relevance {home / 'qrels.tsv'} --bytes-per-vector 4 -o " in fit
    assert transform.startswith(f"firstk transform {fit.split()[-1]} ")
    assert queries.startswith(f"firstk transform {fit.split()[-1]} {home / 'queries.npz'} --side query -k ")


def test_a_fit_records_by_which_options_it_found_judgements(home, tmp_path):
    judged = ("--queries", home / "queries.npz", "--relevance", home / "qrels.tsv")
    run("fit", home / "docs.npz", *judged, "-o", tmp_path / "model")
    named = {"VECTORS": "docs.npz", "--queries": "queries.npz", "--relevance": "qrels.tsv"}
    assert read_report(tmp_path / "model").options == named  # folders of this machine are left out


def test_the_command_of_a_page_works_where_the_fit_did(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    write_vectors(tmp_path / "x.npz", load_digits().X_train)
    monkeypatch.chdir(tmp_path / "work")
    run("fit", "../x.npz", "-o", "model")
    run("report", "model", "-o", "page.html")
    text = Path("page.html").read_text("utf-8")
    (command,) = re.findall(r"<pre[^>]*><code>(.*?)</code>", text, flags=re.DOTALL)
    program, *words = command.splitlines()[-1].split()
    assert (program, "../x.npz" in words) == ("firstk", True)
    run(*words)


def test_a_page_that_cannot_be_written_is_told_before_the_work(home, tmp_path):
    for name, sentence in (("page.txt", "ends in .html"), (".", "ends in .html")):
        said = run("curve", home / "model", home / "docs.npz", "--report", tmp_path / name, code=1)
        assert sentence in said
    (tmp_path / "there.html").write_text("mine")
    said = run("curve", home / "model", home / "docs.npz", "--report", tmp_path / "there.html", code=1)
    assert "--force" in said
    assert (tmp_path / "there.html").read_text() == "mine"


def test_a_choice_that_is_out_of_reach_still_gives_the_page(home, tmp_path):
    out = tmp_path / "page.html"
    options = ("--metric", "recall@10", "--keep", 1.0, "--quiet", "--report", out)
    said = run("curve", home / "short", home / "docs.npz", *options)
    title, first, *lines = words_of(out)
    assert first.startswith(said.splitlines()[0])
    assert "Do not cut: store the raw vectors" in first
    assert "instead of 256 by rounding to float16" in title
    assert any("No code of this model keeps 100 %" in line for line in lines)
