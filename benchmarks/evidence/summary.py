"""The first things to read on the page of evidence: how short a code can be, and who is ahead where. From the record.

`figure` draws the curves of the same tasks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# Tasks that are shown, with the part that is.
TASKS = {
    "banking77 1-NN": "Banking77, 1-NN",
    "sts": "STS benchmark",
    "scifact": "SciFact",
    "cifar10 1-NN": "CIFAR-10, 1-NN",
    "fashion-mnist 1-NN": "Fashion-MNIST, 1-NN",
}
KEPT = 0.95
# Methods of the figure besides ours, with their colors.
SHOWN = {"truncation": "0.6", "PCA": "C1", "LDA": "C2", "MRL list": "C3", "MatryoshkaLoss adapter": "C3"}
FIGURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "evidence.svg"

Tables = Mapping[str, Any]


def section(coordinates: Tables) -> list[str]:
    """Return how many coordinates keep most of the score of all, for ours and for peers."""
    rows = [_shortest(table) for _, table in _shown(coordinates)]
    if not rows:
        return []
    return [
        "## How short a code can be", "",
        f"The shortest of the lengths 4, 8, 16, 32, 64, 128 whose score is {KEPT:.0%} of that of all coordinates of",
        "the model, on test parts. Ours is the code that validation data prefer; the best peer is the one that needs",
        "least.", "", "| model | task | ours | best peer | PCA | truncation |", "|---" * 6 + "|", *rows, "",
        "![Scores by length, for models and tasks, of ours and of peers](images/evidence.svg)", "",
    ]  # fmt: skip


def losses(record: Tables) -> list[str]:
    """Return for each peer that is ahead anywhere where that is, and by how much at most."""
    found: dict[str, list[tuple[str, str, str, float]]] = defaultdict(list)
    for table in record.values():
        unit = " bytes" if table["unit"] == "bytes" else ""
        for part, peers in table["comparisons"].items():
            task = table["task"] if part == "all" else f"{table['task']}, {part}"
            for peer, each in peers.items():
                for k, one in zip(table["ks"], each, strict=True):
                    if one["verdict"] == "behind":
                        found[peer].append((table["model"], task, f"{k}{unit}", one["difference"]))
    lines = [
        f"| {peer} | {len(each)} | {_names(each, 1)} | {_names(each, 0)} | {_names(each, 2)} "
        f"| {min(one[3] for one in each):+.3f} |"
        for peer, each in sorted(found.items(), key=lambda item: -len(item[1]))
    ]
    if not lines:
        return []
    return ["| peer | comparisons | tasks | models | lengths | at most |", "|---" * 6 + "|", *lines, ""]


def _names(found: list[tuple[str, str, str, float]], place: int) -> str:
    return ", ".join(dict.fromkeys(str(one[place]) for one in found))


def _shown(tables: Tables) -> Iterator[tuple[str, dict[str, Any]]]:
    for task, title in TASKS.items():
        for table in tables.values():
            if table["task"] == task and table["comparisons"]:
                yield title, table


def _shortest(table: Mapping[str, Any]) -> str:
    lengths = {name: _length(table, one["test"]["all"]) for name, one in table["methods"].items()}
    peers = {name: k for name, k in lengths.items() if not table["methods"][name]["ours"]}
    best = min(peers, key=peers.__getitem__)
    found = {name: "more" if k == float("inf") else str(k) for name, k in lengths.items()}
    peer = found[best] if peers[best] == float("inf") else f"{found[best]} ({best})"
    cells = (found[table["chosen"]], peer, found.get("PCA", ""), found.get("truncation", ""))
    return f"| {table['model']} | {TASKS[table['task']]} | {' | '.join(cells)} |"


def _length(table: Mapping[str, Any], scores: Sequence[float]) -> float:
    """Return the shortest length that keeps enough; infinity if none does."""
    kept = zip(table["ks"], scores, strict=True)
    return min((k for k, score in kept if score >= KEPT * table["raw"]["all"]), default=float("inf"))


def draw(coordinates: Tables, path: Path = FIGURE) -> None:
    """Draw the scores by length: a panel for each model and task, and the score of all coordinates as a line."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "firstk", "svg.fonttype": "none"}
    import matplotlib.pyplot as plt

    shown = list(_shown(coordinates))
    wide, high = 4, -(-len(shown) // 4)
    figure, panels = plt.subplots(high, wide, figsize=(12, 2.5 * high), layout="constrained", squeeze=False)
    for panel in panels.flat[len(shown) :]:
        panel.set_axis_off()
    for panel, (title, table) in zip(panels.flat, shown, strict=False):
        panel.axhline(table["raw"]["all"], color="0.8", linewidth=1)
        for name, color in {**SHOWN, table["chosen"]: "C0"}.items():
            if name in table["methods"]:
                own = name == table["chosen"]
                scores = table["methods"][name]["test"]["all"]
                panel.plot(table["ks"], scores, color=color, linewidth=2.2 if own else 1.2, marker="o" if own else None,
                           markersize=4)  # fmt: skip
        panel.set_xscale("log", base=2)
        panel.set_xticks(table["ks"], [str(k) for k in table["ks"]], minor=False)
        panel.set_ylim(bottom=0)
        panel.set_title(f"{title}: {table['model']}", fontsize=9)
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    lines = [plt.Line2D([], [], color="C0", marker="o", label="firstk, chosen on validation data")]
    names = {"PCA": "PCA", "LDA": "LDA", "MRL list": "MRL list, MatryoshkaLoss adapter", "truncation": "truncation"}
    lines += [plt.Line2D([], [], color=SHOWN[name], label=label) for name, label in names.items()]
    lines.append(plt.Line2D([], [], color="0.8", label="all coordinates"))
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
