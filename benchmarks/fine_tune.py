"""Fine-tunes of a static embedding model: every prefix, a list of lengths, and the plain loss, at many lengths.

    python -m benchmarks.fine_tune FOLDER                  a folder with model.safetensors and tokenizer.json, such as
                                                           potion-base-8M; the development parts
    python -m benchmarks.fine_tune FOLDER --part test      the test parts

A table of token vectors, their mean, and a dense layer are trained on Banking77 (two questions of each intent),
SciFact (titles and claims to abstracts; both InfoNCE) and STS benchmark (CoSENT). Needs the data folder (FIRSTK_DATA).
Weights of prefixes were chosen on the development parts. A difference is the mean over seeds of what the same query (or
pair) scores, with a bootstrap interval over queries. A list of lengths is MatryoshkaLoss: its values agree to 1e-7.
"""

# ruff: noqa: E402 - the number of threads is set before anything that reads it is imported
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import csv
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor, nn

from firstk.losses import FullPrefixCoSENT, FullPrefixInfoNCE

LENGTHS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
LISTED = dict.fromkeys((16, 32, 64, 128, 256), 1.0)
# Losses by name: the options of the full-prefix loss.
LOSSES: dict[str, dict[str, Any]] = {
    "every prefix": {},
    "every prefix, drawn": {"estimator": "drawn"},
    "list 16, 32, ... 256": {"omega": LISTED},
    "plain": {"omega": {256: 1.0}},
}
SEEDS, STEPS, RATE, DRAWS = (0, 1, 2), 200, 1e-3, 1000
Texts = list[str]


class Static(nn.Module):
    """The mean of a text's token vectors, then a dense layer that starts as the identity."""

    def __init__(self, folder: Path):
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        super().__init__()
        table = next(iter(load_file(folder / "model.safetensors").values())).float()
        self.tokens = nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="mean")
        self.dense = nn.Linear(table.shape[1], table.shape[1])
        nn.init.eye_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def ids(self, texts: Texts) -> list[Tensor]:
        """Return the tokens of each text, at most 256."""
        found = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        return [torch.tensor(each.ids[:256] or [0]) for each in found]

    def forward(self, ids: list[Tensor]) -> Tensor:
        """Return one vector per text."""
        offsets = torch.tensor([0, *(len(each) for each in ids[:-1])]).cumsum(0)
        vectors: Tensor = self.dense(self.tokens(torch.cat(ids), offsets))
        return vectors


@dataclass
class Task:
    """Texts, how batches are drawn from them, and what a query scores at length k."""

    texts: Texts
    loss: type[nn.Module]
    # Draws a batch: indices of the left and of the right texts, and what the loss takes besides.
    batch: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, tuple[Tensor, ...]]]
    # Scores of each query from unit vectors of all texts.
    scores: Callable[[np.ndarray], np.ndarray]


def _ndcg(top: np.ndarray, relevant: list[set[int]]) -> np.ndarray:
    gains = 1 / np.log2(np.arange(2, 12))
    hits = np.array([[doc in own for doc in row] for row, own in zip(top.tolist(), relevant, strict=True)])
    return hits @ gains / np.array([gains[: min(len(own), 10)].sum() for own in relevant])


def _top(similarities: np.ndarray) -> np.ndarray:
    return np.argsort(-similarities, axis=1, kind="stable")[:, :10]


def banking(data: Path, part: str) -> Task:
    """Return how many of the ten nearest training questions have the query's intent."""
    rows = {
        name: list(csv.DictReader((data / f"banking77/{name}.csv").open(encoding="utf8"))) for name in ("train", "test")
    }
    texts = [row["text"] for name in ("train", "test") for row in rows[name]]
    labels = np.unique([row["category"] for name in ("train", "test") for row in rows[name]], return_inverse=True)[1]
    train = np.arange(len(rows["train"]))
    held = train % 5 == 0
    known = train[~held]
    asked = train[held] if part == "dev" else np.arange(len(train), len(texts))
    members = [known[labels[known] == label] for label in range(77)]

    def batch(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, tuple[Tensor, ...]]:
        pairs = np.array([rng.choice(own, 2, replace=False) for own in members])
        return pairs[:, 0], pairs[:, 1], ()

    def scores(unit: np.ndarray) -> np.ndarray:
        return (labels[known][_top(unit[asked] @ unit[known].T)] == labels[asked, None]).mean(1)

    return Task(texts, FullPrefixInfoNCE, batch, scores)


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf8") as lines:
        yield from map(json.loads, lines)


def scifact(data: Path, part: str) -> Task:
    """Return nDCG@10 of claims; half of the training claims are the development part."""
    folder = data / "retrieval-scifact"
    corpus = list(_lines(folder / "corpus.jsonl.gz"))
    queries = {row["_id"]: row["text"] for row in _lines(folder / "queries.jsonl.gz")}
    place = {row["_id"]: i for i, row in enumerate(corpus)}
    judged: dict[str, dict[str, set[int]]] = {"train": {}, "test": {}}
    for name, found in judged.items():
        for row in csv.DictReader((folder / f"qrels_{name}.tsv").open(encoding="utf8"), delimiter="\t"):
            found.setdefault(row["query-id"], set()).add(place[row["corpus-id"]])
    taught = dict(list(judged["train"].items())[::2])
    held = dict(list(judged["train"].items())[1::2]) if part == "dev" else judged["test"]
    titles, claims = [row["title"] for row in corpus], [queries[name] for name in (*taught, *held)]
    texts = [f"{row['title']} {row['text']}" for row in corpus] + titles + claims
    n, first = len(corpus), 2 * len(corpus)
    pairs = [(n + i, i) for i in range(n)] + [(first + i, doc) for i, own in enumerate(taught.values()) for doc in own]
    left, right = np.array(pairs).T
    asked = first + len(taught) + np.arange(len(held))

    def batch(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, tuple[Tensor, ...]]:
        rows = rng.choice(len(left), 256, replace=False)
        return left[rows], right[rows], ()

    def scores(unit: np.ndarray) -> np.ndarray:
        return _ndcg(_top(unit[asked] @ unit[:n].T), list(held.values()))

    return Task(texts, FullPrefixInfoNCE, batch, scores)


def sts(data: Path, part: str) -> Task:
    """Return the terms whose mean is Spearman's correlation."""
    cells = {}
    for name in ("train", part):
        with gzip.open(data / f"stsb/sts-{name}.csv.gz", "rt", encoding="utf8") as lines:
            cells[name] = [line.rstrip("\r\n").split("\t") for line in lines]
    rows = cells["train"] + cells[part]
    texts, grades = [row[5] for row in rows] + [row[6] for row in rows], np.array([float(row[4]) for row in rows])
    taught, asked = len(cells["train"]), np.arange(len(cells["train"]), len(rows))

    def batch(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, tuple[Tensor, ...]]:
        drawn = rng.choice(taught, 64, replace=False)
        return drawn, len(rows) + drawn, (torch.tensor(grades[drawn]),)

    def scores(unit: np.ndarray) -> np.ndarray:
        cosines = (unit[asked] * unit[len(rows) + asked]).sum(1)
        ranks = [rankdata(values) for values in (cosines, grades[asked])]
        standard = [(each - each.mean()) / each.std() for each in ranks]
        return standard[0] * standard[1]

    return Task(texts, FullPrefixCoSENT, batch, scores)


TASKS = {"banking": banking, "scifact": scifact, "sts": sts}


def run(task: Task, folder: Path, options: dict[str, Any], seed: int) -> np.ndarray:
    """Fine-tune, and return the scores of each query at each length, (lengths, queries)."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model, loss = Static(folder), task.loss(**options)
    ids = model.ids(task.texts)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for step in range(STEPS):
        left, right, rest = task.batch(rng)
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 20, (STEPS - step) / (0.9 * STEPS))
        optimizer.zero_grad()
        loss(model([ids[i] for i in left]), model([ids[i] for i in right]), *rest).backward()
        optimizer.step()
    with torch.no_grad():
        vectors = model(ids).numpy()
    found = []
    for k in LENGTHS:
        short = vectors[:, :k]
        found.append(task.scores(short / np.maximum(np.linalg.norm(short, axis=1, keepdims=True), 1e-12)))
    return np.array(found)


def table(name: str, folder: Path, data: Path, part: str) -> None:
    """Print the score of each loss at each length, and how far the first is ahead of the list and of the plain loss."""
    task = TASKS[name](data, part)
    # All prefixes of CoSENT cost little more than one, so it has no drawn ones.
    losses = {k: v for k, v in LOSSES.items() if task.loss is FullPrefixInfoNCE or "estimator" not in v}
    found = {label: np.mean([run(task, folder, options, s) for s in SEEDS], 0) for label, options in losses.items()}
    print(f"\n| {name}, {part} | {' | '.join(map(str, LENGTHS))} |\n|{'---|' * (len(LENGTHS) + 1)}")
    for label, scores in found.items():
        print(f"| {label} | {' | '.join(f'{value:.3f}' for value in scores.mean(1))} |")
    first, *others = found
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, found[first].shape[1], (DRAWS, found[first].shape[1]))
    for label in others:
        gap = found[first] - found[label]
        ends = np.percentile(gap[:, drawn].mean(2), (2.5, 97.5), axis=1)
        cells = (f"{g:+.3f} ({a:+.3f} to {b:+.3f})" for g, a, b in zip(gap.mean(1), *ends, strict=True))
        print(f"| {first} less {label} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print one table per task."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--task", choices=TASKS)
    given = parser.parse_args()
    data = Path(os.environ["FIRSTK_DATA"])
    for name in TASKS if given.task is None else [given.task]:
        table(name, given.folder, data, given.part)


if __name__ == "__main__":
    main()
