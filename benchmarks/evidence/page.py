"""The page of the docs, from the record: ``python -m benchmarks.evidence.page`` writes it; a test compares the two."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.evidence.record import RECORD
from firstk._base.atomic_file import atomic_file

PAGE = RECORD.parents[1] / "docs" / "evidence.md"
MODELS = {
    "minilm": "all-MiniLM-L6-v2 (384, Apache-2.0)",
    "potion": "potion-base-8M (256, static, MIT)",
    "mpnet": "all-mpnet-base-v2 (768, Apache-2.0)",
    "wordllama": "WordLlama l2_supercat (256, trained with a Matryoshka loss, MIT)",
    "pixels": "pixels",
}
# Peers that learn from labels or pairs.
SUPERVISED = ("LDA", "MRL list", "MatryoshkaLoss adapter")
UNSUPERVISED = "firstk similarity"
BEHIND = -0.01
INTRODUCTION = """# Evidence

Several models, standard tasks, and peers at their best settings; made by `python -m benchmarks.evidence` from
`results/evidence.json`, whoever is ahead.

- **Nothing is chosen on test parts.** Methods are fitted on training parts and their settings chosen on validation
  parts; a test part cannot be read before. Peers get the setting that is best on validation data for each length. Ours
  has one code for all lengths: the objective with the best mean on validation data is compared, with default settings.
- **Ahead and behind** are differences whose p, from the paired bootstrap over rows, queries or pairs, is below 0.05
  after Holm's control for all peers and lengths of a line. Everything else is level: these rows do not suffice to show
  a difference, which may still be one.
- **Peers**: the first coordinates of the model ("truncation"; for WordLlama that is how it was trained), random
  dimensions (mean of 20 draws), PCA (centred or not), whitened PCA, all but the top, Zipf-weighted PCA (rows weighted
  by how rare they are, an adaptation), LDA with shrinkage and, where training was run, adapters.
- **Tasks**: Banking77 (CC BY 4.0), the STS benchmark (scores CC BY-SA 4.0, texts by source), SciFact (CC BY 4.0,
  ODC-By), Fashion-MNIST (MIT). SciFact's 1,109 queries are divided anew, because its official test part has been
  looked at: seen are queries with a document that was learned from. "A to B" is fitted and chosen on A, and used on B.
"""

MTEB = """## Under the protocol of mteb

`PrefixModel` evaluates a model with an encoder and a number of coordinates, or of bytes, on any task of mteb
(`pip install 'firstk[mteb]'`):

<!-- not run: needs a model from the Hugging Face hub -->
```python
import mteb
from firstk.integrations.mteb import PrefixModel

model = mteb.get_model("sentence-transformers/all-MiniLM-L6-v2")
mteb.evaluate(PrefixModel(model, encoder, 32), mteb.get_task("STSBenchmark"))
mteb.evaluate(PrefixModel(model, encoder, bytes_per_vector=32), mteb.get_task("SciFact"))
```

`python -m benchmarks.evidence.mteb_tasks` runs STSBenchmark and SciFact of mteb from local files: its scores and ours
for the same codes differ by less than 0.0001.
"""


def made(record: Mapping[str, Any]) -> str:
    """Return the page."""
    lines = [
        INTRODUCTION,
        *_models(record),
        *_matrix(record),
        *_losses(record),
        *_unsupervised(record),
        *_scores(record),
        *_not_run(record),
        MTEB,
    ]
    return "\n".join(lines)


def _parts(record: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Return every table and part with its title."""
    for table in record.values():
        for part in table["comparisons"]:
            title = table["task"] if part == "all" else f"{table['task']}, {part}"
            yield table, part, title


def _models(record: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys(table["model"] for table in record.values())
    return ["Models: " + "; ".join(f"{name}: {MODELS[name]}" for name in names) + ".", ""]


def _matrix(record: Mapping[str, Any]) -> list[str]:
    ks = _ks(record)
    lines = [
        "## Wins, ties and losses", "",
        "Of the peers that were run, how many ours is ahead of, level with and behind at k coordinates.",
        f"{_learning(record)}", "",
        "| model | task | ours, chosen on validation data | " + " | ".join(f"k = {k}" for k in ks) + " |",
        "|---" * (len(ks) + 3) + "|",
    ]  # fmt: skip
    totals: Counter[str] = Counter()
    for table, part, title in _parts(record):
        cells = []
        for j in range(len(ks)):
            counts = Counter(peer[j]["verdict"] for peer in table["comparisons"][part].values())
            totals += counts
            cells.append("-".join(str(counts[name]) for name in ("ahead", "level", "behind")))
        lines.append(
            f"| {table['model']} | {title} | {table['chosen'].removeprefix('firstk ')} | {' | '.join(cells)} |"
        )
    total = ", ".join(f"{totals[name]} {name}" for name in ("ahead", "level", "behind"))
    return [*lines, "", f"In all: {total}.", ""]


def _learning(record: Mapping[str, Any]) -> str:
    """Say which peers learned from labels or pairs, as ours does where it can."""
    run = {name for table in record.values() for name in table["methods"]}
    learned = [name for name in SUPERVISED if name in run]
    return "Ours learns from labels or pairs where a task has them; of the peers in this table " + (
        f"only {', '.join(learned)} did too." if learned else "none did: those that do were not run."
    )


def _unsupervised(record: Mapping[str, Any]) -> list[str]:
    """Return how far our similarity without labels or pairs is from the best peer without them."""
    ks, lines = _ks(record), []
    for table, part, title in _parts(record):
        peers = [
            one["test"][part]
            for name, one in table["methods"].items()
            if not one.get("ours") and name not in SUPERVISED and "bytes" not in one
        ]
        own = table["methods"].get(UNSUPERVISED)
        if own is None or not peers:
            continue
        gaps = [own["test"][part][j] - max(peer[j] for peer in peers) for j in range(len(ks))]
        cells = (f"**{gap:+.3f}**" if gap < BEHIND else f"{gap:+.3f}" for gap in gaps)
        lines.append(f"| {table['model']} | {title} | {' | '.join(cells)} |")
    if not lines:
        return []
    return [
        "## Without labels or pairs", "",
        'Objective "similarity" fitted on vectors alone, less the best of the peers that learn from vectors alone (by',
        "test scores, at each length). In bold: more than 0.01 behind.", "",
        "| model | task | " + " | ".join(f"k = {k}" for k in ks) + " |", "|---" * (len(ks) + 2) + "|", *lines, "",
    ]  # fmt: skip


def _losses(record: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Losses",
        "",
        "Every comparison in which a peer is ahead, with the 95 % interval of the difference.",
        "",
    ]
    found = [
        f"| {table['model']} | {title} | {k} | {peer} | {one['difference']:+.3f} "
        f"| {one['low']:+.3f} to {one['high']:+.3f} |"
        for table, part, title in _parts(record)
        for peer, each in table["comparisons"][part].items()
        for k, one in zip(table["ks"], each, strict=True)
        if one["verdict"] == "behind"
    ]
    if not found:
        return [*lines, "None.", ""]
    return [*lines, "| model | task | k | peer | difference | interval |", "|---" * 6 + "|", *found, ""]


def _scores(record: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Scores on the test parts",
        "",
        "In bold the best at a length. Ours with all objectives that were run.",
        "",
    ]
    for table, part, title in _parts(record):
        ks, methods = table["ks"], table["methods"]
        best = [max(one["test"][part][j] for one in methods.values() if "bytes" not in one) for j in range(len(ks))]
        lines += [
            f"### {table['model']}, {title}", "",
            f"{table['measure']}, {table['rows'][part]:,} rows; all coordinates: {table['raw'][part]:.3f}.", "",
            "| method | " + " | ".join(map(str, ks)) + " |", "|---" * (len(ks) + 1) + "|",
        ]  # fmt: skip
        for name, one in methods.items():
            shown = f"{name}, {one['bytes'][0]} to {one['bytes'][-1]} bytes" if "bytes" in one else name
            cells = (f"**{x:.3f}**" if x == top else f"{x:.3f}" for x, top in zip(one["test"][part], best, strict=True))
            lines.append(f"| {shown} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _not_run(record: Mapping[str, Any]) -> list[str]:
    missing = sorted({name for table in record.values() for name in table["not run"]})
    models = [name for name in MODELS if name not in {table["model"] for table in record.values()}]
    lines = ["## Not run", ""]
    if missing:
        lines += [
            f"These take minutes each (`--trained`) and have no row where they were not run: {', '.join(missing)}.",
            "",
        ]
    if models:
        lines += [f"Models without a table: {'; '.join(MODELS[name] for name in models)}.", ""]
    return lines if missing or models else []


def _ks(record: Mapping[str, Any]) -> list[int]:
    return list(next(iter(record.values()))["ks"])


def main() -> int:
    """Write the page."""
    record = json.loads(RECORD.read_text("utf-8"))
    with atomic_file(PAGE, "The page") as draft:
        draft.write_text(made(record), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
