"""The same texts under three models, and how a store of them scores for one query each.

SciFact: nDCG@10 of claims against abstracts. Banking77: whether the nearest stored question has the query's intent.
Queries of the test part were never looked at while methods were built: the other part was.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np

from firstk_papers.datasets import data_folder

MODELS = ("minilm", "potion", "mpnet")
DATA = ("scifact", "banking77")
PAIRS = (500, 1000, 3000)
_FILES = {"scifact": ("retrieval-scifact/scifact", "D", "Q"), "banking77": ("banking77/banking77", "X_train", "X_test")}
_PARTS = 12345
_DISCOUNT = 1 / np.log2(np.arange(2, 12))


@dataclass(frozen=True)
class Case:
    """An upgrade from one model to another, with so many texts embedded by both."""

    data: str
    old: str
    new: str
    n_pairs: int

    def __str__(self) -> str:
        return f"{self.data} {self.old} -> {self.new}, {self.n_pairs} pairs"

    @property
    def rows(self) -> np.ndarray:
        """The stored texts that both models have embedded."""
        return np.random.default_rng([self.n_pairs, 1]).permutation(len(vectors(self.data, self.old)[0]))[
            : self.n_pairs
        ]


def cases(data: tuple[str, ...] = DATA, n_pairs: tuple[int, ...] = PAIRS) -> list[Case]:
    """Return every ordered pair of models on every set with every number of pairs."""
    return [Case(d, old, new, n) for n in n_pairs for d in data for old, new in permutations(MODELS, 2)]


@cache
def vectors(data: str, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Return stored vectors and vectors of the test queries, of unit norm, in float32."""
    file, stored, queries = _FILES[data]
    with np.load(data_folder() / f"{file}_{model}.npz") as arrays:
        sides = [arrays[name].astype(np.float32) for name in (stored, queries)]
    store, asked = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return store, asked[test_queries()[data]]


@cache
def test_queries() -> dict[str, np.ndarray]:
    """Return the test part of the queries of each set: a half of them, drawn once."""
    rng = np.random.default_rng(_PARTS)
    scifact, banking = rng.permutation(1109)[554:], rng.permutation(3080)[1540:]
    return {"scifact": np.sort(scifact), "banking77": np.sort(banking)}


def scores(data: str, store: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the score of each test query against a store, compared by cosine."""
    store, queries = (
        side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-30) for side in (store, queries)
    )
    found = queries.astype(np.float32) @ store.astype(np.float32).T
    return _ndcg(found) if data == "scifact" else _same_intent(found)


def _ndcg(found: np.ndarray) -> np.ndarray:
    first = np.argpartition(-found, 10, axis=1)[:, :10]
    first = np.take_along_axis(first, np.argsort(-np.take_along_axis(found, first, axis=1), axis=1), axis=1)
    relevant = _relevant()
    made = []
    for query, documents in zip(test_queries()["scifact"], first, strict=True):
        gains = np.isin(documents, relevant[int(query)])
        made.append((gains * _DISCOUNT).sum() / _DISCOUNT[: len(relevant[int(query)])].sum())
    return np.array(made)


def _same_intent(found: np.ndarray) -> np.ndarray:
    stored, asked = _intents()
    return (stored[found.argmax(axis=1)] == asked[test_queries()["banking77"]]).astype(float)


@cache
def _relevant() -> dict[int, list[int]]:
    with np.load(data_folder() / "retrieval-scifact" / "scifact_minilm.npz") as arrays:
        table = np.concatenate([arrays["qrels_train"], arrays["qrels_test"]])
    made: dict[int, list[int]] = {}
    for query, document, grade in table.tolist():
        if grade > 0:
            made.setdefault(query, []).append(document)
    return made


@cache
def _intents() -> tuple[np.ndarray, np.ndarray]:
    with np.load(data_folder() / "banking77" / "banking77_minilm.npz") as arrays:
        return arrays["y_train"], arrays["y_test"]
