"""Whether two fits have the same axes, whether a code is ordered, and whether its basis is privileged.

Two encoders are compared on rows that both encode, so they may differ in seed, data, network or input width. Order
shows without a reference: the first k coordinates lose nothing to the best k. A basis is privileged where the
coordinates of a code are distributed otherwise than in a rotated basis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from firstk._base.checks import bad_parameter, check_fraction, check_matrix, check_matrix_pair, check_same_length
from firstk._base.linalg import relative_tolerance
from firstk.exceptions import InvalidInputError
from firstk.metrics.order import paired_cosines
from firstk.metrics.subspace import mean_principal_angles, unit_rows
from firstk.metrics.task import axis_probe_accuracy, linear_probe_accuracy
from firstk.quality.paired import DRAWS, interval

# In the order in which they are asked for: each one holds wherever the one before does.
LEVELS = ("axes", "axes in another order", "subspace")


class Level(NamedTuple):
    """A mean correlation in [0, 1], and the interval in which it lies."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class SameAxes:
    """How two codes of the same rows agree, and the verdict.

    Attributes
    ----------
    verdict : str
        What they share: "axes", "axes in another order" or "subspace", the first whose interval reaches `least`;
        "undecided" where an interval contains it; else "nothing".
    levels : dict of Level
        Mean over coordinates of the absolute correlation with the coordinate of the same number ("axes"), with its
        partner in the best matching one to one ("axes in another order"), and the mean canonical correlation of the
        two codes ("subspace").
    correlations : ndarray of shape (d_a, d_b)
        Absolute correlations of the coordinates on the rows.
    match : ndarray of int of shape (d, 2)
        The best matching: a coordinate of `a` and its partner in `b`, for the d coordinates of the narrower code.
    angles : ndarray of shape (d,)
        Mean principal angle between the first k coordinates of both, as functions of the rows, in degrees.
    cosines : ndarray of shape (d,) or None
        Absolute cosines of matched axes in the space of the inputs, for linear encoders of the same width.
    """

    verdict: str
    levels: dict[str, Level]
    correlations: np.ndarray
    match: np.ndarray
    angles: np.ndarray
    cosines: np.ndarray | None


def same_axes(a: Any, b: Any, X: ArrayLike | None = None, *, least: float = 0.95) -> SameAxes:
    r"""Tell whether two fits have the same axes: other seeds, other data, other models (Talukder et al. 2026, 2.1).

    With codes :math:`z` and :math:`z'` of the same rows, coordinate k is compared by :math:`|r_k| = |\mathrm{corr}(z_k,
    z'_k)|`, which is blind to sign, scale and offset; for linear encoders it is the cosine of the two axes in the
    metric of the data's scatter. Intervals are those of the bootstrap over rows; the fits are fixed.

    Parameters
    ----------
    a, b : encoders, or array-likes of shape (n, d_a) and (n, d_b)
        Fitted encoders, or codes of the same rows by any model.
    X : array-like of shape (n, p)
        Rows to encode, better none of those of the fits. Not needed for codes.
    least : float in (0, 1]
        Mean correlation from which on axes, or subspaces, count as the same.

    Returns
    -------
    SameAxes

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(200, 3))
    >>> same_axes(Z, -2 * Z + 1).verdict, same_axes(Z, Z[:, ::-1]).verdict
    ('axes', 'axes in another order')
    >>> same_axes(Z, Z @ [[0.6, 0.8, 0], [-0.8, 0.6, 0], [0, 0, 1]]).verdict
    'subspace'
    """
    least = check_fraction(least, "least", "same_axes", open_left=True)
    Za, Zb = (_codes(part, X, name) for part, name in ((a, "a"), (b, "b")))
    check_same_length(Za, Zb, "a", "b", "same_axes")
    n, s = Za.shape
    if n < 3:
        raise InvalidInputError(f"same_axes needs at least 3 rows to correlate coordinates. Got {n}.")
    codes, rng = np.hstack([Za - Za.mean(axis=0), Zb - Zb.mean(axis=0)]), np.random.default_rng(0)
    draws = []
    for _ in range(DRAWS):
        drawn = np.bincount(rng.integers(n, size=n), minlength=n)
        mean = drawn @ codes / n
        draws.append(_agreement((codes.T * drawn) @ codes - n * np.outer(mean, mean), s)[1])
    correlations, values = _agreement(codes.T @ codes, s)
    # Draws repeat rows, which raises correlations, most where rows are few: so quantiles are reflected at the values
    # (the basic bootstrap; Davison and Hinkley 1997, section 5.2).
    low, high = interval(np.array(draws))
    ends = zip(values, np.clip(2 * values - high, 0, 1), np.clip(2 * values - low, 0, 1), strict=True)
    levels = {name: Level(*map(float, level)) for name, level in zip(LEVELS, ends, strict=True)}
    rows, columns = linear_sum_assignment(-correlations)
    root = np.asarray(np.linalg.qr(codes, mode="r"))  # the same angles, from few rows instead of n
    fits = [getattr(part, "encoder_", part) for part in (a, b)]
    linear = all(getattr(fit, "network", fit) is None for fit in fits) and fits[0].p == fits[1].p
    reached = next((name for name, level in levels.items() if level.high >= least), "nothing")
    return SameAxes(
        reached if reached == "nothing" or levels[reached].low >= least else "undecided",
        levels,
        correlations,
        np.stack([rows, columns], axis=1),
        mean_principal_angles(root[:, :s].T, root[:, s:].T),
        paired_cosines(fits[0].components[rows], fits[1].components[columns]) if linear else None,
    )


def _codes(part: Any, X: ArrayLike | None, name: str) -> np.ndarray:
    """Return codes in float64, as given or of the rows X."""
    encode = getattr(part, "transform", getattr(part, "encode", None))
    if encode is not None and X is None:
        raise bad_parameter("X", "same_axes", f"the rows that '{name}' shall encode", X)
    return check_matrix(part if encode is None else encode(X), "same_axes", name).astype(np.float64)


def _agreement(products: np.ndarray, s: int) -> tuple[np.ndarray, np.ndarray]:
    """Return absolute correlations and the three means, from the products of both codes, the first of width s."""
    size = np.sqrt(np.clip(np.diag(products), 0, None))
    scale = np.divide(1, size, out=np.zeros_like(size), where=size > 0)  # 0 for a coordinate that does not vary
    r = np.clip(scale[:, None] * products * scale, -1, 1)
    paired, between = np.abs(r[:s, s:]), _inverse_root(r[:s, :s]).T @ r[:s, s:] @ _inverse_root(r[s:, s:])
    canonical = np.minimum(np.linalg.svd(between, compute_uv=False), 1.0)
    sums = np.trace(paired), paired[linear_sum_assignment(-paired)].sum(), canonical.sum()
    return paired, np.array(sums) / min(paired.shape)


def _inverse_root(r: np.ndarray) -> np.ndarray:
    """Return W with W^T r W the identity on the directions in which the code varies."""
    values, vectors = np.linalg.eigh(r)
    kept = values > relative_tolerance(len(r), r.dtype)
    return vectors[:, kept] / np.sqrt(values[kept])


def first_k_against_best_k(Z_fit: ArrayLike, y_fit: ArrayLike, Z: ArrayLike, y: ArrayLike) -> dict[str, np.ndarray]:
    """Score the first k coordinates and the best k, chosen by size, variance or probe, for every k.

    An ordered code needs no reference to show it: its first k coordinates lose nothing to any choice of k. Choices are
    made on the rows of the fit; scores are of a linear probe of the chosen coordinates on the others.

    Parameters
    ----------
    Z_fit, Z : array-like of shape (n, d) and (m, d)
        Codes on which coordinates are chosen and readouts fitted, and codes to score.
    y_fit, y : array-like of shape (n,) and (m,)
        Their labels.

    Returns
    -------
    dict of ndarrays of shape (d,)
        Accuracy by how the coordinates are chosen: "first", "size" (mean |z|), "variance" and "probe" (the accuracy of
        each coordinate alone).

    Examples
    --------
    >>> Z, y = [[1, 8], [-1, 9], [1, -9], [-1, -8]], [0, 0, 1, 1]
    >>> scores = first_k_against_best_k(Z, y, Z, y)
    >>> scores["probe"] - scores["first"]
    array([0.5, 0. ])
    """
    Z_fit, Z = check_matrix_pair(Z_fit, Z, "first_k_against_best_k", ("Z_fit", "Z"))
    worth = {
        "first": -np.arange(Z_fit.shape[1]),
        "size": np.abs(Z_fit).mean(axis=0),
        "variance": Z_fit.var(axis=0),
        "probe": axis_probe_accuracy(Z_fit, y_fit, Z_fit, y_fit),
    }
    chosen = {name: np.argsort(-values, kind="stable") for name, values in worth.items()}
    return {name: linear_probe_accuracy(Z_fit[:, order], y_fit, Z[:, order], y) for name, order in chosen.items()}


class BasisKurtosis(NamedTuple):
    """Kurtosis of a code in its own basis and in rotated ones, and the share of all these that reach its own."""

    own: float
    rotated: np.ndarray
    p_value: float


def basis_kurtosis(Z: ArrayLike) -> BasisKurtosis:
    r"""Test whether the basis of a code is privileged (Elhage et al. 2023).

    The kurtosis of a row over its coordinates, :math:`d \sum_k z_k^4 / (\sum_k z_k^2)^2`, averaged over rows, is
    compared with that of the same code in 99 bases turned at random. Where no basis is privileged, as in an unordered
    code of isotropic rows, its own basis is one of those. Coordinates of unequal variance privilege a basis too: divide
    by the deviations first to ask about shape alone.

    Parameters
    ----------
    Z : array-like of shape (n, d)
        Centered here; rows of norm 0 are left out.

    Examples
    --------
    >>> Z = np.random.default_rng(0).laplace(size=(500, 8))
    >>> basis_kurtosis(Z).p_value
    0.01
    """
    Z = check_matrix(Z, "basis_kurtosis", "Z").astype(np.float64)
    Z = unit_rows(Z - Z.mean(axis=0))
    Z = Z[Z.any(axis=1)]
    if not len(Z):
        raise InvalidInputError("basis_kurtosis needs rows that vary. All rows of 'Z' are equal.")
    d, rng = Z.shape[1], np.random.default_rng(0)
    # QR of a normal matrix is uniform over rotations but for signs, to which fourth powers are blind.
    bases = [np.eye(d), *(np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(99))]
    found = np.array([d * np.sum((Z @ basis) ** 4, axis=1).mean() for basis in bases])
    return BasisKurtosis(float(found[0]), found[1:], float(np.mean(found >= found[0])))
