"""A fit of a stream keeps nothing for each row: its peak memory is that of a few chunks, however many there are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from firstk._base.rows import half_as_single

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="needs Linux's /proc")
WIDTH, SHARD, SHARDS = 16, 250_000, 16
# How many chunks are in memory at the same time is a matter of timing: small ones, so that it matters little.
FIT = """
import sys
from pathlib import Path
from firstk import PrefixEncoder
from firstk.moments import stream as accumulating
from firstk.data.files import open_vectors
from firstk.data.files.column_files import open_column
from firstk.estimator.fit_files import Stream, fit_stream, chunks_of
accumulating._CHUNK_NUMBERS = 400_000
folder, objective, shards = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
table, labels = open_vectors(folder / "vectors"), open_column(folder / "labels.npy")
table.shards = table.shards[:shards]
chunks = chunks_of(table, lambda batch: labels.take(batch.rows))
stream = Stream(chunks)
fit_stream(PrefixEncoder(8, objective=objective), stream, workers=2)
print(stream.seen, Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One shard under many names, which a stream cannot tell from many shards, and int64 labels of all rows."""
    folder = tmp_path_factory.mktemp("store")
    rng = np.random.default_rng(0)
    (folder / "vectors").mkdir()
    first = folder / "vectors" / "part-0.npy"
    np.save(first, rng.standard_normal((SHARD, WIDTH), dtype=np.float32).astype(np.float16))
    for i in range(1, SHARDS):
        os.link(first, folder / "vectors" / f"part-{i}.npy")
    np.save(folder / "labels.npy", rng.integers(0, 10, SHARDS * SHARD))
    return folder


def peak(store, objective, shards):
    """Return the peak resident memory of a process that does one fit, in bytes."""
    command = [sys.executable, "-c", FIT, str(store), objective, str(shards)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, kilobytes = map(int, done.stdout.split())
    assert rows == shards * SHARD
    return 1024 * kilobytes


@pytest.mark.full  # half a minute; and how many chunks are there at a time hangs on what else the machine does
@pytest.mark.parametrize("objective", ["reconstruction", "fisher"])
def test_peak_memory_does_not_grow_with_the_rows(store, objective):
    """Four times the rows cost less than two bytes for each row more; a label or a row number would take eight."""
    grown = peak(store, objective, SHARDS) - peak(store, objective, SHARDS // 4)
    assert grown < 2 * (SHARDS - SHARDS // 4) * SHARD


def test_what_a_piece_needs_goes_back_to_the_system():
    """malloc would keep it for later, in an arena for each thread of a stream."""

    def resident():
        return 1024 * int(STATUS.read_text().split("VmRSS:")[1].split()[0])

    half = np.ones((10_000, 400), np.float16)
    before = resident()
    single = half_as_single(half)
    assert single.dtype == np.float32
    assert single.all()
    assert resident() - before > single.nbytes / 2
    for _ in range(3):  # the first time malloc takes new pages and gives them back, too
        del single
        single = half_as_single(half)
    del single
    assert resident() - before < half.nbytes / 2
