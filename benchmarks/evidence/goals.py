"""Goals that were set before the benchmark was run, beside what it measured: a part of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.evidence.record import UNSUPERVISED

MODEL = "minilm"


@dataclass(frozen=True)
class Goal:
    """Scores of one task that were aimed at, by length."""

    task: str
    part: str
    wanted: Mapping[int, float]


GOALS = (
    Goal("banking77 1-NN", "all", {4: 0.65, 8: 0.87, 16: 0.915, 32: 0.925}),
    Goal("sts", "all", {8: 0.745, 16: 0.79, 32: 0.815, 64: 0.825}),
    Goal("scifact", "unseen", {16: 0.30, 32: 0.50, 64: 0.60, 128: 0.67}),
    Goal("scifact", "seen", {16: 0.50, 32: 0.67, 64: 0.80, 128: 0.83}),
)
# Similarity without pairs against PCA on SciFact, about the mean or not (SVD), whichever validation queries prefer.
AHEAD_AT, LEVEL_AT, MOST_BEHIND = 16, (32, 64), 0.005


def section(record: Mapping[str, Any]) -> list[str]:
    """Return the lines of the page: a line for each goal, with its lengths."""
    goals = [*_scores(record), *_without_pairs(record)]
    if not goals:
        return []
    results = [result for _, _, lengths in goals for result in lengths]
    met = sum(met for _, _, met in results)
    rows = [
        f"| {name} | {code} | {'; '.join(f'{k}: {said}' if met else f'{k}: **{said}**' for k, said, met in lengths)} |"
        for name, code, lengths in goals
    ]
    return [
        "## Goals", "",
        "Set before the benchmark was written: by length, what was measured and what was wanted, in bold where it was",
        "missed. Scores are those of the code of ours that was chosen on validation data, for",
        f"{MODEL} if nothing else is said. Met: {met} of {len(results)}.", "",
        "| goal | code | by length |", "|---|---|---|", *rows, "",
    ]  # fmt: skip


# The name of a goal, the code of ours, and by length what is said and whether it is met.
_Goal = tuple[str, str, list[tuple[int, str, bool]]]


def _scores(record: Mapping[str, Any]) -> Iterator[_Goal]:
    for goal in GOALS:
        table = record.get(f"{MODEL}, {goal.task}")
        if table is None:
            continue
        found = dict(zip(table["ks"], table["methods"][table["chosen"]]["test"][goal.part], strict=True))
        name = goal.task if goal.part == "all" else f"{goal.task}, {goal.part}"
        # As many digits as the goal has: 0.6499 is not 0.65.
        lengths = [(k, f"{found[k]:.4f} of {wanted:.3f}", found[k] >= wanted) for k, wanted in goal.wanted.items()]
        yield name, table["chosen"].removeprefix("firstk "), lengths


def _without_pairs(record: Mapping[str, Any]) -> Iterator[_Goal]:
    for table in record.values():
        own = UNSUPERVISED[0]
        against = table.get("without labels", {}).get("all", {}).get(own, {}).get("PCA")
        if table["task"] != "scifact" or against is None:
            continue
        lengths = []
        for k, one in zip(table["ks"], against, strict=True):
            if k in (AHEAD_AT, *LEVEL_AT):
                kept = one["verdict"] == "ahead" if k == AHEAD_AT else one["difference"] >= -MOST_BEHIND
                said = f"{one['difference']:+.4f} ({one['low']:+.3f} to {one['high']:+.3f}), {one['verdict']}"
                lengths.append((k, said, kept))
        wanted = f"ahead at {AHEAD_AT}, at most {MOST_BEHIND} behind beyond"
        yield f"{table['model']}, scifact, without pairs, less PCA: {wanted}", own.removeprefix("firstk "), lengths
