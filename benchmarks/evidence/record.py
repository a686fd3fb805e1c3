"""The record: scores of every method, and ours against each peer at every length, by model, task and part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence.data import Task
from benchmarks.evidence.methods.contract import Method
from benchmarks.evidence.runs import Run, code
from benchmarks.evidence.statistics import difference, draws, holm, verdict
from firstk._base.atomic_file import atomic_file

RECORD = Path(__file__).resolve().parents[2] / "results" / "evidence.json"
DIGITS = 4
# Ours without labels or pairs: for vectors like those of the fit, and for others.
UNSUPERVISED = ("firstk similarity", "firstk similarity, projections")


def table_of(task: Task, runs: Mapping[Method, Run], left_out: list[str]) -> dict[str, Any]:
    """Return what is recorded of a task: scores, and the comparison of one of ours, chosen on validation data.

    All runs are of one unit, coordinates or bytes.
    """
    (unit,), (ks,) = {method.unit for method in runs}, {one.ks for one in runs.values()}
    ours = [method for method in runs if method.ours]
    best = max(ours, key=lambda method: float(runs[method].validation.mean())) if ours else None
    parts = next(iter(runs.values())).test
    scored = {part: {method: _Scored.of(one, part) for method, one in runs.items()} for part in parts}
    raw = task.score(lambda X, k, side: X, task.test.opened(), (task.everything.X.shape[1],))
    return {
        "model": task.model,
        "task": task.name,
        "measure": task.measure,
        "unit": unit,
        "ks": list(ks),
        "command": _command(task, runs),
        "code": code(unit)[:12],
        "chosen": None if best is None else best.name,
        "rows": {part: int(parts[part][0].n) for part in parts},
        "raw": {part: round(float(raw[part].score()[0]), DIGITS) for part in parts},
        "methods": {method.name: _scores(method, one) for method, one in runs.items()},
        "comparisons": {} if best is None else {part: _compared(best, found) for part, found in scored.items()},
        "without labels": {part: table for part, found in scored.items() if (table := _without_labels(found))},
        "not run": left_out,
    }


def _command(task: Task, runs: Mapping[Method, Run]) -> str:
    trained = " --trained" if any(method.trained for method in runs) else ""
    return f'python -m benchmarks.evidence --models {task.model} --tasks "{task.name}"{trained}'


def _scores(method: Method, one: Run) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ours": method.ours,
        "seeds": list(range(method.draws)),
        "settings": list(one.chosen),
        "validation": _rounded(one.validation),
        "test": {part: _rounded(one.score(part)) for part in one.test},
        "seconds": round(one.seconds, 2),
    }
    if method.draws > 1:
        found["range"] = {part: [_rounded(end) for end in one.range(part)] for part in one.test}
    return found


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores of a method on a part by length, (K,), and of resampled rows, (B, K)."""

    scores: np.ndarray
    drawn: np.ndarray

    @classmethod
    def of(cls, one: Run, part: str) -> _Scored:
        return cls(one.score(part), draws(one.test[part]))


def _without_labels(scored: Mapping[Method, _Scored]) -> dict[str, Any]:
    """Return similarity, fitted on vectors alone, against the peers that are, for each setting that was run."""
    rows = {method: one for method, one in scored.items() if method.needs == "rows"}
    return {method.name: _compared(method, rows) for method in scored if method.name in UNSUPERVISED}


def _compared(best: Method, scored: Mapping[Method, _Scored]) -> dict[str, Any]:
    """Return ours against each peer, with p adjusted for all peers and lengths together."""
    own = scored[best]
    found = {
        peer.name: [difference(*each) for each in zip(own.scores, one.scores, own.drawn.T, one.drawn.T, strict=True)]
        for peer, one in scored.items()
        if not peer.ours
    }
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


def parts_of(tables: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Return every table and part with its title."""
    for table in tables.values():
        for part in table["comparisons"]:
            yield table, part, table["task"] if part == "all" else f"{table['task']}, {part}"


def write(path: Path, tables: Mapping[str, Any]) -> None:
    """Add tables to the record, by name."""
    held = json.loads(path.read_text("utf-8")) if path.exists() else {}
    held.update(tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, "The record") as draft:
        draft.write_text(json.dumps(dict(sorted(held.items())), indent=1) + "\n", "utf-8")
