"""No command replaces what is there already, unless it is told to by --force."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from command_line import firstk
from firstk import PrefixEncoder
from firstk.data.files import write_vectors

COMMANDS = {
    "sample": ("digits.npz", "sample", "digits", "-o", "digits.npz"),
    "fit": ("model", "fit", "in.npz", "-o", "model"),
    "transform": ("out.npz", "transform", "model", "in.npz", "-o", "out.npz"),
    "export": ("out.onnx", "export", "model", "--to", "onnx", "-o", "out.onnx"),
    "curve": ("out.svg", "curve", "model", "in.npz", "--report", "out.svg"),
    "report": ("out.html", "report", "model", "-o", "out.html"),
}
NEEDS = {"export": "onnx", "curve": "matplotlib"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("force")
    rng = np.random.default_rng(0)
    write_vectors(place / "in.npz", (rng.standard_normal((120, 5)) * [3, 2, 1, 0.5, 0.2]).astype("f4"))
    assert firstk("fit", "in.npz", "-o", "model", cwd=place).returncode == 0
    return place


def bytes_of(path):
    return [one.read_bytes() for one in sorted(path.iterdir())] if path.is_dir() else path.read_bytes()


@pytest.mark.parametrize("name", COMMANDS)
def test_an_existing_output_is_replaced_only_by_force(home, name):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    out, *command = COMMANDS[name]
    if name == "fit":
        PrefixEncoder(2).fit(np.random.default_rng(1).standard_normal((50, 5))).save(home / "kept")
        out, command[-1] = "kept", "kept"
    else:
        (home / out).write_text("what was there before")
    before = bytes_of(home / out)
    run = firstk(*command, cwd=home)
    assert run.returncode == 1
    assert f"'{out}' is there already. Pass --force to replace it" in run.stderr
    assert bytes_of(home / out) == before
    run = firstk(*command, "--force", cwd=home)
    assert run.returncode == 0, run.stderr
    assert bytes_of(home / out) != before


def test_force_does_not_replace_a_folder_that_is_no_model(home):
    (home / "letters").mkdir()
    (home / "letters" / "dear.txt").write_text("friend")
    run = firstk("fit", "in.npz", "-o", "letters", "--force", cwd=home)
    assert run.returncode == 1
    assert "not a firstk model" in run.stderr
    assert (home / "letters" / "dear.txt").read_text() == "friend"
