"""What a code must beat: the four ways to shorten vectors that need no learning, or only variance.

Claims are made beside all four: random dimensions, plain truncation, principal components and the uncentred singular
value decomposition. Each is an ordinary encoder, so every metric and every curve applies to it as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from firstk._base.checks import check_matrix
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.problem import Problem, pose
from firstk.moments.moments import Moments
from firstk.moments.statistics import Statistics
from firstk.objectives import Similarity


def principal_components(X: Any) -> FittedEncoder:
    """Centred principal components: objective "reconstruction"."""
    return _closed_form(X, "reconstruction")


def uncentred_svd(X: Any) -> FittedEncoder:
    """Singular vectors of the data as they stand: best at keeping dot products."""
    return _closed_form(X, Similarity(keep="dot_products"))


def plain_truncation(X: Any) -> FittedEncoder:
    """Return the first k coordinates as they came."""
    return _selection(np.arange(np.shape(X)[1]))


def random_dimensions(X: Any, random_state: int = 0) -> FittedEncoder:
    """Return k coordinates drawn at random, the same draw for every k."""
    return _selection(np.random.default_rng(random_state).permutation(np.shape(X)[1]))


BASELINES: dict[str, Callable[[Any], FittedEncoder]] = {
    "PCA": principal_components,
    "uncentred SVD": uncentred_svd,
    "plain truncation": plain_truncation,
    "random dimensions": random_dimensions,
}


def baselines_of(X: Any, statistics: Statistics | None = None) -> dict[str, FittedEncoder]:
    """Return all four, by name.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows to fit on.
    statistics : Statistics, optional
        Of more rows than are at hand: the two that are solved are then solved from its moments.
    """
    if statistics is None or not isinstance(statistics.moments, Moments):
        return {name: make(X) for name, make in BASELINES.items()}
    solved = {principal_components: "reconstruction", uncentred_svd: Similarity(keep="dot_products")}
    whole = statistics.in_full_coordinates()
    return {name: _posed(solved[make]).solve(whole) if make in solved else make(X) for name, make in BASELINES.items()}


def _posed(objective: Any) -> Problem:
    return pose(objective, "full_prefix", "auto", None)


def _closed_form(X: Any, objective: Any) -> FittedEncoder:
    return _posed(objective).fit({"X": check_matrix(X, "baseline")})[0]


def _selection(columns: np.ndarray) -> FittedEncoder:
    """Encode by picking columns, uncentred."""
    p = len(columns)
    picked = np.eye(p)[columns]
    return FittedEncoder(picked, np.ones(p), np.zeros(p), np.zeros(p), decoder=picked.T, pinned=0)
