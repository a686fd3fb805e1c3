r"""Late interaction: documents and queries of one vector a token, compared by MaxSim at every prefix length.

.. math:: s_k(q, d) = \sum_{i \in q} \max_{j \in d} \cos(q_{i,1:k}, d_{j,1:k})

(Khattab and Zaharia 2020, ColBERT, equation 3.) Cosine is taken after truncation, as everywhere. Dot products of tokens
grow by one coordinate at a time, so that all prefixes cost one sweep: blocks of documents and queries are small enough
to stay in the cache while k runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_lengths, check_matrix_pair
from firstk.exceptions import InvalidInputError

# Tokens of documents and of queries in a block: their products, of 1 MB, stay in the cache.
_DOCUMENT_TOKENS, _QUERY_TOKENS = 1024, 256


def max_sim(
    Z_docs: ArrayLike,
    doc_offsets: ArrayLike,
    Z_queries: ArrayLike,
    query_offsets: ArrayLike,
    *,
    ks: ArrayLike | None = None,
) -> np.ndarray:
    """MaxSim of all queries and all documents, for every prefix length.

    Parameters
    ----------
    Z_docs, Z_queries : array-like of shape (t, d) and (s, d)
        Codes of tokens, document after document and query after query.
    doc_offsets, query_offsets : array-like of int of shape (n + 1,) and (m + 1,)
        Tokens ``offsets[i]`` to ``offsets[i + 1]`` are those of document or query i; none is without tokens.
    ks : array-like of int, optional
        Prefix lengths, increasing; all from 1 to d if not given.

    Returns
    -------
    scores : ndarray of shape (len(ks), m, n), float32

    Examples
    --------
    >>> docs, queries = [[1, 0], [0, 1], [1, 1]], [[3, 0], [0, 2]]
    >>> max_sim(docs, [0, 2, 3], queries, [0, 2], ks=[2]).round(3)
    array([[[2.   , 1.414]]], dtype=float32)
    """
    owner = "max_sim"
    D, Q = _checked_codes(Z_docs, Z_queries, owner)
    lengths = check_lengths(ks, D.shape[1], owner)
    ends = _check_offsets(doc_offsets, len(D), owner, "doc_offsets")
    asked = _check_offsets(query_offsets, len(Q), owner, "query_offsets")
    scores = np.empty((len(lengths), len(asked) - 1, len(ends) - 1), np.float32)
    for queries, part in _swept(D, ends, Q, asked, lengths):
        scores[:, queries] = part
    return scores


def _check_offsets(offsets: ArrayLike, n_tokens: int, owner: str, name: str) -> np.ndarray:
    """Return offsets as ints: from 0 to the number of tokens, and none twice."""
    found = np.asarray(offsets)
    if found.ndim != 1 or len(found) < 2 or found.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{owner} takes '{name}' as ints of shape (n + 1,), of n documents or queries. Got {found.dtype} of shape "
            f"{found.shape}."
        )
    found = found.astype(np.int64)
    if found[0] != 0 or found[-1] != n_tokens:
        raise InvalidInputError(
            f"{owner} takes '{name}' from 0 to the number of tokens, {n_tokens}. Got {found[0]} to {found[-1]}."
        )
    bad = np.flatnonzero(np.diff(found) < 1)
    if len(bad):
        raise InvalidInputError(
            f"{owner} takes '{name}' that increase: each document and query has a token. Number {bad[0]} has "
            f"{found[bad[0] + 1] - found[bad[0]]}; leave it out."
        )
    return found


def _checked_codes(Z_docs: ArrayLike, Z_queries: ArrayLike, owner: str) -> tuple[np.ndarray, np.ndarray]:
    """Return codes in single precision, each row over its largest entry: cosines stay, and no square overflows."""
    pair = check_matrix_pair(Z_docs, Z_queries, owner, ("Z_docs", "Z_queries"))
    scaled = []
    for Z in pair:
        size = np.abs(Z).max(axis=1, keepdims=True).astype(np.float64)
        scaled.append(np.divide(Z, size, out=np.zeros(Z.shape), where=size > 0).astype(np.float32))
    return scaled[0], scaled[1]


def _inverse_norms(Z: np.ndarray, ks: np.ndarray) -> np.ndarray:
    """Return one over the norm of each prefix, shape (len(ks), n); 0 where the norm is 0."""
    norms = np.sqrt(np.cumsum(np.square(Z, dtype=np.float64), axis=1)[:, ks - 1].T)
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0).astype(np.float32)


def _blocks(offsets: np.ndarray, most: int) -> Iterator[slice]:
    """Yield runs of documents or queries that have at most so many tokens together, or are one."""
    start = 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop


def _swept(
    D: np.ndarray, ends: np.ndarray, Q: np.ndarray, asked: np.ndarray, ks: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of queries, and their scores with all documents at each prefix length: (len(ks), q, n)."""
    over_d, over_q = _inverse_norms(D, ks), _inverse_norms(Q, ks)
    for queries in _blocks(asked, _QUERY_TOKENS):
        rows = slice(asked[queries.start], asked[queries.stop])
        starts = asked[queries] - rows.start
        scores = np.empty((len(ks), queries.stop - queries.start, len(ends) - 1), np.float32)
        for documents in _blocks(ends, _DOCUMENT_TOKENS):
            tokens = slice(ends[documents.start], ends[documents.stop])
            dots = np.zeros((tokens.stop - tokens.start, rows.stop - rows.start), np.float32)
            cosines = np.empty_like(dots)
            previous = 0
            for i, k in enumerate(ks.tolist()):
                np.matmul(D[tokens, previous:k], Q[rows, previous:k].T, out=cosines)
                dots += cosines
                if k == 1:  # cosines of single numbers are -1, 0 or 1: exactly, so that ties are ties
                    np.multiply.outer(np.sign(D[tokens, 0]), np.sign(Q[rows, 0]), out=cosines)
                else:
                    np.multiply(dots, over_d[i, tokens, None], out=cosines)
                best = np.maximum.reduceat(cosines, ends[documents] - tokens.start, axis=0)  # (documents, query tokens)
                if k > 1:
                    best *= over_q[i, rows]
                scores[i, :, documents] = np.add.reduceat(best, starts, axis=1).T
                previous = k
        yield queries, scores
