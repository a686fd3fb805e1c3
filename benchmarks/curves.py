"""A 1-NN curve over every prefix in one sweep, against one BLAS evaluation a prefix, at the size of Banking77."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys

import numpy as np

from benchmarks.harness import Claim, best_times, peak, peak_memory, report, reset_peak
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import MissingDataError
from firstk.metrics.curve import EvaluationData, prefix_curve

CLAIM = Claim(
    "1-NN accuracy at all 384 prefixes, 10,003 x 3,080 rows, one thread, as `curve` takes it",
    "one sweep",
    ("384 BLAS evaluations",),
    8.0,
)
WITH_INTERVALS = "one sweep, with bootstrap intervals"


def embeddings() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return reference rows and labels, query rows and labels."""
    from firstk.data import load_banking77

    try:
        data = load_banking77()
        return data.X_train, data.y_train, data.X_test, data.y_test
    except MissingDataError:
        rng = np.random.default_rng(0)
        rows, labels = rng.standard_normal((13_083, 384)).astype(np.float32), rng.integers(0, 77, 13_083)
        return rows[:10_003], labels[:10_003], rows[10_003:], labels[10_003:]


def one_by_one(Z_ref: np.ndarray, y_ref: np.ndarray, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Truncate, normalize, multiply and take the best reference, once for every k."""
    accuracy = np.empty(Z.shape[1])
    for k in range(1, Z.shape[1] + 1):
        A, B = Z[:, :k], Z_ref[:, :k]
        A = A / np.linalg.norm(A, axis=1, keepdims=True)
        B = B / np.linalg.norm(B, axis=1, keepdims=True)
        accuracy[k - 1] = np.mean(y_ref[(A @ B.T).argmax(axis=1)] == y)
    return accuracy


def curve(data: tuple[np.ndarray, ...], confidence: float | None = None) -> np.ndarray:
    """Take the curve as the estimator and the command do: encode, sweep, score of the raw vectors."""
    from firstk.evaluation.baselines import plain_truncation

    encoder: FittedEncoder = plain_truncation(data[0])
    evidence = EvaluationData(X=data[2], y=data[3], X_ref=data[0], y_ref=data[1])
    return np.array(prefix_curve(encoder, evidence, "1nn_accuracy", confidence=confidence).score)


def run() -> bool:
    """Print the ratio and the peak memory, and check that both say the same."""
    data = embeddings()
    found: dict[str, np.ndarray] = {}
    seconds = best_times(
        {
            CLAIM.ours: lambda: found.update(ours=curve(data)),
            WITH_INTERVALS: lambda: curve(data, 0.95),
            CLAIM.peers[0]: lambda: found.update(theirs=one_by_one(*data)),
        },
        rounds=2,
    )
    # k = 1 knows only signs, and rounding settles ties of float32 elsewhere.
    print(f"\nlargest difference from k = 2 on: {np.abs(found['ours'] - found['theirs'])[1:].max():.5f}")
    met = report(CLAIM, seconds)
    print(f"  {WITH_INTERVALS:<42} {seconds[WITH_INTERVALS] * 1e3:9.1f} ms")
    size = sum(part.nbytes for part in data) / 2**20
    for name in (CLAIM.ours, WITH_INTERVALS, CLAIM.peers[0]):
        print(
            f"  peak memory beyond the data ({size:.0f} MiB), {name}: {peak_memory('benchmarks.curves', name):.0f} MiB"
        )
    return met


def measure_peak(name: str) -> None:
    """Print the peak memory of one contender beyond its data, in MiB."""
    data = embeddings()
    few = tuple(part[:50] for part in data)
    work = {
        CLAIM.ours: lambda parts: curve(parts),
        WITH_INTERVALS: lambda parts: curve(parts, 0.95),
        CLAIM.peers[0]: lambda parts: one_by_one(*parts),
    }[name]
    work(few)  # what is imported on first use is no part of the work
    before = reset_peak()
    work(data)
    print(peak() - before)


if __name__ == "__main__":
    if "--peak-of" in sys.argv:
        measure_peak(sys.argv[sys.argv.index("--peak-of") + 1])
        raise SystemExit(0)
    raise SystemExit(0 if run() else 1)
