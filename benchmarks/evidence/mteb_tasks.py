"""Tasks of mteb from local files, and a model that looks vectors up: ``python -m benchmarks.evidence.mteb_tasks``.

STSBenchmark, SciFact and Banking77Classification with their official test parts: the data are those of the data folder,
everything else is mteb's. Its scores are printed beside ours for the same codes.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import mteb
import numpy as np
from datasets import Dataset, DatasetDict
from mteb.models.model_meta import ModelMeta

from benchmarks.evidence import embed, scores
from benchmarks.evidence.mteb_model import PrefixModel
from benchmarks.evidence.tasks import banking77 as banking
from benchmarks.evidence.tasks import scifact, sts
from benchmarks.evidence.tasks.files import about, vectors
from firstk import PrefixEncoder
from firstk_papers.datasets import data_folder


class StoredVectors:
    """A model of mteb that returns stored vectors of texts."""

    def __init__(self, name: str, stored: Mapping[str, np.ndarray]):
        self.stored = stored
        self.mteb_model_meta = ModelMeta.create_empty({"name": f"stored/{name}", "similarity_fn_name": "cosine"})

    def encode(self, inputs: Any, **_: Any) -> np.ndarray:
        """Return the vectors of all texts."""
        return np.stack([self.stored[text] for batch in inputs for text in batch["text"]])


def sts_benchmark() -> Any:
    """Return STSBenchmark with the test part of the data folder."""
    task, texts, rows = mteb.get_task("STSBenchmark"), embed.stsb()["E"], about("sts", "pairs_test")
    columns = {
        "sentence1": [texts[i] for i in rows[:, 0]],
        "sentence2": [texts[i] for i in rows[:, 1]],
        "score": about("sts", "score_test").tolist(),
    }
    task.dataset, task.data_loaded = DatasetDict({"test": Dataset.from_dict(columns)}), True
    return task


def banking77() -> Any:
    """Return Banking77Classification with the parts of the data folder."""
    task, texts = mteb.get_task("Banking77Classification"), embed.banking77()
    parts = {
        part: Dataset.from_dict({"text": texts[f"X_{part}"], "label": about("banking77", f"y_{part}").tolist()})
        for part in ("train", "test")
    }
    task.dataset, task.data_loaded = DatasetDict(parts), True
    return task


def scifact_search() -> Any:
    """Return SciFact with the official test queries of the data folder."""
    task = mteb.get_task("SciFact")
    corpus = [json.loads(line) for line in _lines("corpus")]
    queries = {one["_id"]: one["text"] for one in map(json.loads, _lines("queries"))}
    documents, asked = about("scifact", "doc_ids"), about("scifact", "query_ids")
    relevant: dict[str, dict[str, int]] = {}
    for query, document, grade in about("scifact", "qrels_test").tolist():
        relevant.setdefault(str(asked[query]), {})[str(documents[document])] = int(grade)
    task.dataset = {"default": {"test": {
        "corpus": Dataset.from_list([{"id": one["_id"], "title": one["title"], "text": one["text"]} for one in corpus]),
        "queries": Dataset.from_list([{"id": name, "text": queries[name]} for name in relevant]),
        "relevant_docs": relevant, "top_ranked": None,
    }}}  # fmt: skip
    task.data_loaded = True
    return task


def _lines(name: str) -> list[str]:
    with gzip.open(data_folder() / "retrieval-scifact" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return list(lines)


def score(model: Any, task: Any) -> float:
    """Return the main score of mteb."""
    result = mteb.evaluate(model, task, cache=None, show_progress_bar=False)
    return float(result.task_results[0].get_score())


def compared(model: str) -> Iterator[tuple[str, int, float, float]]:
    """Return tasks, lengths, and the scores of mteb and ours for the same codes."""
    encoder = PrefixEncoder(64, objective="similarity", verbose=False).fit(sts.sentences(model))
    stored = StoredVectors(model, dict(zip(embed.stsb()["E"], vectors("sts", model, "E"), strict=True)))
    for k in (8, 32):
        own = scores.spearman(_encode(encoder), sts.pairs(model, "test"), (k,))
        yield "STSBenchmark", k, score(PrefixModel(stored, encoder, k), sts_benchmark()), own["all"].score()[0]
    encoder = PrefixEncoder(64, objective="similarity", verbose=False).fit(vectors("scifact", model, "D"))
    stored = _stored(model, "scifact", embed.scifact())
    search = scifact.officially_divided()[2].search(model, frozenset())
    for k in (16, 64):
        own = scores.ndcg(_encode(encoder), search, (k,))
        yield "SciFact", k, score(PrefixModel(stored, encoder, k), scifact_search()), own["all"].score()[0]
    intents = banking.few_shot(model)
    encoder = PrefixEncoder(64, objective="fisher", verbose=False).fit(intents.everything.X, intents.everything.y)
    stored = _stored(model, "banking77", embed.banking77())
    for k in (8, 32):
        # Codes are scaled by the model, which is mteb's way, and not to norm 1.
        own = scores.few_shot(_encode(encoder), intents.test.opened(), (k,), scale=np.asarray)
        yield "Banking77Classification", k, score(PrefixModel(stored, encoder, k), banking77()), own["all"].score()[0]


def _stored(model: str, name: str, texts: Mapping[str, list[str]]) -> StoredVectors:
    pairs = (zip(rows, vectors(name, model, key), strict=True) for key, rows in texts.items())
    return StoredVectors(model, {text: row for pair in pairs for text, row in pair})


# What last digits may change: a logistic regression that stops before it has converged carries them on.
ROUNDING = {"Banking77Classification": 1e-3}


def main() -> int:
    """Print scores of mteb beside ours at some lengths; 1 where they differ by more than rounding."""
    differ = False
    for task, k, theirs, own in compared("minilm"):
        print(f"{task}, k = {k}: mteb {theirs:.5f}, ours {own:.5f}", flush=True)
        differ |= abs(theirs - own) > ROUNDING.get(task, 1e-4)
    return int(differ)


def _encode(encoder: PrefixEncoder) -> Any:
    return lambda X, k, side: encoder.encoder_.encode(X, k, side=side)


if __name__ == "__main__":
    sys.exit(main())
