"""Scores of guessing: what a metric gives where vectors say nothing.

A score that is no better is most often a mistake in the inputs: labels, ids or row numbers of other vectors.
"""

from __future__ import annotations

import numpy as np

from firstk.metrics.scorers import EvaluationData, n_rows


def guessed_label(data: EvaluationData) -> float | None:
    """Return the accuracy of guessing: always the label that is most frequent among the references, or one of them."""
    if data.y is None or data.y_ref is None:
        return None
    labels, counts = np.unique(np.asarray(data.y_ref), return_counts=True)
    share = np.array([np.mean(np.asarray(data.y) == label) for label in labels])
    return float(max(share[counts.argmax()], share @ counts / counts.sum()))


def no_relation(data: EvaluationData) -> float | None:
    """Return 0: the correlation or R² of what has nothing to do with the targets."""
    return 0.0


def random_partner(data: EvaluationData) -> float | None:
    """Return the chance that ten right sides drawn at random hold the partner."""
    return min(1.0, 10 / n_rows(data.right))


def random_ranking(data: EvaluationData) -> float | None:
    r"""Return the expected nDCG@10 of documents in random order.

    A document of relevance g is at each rank with probability 1 / N, so that the expected gain of a query is
    :math:`\sum_{r \le 10} 1 / \log_2(r + 1)` times the mean of :math:`g` over all N documents, over the largest
    possible.
    """
    relevance = np.asarray(data.relevance)
    discounts = 1 / np.log2(np.arange(2, 12))
    n, gains = n_rows(data.documents), []
    for query in np.unique(relevance[:, 0]):
        grades = np.sort(relevance[relevance[:, 0] == query, 2].astype(float))[::-1]
        grades = grades[grades > 0]
        if len(grades):
            ideal = float(grades[:10] @ discounts[: len(grades[:10])])
            gains.append(discounts[: min(10, n)].sum() * grades.sum() / n / ideal)
    return float(np.mean(gains)) if gains else None
