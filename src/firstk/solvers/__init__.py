"""Solvers, which compute the encoder: one file per solver, one line in the registry.

The choice among them is made in `estimator`; losses for custom training loops are in `firstk.losses`.
"""

from __future__ import annotations

from firstk._base.checks import Registry
from firstk.contracts import Solver
from firstk.solvers.closed_form import ClosedForm
from firstk.solvers.gradient.settings import Gradient

# "auto" is the closed form, unless there is none: `firstk.estimator.problem.pose` decides.
REGISTRY: Registry[Solver] = Registry(
    "solver", "ClosedForm()", {"auto": ClosedForm, ClosedForm.name: ClosedForm, Gradient.name: Gradient}
)
PUBLIC, resolve, restore = REGISTRY.public, REGISTRY.resolve, REGISTRY.restore

__all__ = ["ClosedForm", "Gradient", "resolve", "restore"]
