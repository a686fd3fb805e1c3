"""The commands that the README prints run as printed, and say what it says they say."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from command_line import firstk
from firstk import PrefixEncoder
from firstk.data.files import open_vectors
from firstk.encoder.storage.info import model_info

INTERVAL = re.compile(r"(\d+) to (\d+) %")
README = Path(__file__).resolve().parents[2] / "README.md"


def block_after(mark: str) -> str:
    """Return the fenced block that follows a mark."""
    text = README.read_text("utf-8").split(mark, 1)[1]
    return text.split("```", 2)[1].split("\n", 1)[1]


def commands() -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in block_after("<!-- walk -->").splitlines()]


@pytest.fixture(scope="module")
def walked(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """Run the walk in an empty folder; what each command printed, by its name."""
    home = tmp_path_factory.mktemp("walk")
    printed = {}
    for program, command, *arguments in commands():
        assert program == "firstk"
        done = firstk(command, *arguments, cwd=home)
        assert done.returncode == 0, f"firstk {command}: {done.stderr}"
        assert "Traceback" not in done.stderr
        printed[command] = done.stdout
    return home, printed


def given_to(name: str) -> list[str]:
    """Return the words of one command of the walk."""
    return next(words for words in commands() if words[1] == name)


def test_it_is_five_commands():
    assert [command for _, command, *_ in commands()] == ["sample", "diagnose", "fit", "transform", "report"]


def test_fit_is_what_diagnose_ends_with(walked):
    _, printed = walked
    assert printed["diagnose"].splitlines()[-1].strip() == " ".join(given_to("fit"))


def parted(text: str) -> tuple[list[str], list[int]]:
    """Return the words of a text, and the ends of the intervals in it."""
    ends = [int(end) for both in INTERVAL.findall(text) for end in both]
    return re.sub(r"0\.\d+ of", "a score of", INTERVAL.sub("an interval", text)).split(), ends


def test_fit_begins_as_the_readme_shows(walked):
    """Axes of error_bound are the same on every processor to a cosine of 0.999: shares may differ by a point or two."""
    _, printed = walked
    shown = block_after("<!-- walk: fit -->")
    begun = "\n".join(printed["fit"].splitlines()[: len(shown.splitlines())])
    (words, ends), (wanted, wanted_ends) = parted(begun), parted(shown)
    assert words == wanted
    assert ends == pytest.approx(wanted_ends, abs=2)


def test_python_prints_what_fit_prints(walked, monkeypatch, capsys):
    home, printed = walked
    monkeypatch.chdir(home)
    exec(block_after("<!-- not run: tests/docs/test_readme_walk.py"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 2
    assert lines == printed["fit"].splitlines()[: len(lines)]


def test_transform_is_given_what_fit_recommends(walked):
    home, printed = walked
    assert " ".join(given_to("transform")) in map(str.strip, printed["fit"].splitlines())
    advised = model_info(home / "model").choice.advised.point
    table = open_vectors(home / "short.parquet")
    written = json.loads(table.metadata["firstk"])
    assert (written["k"], written["stored"]["precision"]) == (advised.k, advised.precision)
    assert table.as_stored().width == advised.bytes


def test_the_walk_leaves_a_model_a_page_and_a_shorter_file(walked):
    home, _ = walked
    assert sorted(file.name for file in home.iterdir()) == ["banking.parquet", "model", "report.html", "short.parquet"]
    table = open_vectors(home / "short.parquet")
    assert (table.rows, table.as_stored().width) == (4000, 6)
    assert {"id", "text", "intent"} <= set(table.columns)
    assert (home / "short.parquet").stat().st_size < (home / "banking.parquet").stat().st_size / 10
    assert PrefixEncoder.load(home / "model").n_components_ == 76
    assert "10,000,000 vectors" in (home / "report.html").read_text("utf-8")


def test_it_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= 120
