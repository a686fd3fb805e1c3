"""How the encoder is found: one file a solver, one registry line."""

from __future__ import annotations

from typing import Any

from firstk._checks import bad_parameter
from firstk.contracts import Solver
from firstk.solvers.closed_form import ClosedForm

PUBLIC: dict[str, type] = {solver.name: solver for solver in (ClosedForm,)}

__all__ = ["ClosedForm", "resolve"]


def resolve(solver: Any) -> Solver:
    """Return the solver that a name or an object stands for; "auto" takes a closed form, as every objective has one."""
    if isinstance(solver, str) and solver in ("auto", *PUBLIC):
        return PUBLIC["closed_form" if solver == "auto" else solver]()
    if not isinstance(solver, tuple(PUBLIC.values())):
        names = ", ".join(repr(name) for name in ("auto", *PUBLIC))
        raise bad_parameter("solver", "PrefixEncoder", f"one of {names}, or an object such as ClosedForm()", solver)
    solver.check()
    return solver
