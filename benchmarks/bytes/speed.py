"""Training, encoding and search on 1,000,000 x 768 synthetic rows with the spectrum of text, one thread.

Contenders take turns and the best round counts; what is promised are ratios (see ``benchmarks.harness``). Rows are in a
file that is mapped, so that memory is that of the contenders.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.lib.format import open_memmap

from benchmarks.bytes import tables
from benchmarks.bytes.cases import NEIGHBORS, nearest
from benchmarks.bytes.claims import Checked
from benchmarks.harness import best_times, peak, reset_peak
from firstk import CodeIndex, PrefixEncoder

WIDTH, SIZE, QUERIES = 768, 32, 50
# Bytes of our indexes: peers have 32, whose recall fewer of ours may reach.
SIZES = (16, 24, SIZE)
# Rows that encoders are timed on, and that quantizers of faiss are trained on.
ENCODED, TRAINED = 50_000, 16_384
ROUNDS = 3
# Rows for which the time of training is promised.
PROMISED = 1_000_000


def text_like(rows: int, seed: int = 0, path: Path | None = None) -> np.ndarray:
    """Return unit vectors whose variances fall like those of sentence embeddings (i^-0.9), around a common mean.

    With `path` they are written into that file, and mapped.
    """
    space, rng = np.random.default_rng(100), np.random.default_rng(seed)
    scales = np.arange(1, WIDTH + 1) ** -0.45
    turn = np.linalg.qr(space.normal(size=(WIDTH, WIDTH)))[0]
    mixing = (scales[:, None] * turn).astype(np.float32)
    mean = (0.5 * space.normal(size=WIDTH) / np.sqrt(WIDTH)).astype(np.float32)
    X = np.empty((rows, WIDTH), np.float32) if path is None else open_memmap(path, "w+", np.float32, (rows, WIDTH))
    for start in range(0, rows, 50_000):
        part = rng.standard_normal((min(50_000, rows - start), WIDTH), dtype=np.float32) @ mixing + mean
        X[start : start + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)
    if path is None:
        return X
    X.flush()
    return np.load(path, mmap_mode="r")


@dataclass(frozen=True, eq=False)
class Index:
    """A filled index: how it searches, and the seconds and bytes it took."""

    bytes: int
    search: Callable[[np.ndarray], np.ndarray]
    train: float
    encode: float


def measured(rows: int, record: Path | None, clock: Callable[[], float] = time.perf_counter) -> bool:
    """Measure everything, print it, and return whether no promise was missed."""
    with tempfile.TemporaryDirectory() as folder:
        return _measured(text_like(rows, path=Path(folder) / "rows.npy"), record, clock)


def _measured(X: np.ndarray, record: Path | None, clock: Callable[[], float]) -> bool:
    faiss.omp_set_num_threads(1)
    rows, Q = len(X), text_like(QUERIES, seed=1)
    _say(f"{rows:,} x {WIDTH} rows drawn")
    exact = nearest(Q, X)
    encoder, claims, timings = _training(X, clock)
    found = {**_ours(X, encoder, timings, clock), **_peers(X, clock)}
    recalls = {name: _recall(index.search(Q), exact) for name, index in found.items()}
    shown = [name for name in found if _compared(name, recalls, found)]
    seconds = best_times({name: lambda i=found[name]: [i.search(q[None]) for q in Q] for name in shown}, ROUNDS, clock)
    milliseconds = {name: 1e3 * seconds[name] / len(Q) for name in shown}
    heads = ("bytes", "recall@10", "ms a query", "train s", "add s")
    print("\n" + f"{'search, one query at a time':<40}" + "".join(f"{head:>11}" for head in heads))
    for name in shown:
        index = found[name]
        print(
            f"{name:<40}{index.bytes:>11}{recalls[name]:>11.3f}{milliseconds[name]:>11.2f}{index.train:>11.1f}"
            f"{index.encode:>11.1f}"
        )
    claims += _search_claims(milliseconds)
    for claim in claims:
        print(f"{ {True: 'held', False: 'MISSED', None: 'not measured'}[claim.held] }: {claim.claim}: {claim.found}")
    if record:
        rows_of = [
            {"name": n, "bytes": found[n].bytes, "recall": round(recalls[n], 4), "ms": round(milliseconds[n], 3),
             "train_s": round(found[n].train, 1), "add_s": round(found[n].encode, 1)}
            for n in shown
        ]  # fmt: skip
        tables.write(
            record,
            {"speed": {"rows": rows, "columns": WIDTH, "search": rows_of, **timings},
             "claims": {claim.claim: claim.record() for claim in claims if claim.held is not None}},
        )  # fmt: skip
    return all(claim.held is not False for claim in claims)


def _training(X: np.ndarray, clock: Callable[[], float]) -> tuple[PrefixEncoder, list[Checked], dict[str, Any]]:
    """Time the fit with and without the quantizer, and encoding against `transform`."""
    start = clock()
    encoder = PrefixEncoder(objective="reconstruction").fit(X)
    fit = clock() - start
    quantizer = encoder.quantizer(bytes=SIZE, metric="cosine")
    whole = clock() - start
    _say(f"fit {fit:.1f} s, with the quantizer {whole:.1f} s")
    part = X[:ENCODED]
    seconds = best_times(
        {"transform": lambda: encoder.transform(part), "encode": lambda: quantizer.encode(part)}, ROUNDS, clock
    )
    speed = {name: len(part) / value for name, value in seconds.items()}
    print(f"fit {fit:.1f} s, with the quantizer {whole:.1f} s; rows a second: " + ", ".join(
        f"{name} {value:,.0f}" for name, value in speed.items()
    ))  # fmt: skip
    share = speed["encode"] / speed["transform"]
    claims = [
        # The quantizer takes seconds, however many rows there are.
        Checked(
            "training takes less than twice the closed-form fit",
            whole < 2 * fit if len(X) >= PROMISED else None,
            f"{whole / fit:.2f} times",
        ),
        Checked("encoding has at least half the speed of transform", share >= 0.5, f"{share:.2f} times"),
    ]
    timings = {"fit_s": round(fit, 1), "fit_and_quantizer_s": round(whole, 1)}
    timings["clock"] = "processor" if clock is time.process_time else "wall"
    return encoder, claims, timings | {f"{name}_rows_a_second": round(value) for name, value in speed.items()}


def _ours(
    X: np.ndarray, encoder: PrefixEncoder, timings: dict[str, Any], clock: Callable[[], float]
) -> dict[str, Index]:
    """Return flat indexes on embedded bytes: rows are encoded once, and the string is cut."""
    trained, found, longest = timings["fit_and_quantizer_s"], {}, None
    for size in reversed(SIZES):
        before, start = reset_peak(), clock()
        index = CodeIndex.fit(X, encoder=encoder, bytes=size) if longest is None else longest.cut(size)
        longest, made = longest or index, clock() - start
        before_search = peak()
        index.search(X[:1], NEIGHBORS, threads=1)
        _say(
            f"CodeIndex, {size} bytes: made in {made:.1f} s, {before_search - before:.0f} MiB at the peak, "
            f"{peak() - before_search:.0f} more to search, {size * len(X) / 2**20:.0f} MiB of codes"
        )
        found[f"firstk CodeIndex, {size} bytes"] = Index(
            size, lambda Q, i=index: np.asarray(i.search(Q, NEIGHBORS, threads=1).ids), trained, made
        )
    return found


def _peers(X: np.ndarray, clock: Callable[[], float]) -> dict[str, Index]:
    """Return flat indexes of faiss with 32 bytes per vector."""
    cut = 8 * (SIZE - 8)
    made = {
        "faiss PQ32": lambda: faiss.IndexPQ(WIDTH, SIZE, 8, faiss.METRIC_INNER_PRODUCT),
        "faiss PQ64x4 fast-scan": lambda: faiss.IndexPQFastScan(WIDTH, 2 * SIZE, 4, faiss.METRIC_INNER_PRODUCT),
        "faiss PCA192,RaBitQ": lambda: _behind_pca(cut, faiss.IndexRaBitQ(cut, faiss.METRIC_L2)),
        "faiss PCA192,RaBitQ fast-scan": lambda: _behind_pca(cut, faiss.IndexRaBitQFastScan(cut, faiss.METRIC_L2)),
    }
    found = {}
    for name, make in made.items():
        index, start = make(), clock()
        index.train(X[:TRAINED])
        trained = clock()
        for first in range(0, len(X), 100_000):
            index.add(X[first : first + 100_000])
        added = clock()
        _say(f"{name}: trained in {trained - start:.1f} s, filled in {added - trained:.1f} s")
        search = lambda Q, i=index: i.search(np.ascontiguousarray(Q), NEIGHBORS)[1]  # noqa: E731
        found[name] = Index(SIZE, search, trained - start, added - trained)
    return found


def _behind_pca(width: int, index: faiss.Index) -> faiss.Index:
    """Return the index behind principal axes and a random rotation; it holds references to both."""
    return faiss.IndexPreTransform(faiss.PCAMatrix(WIDTH, width, 0, True), index)


def _compared(name: str, recalls: dict[str, float], found: dict[str, Index]) -> bool:
    """Whether to time an index: ours only at 32 bytes, and at the fewest that reach each peer's recall."""
    if "CodeIndex" not in name or found[name].bytes == SIZE:
        return True
    ours = sorted((found[n].bytes, n) for n in found if "CodeIndex" in n)
    least = {
        next((n for _, n in ours if recalls[n] >= recalls[peer]), None) for peer in found if "CodeIndex" not in peer
    }
    return name in least


def _search_claims(milliseconds: dict[str, float]) -> list[Checked]:
    claim = "search at 32 bytes is at least as fast as faiss PQ32"
    ours = milliseconds.get(f"firstk CodeIndex, {SIZE} bytes")
    if ours is None:
        return [Checked(claim, None, "no CodeIndex")]
    ratio = milliseconds["faiss PQ32"] / ours
    return [Checked(claim, ratio >= 1, f"{ratio:.2f} times the speed")]


def _recall(found: np.ndarray, exact: np.ndarray) -> float:
    return float((found[:, :, None] == exact[:, None, :]).any(axis=2).mean())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
