"""Solvers, which compute the encoder: one file per solver, one line in the registry.

The choice among them is made in `estimator`; losses for custom training loops are in `firstk.losses`.
"""

from __future__ import annotations

from typing import Any

from firstk._base.checks import resolve_member
from firstk.contracts import Solver
from firstk.solvers.closed_form import ClosedForm
from firstk.solvers.gradient.settings import Gradient

# "auto" is listed for the error message that names the choices; `resolve` replaces it.
PUBLIC: dict[str, type[Solver]] = {"auto": ClosedForm, ClosedForm.name: ClosedForm, Gradient.name: Gradient}

__all__ = ["ClosedForm", "Gradient", "resolve", "restore"]


def resolve(solver: object, closed: bool = True) -> Solver:
    """Return the solver for a name or an object, with its settings checked.

    Parameters
    ----------
    solver : str or object
        "auto" is the closed form if there is one.
    closed : bool
        Whether there is a closed form.
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
