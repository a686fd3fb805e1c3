"""``firstk fit``, ``transform``, ``diagnose`` and ``report`` on 10,000,000 x 384 float16 rows, 7.7 GB of npy shards.

The yardstick of `fit` and `transform` is the same reads with a bare product of each chunk: with itself for `fit`, with
the axes for `transform`, which writes what comes of it as well. All are processes of their own; the best of some rounds
counts. Peak memory is that of the process, the interpreter and its packages included. A fit that is interrupted and
resumed must write the same bytes. The files are made in a temporary folder and removed afterwards.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.record import Measured, write
from firstk._base.concurrency import cores
from firstk.data.files import open_vectors
from firstk.moments.stream import chunk_rows

ROWS, WIDTH, K, SHARD = 10_000_000, 384, 64, 250_000
MEMORY, SHARE = 512.0, 0.9


def make(folder: Path, rows: int) -> None:
    """Write shards with a clear spectrum: one block of noise, its columns turned in sign and place for each shard."""
    rng = np.random.default_rng(0)
    (folder / "vectors").mkdir()
    block = rng.standard_normal((SHARD, WIDTH), dtype=np.float32) * np.geomspace(1, 0.02, WIDTH, dtype=np.float32)
    stored = block.astype(np.float16)
    for i in range(-(-rows // SHARD)):
        signs = rng.choice(np.array([-1, 1], np.float16), WIDTH)
        np.save(folder / "vectors" / f"part-{i:03d}.npy", np.roll(stored * signs, i, axis=0))


def bare(folder: Path, task: str) -> None:
    """Read the same chunks and multiply each."""
    axes = np.eye(WIDTH, K, dtype=np.float32)
    total = np.zeros((WIDTH, WIDTH), np.float32)
    with threadpool_limits(cores(), "blas"), open(folder / "codes.bin", "wb") as out:
        for batch in open_vectors(folder / "vectors").batches(chunk_rows(WIDTH)):
            X = batch.vectors.astype(np.float32)
            if task == "fit":
                total += X.T @ X
            else:
                out.write((X @ axes).tobytes())


def timed(command: list[str]) -> tuple[float, float, float]:
    """Run a process, and return its seconds by the clock and of the processor, and its peak memory in MiB."""
    start, peak = time.perf_counter(), 0.0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    status = Path(f"/proc/{process.pid}/status")
    while True:  # the maximum that wait4 gives is that of this process, where it was larger before exec
        pid, code, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        found = re.search(r"VmHWM:\s+(\d+)", status.read_text())
        peak = max(peak, int(found[1]) / 1024 if found else 0.0)
        time.sleep(0.02)
    if code:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, peak


def commands(folder: Path) -> dict[str, list[str]]:
    """Return every contender as a command."""
    firstk, vectors, model = [sys.executable, "-m", "firstk"], str(folder / "vectors"), str(folder / "model")
    itself = [sys.executable, "-m", "benchmarks.large_files", "--folder", str(folder), "--bare"]
    return {
        "bare fit": [*itself, "fit"],
        "firstk fit": [*firstk, "fit", vectors, "-o", model, "--components", str(K), "--force"],
        "bare transform": [*itself, "transform"],
        "firstk transform": [*firstk, "transform", model, vectors, "-o", str(folder / "codes"), "--force"],
        "firstk diagnose": [*firstk, "diagnose", vectors],
        "firstk report": [*firstk, "report", model, "-o", str(folder / "report.html"), "--force"],
    }


def resumed(folder: Path, seconds: float) -> bool:
    """Interrupt a fit in the middle and go on; tell whether the model has the same bytes as one that was not."""
    firstk = [sys.executable, "-m", "firstk"]
    command = [*firstk, "fit", str(folder / "vectors"), "-o", str(folder / "again"), "--components", str(K)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(0.4 * seconds)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    done = subprocess.run([*command, "--resume"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"  interrupted: {said.strip()}\n  --resume: {done.stderr.strip()}")
        return False
    weights = [path for path in (folder / "model").iterdir() if path.suffix in (".safetensors", ".npz", ".npy")]
    return bool(weights) and all(filecmp.cmp(path, folder / "again" / path.name, shallow=False) for path in weights)


def run(rows: int, rounds: int, processor: bool) -> list[Measured]:
    """Print every row, and return those of the record."""
    with tempfile.TemporaryDirectory(prefix="firstk-large-") as name:
        folder = Path(name)
        if shutil.disk_usage(folder).free < 2.5 * rows * WIDTH * 2:
            raise SystemExit(f"benchmarks.large_files needs {2.5 * rows * WIDTH * 2 / 1e9:.0f} GB of free disk")
        make(folder, rows)
        best: dict[str, tuple[float, float, float]] = {}
        for _ in range(rounds):
            for contender, command in commands(folder).items():
                shutil.rmtree(folder / "codes", ignore_errors=True)  # a folder of codes is not written over
                found = timed(command)
                best[contender] = tuple(map(min, found, best.get(contender, found)))  # type: ignore[assignment]
                print(f"  {contender:<18} {found[0]:7.1f} s {found[1]:7.1f} s CPU {found[2]:6.0f} MiB", flush=True)
        same = resumed(folder, best["firstk fit"][0])
    print(f"  interrupted and resumed to the same bytes: {same}")
    results, at = [], 1 if processor else 0
    for task in ("fit", "transform"):
        taken, peer, peak = best[f"firstk {task}"][at], best[f"bare {task}"][at], best[f"firstk {task}"][2]
        share = peer / taken
        met = share >= SHARE and peak < MEMORY
        goal = f"at least {SHARE:g}x, below {MEMORY:.0f} MiB"
        label = f"`firstk {task}`, {rows:,} x {WIDTH} float16"
        results.append(Measured(label, taken, "the same reads with a bare product", share, "x", goal, met, peak))
    for task in ("diagnose", "report"):
        taken, peak = best[f"firstk {task}"][at], best[f"firstk {task}"][2]
        results.append(Measured(f"`firstk {task}`, the same rows", taken, peak=peak))
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="compare processor times: the machine is busy")
    parser.add_argument("--record", action="store_true", help="add the rows to results/waiting.json")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--bare", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        bare(given.folder, given.bare)
        raise SystemExit(0)
    made = run(given.rows, given.rounds, given.processor)
    for row in made:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}x of {row.peer}"
        missed = "NOT MET" if row.met is False else ""
        print(f"{row.name:<45} {row.seconds:7.1f} s {ratio} {row.peak:.0f} MiB {missed}")
    if given.record:
        write("files", made, "processor" if given.processor else "clock")
    raise SystemExit(0 if all(row.met is not False for row in made) else 1)
