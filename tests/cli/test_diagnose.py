"""``firstk diagnose`` end to end, on real files and on bad ones."""

import json
import shlex
from types import SimpleNamespace

import numpy as np
import pytest

from command_line import firstk
from firstk.advice.diagnosis import Diagnosis, diagnose
from firstk.advice.inputs import VectorSource
from firstk.cli.diagnose import _command
from firstk.data import load_digits
from firstk.data.files import write_vectors


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diagnose")
    assert firstk("sample", "digits", "-o", "digits.npz", cwd=folder).returncode == 0
    return folder


def test_twenty_lines_that_end_with_the_command(folder):
    done = firstk("diagnose", "digits.npz", "--label", "label", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 20
    assert lines[0].startswith("Objective ")
    assert lines[-1].startswith("  firstk fit digits.npz ")
    assert "Data: 3 columns (0, 32, 39) without variance." in lines
    assert done.stderr == ""  # no bar where nobody looks


def test_the_rest_is_explained(folder):
    done = firstk("diagnose", "digits.npz", "--label", "label", "--explain", cwd=folder)
    assert done.returncode == 0, done.stderr
    for said in ("Objectives, with 95 % intervals", "seconds", "Effective dimension", "firstk_papers.balestriero2024"):
        assert said in done.stdout
    assert done.stdout.splitlines()[-1].startswith("  firstk fit digits.npz ")


def test_json_is_the_library_s_record(folder):
    done = firstk("diagnose", "digits.npz", "--label", "label", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = Diagnosis.from_json(done.stdout)
    digits = load_digits()
    expected = diagnose(digits.X, digits.y)
    assert found.vectors == expected.vectors
    assert found.ranking == expected.ranking


@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.safetensors", "a.parquet"])
def test_formats_without_labels(folder, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    write_vectors(folder / name, load_digits().X)
    done = firstk("diagnose", name, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["vectors"]["rank"] == 61


def test_labels_from_a_second_file_and_targets(folder):
    digits = load_digits()
    np.save(folder / "pixels.npy", digits.X)
    (folder / "labels.csv").write_text("name\n" + "\n".join(f"digit {y}" for y in digits.y) + "\n")
    done = firstk("diagnose", "pixels.npy", "--label", "labels.csv:name", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["classes"] == 10
    np.savez(folder / "sizes.npz", vectors=digits.X, size=digits.X.sum(axis=1))
    measured = firstk("diagnose", "sizes.npz", "--target", "size", "--json", cwd=folder)
    assert json.loads(measured.stdout)["kind"] == "targets"


def last_command(text):
    """Return the words of the command that a diagnosis ends with."""
    words = shlex.split(text.splitlines()[-1])
    assert words[:2] == ["firstk", "fit"]
    return words[1:]


@pytest.fixture
def awkward(tmp_path):
    """A file and columns whose names a shell would take apart."""
    digits = load_digits()
    write_vectors(tmp_path / "my digits.npz", digits.X[:400], name="the pixels", columns={"the label": digits.y[:400]})
    return tmp_path


@pytest.mark.parametrize("options", [["--label", "the label"], []], ids=["labels", "no labels"])
def test_the_command_at_the_end_runs(awkward, options):
    done = firstk("diagnose", "my digits.npz:the pixels", *options, cwd=awkward)
    assert done.returncode == 0, done.stderr
    fitted = firstk(*last_command(done.stdout), "--quiet", cwd=awkward)
    assert fitted.returncode == 0, fitted.stderr
    assert (awkward / "model" / "config.json").exists()


def test_pairs_of_rows(tmp_path):
    X = load_digits().X[:300]
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 300, (2, 200))
    write_vectors(tmp_path / "rows.npz", X, name="X")
    scores = np.sum(X[left, 20:30] * X[right, 20:30], axis=1)
    np.savez(tmp_path / "pairs.npz", left=left, right=right, score=scores)
    named = ("--pairs", "pairs.npz:left,right,score", "--id", ":row")
    done = firstk("diagnose", "rows.npz", *named, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "spearman" in done.stdout
    fitted = firstk(*last_command(done.stdout), "--quiet", cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr


@pytest.mark.parametrize("learns", [True, False])
def test_rows_are_named_by_number_only_where_pairs_are(learns):
    """``fit`` refuses --id without pairs, which an objective that does not learn from them is not given."""
    trial = SimpleNamespace(pairs=learns, objective="similarity", settings={}, solver="auto", components=None)
    found = SimpleNamespace(ranking=SimpleNamespace(chosen=trial), kind="pairs")
    place = VectorSource("rows.npz", pairs="pairs.npz:left,right,score", by_row=True)
    words = shlex.split(_command(found, place, place))
    assert ("--pairs" in words, "--id" in words) == (learns, learns)


def test_nan_is_refused_with_its_row_or_dropped(folder):
    X = load_digits().X.copy()
    X[5, 3] = np.nan
    np.save(folder / "holes.npy", X)
    refused = firstk("diagnose", "holes.npy", cwd=folder)
    assert refused.returncode == 1
    assert "row 5" in refused.stderr
    dropped = firstk("diagnose", "holes.npy", "--nan", "drop", "--json", cwd=folder)
    assert json.loads(dropped.stdout)["vectors"]["rows"] == 1796


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.parquet"], "There is no file"),
        (["empty.npy"], "empty"),
        (["digits.npz", "--label", "intent"], "intent"),
        (["one.npy"], "at least two rows"),
        (["digits.npz", "--label", "label", "--pairs", "pairs.npz"], "Pairs have scores, not labels"),
    ],
)
def test_bad_input_is_one_sentence(folder, arguments, said):
    (folder / "empty.npy").write_bytes(b"")
    np.save(folder / "one.npy", np.ones((1, 4)))
    np.savez(folder / "pairs.npz", left=[0], right=[1], score=[1.0])
    done = firstk("diagnose", *arguments, cwd=folder)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("firstk: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_help_shows_an_example(folder):
    done = firstk("diagnose", "--help", cwd=folder)
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert firstk("diagnose", cwd=folder).returncode == 2


def test_a_large_file_is_sampled_and_the_answer_says_so(tmp_path, monkeypatch, capsys):
    from firstk.cli import diagnose as command
    from firstk.cli.app import app

    X = np.random.default_rng(0).normal(size=(5000, 6)) * [3, 2, 1, 1, 1, 1] + 1
    write_vectors(tmp_path / "a.npy", X)
    monkeypatch.setattr(command, "SAMPLE_ROWS", 1000)
    monkeypatch.setattr(command, "SAMPLE_BLOCK", 50)
    app(["diagnose", str(tmp_path / "a.npy"), "--json", "--quiet"], standalone_mode=False)
    found = Diagnosis.from_json(capsys.readouterr().out)
    assert (found.vectors.rows, found.rows_in_file) == (1000, 5000)
    assert "Data: 1,000 of 5,000 rows were read, at even distances." in str(found)
    assert found.spectrum.score[0] == pytest.approx(9 / 17, abs=0.05)
