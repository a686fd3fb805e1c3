"""SciFact: nDCG@10 over all 5,183 documents, for queries whose documents were learned from and for others apart.

The official test part has been looked at many times, so all 1,109 queries are divided anew, and a query is unseen where
no document that is relevant to it is relevant to one that was learned from. `official` has the official parts, for
comparison with other reports.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

import numpy as np

from benchmarks.evidence import scores
from benchmarks.evidence.data import Part, Sealed, Task
from benchmarks.evidence.tasks.files import about, part_of, vectors

SHARES = {"learned": 0.4, "validation": 0.2}  # of the queries; the others are for the test


@dataclass(frozen=True, eq=False)
class Judged:
    """Queries and relevant documents of a part."""

    queries: np.ndarray
    relevant: tuple[dict[int, float], ...]

    @classmethod
    def of(cls, qrels: np.ndarray, queries: np.ndarray) -> Judged:
        """Return the judgements of some queries; those without a relevant document are left out."""
        by_query: dict[int, dict[int, float]] = {}
        for query, document, grade in qrels.tolist():
            if grade > 0:
                by_query.setdefault(query, {})[document] = float(grade)
        kept = np.array([q for q in queries.tolist() if q in by_query], dtype=int)
        return cls(kept, tuple(by_query[q] for q in kept.tolist()))

    @property
    def documents(self) -> np.ndarray:
        """The relevant documents."""
        return np.unique([document for judged in self.relevant for document in judged])

    def positives(self, model: str) -> tuple[np.ndarray, np.ndarray, None]:
        """Return pairs of queries and relevant documents."""
        rows = [(q, document) for q, judged in zip(self.queries, self.relevant, strict=True) for document in judged]
        left, right = np.array(rows).T
        return vectors("scifact", model, "Q")[left], vectors("scifact", model, "D")[right], None

    def search(self, model: str, learned: Set[int]) -> scores.Search:
        """Return the search of these queries; seen are those with a document that was learned from."""
        seen = np.array([any(document in learned for document in judged) for judged in self.relevant], dtype=bool)
        D, Q = (vectors("scifact", model, key) for key in ("D", "Q"))
        return scores.Search(D, Q[self.queries], self.relevant, seen)


def divided() -> tuple[Judged, Judged, Judged]:
    """Return the queries to learn from, to choose on and to test on."""
    qrels = np.concatenate([about("scifact", "qrels_train"), about("scifact", "qrels_test")])
    queries = np.unique(qrels[:, 0])
    order = np.random.default_rng(5).permutation(queries)
    first, second = (round(share * len(order)) for share in np.cumsum(list(SHARES.values())))
    return Judged.of(qrels, order[:first]), Judged.of(qrels, order[first:second]), Judged.of(qrels, order[second:])


def _task(name: str, model: str, parts: Callable[[], tuple[Judged, Judged, Judged]]) -> Task:
    learned, choose, _ = parts()
    documents, known = vectors("scifact", model, "D"), frozenset(learned.documents.tolist())
    part = Part(documents, pairs=learned.positives(model))
    return Task(
        name, model, "nDCG@10", training=part, everything=part, validation=choose.search(model, known),
        test=Sealed(lambda: parts()[2].search(model, known)), score=scores.ndcg,
    )  # fmt: skip


def task(model: str) -> Task:
    """Return the queries divided anew."""
    return _task("scifact", model, divided)


def official(model: str) -> Task:
    """Return the official parts; a fifth of the training queries is for choosing."""
    return _task("scifact official", model, officially_divided)


def officially_divided() -> tuple[Judged, Judged, Judged]:
    """Return the official parts, with a fifth of the training queries to choose on."""
    train, test = about("scifact", "qrels_train"), about("scifact", "qrels_test")
    queries = np.unique(train[:, 0])
    held = part_of(len(queries), 0.2, 5)
    return Judged.of(train, queries[~held]), Judged.of(train, queries[held]), Judged.of(test, np.unique(test[:, 0]))
