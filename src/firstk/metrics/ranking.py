"""Agreement of the cosines of pairs with their scores at every prefix length: Spearman's rank correlation.

Cosine is always taken after truncation: both sides are normalized by the norms of their first k
coordinates. A prefix of norm 0 has cosine 0 with everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_finite, check_lengths, check_matrix_pair, check_same_length
from firstk.exceptions import InvalidInputError


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
