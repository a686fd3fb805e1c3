"""Symmetric and generalised eigenproblems, with one rule each for rank, order and signs.

Everything that decides *which* directions count as signal, in *what order* they stand and *which way*
they point is decided here, once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

# Two entries whose sizes differ by less than this share the role of "largest": the first one decides the
# sign, so that rounding cannot flip an axis whose largest entries tie.
_SIGN_TIE = 1e-6
# One in so many eigenvectors, or fewer, are found alone; of matrices below this size all of them are as quick.
FEW, _SMALL = 4, 256


def rank_tolerance(p: int, eps: float) -> float:
    """Relative size below which an eigenvalue of a p x p scatter is rounding, not signal.

    The **scatter rank rule**: an eigenvalue counts when it exceeds ``(10 + sqrt(p)) * eps`` times the largest,
    `eps` being the precision in which the products behind the scatter were taken. The measured error of
    float32 products is about 1 eps of the largest eigenvalue whatever p is (see docs/decisions/solvers.md); the
    rule leaves a margin above it.
    """
    return (10.0 + np.sqrt(p)) * eps


def ordered_eigh(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a symmetric matrix, descending, and its eigenvectors as columns."""
    # numpy's, because its BLAS is the one that made S: scipy brings a second one, whose threads get in the way.
    values, vectors = np.linalg.eigh(S)  # LAPACK ascends, we descend
    return values[::-1], vectors[:, ::-1]


def leading_eigh(S: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `count` largest eigenvalues of a symmetric matrix, descending, and their eigenvectors as columns."""
    if count > len(S) // FEW or len(S) < _SMALL:
        values, vectors = ordered_eigh(S)
        return values[:count], vectors[:, :count]
    import scipy.linalg

    # Relatively robust representations (Dhillon and Parlett 2004) find some eigenvectors without the others.
    places = (len(S) - count, len(S) - 1)
    values, vectors = scipy.linalg.eigh(S, subset_by_index=places, driver="evr", check_finite=False)
    return values[::-1], vectors[:, ::-1]


def single_eigh(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Do what `ordered_eigh` does in single precision, in half the time, for axes that are tried out."""
    import scipy.linalg

    size = float(np.abs(S).max(initial=0.0)) or 1.0  # nothing is too large or too small for single precision
    # scipy's, because numpy's driver gains nothing from single precision.
    values, vectors = scipy.linalg.eigh((S / size).astype(np.float32), driver="evd", check_finite=False)
    return size * values[::-1].astype(np.float64), vectors[:, ::-1]


def symmetrised(S: np.ndarray) -> np.ndarray:
    """Return the symmetric part of a square matrix."""
    return (S + S.T) / 2


def shrunk(S: np.ndarray, shrinkage: float | None, n_features: int) -> np.ndarray:
    """Return ``(1 - a) S + a tr(S)/p I``: scale-free regularisation on the input side.

    Parameters
    ----------
    S : ndarray of shape (r, r)
        A scatter, in full coordinates or in those of an orthonormal basis of its range.
    shrinkage : float or None
        a in [0, 1]; None leaves `S` as it is.
    n_features : int
        p, the width of the vectors: larger than r when `S` is written in a basis of its range.
    """
    if not shrinkage:
        return S
    ridge = shrinkage * np.trace(S) / n_features
    return (1.0 - shrinkage) * S + ridge * np.eye(len(S))


def whitener(N: np.ndarray, eps: float) -> np.ndarray:
    """Return R of shape (p, r) with ``R^T N R = I``, its columns in the numerical range of a semi-definite `N`.

    `N` is brought to unit diagonal first, which makes the rank rule blind to the units of the columns: data in metres
    and data in micrometres have the same rank. Constant columns (zero on the diagonal) stay out. When the rest is
    singular, the range is that of `N` as it stands, so that rotating the data rotates the answer.
    """
    varies = np.flatnonzero(np.diag(N) > 0)
    if len(varies) == 0:
        return np.zeros((len(N), 0))
    inner = N[np.ix_(varies, varies)]
    scale = np.sqrt(np.diag(inner))
    values, vectors = ordered_eigh(inner / scale[:, None] / scale)
    kept = values > rank_tolerance(len(N), eps) * values[0]
    if kept.all():
        within = (vectors / scale[:, None]) / np.sqrt(values)
    else:  # vectors scaled up again span the range of N; whiten inside it
        basis = np.linalg.qr(vectors[:, kept] * scale[:, None])[0]
        within = basis @ _inverse_root(symmetrised(basis.T @ inner @ basis))
    R = np.zeros((len(N), within.shape[1]))
    R[varies] = within
    return R


def _inverse_root(A: np.ndarray) -> np.ndarray:
    """Return C with ``C^T A C = I`` for a positive definite `A`, brought to unit diagonal first."""
    scale = np.sqrt(np.diag(A))
    values, vectors = ordered_eigh(A / scale[:, None] / scale)
    kept = values > 0
    return (vectors[:, kept] / scale[:, None]) / np.sqrt(values[kept])


def row_space(X: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis, as columns, of the rows of `X`, for fewer rows than columns.

    Centred rows and the mean are treated apart, so that a large common offset hides no direction. Directions that are
    rounding are left out: in their coordinates noise would look like data.
    """
    import scipy.linalg  # here, as those who read a model need none of it

    mean = X.mean(axis=0)
    eps = np.finfo(np.float64).eps
    centred = X - mean
    centred -= centred.mean(axis=0)  # the mean of large numbers is rounded: once more, about what it left
    Q, triangle, _ = scipy.linalg.qr(centred.T, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(np.diag(triangle))
    # Centred rows add up to zero but for the rounding of the mean, once a row: that much is no direction.
    basis = Q[:, size > 10 * len(X) * eps * max(size[0], np.linalg.norm(mean))]
    rest = mean - basis @ (basis.T @ mean)
    rest -= basis @ (basis.T @ rest)  # once more: the first pass leaves what rounding left
    length = np.linalg.norm(rest)
    return basis if length <= len(X) * eps * np.linalg.norm(mean) else np.column_stack([rest / length, basis])


def signed(components: np.ndarray) -> np.ndarray:
    """Return +1 or -1 per row such that the largest absolute entry of each row becomes positive."""
    size = np.abs(components)
    first = np.argmax(size >= (1.0 - _SIGN_TIE) * size.max(axis=1, keepdims=True), axis=1)
    return np.where(np.take_along_axis(components, first[:, None], axis=1)[:, 0] < 0, -1.0, 1.0)


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
    A sequence of nested spans is called a flag: the principal angles of leading subspaces and the best linear readout
    of every prefix are read off such a basis, and both must survive columns that add no direction.

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
