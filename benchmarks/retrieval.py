"""Funnel search over 120,000 images against faiss's flat index: MNIST and Fashion-MNIST, 784 pixels, one thread.

The index holds principal coordinates, which keep the distances between images. The schedule is chosen on rows of the
store; test images, which it has never seen, are the queries. Truth is what faiss finds among the pixels.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.harness import Claim, best_times, duel
from firstk import FunnelIndex, PrefixEncoder
from firstk_papers.datasets import MissingDataError

QUERIES, NEIGHBORS, RECALL, SHARE = 2000, 10, 0.99, 0.1
FAISS = "faiss IndexFlatL2"
SPEED = Claim(f"{QUERIES} queries, {NEIGHBORS} neighbors, codes ready, one thread", "funnel", (FAISS,), 1.0)
ENCODED = Claim("The same from pixels, so that encoding counts", "encoding and funnel", (FAISS,), 1.0)
EXACT = Claim("The same, provably exact", "funnel, exact=True", (FAISS,), 0.9)
MIB = 2**20


def images() -> tuple[np.ndarray, np.ndarray]:
    """120,000 training images of both sets, and some test images of both as queries."""
    from firstk_papers.datasets import load_fashion_mnist, load_mnist

    try:
        sets = load_mnist(), load_fashion_mnist()
    except MissingDataError as missing:
        raise SystemExit(f"benchmarks.retrieval needs MNIST and Fashion-MNIST. {missing}") from None
    tests = np.concatenate([part.X_test for part in sets])
    chosen = np.random.default_rng(0).choice(len(tests), QUERIES, replace=False)
    return np.concatenate([part.X_train for part in sets]), np.ascontiguousarray(tests[chosen])


def flat_index(X: np.ndarray) -> Any:
    """Return faiss's exact index, on one thread."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    return index


def quality(title: str, result: Any, truth: np.ndarray, recall: float, share: float) -> bool:
    """Print recall and work of a search, and tell whether both are as promised."""
    found = float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, result.ids, strict=True)]))
    met = found >= recall and result.fraction <= share
    print(f"{title}: recall@{NEIGHBORS} {found:.4f} (promised {recall:g}), {result.fraction:.2%} of the "
          f"multiply-adds of brute force (promised {share:.0%}): {'met' if met else 'NOT MET'}")  # fmt: skip
    return met


def build(X: np.ndarray) -> tuple[PrefixEncoder, FunnelIndex]:
    """Fit the encoder and the index, and print what that takes."""
    clock = [time.perf_counter()]

    def lap() -> float:
        clock.append(time.perf_counter())
        return clock[-1] - clock[-2]

    encoder = PrefixEncoder(objective="reconstruction").fit(X)
    fitting = lap()
    Z = encoder.transform(X)
    encoding = lap()
    index = FunnelIndex.fit(Z, recall=RECALL, n_neighbors=NEIGHBORS)
    print(f"\n{index}\nfitting the encoder {fitting:.1f} s, encoding the rows {encoding:.1f} s, "
          f"choosing the schedule {lap():.1f} s")  # fmt: skip
    index.search(Z[:64], threads=1)  # lays the rows out
    print(f"memory: {index.nbytes / MIB:.0f} MiB, of which codes {Z.nbytes / MIB:.0f}; faiss {X.nbytes / MIB:.0f}")
    return encoder, index


def run() -> bool:
    """Print recall, work, speed, memory and build time; True when every promise is met."""
    X, Q = images()
    flat = flat_index(X)
    truth = flat.search(Q, NEIGHBORS)[1]
    encoder, index = build(X)
    codes = encoder.transform(Q)
    met = [
        quality("funnel", index.search(codes), truth, RECALL, SHARE),
        # Pixels and codes are rounded differently, which may swap neighbors that are equally far.
        quality("exact", index.search(codes, exact=True), truth, 0.999, 1.0),
    ]
    runs: dict[str, Callable[[], object]] = {
        SPEED.ours: lambda: index.search(codes, threads=1),
        ENCODED.ours: lambda: index.search(encoder.transform(Q), threads=1),
        EXACT.ours: lambda: index.search(codes, exact=True, threads=1),
        "two threads": lambda: index.search(codes, threads=2),
        FAISS: lambda: flat.search(Q, NEIGHBORS),
    }
    met += [duel(claim, runs, rounds=5) for claim in (SPEED, ENCODED, EXACT)]
    seconds = best_times({name: runs[name] for name in (SPEED.ours, "two threads")}, 5)
    print(f"\none thread {seconds[SPEED.ours] * 1e3:.0f} ms, two threads {seconds['two threads'] * 1e3:.0f} ms")
    return all(met)


if __name__ == "__main__":
    raise SystemExit(0 if run() else 1)
