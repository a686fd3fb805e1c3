"""Tables of the docs, from the record of a run: ``python -m benchmarks.bytes.page`` rewrites them.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``; a test compares the pages with the record.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.bytes.ours import HEADLINE, OURS
from benchmarks.bytes.settings import BYTES
from benchmarks.bytes.tables import RECORD, between
from firstk._base.atomic_file import atomic_file

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (DOCS / "how-many-bytes.md", DOCS / "compared-with.md")
BLOCK = re.compile(r"(<!-- table: ([^\n]+?) -->\n)(?:(?!<!-- table: ).)*?(<!-- end -->)", re.DOTALL)
NAMES = {
    "banking77": "Banking77",
    "banking77new": "Banking77, rows after the fit",
    "scifact": "SciFact",
    "sts": "STS sentences",
    "images": "MNIST and Fashion-MNIST",
}
MODELS = {"minilm": "MiniLM", "potion": "potion", "mpnet": "mpnet", "pixels": "pixels"}


def rewritten(text: str, record: Mapping[str, Any]) -> str:
    """Return a page with its tables made anew."""
    return BLOCK.sub(lambda match: f"{match[1]}\n{made(match[2], record)}\n\n{match[3]}", text)


def made(name: str, record: Mapping[str, Any]) -> str:
    """Return one of `TABLES`."""
    return TABLES[name](record)


def overview(record: Mapping[str, Any]) -> str:
    """Return recall of ours and of the best of the others in each case, at a few numbers of bytes."""
    sizes = (8, 16, 32, 64)
    lines = [_row(["data, model", *(f"{b} bytes" for b in sizes)]), _row(["---"] * (len(sizes) + 1))]
    for one in _recalls(record):
        cells = []
        for size in sizes:
            ours = _score(one, HEADLINE, size)
            others = [(_score(one, f, size), f) for f in one["families"] if not f.startswith(OURS)]
            score, family = max((pair for pair in others if pair[0] is not None), default=(None, ""))
            cells.append(f"**{ours:.3f}**" + ("" if score is None else f"; {score:.3f} {family}"))
        lines.append(_row([_title(one["case"]), *cells]))
    return "\n".join(lines)


def compared(record: Mapping[str, Any]) -> str:
    """Return recall of ours and of a few well-known methods on one case, at a few numbers of bytes."""
    sizes, one = (8, 16, 32, 64), record["banking77-minilm recall@10"]
    families = (
        HEADLINE,
        "faiss RQ",
        "faiss OPQ+PQ",
        "faiss PQ",
        "faiss PCA+RaBitQ",
        "faiss TurboQuant",
        "firstk binary",
    )
    lines = [_row(["", *(f"{size} bytes" for size in sizes)]), _row(["---"] * (len(sizes) + 1))]
    for family in families:
        scores = [_score(one, family, size) for size in sizes]
        lines.append(_row([family, *("" if score is None else f"{score:.3f}" for score in scores)]))
    return "\n".join(lines)


def others_ahead(record: Mapping[str, Any]) -> str:
    """Return in how many bytes one of the others is ahead of ours, by case, and where its lead is largest."""
    heads = ["data, model", "measure", "bytes", "most in", "ahead", "ours", "theirs", "ours minus theirs, 95 %",
             "their codebooks"]  # fmt: skip
    lines = [_row(heads), _row(["---"] * len(heads))]
    for one in sorted(_cases(record), key=lambda one: one["measure"] != "recall@10"):
        if not one["others_ahead"]:
            continue
        sizes = sorted({row["bytes"] for row in one["others_ahead"]})
        most = max(one["others_ahead"], key=lambda row: row["theirs"] - row["ours"])
        cells = (
            _title(one["case"]), one["measure"], ", ".join(map(str, sizes)), str(most["bytes"]), most["family"],
            f"{most['ours']:.3f}", f"{most['theirs']:.3f}", between(most["between"]),
            f"{most['codebook_bytes'] / one['stored']:.0f} bytes per stored vector",
        )  # fmt: skip
        lines.append(_row(list(cells)))
    return "\n".join(lines)


def claims(record: Mapping[str, Any]) -> str:
    """Return what was promised, and what became of it."""
    lines = [_row(["promised", "", "found"]), _row(["---"] * 3)]
    for claim in record["claims"].values():
        lines.append(_row([claim["claim"], "held" if claim["held"] else "**missed**", claim["found"]]))
    return "\n".join(lines)


def speed(record: Mapping[str, Any]) -> str:
    """Return search on many rows: bytes, recall and time."""
    lines = [_row(["index", "bytes", "recall@10", "ms a query", "training, s", "adding, s"]), _row(["---"] * 6)]
    for row in record["speed"]["search"]:
        cells = (row["name"], row["bytes"], f"{row['recall']:.3f}", f"{row['ms']:.1f}", row["train_s"], row["add_s"])
        lines.append(_row([str(cell) for cell in cells]))
    return "\n".join(lines)


def judged(record: Mapping[str, Any], name: str) -> str:
    """Return the scores of one model that learned from labels or judgements, with its bytes spent in four ways."""
    scores = record[f"judged {name}"]["scores"]
    best = {b: max(found[str(b)] for found in scores.values() if str(b) in found) for b in BYTES if _held(scores, b)}
    lines = [_row(["bytes", *map(str, best)]), _row(["---"] * (len(best) + 1))]
    for precision, found in scores.items():
        cells = [_bold(found[str(b)], best[b]) if str(b) in found else "" for b in best]
        lines.append(_row([precision, *cells]))
    return "\n".join(lines)


def _held(scores: Mapping[str, Any], size: int) -> bool:
    return any(str(size) in found for found in scores.values())


TABLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "overview": overview,
    "compared": compared,
    "others ahead": others_ahead,
    "claims": claims,
    "speed": speed,
    "judged scifact": lambda record: judged(record, "scifact"),
    "judged banking77": lambda record: judged(record, "banking77"),
}


def main() -> int:
    """Rewrite the pages."""
    record = json.loads(RECORD.read_text("utf-8"))
    for page in PAGES:
        text = rewritten(page.read_text("utf-8"), record)
        with atomic_file(page, "A page") as draft:
            draft.write_text(text, "utf-8")
    return 0


def _cases(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in record.values() if "others_ahead" in one]


def _recalls(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in _cases(record) if one["measure"] == "recall@10"]


def _score(one: Mapping[str, Any], family: str, size: int) -> float | None:
    return next((row["score"] for row in one["families"].get(family, []) if row["bytes"] == size), None)


def _title(case: str) -> str:
    data, model = case.split("-")
    return f"{NAMES[data]}, {MODELS[model]}"


def _bold(score: float, best: float) -> str:
    return f"**{score:.3f}**" if score >= best else f"{score:.3f}"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
