"""Rows that taught a model are known one by one, so that a file with one row more is not taken for a new one."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder, fit_files
from firstk.advice.inputs import VectorSource
from firstk.advice.read import evaluated_on, read_for
from firstk.moments import fingerprint, statistics
from firstk.moments.fingerprint import taught_rows

RNG = np.random.default_rng(0)
ROWS, NEW = RNG.standard_normal((400, 6)), RNG.standard_normal((100, 6))


@pytest.fixture
def data(tmp_path):
    """A file of the rows of the fit with one row changed and others added, as float32."""
    mixed = np.concatenate([ROWS[1:], NEW]).astype(np.float32)
    np.save(tmp_path / "mixed.npy", mixed[RNG.permutation(len(mixed))])
    np.save(tmp_path / "rows.npy", ROWS)
    return tmp_path


def evaluated(encoder, path):
    task = read_for(encoder.encoder_, VectorSource(str(path)))
    return task, " ".join([evaluated_on(task), *task.files.notes])


@pytest.mark.parametrize("how", ["rows", "labels", "batches", "loaded", "file", "similarity"])
def test_training_rows_are_left_out_of_an_evaluation(data, how):
    if how == "labels":
        encoder = PrefixEncoder(3, objective="fisher").fit(ROWS, np.arange(400) % 5)
    elif how == "batches":
        encoder = PrefixEncoder(3).partial_fit(ROWS[:150]).partial_fit(ROWS[150:])
    elif how == "file":
        encoder = fit_files(PrefixEncoder(3), data / "rows.npy")
    else:
        encoder = PrefixEncoder(3, objective="similarity" if how == "similarity" else "reconstruction").fit(ROWS)
    if how == "loaded":
        encoder.save(data / "model")
        encoder = PrefixEncoder.load(data / "model")
    if how == "labels":
        known, share = taught_rows(np.concatenate([ROWS, NEW]), encoder.encoder_.learned)
        assert (known == (np.arange(500) < 400)).all()
        assert share == 0.8
        return
    task, said = evaluated(encoder, data / "mixed.npy")
    assert "that the model was fitted on are left out" in said
    found = np.asarray(task.held_out.X)
    assert np.isin(found.round(4), NEW.astype(np.float32).round(4)).all()


def test_of_many_rows_the_share_that_taught_is_estimated(data, monkeypatch):
    from firstk.advice import read as evaluation_data

    for module in (fingerprint, statistics, evaluation_data):
        monkeypatch.setattr(module, "MOST_TAUGHT", 100)
    encoder = PrefixEncoder(3).partial_fit(ROWS[:150]).partial_fit(ROWS[150:])
    assert len(encoder.encoder_.learned) == 100
    task, said = evaluated(encoder, data / "mixed.npy")
    assert task.held_out.n == 499
    share = float(said.split("about ")[1].split("%")[0]) / 100
    assert share == pytest.approx(0.8, abs=0.1)
    np.save(data / "new.npy", NEW)
    assert "fitted on" not in evaluated(encoder, data / "new.npy")[1]


def test_all_rows_taught(data):
    encoder = PrefixEncoder(3).fit(ROWS)
    np.save(data / "some.npy", ROWS[:50])
    task, said = evaluated(encoder, data / "some.npy")
    assert "fitted on all of these rows" in said
    assert task.held_out.n == 50
