"""Order-aware comparison of a learned basis with a reference basis, axis by axis.

Rows are axes, as in ``components_``; the papers write columns. Cosines may be taken in the inner product of
a scatter matrix: directions that agree to 0.9996 in the metric of an ill-conditioned Sw can have Euclidean
cosine 0.33, and only the former says whether the code is the same (docs/theory.md, section 3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_matrix
from firstk.exceptions import InvalidInputError
from firstk.metrics.subspace import unit_rows


def paired_cosines(Q: ArrayLike, E: ArrayLike, metric: ArrayLike | None = None) -> np.ndarray:
    r"""Absolute cosine of the k-th learned axis with the k-th reference axis, for every k.

    :math:`\mathrm{PairedCos}(k) = |\langle q_k, e_k \rangle|` for axes of unit norm (Talukder et al. 2026,
    equation 37).

    Parameters
    ----------
    Q : array-like of shape (a, p)
        Learned axes as rows, in order; scaled to unit norm here.
    E : array-like of shape (b, p)
        Reference axes as rows, in order.
    metric : array-like of shape (p, p), optional
        Symmetric positive semi-definite matrix M: norms and products are those of
        :math:`\langle q, e \rangle_M = q^\top M e`. Euclidean if not given.

    Returns
    -------
    cosines : ndarray of shape (min(a, b),)
        In [0, 1], blind to sign and scale. An axis of norm 0 has cosine 0.

    Examples
    --------
    >>> paired_cosines([[1, 0], [1, 1]], [[-2, 0], [0, 5]]).round(4)
    array([1.    , 0.7071])
    """
    Q, E, ME = _in_metric(Q, E, metric, "paired_cosines")
    d = min(len(Q), len(E))
    return np.minimum(np.abs(np.einsum("kp,kp->k", Q[:d], ME[:d])), 1.0)


def max_cosines(Q: ArrayLike, E: ArrayLike, metric: ArrayLike | None = None) -> np.ndarray:
    r"""Absolute cosine of the k-th learned axis with the reference axis nearest to it.

    :math:`\mathrm{MaxCos}(k) = \max_j |\langle q_k, e_j \rangle|` (Talukder et al. 2026, equation 38): whether
    axis k lies
    along any reference axis at all. Where it exceeds `paired_cosines`, the axes are right and their order
    is not.

    Parameters
    ----------
    Q : array-like of shape (a, p)
        Learned axes as rows.
    E : array-like of shape (b, p)
        Reference axes as rows; the maximum runs over all of them.
    metric : array-like of shape (p, p), optional
        As in `paired_cosines`.

    Returns
    -------
    cosines : ndarray of shape (a,)

    Examples
    --------
    >>> Q, E = [[0, 1], [1, 0]], [[1, 0], [0, 1]]
    >>> paired_cosines(Q, E), max_cosines(Q, E)
    (array([0., 0.]), array([1., 1.]))
    """
    Q, E, ME = _in_metric(Q, E, metric, "max_cosines")
    return np.minimum(np.abs(Q @ ME.T).max(axis=1), 1.0)


def _in_metric(
    Q: ArrayLike, E: ArrayLike, metric: ArrayLike | None, owner: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axes of unit norm in the metric, and the reference axes multiplied by it."""
    E = check_matrix(E, owner, "E")
    Q = unit_rows(check_matrix(Q, owner, "Q", width=E.shape[1]))
    E = unit_rows(E)
    if metric is None:
        return Q, E, E
    M = _check_metric(metric, E.shape[1], owner)
    Q, E = _unit_in(Q, M, owner), _unit_in(E, M, owner)
    return Q, E, E @ M


def _check_metric(metric: ArrayLike, p: int, owner: str) -> np.ndarray:
    M = check_matrix(metric, owner, "metric", width=p)
    if len(M) != p:
        raise InvalidInputError(f"{owner} takes a square 'metric', {p} x {p} here. Got shape {M.shape}.")
    worst = float(np.abs(M - M.T).max())
    if worst > 1e3 * np.finfo(M.dtype).eps * float(np.abs(M).max()):
        raise InvalidInputError(
            f"{owner} takes a symmetric 'metric'. Mirrored entries differ by up to {worst:.3g}; "
            "if that is rounding, pass (M + M.T) / 2."
        )
    return M.astype(np.float64)


def _unit_in(V: np.ndarray, M: np.ndarray, owner: str) -> np.ndarray:
    squares = np.einsum("kp,kp->k", V @ M, V)
    # Rounding of a semi-definite form is of the order of p eps times the largest entry for unit rows.
    rounding = len(M) * np.finfo(np.float64).eps * float(np.abs(M).max())
    if (squares < -10 * rounding).any():
        k = int(squares.argmin())
        raise InvalidInputError(
            f"{owner} takes a positive semi-definite 'metric'. Axis {k} has the squared norm "
            f"{squares[k]:.3g} in it; pass a scatter matrix, or clip its negative eigenvalues."
        )
    norms = np.sqrt(np.where(squares > rounding, squares, 0.0))[:, None]
    return np.divide(V, norms, out=np.zeros_like(V), where=norms > 0)
