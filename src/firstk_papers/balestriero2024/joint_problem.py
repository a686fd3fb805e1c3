"""The joint problem (3): targets and rows read from one linear code, solved by the library (theorem 1).

Shared by the studies that vary its weight lambda, its shape or its solver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk import ClosedForm, Mixture, PrefixEncoder
from firstk_papers.datasets.tasks import task
from firstk_papers.frame.types import JsonObject


@dataclass(frozen=True, eq=False)
class Joint:
    """Centred rows X, of shape (n, p), and centred targets Y, of shape (n, q)."""

    X: np.ndarray
    Y: np.ndarray

    def total(self, lam: float) -> float:
        """Return the loss of a code of zeros: |Y|^2 + lambda |X|^2."""
        return float(np.sum(self.Y**2) + lam * np.sum(self.X**2))


@dataclass(frozen=True, eq=False)
class Optimum:
    """V*, W* and Z* of (4) to (6) as rows act: code X V, targets X V W, rows X V Z."""

    V: np.ndarray  # (p, K)
    W: np.ndarray  # (K, q)
    Z: np.ndarray  # (K, p)

    def loss(self, joint: Joint, lam: float) -> float:
        """Return (3) as written, over rows."""
        code = joint.X @ self.V
        return float(np.sum((code @ self.W - joint.Y) ** 2) + lam * np.sum((code @ self.Z - joint.X) ** 2))


def problem(cell: JsonObject) -> Joint:
    """Return the problem of a cell: a named set with one-hot labels, or Gaussian rows of the given shape.

    Gaussian rows have variances that fall as 1/j, and targets that depend on them with noise, so that neither part
    of the loss is trivial.
    """
    if "set" in cell:
        rows = task(cell)
        X, Y = rows.X.astype(np.float64), (rows.y[:, None] == np.unique(rows.y)).astype(np.float64)
    else:
        rng = np.random.default_rng(cell["seed"])
        n, p, q = cell["N"], cell["D"], cell["C"]
        turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
        X = rng.standard_normal((n, p)) / np.sqrt(np.arange(1, p + 1)) @ turn
        Y = X @ rng.standard_normal((p, q)) + rng.standard_normal((n, q))
    return Joint(X - X.mean(axis=0), Y - Y.mean(axis=0))


def solved(joint: Joint, K: int, lam: float) -> Optimum:
    """Return the optimum that the library's closed form gives."""
    encoder = PrefixEncoder(K, objective=Mixture(lam=lam), solver=ClosedForm("float64")).fit(joint.X, joint.Y)
    head = encoder.encoder_.head
    assert head is not None
    assert encoder.decoder_ is not None
    return Optimum(encoder.components_.T, head.weight.T, encoder.decoder_.T)


def span(joint: Joint, V: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the codes over rows, shape (n, K)."""
    return np.linalg.qr(joint.X @ V)[0]


def largest_sine(A: np.ndarray, B: np.ndarray) -> float:
    """Return the sine of the largest principal angle between the spans of orthonormal columns of equal number."""
    return float(np.linalg.norm(B - A @ (A.T @ B), 2))
