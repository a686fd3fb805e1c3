"""Baselines: four ways to shorten vectors that need no learning, or only variance.

A code is worth fitting where it beats them. Each is an ordinary encoder, so every metric and curve applies to it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_matrix
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.problem import Problem, pose
from firstk.moments.moments import Moments
from firstk.moments.statistics import Statistics
from firstk.objectives import Similarity

__all__ = ["plain_truncation", "principal_components", "random_dimensions", "uncentred_svd"]


def principal_components(X: ArrayLike) -> FittedEncoder:
    """Return centred principal components: objective "reconstruction"."""
    return _posed("reconstruction").fit({"X": check_matrix(X, "baseline")})[0]


def uncentred_svd(X: ArrayLike) -> FittedEncoder:
    """Return singular vectors of the data without centring: best at keeping dot products."""
    return _posed(_DOT_PRODUCTS).fit({"X": check_matrix(X, "baseline")})[0]


def plain_truncation(X: ArrayLike) -> FittedEncoder:
    """Return the first k columns as they are."""
    return _selection(np.arange(np.shape(X)[1]))


def random_dimensions(X: ArrayLike, random_state: int = 0) -> FittedEncoder:
    """Return k columns drawn at random, the same draw for every k."""
    return _selection(np.random.default_rng(random_state).permutation(np.shape(X)[1]))


BASELINES: dict[str, Callable[[ArrayLike], FittedEncoder]] = {
    "PCA": principal_components,
    "uncentred SVD": uncentred_svd,
    "plain truncation": plain_truncation,
    "random dimensions": random_dimensions,
}
_DOT_PRODUCTS = Similarity(keep="dot_products")
# Those that have to be fitted, and the objective of each.
_FITTED: dict[Callable[[ArrayLike], FittedEncoder], str | Similarity] = {
    principal_components: "reconstruction",
    uncentred_svd: _DOT_PRODUCTS,
}


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
    if X is None:
        return {name: make(np.zeros((1, p or 1))) for name, make in BASELINES.items() if make not in _FITTED}
    if statistics is None or not isinstance(statistics.moments, Moments):
        return {name: make(X) for name, make in BASELINES.items()}
    whole = statistics.in_full_coordinates()
    return {
        name: _posed(_FITTED[make]).solve(whole) if make in _FITTED else make(X) for name, make in BASELINES.items()
    }


def _posed(objective: str | Similarity) -> Problem:
    return pose(objective, "full_prefix", "auto", "rank")  # every length that an encoder may have


def _selection(columns: np.ndarray) -> FittedEncoder:
    """Encode by picking columns, uncentred."""
    p = len(columns)
    picked = np.eye(p)[columns]
    return FittedEncoder(picked, np.ones(p), np.zeros(p), np.zeros(p), decoder=picked.T, pinned=0)
