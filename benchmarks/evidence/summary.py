"""What the page of evidence begins with, from the record: how short a code can be, as a table and as curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from firstk._base.atomic_file import atomic_file

# What is shown: tasks, the part of each, and its title.
SHOWN = (
    ("banking77 1-NN", "all", "Banking77, 1-NN"),
    ("sts", "all", "STS benchmark"),
    ("scifact", "seen", "SciFact, seen documents"),
    ("scifact", "unseen", "SciFact, unseen documents"),
    ("cifar10 1-NN", "all", "CIFAR-10, 1-NN"),
    ("fashion-mnist 1-NN", "all", "Fashion-MNIST, 1-NN"),
)
KEPT = 0.95
# Peers that learn from labels or pairs by training: the hardest to be ahead of.
TRAINED = ("MRL list", "MatryoshkaLoss adapter")
# Methods of the figure besides ours, with their colors and the names of the legend.
COLORS = {"truncation": "0.6", "PCA": "C1", "LDA": "C2", **dict.fromkeys(TRAINED, "C3")}
LEGEND = {"PCA": "PCA", "LDA": "LDA", TRAINED[0]: ", ".join(TRAINED), "truncation": "truncation"}
FIGURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "evidence.svg"

Tables = Mapping[str, Any]


class Curves(NamedTuple):
    """Test scores by length of the methods of one table on one part."""

    title: str
    table: Mapping[str, Any]
    part: str

    def scores(self, method: str) -> list[float]:
        """Return the scores of a method."""
        found: list[float] = self.table["methods"][method]["test"][self.part]
        return found

    def length(self, method: str) -> float:
        """Return the shortest length that keeps enough of the score of all coordinates; infinity if none does."""
        wanted = KEPT * self.table["raw"][self.part]
        lengths = zip(self.table["ks"], self.scores(method), strict=True)
        return min((k for k, score in lengths if score >= wanted), default=float("inf"))

    @property
    def best_peer(self) -> str | None:
        """The peer that needs least, of equals the one with the highest mean score."""
        peers = [name for name, one in self.table["methods"].items() if not one["ours"]]
        return min(peers, key=lambda name: (self.length(name), -sum(self.scores(name))), default=None)


def section(coordinates: Tables) -> list[str]:
    """Return how many coordinates keep most of the score of all, for ours and for peers."""
    shown = list(_shown(coordinates))
    if not shown:
        return []
    lengths = ", ".join(map(str, shown[0].table["ks"]))
    return [
        "## How short a code can be", "",
        f"The shortest of the lengths {lengths} with at least {100 * KEPT:.0f} % of the score of all coordinates of",
        "the model, on test parts. Ours is the code that validation data prefer; it learns from labels or pairs, as do",
        f"LDA and the trained peers, but not PCA and truncation. A star: of the trained peers ({', '.join(TRAINED)})",
        "none was run there.", "",
        "| model | task | ours | best peer | PCA | truncation |", "|---" * 6 + "|",
        *(_row(curves) for curves in shown), "",
        "![Scores by length, for models and tasks, of ours and of peers](images/evidence.svg)", "",
    ]  # fmt: skip


def _row(curves: Curves) -> str:
    table, best = curves.table, curves.best_peer
    star = "" if any(name in table["methods"] for name in TRAINED) else " *"
    peer = "" if best is None else _length(curves, best) + ("" if curves.length(best) == float("inf") else f" ({best})")
    cells = (_length(curves, table["chosen"]), peer + star, _length(curves, "PCA"), _length(curves, "truncation"))
    return f"| {table['model']} | {curves.title} | {' | '.join(cells)} |"


def _length(curves: Curves, method: str) -> str:
    if method not in curves.table["methods"]:
        return ""
    k = curves.length(method)
    return "more" if k == float("inf") else str(k)


def _shown(tables: Tables) -> Iterator[Curves]:
    for task, part, title in SHOWN:
        for table in tables.values():
            if table["task"] == task and table["comparisons"]:
                yield Curves(title, table, part)


def draw(coordinates: Tables, path: Path = FIGURE) -> None:
    """Draw the scores by length: a panel for each model and task, and the score of all coordinates as a line."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    if not (shown := list(_shown(coordinates))):
        return
    wide, high = 4, -(-len(shown) // 4)
    with matplotlib.rc_context({"svg.hashsalt": "firstk", "svg.fonttype": "none"}):
        figure, panels = plt.subplots(high, wide, figsize=(12, 2.5 * high), layout="constrained", squeeze=False)
        for panel in panels.flat[len(shown) :]:
            panel.set_axis_off()
        for panel, curves in zip(panels.flat, shown, strict=False):
            _draw_panel(panel, curves)
        lines = [plt.Line2D([], [], color="C0", marker="o", label="firstk, chosen on validation data")]
        lines += [plt.Line2D([], [], color=COLORS[name], label=label) for name, label in LEGEND.items()]
        lines.append(plt.Line2D([], [], color="0.8", label="all coordinates"))
        figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), frameon=False, fontsize=9)
        with atomic_file(path, "The figure") as draft:
            figure.savefig(draft, format="svg", metadata={"Date": None})
        plt.close(figure)


def _draw_panel(panel: Any, curves: Curves) -> None:
    table, ks = curves.table, curves.table["ks"]
    panel.axhline(table["raw"][curves.part], color="0.8", linewidth=1)
    for name, color in COLORS.items():
        if name in table["methods"]:
            panel.plot(ks, curves.scores(name), color=color, linewidth=1.2)
    panel.plot(ks, curves.scores(table["chosen"]), color="C0", linewidth=2.2, marker="o", markersize=4)
    panel.set_xscale("log", base=2)
    panel.set_xticks(ks, [str(k) for k in ks], minor=False)
    panel.set_ylim(bottom=0)
    panel.set_title(f"{curves.title}: {table['model']}", fontsize=9)
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
