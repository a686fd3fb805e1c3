"""The quasi-Newton solver: rotate the axes of a pencil until the losses of all prefixes are lowest, from moments.

For objectives that depend on the data through moments alone and have no closed form. It needs no rows, no torch and
no learning rate, so fits stream and merge as closed forms do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from firstk._base.checks import bad_parameter, is_int, is_real
from firstk._base.json_records import settings_of
from firstk._base.linalg import ordered_eigh, signed
from firstk._base.progress import progress_bar
from firstk.contracts import FitRequest, MomentObjective, Objective, Ordering, Solution
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.record import FitRecord
from firstk.exceptions import IllegalCombinationError
from firstk.solvers.closed_form import fitted_encoder, solve_pencil

# Steps whose curvature is remembered. With 10 of them rounding in the last digit of the data moved the axes of nine
# classes by 0.06 where the search stopped, with 50 by 1e-3.
_MEMORY = 50


@dataclass(frozen=True)
class QuasiNewton:
    """Minimize the weighted losses of all prefixes over rotations of the pencil's axes, by L-BFGS.

    A rotation is given by the QR factors of a free matrix W, of which prefix spans are those of Q, so that every W is
    admissible. The start is the pencil's solution, and nothing is drawn at random.

    Parameters
    ----------
    max_iter : int
        Largest number of steps.
    tolerance : float
        Stop when a step lowers the loss by less than this share of it.
    most : int
        Coordinates that are found this way. Later ones stay in the span of the pencil's axes and in its order.
    """

    max_iter: int = 300
    tolerance: float = 1e-8
    most: int = 128

    name: ClassVar[str] = "quasi_newton"
    trains: ClassVar[bool] = False
    precision = "auto"
    shows_coordinates = False

    def check(self) -> None:
        """Raise an error for settings that are out of range."""
        for name in ("max_iter", "most"):
            if not is_int(getattr(self, name)) or getattr(self, name) < 1:
                raise bad_parameter(name, "QuasiNewton", "a positive int", getattr(self, name))
        if not is_real(self.tolerance) or not self.tolerance > 0:
            raise bad_parameter("tolerance", "QuasiNewton", "a positive number", self.tolerance)

    def check_combination(self, objective: Objective, ordering: Ordering, network: object) -> None:
        """Raise an error for networks, orderings that act on a training step, and objectives without a criterion."""
        if network != "linear":
            raise IllegalCombinationError(
                f"network={network!r} with solver 'quasi_newton'",
                "it rotates the axes of a linear encoder",
                "network='linear', or objective='classification' with solver='gradient'",
            )
        if not isinstance(objective, MomentObjective):
            raise IllegalCombinationError(
                f"objective '{objective.name}' with solver 'quasi_newton'",
                "it has no criterion of class moments to minimize",
                "solver='auto', or objective='error_bound'",
            )
        if not ordering.has_closed_form:
            raise IllegalCombinationError(
                f"ordering '{ordering.name}' with solver 'quasi_newton'",
                "it acts on steps of training by gradient",
                "ordering='full_prefix' or SparsePrefix([...])",
            )

    def check_streamable(self, objective: Objective, ordering: Ordering, network: object, what: str) -> None:
        """Accept every combination: a criterion needs statistics only."""

    def solve(self, request: FitRequest) -> FittedEncoder:
        """Return the encoder whose axes are those of the pencil, rotated."""
        objective, eps = request.objective, request.statistics.moments.eps
        assert isinstance(objective, MomentObjective)
        span = solve_pencil(request.pencil, "rank", eps)
        r = len(span.components)
        wanted = request.given_width or r
        beyond = solve_pencil(request.pencil, wanted, eps) if wanted > r else span
        d = min(wanted, len(beyond.components))
        request.ordering.check(d)
        criterion = objective.criterion(request.statistics, span.components)
        omega = request.ordering.prefix_weights(d, objective.conventions.omega).omega
        # Orthonormal columns that minimize the criterion, (r, q).
        omega = np.asarray(omega)[: min(d, r, self.most)]
        q = len(omega)

        def weighted(w: np.ndarray) -> tuple[float, np.ndarray]:
            Q, R = prefix_qr(w.reshape(r, q))
            value, gradient = criterion.weighted(Q, omega)
            return value, through_qr(Q, R, gradient).ravel()

        with progress_bar(self.max_iter, "rotating axes", "step", request.verbose) as done:
            found = minimize(
                weighted,
                np.eye(r, q).ravel(),
                jac=True,
                method="L-BFGS-B",
                callback=lambda _: done(),
                options={"maxiter": self.max_iter, "ftol": self.tolerance, "gtol": 0.0, "maxcor": _MEMORY},
            )
        steps, Q = int(found.nit), prefix_qr(found.x.reshape(r, q))[0]
        if q < r:  # the others are ordered by the pencil on their span
            rest = np.linalg.qr(Q, mode="complete")[0][:, q:]
            Q = np.hstack([Q, rest @ ordered_eigh(rest.T @ (span.spectrum[:, None] * rest))[1]])
        Q = Q[:, : min(d, r)]
        components = np.vstack([Q.T @ span.components, beyond.components[r:d]])
        gains = -np.diff(criterion.losses(Q))
        solution = Solution(
            components * signed(components)[:, None],
            np.concatenate([gains, np.zeros(d - len(gains))]),
            min(d, r),
        )
        ended = "max_iter" if steps >= self.max_iter else "tolerance"
        record = FitRecord(solver_settings=settings_of(self), ended=ended, steps=steps)
        return fitted_encoder(request, solution, record)


def prefix_qr(W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return W = Q R with a positive diagonal of R, so that Q is a smooth function of W."""
    Q, R = np.linalg.qr(W)
    signs = np.where(np.diag(R) < 0, -1.0, 1.0)
    return Q * signs, R * signs[:, None]


def through_qr(Q: np.ndarray, R: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return the gradient with respect to W = Q R of a function of Q, from its gradient with respect to Q.

    ``(G + Q sym(-G^T Q)) R^-T``, where sym copies the lower triangle to the upper one (Walter and Lehmann 2013).
    """
    lower = np.tril(-gradient.T @ Q)
    return np.linalg.solve(R, (gradient + Q @ (lower + np.tril(lower, -1).T)).T).T
