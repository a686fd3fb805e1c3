"""The record of what users wait for, results/waiting.json, and docs/benchmarks.md, whose tables are made from it.

    python -m benchmarks.record     write the tables of docs/benchmarks.md again

Each benchmark writes a section: ``python -m benchmarks.waiting --record``, ``python -m benchmarks.funnel --record``,
``python -m benchmarks.large_files --record``. What was not measured has no row.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RECORD, PAGE = ROOT / "results" / "waiting.json", ROOT / "docs" / "benchmarks.md"
# Sections of the page in their order, with their titles.
SECTIONS = {
    "fits": "Fits",
    "closed forms": "Closed forms against scikit-learn",
    "curves": "Curves",
    "planning": "Planning a funnel",
    "search": "Search at recall@10 of 0.99, one thread",
    "files": "Files",
    "training": "Training",
    "losses": "Losses",
    "start": "Start",
}
CLOCKS = {"clock": "by the clock", "processor": "processor time, one thread"}


@dataclass(frozen=True)
class Measured:
    """A row: something a user calls, what it took beside a peer in the same run, and what was promised.

    Attributes
    ----------
    name : str
    seconds : float, optional
    peer : str
        What ran in turns with it.
    ratio : float, optional
        Of the two; `unit` says of what.
    unit : str
    goal : str
        What was promised, in words; empty where nothing was.
    met : bool, optional
    peak : float, optional
        MiB beyond the data, of a process of its own.
    facts : dict
        Other numbers, by name: columns of their own.
    """

    name: str
    seconds: float | None = None
    peer: str = ""
    ratio: float | None = None
    unit: str = ""
    goal: str = ""
    met: bool | None = None
    peak: float | None = None
    facts: dict[str, float] = field(default_factory=dict)


def write(section: str, rows: Sequence[Measured], clock: str, path: Path = RECORD) -> None:
    """Add rows to a section of the record; those of the same name are replaced."""
    if section not in SECTIONS:
        raise KeyError(f"unknown section {section!r}: one of {', '.join(SECTIONS)}")
    record: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    before = record.get(section, {})
    known = {row["name"]: {"clock": before["clock"]} | row for row in before.get("rows", [])}
    known |= {row.name: {"clock": clock} | _plain(row) for row in rows}
    machine = f"{platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}"
    record[section] = {"clock": clock, "machine": machine, "rows": list(known.values())}
    path.write_text(json.dumps(record, indent=1) + "\n")


def _plain(row: Measured) -> dict[str, Any]:
    """Return a row as JSON values of four digits, without what it does not have."""
    values = {name: value for name, value in asdict(row).items() if value not in (None, "", {})}
    return {name: _rounded(value) for name, value in values.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def tables(record: dict[str, Any]) -> str:
    """Return all tables of a record as Markdown."""
    parts = []
    for section, title in SECTIONS.items():
        if section in record:
            parts.append(f"## {title}\n\n{_table(record[section])}\n")
    return "\n".join(parts)


def _table(section: dict[str, Any]) -> str:
    rows = section["rows"]
    facts = list(dict.fromkeys(name for row in rows for name in row.get("facts", {})))
    named = {"seconds": "seconds", "ratio": "against its peer", "goal": "promised", "peak": "peak MiB"}
    used = [name for name in named if any(name in row for row in rows)]
    head = ["what", *(named[name] for name in used), *(name.replace("_", " ") for name in facts)]
    clocks = [CLOCKS[row.get("clock", section["clock"])] for row in rows]
    mixed = len(set(clocks)) > 1
    head += ["time"] if mixed else []
    title = "As the last column says" if mixed else clocks[0].capitalize()
    lines = [f"{title}; {section['machine']}.\n", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row, clock in zip(rows, clocks, strict=True):
        cells = [_cell(row, name) for name in used] + [_number(row.get("facts", {}).get(name)) for name in facts]
        cells += [clock] if mixed else []
        lines.append("| " + " | ".join([row["name"], *cells]) + " |")
    return "\n".join(lines)


def _cell(row: dict[str, Any], name: str) -> str:
    if name == "ratio" and "ratio" in row:
        return f"{_number(row['ratio'])} {row.get('unit', '')} {row.get('peer', '')}".strip()
    if name == "goal" and "goal" in row:
        return row["goal"] + ("" if row.get("met", True) else " (not met)")
    value = row.get(name)
    return _number(value) if isinstance(value, int | float) else (value or "")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def page(text: str, record: dict[str, Any]) -> str:
    """Return the page with its tables made anew, between its two marks."""
    begin, end = "<!-- tables -->", "<!-- end of tables -->"
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{tables(record)}\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), json.loads(RECORD.read_text())))
