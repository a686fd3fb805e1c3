"""The command line answers in sentences, and its exit codes mean something."""

import re
import shlex
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points

import click
import numpy as np
import pytest
import typer

from command_line import firstk
from firstk import __version__
from firstk.cli._options import read_count
from firstk.cli.app import COMMANDS, GROUP, app
from firstk.data.files import write_vectors


def examples():
    """Return every command with its example: those of the wings have it in their docstrings."""
    own = {command.__name__: example for command, example in COMMANDS}
    wings = {one.name: one.load() for one in entry_points(group=GROUP)}
    return own | {name: re.search(r"Example: (.*)", one.__doc__)[1] for name, one in sorted(wings.items())}


def from_outside(*arguments, cwd=None):
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from firstk.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


def test_help_names_the_commands_and_where_to_start():
    done = firstk("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "firstk demo" in done.stdout


@pytest.mark.parametrize(("command", "example"), examples().items())
def test_command_help_teaches_by_example(command, example):
    """The example comes before the options, and flags are shown without the type that they have inside."""
    done = firstk(command, "--help")
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert said.index(f"Example: {example}") < said.index("Options")
    assert "<bool>" not in done.stdout


def test_commands_of_wings_are_found_and_loaded_when_they_are_named():
    said = {line.split()[0] for line in firstk("--help").stdout.splitlines() if line.startswith("  ") and line.split()}
    assert {"move", "reproduce"} <= said
    script = (
        "import sys\nfrom firstk.cli import main\ntry:\n    main()\nfinally:\n    print('firstk.search' in sys.modules)"
    )
    for command, loaded in (("info", "False"), ("move", "True")):
        done = subprocess.run(
            [sys.executable, "-c", script, command, "--help"], capture_output=True, text=True, check=True
        )
        assert done.stdout.split()[-1] == loaded


def test_an_installation_without_entry_points_is_told_to_be_installed_again(monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    done = firstk("move", "a.npy", "b.npy")
    assert done.returncode == 1
    assert "metadata of this installation is missing" in done.stderr
    assert "pip install" in done.stderr
    assert firstk("--help").returncode == 0


def test_an_entry_point_that_leads_nowhere_is_an_error(monkeypatch):
    gone = EntryPoint("move", "firstk.gone:move", GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: (gone,))
    done = firstk("move", "a.npy", "b.npy")
    assert done.returncode == 1
    assert "'firstk move' is registered as firstk.gone:move, which does not load" in done.stderr


def test_help_of_the_application_has_flags_without_a_type():
    assert "<bool>" not in firstk("--help").stdout


# -- a name that leads nowhere is told before anything heavy is imported -----------------------------------------------

HEAVY = ("scipy.linalg", "sklearn", "torch", "pyarrow", "pandas")
NOWHERE = [
    ("fit", "gone.npy", "-o", "m"),
    ("fit", "gone*.npy", "-o", "m"),
    ("fit", "there.npy", "-o", "m", "--label", "gone.csv"),
    ("fit", "there.npy", "-o", "m", "--label", "gone.csv:label"),
    ("fit", "there.npy", "-o", "m", "--pairs", "gone.csv"),
    ("fit", "there.npy", "-o", "m", "--pairs", "gone.csv:left,right"),
    ("fit", "there.npy", "-o", "m", "--held-out", "gone.npy"),
    ("diagnose", "gone.npy"),
    ("curve", "gone", "gone.npy"),
    ("transform", "gone", "gone.npy", "-o", "a.npy"),
    ("report", "gone"),
    ("info", "gone"),
    ("export", "gone", "--to", "onnx", "-o", "a.onnx"),
]


@pytest.mark.parametrize("arguments", NOWHERE, ids=" ".join)
def test_a_name_that_leads_nowhere_is_told_at_once(tmp_path, arguments):
    (tmp_path / "there.npy").touch()
    script = (
        "import sys\nfrom firstk.cli import main\ntry:\n    main()\n"
        f"finally:\n    print(*(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (1, "")
    assert "There is no file 'gone" in done.stderr or "'gone' is not a firstk model" in done.stderr


def test_queries_that_are_not_there_are_told_before_the_model_is_read(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    (tmp_path / "d.npy").touch()
    done = firstk("curve", "m", "d.npy", "--queries", "gone.npy", "--relevance", "r.csv", cwd=tmp_path)
    assert (done.returncode, "There is no file 'gone.npy'" in done.stderr) == (1, True)


def test_a_file_that_is_not_there_is_told_a_name_like_its_own(tmp_path):
    (tmp_path / "documents.npy").write_bytes(b"")
    near, far = (firstk("fit", tmp_path / name, "-o", tmp_path / "m") for name in ("documnets.npy", "else.npy"))
    assert f"Did you mean '{tmp_path / 'documents.npy'}'?" in near.stderr
    assert "Did you mean" not in far.stderr


def test_columns_of_the_vectors_are_no_file(tmp_path):
    (tmp_path / "there.npy").touch()
    for arguments in (("--objective", "similarity", "--pairs", "left,right"), ("--held-out", "0.5")):
        done = firstk("fit", "there.npy", "-o", "m", *arguments, cwd=tmp_path)
        assert (done.returncode, "'there.npy': it is empty" in done.stderr) == (1, True), done.stderr


# -- numbers of rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("10M", 10_000_000),
        ("1.5B", 1_500_000_000),
        ("1.5g", 1_500_000_000),
        ("200k", 200_000),
        ("200K", 200_000),
        ("10_000_000", 10_000_000),
        ("10,000,000", 10_000_000),
        ("10 000", 10_000),
        (" 7 ", 7),
        ("0.001k", 1),
    ],
)
def test_numbers_of_rows_as_people_write_them(text, count):
    assert read_count(text) == count


@pytest.mark.parametrize(
    "text", ["", "0", "-5", "10.000", "1.5", "10,5", "1,00", "0.0005k", "M", "10MM", "1e6", "１０", "9" * 40]
)
def test_what_is_no_number_of_rows(text):
    with pytest.raises(typer.BadParameter, match="is not a number of rows"):
        read_count(text)


@pytest.mark.parametrize("command", [("report", "m"), ("curve", "m", "v.npy")])
def test_commands_take_such_numbers(tmp_path, command):
    wrong = firstk(*command, "--rows", "ten", cwd=tmp_path)
    assert (wrong.returncode, "is not a number of rows" in " ".join(wrong.stderr.split())) == (2, True)
    right = firstk(*command, "--rows", "10M", cwd=tmp_path)
    assert (right.returncode, "'m' is not a firstk model" in right.stderr) == (1, True)


def test_version():
    assert from_outside("--version").stdout.strip() == f"firstk {__version__}"


def test_no_arguments_shows_help_not_a_traceback():
    done = from_outside()
    assert "Usage" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_command_is_wrong_usage():
    assert from_outside("dmeo").returncode == 2


def test_a_refusal_is_one_sentence(tmp_path):
    (tmp_path / "taken").write_text("a file stands where the folder should be")
    done = from_outside("demo", "--out", "taken", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == "", "refused before the work, not after it"
    assert done.stderr.startswith("firstk: ")
    assert "Traceback" not in done.stderr
    assert (tmp_path / "taken").read_text().startswith("a file")


def test_every_example_of_help_runs(tmp_path):
    """In the order of --help, in one folder: each stands on what those before it wrote, and two models of one text."""
    old = np.random.default_rng(0).normal(size=(300, 12)).astype(np.float32)
    write_vectors(tmp_path / "old.parquet", old)
    write_vectors(tmp_path / "new.parquet", old[:, ::-1] + 0.1 * old)
    ran_elsewhere = {"demo", "reproduce"}  # by test_demo and test_reproduce
    for example in (examples()[name] for name in examples() if name not in ran_elsewhere):
        done = firstk(*shlex.split(example)[1:], cwd=tmp_path)
        extra_missing = done.returncode == 1 and "which is not installed" in done.stderr
        assert done.returncode == 0 or extra_missing, example + done.stderr


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_that_falls_into_a_destructor_still_ends_the_command(name, code):
    """Python drops what a destructor raises; the signal must not be lost with it."""
    script = f"""
import os, signal, sys, time
import firstk.cli

app = sys.modules["firstk.cli.app"]

class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.2)

def command():
    Late()
    time.sleep(20)

app.app = command
app.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


def test_there_are_few_options_and_help_of_fit_fits_on_one_screen():
    group = typer.main.get_command(app)
    context = click.Context(group)
    commands = [group.get_command(context, name) for name in group.list_commands(context)]
    options = [one for each in commands for one in each.params if one.param_type_name == "option"]
    assert len(options) <= 130
    fit = group.get_command(context, "fit")
    shown = fit.get_help(click.Context(fit, info_name="firstk fit", terminal_width=80)).splitlines()
    assert len(shown) <= 50
    assert max(map(len, shown)) <= 80


def test_help_breaks_no_name_at_a_hyphen():
    for command in ("fit", "curve", "transform", "align"):
        text = firstk(command, "--help").stdout
        assert "--" in text
        assert not [line for line in text.splitlines() if line.endswith("-") or "\u2011" in line]
