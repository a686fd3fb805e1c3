"""Spark in two threads against one process on the same parquet files: processor time, and bytes to the driver.

    python -m benchmarks.engines                  500,000 rows of 384 columns
    python -m benchmarks.engines --rows 2000000

Times are of all processes of Spark (driver, JVM, workers), once the session runs; the other side is `fit_files` and
`transform_files` in a process of one thread. Needs the extra "spark", and Java 17.
"""

# ruff: noqa: E402 - the number of threads is set before anything that reads it is imported
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from firstk import PrefixEncoder, fit_files, transform_files
from firstk.data.files import open_vectors, write_vectors
from firstk.integrations import _arrow_batches
from firstk.integrations import spark as engine
from firstk.integrations.parts import finish, measure

P, K, SHARD = 384, 64, 125_000
TICK = os.sysconf("SC_CLK_TCK")


def written(folder: Path, rows: int) -> str:
    """Write shards of float32 rows with ten classes."""
    rng = np.random.default_rng(0)
    scale = np.geomspace(1, 0.05, P).astype(np.float32)
    for i in range(0, rows, SHARD):
        y = rng.integers(0, 10, min(SHARD, rows - i))
        X = rng.standard_normal((len(y), P), dtype=np.float32) * scale
        X[np.arange(len(y)), y] += 1
        write_vectors(folder / f"{i:09d}.parquet", X, {"label": y}, name="vector")
    return str(folder)


def processor_seconds() -> float:
    """Return the processor time of this process and of all below it, those that ended included."""
    ticks: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    below = {os.getpid()}
    while more := {pid for pid, (parent, _) in ticks.items() if parent in below} - below:
        below |= more
    return sum(ticks[pid][1] for pid in below) / TICK


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time that some work took."""
    before = processor_seconds()
    work()
    return processor_seconds() - before


def drained(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take what Spark sends to a worker, and do nothing with it."""
    yield pa.RecordBatch.from_pydict({"rows": [sum(map(len, batches))]})


def blank(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take what Spark sends to a worker, and give back codes that cost nothing."""
    for batch in batches:
        ends = pa.array(np.arange(0, K * len(batch) + 1, K, dtype=np.int32))
        zeros = pa.ListArray.from_arrays(ends, pa.array(np.zeros(K * len(batch), np.float32)))
        yield pa.RecordBatch.from_arrays([zeros], ["vector"])


def measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read files in a task, as docs/scale.md does."""
    for name in (name for batch in batches for name in batch["name"].to_pylist()):
        part = measure(PrefixEncoder(K), (one.vectors for one in open_vectors(name, "vector").batches()))
        yield pa.RecordBatch.from_pydict({"part": [part]})


def main() -> None:
    """Print the processor times of fit and transform, and what the driver received."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    rows = parser.parse_args().rows
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with tempfile.TemporaryDirectory() as place:
        store = written(Path(place) / "store", rows)
        ours = PrefixEncoder(K)
        files = {"fit": seconds(lambda: fit_files(ours, store, vectors="vector", workers=1))}
        files["transform"] = seconds(lambda: transform_files(ours, store, f"{place}/codes", vectors="vector", k=K))
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        df = session.read.parquet(store)
        df.limit(10).mapInArrow(lambda batches: batches, df.schema).count()  # workers have started
        got: list[int] = []
        _arrow_batches.finish = lambda encoder, parts: (got.extend(map(len, parts)), finish(encoder, parts))[1]
        found = PrefixEncoder(K)
        engine.fit(found, df.limit(10))  # workers have imported firstk
        vectors = df.select("vector")
        alone = {"fit": seconds(lambda: vectors.mapInArrow(drained, "rows long").collect())}
        codes = vectors.mapInArrow(blank, "vector array<float>")
        alone["transform"] = seconds(lambda: codes.write.parquet(f"{place}/blank"))
        names = session.createDataFrame([(str(path),) for path in Path(store).glob("*.parquet")], "name string")
        parts = names.mapInArrow(measured, "part binary")
        by_tasks = seconds(lambda: finish(PrefixEncoder(K), [bytes(row.part) for row in parts.toLocalIterator()]))
        got.clear()
        spark = {"fit": seconds(lambda: engine.fit(found, df))}
        spark["transform"] = seconds(lambda: engine.transform(ours, df, k=K).write.parquet(f"{place}/spark"))
        print(f"largest difference of components {np.abs(found.components_ - ours.components_).max():.1e}")
        print(f"fit on files that tasks read: {by_tasks:.1f} s, {by_tasks / files['fit']:.2f} times")
        print(f"{len(got)} parts, {sum(got):,} bytes to the driver")
        for name, time in files.items():
            print(
                f"{name}: files {time:.1f} s, Spark {spark[name]:.1f} s, {spark[name] / time:.2f} times; nothing done "
                f"in Python {alone[name]:.1f} s"
            )
        session.stop()


if __name__ == "__main__":
    main()
