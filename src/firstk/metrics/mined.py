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

from firstk._base.checks import check_matrix, check_matrix_pair
from firstk.exceptions import InvalidInputError
from firstk.metrics.neighbors import nearest_neighbors

# The share of the mean variance in each variance, so that directions without variance are not blown up.
RIDGE = 0.1


@dataclass(frozen=True, eq=False)
class MinedPartners:
    """Rows with the one row that belongs to each, mined from vectors.

    Attributes
    ----------
    rows : ndarray of int of shape (m,)
        Rows that have a partner.
    partners : ndarray of int of shape (m,)
        The partner of each, a row of the references.
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
    """Judge for each query one document relevant: the nearest by the half-whitened cosine.

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
    """Pair rows with their nearest reference by the half-whitened cosine, where each is the other's nearest.

    A pair is mutual if no other reference is nearer to the partner than the row is. Rows without a mutual partner are
    left out, and so are rows whose partner is their copy: any code finds that.

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
    >>> mined = mined_partners([[3.0, 1.0], [2.8, 1.1], [2.6, 1.5], [1.0, 3.0], [1.1, 3.2], [-1.0, 1.0]])
    >>> mined.rows, mined.partners
    (array([0, 1, 3, 4]), array([1, 0, 4, 3]))
    """
    alone = X_ref is None
    X, reference = check_matrix_pair(X, X if X_ref is None else X_ref, "mined_partners", ("X", "X_ref"))
    W = half_whitening(reference)
    rows, candidates = _damped(X, W), _damped(reference, W)
    if len(candidates) < 3:
        raise InvalidInputError(f"mined_partners needs at least three rows to look among. Got {len(candidates)}.")
    partners = nearest_neighbors(candidates, rows, 1, exclude_self=alone)[:, 0]
    other = nearest_neighbors(candidates, candidates[partners], 1, exclude_self=partners)[:, 0]
    own = np.einsum("ij,ij->i", rows, candidates[partners])
    rival = np.einsum("ij,ij->i", candidates[other], candidates[partners])
    copies = (reference[partners] == X).all(axis=1)
    kept = np.flatnonzero((own >= rival) & ~copies)
    if len(kept) == 0:
        raise InvalidInputError(
            f"mined_partners found no mutual partners for {len(X)} rows: each is a copy of a reference, or too few "
            "rows were given. Drop copies, or give more rows."
        )
    return MinedPartners(kept, partners[kept])


def _damped(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Half-whitened rows of length 1, in the precision of X."""
    return _unit(_unit(X.astype(np.float64)) @ W).astype(X.dtype)


def _unit(X: np.ndarray) -> np.ndarray:
    """Rows of length 1; zeros stay zeros."""
    X = X / np.maximum(np.abs(X).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)  # no square overflows
    sizes = np.linalg.norm(X, axis=1, keepdims=True)
    return np.divide(X, sizes, out=np.zeros_like(X), where=sizes > 0)
