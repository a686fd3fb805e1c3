"""``firstk check``: words for people, JSON for programs, exit codes for cron."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.command_line import firstk

from firstk import PrefixEncoder
from firstk.encoder.fitted import FittedEncoder

SCALE = 1 / np.arange(1, 17)


def rows(n, seed, scale=SCALE):
    return np.random.default_rng(seed).standard_normal((n, 16)) * scale


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    model = PrefixEncoder().fit(rows(3000, 0)).save(folder / "model")
    replace(FittedEncoder.load(model), profile=None).save(folder / "old")
    np.save(folder / "then.npy", rows(3000, 0))
    np.save(folder / "same.npy", rows(3000, 1))
    np.save(folder / "other.npy", rows(3000, 2, SCALE[::-1]))
    np.save(folder / "wide.npy", np.ones((100, 17)))
    np.save(folder / "few.npy", rows(10, 3))
    return folder


def test_rows_that_still_fit(place):
    done = firstk("check", "model", "same.npy", "-k", 8, cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("still keeps ")


def test_rows_that_do_not_end_with_code_1(place):
    done = firstk("check", "model", "other.npy", "-k", 8, cwd=place)
    assert done.returncode == 1
    assert done.stdout.startswith("refit: keeps ")


def test_json(place):
    found = json.loads(firstk("check", "model", "other.npy", "-k", 8, "--json", cwd=place).stdout)
    assert (found["verdict"], found["k"], found["rows"]) == ("refit", 8, 3000)
    assert found["kept"][0]["ratio_high"] < 0.98


def test_old_models_are_checked_against_a_file(place):
    done = firstk("check", "old", "same.npy", cwd=place)
    assert done.returncode == 2
    assert "--against" in done.stderr
    assert firstk("check", "old", "same.npy", "--against", "then.npy", "-k", 8, cwd=place).returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model", "nowhere.npy"], "no file"),
        (["nowhere", "same.npy"], "not a firstk model"),
        (["model", "wide.npy"], "17 numbers, and the encoder takes 16"),
        (["model", "few.npy"], "at least 64. Got 10"),
        (["model", "same.npy", "-k", "17"], r"int in [1, 16]"),
        (["model", "same.npy", "--no-such-option"], "No such option"),
    ],
)
def test_no_answer_is_code_2(place, words, message):
    done = firstk("check", *words, cwd=place)
    assert done.returncode == 2
    assert message in done.stderr
    assert not done.stdout
