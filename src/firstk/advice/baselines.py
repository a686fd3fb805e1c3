"""Baselines: four ways to shorten vectors that need no learning, or only variance.

A code is worth fitting where it beats them. Each is an ordinary encoder, so every metric and curve applies to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_matrix
from firstk.data.task import Rows
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.problem import pose
from firstk.moments.moments import Moments
from firstk.moments.statistics import Statistics
from firstk.objectives import Similarity

__all__ = ["baselines_of", "plain_truncation", "random_dimensions"]


def plain_truncation(X: ArrayLike) -> FittedEncoder:
    """Return the first k columns as they are."""
    return _selection(np.arange(np.shape(X)[1]))


def random_dimensions(X: ArrayLike, random_state: int = 0) -> FittedEncoder:
    """Return k columns drawn at random, the same draw for every k."""
    return _selection(np.random.default_rng(random_state).permutation(np.shape(X)[1]))


# By name: the objective of those that are fitted, at every length that an encoder may have; and the others.
_FITTED: dict[str, str | Similarity] = {"PCA": "reconstruction", "uncentred SVD": Similarity(keep="dot_products")}
_COLUMNS = {"plain truncation": plain_truncation, "random dimensions": random_dimensions}
BASELINES = (*_FITTED, *_COLUMNS)


def baselines_of(
    X: ArrayLike | None, statistics: Statistics | None = None, *, p: int | None = None
) -> dict[str, FittedEncoder]:
    """Return the baselines by name.

    Parameters
    ----------
    X : array-like of shape (n, p), or None
        Rows to fit on; without any, only the baselines that are not fitted.
    statistics : Statistics, optional
        Of more rows than are at hand: the two that are solved are then solved from its moments.
    p : int, optional
        Width of the vectors, where there are no rows.
    """
    width = np.zeros((1, p or 1)) if X is None else X
    found = {name: make(width) for name, make in _COLUMNS.items()}
    if X is None:
        return found
    posed = {name: pose(objective, "full_prefix", "auto", "rank") for name, objective in _FITTED.items()}
    if statistics is None or not isinstance(statistics.moments, Moments):
        rows = Rows(check_matrix(X, "baseline"))
        return {name: problem.fit(rows)[0] for name, problem in posed.items()} | found
    whole = statistics.in_full_coordinates()
    return {name: problem.solve(whole) for name, problem in posed.items()} | found


def _selection(columns: np.ndarray) -> FittedEncoder:
    """Encode by picking columns, uncentred."""
    p = len(columns)
    picked = np.eye(p)[columns]
    return FittedEncoder(picked, np.ones(p), np.zeros(p), np.zeros(p), decoder=picked.T, pinned=0)
