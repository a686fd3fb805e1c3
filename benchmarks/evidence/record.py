"""The record: scores of every method, and ours against each peer at every length, by model, task and part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence.data import Task
from benchmarks.evidence.methods.contract import Method
from benchmarks.evidence.runs import Run
from benchmarks.evidence.statistics import difference, draws, holm, verdict
from firstk._base.atomic_file import atomic_file

RECORD = Path(__file__).resolve().parents[2] / "results" / "evidence.json"
DIGITS = 4


def table_of(
    task: Task, runs: Mapping[Method, Run], ks: tuple[int, ...], left_out: list[str], command: str
) -> dict[str, Any]:
    """Return what is recorded of a task: scores, and the comparison of one of ours, chosen on validation data."""
    ours = [method for method in runs if method.ours]
    best = max(ours, key=lambda method: float(runs[method].validation.mean())) if ours else None
    parts = next(iter(runs.values())).test
    raw = task.score(lambda X, k, side: X, task.test.opened(), (task.everything.X.shape[1],))
    return {
        "model": task.model,
        "task": task.name,
        "measure": task.measure,
        "ks": list(ks),
        "command": command,
        "chosen": None if best is None else best.name,
        "rows": {part: int(parts[part][0].n) for part in parts},
        "raw": {part: round(float(raw[part].score()[0]), DIGITS) for part in parts},
        "methods": {method.name: _scores(method, one, ks) for method, one in runs.items()},
        "comparisons": {} if best is None else {part: _compared(best, runs, ks, part) for part in parts},
        "not run": left_out,
    }


def _scores(method: Method, one: Run, ks: tuple[int, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ours": method.ours,
        "seeds": method.draws,
        "settings": list(one.chosen),
        "validation": _rounded(one.validation),
        "test": {part: _rounded(one.score(part)) for part in one.test},
        "seconds": round(one.seconds, 2),
    }
    if method.draws > 1:
        found["range"] = {part: [_rounded(end) for end in one.range(part)] for part in one.test}
    if method.bytes_of is not None:
        found["bytes"] = [method.bytes_of(k) for k in ks]
    return found


def _compared(best: Method, runs: Mapping[Method, Run], ks: tuple[int, ...], part: str) -> dict[str, Any]:
    """Return ours against each peer, with p adjusted for all peers and lengths together."""
    peers = [method for method in runs if not method.ours and method.bytes_of is None]
    own, drawn = runs[best].score(part), draws(runs[best].test[part])
    found = {}
    for peer in peers:
        scores, theirs = runs[peer].score(part), draws(runs[peer].test[part])
        found[peer.name] = [difference(own[j], scores[j], drawn[:, j], theirs[:, j]) for j in range(len(ks))]
    adjusted = iter(holm([one.p for each in found.values() for one in each]))
    return {
        name: [
            {"difference": round(one.value, DIGITS), "low": round(one.low, DIGITS), "high": round(one.high, DIGITS),
             "p": float(f"{(p := float(next(adjusted))):.3g}"), "verdict": verdict(one.value, p)}
            for one in each
        ]
        for name, each in found.items()
    }  # fmt: skip


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), DIGITS) for value in values]


def write(path: Path, tables: Mapping[str, Any]) -> None:
    """Add tables to the record, by name."""
    held = json.loads(path.read_text("utf-8")) if path.exists() else {}
    held.update(tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, "The record") as draft:
        draft.write_text(json.dumps(dict(sorted(held.items())), indent=1) + "\n", "utf-8")
