"""Slow, obvious formulas that the fast ones are compared with, and the data on which they are compared."""

from __future__ import annotations

import numpy as np

EPS = np.finfo(np.float64).eps


def scatter(A, B=None, weights=None):
    """Centred cross scatter divided by the total weight, by extended precision and the definition."""
    A = np.asarray(A, dtype=np.longdouble)
    B = A if B is None else np.asarray(B, dtype=np.longdouble)
    w = np.ones(len(A), dtype=np.longdouble) if weights is None else np.asarray(weights, dtype=np.longdouble)
    n = w.sum()
    dA, dB = A - w @ A / n, B - w @ B / n
    return np.asarray((dA * w[:, None]).T @ dB / n, dtype=np.float64)


def class_scatters(X, y, weights=None):
    """Within- and between-class scatter divided by the total weight, class by class."""
    X = np.asarray(X, dtype=np.longdouble)
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    mean = w @ X / w.sum()
    Sw = np.zeros((X.shape[1],) * 2, dtype=np.longdouble)
    Sb = np.zeros_like(Sw)
    for c in np.unique(y):
        rows, v = X[y == c], w[y == c]
        m = v @ rows / v.sum()
        Sw += ((rows - m) * v[:, None]).T @ (rows - m)
        Sb += v.sum() * np.outer(m - mean, m - mean)
    return np.asarray(Sw / w.sum(), dtype=np.float64), np.asarray(Sb / w.sum(), dtype=np.float64)


def third_comoment(left, right, scores):
    """Sum of (s - mean s)(x - mean x)(x' - mean x')^T, pair by pair."""
    L, R, s = (np.asarray(part, dtype=np.longdouble) for part in (left, right, scores))
    dL, dR, ds = L - L.mean(axis=0), R - R.mean(axis=0), s - s.mean()
    total = sum(ds[i] * np.outer(dL[i], dR[i]) for i in range(len(L)))
    return np.asarray(total, dtype=np.float64)


def clear_gaps(spectrum, noise):
    """Tell which axes of a descending spectrum stand further than `noise` from both neighbors."""
    values = np.asarray(spectrum, dtype=float)
    steps = np.abs(np.diff(values))
    above, below = np.append(np.inf, steps), np.append(steps, np.inf)
    return np.minimum(above, below) > noise


def cosines(A, B, metric=None):
    """Absolute cosine of row k of A with row k of B, Euclidean or in a metric."""
    M = np.eye(A.shape[1]) if metric is None else metric
    norms = np.sqrt(np.einsum("ki,ij,kj->k", A, M, A) * np.einsum("ki,ij,kj->k", B, M, B))
    return np.abs(np.einsum("ki,ij,kj->k", A, M, B)) / norms


def classes_of(rng, n, n_classes):
    """Labels in which every class has at least three rows and no two classes the same number."""
    sizes = np.maximum(3, (n * np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()).astype(int))
    y = np.repeat(np.arange(n_classes), sizes)
    return rng.permutation(np.append(y, np.full(max(0, n - len(y)), n_classes - 1))[:n])


def correlated(rng, n, p, decay=0.8):
    """Rows with a decaying spectrum in a random basis: every eigengap is clear."""
    basis = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return rng.standard_normal((n, p)) * decay ** np.arange(p) @ basis


def frozen(*arrays):
    """Make arrays read-only, so that whoever writes into one is found out."""
    for array in arrays:
        array.flags.writeable = False
    return arrays[0] if len(arrays) == 1 else arrays


def perturbations(B, rng, count=1000):
    """Encoders near and far from `B`, shape (count, d, p): sizes from a thousandth of its rows to all of them."""
    sizes = np.repeat(np.logspace(-3, 0, 10), count // 10)
    noise = rng.standard_normal((count, *B.shape)) * np.linalg.norm(B, axis=1, keepdims=True) / np.sqrt(B.shape[1])
    return B + sizes[:, None, None] * noise


def residual(targets, Z):
    """Mean squared error of the best linear readout of centred targets from centred codes (..., n, k)."""
    Q = np.linalg.qr(Z)[0]
    return (np.sum(targets**2) - np.sum((np.swapaxes(Q, -1, -2) @ targets) ** 2, axis=(-2, -1))) / len(targets)


def orthonormalized(B, N):
    """Rows of each encoder (..., d, p) made orthonormal in the metric N, in order."""
    L = np.linalg.cholesky(B @ N @ np.swapaxes(B, -1, -2))
    return np.linalg.solve(L, B)
