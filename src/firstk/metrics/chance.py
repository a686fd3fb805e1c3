"""Scores of guessing: what a metric gives where vectors say nothing.

A score that is no better is most often a mistake in the inputs: labels, ids or row numbers of other vectors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from firstk.data.task import Data, Pairs, Rows, Search, n_rows


def guessed_label(data: Rows) -> float | None:
    """Return the accuracy of guessing: always the label that is most frequent among the references, or one of them."""
    if data.y is None or data.reference is None or data.reference.y is None:
        return None
    labels, counts = np.unique(np.asarray(data.reference.y), return_counts=True)
    share = np.array([np.mean(np.asarray(data.y) == label) for label in labels])
    return float(max(share[counts.argmax()], share @ counts / counts.sum()))


def no_relation(data: Data) -> float | None:
    """Return 0: the correlation or R² of what has nothing to do with the targets."""
    return 0.0


def random_partner(data: Pairs) -> float | None:
    """Return the chance that ten right sides drawn at random hold the partner."""
    return min(1.0, 10 / n_rows(data.right))


def random_ranking(measure: str, at: int) -> Callable[[Search], float | None]:
    r"""Return what gives the expected score of documents in random order, by a measure of `firstk.metrics.search`.

    Of a query with R relevant documents among N: each of them is at each rank with probability 1 / N, so that nDCG is
    :math:`\sum_{r \le 10} 1 / \log_2(r + 1)` times the mean grade over the largest possible gain, and recall is the
    share of the ranks that are looked at. The first of them is at rank r with probability
    :math:`R / (N - r + 1) \prod_{i < r} (1 - R / (N - i + 1))`, of which MRR is the mean of 1 / r.
    """

    def chance(data: Search) -> float | None:
        relevance = np.asarray(data.relevance)
        relevance = relevance[relevance[:, 2] > 0]
        if not len(relevance):
            return None
        weights = None if data.weight is None else np.asarray(data.weight, dtype=float)
        scores, counts = [], []
        order = np.argsort(relevance[:, 0], kind="stable")
        queries, first = np.unique(relevance[order, 0], return_index=True)
        for query, grades in zip(queries.tolist(), np.split(relevance[order, 2], first[1:]), strict=True):
            among = _candidates(data, query)
            scores.append(_EXPECTED[measure](grades.astype(float), max(among, len(grades)), at))
            counts.append(1.0 if weights is None else float(weights[query]))
        return float(np.average(scores, weights=counts)) if sum(counts) > 0 else None

    return chance


def _candidates(data: Search, query: int) -> int:
    """Return how many documents a query looks among."""
    among = n_rows(data.documents)
    if data.query_field is not None and data.document_field is not None:
        among = int(np.sum(np.asarray(data.document_field) == np.asarray(data.query_field)[query]))
    return among - (data.query_rows is not None and int(np.asarray(data.query_rows)[query]) >= 0)


def _random_ndcg(grades: np.ndarray, n: int, at: int) -> float:
    discounts = 1 / np.log2(np.arange(2, min(at, n) + 2))
    best = np.sort(grades)[::-1][: len(discounts)]
    return float(discounts.sum() * grades.sum() / n / (best @ discounts[: len(best)]))


def _random_mrr(grades: np.ndarray, n: int, at: int) -> float:
    expected, none_before = 0.0, 1.0
    for rank in range(1, min(at, n) + 1):
        here = min(1.0, len(grades) / (n - rank + 1))
        expected += none_before * here / rank
        none_before *= 1 - here
    return expected


def _random_recall(grades: np.ndarray, n: int, at: int) -> float:
    return min(at, n) / n


_EXPECTED = {"ndcg": _random_ndcg, "mrr": _random_mrr, "recall": _random_recall}
