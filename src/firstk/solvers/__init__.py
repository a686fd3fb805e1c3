"""Solvers, which compute the encoder: one file per solver, one line in the registry.

The choice among them is made in `estimator`; losses for custom training loops are in `firstk.losses`.
"""

from __future__ import annotations

from typing import Literal

from firstk._base.checks import Registry
from firstk.contracts import Solver
from firstk.solvers.closed_form import ClosedForm
from firstk.solvers.gradient.settings import Gradient
from firstk.solvers.quasi_newton import QuasiNewton

# What an estimator's parameter may be called: the names of the registry.
SolverName = Literal["auto", "closed_form", "quasi_newton", "gradient"]
# "auto" is the closed form, unless there is none: `firstk.estimator.problem.pose` decides.
REGISTRY: Registry[Solver] = Registry(
    "solver", "ClosedForm()", {"auto": ClosedForm, **{kind.name: kind for kind in (ClosedForm, QuasiNewton, Gradient)}}
)
PUBLIC, resolve, restore = REGISTRY.public, REGISTRY.resolve, REGISTRY.restore

__all__ = ["ClosedForm", "Gradient", "QuasiNewton", "resolve", "restore"]
