"""Fits of files larger than memory: 5,000,000 x 384 float16 rows on disk, by reconstruction and Fisher, below 1 GiB.

The yardstick is the same reads followed by a bare product of each chunk with itself in float32, on all threads of BLAS:
no labels, no means, no checks. Peers that find the same axes are scikit-learn's IncrementalPCA and dask.array's
compressed SVD, on a part of the rows, because they take long; their error is that of their axes against an
eigendecomposition of float64 moments. Peak memory is that of a process that does the fit and nothing else, the
interpreter and its packages included, at three numbers of rows. The files are made in a temporary folder and removed
afterwards.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Claim, best_times, peak, report
from firstk import Fisher, PrefixEncoder
from firstk._base.concurrency import cores
from firstk.data.files import open_vectors
from firstk.data.files.column_files import open_column
from firstk.estimator.fit_files import chunks_of, fit_stream
from firstk.moments.stream import Chunks, chunk_rows

ROWS, WIDTH, K, CLASSES, SHARD = 5_000_000, 384, 64, 100, 250_000
MEMORY = 1024.0  # MiB
GROWTH = 8.0  # MiB from a fifth of the rows to all: which chunks are in memory together is a matter of timing
SHARE = 0.7


def make(folder: Path, rows: int) -> None:
    """Write shards of float16 rows with a clear spectrum and class means, and one file of labels."""
    rng = np.random.default_rng(0)
    (folder / "vectors").mkdir()
    turn = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    mixing = (np.geomspace(1, 0.02, WIDTH)[:, None] * turn).astype(np.float32)
    means = (0.1 * rng.normal(size=(CLASSES, WIDTH))).astype(np.float32)
    labels = rng.integers(0, CLASSES, rows).astype(np.int16)
    for i, start in enumerate(range(0, rows, SHARD)):
        own = labels[start : start + SHARD]
        X = rng.standard_normal((len(own), WIDTH), dtype=np.float32) @ mixing + means[own]
        np.save(folder / "vectors" / f"part-{i}.npy", X.astype(np.float16))
    np.save(folder / "labels.npy", labels)


def stream(folder: Path, rows: int | None = None) -> Chunks:
    """Return the rows and their labels as a stream; of the first shards only, where `rows` says so."""
    labels = open_column(folder / "labels.npy")
    table = open_vectors(folder / "vectors")
    if rows is not None:
        table.shards = table.shards[: -(-rows // SHARD)]
    return chunks_of(table, lambda batch: labels.take(batch.rows))


# -- contenders ----------------------------------------------------------------------------------------------------


def ours(folder: Path, objective: str, workers: int | None = None, rows: int | None = None) -> PrefixEncoder:
    """Fit from the files."""
    encoder = PrefixEncoder(K, objective=Fisher(shrinkage=None) if objective == "fisher" else objective)
    fit_stream(encoder, stream(folder, rows), workers=workers)
    return encoder


def bare(folder: Path, threads: int | None = None) -> np.ndarray:
    """Read the same chunks and multiply each with itself."""
    total = np.zeros((WIDTH, WIDTH), np.float32)
    with threadpool_limits(threads, "blas"):
        for batch in open_vectors(folder / "vectors").batches(chunk_rows(WIDTH)):
            X = batch.vectors.astype(np.float32)
            total += X.T @ X
    return total


def incremental_pca(folder: Path, rows: int) -> np.ndarray:
    """Fit scikit-learn's IncrementalPCA on the same chunks."""
    from sklearn.decomposition import IncrementalPCA

    model = IncrementalPCA(K)
    for chunk in stream(folder, rows).after(0):
        model.partial_fit(chunk.columns["X"].astype(np.float32))
    return model.components_


def dask_svd(folder: Path, rows: int, iterations: int) -> np.ndarray:
    """Take dask.array's compressed SVD of the centred rows."""
    import dask.array as da

    files = open_vectors(folder / "vectors").shards[: -(-rows // SHARD)]
    parts = [da.from_array(np.load(shard.path, mmap_mode="r"), chunks=(chunk_rows(WIDTH), WIDTH)) for shard in files]
    X = da.concatenate(parts).astype(np.float32)
    return np.asarray(da.linalg.svd_compressed(X - X.mean(axis=0), K, n_power_iter=iterations, seed=0)[2].compute())


def reference(folder: Path, rows: int) -> np.ndarray:
    """Return the axes from float64 sums of outer products about the mean, and an eigendecomposition."""
    total, square, n = np.zeros(WIDTH), np.zeros((WIDTH, WIDTH)), 0
    for chunk in stream(folder, rows).after(0):
        X = chunk.columns["X"].astype(np.float64)
        total, square, n = total + X.sum(axis=0), square + X.T @ X, n + len(X)
    values, vectors = np.linalg.eigh(square / n - np.outer(total, total) / n**2)
    return vectors[:, np.argsort(values)[::-1][:K]].T


def error(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest angle between an axis found and the exact one, as one minus the cosine."""
    return float(1 - np.abs(np.sum(found * exact, axis=1)).min())


# -- what is promised ----------------------------------------------------------------------------------------------


def against_bare(folder: Path, rows: int, rounds: int) -> bool:
    """Print throughput beside that of bare products, on all cores and on one."""
    met, size = True, rows * WIDTH * 2 / 1e6
    for threads in sorted({1, cores()}):
        contenders: dict[str, Callable[[], object]] = {
            "reads and bare products": lambda threads=threads: bare(folder, threads),
            "reconstruction": lambda threads=threads: ours(folder, "reconstruction", threads),
            "fisher": lambda threads=threads: ours(folder, "fisher", threads),
        }
        seconds = best_times(contenders, rounds)
        print(f"\n{rows:,} x {WIDTH} float16 rows ({size:,.0f} MB), {threads} core{'s' * (threads > 1)}")
        for name, time in seconds.items():
            share = seconds["reads and bare products"] / time
            print(
                f"  {name:<26} {time:7.2f} s {rows / time:12,.0f} rows/s {size / time:7.0f} MB/s {share:6.2f} of bare"
            )
            if name != "reads and bare products" and threads == cores():
                met &= share >= SHARE
    print(f"  promised {SHARE:g} of bare on {cores()} cores: {'met' if met else 'NOT MET'}")
    return met


def against_peers(folder: Path, rows: int) -> bool:
    """Print times and errors of the peers on a part of the rows."""
    found: dict[str, np.ndarray] = {}

    def kept(name: str, run: Callable[[], np.ndarray]) -> Callable[[], None]:
        return lambda: found.__setitem__(name, run())

    peers = ("scikit-learn IncrementalPCA", "dask.array svd_compressed", "the same, 4 power iterations")
    seconds = best_times(
        {
            "firstk": kept("firstk", lambda: ours(folder, "reconstruction", rows=rows).components_),
            peers[0]: kept(peers[0], lambda: incremental_pca(folder, rows)),
            peers[1]: kept(peers[1], lambda: dask_svd(folder, rows, 0)),
            peers[2]: kept(peers[2], lambda: dask_svd(folder, rows, 4)),
        },
        1,
    )
    met = report(Claim(f"the first {K} axes of {rows:,} rows", "firstk", peers, 1.0), seconds)
    exact = reference(folder, rows)
    errors = {name: error(axes, exact) for name, axes in found.items()}
    print("  largest 1 - cosine against float64: " + ", ".join(f"{name} {value:.1e}" for name, value in errors.items()))
    return met and errors["firstk"] <= min(errors[name] for name in peers)


def memory(folder: Path, rows: int) -> bool:
    """Print the peak memory of fits of a fifth of the rows, of two fifths and of all: within bounds, and no more."""
    met = True
    for objective in ("reconstruction", "fisher"):
        used = {}
        for part in (rows // 5, 2 * rows // 5, rows):
            part = max(SHARD, part)
            command = [sys.executable, "-m", "benchmarks.scale", "--folder", folder, "--peak-of", objective]
            done = subprocess.run([*map(str, command), "--rows", str(part)], capture_output=True, text=True, check=True)
            used[part] = float(done.stdout.split()[-1])
        told = ", ".join(f"{peak:.0f} MiB for {part:,} rows" for part, peak in used.items())
        growth = used[max(used)] - used[min(used)]
        good = max(used.values()) < MEMORY and growth < GROWTH
        print(f"\npeak memory of {objective}: {told}")
        print(f"  promised less than {MEMORY:.0f} MiB, and less than {GROWTH:.0f} more for all rows than for a fifth")
        print(f"  {growth:+.1f} MiB more: {'met' if good else 'NOT MET'}")
        met &= good
    return met


def run(rows: int, peer_rows: int, rounds: int) -> bool:
    """Make the files, print everything, and tell whether all promises hold."""
    with tempfile.TemporaryDirectory(prefix="firstk-scale-") as name:
        folder = Path(name)
        make(folder, rows)
        kept = [against_bare(folder, rows, rounds), memory(folder, rows), against_peers(folder, min(rows, peer_rows))]
    return all(kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--peer-rows", type=int, default=500_000, help="rows of the comparison with slower peers")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(cores()))
    if given.peak_of:
        ours(given.folder, given.peak_of, rows=given.rows)
        print(peak())
        raise SystemExit(0)
    raise SystemExit(0 if run(given.rows, given.peer_rows, given.rounds) else 1)
