"""How the encoder is found: one file a solver, one registry line."""

from __future__ import annotations

from typing import Any

from firstk._checks import resolve_member
from firstk.contracts import Solver
from firstk.solvers.closed_form import ClosedForm

# Every objective there is has a closed form, so that is what "auto" takes.
PUBLIC: dict[str, Any] = {"auto": ClosedForm, ClosedForm.name: ClosedForm}

__all__ = ["ClosedForm", "resolve"]


def resolve(solver: Any) -> Solver:
    """Return the solver that a name or an object stands for, its settings checked."""
    chosen = resolve_member(solver, PUBLIC, "solver", "ClosedForm()")
    chosen.check()
    return chosen
