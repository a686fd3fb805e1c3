"""Tables of the results, as text and as the JSON record that the page and the figure are made from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bytes.cases import Case
from benchmarks.bytes.ours import HEADLINE, OURS
from benchmarks.bytes.results import Line, interval
from benchmarks.bytes.settings import BYTES
from firstk._base.atomic_file import atomic_file

# Parts of the record to which each run adds what it has measured.
ADDED = ("raw vectors", "claims")
RECORD = Path(__file__).resolve().parents[2] / "results" / "bytes.json"


def printed(title: str, lines: Mapping[str, Mapping[int, Line]]) -> str:
    """Return a table of one measure of one case; * is the best of its column, ours excluded from nothing."""
    best = {b: max((f[b].mean for f in lines.values() if b in f), default=0.0) for b in BYTES}
    rows = [f"{title:<36}" + "".join(f"{b:>8}" for b in BYTES)]
    for family, found in lines.items():
        cells = (
            f"{found[b].mean:.3f}{'*' if found[b].mean >= best[b] else ' '}" if b in found else "- " for b in BYTES
        )
        rows.append(f"{family:<36}" + "".join(f"{cell:>8}" for cell in cells))
    return "\n".join(rows)


def where_others_win(lines: Mapping[str, Mapping[int, Line]]) -> list[dict[str, Any]]:
    """Return the byte counts at which another family is ahead of ours, with the interval of the difference."""
    found = []
    for size in BYTES:
        ours = lines.get(HEADLINE, {}).get(size)
        others = [line[size] for family, line in lines.items() if not family.startswith(OURS) and size in line]
        for other in sorted(others, key=lambda line: -line.mean) if ours else ():
            if other.mean > ours.mean:
                found.append(
                    {
                        "bytes": size, "family": other.family, "ours": round(ours.mean, 4),
                        "theirs": round(other.mean, 4), "between": _difference(ours, other)["ours_minus"][1:],
                        "codebook_bytes": other.codebook_bytes,
                    }
                )  # fmt: skip
    return found


def record(case: Case, measure: str, lines: Mapping[str, Mapping[int, Line]]) -> dict[str, Any]:
    """Return one table as JSON values."""
    families = {}
    for family, found in lines.items():
        ours = lines.get(HEADLINE, {})
        families[family] = [
            {
                "bytes": size, "score": round(line.mean, 4), "chosen": list(line.chosen),
                "codebook_bytes": line.codebook_bytes,
                **_difference(ours.get(size), line), **({"earlier": True} if line.earlier else {}),
            }
            for size, line in found.items()
        ]  # fmt: skip
    return {
        "case": case.name, "measure": measure, "stored": len(case.store), "columns": case.store.shape[1],
        "queries": len(case.queries), "families": families, "others_ahead": where_others_win(lines),
    }  # fmt: skip


def _difference(ours: Line | None, line: Line) -> dict[str, Any]:
    """Return our score minus the family's, with its interval where scores of both are known for each query."""
    if ours is None or ours is line:
        return {}
    gaps = ours.values - line.values
    between = [] if line.earlier else [round(end, 4) for end in interval(gaps)]
    return {"ours_minus": [round(float(gaps.mean()), 4), *between]}


def between(ends: list[float]) -> str:
    """Return an interval in words."""
    return f"{ends[0]:+.3f} to {ends[1]:+.3f}" if ends else "an earlier run"


def raw_record(case: Case) -> dict[str, Any]:
    """Return the scores of the vectors themselves."""
    recall, other = case.measures(case.exact)
    found = {"recall@10": float(recall.mean())}
    if other is not None:
        found[str(case.other_measure)] = round(float(np.mean(other)), 4)
    return found


def write(path: Path, parts: Mapping[str, Any]) -> None:
    """Add parts to the record on disk; those of the same name are replaced, and what is in `ADDED` is added to."""
    held = json.loads(path.read_text("utf-8")) if path.exists() else {}
    added = {name: {**held.get(name, {}), **parts[name]} for name in ADDED if name in parts}
    held.update({**parts, **added})
    with atomic_file(path, "A record of results") as draft:
        draft.write_text(json.dumps(held, indent=1) + "\n", "utf-8")


def others_ahead(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the table of where others win."""
    rows = [f"{'where others are ahead':<28}{'bytes':>6}  {'who':<32}{'ours':>7}{'theirs':>8}  difference"]
    for one in records:
        for row in one["others_ahead"]:
            rows.append(
                f"{one['case'] + ', ' + one['measure']:<28}{row['bytes']:>6}  {row['family']:<32}{row['ours']:>7.3f}"
                f"{row['theirs']:>8.3f}  {between(row['between'])}"
            )
    return "\n".join(rows if len(rows) > 1 else [*rows, "  nowhere"])
