"""Ctrl-C in the middle of a command: one sentence, exit code 130, and nothing half-written."""

import os
import signal
import subprocess
import sys

import pytest

from firstk import PrefixEncoder
from firstk.data import load_digits
from firstk.data.files import write_vectors

pytestmark = pytest.mark.usefixtures("ctrl_c")

SAID = "firstk: interrupted; nothing was left half-written.\n"

# Makes one function of the command say that it was reached, and go on slowly.
SLOW = """
import sys, time
import {module} as module
whole = module.{name}
def slow(*args, **kwargs):
    print("reached", file=sys.stderr, flush=True)
    time.sleep({seconds})
    return whole(*args, **kwargs)
module.{name} = slow
from firstk.cli import main; main()
"""


@pytest.fixture
def folder(tmp_path):
    digits = load_digits()
    write_vectors(tmp_path / "digits.npz", digits.X.astype("float32"), {"label": digits.y})
    PrefixEncoder(8).fit(digits.X).save(tmp_path / "model")
    return tmp_path


def interrupted(folder, arguments, module, name, seconds=60):
    """Start a command, press Ctrl-C when it has reached that function, and return what it said from there on."""
    job = subprocess.Popen(
        [sys.executable, "-c", SLOW.format(module=module, name=name, seconds=seconds), *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert job.stderr.readline().startswith("reached")
    job.send_signal(signal.SIGINT)
    _, said = job.communicate(timeout=120)
    return job.returncode, said


def without_marks(said):
    """Return the lines that are not of `SLOW`: several workers may write their marks into one line."""
    return [line for line in said.replace("reached", "").splitlines() if line]


FIT = ("fit", "digits.npz", "--label", "label", "--objective", "fisher", "-o", "fitted")
WORK = {
    "demo": (("demo", "--out", "out"), "firstk.advice.evaluate", "per_row_scores"),
    "fit": (FIT, "firstk.advice.evaluate", "per_row_scores"),
    "transform": (
        ("transform", "model", "digits.npz", "-o", "short.npz"),
        "firstk.estimator.transform_files",
        "Encoding.__call__",
    ),
}


@pytest.mark.parametrize("command", [pytest.param("demo", marks=pytest.mark.full), "fit", "transform"])
def test_ctrl_c_is_one_sentence_and_leaves_nothing(folder, command):
    before = sorted(os.listdir(folder))
    # Curves are made by workers, which end what they have begun: seconds here, so that this is not waited for long.
    code, said = interrupted(folder, *WORK[command], seconds=3)
    assert code == 130
    assert without_marks(said) == [SAID.strip()]
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("demo", "--out", "out"), id="demo", marks=pytest.mark.full),
        pytest.param((*FIT[:5], "classification", *FIT[6:], "--quiet"), id="fit"),
    ],
)
def test_ctrl_c_during_training_ends_the_command_too(folder, arguments):
    """In Python, training that is interrupted keeps its best state and goes on; a command does not go on with it."""
    pytest.importorskip("torch", reason="the extra 'torch' is not installed")
    before = sorted(os.listdir(folder))
    code, said = interrupted(folder, arguments, "firstk.solvers.gradient.loop", "_Run._epoch", seconds=0.2)
    assert code == 130
    assert without_marks(said) == [SAID.strip()]
    assert sorted(os.listdir(folder)) == before
