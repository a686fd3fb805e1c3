"""Modules of firstk that a user's walk enters: how far a reader has to follow one call.

A module counts when a function of its own is called, in any thread, while the walk runs; what importing it runs does
not. Run ``python tests/architecture/modules_entered.py [walk ...]``; each walk has a process of its own, because a
cache that an earlier walk filled would hide what fills it.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import numpy as np

ROOT = Path(__file__).parents[2]
PACKAGES = ("firstk", "firstk_papers")


def _importing(frame: FrameType | None) -> bool:
    """Tell whether a frame runs because a module is being imported."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def entered() -> Iterator[set[str]]:
    """Collect the modules in which a function is called while the block runs."""
    found: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event != "call" or module in found or module.split(".")[0] not in PACKAGES:
            return
        # Annotations that typer evaluates are code of the module, too, but no function of it.
        if frame.f_code.co_name != "<module>" and not _importing(frame):
            found.add(module)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(400, 16)) * np.arange(16, 0, -1)


def _table() -> str:
    import pyarrow as pa
    from pyarrow import parquet

    X = _rows()
    columns = {"vector": list(X), "label": ["above" if value > 0 else "below" for value in X[:, 3]]}
    parquet.write_table(pa.table(columns), "file.parquet")
    return "file.parquet"


def _command(*words: str) -> None:
    from firstk.cli import main

    sys.argv = ["firstk", *words]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()


def closed_form() -> Callable[[], object]:
    """PrefixEncoder(8).fit(X)."""
    from firstk import PrefixEncoder

    X = _rows()
    return lambda: PrefixEncoder(8).fit(X)


def gradient() -> Callable[[], object]:
    """PrefixEncoder(8, solver="gradient").fit(X)."""
    from firstk import Gradient, PrefixEncoder

    X = _rows()
    return lambda: PrefixEncoder(8, solver=Gradient(epochs=2), random_state=0).fit(X)


def fit() -> Callable[[], object]:
    """Command fit of a parquet file with labels."""
    table = _table()
    return lambda: _command("fit", table, "--objective", "fisher", "--label", "label", "--out", "model")


def _saved_model() -> None:
    _command("fit", _table(), "--out", "model")


def curve() -> Callable[[], object]:
    """Command curve of a saved model on a parquet file."""
    _saved_model()
    return lambda: _command("curve", "model", "file.parquet")


def transform() -> Callable[[], object]:
    """Command transform of a parquet file with a saved model."""
    _saved_model()
    return lambda: _command("transform", "model", "file.parquet", "--out", "codes.parquet", "-k", "4")


def code_index() -> Callable[[], object]:
    """CodeIndex.fit(X, encoder=encoder, bytes=4).search(X, 3)."""
    from firstk import CodeIndex, PrefixEncoder

    X = _rows()
    encoder = PrefixEncoder(8).fit(X).encoder_
    encoder.quantizer(None)
    return lambda: CodeIndex.fit(X, encoder=encoder, bytes=4).search(X, 3)


def move() -> Callable[[], object]:
    """Command move of a parquet file to another, with a saved model."""
    _saved_model()
    return lambda: _command("move", "file.parquet", "codes.parquet", "--model", "model", "-k", "4")


def align() -> Callable[[], object]:
    """Command align of two parquet files with labels."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    texts, labels = rng.normal(size=(400, 16)), [str(i % 7) for i in range(400)]
    for name, width in (("old", 16), ("new", 20)):
        vectors = list(texts @ rng.normal(size=(16, width)))
        parquet.write_table(pa.table({"id": np.arange(400), "vector": vectors, "label": labels}), f"{name}.parquet")
    return lambda: _command("align", "old.parquet", "new.parquet", "--label", "label", "--out", "upgrade")


def reproduce() -> Callable[[], object]:
    """Command reproduce of one small experiment."""
    return lambda: _command("reproduce", "bao2020/theorem1", "--out", "results")


WALKS = {
    walk.__name__: walk for walk in (closed_form, gradient, fit, curve, transform, code_index, move, align, reproduce)
}


def modules(walk: str) -> list[str]:
    """Return the modules that a walk enters, found in a process of its own."""
    search = os.environ | {"PYTHONPATH": os.environ.get("PYTHONPATH") or str(ROOT / "src")}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(Path(__file__).resolve()), "--here", walk]
        done = subprocess.run(command, cwd=folder, env=search, capture_output=True, text=True, check=True)
    return done.stdout.split()


def _main(words: list[str]) -> None:
    if words[:1] == ["--here"]:
        walk = WALKS[words[1]]()
        with entered() as found:
            walk()
        lines = sorted(found)
    else:
        lines = []
        for name in words or WALKS:
            inside = modules(name)
            lines += [f"{name}: {len(inside)} modules", *(f"    {module}" for module in inside)]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
