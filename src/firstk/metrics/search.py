"""Search by cosine against judged documents, at every prefix length: nDCG, reciprocal rank and recall.

Candidates are all documents, or all that share a field's value with the query. Cosine is taken after truncation: both
sides are normalized by the norms of their first k coordinates. What a query earns is kept by query, so that means can
be weighted, resampled and taken over a part of the queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_choice, check_count, check_lengths, check_matrix_pair, check_rows
from firstk.exceptions import InvalidInputError
from firstk.metrics._sweep import nearest


@dataclass(frozen=True, eq=False)
class Judgements:
    """Checked judgements: one gain for each key, and each query that has any."""

    queries: np.ndarray  # (q,) rows of the judged queries, ascending
    keys: np.ndarray  # (j,) query row times the number of documents plus document row, ascending
    gains: np.ndarray  # (j,) not negative
    n_docs: int

    def gains_of(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return the gains of documents, shape (q, r), found for each of q queries; 0 where there is no judgement."""
        wanted = queries[:, None] * self.n_docs + documents
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[place] == wanted, self.gains[place], 0.0)

    def by_query(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the position of the query, the rank in the best order, and the gain of every judgement."""
        query = self.keys // self.n_docs
        order = np.lexsort((-self.gains, query))
        place = np.searchsorted(self.queries, query[order])
        return place, np.arange(len(order)) - np.searchsorted(place, place), self.gains[order]


@dataclass(frozen=True)
class Measure:
    """What the first documents of a ranking are worth to a query.

    Attributes
    ----------
    earned : callable
        From the gains of the documents found, shape (q, r), nearest first, to what each query earns.
    possible : callable
        From judgements and the number of documents looked at to the most that each query could earn.
    ordered : bool
        Whether the order among the documents looked at matters.
    """

    earned: Callable[[np.ndarray], np.ndarray]
    possible: Callable[[Judgements, int], np.ndarray]
    ordered: bool = True


def _discounted(found: np.ndarray) -> np.ndarray:
    return found @ (1.0 / np.log2(np.arange(2, found.shape[1] + 2)))


def _best_discounted(judged: Judgements, at: int) -> np.ndarray:
    """Largest possible DCG of each judged query: its relevances in descending order."""
    place, rank, gains = judged.by_query()
    parts = np.where(rank < at, gains / np.log2(rank + 2.0), 0.0)
    return np.bincount(place, weights=parts, minlength=len(judged.queries))


def _reciprocal(found: np.ndarray) -> np.ndarray:
    hits = found > 0
    return np.where(hits.any(axis=1), 1.0 / (hits.argmax(axis=1) + 1.0), 0.0)


def _relevant(judged: Judgements, at: int) -> np.ndarray:
    place, _, gains = judged.by_query()
    return np.bincount(place, weights=gains > 0, minlength=len(judged.queries))


MEASURES: dict[str, Measure] = {
    "ndcg": Measure(_discounted, _best_discounted),
    "mrr": Measure(_reciprocal, lambda judged, at: np.ones(len(judged.queries))),
    "recall": Measure(lambda found: (found > 0).sum(axis=1).astype(np.float64), _relevant, ordered=False),
}


def ndcg(
    Z_docs: ArrayLike, Z_queries: ArrayLike, judgements: ArrayLike, *, at: int = 10, ks: ArrayLike | None = None
) -> np.ndarray:
    r"""NDCG of retrieval by cosine, for every prefix length: the mean of `search_per_query` over queries.

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
    return search_per_query(Z_docs, Z_queries, judgements, "ndcg", at=at, ks=ks)[1].mean(axis=0)


def mrr(
    Z_docs: ArrayLike, Z_queries: ArrayLike, judgements: ArrayLike, *, at: int = 10, ks: ArrayLike | None = None
) -> np.ndarray:
    """Mean reciprocal rank of the first relevant document, for every prefix length; arguments as in `ndcg`.

    A query whose first `at` documents hold no relevant one counts 0, as MRR@10 of MS MARCO does. Grades above 0 are
    relevant, and no more so than 1.

    Examples
    --------
    >>> docs, queries = [[1, 1], [1, -1], [1, 0]], [[1, 0.9], [1, -0.8]]
    >>> mrr(docs, queries, [[0, 0, 1], [1, 1, 1]])
    array([0.75, 1.  ])
    """
    return search_per_query(Z_docs, Z_queries, judgements, "mrr", at=at, ks=ks)[1].mean(axis=0)


def relevant_recall(
    Z_docs: ArrayLike, Z_queries: ArrayLike, judgements: ArrayLike, *, at: int = 100, ks: ArrayLike | None = None
) -> np.ndarray:
    """Share of a query's relevant documents among its `at` nearest, mean over queries; arguments as in `ndcg`.

    This is recall of trec_eval and BEIR: of judged documents, where `neighbor_recall` is of full-width neighbors.

    Examples
    --------
    >>> docs, queries = [[1, 1], [1, -1], [1, 0]], [[1, 0.9], [1, -0.8]]
    >>> relevant_recall(docs, queries, [[0, 0, 1], [0, 1, 1], [1, 1, 1]], at=1)
    array([0.25, 0.75])
    """
    return search_per_query(Z_docs, Z_queries, judgements, "recall", at=at, ks=ks)[1].mean(axis=0)


def search_per_query(
    Z_docs: ArrayLike,
    Z_queries: ArrayLike,
    judgements: ArrayLike,
    measure: str = "ndcg",
    *,
    at: int = 10,
    ks: ArrayLike | None = None,
    query_rows: ArrayLike | None = None,
    query_field: ArrayLike | None = None,
    document_field: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Score of each query that has judgements, for every prefix length.

    Parameters
    ----------
    Z_docs, Z_queries, judgements, at, ks
        As in `ndcg`.
    measure : {"ndcg", "mrr", "recall"}
        Over the largest that a query could have: 1 is the best.
    query_rows : array-like of int of shape (m,), optional
        The document that each query is, which is no answer to itself; -1 for a query that is none of them.
    query_field, document_field : array-like of shape (m,) and (n,), optional
        A filter: each query looks among the documents that have its own value of a field. Judgements of others do not
        count, and a query that has no others is left out.

    Returns
    -------
    queries : ndarray of int of shape (q,)
        Rows of the queries that are scored, ascending.
    values : ndarray of shape (q, len(ks))
        Their scores. Averages over a part of the queries (seen and unseen documents, say) are means of rows.

    Examples
    --------
    >>> docs, queries = [[1, 1], [1, -1], [1, 0]], [[1, 0.9]]
    >>> search_per_query(docs, queries, [[0, 1, 1]], "mrr", ks=[2])[1]
    array([[0.33333333]])
    >>> fields = {"query_field": ["b"], "document_field": ["a", "b", "a"]}
    >>> search_per_query(docs, queries, [[0, 1, 1]], "mrr", ks=[2], **fields)[1]
    array([[1.]])
    """
    owner = "ndcg" if measure == "ndcg" else f"search_per_query ({measure})"
    kind = MEASURES[check_choice(measure, MEASURES, "measure", "search_per_query")]
    Z_docs, Z_queries = check_matrix_pair(Z_docs, Z_queries, owner, ("Z_docs", "Z_queries"))
    ks = check_lengths(ks, Z_docs.shape[1], owner)
    at = check_count(at, "at", owner)
    table = check_judgements(judgements, len(Z_docs), len(Z_queries), owner)
    own = _check_own(query_rows, table, len(Z_docs), len(Z_queries), owner)
    found = []
    for documents, rows in _parts(table, query_field, document_field, len(Z_docs), len(Z_queries)):
        place = np.full(len(Z_docs) + 1, -1)  # the last entry is that of no document
        place[documents] = np.arange(len(documents))
        judged = judged_of(np.column_stack([rows[:, 0], place[rows[:, 1]], rows[:, 2]]), len(documents))
        exclude = None if own is None else place[own[judged.queries]]
        held = Z_docs if len(documents) == len(Z_docs) else Z_docs[documents]
        found.append((judged.queries, _scored(held, Z_queries, judged, kind, at, ks, exclude)))
    queries = np.concatenate([part for part, _ in found])
    order = np.argsort(queries)
    return queries[order], np.concatenate([part for _, part in found])[order]


def _scored(
    Z_docs: np.ndarray,
    Z_queries: np.ndarray,
    judged: Judgements,
    kind: Measure,
    at: int,
    ks: np.ndarray,
    exclude: np.ndarray | None,
) -> np.ndarray:
    """Return what each judged query earns among the documents, over the most that it could."""
    possible = kind.possible(judged, at)[:, None]
    values = np.zeros((len(judged.queries), len(ks)))
    looked_at = min(at, len(Z_docs))
    asked = Z_queries[judged.queries]
    for rows, places, found in nearest(Z_docs, asked, ks, looked_at, exclude=exclude, ordered=kind.ordered):
        for i in range(found.shape[1]):
            gains = judged.gains_of(judged.queries[rows], found[:, i])
            values[rows, places.start + i] = kind.earned(gains)
    return np.divide(values, possible, out=values, where=possible > 0)


def _parts(
    table: np.ndarray, query_field: ArrayLike | None, document_field: ArrayLike | None, n_docs: int, n_queries: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the documents of each value of the field, and the judgements of them by queries of that value."""
    if query_field is None and document_field is None:
        yield np.arange(n_docs), table
        return
    asked, held = _check_field(query_field, n_queries, "query"), _check_field(document_field, n_docs, "document")
    inside = table[asked[table[:, 0]] == held[table[:, 1]]]
    if not len(inside):
        raise InvalidInputError(
            f"No judged document has its query's own value of the field: queries have {_some(asked)}, documents "
            f"{_some(held)}. Filter by a field that both share, or not at all."
        )
    for value in np.unique(held[inside[:, 1]]):
        yield np.flatnonzero(held == value), inside[held[inside[:, 1]] == value]


def _check_field(values: ArrayLike | None, n: int, side: str) -> np.ndarray:
    if values is None:
        raise InvalidInputError("A filter needs the field's values of both: 'query_field' and 'document_field'.")
    found = np.asarray(values)
    if found.shape != (n,):
        raise InvalidInputError(f"'{side}_field' has one value for each {side}: shape ({n},). Got {found.shape}.")
    return found.astype(str)  # as text, because one file may hold "17" and the other 17


def _some(values: np.ndarray) -> str:
    shown = [repr(str(value)) for value in np.unique(values)[:4]]
    return ", ".join(shown[:3]) + (", ..." if len(shown) > 3 else "")


def check_judgements(judgements: ArrayLike, n_docs: int, n_queries: int, owner: str) -> np.ndarray:
    """Return judgements as ints of shape (j, 3); rows that are not there, and repeated ones, raise."""
    table = np.asarray(judgements)
    if table.ndim != 2 or table.shape[1] != 3 or len(table) == 0 or table.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{owner} takes 'judgements' as ints of shape (j, 3): query row, document row, relevance. "
            f"Got {table.dtype} of shape {table.shape}."
        )
    query = check_rows(table[:, 0], n_queries, owner, "judgements[:, 0] (query rows)")
    doc = check_rows(table[:, 1], n_docs, owner, "judgements[:, 1] (document rows)")
    keys = np.unique(query * n_docs + doc)
    if len(keys) < len(table):
        raise InvalidInputError(
            f"{owner} takes one judgement per query and document. Got {len(table) - len(keys)} repeated "
            f"among {len(table)}; keep one of each."
        )
    return np.column_stack([query, doc, table[:, 2]]).astype(np.int64)


def judged_of(table: np.ndarray, n_docs: int) -> Judgements:
    """Return checked judgements by query; see `check_judgements`."""
    keys = table[:, 0] * n_docs + table[:, 1]
    order = np.argsort(keys)
    # A negative relevance (spam, in some collections) earns nothing, as in trec_eval.
    return Judgements(np.unique(table[:, 0]), keys[order], np.maximum(table[order, 2], 0).astype(np.float64), n_docs)


def _check_own(
    query_rows: ArrayLike | None, table: np.ndarray, n_docs: int, n_queries: int, owner: str
) -> np.ndarray | None:
    if query_rows is None:
        return None
    own = np.asarray(query_rows)
    if own.shape != (n_queries,) or own.dtype.kind not in "iu" or (own < -1).any() or (own >= n_docs).any():
        raise InvalidInputError(
            f"{owner} takes 'query_rows' as {n_queries} document rows, -1 for a query that is not a document."
        )
    if (itself := int(np.sum(own[table[:, 0]] == table[:, 1]))) > 0:
        raise InvalidInputError(
            f"{owner} does not return a query as its own answer, and {itself} judgements say it is one. Leave them out."
        )
    return own
