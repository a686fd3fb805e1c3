r"""The mean of queries, which have something in common that documents do not: subtracted from queries alone.

A query less the mean of the documents keeps :math:`c = \bar q - \mu`, which adds :math:`c^\top d / |d|` to the score of
document d whatever was asked: a bias among documents, worst in short codes. Stored codes do not depend on it, so that
queries of a log can be added to an encoder whose codes are in a store.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from firstk.bits.weights import FEWEST_QUERIES
from firstk.data.task import Search
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.auto import N_FOLDS, weighted_score
from firstk.exceptions import FewRowsWarning
from firstk.quality.paired import select

# How many queries the mean of the documents counts as.
PRIOR = 30
# Queries on which both means are compared.
MOST_COMPARED = 1000


def shrunken_mean(queries: np.ndarray, mean: np.ndarray) -> np.ndarray:
    r"""Return :math:`(n \bar q + 30 \mu) / (n + 30)` of n queries."""
    n = len(queries)
    shrunken: np.ndarray = (queries.sum(axis=0, dtype=np.float64) + PRIOR * mean) / (n + PRIOR)
    return shrunken


def with_own_mean(encoder: FittedEncoder, queries: np.ndarray, documents: np.ndarray) -> FittedEncoder:
    """Return the encoder with the mean of the queries, shrunken, where it finds more of the full-width neighbors.

    Both means are compared on queries that are held out in turn, by recall@10 among the documents over all lengths, and
    the one that is there stays unless the other is better (:mod:`firstk.quality.paired`).

    Parameters
    ----------
    encoder : FittedEncoder
        That subtracts a mean.
    queries : ndarray of shape (m, p)
        Distinct ones count once each; in the order of their hashes.
    documents : ndarray of shape (n, p)
        Some documents to look among.
    """
    if len(queries) < FEWEST_QUERIES:
        warnings.warn(
            f"{len(queries)} queries are too few to estimate a mean: below {FEWEST_QUERIES} it may harm. Give a "
            "hundred or more.",
            FewRowsWarning,
            stacklevel=2,
        )
    if len(queries) < 2 * N_FOLDS or len(documents) <= 10:
        return encoder
    number, found = np.arange(len(queries)) % N_FOLDS, []
    for fold in range(N_FOLDS):
        held, seen = np.flatnonzero(number == fold)[: MOST_COMPARED // N_FOLDS], queries[number != fold]
        data = Search(queries[held], documents)
        means = (encoder.query_mean, shrunken_mean(seen, encoder.mean))
        found.append(
            [weighted_score(replace(encoder, query_mean=mean), data, "recall@10", "harmonic") for mean in means]
        )
    scores = np.mean([[score for score, _ in both] for both in found], axis=0)
    draws = np.mean([[drawn for _, drawn in both] for both in found], axis=0)
    if select(scores, draws).chosen == 0:
        return encoder
    return replace(encoder, query_mean=shrunken_mean(queries, encoder.mean))
