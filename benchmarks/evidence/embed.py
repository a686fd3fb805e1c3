"""Vectors of models that come as packages: ``python -m benchmarks.evidence.embed wordllama``.

Texts are those of the data folder, in the order of its `*_minilm.npz` files. Vectors of norm 1 go to the cache of the
benchmark as float16. WordLlama (MIT) was trained with a Matryoshka loss, so that its own truncation is a peer.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.evidence.scores import unit
from benchmarks.evidence.tasks.files import about, cache_folder
from firstk._base.atomic_file import atomic_file
from firstk_papers.datasets import data_folder

Embed = Callable[[list[str]], np.ndarray]


def banking77() -> dict[str, list[str]]:
    """Return the questions of both parts."""
    found = {}
    for part in ("train", "test"):
        with (data_folder() / "banking77" / f"{part}.csv").open(encoding="utf-8", newline="") as file:
            found[f"X_{part}"] = [row["text"] for row in csv.DictReader(file)]
    return found


def stsb() -> dict[str, list[str]]:
    """Return the different sentences of all parts."""
    pairs = {part: about("sts", f"pairs_{part}") for part in ("train", "dev", "test")}
    texts = [""] * (1 + max(int(rows.max()) for rows in pairs.values()))
    for part, rows in pairs.items():
        with gzip.open(data_folder() / "stsb" / f"sts-{part}.csv.gz", "rt", encoding="utf-8") as lines:
            for line, (a, b) in zip(lines, rows, strict=True):
                texts[a], texts[b] = line.rstrip("\r\n").split("\t")[5:7]
    return {"E": texts}


def scifact() -> dict[str, list[str]]:
    """Return titles with abstracts, and queries."""
    found = {}
    for key, name, ids in (("D", "corpus", "doc_ids"), ("Q", "queries", "query_ids")):
        texts = {}
        with gzip.open(data_folder() / "retrieval-scifact" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                one = json.loads(line)
                texts[one["_id"]] = f"{one.get('title', '')} {one['text']}".strip()
        found[key] = [texts[str(i)] for i in about("scifact", ids)]
    return found


SETS = {"banking77": banking77, "stsb": stsb, "scifact": scifact}


def wordllama() -> Embed:
    """Return WordLlama, 256 coordinates, from the files of its package.

    The package looks for its tokenizer in a folder that it does not install it to, so a cache with both files is made.
    """
    import wordllama as package

    root = Path(package.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        for name in ("weights", "tokenizers"):
            shutil.copytree(root / name, Path(folder) / name)
        model = package.WordLlama.load(cache_dir=folder, disable_download=True)
    return lambda texts: np.asarray(model.embed(texts, norm=True))


EMBEDDERS: dict[str, Callable[[], Embed]] = {"wordllama": wordllama}


def main(arguments: Sequence[str] | None = None) -> int:
    """Embed all sets that are not embedded yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=EMBEDDERS)
    model = parser.parse_args(arguments).model
    embed = EMBEDDERS[model]()
    for name, texts in SETS.items():
        path = cache_folder() / f"{name}_{model}.npz"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {key: unit(embed(rows)).astype(np.float16) for key, rows in texts().items()}
        with atomic_file(path, "Vectors") as draft, draft.open("wb") as file:
            np.savez(file, **arrays)
        print(f"{path}: " + ", ".join(f"{key} {array.shape}" for key, array in arrays.items()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
