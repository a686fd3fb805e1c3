r"""A store of two kinds of rows, embedded anew or translated, that one search goes through.

Cosines of a query with translated rows are not those it would have with the same rows embedded anew, so one kind would
crowd out the other. Translated scores :math:`t` become :math:`a + b\,t`, with :math:`a, b` such that the ten best
translated scores of a query have the mean and the spread of its ten best new scores. (Regressing new scores on
translated ones, which is the best guess of each, moves the best translated rows down: docs/decisions/upgrade.md.)

The calibrated search is one by cosine over rows that are two numbers wider: a query is :math:`(q, 1, 0)` with :math:`q`
of unit norm, a new row :math:`(d, 0, c)`, a translated one :math:`(b\,t, a, c')`, with :math:`c, c'` such that all rows
have the same norm. Any vector store can hold it.

Which rows are embedded anew, where not all of them can be, goes by their `worth`: a row that the two models do not
share gains most from the new one, and a row that nobody asks for gains nothing. So

.. math:: \mathrm{worth}(x) = \Big(1 - \frac{\langle x, \hat x\rangle}{|x|\,|\hat x|}\Big) \cdot \mathrm{asked}(x),

with :math:`\hat x` the old vector translated into the new space and back: what is lost on the way is the part of it
that lies outside the shared code. FastFill (Jaeckle et al. 2023) orders by the error that a trained model predicts;
this one needs no training. Whether it beats a random order is measured with each upgrade, and told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_weights
from firstk._base.rows import unit_rows
from firstk.metrics import nearest_neighbors

# Best scores of each query that both kinds of rows are to have alike; nearest documents that it is taken to ask for.
_BEST = _ASKED_FOR = 10
# Norm of every row, squared: any number that none of them exceeds.
_ROOM = 1.05


@dataclass(frozen=True)
class Rescaling:
    """Scores of translated rows in terms of new ones: ``offset + scale * score``."""

    offset: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(cls, queries: np.ndarray, translated: np.ndarray, new: np.ndarray) -> Rescaling:
        """Match the mean and spread of the best scores that queries have with both kinds of the same rows."""
        Q, n = unit_rows(queries), min(_BEST, len(new))
        blocks = np.array_split(Q, max(1, len(Q) * len(new) // 4_000_000))
        before, after = (
            np.concatenate([np.partition(block @ rows.T, len(rows) - n, axis=1)[:, -n:] for block in blocks])
            for rows in (unit_rows(translated), unit_rows(new))
        )
        spread = before.std()
        scale = float(after.std() / spread) if spread > 0 else 1.0
        return cls(float(after.mean() - scale * before.mean()), scale)


def mixed_rows(translated: np.ndarray, new: np.ndarray, anew: np.ndarray, calibration: Rescaling) -> np.ndarray:
    """Return the rows of a mixed store, two numbers wider than the new model's.

    Parameters
    ----------
    translated, new : ndarray of shape (n, q)
        The same rows of both kinds.
    anew : ndarray of bool of shape (n,)
        Which are embedded anew.
    calibration : Rescaling
    """
    rows = np.where(anew[:, None], unit_rows(new), calibration.scale * unit_rows(translated))
    offset = np.where(anew, 0.0, calibration.offset)
    sizes = np.einsum("ij,ij->i", rows, rows, dtype=np.float64) + offset**2
    rest = np.sqrt(np.maximum(_ROOM * sizes.max(initial=1.0) - sizes, 0.0))
    return np.column_stack([rows, offset, rest]).astype(rows.dtype)


def mixed_queries(queries: np.ndarray) -> np.ndarray:
    """Return queries as a mixed store takes them."""
    Q = unit_rows(queries)
    return np.column_stack([Q, np.ones(len(Q)), np.zeros(len(Q))]).astype(Q.dtype)


def worth(alignment: Any, X: np.ndarray, asked: ArrayLike | None = None) -> np.ndarray:
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
