"""Nearest neighbors at every prefix length: 1-NN accuracy, and ranks of known neighbors or partners.

Nearest is by cosine, taken after truncation; a prefix of norm 0 has cosine 0 with everything. All of them read the same
sweep over the coordinates, so a whole curve costs one encode and little more than a few evaluations at full width.
References that the precision of the codes cannot tell apart are ties, and ties go to the lowest reference row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from firstk._base.checks import (
    check_count,
    check_label_pair,
    check_lengths,
    check_matrix_pair,
    check_rows,
    check_same_length,
)
from firstk._base.progress import tracked
from firstk._base.rows import distinct_rows
from firstk.exceptions import InvalidInputError
from firstk.metrics._sweep import nearest

# Rows of a block, positions of its prefix lengths, hits of each row at each length.
Hits = Iterator[tuple[slice, slice, np.ndarray]]


def nearest_neighbor_accuracy(
    Z_ref: ArrayLike,
    y_ref: ArrayLike,
    Z: ArrayLike,
    y: ArrayLike,
    *,
    ks: ArrayLike | None = None,
    per_row: bool = False,
) -> np.ndarray:
    r"""Accuracy of the label of the nearest reference, for every prefix length.

    With :math:`S_k = S_{k-1} + z_k r_k^\top` and cumulative norms (cosine after truncation), one sweep gives all k
    (docs/theory.md, 4.6).

    Parameters
    ----------
    Z_ref : array-like of shape (n, d)
        Codes of the references.
    y_ref : array-like of shape (n,)
        Their labels.
    Z : array-like of shape (m, d)
        Codes to classify.
    y : array-like of shape (m,)
        Their labels; one that no reference has counts as wrong.
    ks : array-like of int, optional
        Prefix lengths, increasing; all from 1 to d if not given.
    per_row : bool
        Return the hits of each query, bool of shape (m, len(ks)), instead of their mean.

    Returns
    -------
    accuracy : ndarray of shape (len(ks),)

    Examples
    --------
    The first coordinate confuses the classes, the second tells them apart:

    >>> Z_ref, y_ref = [[1.0, 1.0], [1.0, -1.0]], ["a", "b"]
    >>> nearest_neighbor_accuracy(Z_ref, y_ref, [[1.0, 0.8], [1.0, -0.7]], ["a", "b"])
    array([0.5, 1. ])
    """
    owner = "nearest_neighbor_accuracy"
    Z_ref, Z = check_matrix_pair(Z_ref, Z, owner, ("Z_ref", "Z"))
    y_ref, y = check_label_pair(y_ref, y, (len(Z_ref), len(Z)), owner, ("y_ref", "y"))
    ks = check_lengths(ks, Z.shape[1], owner)
    blocks = nearest(Z_ref, Z, ks, 1)
    hits = ((rows, places, y_ref[found[:, :, 0]] == y[rows, None]) for rows, places, found in blocks)
    return _by_row(hits, (len(Z), len(ks)), bool) if per_row else _totals(hits, len(Z), len(ks)) / len(Z)


def nearest_neighbors(
    Z_ref: ArrayLike,
    Z: ArrayLike,
    n_neighbors: int = 10,
    *,
    exclude_self: bool | ArrayLike = False,
) -> np.ndarray:
    """Rows of the nearest references of each query at full width, nearest first.

    Of the raw input vectors these are the usual truth for `neighbor_recall`.

    Parameters
    ----------
    Z_ref : array-like of shape (n, d)
        References.
    Z : array-like of shape (m, d)
        Queries.
    n_neighbors : int
        How many, at most n (n - 1 with `exclude_self`).
    exclude_self : bool or array-like of int of shape (m,)
        True: query i is reference i, and is not its own neighbor. An array: the reference that each query
        is.

    Returns
    -------
    rows : ndarray of int of shape (m, n_neighbors)

    Examples
    --------
    >>> nearest_neighbors([[1, 0], [0, 1], [1, 1]], [[2, 1]], 2)
    array([[2, 0]])
    """
    owner = "nearest_neighbors"
    Z_ref, Z = check_matrix_pair(Z_ref, Z, owner, ("Z_ref", "Z"))
    exclude = _excluded(exclude_self, len(Z_ref), len(Z), owner)
    n = check_count(n_neighbors, "n_neighbors", owner, most=len(Z_ref) - (exclude is not None))
    found = np.empty((len(Z), n), dtype=np.int64)
    ks = np.array([Z.shape[1]])
    blocks = nearest(Z_ref, Z, ks, n, exclude=exclude)
    for rows, _, block in tracked(blocks, len(Z), "finding neighbors", "row", lambda part: len(part[2])):
        found[rows] = block[:, 0]
    return found


def neighbor_recall(
    Z_ref: ArrayLike,
    Z: ArrayLike,
    truth: ArrayLike,
    *,
    at: int | None = None,
    exclude_self: bool | ArrayLike = False,
    ks: ArrayLike | None = None,
    per_row: bool = False,
) -> np.ndarray:
    """Share of each query's true neighbors that are among its nearest references, for every prefix length.

    Parameters
    ----------
    Z_ref : array-like of shape (n, d)
        Codes of the references.
    Z : array-like of shape (m, d)
        Codes of the queries.
    truth : array-like of int of shape (m, t)
        True neighbors of each query, as rows of `Z_ref`, each once. `nearest_neighbors` of the raw vectors
        gives them: ``truth = nearest_neighbors(X_ref, X)`` for recall@10.
    at : int, optional
        How many nearest references are looked at; t if not given.
    exclude_self : bool or array-like of int of shape (m,)
        As in `nearest_neighbors`; use the same for both.
    ks : array-like of int, optional
        Prefix lengths, increasing; all from 1 to d if not given.
    per_row : bool
        Return the number of hits of each query, int of shape (m, len(ks)), instead of their share.

    Returns
    -------
    recall : ndarray of shape (len(ks),)
        Mean over queries. Unless `per_row`, memory stays at a block of queries, whatever m is.
    """
    owner = "neighbor_recall"
    Z_ref, Z = check_matrix_pair(Z_ref, Z, owner, ("Z_ref", "Z"))
    ks = check_lengths(ks, Z.shape[1], owner)
    exclude = _excluded(exclude_self, len(Z_ref), len(Z), owner)
    truth = _check_truth(truth, len(Z_ref), len(Z), owner)
    at = truth.shape[1] if at is None else check_count(at, "at", owner)
    at = min(at, len(Z_ref) - (exclude is not None))
    blocks, columns = nearest(Z_ref, Z, ks, at, exclude=exclude, ordered=False), range(truth.shape[1])
    hits = (
        (rows, places, np.sum([(found == truth[rows, None, column, None]).sum(axis=2) for column in columns], axis=0))
        for rows, places, found in blocks
    )
    return _by_row(hits, (len(Z), len(ks)), np.int32) if per_row else _totals(hits, len(Z), len(ks)) / truth.size


def positive_recall(
    Z_left: ArrayLike,
    Z_right: ArrayLike,
    *,
    at: int = 10,
    ks: ArrayLike | None = None,
    per_row: bool = False,
) -> np.ndarray:
    """Share of pairs whose right side is among the `at` nearest distinct rights, for every prefix length.

    Parameters
    ----------
    Z_left, Z_right : array-like of shape (n, d)
        Row i of one belongs with row i of the other. Rights that are equal in every coordinate are one
        candidate, so a document with several queries does not compete with itself.
    at : int
        How many nearest rights are looked at.
    ks : array-like of int, optional
        Prefix lengths, increasing; all from 1 to d if not given.
    per_row : bool
        Return the number of hits of each pair, int of shape (n, len(ks)), instead of their share.

    Returns
    -------
    recall : ndarray of shape (len(ks),)

    Examples
    --------
    >>> left = [[1.0, 0.2], [1.0, -0.3]]
    >>> positive_recall(left, [[1.0, -0.1], [1.0, -0.2]], at=1), positive_recall(left, left, at=1)
    (array([0.5, 1. ]), array([0.5, 1. ]))
    """
    owner = "positive_recall"
    Z_left, Z_right = check_matrix_pair(Z_left, Z_right, owner, ("Z_left", "Z_right"))
    check_same_length(Z_left, Z_right, "Z_left", "Z_right", owner)
    at = check_count(at, "at", owner)
    first, own = distinct_rows(Z_right)
    return neighbor_recall(Z_right[first], Z_left, own[:, None], at=at, ks=ks, per_row=per_row)


def _shown(hits: Hits, total: int) -> Hits:
    """Show how many rows and lengths are done."""
    return tracked(hits, total, "evaluating prefixes", "score", lambda part: part[2].size)


def _totals(hits: Hits, n_rows: int, n_lengths: int) -> np.ndarray:
    """Hits of all rows together at each prefix length."""
    totals = np.zeros(n_lengths, dtype=np.int64)
    for _, places, found in _shown(hits, n_rows * n_lengths):
        totals[places] += found.sum(axis=0)
    return totals


def _by_row(hits: Hits, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
    """Hits of each row at each prefix length."""
    table = np.empty(shape, dtype=dtype)
    for rows, places, found in _shown(hits, shape[0] * shape[1]):
        table[rows, places] = found
    return table


def _excluded(exclude_self: bool | ArrayLike, n: int, m: int, owner: str) -> np.ndarray | None:
    if exclude_self is False or exclude_self is None:
        return None
    if exclude_self is True:
        if n != m:
            raise InvalidInputError(
                f"{owner} with exclude_self=True takes queries that are the references. Got {m} queries and "
                f"{n} references; pass the reference row of each query as exclude_self instead."
            )
        exclude = np.arange(n)
    else:
        exclude = check_rows(exclude_self, n, owner, "exclude_self")
        if exclude.shape != (m,):
            raise InvalidInputError(
                f"{owner} takes one reference row per query in 'exclude_self': shape ({m},). Got {exclude.shape}."
            )
    if n == 1:
        raise InvalidInputError(f"{owner} with 'exclude_self' needs at least two references. Got 1.")
    return exclude


def _check_truth(truth: ArrayLike, n: int, m: int, owner: str) -> np.ndarray:
    rows = check_rows(truth, n, owner, "truth")
    if rows.ndim != 2 or len(rows) != m or rows.shape[1] == 0:
        raise InvalidInputError(
            f"{owner} takes 'truth' of shape ({m}, t): the true neighbors of each of the {m} queries. Got {rows.shape}."
        )
    twice = np.flatnonzero((np.diff(np.sort(rows, axis=1), axis=1) == 0).any(axis=1))
    if len(twice):
        raise InvalidInputError(
            f"{owner} takes every true neighbor once; 'truth' repeats one in {len(twice)} of {m} rows (row "
            f"{twice[0]}). Drop the repetitions."
        )
    return rows
