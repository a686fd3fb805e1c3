"""Make the embedded Banking77 questions from the full set: ``FIRSTK_DATA=... python -m benchmarks.make_banking``.

Of each of the 77 intents it draws up to 39 questions of the official training part and 13 of the official test part
(seed 0). Vectors become eight-bit integers with one scale a column, which rounds them to 1/127 of the largest entry of
their column. The same input gives the same files.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np

from firstk_papers.datasets import data_folder, load_banking77

HOME = Path(__file__).parents[1] / "src" / "firstk" / "data" / "banking"
A_CLASS = {"train": 39, "test": 13}


def drawn(labels: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return up to `most` rows of each class, in their order."""
    rows = [rng.permutation(np.flatnonzero(labels == one))[:most] for one in np.unique(labels)]
    return np.sort(np.concatenate(rows))


def rounded(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors as int8, and the scale of each column."""
    scale = np.abs(X).max(axis=0) / np.float32(127)
    scale[scale == 0] = 1.0  # a column of zeros stays one
    return np.rint(X / scale).astype(np.int8), scale.astype(np.float32)


def main() -> None:
    """Write vectors.npz and questions.tsv."""
    data, source, rng = load_banking77(), data_folder() / "banking77", np.random.default_rng(0)
    names = json.loads((source / "categories.json").read_text("utf-8"))
    table, parts = io.StringIO(), []
    table.write("id\tpart\tintent\tquestion\n")
    for part, labels, X in (("train", data.y_train, data.X_train), ("test", data.y_test, data.X_test)):
        with open(source / f"{part}.csv", encoding="utf-8", newline="") as file:
            texts = [(row["text"], row["category"]) for row in csv.DictReader(file)]
        if [names.index(intent) for _, intent in texts] != labels.tolist():
            sys.exit(f"{part}.csv and the embeddings are in different orders.")
        rows = drawn(labels, A_CLASS[part], rng)
        parts.append(X[rows])
        for row in rows:
            text, intent = texts[row]
            table.write(f"{part}-{row}\t{part}\t{intent}\t{' '.join(text.split())}\n")
    vectors, scale = rounded(np.concatenate(parts))
    HOME.mkdir(exist_ok=True)
    (HOME / "questions.tsv").write_text(table.getvalue(), encoding="utf-8", newline="\n")
    np.savez_compressed(HOME / "vectors.npz", vectors=vectors, scale=scale)
    sizes = sum(file.stat().st_size for file in HOME.iterdir())
    print(f"{len(vectors):,} questions, {sizes / 1e6:.2f} MB in {HOME}")


if __name__ == "__main__":
    main()
