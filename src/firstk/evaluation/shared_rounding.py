"""Roundings that several prefix lengths share, so that one sweep scores all of them.

Rounding acts on each coordinate apart. What is fitted before it may not: the one scale of int8 codes is that of the
largest entry among the coordinates kept. Where the rounding of a prefix is that of a longer one, cut, so are its codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from firstk.data.precision import Precision


def shared_roundings(precision: Precision, Z: np.ndarray, ks: Sequence[int]) -> Iterator[tuple[list[int], Precision]]:
    """Yield runs of prefix lengths, ascending, each with the precision fitted on codes of its longest.

    Parameters
    ----------
    precision : Precision
        Not fitted.
    Z : ndarray of shape (n, d)
        Codes that are stored, d at least the longest of `ks`.
    ks : sequence of int
        Ascending.

    Examples
    --------
    >>> from firstk.data.precision import PRECISIONS
    >>> Z = np.array([[1.0, -0.5, 2.0], [0.5, 0.25, -1.0]])
    >>> [ks for ks, _ in shared_roundings(PRECISIONS["int8"], Z, [1, 2, 3])]
    [[1, 2], [3]]
    """
    if not len(ks):
        return
    fitted = [precision.fit(Z[:, :k]) for k in ks]
    run = [ks[0]]
    for (short, long), k in zip(pairwise(fitted), ks[1:], strict=True):
        if not is_cut(short, long):
            yield run, short
            run = []
        run.append(k)
    yield run, fitted[-1]


def is_cut(short: Precision, long: Precision) -> bool:
    """Tell whether a fitted precision is that of the first coordinates of another: all that was fitted is the same."""
    ours, theirs = short.record(), long.record()
    return all(_starts(theirs[name], value) for name, value in ours.items())


def _starts(longer: object, value: object) -> bool:
    if isinstance(value, list) and isinstance(longer, list):
        return longer[: len(value)] == value
    return longer == value
