"""Scores of codes in linear tasks (reconstruction, regression, classification): of every prefix, of single coordinates.

A score of prefixes is a whole curve, for every k from 1 to d, from one pass over the rows. Prefixes nest, so what
coordinate k adds is a sum of terms that involve coordinates up to k only, and the curve is a cumulative sum.

A score of single coordinates (``axis_...``) is that of a readout of each alone. With the mean of abs z_k it says
whether magnitude is a sign of usefulness (Talukder et al. 2026 figure 2, panels iii, v, vi).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import blas, solve_triangular

from firstk._base.checks import check_label_pair, check_matrix, check_matrix_pair, check_same_length
from firstk._base.linalg import ordered_basis, relative_tolerance
from firstk.exceptions import InvalidInputError

BLOCK_ROWS = 4096  # rows that are held in float64 at a time
# How far a column must be from the span of those before it, as a share of its size, for normal equations: what they
# lose to rounding is the precision over the square of this, 1e-10.
APART = 1e-3


def explained_variance(X: ArrayLike, Z: ArrayLike, decoder: ArrayLike) -> np.ndarray:
    r"""Share of the variance of X that each prefix of the code reconstructs, for any linear decoder.

    :math:`1 - |X - Z_k A_k^\top|^2 / |X|^2` with :math:`Z_k, A_k` the first k columns. With :math:`G = A^\top A` the
    loss of a row is :math:`|x|^2 - 2 \sum_{i \le k} z_i (A^\top x)_i + \sum_{i,j \le k} G_{ij} z_i z_j`, all k by one
    cumulative sum (docs/theory.md, 4.1; Talukder et al. 2026 appendix B, Bao et al. 2020 appendix C).

    Parameters
    ----------
    X : array-like of shape (n, p)
        Data, already centred by the encoder's mean.
    Z : array-like of shape (n, d)
        Its code.
    decoder : array-like of shape (p, d)
        The decoder A; its columns need not be orthonormal.

    Returns
    -------
    score : ndarray of shape (d,)
        At most 1; negative where a prefix reconstructs worse than the mean does.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> explained_variance(X, X, np.eye(2))
    array([0.9, 1. ])
    """
    X, Z, A = _check_decoded(X, Z, decoder, "explained_variance")
    if not X.any():
        raise InvalidInputError("explained_variance needs an 'X' that varies. All of its entries are 0.")
    errors = _row_errors(((X[rows], Z[rows]) for rows in _row_blocks(len(X))), A, Z.shape)
    return 1.0 - errors.sum(axis=0) / np.sum(X.astype(np.float64) ** 2)


def reconstruction_errors(X: ArrayLike, Z: ArrayLike, decoder: ArrayLike) -> np.ndarray:
    """Squared error of each row that each prefix leaves; arguments as in `explained_variance`.

    Returns
    -------
    errors : ndarray of shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> reconstruction_errors([[3.0, 0.0], [1.0, 2.0]], [[3.0, 0.0], [1.0, 2.0]], np.eye(2))
    array([[0., 0.],
           [4., 0.]])
    """
    X, Z, A = _check_decoded(X, Z, decoder, "reconstruction_errors")
    return _row_errors(((X[rows], Z[rows]) for rows in _row_blocks(len(X))), A, Z.shape)


def linear_readout_r2(
    Z_fit: ArrayLike, Y_fit: ArrayLike, Z: ArrayLike | None = None, Y: ArrayLike | None = None
) -> np.ndarray:
    r"""R² of the best linear readout, with intercept, of each prefix.

    With Z and Y centred and :math:`Z = QR`, :math:`SSE_k = |Y|^2 - \sum_{j \le k} |q_j^\top Y|^2`: one QR
    gives the least-squares readout of every prefix (docs/theory.md, 4.3). In sample the score is :math:`1 -
    SSE_k / |Y|^2`.

    Parameters
    ----------
    Z_fit : array-like of shape (n, d)
        Code on which the readouts are fitted. A column that depends on those before it adds nothing.
    Y_fit : array-like of shape (n,) or (n, t)
        Targets.
    Z, Y : array-like of shape (m, d) and (m,) or (m, t), optional
        Code and targets on which they are scored; the fitting pair if not given.

    Returns
    -------
    score : ndarray of shape (d,)
        Errors of all targets together over their variation together, as scikit-learn's
        ``r2_score(..., multioutput="variance_weighted")``.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> linear_readout_r2(Z, 2 * Z[:, 0] + Z[:, 1] + 5)
    array([0.8, 1. ])
    """
    owner = "linear_readout_r2"
    if (Z is None) != (Y is None):
        raise InvalidInputError(f"{owner} takes 'Z' and 'Y' together, or neither for the score in sample.")
    Z_fit, Y_fit = _check_readout(Z_fit, Y_fit, owner, ("Z_fit", "Y_fit"))
    Z, Y = (Z_fit, Y_fit) if Z is None else _check_readout(Z, Y, owner, ("Z", "Y"), like=(Z_fit, Y_fit))
    variation = float(np.sum((Y - Y.mean(axis=0, dtype=np.float64)) ** 2))
    if variation == 0:
        raise InvalidInputError(f"{owner} needs targets that vary. Every target is constant over {len(Y)} rows.")
    return 1.0 - readout_errors(Z_fit, Y_fit, Z, Y).sum(axis=0) / variation


def readout_errors(
    Z_fit: ArrayLike, Y_fit: ArrayLike, Z: ArrayLike, Y: ArrayLike, *, whole: bool = False
) -> np.ndarray:
    """Squared error, in each row of Y, of the best linear readout of each prefix; arguments as in `linear_readout_r2`.

    Returns
    -------
    errors : ndarray of shape (m, d), or (m, 1) of the `whole` code alone

    Examples
    --------
    >>> readout_errors([[0.0], [2.0]], [0.0, 4.0], [[1.0], [3.0]], [2.0, 5.0])
    array([[0.],
           [1.]])
    """
    owner = "readout_errors"
    Z_fit, Y_fit = _check_readout(Z_fit, Y_fit, owner, ("Z_fit", "Y_fit"))
    Z, Y = _check_readout(Z, Y, owner, ("Z", "Y"), like=(Z_fit, Y_fit))
    # A readout is a decoder of the orthonormal coordinates into the targets.
    offset = Y_fit.mean(axis=0, dtype=np.float64)
    readout = fit_readout(Z_fit, lambda rows: Y_fit[rows] - offset)
    blocks = ((Y[rows] - offset, readout.coordinates(Z[rows])) for rows in _row_blocks(len(Z)))
    if whole:
        return np.concatenate([np.sum((part - code @ readout.C) ** 2, axis=1, keepdims=True) for part, code in blocks])
    return _row_errors(blocks, readout.C.T, Z.shape)


def linear_probe_accuracy(
    Z_fit: ArrayLike, y_fit: ArrayLike, Z: ArrayLike, y: ArrayLike, *, per_row: bool = False
) -> np.ndarray:
    """Accuracy of a linear probe of each prefix: least squares on one-hot labels, then the largest score.

    The probes of all prefixes come from one QR (docs/theory.md, 4.3), and their scores on new rows from one
    sweep of rank-one updates. It is a proxy of logistic regression that costs a fraction of one fit.

    Parameters
    ----------
    Z_fit : array-like of shape (n, d)
        Code on which the probes are fitted.
    y_fit : array-like of shape (n,)
        Labels; every different value is a class.
    Z : array-like of shape (m, d)
        Code to classify.
    y : array-like of shape (m,)
        Its labels; one that is not in `y_fit` counts as wrong.
    per_row : bool
        Return the hits of each row, bool of shape (m, d), instead of their mean.

    Returns
    -------
    accuracy : ndarray of shape (d,)
        Ties between classes go to the first in sorted order.

    Examples
    --------
    >>> Z = [[0.1, 1.0], [-0.1, 1.2], [0.1, -1.0], [-0.1, -1.1]]
    >>> linear_probe_accuracy(Z, [0, 0, 1, 1], [[0.3, 0.9], [0.3, -0.9]], [0, 1])
    array([0.5, 1. ])
    """
    owner = "linear_probe_accuracy"
    Z_fit = check_matrix(Z_fit, owner, "Z_fit")
    Z = check_matrix(Z, owner, "Z", width=Z_fit.shape[1])
    y_fit, labels = check_label_pair(y_fit, y, (len(Z_fit), len(Z)), owner, ("y_fit", "y"))
    classes, codes = np.unique(y_fit, return_inverse=True)
    shares = np.bincount(codes, minlength=len(classes)) / len(codes)
    eye = np.eye(len(classes))
    readout = fit_readout(Z_fit, lambda rows: eye[codes[rows]] - shares)
    hits = np.empty(Z.shape, dtype=bool)
    for rows in _row_blocks(len(Z)):
        scores = np.tile(shares, (rows.stop - rows.start, 1))
        for j, (q, c) in enumerate(zip(readout.coordinates(Z[rows]).T, readout.C, strict=True)):
            blas.dger(1.0, c, q, a=scores.T, overwrite_a=True)
            hits[rows, j] = classes[scores.argmax(axis=1)] == labels[rows]
    return hits if per_row else hits.mean(axis=0)


def axis_probe_accuracy(Z_fit: ArrayLike, y_fit: ArrayLike, Z: ArrayLike, y: ArrayLike) -> np.ndarray:
    r"""Accuracy of a linear probe of each single coordinate.

    The probe is the discriminant rule with class means :math:`m_c`, shares :math:`\pi_c` and one pooled variance
    :math:`s^2` within classes: the class of largest :math:`z m_c / s^2 - m_c^2 / 2 s^2 + \log \pi_c`. Talukder et al.
    2026 fits a logistic regression instead; both have scores linear in z, and this one is solved at once for all axes.

    Parameters
    ----------
    Z_fit : array-like of shape (n, d)
        Code on which the probes are fitted.
    y_fit : array-like of shape (n,)
        Labels; every different value is a class.
    Z : array-like of shape (m, d)
        Code to classify.
    y : array-like of shape (m,)
        Its labels; one that is not in `y_fit` counts as wrong.

    Returns
    -------
    accuracy : ndarray of shape (d,)
        A coordinate that does not vary within any class, or at all, names the most frequent class.

    Examples
    --------
    >>> Z = [[0.1, 1.0], [-0.1, 1.2], [0.1, -1.0], [-0.1, -1.1]]
    >>> axis_probe_accuracy(Z, [0, 0, 1, 1], [[0.3, 0.9], [0.3, -0.9]], [0, 1])
    array([0.5, 1. ])
    """
    owner = "axis_probe_accuracy"
    Z_fit, Z = check_matrix_pair(Z_fit, Z, owner, ("Z_fit", "Z"))
    y_fit, y = check_label_pair(y_fit, y, (len(Z_fit), len(Z)), owner, ("y_fit", "y"))
    Z_fit, Z = Z_fit.astype(np.float64), Z.astype(np.float64)
    classes, codes, counts = np.unique(y_fit, return_inverse=True, return_counts=True)
    means = np.zeros((len(classes), Z.shape[1]))
    np.add.at(means, codes, Z_fit)
    means /= counts[:, None]
    within = np.mean((Z_fit - means[codes]) ** 2, axis=0)  # (d,)
    log_shares = np.log(counts / len(codes))
    accuracy = np.empty(Z.shape[1])
    for j, (m, s2) in enumerate(zip(means.T, within, strict=True)):
        slope = m / s2 if s2 > 0 else np.zeros_like(m)
        scores = np.outer(Z[:, j], slope) - slope * m / 2 + log_shares  # (m, C)
        accuracy[j] = np.mean(classes[scores.argmax(axis=1)] == y)
    return accuracy


def axis_readout_r2(Z_fit: ArrayLike, Y_fit: ArrayLike, Z: ArrayLike, Y: ArrayLike) -> np.ndarray:
    r"""R² of the best linear readout, with intercept, of each single coordinate.

    Parameters
    ----------
    Z_fit, Y_fit : array-like of shape (n, d) and (n,) or (n, t)
        Code and targets on which the readouts are fitted.
    Z, Y : array-like of shape (m, d) and (m,) or (m, t)
        Code and targets on which they are scored.

    Returns
    -------
    score : ndarray of shape (d,)
        Errors of all targets together over their variation together.

    Examples
    --------
    >>> Z = [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    >>> axis_readout_r2(Z, [3.0, -1.0, 1.0, -3.0], Z, [3.0, -1.0, 1.0, -3.0])
    array([0.8, 0.2])
    """
    owner = "axis_readout_r2"
    Z_fit, Z = check_matrix_pair(Z_fit, Z, owner, ("Z_fit", "Z"))
    Y_fit, Y = (
        check_matrix(part.reshape(len(part), -1), owner, "Y").astype(float) for part in map(np.asarray, (Y_fit, Y))
    )
    check_same_length(Z_fit, Y_fit, "Z_fit", "Y_fit", owner)
    check_same_length(Z, Y, "Z", "Y", owner)
    variation = float(np.sum((Y - Y.mean(axis=0)) ** 2))
    if variation == 0:
        raise InvalidInputError(f"{owner} needs targets that vary. Every target is constant over {len(Y)} rows.")
    centre, offset = Z_fit.mean(axis=0, dtype=np.float64), Y_fit.mean(axis=0)
    dZ, errors = Z_fit - centre, Y - offset
    spread = np.sum(dZ**2, axis=0)  # (d,)
    slopes = np.divide(
        dZ.T @ (Y_fit - offset), spread[:, None], where=spread[:, None] > 0, out=np.zeros((len(spread), Y.shape[1]))
    )
    code = Z - centre  # |e - z b|² = |e|² - 2 b.(z^T e) + |z|² |b|², axis by axis
    gains = 2 * np.sum(slopes * (code.T @ errors), axis=1) - np.sum(code**2, axis=0) * np.sum(slopes**2, axis=1)
    return 1 - (np.sum(errors**2) - gains) / variation


class Readout(NamedTuple):
    """Least-squares readouts of all prefixes: row j of C belongs to the j-th orthonormal coordinate."""

    mean: np.ndarray  # (d,)
    R: np.ndarray  # (r, r), upper triangular: the kept columns in the orthonormal coordinates
    kept: np.ndarray  # (d,), whether a column adds a direction
    C: np.ndarray  # (d, t), zero rows where it does not

    def coordinates(self, Z: np.ndarray) -> np.ndarray:
        """Orthonormal coordinates of a code, zero columns where a column added nothing in the fit."""
        coordinates = np.zeros(Z.shape)
        if self.kept.any():
            centred = (Z - self.mean)[:, self.kept]
            coordinates[:, self.kept] = solve_triangular(self.R, centred.T, trans="T").T
        return coordinates


def fit_readout(Z: np.ndarray, targets: Callable[[slice], np.ndarray]) -> Readout:
    r"""Fit on a code and centred targets given by rows.

    With :math:`Z^\top Z = R^\top R` and R upper triangular, :math:`C = R^{-\top} Z^\top Y`: normal equations, which
    serve every prefix as a QR does, in a fraction of its time. They square the condition of the code, so that a code
    whose columns nearly depend on those before them goes through the QR.
    """
    mean = Z.mean(axis=0, dtype=np.float64)
    d = len(mean)
    products, squares = np.zeros((d, d)), np.zeros(d)
    answers: Any = 0.0
    for rows in _row_blocks(len(Z)):
        centred = Z[rows] - mean
        products += centred.T @ centred
        answers = answers + centred.T @ targets(rows)
        # Sizes before centring: what centring leaves of a constant column is rounding, not a direction.
        squares += np.einsum("ij,ij->j", Z[rows], Z[rows], dtype=np.float64)
    kept = np.sqrt(np.diagonal(products)) > relative_tolerance(d, Z.dtype) * np.sqrt(squares)
    R = _triangular_root(products[np.ix_(kept, kept)], np.sqrt(squares[kept]))
    if R is None:
        return _stacked_readout(Z, targets, mean, np.sqrt(squares))
    C = np.zeros((d, answers.shape[1]))
    C[kept] = solve_triangular(R, answers[kept], trans="T")
    return Readout(mean, R, kept, C)


def _triangular_root(products: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
    """Return R of ``products = R.T @ R``; None where a column is near zero, or near the span of those before it."""
    size = np.sqrt(np.diagonal(products))
    if not len(size) or (size <= APART * scale).any():
        return None
    try:
        R = np.linalg.cholesky(products / np.outer(size, size)).T
    except np.linalg.LinAlgError:
        return None
    return R * size if np.diagonal(R).min() > APART else None


def _stacked_readout(
    Z: np.ndarray, targets: Callable[[slice], np.ndarray], mean: np.ndarray, size: np.ndarray
) -> Readout:
    """Fit by a QR of blocks stacked on the factor so far; columns that add no direction are left out."""
    d = Z.shape[1]
    R, C = np.zeros((0, d)), np.zeros((0, 1))
    for rows in _row_blocks(len(Z), max(BLOCK_ROWS, 4 * d)):
        Y = targets(rows)
        C = C if len(C) else np.zeros((0, Y.shape[1]))
        Q, R = np.linalg.qr(np.vstack([R, Z[rows] - mean]))  # numpy's, as it lets other threads run meanwhile
        C = Q.T @ np.vstack([C, Y])
    B = ordered_basis(R, relative_tolerance(d, Z.dtype), scale=size)
    kept = (B != 0).any(axis=0)
    return Readout(mean, (B.T @ R)[np.ix_(kept, kept)], kept, B.T @ C)


def _row_errors(blocks: Iterator[tuple[np.ndarray, np.ndarray]], A: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """|x - A_k z_k|² of every row for every k."""
    A = A.astype(np.float64)
    # Coordinate k brings the pairs (i, j) with max(i, j) = k: entry (i, k) is what (i, k) and (k, i) weigh together.
    G = A.T @ A
    pairs = 2 * np.triu(G, 1) + np.diag(np.diagonal(G))
    errors = np.empty(shape)
    start = 0
    for X, Z in blocks:
        X, Z = X.astype(np.float64), Z.astype(np.float64)
        part = errors[start : start + len(X)]
        np.cumsum(Z * (Z @ pairs - 2 * (X @ A)), axis=1, out=part)
        part += np.einsum("ij,ij->i", X, X)[:, None]
        start += len(X)
    # What is left of a perfect reconstruction is rounding, and no error is negative.
    return np.maximum(errors, 0.0, out=errors)


def _check_decoded(
    X: ArrayLike, Z: ArrayLike, decoder: ArrayLike, owner: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = check_matrix(X, owner, "X")
    Z = check_matrix(Z, owner, "Z")
    check_same_length(X, Z, "X", "Z", owner)
    A = check_matrix(decoder, owner, "decoder", width=Z.shape[1])
    if len(A) != X.shape[1]:
        raise InvalidInputError(
            f"{owner} takes a 'decoder' of shape ({X.shape[1]}, {Z.shape[1]}): one row per column "
            f"of 'X'. Got {A.shape}; components (axes as rows) are passed transposed."
        )
    return X, Z, A


def _check_readout(
    Z: ArrayLike,
    Y: ArrayLike | None,
    owner: str,
    names: tuple[str, str],
    like: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    Z = check_matrix(Z, owner, names[0])
    Y = np.asarray(Y)
    Y = check_matrix(Y[:, None] if Y.ndim == 1 else Y, owner, names[1])
    check_same_length(Z, Y, *names, owner)
    if like is not None and (Z.shape[1], Y.shape[1]) != (like[0].shape[1], like[1].shape[1]):
        raise InvalidInputError(
            f"{owner} needs {like[0].shape[1]} coordinates and {like[1].shape[1]} targets in 'Z' and 'Y', as in "
            f"the fit. Got {Z.shape[1]} and {Y.shape[1]}."
        )
    return Z, Y


def _row_blocks(n: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    return (slice(first, min(first + size, n)) for first in range(0, n, size))
