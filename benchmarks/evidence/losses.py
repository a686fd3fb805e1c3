"""Comparisons in which a peer is ahead of ours: a part of the page, from the record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.evidence.record import parts_of


class Loss(NamedTuple):
    """A comparison in which a peer is ahead, with its difference and interval."""

    model: str
    task: str
    length: str
    peer: str
    comparison: Mapping[str, Any]


def section(record: Mapping[str, Any]) -> list[str]:
    """Return the lines of the page: losses by peer."""
    found = list(losses(record))
    lines = [
        "## Losses",
        "",
        "Every comparison of the code that validation data prefer in which a peer is ahead, by peer; one by one they",
        'are the lines of [results/evidence.csv](../results/evidence.csv) whose verdict is "behind".',
        "[What limits ours there](decisions/evidence.md#where-peers-are-ahead).",
        "",
    ]
    if not found:
        return [*lines, "None.", ""]
    return [
        *lines,
        "| peer | comparisons | tasks | models | lengths | largest |", "|---" * 6 + "|", *_by_peer(found), "",
    ]  # fmt: skip


def losses(record: Mapping[str, Any]) -> Iterator[Loss]:
    """Return the losses in the order of the record."""
    for table, part, title in parts_of(record):
        unit = " bytes" if table["unit"] == "bytes" else ""
        for peer, each in table["comparisons"][part].items():
            for k, one in zip(table["ks"], each, strict=True):
                if one["verdict"] == "behind":
                    yield Loss(table["model"], title, f"{k}{unit}", peer, one)


def _by_peer(found: list[Loss]) -> Iterator[str]:
    """Return a row for each peer, those that are ahead most often first."""
    by_peer: dict[str, list[Loss]] = defaultdict(list)
    for loss in found:
        by_peer[loss.peer].append(loss)
    for peer, each in sorted(by_peer.items(), key=lambda item: -len(item[1])):
        columns = ([loss.task for loss in each], [loss.model for loss in each], [loss.length for loss in each])
        names = " | ".join(", ".join(dict.fromkeys(column)) for column in columns)
        largest = min(loss.comparison["difference"] for loss in each)
        yield f"| {peer} | {len(each)} | {names} | {largest:+.3f} |"
