"""Orthonormal bases of nested spans: the first k basis vectors span the first k columns, for every k.

A sequence of nested spans is called a flag. Both the principal angles of leading subspaces and the best
linear readout of every prefix are read off such a basis, and both must survive columns that add no
direction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike


def relative_tolerance(d: int, dtype: DTypeLike) -> float:
    """Share of its norm below which what a column adds to a span counts as rounding."""
    return max(10, d) * float(np.finfo(dtype).eps)


def ordered_basis(V: np.ndarray, rtol: float, scale: np.ndarray | None = None) -> np.ndarray:
    """Orthonormalize columns in order, leaving a zero column where nothing new is added.

    Parameters
    ----------
    V : ndarray of shape (m, d), float64
        The columns, most important first.
    rtol : float
        Column j adds a direction if its distance to the span of the columns before it exceeds
        ``rtol * scale[j]``.
    scale : ndarray of shape (d,), optional
        What a column's size is measured by; its norm if not given.

    Returns
    -------
    B : ndarray of shape (m, d)
        ``B[:, :k]`` spans ``V[:, :k]`` for every k; nonzero columns are orthonormal.

    Notes
    -----
    A plain QR is right only if every column is new. After a dependent one its next q is an arbitrary
    direction, which then takes its share of all later columns; so that case goes through Gram-Schmidt, done
    twice, on the small factor R.
    """
    m, d = V.shape
    floor = rtol * (np.linalg.norm(V, axis=0) if scale is None else scale)
    if d > m:
        return _gram_schmidt(V, floor)
    Q, R = np.linalg.qr(V)
    if (np.abs(np.diagonal(R)) > floor).all():
        return Q
    return Q @ _gram_schmidt(R, floor)


def _gram_schmidt(V: np.ndarray, floor: np.ndarray) -> np.ndarray:
    B = np.zeros_like(V)
    for j in range(V.shape[1]):
        before = B[:, :j]
        v = V[:, j] - before @ (before.T @ V[:, j])
        v -= before @ (before.T @ v)
        norm = float(np.linalg.norm(v))
        if norm > floor[j]:
            B[:, j] = v / norm
    return B
