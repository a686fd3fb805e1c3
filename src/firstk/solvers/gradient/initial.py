"""Where training starts: the nearest pencil, a random code as in the papers, or an array; with weights to match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._base.checks import bad_parameter, check_matrix
from firstk._base.rows import unit_rows
from firstk.exceptions import InvalidInputError
from firstk.moments.moments import Moments

# Norm of a code at which the softmax of its products with class means is neither flat nor saturated.
_CODE_NORM = 4.0
_SMALL = 1e-2  # standard deviation of N(0, 1e-4), Bao et al. 2020 H.1


@dataclass(frozen=True)
class Start:
    """Encoder in the coordinates of training, shared weights and bias; None where there are none."""

    encoder: np.ndarray | None
    shared: np.ndarray | None
    bias: np.ndarray | None


def choose(request: Any, R: np.ndarray | None) -> Start:
    """Return the start that `init` names, for a linear encoder; others start as their makers have it."""
    if not request.linear:
        return Start(None, None, None)
    init, rng = request.init, np.random.default_rng(request.seed)
    d, p = len(request.solution.components), request.solution.components.shape[1]
    if isinstance(init, str) and init in ("random", "small"):
        return _random(request, R, rng, d, p, init == "small")
    if isinstance(init, str):
        if init != "auto":
            raise bad_parameter("init", "PrefixEncoder", "'auto', 'random', 'small' or an array (d, p)", init)
        return _from_axes(request, R, request.solution.components)
    B = check_matrix(init, "PrefixEncoder", "init").astype(np.float64)
    basis = request.statistics.basis
    B = B if basis is None else B @ basis
    if B.shape != (d, p):
        raise InvalidInputError(f"The 'init' of PrefixEncoder must have shape {(d, p)}. Got {B.shape}.")
    _check_independent(B, d)
    return _from_axes(request, R, B)


def _check_independent(B: np.ndarray, d: int) -> None:
    """Refuse a start from which some coordinates are zero, or copies of others: gradients may never part them."""
    rank = np.linalg.matrix_rank(unit_rows(B))
    if rank < d:
        zeros = int(np.sum(~B.any(axis=1)))
        which = f"{zeros} all zero" if zeros else "some are combinations of others"
        raise InvalidInputError(
            f"The {d} rows of the 'init' of PrefixEncoder must be independent. Got rank {rank}: {which}. "
            "Use init='small' for a start near zero, or 'random'."
        )


def of_network(request: Any, d: int) -> Start:
    """Return random shared weights for a network: a head that tells unit codes apart, a decoder of the data's size."""
    rng, form = np.random.default_rng(request.seed), request.objective.form
    if form == "cross_entropy":
        q, size = len(request.statistics.moments.classes), _CODE_NORM
    elif form == "least_squares":
        q = request.quadratic.cross.shape[1]
        size = np.sqrt(request.quadratic.total / q)
    else:
        return Start(None, None, None)
    return Start(None, rng.uniform(-1, 1, (q, d)) * (size / np.sqrt(d)), np.zeros(q))


def _random(request: Any, R: np.ndarray | None, rng: Any, d: int, p: int, small: bool) -> Start:
    if small:
        B = rng.normal(0, _SMALL, (d, p))
        shared = None
        if request.objective.form == "least_squares":
            q = request.quadratic.cross.shape[1]
            tied = q == p and "tied" in request.ordering.traits
            shared = B.T if tied else rng.normal(0, _SMALL, (q, d))
        start = _from_axes(request, R, B)
        return Start(start.encoder, start.shared if shared is None else shared, start.bias)
    A = np.linalg.qr(rng.normal(size=(p, d)))[0]  # Talukder et al. 2026 C.1: orthonormal columns by reduced QR
    if request.objective.form == "least_squares" and request.quadratic.cross.shape[1] == p:
        return Start(_written(request, R, A.T), A, None)
    if R is None:
        return _from_axes(request, None, A.T)
    C = np.linalg.qr(rng.normal(size=(R.shape[1], d)))[0].T
    return _from_axes(request, R, C @ R.T)


def _written(request: Any, R: np.ndarray | None, B: np.ndarray) -> np.ndarray:
    """Return C with C R^T = B on the range of N: R^T N R = I gives C = B N R."""
    return B if R is None else B @ request.metric @ R


def _from_axes(request: Any, R: np.ndarray | None, B: np.ndarray) -> Start:
    """Return an encoder with the best shared weights that its moments tell."""
    form = request.objective.form
    if form == "least_squares":
        q = request.quadratic
        if "tied" in request.ordering.traits:
            return Start(_written(request, R, B), B.T, None)
        G = B @ q.gram @ B.T
        ridge = 1e-12 * np.trace(G) / len(G)
        shared = np.linalg.solve(G + ridge * np.eye(len(G)), B @ q.cross).T
        return Start(_written(request, R, B), shared, None)
    if form == "cross_entropy":
        moments = request.statistics.moments
        assert isinstance(moments, Moments)
        B = B * (_CODE_NORM / np.sqrt(np.trace(B @ moments.St @ B.T)))
        means = (moments.class_means - moments.mean) @ B.T
        return Start(_written(request, R, B), means, np.zeros(len(means)))
    return Start(_written(request, R, B), None, None)
