"""Solvers, how the encoder is found: one file a solver, one line in the registry.

The choice among them lives in `estimator`; losses for training loops of your own live in `losses`.
"""

from __future__ import annotations

from typing import Any

from firstk._base.checks import resolve_member
from firstk.contracts import Solver
from firstk.solvers.closed_form import ClosedForm
from firstk.solvers.gradient.settings import Gradient

# "auto" is listed for the error message that names the choices; `resolve` settles it.
PUBLIC: dict[str, type[Solver]] = {"auto": ClosedForm, ClosedForm.name: ClosedForm, Gradient.name: Gradient}

__all__ = ["ClosedForm", "Gradient", "resolve", "restore"]


def resolve(solver: object, closed: bool = True) -> Solver:
    """Return the solver that a name or an object stands for, its settings checked.

    Parameters
    ----------
    solver : str or object
        "auto" is the closed form where there is one.
    closed : bool
        Whether there is one.
    """
    if isinstance(solver, str) and solver == "auto":
        solver = ClosedForm() if closed else Gradient()
    chosen: Solver = resolve_member(solver, PUBLIC, "solver", "ClosedForm()")
    chosen.check()
    return chosen


def restore(name: str, settings: dict[str, Any]) -> Solver:
    """Rebuild a solver from its name and recorded settings."""
    members: dict[str, type[Solver]] = {ClosedForm.name: ClosedForm, Gradient.name: Gradient}
    return resolve(members[name](**settings))
