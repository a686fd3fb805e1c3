"""The record of `benchmarks.upgrade`, results/upgrade.json: its tables, and whether what is required holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.upgrade.cases import cases
from benchmarks.upgrade.verdict import Row
from firstk._base.atomic_file import atomic_file
from firstk.upgrade.records import STAY, TRANSLATE

RECORD = Path(__file__).resolve().parents[2] / "results" / "upgrade.json"
PEERS = ("procrustes", "ridge", "low_rank_affine")
BEHIND, KEPT, ROWS_KEPT, REGRET = 0.01, 0.95, 2 / 3, 0.01
COLUMNS = {
    "stay": "stay", "procrustes": "Procrustes", "ridge": "ridge", "ridge of queries": "ridge (q)",
    "procrustes_ridge": "to rotation", "reduced_rank": "red. rank", "cca": "CCA", "whitened_ridge": "whitened",
    "lambda_orthogonal": "lambda", "low_rank_affine": "low rank", "low_rank_affine of queries": "low rank (q)",
    "residual_mlp": "MLP", "auto": "auto", "auto, half": "half", "re-embed": "re-embed",
}  # fmt: skip

ACTIONS = (STAY, TRANSLATE, "undecided")

Record = Mapping[str, Mapping[str, Any]]


def read(path: Path = RECORD) -> dict[str, dict[str, Any]]:
    """Return what was measured, by case, in the order of the cases."""
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return {name: found[name] for name in map(str, cases()) if name in found}


def write(case: str, found: Mapping[str, Any], path: Path = RECORD) -> None:
    """Add to what was measured of a case."""
    record = read(path)
    before = record.get(case, {})
    record[case] = before | dict(found) | {"scores": before.get("scores", {}) | found.get("scores", {})}
    with atomic_file(path, "Results", kinds=(".json",)) as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n")


def methods_table(record: Record) -> str:
    """Return the mean scores of every option in Markdown: over the upgrades that all options ran, by set and pairs."""
    rows = {case: found["scores"] for case, found in record.items()}
    present = [name for name in COLUMNS if any(name in row for row in rows.values())]
    lines = [_line(["set, pairs", "upgrades", *(COLUMNS[name] for name in present)]), "|---" * (len(present) + 2) + "|"]
    for group, found in _groups(rows.items()):
        whole = [row for row in found if all(name in row for name in present)]
        means = [np.mean([row[name][0] for row in whole]) for name in present] if whole else []
        lines.append(_line([group, str(len(whole)), *(f"{mean:.3f}" for mean in means)]))
    return "\n".join(lines)


def verdicts_table(record: Record) -> str:
    """Return what the verdicts say in Markdown, by set and pairs, beside what is true on the test part."""
    heads = ["set, pairs", *(f"said {action}" for action in ACTIONS), "staying scores", "translating scores", "regret"]
    lines = [_line(heads), "|---" * len(heads) + "|"]
    for group, said in _groups(_verdicts(record)):
        counts = [str(sum(one.action == action for one in said)) for action in ACTIONS]
        means = [f"{np.mean([getattr(one, what) for one in said]):.3f}" for what in ("stay", "translate", "regret")]
        lines.append(_line([group, *counts, *means]))
    return "\n".join(lines)


def checks(record: Record) -> dict[str, bool]:
    """Return what is required, with its figures, and whether it holds."""
    rows = [found["scores"] for found in record.values() if "auto" in found["scores"]]
    found: dict[str, bool] = {}
    full = [row for row in rows if all(peer in row for peer in PEERS)]
    if full:
        behind = np.array([max(row[peer][0] for peer in PEERS) - row["auto"][0] for row in full])
        means = {peer: float(np.mean([row[peer][0] for row in full])) for peer in PEERS}
        best, ours = max(means, key=lambda peer: means[peer]), float(np.mean([row["auto"][0] for row in full]))
        found[
            f"auto within {BEHIND} of the best of {', '.join(PEERS)}: {(behind <= BEHIND).sum()} of {len(full)} rows, "
            f"at worst {behind.max():.4f} behind, on average {-behind.mean():.4f} ahead"
        ] = bool((behind <= BEHIND).all())
        found[f"auto has {ours:.4f} on average, the best of them ({best}) {means[best]:.4f}"] = ours > means[best]
    if rows:
        kept = np.array([row["auto, half"][0] / max(row["auto"][0], 1e-9) for row in rows])
        found[f"half of the code keeps {KEPT:.0%} in {(kept >= KEPT).sum()} of {len(rows)} rows"] = bool(
            (kept >= KEPT).mean() >= ROWS_KEPT
        )
    said = [one for _, one in _verdicts(record)]
    if said:
        true = np.array([max(one.stay, one.translate) for one in said])
        always = {kind: float(np.mean(true - [getattr(one, kind) for one in said])) for kind in (STAY, TRANSLATE)}
        regret, beyond = float(np.mean([one.regret for one in said])), sum(one.beyond for one in said)
        found[
            f"mean regret of the verdict {regret:.4f}, at most {REGRET} (always staying {always[STAY]:.4f}, always "
            f"translating {always[TRANSLATE]:.4f}), at worst {max(one.regret for one in said):.4f}; right in "
            f"{sum(one.regret == 0 for one in said)} of {len(said)} rows"
        ] = regret <= REGRET
        found[f"wrong by more than its interval in {beyond} of {len(said)} rows"] = not beyond
    return found


def required(record: Record) -> int:
    """Print whether what is required holds; 0 if all of it does."""
    found = checks(record)
    for text, held in found.items():
        print(f"{'held' if held else 'MISSED'}: {text}")
    return 0 if found and all(found.values()) else 1


def _groups(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the rows of each set and number of pairs, as "scifact, 500 pairs"."""
    found: dict[str, list[Any]] = {}
    for case, row in rows:
        found.setdefault(f"{case.split()[0]}, {case.split(', ')[1]}", []).append(row)
    yield from found.items()


def _verdicts(record: Record) -> Iterator[tuple[str, Row]]:
    for case, found in record.items():
        if "verdict" in found:
            yield case, Row(**found["verdict"])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
