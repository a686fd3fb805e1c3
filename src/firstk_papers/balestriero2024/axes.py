"""Principal axes of the rows and their covariance with the targets, and rows that are held out along them.

In whitened principal coordinates u = D^(-1/2) P^T (x - mean) the scatter is the identity. The best linear readout of
any set of coordinates is then known without a fit, and the prefixes of any other linear code are spans of the first
columns of an orthonormal matrix Q.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from firstk import Moments
from firstk.exceptions import InvalidInputError

# Rows that are held out: a quarter, and at most so many; reference rows of a neighbor search; rows that tell at all.
HELD_SHARE, MOST_HELD, MOST_REFERENCES, FEWEST_HELD = 0.25, 2048, 8192, 20
# If less than this share of a coordinate's norm is orthogonal to the earlier ones, it counts as rounding error.
_NEW_DIRECTION = 1e-9


@dataclass(frozen=True, eq=False)
class Target:
    """The target: its cross scatter with the rows, its second moment, and the classes if it is labels.

    Labels are one-hot encoded.
    """

    cross: np.ndarray  # (p, q)
    second: np.ndarray  # (q, q)
    mean: np.ndarray  # (q,)
    classes: np.ndarray | None

    @property
    def spread(self) -> float:
        """Total variance of the targets."""
        return float(np.trace(self.second))

    def values(self, y: np.ndarray) -> np.ndarray:
        """Return the targets of rows, one-hot for labels, shape (n, q)."""
        if self.classes is None:
            return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return (np.asarray(y)[:, None] == self.classes).astype(np.float64)


def target_of(moments: Moments) -> Target | None:
    """Return the target of moments; None without labels or targets."""
    if moments.classes is not None:
        shares = moments.class_shares
        cross = ((moments.class_means - moments.mean) * shares[:, None]).T
        return Target(cross, np.diag(shares) - np.outer(shares, shares), shares, moments.classes)
    if moments.q:
        return Target(moments.Sxy, moments.Syy, moments.target_mean, None)
    return None


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes above the rounding error of the scatter, largest variance first.

    Attributes
    ----------
    spectrum : ndarray of shape (r,)
        Variances along them.
    mean : ndarray of shape (p,)
    P : ndarray of shape (p, r)
        Orthonormal columns.
    target : Target or None
    n : float
        Number of rows they were computed from.
    """

    spectrum: np.ndarray
    mean: np.ndarray
    P: np.ndarray
    target: Target | None
    n: float

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.spectrum)

    def variance_shares(self) -> np.ndarray:
        """Share of the variance explained by the first k axes, for every k."""
        return np.cumsum(self.spectrum) / self.spectrum.sum()

    def reaching(self, share: float) -> int:
        """Return the smallest number of leading axes that explain at least this share of the variance."""
        return min(int(np.searchsorted(self.variance_shares(), share - 1e-12)) + 1, self.rank)

    @cached_property
    def gains(self) -> np.ndarray:
        """Covariance of every whitened principal coordinate with the targets, shape (r, q)."""
        assert self.target is not None
        return self.P.T @ self.target.cross / np.sqrt(self.spectrum)[:, None]

    @property
    def r2(self) -> float:
        """In-sample R^2 of the best linear readout of all coordinates."""
        assert self.target is not None
        return float(np.sum(self.gains**2)) / self.target.spread if self.target.spread > 0 else 0.0

    def whitened(self, X: np.ndarray) -> np.ndarray:
        """Return whitened principal coordinates of rows, shape (n, r)."""
        return (X - self.mean) @ (self.P / np.sqrt(self.spectrum))

    def basis(self, components: np.ndarray) -> np.ndarray:
        """Return Q of shape (r, d), orthonormal, whose first k columns span the first k coordinates of a code.

        The coordinates of the code ``components @ (x - mean)`` are expressed in whitened principal coordinates and
        orthonormalized in order; a linearly dependent coordinate gives a column of zeros.
        """
        return _ordered_basis(np.sqrt(self.spectrum)[:, None] * (self.P.T @ components.T))

    def taken(self, order: np.ndarray) -> Axes:
        """Return the axes with these indices, in this order."""
        return replace(self, P=self.P[:, order], spectrum=self.spectrum[order])


def principal_axes(moments: Moments) -> Axes:
    """Return the principal axes of moments, without those below the numerical rank."""
    return axes_of(moments.St, moments.mean, target_of(moments), moments.n, moments.eps)


def axes_of(St: np.ndarray, mean: np.ndarray, target: Target | None, n: float, eps: float) -> Axes:
    """Return the eigenvectors of a scatter, without those below the numerical rank."""
    values, P = (part[..., ::-1] for part in np.linalg.eigh(St))
    kept = values > max((10.0 + np.sqrt(len(values))) * eps * values[0], 0.0)
    return Axes(values[kept], mean, P[:, kept], target, n)


def _ordered_basis(V: np.ndarray) -> np.ndarray:
    """Orthonormalize columns in order; one that adds nothing to those before it becomes zero."""
    basis = np.zeros_like(V)
    for j, column in enumerate(V.T):
        new = column
        for _ in range(2):  # twice, as the first pass leaves what rounding left
            new = new - basis @ (basis.T @ new)
        if np.linalg.norm(new) > _NEW_DIRECTION * np.linalg.norm(column):
            basis[:, j] = new / np.linalg.norm(new)
    return basis


@dataclass(frozen=True, eq=False)
class Readout:
    """Best linear readout, with intercept, of every prefix of a code given by an orthonormal basis in whitened axes.

    The least-squares readout of uncorrelated coordinates of unit variance is their covariance with the targets, one
    coordinate at a time (docs/theory.md, 4.3), so one matrix of gains gives every prefix.
    """

    axes: Axes
    Q: np.ndarray | None = None  # (r, d); None is the identity: the code is the principal coordinates themselves

    @cached_property
    def gains(self) -> np.ndarray:
        """Covariance of every coordinate with the targets, shape (d, q)."""
        return self.axes.gains if self.Q is None else self.Q.T @ self.axes.gains

    def explained(self) -> np.ndarray:
        """In-sample variance of the targets explained by each prefix, shape (d,)."""
        return np.cumsum(np.sum(self.gains**2, axis=1))

    def scores(self, U: np.ndarray, y: np.ndarray, ks: np.ndarray, what: str) -> np.ndarray:
        """Score rows, given in whitened coordinates, at the prefix lengths `ks`: shape (n, len(ks)).

        "accuracy": 1 if the largest readout is the label, else 0. "r2": one minus the squared error over the mean
        squared deviation, so that the mean over rows is R^2.
        """
        target = self.axes.target
        assert target is not None
        Z, Y = U if self.Q is None else U @ self.Q, target.values(y)
        size = float(np.sum((Y - Y.mean(axis=0)) ** 2)) / len(Y)
        found = np.empty((len(U), len(ks)))
        read, done = np.tile(target.mean, (len(U), 1)), 0
        for i, k in enumerate(np.asarray(ks).tolist()):
            read += Z[:, done:k] @ self.gains[done:k]
            done = k
            if what == "accuracy":
                assert target.classes is not None
                found[:, i] = target.classes[read.argmax(axis=1)] == y
            else:
                found[:, i] = 1.0 - np.sum((Y - read) ** 2, axis=1) / (size or 1.0)
        return found


def octaves(most: int, least: int = 1) -> np.ndarray:
    """Return `least`, twice that, ... up to `most`, and `most` itself."""
    return np.unique([min(least * 2**i, most) for i in range(max(1, most).bit_length() + 1)])


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Return the mean of independent values and its standard error."""
    n = len(values)
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows on which codes are evaluated, along the principal axes of the others.

    Attributes
    ----------
    axes : Axes
        Of the rows that are not held out.
    U, y : ndarray of shape (n, r), (n,)
        Held-out rows in whitened coordinates, and their labels or targets.
    T_ref, y_ref : ndarray of shape (m, r), (m,)
        Reference rows in plain principal coordinates, float32, and theirs.
    """

    axes: Axes
    U: np.ndarray
    y: np.ndarray
    T_ref: np.ndarray
    y_ref: np.ndarray

    @property
    def labels(self) -> bool:
        """Whether rows have labels; otherwise they have targets."""
        assert self.axes.target is not None
        return self.axes.target.classes is not None


def hold_out(X: ArrayLike, y: ArrayLike, seed: int = 0) -> HeldOut:
    """Hold a quarter of the rows out; copies of a vector are never in both parts.

    Parameters
    ----------
    X : array-like of shape (n, p)
    y : array-like of shape (n,) or (n, q)
        Labels or, as floating-point numbers or in several columns, targets.
    seed : int
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    _, which = np.unique(X, axis=0, return_inverse=True)
    order = np.random.default_rng(seed).permutation(which.max() + 1)[which.ravel()]
    held = order < min(HELD_SHARE * (order.max() + 1), MOST_HELD)
    if held.sum() < FEWEST_HELD:
        raise InvalidInputError(
            f"hold_out needs {4 * FEWEST_HELD} different rows, to hold {FEWEST_HELD} of them out. "
            f"Got {order.max() + 1:,}: give more rows."
        )
    given = {"targets": y[~held]} if y.dtype.kind == "f" or y.ndim > 1 else {"y": y[~held]}
    axes = principal_axes(Moments("float64").update(X[~held], **given))
    if axes.target is None or axes.target.spread <= 0:
        raise InvalidInputError("hold_out needs at least two classes, or targets that differ. All rows have the same.")
    some = np.flatnonzero(~held)[np.argsort(order[~held], kind="stable")][:MOST_REFERENCES]
    T_ref = ((X[some] - axes.mean) @ axes.P).astype(np.float32)
    return HeldOut(axes, axes.whitened(X[held]), y[held], T_ref, y[some])
