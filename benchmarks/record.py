"""The record of what users wait for, results/waiting.json, and docs/benchmarks.md, whose table is made from it.

    python -m benchmarks.record     write the table of docs/benchmarks.md again

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
# Sections in the order of the page.
SECTIONS = ("fits", "closed forms", "curves", "planning", "search", "files", "training", "losses", "start")
CLOCKS = {"clock": "", "processor": " (processor time, one thread)"}


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


def table(record: dict[str, Any]) -> str:
    """Return what was promised, and what was measured, as Markdown; other rows are in the record alone."""
    lines = ["| what | measured | promised |", "|---|---|---|"]
    for section in (record[name] for name in SECTIONS if name in record):
        for row in section["rows"]:
            if "goal" in row:
                clock = CLOCKS[row.get("clock", section["clock"])]
                promised = row["goal"] + ("" if row.get("met", True) else " (**not met**)")
                lines.append(f"| {row['name']} | {_measured(row)}{clock} | {promised} |")
    return "\n".join(lines) + "\n"


def _measured(row: dict[str, Any]) -> str:
    """Return the numbers of a row in words, the one beside a peer first."""
    said = [f"{row['ratio']:.3g} {row.get('unit', '')} {row.get('peer', '')}".strip()] if "ratio" in row else []
    said += [f"{row['seconds']:.3g} s"] if "seconds" in row and not said else []
    said += [f"{row['peak']:.0f} MiB"] if "peak" in row else []
    said += [f"{value:.3g} {name.replace('_', ' ')}" for name, value in row.get("facts", {}).items()]
    return "; ".join(said)


def page(text: str, record: dict[str, Any]) -> str:
    """Return the page with its table made anew, between its two marks."""
    begin, end = "<!-- tables -->", "<!-- end of tables -->"
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{table(record)}\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), json.loads(RECORD.read_text())))
