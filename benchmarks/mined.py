r"""Relevance without judgements: partners that are mined from the full-width vectors, by a half-whitened cosine.

Fidelity asks whether a short code finds the neighbors that the plain cosine finds. Relevance asks whether it finds what
belongs together, and there the plain cosine errs: a few directions in which all documents vary outweigh the rest.
Whitening gives every direction the same weight, noise included. Half of it ranks codes as judgements do (figures in
docs/relevance.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_count, check_lengths, check_matrix, check_matrix_pair, check_rows
from firstk.exceptions import InvalidInputError
from firstk.metrics._sweep import nearest
from firstk.metrics.neighbors import nearest_neighbors

# How many of the nearest a row and its partner must be among, each of the other's.
NEAREST = 5
# The share of the mean variance in each variance, so that directions without variance are not blown up.
RIDGE = 0.1


@dataclass(frozen=True, eq=False)
class MinedPartners:
    """Rows with those that belong to each, mined from vectors.

    Attributes
    ----------
    rows : ndarray of int of shape (m,)
        Rows that have a partner.
    partners : ndarray of int of shape (m, 5)
        The partners of each, rows of the references, nearest first; -1 where there are fewer than five.
    """

    rows: np.ndarray
    partners: np.ndarray


def half_whitening(X: ArrayLike) -> np.ndarray:
    r"""Return the matrix that halves, on a log scale, the spread of the variances of rows of length 1.

    With :math:`\Sigma` the covariance of the rows :math:`x / |x|` and :math:`\Sigma_a = (1 - a) \Sigma + a
    \frac{\mathrm{tr} \Sigma}{p} I`, a = 0.1, it is :math:`W = \Sigma_a^{-1/4}`: dot products of rows of X W are
    :math:`x^\top \Sigma_a^{-1/2} x'`, half way from the plain ones to those of whitened rows. The mean is not
    subtracted from rows, as queries do not share it.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Documents. Their lengths do not count.

    Returns
    -------
    W : ndarray of shape (p, p)
        Symmetric.

    Examples
    --------
    >>> W = half_whitening([[4.0, 1.0], [4.0, -1.0], [-4.0, 1.0], [-4.0, -1.0]])
    >>> float((W[1, 1] / W[0, 0]).round(2))  # the fourth root of 16, were it not for the ridge
    1.72
    """
    rows = _unit(check_matrix(X, "half_whitening").astype(np.float64))
    covariance = np.cov(rows, rowvar=False, bias=True).reshape(rows.shape[1], -1)
    variances, axes = np.linalg.eigh(covariance)
    mean = float(np.trace(covariance)) / len(variances)
    if mean <= np.finfo(np.float64).eps:
        raise InvalidInputError(f"half_whitening needs rows of different directions. All {len(rows)} rows have one.")
    damped = (1 - RIDGE) * np.maximum(variances, 0.0) + RIDGE * mean
    return (axes * damped**-0.25) @ axes.T


def mined_judgements(queries: ArrayLike, documents: ArrayLike) -> np.ndarray:
    """Take for each query one document as relevant: the nearest by the half-whitened cosine.

    Many of these judgements are wrong: they serve to compare codes, not to measure a search.

    Parameters
    ----------
    queries : array-like of shape (m, p)
        A sample of queries, as those that are to come.
    documents : array-like of shape (n, p)

    Returns
    -------
    judgements : ndarray of int of shape (m, 3)
        Rows (query row, document row, 1), as `ndcg` takes them.

    Examples
    --------
    >>> mined_judgements([[1.0, 0.1]], [[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    array([[0, 1, 1]])
    """
    queries, documents = check_matrix_pair(queries, documents, "mined_judgements", ("queries", "documents"))
    W = half_whitening(documents)
    found = nearest_neighbors(_damped(documents, W), _damped(queries, W), 1)[:, 0]
    return np.stack([np.arange(len(queries)), found, np.ones_like(found)], axis=1)


def mined_partners(X: ArrayLike, X_ref: ArrayLike | None = None) -> MinedPartners:
    """Pair rows with references where each is among the other's five nearest, by the half-whitened cosine.

    A pair is mutual if the reference is among the five nearest of the row, and fewer than five other references are
    nearer to that reference than the row is. Rows without a mutual partner are left out. A copy is no partner, as any
    code finds it.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows, best such that no encoder was fitted on.
    X_ref : array-like of shape (m, p), optional
        References; X without the row itself, if not given.

    Returns
    -------
    mined : MinedPartners

    Examples
    --------
    >>> X = [[9, 1], [9, 2], [9, 3], [9, 4], [9, 5], [9, 6], [1, 9], [2, 9], [-9, 1]]
    >>> mined = mined_partners(X)
    >>> mined.rows, mined.partners[0]
    (array([0, 1, 2, 3, 4, 5, 6, 7]), array([1, 2, 3, 4, 5]))
    """
    alone = X_ref is None
    X, reference = check_matrix_pair(X, X if X_ref is None else X_ref, "mined_partners", ("X", "X_ref"))
    if len(reference) <= NEAREST + 1:
        raise InvalidInputError(
            f"mined_partners needs more than {NEAREST + 1} rows to look among. Got {len(reference)}."
        )
    W = half_whitening(reference)
    rows, candidates = _damped(X, W), _damped(reference, W)
    near = nearest_neighbors(candidates, rows, NEAREST, exclude_self=alone)
    fifth = _fifth_cosines(candidates)
    # One of the five at a time, so that the vectors of all of them are never held together.
    mutual = np.stack([_cosines(rows, candidates[one]) >= fifth[one] for one in near.T], axis=1)
    mutual &= np.stack([(reference[one] != X).any(axis=1) for one in near.T], axis=1)
    kept = np.flatnonzero(mutual.any(axis=1))
    if len(kept) == 0:
        raise InvalidInputError(
            f"mined_partners found no mutual partners for {len(X)} rows: each is a copy of a reference, or too few "
            "rows were given. Drop copies, or give more rows."
        )
    return MinedPartners(kept, np.where(mutual, near, -1)[kept])


def _fifth_cosines(rows: np.ndarray) -> np.ndarray:
    """Return the cosine of each row to the fifth nearest of the others."""
    fifth = nearest_neighbors(rows, rows, NEAREST, exclude_self=True)[:, -1]
    return _cosines(rows, rows[fifth])


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the dot product of each pair of rows, which have length 1."""
    return np.einsum("ij,ij->i", left, right)


def partner_ndcg(
    Z_ref: ArrayLike,
    Z: ArrayLike,
    partners: ArrayLike,
    *,
    at: int = 10,
    ks: ArrayLike | None = None,
    per_row: bool = False,
) -> np.ndarray:
    r"""NDCG of search by cosine for partners that are all alike relevant, for every prefix length.

    A partner at rank r counts :math:`1 / \log_2(r + 1)`, beyond `at` nothing; the sum is divided by its largest value.

    Parameters
    ----------
    Z_ref : array-like of shape (n, d)
        Codes of the references.
    Z : array-like of shape (m, d)
        Codes of the queries.
    partners : array-like of int of shape (m,) or (m, t)
        The relevant references of each query, as `mined_partners` finds them; -1 fills up rows that have fewer.
    at : int
        How many nearest references are looked at.
    ks : array-like of int, optional
        Prefix lengths, increasing; all from 1 to d if not given.
    per_row : bool
        Return the score of each query, shape (m, len(ks)), instead of their mean.

    Returns
    -------
    score : ndarray of shape (len(ks),)

    Examples
    --------
    >>> partner_ndcg([[1.0, 1.0], [1.0, -1.0]], [[1.0, 0.8], [1.0, -0.7]], [0, 1])
    array([0.81546488, 1.        ])
    """
    owner = "partner_ndcg"
    Z_ref, Z = check_matrix_pair(Z_ref, Z, owner, ("Z_ref", "Z"))
    ks = check_lengths(ks, Z.shape[1], owner)
    truth = _check_partners(partners, len(Z_ref), len(Z), owner)
    at = min(check_count(at, "at", owner), len(Z_ref))
    gains = 1.0 / np.log2(np.arange(2, at + 2))
    counts = (truth >= 0).sum(axis=1)
    ideal = np.cumsum(gains)[np.minimum(counts, at) - 1]
    blocks = nearest(Z_ref, Z, ks, at)
    values = np.empty((len(Z), len(ks)))
    for rows, places, found in blocks:
        values[rows, places] = (found[..., None] == truth[rows, None, None]).any(axis=3) @ gains
    values /= ideal[:, None]
    return values if per_row else values.mean(axis=0)


def _damped(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Half-whitened rows of length 1, in the precision of X."""
    return _unit(_unit(X.astype(np.float64)) @ W).astype(X.dtype)


def _unit(X: np.ndarray) -> np.ndarray:
    """Rows of length 1; zeros stay zeros."""
    X = X / np.maximum(np.abs(X).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)  # no square overflows
    sizes = np.linalg.norm(X, axis=1, keepdims=True)
    return np.divide(X, sizes, out=np.zeros_like(X), where=sizes > 0)


def _check_partners(partners: ArrayLike, n: int, m: int, owner: str) -> np.ndarray:
    """Return partners as a table of shape (m, t), at least one in each row."""
    table = np.asarray(partners)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != m or table.dtype.kind not in "iu" or not (table >= 0).any(axis=1).all():
        raise InvalidInputError(
            f"{owner} takes 'partners' as ints of shape ({m},) or ({m}, t), at least one partner for each of the {m} "
            f"queries. Got {table.dtype} of shape {table.shape}."
        )
    check_rows(np.maximum(table, 0), n, owner, "partners")
    return table
