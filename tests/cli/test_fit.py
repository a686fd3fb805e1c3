"""``firstk fit`` and ``firstk report`` on real files, from the command line, with good and with bad input."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from firstk import Choice, PrefixEncoder, Rows, evaluate
from firstk.advice.records import Report
from firstk.cli import app
from firstk.data import load_digits
from firstk.data.files import open_vectors, write_vectors
from firstk.encoder.storage.folder import read_extra
from firstk.estimator.fit_files import Stream, chunks_of, draw, fit_stream
from firstk.moments.checkpoint import Checkpoint
from firstk.words.choice import answer


def run(*arguments, code=0):
    """Run a command in this process; a refusal is returned as its sentence."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if code == 0:
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.output
    assert result.exit_code != 0
    assert result.exception is not None
    return str(result.exception)


def firstk(*arguments, cwd=None, script="from firstk.cli import main; main()"):
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder of files that a user may have."""
    home = tmp_path_factory.mktemp("files")
    digits = load_digits()
    X, y = digits.X, digits.y
    write_vectors(home / "digits.npz", X, {"label": y, "one": np.ones(len(X), int), "size": X.sum(axis=1)})
    write_vectors(home / "test.npz", digits.X_test, {"label": digits.y_test})
    write_vectors(home / "narrow.npz", digits.X_test[:, :9], {"label": digits.y_test})
    broken = X[:50].copy()
    broken[7, 3] = np.nan
    write_vectors(home / "broken.npz", broken, {"label": y[:50]})
    np.save(home / "labels.npy", y)
    rng = np.random.default_rng(0)
    same = [rng.permutation(np.flatnonzero(y == c))[:60] for c in range(10)]
    pairs = np.concatenate([np.column_stack([rows[::2], rows[1::2]]) for rows in same])
    cosines = np.sum(X[pairs[:, 0]] * X[pairs[:, 1]], axis=1)
    np.savez(home / "pairs.npz", left=pairs[:, 0], right=pairs[:, 1], score=cosines)
    return home


@pytest.fixture(scope="module")
def fisher(folder):
    out = folder / "model"
    printed = run("fit", folder / "digits.npz", "--objective", "fisher", "--label", "label", "-o", out)
    return out, printed


def report_of(model) -> Report:
    return Report.from_json(read_extra(model, "study.json"))


def test_the_saved_encoder_is_fitted_on_the_rows_that_were_not_held_out(fisher):
    out, _ = fisher
    digits = load_digits()
    rest = np.setdiff1d(np.arange(1797), draw(1797, 0.2, 0).held)
    slow = PrefixEncoder(objective="fisher").fit(digits.X[rest], digits.y[rest])
    loaded = PrefixEncoder.load(out)
    np.testing.assert_allclose(loaded.transform(digits.X), slow.transform(digits.X), atol=1e-3)


def test_what_is_printed_is_true_of_the_saved_encoder(fisher):
    out, printed = fisher
    digits, parts = load_digits(), draw(1797, 0.2, 0)
    rest = np.setdiff1d(np.arange(1797), parts.held)
    curve = PrefixEncoder.load(out).curve(
        digits.X[parts.held], digits.y[parts.held], reference=(digits.X[rest], digits.y[rest])
    )
    row = re.search(r"^  fisher +(.*)$", printed, re.MULTILINE)[1].split()
    assert [float(cell) for cell in row] == pytest.approx([curve.at(k) for k in (1, 2, 4, 8, 9)], abs=6e-4)
    for name in ("PCA", "uncentred SVD", "plain truncation", "random dimensions", "raw vectors"):
        assert re.search(rf"^  {name}  +0\.\d", printed, re.MULTILINE)
    choice = report_of(out).choice
    assert printed.startswith(str(choice))
    assert choice.reference == "raw vectors"
    assert choice.reference_score == pytest.approx(curve.input_score)
    assert "359 rows." in printed
    assert f"firstk report {out}" in printed


def test_the_folder_holds_a_model_its_card_and_its_study(fisher):
    out, _ = fisher
    assert {file.name for file in out.iterdir()} == {"config.json", "model.safetensors", "README.md", "study.json"}
    found = report_of(out)
    assert found.facts["rows fitted on"] == 1438
    assert "359 held-out rows of digits.npz" in found.held_out


def test_a_second_fit_replaces_the_first(folder):
    for objective in ("reconstruction", "denoising"):
        run("fit", folder / "digits.npz", "--objective", objective, "-o", folder / "again", "--force")
    assert PrefixEncoder.load(folder / "again").encoder_.record.objective == "denoising"


def test_same_seed_same_bytes_and_another_seed_another_part(folder):
    files = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        run("fit", folder / "digits.npz", "--components", 4, "--seed", seed, "-o", folder / name)
        files.append([(folder / name / file).read_bytes() for file in ("model.safetensors", "study.json")])
    assert files[0] == files[1]
    assert files[0][0] != files[2][0]


def test_json_is_one_document(folder):
    printed = run("fit", folder / "digits.npz", "--label", "label", "--json", "-o", folder / "json")
    found = json.loads(printed)
    assert found["objective"] == "reconstruction"
    assert found["rows"] + found["held_out"] == 1797
    choice = Choice.from_dict(found["choice"])
    assert choice == report_of(folder / "json").choice
    assert choice.limits.keep == 0.99
    assert found["baselines"][0]["label"] == "PCA"


def test_a_held_out_file_of_ones_own(folder):
    printed = run(
        "fit", folder / "digits.npz", "--objective", "fisher", "--label", "label",
        "--held-out", folder / "test.npz", "--explain", "-o", folder / "own",
    )  # fmt: skip
    assert "fitted on 1,797 rows" in printed
    assert f"360 held-out rows of {folder / 'test.npz'}" in printed


def test_nothing_held_out_is_no_study(folder):
    printed = run("fit", folder / "digits.npz", "--held-out", 0, "-o", folder / "none")
    assert "Nothing was held out" in printed
    assert read_extra(folder / "none", "study.json") is None
    said = run("report", folder / "none", "-o", folder / "none.html", code=1)
    assert "without an evaluation" in said
    assert "firstk fit" in said
    assert not (folder / "none.html").exists()


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (["digits.npz:vectors", "--objective", "fisher", "--label", "label"], {"TEST:vectors": "test.npz:vectors"}),
        (
            ["digits.npz", "--objective", "fisher", "--label", "labels.npy"],
            {"TEST": "digits.npz", "TEST_LABELS": "labels.npy"},
        ),
        (
            ["digits.npz", "--objective", "similarity", "--pairs", "pairs.npz", "--id", ":row"],
            {"TEST": "digits.npz", "TEST_PAIRS": "pairs.npz"},
        ),
        (["digits.npz"], {"TEST": "test.npz"}),
    ],
    ids=["label", "labels", "pairs", "nothing"],
)
def test_the_command_for_rows_of_ones_own_works_as_it_is_printed(folder, monkeypatch, arguments, files):
    monkeypatch.chdir(folder)
    printed = run("fit", *arguments, "--components", 4, "--held-out", 0, "-o", "plain-model", "--force")
    words = shlex.split(next(line for line in printed.splitlines() if line.startswith("  firstk curve")))
    assert words[:4] == ["firstk", "curve", "plain-model", next(iter(files))]
    assert "Evaluated on" in run(*(files.get(word, word) for word in words[1:]))


def test_labels_may_come_from_a_second_file(folder, fisher):
    run(
        "fit",
        f"{folder / 'digits.npz'}:vectors",
        "--objective",
        "fisher",
        "--label",
        folder / "labels.npy",
        "-o",
        folder / "second",
    )
    assert report_of(folder / "second").lead == report_of(fisher[0]).lead


def test_targets_are_predicted(folder):
    printed = run("fit", folder / "digits.npz", "--objective", "regression", "--target", "size", "-o", folder / "r2")
    assert "r2 at k" in printed
    assert report_of(folder / "r2").lead.curve().full > 0.99


def test_pairs_by_row_number(folder):
    spec = f"{folder / 'pairs.npz'}:left,right,score"
    arguments = (
        "--objective",
        "similarity",
        "--components",
        4,
        "--set",
        "objective.shrinkage=0.5",
        "--set",
        "objective.neighbor_weight=0.5",
    )
    printed = run(
        "fit", folder / "digits.npz", "--pairs", spec, "--id", ":row", *arguments, "-o", folder / "pairs", "--force",
        "--explain",
    )  # fmt: skip
    assert "spearman at k" in printed
    assert "60 held-out pairs" in printed
    run("report", folder / "pairs", "-o", folder / "pairs.html", "--force")
    assert "Do cosines agree with scores?" in (folder / "pairs.html").read_text()


@pytest.mark.parametrize(
    ("objective", "options"),
    [
        ("reconstruction", []),
        ("fisher", ["--set", "objective.shrinkage=0.3"]),
        ("fisher", ["--set", "objective.shrinkage=none"]),
        ("regression", ["--set", "objective.shrinkage=0.1"]),
        ("mixture", ["--set", "objective.lam=0.5"]),
        ("fisher", ["--set", "objective.reconstruction=0.5"]),
        ("similarity", ["--set", "objective.keep=dot_products"]),
        ("similarity", ["--set", "objective.shrinkage=0.4"]),
        ("denoising", ["--set", "objective.noise=masking:0.7"]),
        ("denoising", ["--set", "objective.noise=gaussian:0.2"]),
        ("reconstruction", ["--set", "ordering=sparse_prefix:2,4"]),
    ],
)
def test_every_objective_and_its_settings(folder, objective, options):
    out = folder / "settings"
    column = "size" if objective == "regression" else "label"
    run(
        "fit",
        folder / "digits.npz",
        "--objective",
        objective,
        "--label",
        column,
        "--components",
        4,
        *options,
        "--force",
        "-o",
        out,
    )
    assert PrefixEncoder.load(out).n_components_ == 4
    found = report_of(out)
    assert found.lead.baselines
    run("report", out, "-o", folder / "settings.html", "--force")


def test_of_a_list_only_its_lengths_are_recommended(folder):
    out = folder / "listed"
    arguments = (
        "fit",
        "--force",
        folder / "digits.npz",
        "--set",
        "ordering=sparse_prefix:2,4,10",
        "--components",
        16,
        "-o",
        out,
    )
    run(*arguments)
    lead = report_of(out).lead
    ours = lead.curve()
    assert replace(ours, supported=None).smallest(0.95, "best") not in (2, 4, 10)
    assert ours.smallest(0.95, "best") == 10
    assert "those at which the order is fixed (2, 4, 10)" in run(*arguments, "--explain")
    most = Choice.from_dict(json.loads(run(*arguments, "--json"))["choice"]).get("most").point
    assert most.k == 10 or most.precision == "embedded"  # bits go to all coordinates
    assert {point.k for point in lead.prefixes if point.precision != "float32"} == {2, 4, 10}
    alone = ("float32", "float16", "int8", "int4", "binary")
    assert lead.choose(keep=0.5, precision=alone).get("most").point.k == 10


@pytest.mark.parametrize("ordering", ["sparse_prefix:4,16,32", "full_prefix"])
def test_whatever_recommends_recommends_the_same(folder, ordering):
    out, page, data = folder / "agreed", folder / "agreed.html", folder / "digits.npz"
    fit = ("fit", data, "--force", "--set", f"ordering={ordering}", "--components", 40, "-o", out)
    printed, fitted = run(*fit), json.loads(run(*fit, "--json"))
    said = report_of(out).choice
    evaluated = json.loads(run("curve", out, data, "--json"))
    info = json.loads(run("info", out, "--json"))
    run("report", out, "-o", page, "--force")
    for record in (fitted, evaluated, info):
        found = Choice.from_dict(record["choice"])
        assert (found.own, found.get("most")) == (said.own, said.get("most"))
    best = said.get("most").point
    assert best.k == (32 if ordering != "full_prefix" and best.is_prefix else 40)
    card = re.sub(r"\\(.)", r"\1", (out / "README.md").read_text(encoding="utf-8"))
    for text in (printed, run("curve", out, data), run("info", out), card):
        assert answer(said)[0] in text
    words = re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8"))
    assert answer(said)[0].split(".")[0] in html.unescape(words)
    again = PrefixEncoder.load(out).encoder_
    rows, parts = open_vectors(data).read().vectors, draw(1797, 0.2, 0)
    table = evaluate(again, Rows(rows[parts.held], reference=Rows(rows[parts.reference])), metric=said.metric)
    assert table.choose().get("most").point == best


def test_lengths_of_a_list_are_evaluated_wherever_they_are(folder):
    out = folder / "long"
    write_vectors(folder / "long.npz", np.random.default_rng(0).standard_normal((400, 130)).astype(np.float32))
    run("fit", folder / "long.npz", "--set", "ordering=sparse_prefix:5,101,113", "-o", out)
    lead = report_of(out).lead
    assert lead.supported == (5, 101, 113)
    assert sorted({point.k for point in lead.prefixes if point.precision == "int8"}) == [5, 101, 113]
    assert {5, 101, 113} <= set(lead.curve().k)


def test_classification_with_a_network(folder):
    pytest.importorskip("torch", reason="training needs torch: pip install 'firstk[torch]'")
    out = folder / "mlp"
    run(
        "fit", folder / "test.npz", "--objective", "classification", "--label", "label", "--set", "network=mlp:16",
        "--components", 3, "--set", "objective.shrinkage=0.5", "-o", out,
    )  # fmt: skip
    metrics = [evaluation.metric for evaluation in report_of(out).evaluations]
    assert metrics == ["1nn_accuracy", "head_accuracy"]


def test_parquet_with_text_labels(folder):
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'firstk[tables]'")
    digits = load_digits()
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    write_vectors(folder / "text.parquet", digits.X, {"name": names[digits.y]}, name="pixels")
    run("fit", folder / "text.parquet", "--objective", "fisher", "--label", "name", "-o", folder / "text")
    images = report_of(folder / "text").images
    assert images.shape == (8, 8)
    assert set(images.names) <= set(names)


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["digits.npz", "--objective", "fisher", "--label", "nope"], "nope"),
        (["digits.npz", "--objective", "fisher"], "name their column with --label"),
        (["digits.npz", "--objective", "fisher", "--label", "one"], "at least two classes"),
        (["digits.npz", "--objective", "fishr", "--label", "label"], "'fisher'"),
        (["digits.npz", "--set", "ordering=sideways"], "'full_prefix'"),
        (["digits.npz", "--set", "solver=magic"], "'closed_form'"),
        (["digits.npz", "--set", "network=cnn"], "'linear', 'mlp'"),
        (
            ["digits.npz", "--set", "objective.lam=1"],
            "'lam' is not a setting of this objective. It has none.",
        ),
        (["digits.npz", "--objective", "denoising", "--set", "objective.noise=pink"], "masking:SHARE_KEPT"),
        (
            ["digits.npz", "--objective", "fisher", "--label", "label", "--set", "objective.shrinkage=much"],
            "None, 'auto' or a number in [0, 1]",
        ),
        (["digits.npz", "--components", "65"], "an int in [1, 64]"),
        (["digits.npz", "--held-out", "1.5"], "a share of the rows"),
        (["digits.npz", "--held-out", "nowhere.npz"], "nowhere.npz"),
        (["digits.npz", "--label", "label", "--held-out", "narrow.npz"], "vectors of 9 numbers"),
        (["digits.npz", "--pairs", "pairs.npz:left,right"], "Fitting objective 'reconstruction' on pairs"),
        (["broken.npz"], "row 7"),
        (["missing.npz"], "missing.npz"),
        (
            ["digits.npz", "--set", "solver=closed_form", "--set", "network=mlp"],
            "closed forms exist for linear encoders only",
        ),
    ],
    ids=lambda value: " ".join(value[1:])[:40] if isinstance(value, list) else "",
)
def test_bad_input_is_a_sentence_and_leaves_nothing(folder, monkeypatch, arguments, said):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    assert said in run("fit", *arguments, "-o", "refused", code=1)
    assert sorted(folder.iterdir()) == before


def test_rows_with_nan_are_dropped_on_request(folder):
    printed = run(
        "fit",
        f"{folder / 'broken.npz'}:vectors",
        "--nan",
        "drop",
        "--components",
        2,
        "-o",
        folder / "dropped",
    )
    assert "fitted on 39 rows" in printed


def test_a_folder_that_is_no_model_is_left_alone(folder):
    home = folder / "photos"
    home.mkdir()
    (home / "cat.jpg").write_text("meow")
    assert "not a firstk model" in run("fit", folder / "digits.npz", "-o", home, code=1)
    assert [file.name for file in home.iterdir()] == ["cat.jpg"]


def test_from_outside_a_refusal_is_one_sentence_and_exit_code_1(folder):
    done = firstk("fit", "digits.npz", "--label", "nope", "-o", "outside", cwd=folder)
    assert done.returncode == 1
    assert done.stderr.startswith("firstk: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_wrong_usage_is_exit_code_2(folder):
    assert firstk("fit", "digits.npz", cwd=folder).returncode == 2


INTERRUPTED = """
import os, signal
import firstk.estimator.fit_files
from firstk.data.files.vector_table import VectorTable
firstk.estimator.fit_files.chunk_rows = lambda width: 400
checked = VectorTable._checked
def interrupting(self, vectors, columns, start):
    if start == 1200: os.kill(os.getpid(), signal.SIGINT)
    return checked(self, vectors, columns, start)
VectorTable._checked = interrupting
from firstk.cli import main; main()
"""


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_a_checkpoint_and_resume_gives_the_same_bytes(folder, monkeypatch):
    command = ("fit", "digits.npz", "--objective", "fisher", "--label", "label", "-o")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("firstk.estimator.fit_files.chunk_rows", lambda width: 400)
    run(*command, "whole")
    before = {file.name for file in folder.iterdir()}
    done = firstk(*command, "stopped", cwd=folder, script=INTERRUPTED)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert "with --resume" in done.stderr
    assert {file.name for file in folder.iterdir()} - before == {"stopped.checkpoint"}
    assert "--resume" in run(*command, "stopped", code=1)
    run(*command, "stopped", "--resume")
    assert {file.name for file in folder.iterdir()} - before == {"stopped"}
    for name in ("model.safetensors", "config.json"):
        assert (folder / "whole" / name).read_bytes() == (folder / "stopped" / name).read_bytes()


def test_what_was_stopped_on_a_terminal_goes_on_without_one(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("firstk.estimator.fit_files.chunk_rows", lambda width: 400)
    chunks, kept = chunks_of(open_vectors("digits.npz")), Checkpoint("shown.checkpoint", every=0.0)

    def stop(rows):
        if Path(kept.path).exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_stream(PrefixEncoder(4, verbose=True), Stream(chunks), checkpoint=kept, progress=stop)
    again = fit_stream(PrefixEncoder(4), Stream(chunks), checkpoint=replace(kept, resume=True))
    assert again.encoder_.record.rows == 1797


TRAINED = (
    "fit", "test.npz", "--label", "label", "--objective", "classification", "--components", 3,
    "--set", "objective.shrinkage=0.5",
)  # fmt: skip


def test_training_says_that_it_does_not_resume(folder, monkeypatch):
    pytest.importorskip("torch", reason="training needs torch: pip install 'firstk[torch]'")
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, [str(word) for word in (*TRAINED, "--resume", "--force", "-o", "trained")])
    assert result.exit_code == 0, result.output
    assert "note: --resume has no effect here" in result.stderr


def test_closed_forms_do_not_say_so(folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, ["fit", "test.npz", "--resume", "-o", "solved"])
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals of this kind")
@pytest.mark.parametrize(
    "size",
    [pytest.param((0, 0), id="of unknown size"), pytest.param((40, 100), id="of known size", marks=pytest.mark.full)],
)
def test_training_shows_a_bar_on_a_terminal_of_which_the_model_knows_nothing(folder, size):
    pytest.importorskip("torch", reason="training needs torch: pip install 'firstk[torch]'")
    import fcntl
    import struct
    import termios

    screen, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    # A bar comes after two seconds, which so short a training does not take.
    script = "import firstk._base.progress as bars; bars.LONG = 0.0; from firstk.cli import main; main()"
    command = [sys.executable, "-c", script, *map(str, TRAINED), "-o", "watched"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=terminal) as job:
        os.close(terminal)
        shown = b"".join(_screen(screen))
    os.close(screen)
    assert job.returncode == 0
    assert b"reading:" in shown
    assert b"training:" in shown
    assert json.loads((folder / "watched" / "config.json").read_text())["parameters"]["given"]["verbose"] is False


def _screen(file):
    """Yield what is written to a terminal until nobody holds it any more, which Linux reports as an error."""
    with contextlib.suppress(OSError):
        while part := os.read(file, 65536):
            yield part


def test_help_shows_an_example(folder):
    for command in ("fit", "report"):
        printed = run(command, "--help")
        assert f"firstk {command} " in printed.split("Example")[1]


# -- report ----------------------------------------------------------------------------------------------------


def test_report_writes_one_page_for_the_users_rows(fisher, tmp_path):
    out, _ = fisher
    printed = run("report", out, "-o", tmp_path / "deep" / "report.html", "--rows", 10_000_000)
    page = (tmp_path / "deep" / "report.html").read_text()
    assert page.rstrip().endswith("</html>")
    assert "10,000,000 vectors" in page
    assert (tmp_path / "deep" / "report.html").resolve().as_uri() in printed
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["report.html"]


def test_report_refuses_what_is_no_model(tmp_path):
    assert "not a firstk model" in run("report", tmp_path, "-o", tmp_path / "a.html", code=1)


def test_report_refuses_a_model_saved_from_python(tmp_path):
    PrefixEncoder(4).fit(load_digits().X).save(tmp_path / "model")
    assert "without an evaluation" in run("report", tmp_path / "model", "-o", tmp_path / "a.html", code=1)


def test_report_notices_a_study_that_was_changed(folder, fisher, tmp_path):
    import shutil

    shutil.copytree(fisher[0], tmp_path / "model")
    file = tmp_path / "model" / "study.json"
    file.write_text(file.read_text().replace("0.9", "1.0", 1))
    assert "checksum" in run("report", tmp_path / "model", "-o", tmp_path / "a.html", code=1)
    assert not (tmp_path / "a.html").exists()


def test_report_refuses_a_folder_for_a_page(fisher, tmp_path):
    assert "is a folder" in run("report", fisher[0], "-o", tmp_path, code=1)


def test_a_column_of_pixels_is_known_to_hold_images(tmp_path):
    run("sample", "digits", "-o", tmp_path / "digits.npz")
    assert open_vectors(tmp_path / "digits.npz").vectors == "pixels"
    run("fit", tmp_path / "digits.npz", "--components", 4, "-o", tmp_path / "model")
    assert report_of(tmp_path / "model").images.shape == (8, 8)


def test_a_budget_of_bytes_is_recommended_for_as_curve_does(folder, tmp_path):
    """A number of bytes that no table has by itself is looked at, and what fits is advised."""
    said = run("fit", folder / "digits.npz", "--out", tmp_path / "model", "--bytes-per-vector", 7)
    assert re.search(r"embedded bits.*: 7 bytes", said)
    assert re.search(r"firstk transform .* --bytes-per-vector 7 ", said)
    found = json.loads(
        run("fit", folder / "digits.npz", "--out", tmp_path / "other", "--bytes-per-vector", 7, "--json")
    )
    saved = Report.from_json(read_extra(tmp_path / "other", "study.json"))
    assert saved.choice.limits.bytes_per_vector == 7
    assert 7 in {point.bytes for point in saved.lead.own}
    assert found["choice"]["limits"]["bytes_per_vector"] == 7
    free = run("fit", folder / "digits.npz", "--out", tmp_path / "free")
    assert ": 7 bytes per vector" not in free
