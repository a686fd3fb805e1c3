"""The command line answers in sentences, and its exit codes mean something."""

import shlex
import subprocess
import sys

import pytest

from command_line import firstk
from firstk import __version__
from firstk.cli.app import COMMANDS


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


def test_command_help_teaches_by_example():
    done = firstk("demo", "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout


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
    done = from_outside("demo", "--out", "taken", "--quiet", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == "", "refused before the work, not after it"
    assert done.stderr.startswith("firstk: ")
    assert "Traceback" not in done.stderr
    assert (tmp_path / "taken").read_text().startswith("a file")


def test_every_example_of_help_runs(tmp_path):
    """In the order of --help, in one folder: each stands on what those before it wrote."""
    for _, example in COMMANDS:
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
