"""Symmetric and generalised eigenproblems, with one rule each for rank, order and signs.

Everything that decides *which* directions count as signal, in *what order* they stand and *which way*
they point is decided here, once.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

# Two entries whose sizes differ by less than this share the role of "largest": the first one decides the
# sign, so that rounding cannot flip an axis whose largest entries tie.
_SIGN_TIE = 1e-6


def rank_tolerance(p: int, eps: float) -> float:
    """Relative size below which an eigenvalue of a p x p scatter is rounding, not signal.

    The **scatter rank rule**: an eigenvalue counts when it exceeds ``(10 + sqrt(p)) * eps`` times the largest,
    `eps` being the precision in which the products behind the scatter were taken. The measured error of
    float32 products is about 1 eps of the largest eigenvalue whatever p is (see docs/decisions.md); the
    rule leaves a margin above it.
    """
    return (10.0 + np.sqrt(p)) * eps


def ordered_eigh(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a symmetric matrix, descending, and its eigenvectors as columns."""
    # evd is the quickest driver for a full decomposition; LAPACK ascends, we descend.
    values, vectors = scipy.linalg.eigh(S, driver="evd", check_finite=False)
    return values[::-1], vectors[:, ::-1]


def symmetrised(S: np.ndarray) -> np.ndarray:
    """Return the symmetric part of a square matrix."""
    return (S + S.T) / 2


def shrunk(S: np.ndarray, shrinkage: float | None, ambient: int) -> np.ndarray:
    """Return ``(1 - a) S + a tr(S)/p I``: scale-free regularisation on the input side.

    Parameters
    ----------
    S : ndarray of shape (r, r)
        A scatter, in full coordinates or in those of an orthonormal basis of its range.
    shrinkage : float or None
        a in [0, 1]; None leaves `S` as it is.
    ambient : int
        p, the width of the vectors: larger than r when `S` is written in a basis of its range.
    """
    if not shrinkage:
        return S
    ridge = shrinkage * np.trace(S) / ambient
    return (1.0 - shrinkage) * S + ridge * np.eye(len(S))


def whitener(N: np.ndarray, eps: float) -> np.ndarray:
    """Return R of shape (p, r) with ``R^T N R = I`` on the numerical range of a semi-definite `N`.

    `N` is brought to unit diagonal first. That changes nothing in exact arithmetic and makes the rank rule
    blind to the units of the columns: data in metres and data in micrometres have the same rank.
    """
    scale = np.sqrt(np.maximum(np.diag(N), 0.0))
    unit = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    values, vectors = ordered_eigh(unit[:, None] * N * unit)
    kept = values > rank_tolerance(len(N), eps) * max(values[0], 0.0)
    return (unit[:, None] * vectors[:, kept]) / np.sqrt(values[kept])


def row_space(X: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis, as columns, that contains every row of `X`; for fewer rows than columns.

    The mean goes first and the centred rows after it, so that a large common offset stays in one coordinate.
    """
    mean = X.mean(axis=0, keepdims=True)
    basis, _ = scipy.linalg.qr(np.vstack([mean, X - mean]).T, mode="economic", check_finite=False)
    return basis


def signed(components: np.ndarray) -> np.ndarray:
    """Return +1 or -1 per row such that the largest absolute entry of each row becomes positive."""
    size = np.abs(components)
    first = np.argmax(size >= (1.0 - _SIGN_TIE) * size.max(axis=1, keepdims=True), axis=1)
    return np.where(np.take_along_axis(components, first[:, None], axis=1)[:, 0] < 0, -1.0, 1.0)
