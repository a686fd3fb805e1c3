r"""Allocation: the order in which coordinates get their bits.

The next bit goes to the coordinate whose weighted error it lowers most,

.. math:: i^* = \arg\max_i \; w_i \, (D_i(b_i) - D_i(b_i + 1)),

:math:`D_i(b)` being the error of coordinate i with b bits. Where every :math:`D_i` is convex, each allocation on
the way is the best of its number of bits, and contains the one before it (Shoham and Gersho 1988; Gersho and Gray 1992,
section 8.3): the order in which bits are given is the order in which they are stored. A measured error need not be
convex, and is replaced by its lower convex hull, whose vertices are attained.
"""

from __future__ import annotations

import numpy as np


def lower_hull(errors: np.ndarray) -> np.ndarray:
    """Return the lower convex hull of each row, at its columns 0, 1, 2, ...

    Examples
    --------
    >>> lower_hull(np.array([[8.0, 7.0, 2.0, 1.0]]))
    array([[8., 5., 2., 1.]])
    """
    hull = np.array(errors, dtype=np.float64)
    count = hull.shape[1]
    for first in range(count):
        for last in range(first + 2, count):
            # No point of the hull lies above a chord between two measured ones.
            between = np.arange(first + 1, last)
            share = (between - first) / (last - first)
            chord = np.outer(errors[:, first], 1 - share) + np.outer(errors[:, last], share)
            hull[:, between] = np.minimum(hull[:, between], chord)
    return hull


def bit_order(distortion: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the coordinate that each bit belongs to, in the order of the bits; ties go to the lower coordinate.

    Parameters
    ----------
    distortion : ndarray of shape (d, depth + 1)
        Error of each coordinate with 0, 1, ... bits; never growing.
    weights : ndarray of shape (d,), optional
        What a unit of error costs; 1 if not given.

    Returns
    -------
    order : ndarray of int
        Only bits that lower the weighted error. The j-th time that a coordinate occurs stands for its j-th bit.

    Examples
    --------
    >>> bit_order(np.array([[4.0, 1.0, 0.25], [2.0, 0.5, 0.5]]))
    array([0, 1, 0])
    """
    gains = -np.diff(lower_hull(distortion), axis=1)
    # Slopes of a hull never grow but for rounding, which must not put a second bit before the first.
    gains = np.minimum.accumulate(np.maximum(gains, 0.0), axis=1)
    if weights is not None:
        gains = gains * np.asarray(weights, dtype=np.float64)[:, None]
    d, depth = gains.shape
    coordinate = np.repeat(np.arange(d), depth)
    order = np.lexsort((coordinate, -gains.ravel()))  # stable: bits of one coordinate stay in their order
    return coordinate[order[: np.count_nonzero(gains > 0)]]


def bits_of(order: np.ndarray, d: int) -> np.ndarray:
    """Return how many bits each of d coordinates has."""
    return np.bincount(order, minlength=d)


def depths_of(order: np.ndarray) -> np.ndarray:
    """Return for each bit how many bits of its coordinate come before it.

    Examples
    --------
    >>> depths_of(np.array([0, 1, 0, 0, 1]))
    array([0, 0, 1, 2, 1])
    """
    by_coordinate = np.argsort(order, kind="stable")
    ordered = order[by_coordinate]
    first = np.searchsorted(ordered, ordered)  # where the bits of this coordinate begin
    depth = np.empty(len(order), dtype=np.int64)
    depth[by_coordinate] = np.arange(len(order)) - first
    return depth
