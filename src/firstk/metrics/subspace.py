"""Order-blind comparison of a learned basis with a reference basis: angles and distances of subspaces.

Rows are axes everywhere in firstk, as in ``components_``; the papers write axes as columns. A decoder (p x
d) is therefore passed transposed. Nothing here sees the order of axes inside a subspace: that is
`firstk.metrics.order`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_matrix
from firstk._base.linalg import ordered_basis, relative_tolerance
from firstk._base.rows import unit_rows as divided_rows


def principal_angles(Q: ArrayLike, E: ArrayLike) -> np.ndarray:
    r"""Principal angles between the row spaces of two bases, in degrees, smallest first.

    :math:`\varphi_i = \arccos \eta_i`, with :math:`\eta_1 \ge \eta_2 \ge \dots` the singular values of
    :math:`Q E^\top` after orthonormalization (Talukder et al. 2026, appendix C.3).

    Parameters
    ----------
    Q : array-like of shape (a, p)
        Rows are axes; they need not be orthonormal.
    E : array-like of shape (b, p)
        Rows are axes.

    Returns
    -------
    angles : ndarray of shape (min(a, b),)
        Ascending, in [0, 90]. A row that adds no direction to those before it brings the singular value 0, so
        an angle of 90 degrees.

    Notes
    -----
    The arccosine of a number near 1 loses half the digits, so angles under 45 degrees are taken from the
    sines (Björck and Golub 1973), as `scipy.linalg.subspace_angles` does.

    Examples
    --------
    >>> import numpy as np
    >>> principal_angles([[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 1]]).round(6)
    array([ 0., 45.])
    """
    A, B = _bases(Q, E, "principal_angles")
    return _angles(A, B)


def mean_principal_angles(Q: ArrayLike, E: ArrayLike) -> np.ndarray:
    r"""Mean principal angle between the leading-k subspaces, for every k, in degrees.

    :math:`\overline\varphi(k) = \frac1k \sum_{i \le k} \varphi_i` (Talukder et al. 2026, equation 39): 0 if the
    two leading-k
    subspaces coincide, 90 if they are orthogonal.

    Parameters
    ----------
    Q : array-like of shape (a, p)
        Learned axes as rows, in order; they need not be orthonormal.
    E : array-like of shape (b, p)
        Reference axes as rows, in order.

    Returns
    -------
    angles : ndarray of shape (min(a, b),)
        Entry k - 1 compares the first k rows of both.

    Examples
    --------
    Swapped axes differ at k = 1 and agree from k = 2 on:

    >>> mean_principal_angles([[0, 1, 0], [1, 0, 0]], [[1, 0, 0], [0, 1, 0]]).round(6)
    array([90.,  0.])
    """
    A, B = _bases(Q, E, "mean_principal_angles")
    return np.array([_angles(A[:, :k], B[:, :k]).mean() for k in range(1, min(A.shape[1], B.shape[1]) + 1)])


def subspace_distance(W: ArrayLike, U: ArrayLike) -> float:
    r"""Distance to the optimal subspace, Bao et al. 2020 definition 7.2.

    :math:`d_{sub}(W, U) = 1 - \frac1k \mathrm{tr}(U U^\top U_W U_W^\top)` in the paper's columns, with
    :math:`U_W` an orthonormal basis of W and k the number of axes in U. It is the mean squared sine of the
    angles between the axes of U and the span of W, and is computed as that, so small values keep their
    digits.

    Parameters
    ----------
    W : array-like of shape (d, p)
        Learned axes as rows: the decoder transposed.
    U : array-like of shape (k, p)
        Reference axes as rows; orthonormalized here.

    Returns
    -------
    distance : float
        0 if the span of W holds that of U, 1 if they are orthogonal.

    Examples
    --------
    >>> subspace_distance([[2.0, 0, 0], [1, 1, 0]], [[1.0, 0, 0], [0, 0, 1]])
    0.5
    """
    A, B = _bases(W, U, "subspace_distance", names=("W", "U"))
    sines = B - A @ (A.T @ B)
    # A dependent row of U is a zero column of B: missing from the trace, so at distance 1.
    missing = B.shape[1] - np.count_nonzero(B.any(axis=0))
    return float((np.sum(sines**2) + missing) / B.shape[1])


def axis_distance(W: ArrayLike, U: ArrayLike) -> float:
    r"""Distance to the axis-aligned solution, Bao et al. 2020 definition 7.1.

    :math:`d_{align}(W, U) = 1 - \frac1k \sum_{i \le k} \max_j \frac{(u_i^\top w_j)^2}{|u_i|^2 |w_j|^2}`, with
    k the number of axes in U. The maximum runs over all axes of W, so the order of axes does not matter.

    Parameters
    ----------
    W : array-like of shape (d, p)
        Learned axes as rows: the decoder transposed.
    U : array-like of shape (k, p)
        Reference axes as rows.

    Returns
    -------
    distance : float
        0 if every axis of U is, up to sign and scale, an axis of W. A zero row has cosine 0 with everything.

    Examples
    --------
    >>> axis_distance([[0, -3.0], [1, 0]], [[1.0, 0], [0, 1]])
    0.0
    """
    U = check_matrix(U, "axis_distance", "U")
    W = check_matrix(W, "axis_distance", "W", width=U.shape[1])
    squared = np.minimum((unit_rows(U) @ unit_rows(W).T) ** 2, 1.0)
    return float(1.0 - squared.max(axis=1).mean())


def unit_rows(V: np.ndarray) -> np.ndarray:
    """Rows divided by their norms, in float64; zero rows stay zero."""
    V = V.astype(np.float64)
    # Dividing by the largest entry first keeps the squares of very small and very large rows representable.
    largest = np.abs(V).max(axis=1, keepdims=True)
    return divided_rows(np.divide(V, largest, out=np.zeros_like(V), where=largest > 0))


def _bases(
    Q: ArrayLike, E: ArrayLike, owner: str, names: tuple[str, str] = ("Q", "E")
) -> tuple[np.ndarray, np.ndarray]:
    E = check_matrix(E, owner, names[1])
    Q = check_matrix(Q, owner, names[0], width=E.shape[1])
    A, B = (ordered_basis(unit_rows(V).T, relative_tolerance(len(V), V.dtype)) for V in (Q, E))
    return A, B


def _angles(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Angles between spans of orthonormal columns, ascending, in degrees; zero columns count as 90."""
    angles = np.full(min(A.shape[1], B.shape[1]), 90.0)
    A, B = A[:, A.any(axis=0)], B[:, B.any(axis=0)]
    if A.shape[1] < B.shape[1]:
        A, B = B, A
    if B.shape[1]:
        overlap = A.T @ B
        cosines = np.clip(np.linalg.svd(overlap, compute_uv=False), 0, 1)
        sines = np.clip(np.linalg.svd(B - A @ overlap, compute_uv=False)[::-1], 0, 1)
        # Both are ordered from the smallest angle to the largest, so they pair up.
        found = np.where(cosines**2 >= 0.5, np.arcsin(sines), np.arccos(cosines))
        angles[: len(found)] = np.degrees(found)
    return angles
