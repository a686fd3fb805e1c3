"""Leading principal axes of sparse rows by Lanczos iteration, without a scatter and without dense rows.

A text in 30,000 words has a few dozen nonzero numbers, and its scatter has a billion. The axes of reconstruction and of
dot products are the leading right singular vectors of ``sqrt(w / n) (x - centre)``: products with that matrix need the
nonzero numbers alone, as the centre is subtracted from the product.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from firstk._base.linalg import ordered_eigh, rank_tolerance, signed
from firstk.contracts import Solution
from firstk.exceptions import InvalidInputError
from firstk.solvers.closed_form import chosen_width


class CenteredRows(LinearOperator):
    """The matrix A of shape (n, p) with ``A^T A`` the second moment of sparse rows about a centre, by its products.

    Parameters
    ----------
    X : sparse matrix of shape (n, p), float64
    centre : ndarray of shape (p,)
    weight : ndarray of shape (n,), optional
    """

    def __init__(self, X: sparse.csr_matrix, centre: np.ndarray, weight: np.ndarray | None = None):
        super().__init__(dtype=np.float64, shape=X.shape)
        weight = np.ones(X.shape[0]) if weight is None else weight
        self._X, self._centre, self._root = X, centre, np.sqrt(weight / weight.sum())[:, None]

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        return self._root * (self._X @ V - self._centre @ V)

    def _rmatmat(self, U: np.ndarray) -> np.ndarray:
        scaled = self._root * U
        return self._X.T @ scaled - np.outer(self._centre, scaled.sum(axis=0))

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        return self._matmat(v.reshape(-1, 1))[:, 0]

    def _rmatvec(self, u: np.ndarray) -> np.ndarray:
        return self._rmatmat(u.reshape(-1, 1))[:, 0]


def principal_axes(rows: CenteredRows, n_components: int) -> Solution:
    """Return the first `n_components` right singular vectors of the rows, as the pencil (A^T A, I) has them.

    The iteration starts from a fixed vector, so that the same rows give the same axes.

    Parameters
    ----------
    rows : CenteredRows
    n_components : int
        Less than both the number of rows and of columns.
    """
    values, V = _leading(rows, n_components)
    found = int(np.sum(values > rank_tolerance(min(rows.shape), np.finfo(np.float64).eps) * values[0]))
    d = chosen_width(n_components, found, found)
    components = np.ascontiguousarray(V[:, :d].T)
    return Solution(components * signed(components)[:, None], values[:d].copy(), d)


def _leading(rows: CenteredRows, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues of A^T A, descending, and its eigenvectors as columns.

    Lanczos works on the smaller side. What it finds is orthonormalized and solved once more within its span, which
    makes axes orthonormal to rounding where singular values are small.
    """
    n, p = rows.shape
    side = rows.H @ rows if p <= n else rows @ rows.H
    start = np.random.default_rng(0).standard_normal(min(n, p))
    try:
        found = eigsh(side, d, v0=start, which="LA")[1]
    except ArpackNoConvergence as error:
        raise InvalidInputError(
            f"The leading {d} axes of the sparse rows were not found ({str(error)[:100]}). Ask for fewer, or pass rows "
            "as a dense array."
        ) from None
    span = np.linalg.qr(found if p <= n else rows.rmatmat(found))[0]
    image = rows.matmat(span)
    values, turn = ordered_eigh(image.T @ image)
    return np.maximum(values, 0.0), span @ turn
