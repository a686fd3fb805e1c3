"""Moves that are killed (SIGKILL) at random moments and resumed: no row is missing, twice or wrong.

``python -m benchmarks.moves`` moves 3,000 x 24 rows of a parquet file to each store, to another file and to a folder,
and from each store to a file. Each move is killed 20 times and then let through (``--kills N``, ``--only NAME``); the
last run compares counts and checksums, and every row of the target is compared with the file once more.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.stores import addresses, data, payload
from firstk import PrefixEncoder
from firstk.data.files import open_vectors, write_vectors
from firstk.search.moving import Recode, move, targets
from firstk.search.stores import STORES, connect, is_address

ROWS, WIDTH, K = 3000, 24, 12
# Rows of a part of a file here, so that a kill meets some that are finished.
_PART_ROWS = 300


def prepare(folder: Path, rows: int) -> None:
    """Write rows with payloads, and an encoder."""
    X, _ = data(rows, WIDTH)
    held = [payload(i) for i in range(rows)]
    columns: dict[str, Any] = {"id": np.arange(rows)} | {
        name: np.array([one[name] for one in held]) for name in held[0]
    }
    write_vectors(folder / "rows.parquet", X, columns)
    PrefixEncoder(16, objective="similarity").fit(X).save(folder / "model")


def worker(source: str, target: str, folder: str, batch: int) -> None:
    """Move, saying when each batch and the end of the file is about to be written."""
    encoder = PrefixEncoder.load(Path(folder) / "model")
    targets._PART_NUMBERS = _PART_ROWS * WIDTH
    for kind in (targets.StoreTarget, targets.FileTarget):
        for name in ("write", "finish"):
            setattr(kind, name, _telling(getattr(kind, name)))
    recode = Recode(None if is_address(source) else encoder, None if is_address(source) else K)
    moved = move(source, target, recode, batch=batch, resume=True)
    print("done", moved.rows, flush=True)


def _telling(method: Any) -> Any:
    def told(self: Any, *given: Any) -> Any:
        print("batch", flush=True)
        return method(self, *given)

    return told


def killed_moves(source: str, target: str, folder: Path, kills: int, *, batch: int = 50, seed: int = 0) -> int:
    """Kill moves at random moments, each farther than those before, and let one through.

    So every kill meets rows that are new to the target, and the last one to a file comes while it is put together.
    Returns the number of kills that met a move at work: one that is complete before its kill does not count.
    """
    command = [sys.executable, "-m", "benchmarks.moves", "--worker", source, target, str(folder), str(batch)]
    rng = np.random.default_rng(seed)
    batches = open_vectors(folder / "rows.parquet").rows // batch
    met = 0
    for i in range(kills):
        first, last = i * batches // kills + 1, (i + 1) * batches // kills
        put_together = not is_address(target) and i == kills - 1
        reached = batches + 1 if put_together else rng.integers(first, max(first, last) + 1)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(reached):
            said = process.stdout.readline().strip()
            if said != "batch":
                raise RuntimeError(f"A move after a kill failed: {said} {process.communicate()[1].strip()[-500:]}")
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.communicate()
        met += process.returncode == -signal.SIGKILL
        if not is_address(target) and Path(target).exists():  # it was quicker than the kill
            return met
    through = subprocess.run(command, capture_output=True, text=True, check=False)
    if "done" not in through.stdout:
        raise RuntimeError(f"The move after {kills} kills failed: {through.stderr.strip()[-500:]}")
    return met


def wrong_rows(target: str, folder: Path) -> list[str]:
    """Return what is missing, twice or wrong in a target."""
    encoder = PrefixEncoder.load(folder / "model")
    X = open_vectors(folder / "rows.parquet").read(()).vectors
    codes = encoder.encode_document(X, k=K)
    codes /= np.linalg.norm(codes, axis=1, keepdims=True)
    seen: dict[int, int] = {}
    wrong = []
    for key, code, held in _rows(target):
        seen[key] = seen.get(key, 0) + 1
        if np.abs(code / np.linalg.norm(code) - codes[key]).max() > 1e-5 or held != payload(key):
            wrong.append(f"row {key} differs")
    wrong += [f"row {key} is there {n} times" for key, n in seen.items() if n > 1]
    return wrong + [f"row {i} is missing" for i in range(len(X)) if i not in seen]


def _rows(target: str) -> Any:
    if is_address(target):
        with contextlib.closing(connect(target)) as engine:
            for part in engine.read(500):
                yield from zip(*part, strict=True)
        return
    table = open_vectors(target).read()
    names = [name for name in table.columns if name != "id"]
    for i, key in enumerate(table.columns["id"].tolist()):
        yield key, table.vectors[i], {name: table.columns[name][i].item() for name in names}


def main() -> int:
    """Run what the command line asks for."""
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ways", nargs="*", default=["to", "from"], choices=["to", "from"])
    every = ["file", "folder", *sorted(STORES)]
    parser.add_argument("--only", nargs="*", default=every, choices=every)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--kills", type=int, default=20)
    asked = parser.parse_args()
    met = True
    for way, name in [
        ("to", "file"),
        ("to", "folder"),
        *((way, name) for name in sorted(STORES) for way in asked.ways),
    ]:
        if name not in asked.only:
            continue
        with tempfile.TemporaryDirectory() as temporary, addresses(Path(temporary)) as places:
            folder = Path(temporary)
            # Files are written so fast that a move of few rows is over before the kill.
            prepare(folder, asked.rows * (8 if name in ("file", "folder") else 1))
            source = str(folder / "rows.parquet")
            target = places.get(name, str(folder / ("out.parquet" if name == "file" else "out")))
            if way == "from":
                move(source, target, Recode(PrefixEncoder.load(folder / "model"), K))
                source, target = target, str(folder / "out.parquet")
            kills = killed_moves(source, target, folder, asked.kills)
            wrong = wrong_rows(target, folder)
        met &= not wrong
        print(f"{way} {name:24} {kills} kills; {'; '.join(wrong[:3]) or 'every row once, and right'}"
              f"{'' if not wrong else ' NOT MET'}", flush=True)  # fmt: skip
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
