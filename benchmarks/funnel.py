"""FunnelIndex beside faiss's fast indices at recall@10 of 0.99, one thread: build time, memory, queries a second.

    python -m benchmarks.funnel                 120,000 x 784, MNIST and Fashion-MNIST
    python -m benchmarks.funnel --text          1,000,000 x 384, made of sentences embedded by MiniLM
    python -m benchmarks.funnel --synthetic     1,000,000 x 384, clusters with a spectrum like that of text

Each index is given what it takes to find 0.99 of the ten nearest rows of some queries (faiss: efSearch or nprobe, the
least that does), and is measured on others. Times are those of the processor, as each index keeps to one thread; build
time counts training, adding and choosing. Memory is that of the index as faiss writes it, or `nbytes`, codes included.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.record import Measured, write
from benchmarks.retrieval import MIB, NEIGHBORS, RECALL, flat_index, images
from firstk import FunnelIndex, PrefixEncoder

ROWS, WIDTH, QUERIES, CLUSTERS = 1_000_000, 384, 2_000, 20_000
SETTINGS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


@dataclass(frozen=True)
class Built:
    """An index that reaches the recall on its own queries, and what it took."""

    name: str
    seconds: float
    mebibytes: float
    search: Callable[[np.ndarray], np.ndarray]


def synthetic(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and queries of clusters, whose variance falls as a power of the place of the axis, as text's does."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    mixing = (np.arange(1, WIDTH + 1)[:, None] ** -0.4 * turn).astype(np.float32)
    centres = rng.standard_normal((CLUSTERS, WIDTH), dtype=np.float32)
    n = rows + QUERIES
    made = np.empty((n, WIDTH), np.float32)
    for start in range(0, n, 50_000):
        count = min(50_000, n - start)
        noise = rng.standard_normal((count, WIDTH), dtype=np.float32)
        made[start : start + count] = (centres[rng.integers(0, CLUSTERS, count)] + 0.7 * noise) @ mixing
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made[:rows], made[rows:]


def text(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and queries: real embeddings, each moved by 0.7 of the difference between two real neighbors."""
    import faiss

    folder = Path(os.environ["FIRSTK_DATA"])
    files = [np.load(path) for path in sorted(folder.glob("*/*_minilm.npz"))]
    parts = [file[name] for file in files for name in file.files if file[name].ndim == 2]
    pool = np.unique(np.concatenate([part for part in parts if part.shape[1] == WIDTH]).astype(np.float32), axis=0)
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)
    near = faiss.knn(pool, pool, 6, faiss.METRIC_INNER_PRODUCT)[1][:, 1:]
    rng, made = np.random.default_rng(0), np.empty((rows + QUERIES, WIDTH), np.float32)
    for start in range(0, len(made), 50_000):
        part = made[start : start + 50_000]
        a, b = rng.integers(0, len(pool), (2, len(part)))
        part[:] = pool[a] + 0.7 * (pool[b] - pool[near[b, rng.integers(0, near.shape[1], len(part))]])
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return made[:rows], made[rows:]


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    """Share of the true neighbors that were found."""
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)]))


def ours(X: np.ndarray) -> Built:
    """Build the funnel from vectors: the encoder, the codes and the schedule."""
    start = time.process_time()
    encoder = PrefixEncoder(objective="reconstruction", verbose=False).fit(X)
    index = FunnelIndex.fit(encoder.transform(X), recall=RECALL, n_neighbors=NEIGHBORS, verbose=False)
    index.search(encoder.transform(X[:64]), threads=1)  # lays the rows out
    seconds = time.process_time() - start
    search = lambda Q: index.search(encoder.transform(Q), threads=1).ids  # noqa: E731
    return Built("firstk FunnelIndex", seconds, index.nbytes / MIB, search)


def theirs(X: np.ndarray, Q: np.ndarray, truth: np.ndarray, names: Iterable[str]) -> Iterable[Built]:
    """Build faiss's indices, and find the least effort with which each reaches the recall on `Q`."""
    import faiss

    cells = int(4 * np.sqrt(len(X)))
    factory = {
        "faiss HNSW32": ("HNSW32,Flat", "efSearch"),
        "faiss IVF-Flat": (f"IVF{cells},Flat", "nprobe"),
        "faiss IVF-PQ, refined": (f"IVF{cells},PQ{X.shape[1] // 8},RFlat", "nprobe"),
    }
    for name in names:
        description, effort = factory[name]
        start = time.process_time()
        index = faiss.index_factory(X.shape[1], description)
        index.train(X[:: max(1, len(X) // (64 * cells))])
        index.add(X)
        seconds = time.process_time() - start
        space = faiss.ParameterSpace()
        for value in SETTINGS:
            space.set_index_parameter(index, effort, value)
            if "RFlat" in description:
                index.k_factor = 10
            if recall(index.search(Q, NEIGHBORS)[1], truth) >= RECALL:
                break
        else:
            print(f"{name} does not reach recall {RECALL:g} with {effort}={SETTINGS[-1]}")
            continue
        search = lambda Q, index=index: index.search(Q, NEIGHBORS)[1]  # noqa: E731
        yield Built(f"{name}, {effort}={value}", seconds, written_size(index) / MIB, search)


def written_size(index: Any) -> int:
    """Count the bytes of an index as faiss writes it, without keeping them."""
    import faiss

    count = 0

    def take(part: bytes) -> None:
        nonlocal count
        count += len(part)

    faiss.write_index(index, faiss.PyCallbackIOWriter(take))
    return count


def measured(X: np.ndarray, Q: np.ndarray, what: str, names: Iterable[str]) -> list[Measured]:
    """Print every index, one in memory at a time, and return its rows of the record."""
    flat: Any = flat_index(X)
    truth = flat.search(Q, NEIGHBORS)[1]
    half = len(Q) // 2

    def built() -> Iterable[Built]:
        yield Built("faiss Flat", 0.0, X.nbytes / MIB, lambda Q: flat.search(Q, NEIGHBORS)[1])
        yield ours(X)
        yield from theirs(X, Q[:half], truth[:half], names)

    rows = []
    print(f"\n{what}: recall@{NEIGHBORS}, build seconds, MiB, queries a second on one thread")
    for one in built():
        best, found = float("inf"), np.empty(0)
        for _ in range(3):
            start = time.process_time()
            found = one.search(Q[half:])
            best = min(best, time.process_time() - start)
        kept = recall(found, truth[half:])
        rate = (len(Q) - half) / best
        print(f"  {one.name:<38} {kept:.4f} {one.seconds:9.1f} {one.mebibytes:9.0f} {rate:10.0f}", flush=True)
        facts = {"recall": kept, "build_seconds": one.seconds, "MiB": one.mebibytes, "queries_per_second": rate}
        rows.append(Measured(f"{what}: {one.name}", facts=facts))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the sets that are made")
    parser.add_argument("--only", nargs="*", default=["faiss HNSW32", "faiss IVF-Flat", "faiss IVF-PQ, refined"])
    parser.add_argument("--record", action="store_true", help="add the rows to results/waiting.json")
    given = parser.parse_args()
    made = {"synthetic": synthetic, "text": text}
    kind = "synthetic" if given.synthetic else "text" if given.text else "MNIST and Fashion-MNIST"
    data, queries = made[kind](given.rows) if kind in made else images()
    title = f"{len(data):,} x {data.shape[1]} {kind}"
    with threadpool_limits(1):
        results = measured(data, queries, title, given.only)
    if given.record:
        write("search", results, "processor")
