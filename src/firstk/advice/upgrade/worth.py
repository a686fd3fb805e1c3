r"""In which order rows are embedded anew, where not all of them can be: `worth` of each.

A row that the two models do not share gains most from the new one, and a row that nobody asks for gains nothing. So

.. math:: \mathrm{worth}(x) = \Big(1 - \frac{\langle x, \hat x\rangle}{|x|\,|\hat x|}\Big) \cdot \mathrm{asked}(x),

with :math:`\hat x` the old vector translated into the new space and back: what is lost on the way is the part of it
that lies outside the shared code. FastFill (Jaeckle et al. 2023) orders by the error that a trained model predicts;
this one needs no training. Whether it beats a random order is measured with each upgrade, and told.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_weights
from firstk.metrics.neighbors import nearest_neighbors

# Nearest documents that a query is taken to ask for.
_ASKED_FOR = 10


class Translation(Protocol):
    """Maps between the spaces of two models, as `PrefixAlignment` has them."""

    def old_to_new(self, X: np.ndarray) -> np.ndarray:
        """Translate old vectors into the new space."""

    def new_to_old(self, Q: np.ndarray) -> np.ndarray:
        """Translate new vectors into the old space."""


def worth(alignment: Translation, X: np.ndarray, asked: ArrayLike | None = None) -> np.ndarray:
    """Return what embedding each row anew is worth, relative to other rows; the highest come first.

    Parameters
    ----------
    alignment : PrefixAlignment
    X : array-like of shape (n, p)
        Old vectors.
    asked : array-like of shape (n,), optional
        How often each row is asked for; all alike if not given.

    Returns
    -------
    worth : ndarray of shape (n,)
    """
    back = alignment.new_to_old(alignment.old_to_new(X))
    lost = 1.0 - cosines(np.asarray(X), back)
    frequency = check_weights(asked, len(lost), "worth", "asked")
    return np.maximum(lost, 0.0) * (1.0 if frequency is None else frequency)


def asked_for(documents: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return how often each document is among the ten nearest of a query, and once more, for queries to come."""
    found = nearest_neighbors(documents, queries, min(_ASKED_FOR, len(documents)))
    return 1.0 + np.bincount(found.ravel(), minlength=len(documents))


def cosines(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the cosine of each row of A with the same row of B, in float64; 0 where one of them is zero."""
    A, B = A.astype(np.float64), B.astype(np.float64)
    size = np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)
    return np.divide(np.einsum("ij,ij->i", A, B), size, out=np.zeros(len(A)), where=size > 0)
