"""Streams on one machine: any cut, any number of workers, a stop in the middle; the same bytes, or a fit to 1e-9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk._base import arrays as arrays_file
from firstk.data.files import open_vectors, write_vectors
from firstk.estimator.fit_files import Stream, chunks_of, draw, fit_files, fit_stream
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.moments.checkpoint import Checkpoint
from firstk.moments.moments import Moments
from firstk.moments.pairs import PairMoments
from firstk.moments.statistics import RowSample, Statistics
from firstk.moments.stream import Chunks, chunk_rows

RNG = np.random.default_rng(0)
N, P, C = 900, 6, 4
Y = RNG.integers(0, C, N)
X = RNG.normal(size=(N, P)) * [5.0, 3.0, 2.0, 1.2, 0.7, 0.3] + RNG.normal(size=(C, P))[Y] * 2 + 100
NAMES = np.array(["ä", "bb", "", "dddd"])[Y]


def batches(size, X=X, y=Y):
    return [{"X": X[i : i + size], "y": y[i : i + size]} for i in range(0, len(X), size)]


def same_bytes(one, other):
    return one.components_.tobytes() == other.components_.tobytes() and one.mean_.tobytes() == other.mean_.tobytes()


# -- state as arrays -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "moments",
    [
        Moments(),
        Moments("float64").update(X),
        Moments().update(X.astype(np.float32), Y),
        Moments().update(X, NAMES),
        Moments().update(X, NAMES.astype(object)),
        Moments().update(X, targets=X[:, :2], sample_weight=np.arange(N)),
        PairMoments(),
        PairMoments().update(X[:450], X[450:]),
        PairMoments().update(X[:450], X[450:], Y[:450]),
    ],
)
def test_moments_come_back_from_bytes_and_go_on(moments):
    payload = arrays_file.to_bytes(moments.to_arrays())
    again = type(moments).from_arrays(arrays_file.from_bytes(payload)[0])
    own, theirs = moments.to_arrays(), again.to_arrays()
    assert own.keys() == theirs.keys()
    for name, part in own.items():
        assert part.dtype == theirs[name].dtype, name
        np.testing.assert_array_equal(part, theirs[name])
    if moments.rows:
        merged = type(moments)().merge(moments).merge(again)
        np.testing.assert_allclose(merged.St, moments.St, atol=1e-9)


def test_samples_come_back_with_labels_as_text():
    sample = RowSample(20).update({"X": X, "y": NAMES})
    again = RowSample.from_arrays(arrays_file.from_bytes(arrays_file.to_bytes(sample.to_arrays()))[0])
    for name in ("X", "y"):
        np.testing.assert_array_equal(again[name], sample[name])
    np.testing.assert_array_equal(again.priority, sample.priority)


@pytest.mark.parametrize("spoil", ["drop", "shape", "cut", "flip"])
def test_spoilt_state_raises_an_error(spoil):
    statistics = PrefixEncoder(objective="fisher").fit(X, Y)._statistics
    state = statistics.to_arrays()
    if spoil == "drop":
        del state["moments.within"]
    if spoil == "shape":
        state["moments.within"] = state["moments.within"][:3]
    payload = arrays_file.to_bytes(state)
    if spoil == "cut":
        payload = payload[:-9]
    if spoil == "flip":
        payload = payload[:30] + b"\xff" + payload[31:]
    with pytest.raises(CorruptModelError):
        Statistics.from_arrays(arrays_file.from_bytes(payload)[0])


def test_objects_raise_an_error_by_name():
    with pytest.raises(InvalidInputError, match="'label' holds objects"):
        arrays_file.to_bytes({"label": np.array([1, None], dtype=object)})


# -- streams -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["reconstruction", "fisher", "mixture"])
@pytest.mark.parametrize("size", [1, 7, 300, 900])
def test_any_cut_gives_the_fit_in_memory(objective, size):
    expected = PrefixEncoder(objective=objective).fit(X, Y)
    found = fit_stream(PrefixEncoder(objective=objective), Stream(batches(size)))
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-9)
    assert found.encoder_.record.data_fingerprint == expected.encoder_.record.data_fingerprint


def test_the_number_of_workers_changes_no_byte():
    fits = [fit_stream(PrefixEncoder(objective="fisher"), Stream(batches(50)), workers=n) for n in (1, 2, 5)]
    assert same_bytes(fits[0], fits[1])
    assert same_bytes(fits[0], fits[2])


def test_shards_on_disk_give_the_fit_in_memory(tmp_path):
    for i, (first, last) in enumerate(pairwise([0, 1, 400, 401, 900])):
        write_vectors(tmp_path / f"part-{i}.npz", X[first:last], {"label": NAMES[first:last]})
    found = fit_files(PrefixEncoder(objective="fisher"), tmp_path, label="label")
    expected = PrefixEncoder(objective="fisher").fit(X, NAMES)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-9)
    assert list(found.encoder_.head.classes) == sorted(set(NAMES))


def test_half_precision_is_read_as_single(tmp_path):
    half = (X - 100).astype(np.float16)
    np.save(tmp_path / "half.npy", half)
    found = fit_files(PrefixEncoder(3), tmp_path / "half.npy")
    np.testing.assert_allclose(found.components_, PrefixEncoder(3).fit(half.astype(np.float64)).components_, atol=1e-5)


def test_a_table_goes_on_from_any_piece_without_reading_what_came_before(tmp_path, monkeypatch):
    for i in range(3):
        np.save(tmp_path / f"part-{i}.npy", X[300 * i : 300 * i + 300])
    table = open_vectors(tmp_path)
    whole, reader, read = [batch.start for batch in table.batches(70)], table.shards[0].ask(type), []
    blocks = reader.blocks
    monkeypatch.setattr(reader, "blocks", lambda self, *wanted: (read.append(1), blocks(self, *wanted))[1])
    for start, shards in ((0, 3), (70, 3), (300, 2), (580, 2), (600, 1), (900, 0)):
        read.clear()
        assert [batch.start for batch in table.batches(70, start=start)] == [at for at in whole if at >= start]
        assert len(read) == shards


def test_memory_is_bounded_by_the_size_of_a_piece():
    assert chunk_rows(384) * 384 <= 8_000_000
    assert chunk_rows(4096) == 4 * 4096
    assert chunk_rows(10**8) >= 1


# -- checkpoints ---------------------------------------------------------------------------------------------------


def interrupting(at, chunks):
    """Send SIGINT to this process when a chunk is asked for."""

    def after(end):
        for number, chunk in enumerate(chunks.after(end)):
            if number == at:
                os.kill(os.getpid(), signal.SIGINT)
            yield chunk

    return Chunks(after, chunks.pairs, chunks.job)


def table_of(folder):
    for i in range(6):
        np.savez(folder / f"part-{i}.npz", vectors=X[150 * i : 150 * i + 150], label=NAMES[150 * i : 150 * i + 150])
    table = open_vectors(folder, beside=("label",))
    return chunks_of(table, lambda batch: batch.columns["label"], ("label",))


@pytest.mark.usefixtures("ctrl_c")
def test_an_interruption_keeps_a_checkpoint_and_resume_gives_the_same_bytes(tmp_path):
    folder, file = tmp_path / "shards", tmp_path / "moments.checkpoint"
    folder.mkdir()
    chunks, parts = table_of(folder), draw(N, 0.1, 1)
    once, again = Stream(chunks, parts=parts), Stream(chunks, parts=parts)
    whole = fit_stream(PrefixEncoder(objective="fisher"), once)
    stopped = Stream(interrupting(3, chunks), parts=parts)
    with pytest.raises(KeyboardInterrupt):
        fit_stream(PrefixEncoder(objective="fisher"), stopped, workers=1, checkpoint=Checkpoint(file))
    assert file.exists()
    with pytest.raises(InvalidInputError, match="resume=True"):
        fit_stream(PrefixEncoder(objective="fisher"), again, checkpoint=Checkpoint(file))
    told = []
    resumed = fit_stream(
        PrefixEncoder(objective="fisher"), again, checkpoint=Checkpoint(file, resume=True), progress=told.append
    )
    assert 0 < told[0] < N, "what the checkpoint held is told first"
    assert sum(told) == N
    assert len(told) > 1
    assert same_bytes(resumed, whole)
    for name in ("X", "y"):
        np.testing.assert_array_equal(getattr(again.held, name), getattr(once.held, name))
        np.testing.assert_array_equal(getattr(again.reference, name), getattr(once.reference, name))
    assert again.seen == once.seen == N
    assert not file.exists(), "a finished run has no checkpoint"


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("change", ["settings", "files", "held out"])
def test_the_checkpoint_of_another_run_raises_an_error(tmp_path, change):
    folder, file = tmp_path / "shards", tmp_path / "moments.checkpoint"
    folder.mkdir()
    chunks, parts = table_of(folder), draw(N, 0.1, 1)
    stopped = Stream(interrupting(2, chunks), parts=parts)
    with pytest.raises(KeyboardInterrupt):
        fit_stream(PrefixEncoder(objective="fisher"), stopped, workers=1, checkpoint=Checkpoint(file))
    encoder = PrefixEncoder(2 if change == "settings" else None, objective="fisher")
    if change == "files":
        os.utime(folder / "part-5.npz", (1, 1))
        chunks = table_of_again(folder)
    if change == "held out":
        parts = draw(N, 0.2, 1)
    with pytest.raises(InvalidInputError, match="belongs to another run"):
        fit_stream(encoder, Stream(chunks, parts=parts), checkpoint=Checkpoint(file, resume=True))


def table_of_again(folder):
    table = open_vectors(folder, beside=("label",))
    return chunks_of(table, lambda batch: batch.columns["label"], ("label",))


def test_a_file_that_is_no_checkpoint_raises_an_error(tmp_path):
    file = tmp_path / "moments.checkpoint"
    file.write_bytes(b"nothing of the kind")
    with pytest.raises(CorruptModelError, match="cannot be read"):
        fit_stream(PrefixEncoder(), Stream(batches(100)), checkpoint=Checkpoint(file, resume=True))


SLOW = """
import sys, time
from firstk import PrefixEncoder
from firstk.data.files import vector_table
from firstk.estimator.fit_files import fit_files
import firstk.estimator.fit_files as fitting

fitting.chunk_rows = lambda width: 50
folder, file, out, resume, pause = sys.argv[1:]
checked = vector_table.VectorTable._checked
vector_table.VectorTable._checked = lambda *a: (time.sleep(float(pause)), checked(*a))[1]
encoder = PrefixEncoder(objective="fisher")
fit_files(encoder, folder, label="label", checkpoint=file, resume=resume == "yes", every=0.0)
encoder.save(out)
"""


def test_killed_in_the_middle_and_resumed_the_saved_model_has_the_same_bytes(tmp_path):
    folder, file = tmp_path / "shards", tmp_path / "moments.checkpoint"
    folder.mkdir()
    table_of(folder)

    def start(out, resume, pause):
        return subprocess.Popen([sys.executable, "-c", SLOW, folder, file, tmp_path / out, resume, pause])

    assert start("whole", "no", "0").wait() == 0
    victim = start("resumed", "no", "0.2")
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    victim.send_signal(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    read = arrays_file.read(file)[1]["state"]["read"]
    assert 0 < read < N, "the kill came in the middle"
    assert start("resumed", "yes", "0").wait() == 0
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "resumed" / name).read_bytes()
