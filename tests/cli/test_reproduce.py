"""``firstk reproduce`` on a toy: what it prints, and its error messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import firstk

TESTS = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.wings  # the papers' command


def command(*arguments):
    return [sys.executable, "-m", "firstk", "reproduce", *map(str, arguments)]


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}


def reproduce(*arguments):
    return firstk("reproduce", *arguments)


@pytest.fixture
def specs(tmp_path):
    folder = tmp_path / "specs" / "toys"
    folder.mkdir(parents=True)
    numbers = "[settings]\nlog = '{}'\nnumbers = [1, 2]\n".format(tmp_path / "log.txt")
    (folder / "fig1.toml").write_text(f"title = 'Squares'\nwhere = 'Fig. 1'\nstudy = 'fixtures.toy_study'\n{numbers}")
    claim = {"id": "s", "where": "p. 1", "statement": "Large.", "measure": "sum", "threshold": {"at_least": 9}}
    (folder / "fig1.expected.json").write_text(json.dumps({"claims": [claim]}))
    return folder.parent


def test_a_run_prints_claims_and_writes_the_page(specs, tmp_path):
    done = reproduce("all", "--specs", specs, "--out", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    assert "did not hold Large. [at least 9; measured 5]" in done.stdout
    assert (tmp_path / "results" / "smoke" / "index.html").is_file()


def test_wrong_arguments_give_an_error_message(specs, tmp_path):
    for arguments, message in [
        (("toys/fig7", "--specs", specs), "There is no experiment 'toys/fig7'"),
        (("all", "--specs", tmp_path / "none"), "holds no experiments"),
        (("all", "--specs", specs, "--tier", "huge"), "The 'tier' parameter"),
    ]:
        done = reproduce(*arguments)
        assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (1, True, False), done.stderr


def test_a_folder_that_cannot_be_written_raises_before_any_work(specs, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "half" / "smoke").mkdir(parents=True)
    (tmp_path / "half" / "smoke" / "cells").touch()
    for out, message in [
        (tmp_path / "file", f"'{tmp_path / 'file'}' is a file."),
        (tmp_path / "file" / "below", f"'{tmp_path / 'file'}' is a file."),
        (tmp_path / "half", "cells' is a file."),
        (Path("/proc/firstk"), "Cannot write '/proc/firstk/smoke': "),
    ]:
        done = reproduce("all", "--specs", specs, "--out", out)
        assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (1, True, False), done.stderr
        assert not (tmp_path / "log.txt").exists(), "a cell was run"


def test_missing_data_names_a_way_out_that_the_command_line_has(tmp_path):
    empty = environment() | {"FIRSTK_DATA": str(tmp_path / "none")}
    asked = command("talukder2026/fig6a", "--out", tmp_path / "results")
    done = subprocess.run(asked, capture_output=True, text=True, env=empty, check=False)
    assert done.returncode == 1
    assert f"MNIST is not in {tmp_path / 'none' / 'mnist'}" in done.stderr
    assert "Set the environment variable FIRSTK_DATA to the folder that holds 'mnist/'." in done.stderr


def test_a_terminated_run_keeps_what_was_finished(specs, tmp_path):
    spec = specs / "toys" / "fig1.toml"
    spec.write_text(spec.read_text().replace("[1, 2]", "[1, 1000]"))  # the second sleeps
    process = subprocess.Popen(command("all", "--specs", specs, "--out", tmp_path), env=environment())
    waited = time.monotonic() + 60
    while not list(tmp_path.glob("smoke/cells/*.json")) and time.monotonic() < waited:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert len(list(tmp_path.glob("smoke/cells/*.json"))) == 1
    assert not list(tmp_path.glob("smoke/*.json"))


def test_the_list_names_every_experiment(specs):
    done = reproduce("--specs", specs)
    assert done.stdout == "toys/fig1  Squares (Fig. 1; 1 claim)\n"


def test_a_study_of_ones_own_lies_beside_its_specs(specs, tmp_path):
    (specs / "mine.py").write_text((TESTS / "fixtures" / "toy_study.py").read_text())
    spec = specs / "toys" / "fig1.toml"
    spec.write_text(spec.read_text().replace("fixtures.toy_study", "mine"))
    done = reproduce("all", "--specs", specs, "--out", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    assert "measured 5" in done.stdout
