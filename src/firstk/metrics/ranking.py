"""Agreement of cosines with judgements at every prefix length: Spearman for pairs, nDCG for search.

Cosine is always taken after truncation: both sides are normalized by the norms of their first k
coordinates. A prefix of norm 0 has cosine 0 with everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import (
    check_count,
    check_finite,
    check_lengths,
    check_matrix_pair,
    check_rows,
    check_same_length,
)
from firstk.exceptions import InvalidInputError
from firstk.metrics._sweep import sweep


def pair_spearman(
    Z_left: ArrayLike, Z_right: ArrayLike, scores: ArrayLike, *, ks: ArrayLike | None = None
) -> np.ndarray:
    """Spearman correlation of the cosine of each pair with its score, for every prefix length.

    Parameters
    ----------
    Z_left, Z_right : array-like of shape (n, d)
        Row i of one is compared with row i of the other.
    scores : array-like of shape (n,)
        How alike the two are said to be. Ties get their mean rank, as in `scipy.stats.spearmanr`.
    ks : array-like of int, optional
        Prefix lengths, increasing; all from 1 to d if not given.

    Returns
    -------
    correlation : ndarray of shape (len(ks),)
        0 where the cosine is the same for all pairs and so ranks nothing (at k = 1 it knows only three
        values).

    Examples
    --------
    >>> left, right = [[1, 0], [1, 0], [1, 0]], [[1, 2], [1, 1], [1, 0]]
    >>> pair_spearman(left, right, [0.1, 0.5, 0.9])
    array([0., 1.])
    """
    owner = "pair_spearman"
    checked = _check_pair_codes(Z_left, Z_right, ks, owner)
    wanted = check_scores(scores, len(checked[0]), owner)
    return np.array([rank_correlation(cosines, wanted) for cosines in _cosines(*checked)])


def pair_cosines(Z_left: ArrayLike, Z_right: ArrayLike, *, ks: ArrayLike | None = None) -> np.ndarray:
    """Cosine of each pair, for every prefix length.

    Parameters
    ----------
    Z_left, Z_right : array-like of shape (n, d)
        Row i of one is compared with row i of the other.
    ks : array-like of int, optional
        Prefix lengths, increasing; all from 1 to d if not given.

    Returns
    -------
    cosines : ndarray of shape (n, len(ks))

    Examples
    --------
    >>> pair_cosines([[1, 0]], [[3, 4]])
    array([[1. , 0.6]])
    """
    return np.stack(list(_cosines(*_check_pair_codes(Z_left, Z_right, ks, "pair_cosines"))), axis=1)


def _check_pair_codes(
    Z_left: ArrayLike, Z_right: ArrayLike, ks: ArrayLike | None, owner: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    Z_left, Z_right = check_matrix_pair(Z_left, Z_right, owner, ("Z_left", "Z_right"))
    check_same_length(Z_left, Z_right, "Z_left", "Z_right", owner)
    return Z_left, Z_right, check_lengths(ks, Z_left.shape[1], owner)


def _cosines(Z_left: np.ndarray, Z_right: np.ndarray, ks: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the cosines of all pairs at each prefix length."""
    dots, left, right = np.zeros((3, len(Z_left)))
    columns = zip(_columns(Z_left), _columns(Z_right), strict=True)
    start = 0
    for k in ks.tolist():
        for a, b in islice(columns, k - start):
            dots += a * b
            left += a * a
            right += b * b
        start = k
        norms = np.sqrt(left) * np.sqrt(right)
        yield np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's correlation of two vectors; 0 where one of them is constant."""
    # scipy.stats takes longer to import than most curves take to compute.
    from scipy.stats import rankdata

    return float(_centred_unit(rankdata(b)) @ _centred_unit(rankdata(a)))


def midranks(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Ranks from 1 on, equal values sharing their mean rank, where value i occurs ``counts[i, b]`` times in draw b.

    Parameters
    ----------
    values : ndarray of shape (n,)
    counts : ndarray of shape (n, B)

    Returns
    -------
    ranks : ndarray of shape (n, B)
        A value that does not occur has the rank it would stand before.

    Examples
    --------
    >>> midranks(np.array([0.3, 0.1, 0.3]), np.array([[1.0], [2.0], [1.0]])).ravel()
    array([3.5, 1.5, 3.5])
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sums = np.add.reduceat(counts[order], starts, axis=0)  # (groups of equal values, B)
    ranks = np.cumsum(sums, axis=0) - (sums - 1) / 2
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))
    return ranks[group]


def ndcg(
    Z_docs: ArrayLike, Z_queries: ArrayLike, judgements: ArrayLike, *, at: int = 10, ks: ArrayLike | None = None
) -> np.ndarray:
    r"""NDCG of retrieval by cosine, for every prefix length: the mean of `ndcg_per_query` over queries.

    :math:`\mathrm{nDCG} = \sum_{r \le at} \frac{g_r}{\log_2(r + 1)}` over its largest possible value, with
    :math:`g_r` the relevance of the document at rank r: the linear gain of trec_eval, pytrec_eval and BEIR.

    Parameters
    ----------
    Z_docs : array-like of shape (n, d)
        Codes of the documents.
    Z_queries : array-like of shape (m, d)
        Codes of the queries.
    judgements : array-like of int of shape (j, 3)
        Rows (query row, document row, relevance). Pairs without one are not relevant. Every query with a
        judgement counts, one without a relevant document with 0, as in trec_eval.
    at : int
        How many documents are looked at.
    ks : array-like of int, optional
        Prefix lengths, increasing; all from 1 to d if not given.

    Returns
    -------
    score : ndarray of shape (len(ks),)

    Examples
    --------
    >>> docs, queries = [[1, 1], [1, -1], [1, 0]], [[1, 0.9], [1, -0.8]]
    >>> ndcg(docs, queries, [[0, 0, 1], [1, 1, 1]], at=1)
    array([0.5, 1. ])
    """
    _, values = ndcg_per_query(Z_docs, Z_queries, judgements, at=at, ks=ks)
    return values.mean(axis=0)


def ndcg_per_query(
    Z_docs: ArrayLike, Z_queries: ArrayLike, judgements: ArrayLike, *, at: int = 10, ks: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """NDCG of each query that has judgements, for every prefix length; arguments as in `ndcg`.

    Returns
    -------
    queries : ndarray of int of shape (q,)
        Rows of the queries that have judgements, ascending.
    values : ndarray of shape (q, len(ks))
        Their scores. Averages over a part of the queries (seen and unseen documents, say) are means of rows.
    """
    owner = "ndcg"
    Z_docs, Z_queries = check_matrix_pair(Z_docs, Z_queries, owner, ("Z_docs", "Z_queries"))
    ks = check_lengths(ks, Z_docs.shape[1], owner)
    at = check_count(at, "at", owner)
    judged, keys, gains = _check_judgements(judgements, len(Z_docs), len(Z_queries), owner)
    ideal = _ideal(keys // len(Z_docs), gains, judged, at)
    shown = min(at, len(Z_docs))
    values = np.zeros((len(judged), len(ks)))
    for block in sweep(Z_docs, Z_queries[judged], ks, "cosine"):
        rows = block.rows
        wanted = judged[rows, None] * len(Z_docs) + block.nearest(shown)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found = np.where(keys[place] == wanted, gains[place], 0.0)
        values[rows, block.i] = found @ _discounts(shown)
    return judged, np.divide(values, ideal[:, None], out=values, where=ideal[:, None] > 0)


def _discounts(n: int) -> np.ndarray:
    return 1.0 / np.log2(np.arange(2, n + 2))


def _ideal(query: np.ndarray, gains: np.ndarray, judged: np.ndarray, at: int) -> np.ndarray:
    """Largest possible DCG of each judged query: its relevances in descending order."""
    order = np.lexsort((-gains, query))
    place = np.searchsorted(judged, query[order])
    rank = np.arange(len(order)) - np.searchsorted(place, place)
    parts = np.where(rank < at, gains[order] / np.log2(rank + 2.0), 0.0)
    return np.bincount(place, weights=parts, minlength=len(judged))


def _check_judgements(
    judgements: ArrayLike, n_docs: int, n_queries: int, owner: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Judged queries, sorted keys (query row times n_docs plus document row), and their gains."""
    table = np.asarray(judgements)
    if table.ndim != 2 or table.shape[1] != 3 or len(table) == 0 or table.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{owner} takes 'judgements' as ints of shape (j, 3): query row, document row, relevance. "
            f"Got {table.dtype} of shape {table.shape}."
        )
    query = check_rows(table[:, 0], n_queries, owner, "judgements[:, 0] (query rows)")
    doc = check_rows(table[:, 1], n_docs, owner, "judgements[:, 1] (document rows)")
    keys, first = np.unique(query * n_docs + doc, return_index=True)
    if len(keys) < len(table):
        raise InvalidInputError(
            f"{owner} takes one judgement per query and document. Got {len(table) - len(keys)} repeated "
            f"among {len(table)}; keep one of each."
        )
    # A negative relevance (spam, in some collections) earns nothing, as in trec_eval.
    return np.unique(query), keys, np.maximum(table[first, 2], 0).astype(np.float64)


def check_scores(scores: ArrayLike, n: int, owner: str) -> np.ndarray:
    """Return one finite score per pair; scores that are all equal raise."""
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n,):
        raise InvalidInputError(f"{owner} takes one score per pair: shape ({n},). Got {values.shape}.")
    check_finite(values, owner, "scores")
    if values.min() == values.max():
        raise InvalidInputError(
            f"{owner} needs scores that differ. All {n} are {values[0]:g}; "
            "for positives without degrees use positive_recall."
        )
    return values


def _centred_unit(ranks: np.ndarray) -> np.ndarray:
    """Ranks centred and scaled to norm 1, so that a dot product is a correlation; zeros if all are equal."""
    centred = ranks - ranks.mean()
    norm = float(np.linalg.norm(centred))
    return centred / norm if norm > 0 else centred


def _columns(Z: np.ndarray) -> Iterator[np.ndarray]:
    """Columns one by one in float64, rows scaled by their largest entry so that no square overflows."""
    size = np.abs(Z).max(axis=1).astype(np.float64)
    size[size == 0] = 1.0
    return (Z[:, j] / size for j in range(Z.shape[1]))
