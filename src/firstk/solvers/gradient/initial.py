"""Initial weights of a linear encoder: the axes of the pencil, a random code as in the papers, or an array."""

from __future__ import annotations

import numpy as np

from firstk._base.checks import bad_parameter, check_matrix
from firstk._base.rows import unit_rows
from firstk.contracts import FitRequest
from firstk.exceptions import InvalidInputError
from firstk.solvers.gradient.losses import BaseTrainingLoss, Initial


def choose(loss: type[BaseTrainingLoss], request: FitRequest, R: np.ndarray | None) -> Initial:
    """Return the initial weights for the request's `init`; a network keeps its own initial weights."""
    if not request.linear:
        return Initial()
    init, axes = request.init, request.start.components
    if isinstance(init, str):
        if init in ("random", "small"):
            return loss.random_initial(request, R, np.random.default_rng(request.seed), init == "small")
        if init != "auto":
            raise bad_parameter("init", "PrefixEncoder", "'auto', 'random', 'small' or an array (d, p)", init)
        return loss.initial(request, R, axes)
    B = check_matrix(init, "PrefixEncoder", "init").astype(np.float64)
    basis = request.statistics.basis
    B = B if basis is None else B @ basis
    if B.shape != axes.shape:
        raise InvalidInputError(f"The 'init' of PrefixEncoder must have shape {axes.shape}. Got {B.shape}.")
    # Raise an error if rows are zero or linearly dependent: gradient steps may never separate them.
    rank = np.linalg.matrix_rank(unit_rows(B))
    if rank < len(B):
        zeros = int(np.sum(~B.any(axis=1)))
        which = f"{zeros} all zero" if zeros else "some are combinations of others"
        raise InvalidInputError(
            f"The {len(B)} rows of the 'init' of PrefixEncoder must be independent. Got rank {rank}: {which}. "
            "Use init='small' for a start near zero, or 'random'."
        )
    return loss.initial(request, R, B)
