"""Re-encoding 1,000,000 stored vectors, parquet to parquet, against pyarrow doing the reading and the writing alone.

The peer reads the same column of 384 float32 numbers in batches of the same size and writes a column of k numbers of
the same type, with the same settings of the writer, from a matrix that it has at hand: nothing is computed. Both keep
the column of row numbers. They take turns, and the peak memory is that of a process that does the transform and nothing
else, the interpreter and its packages included.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Claim, best_times, peak, peak_memory, report
from firstk import PrefixEncoder
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.transform_files import transform_files

ROWS, WIDTH, K, BATCH = 1_000_000, 384, 64, 10_416
MEMORY = 700.0  # MiB
CLAIM = Claim(
    f"transform of {ROWS:,} x {WIDTH} float32 rows to {K}, parquet to parquet",
    "firstk transform",
    ("pyarrow: read all, write k",),
    0.6,
)


def make(folder: Path) -> None:
    """Write the vectors, with a column of row numbers, as pyarrow does by itself; and an encoder for them."""
    rng = np.random.default_rng(0)
    kind = pa.schema([("vectors", pa.list_(pa.float32(), WIDTH)), ("id", pa.int64())])
    mixing = rng.standard_normal((WIDTH, WIDTH), dtype=np.float32) * np.linspace(1, 0.1, WIDTH, dtype=np.float32)
    with pq.ParquetWriter(folder / "vectors.parquet", kind) as writer:
        for start in range(0, ROWS, 50_000):
            X = rng.standard_normal((50_000, WIDTH), dtype=np.float32) @ mixing
            lists = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), WIDTH)
            writer.write_table(pa.Table.from_arrays([lists, pa.array(np.arange(start, start + 50_000))], schema=kind))
    PrefixEncoder(K).fit(X).save(folder / "model")


def ours(folder: Path) -> None:
    """Do the transform."""
    encoder = FittedEncoder.load(folder / "model")
    transform_files(encoder, folder / "vectors.parquet", folder / "short.parquet", k=K)


def theirs(folder: Path) -> None:
    """Read every column and write as many rows of k numbers."""
    kind = pa.schema([("vectors", pa.list_(pa.float32(), K)), ("id", pa.int64())])
    codes = pa.array(np.random.default_rng(1).standard_normal(BATCH * K, dtype=np.float32))
    file = pq.ParquetFile(folder / "vectors.parquet", buffer_size=1 << 20, pre_buffer=False)
    with pq.ParquetWriter(folder / "copy.parquet", kind, use_dictionary=["id"], write_statistics=False) as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in file.iter_batches(BATCH):
            lists = pa.FixedSizeListArray.from_arrays(codes[: len(batch) * K], K)
            waiting.append(pa.RecordBatch.from_arrays([lists, batch.column("id")], schema=kind))
            if len(waiting) == 12:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        writer.write_table(pa.Table.from_batches(waiting, schema=kind))


def run(rounds: int = 3) -> bool:
    """Print the ratio and the peak, and tell whether both hold."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        seconds = best_times({CLAIM.ours: lambda: ours(folder), CLAIM.peers[0]: lambda: theirs(folder)}, rounds)
        fast = report(CLAIM, seconds)
        os.environ["FIRSTK_BENCHMARK_FOLDER"] = name
        used = peak_memory("benchmarks.files", "ours")
    print(f"  peak memory {used:.0f} MiB (promised {MEMORY:.0f}): {'met' if used < MEMORY else 'NOT MET'}")
    return fast and used < MEMORY


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--peak-of")
    if parser.parse_args().peak_of:
        ours(Path(os.environ["FIRSTK_BENCHMARK_FOLDER"]))
        print(peak())
        raise SystemExit(0)
    raise SystemExit(0 if run() else 1)
