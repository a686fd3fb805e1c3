"""Objectives that the data allow, from the simplest on: what a diagnosis tries before it recommends one.

A candidate is named by the words of ``firstk fit`` that ask for it: the objective, then what it keeps or learns from,
then settings that are not the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median_low
from typing import Any, Literal

import numpy as np

from firstk._base.checks import require
from firstk.contracts import Objective
from firstk.objectives import Classification, ErrorBound, Fisher, Mixture, Reconstruction, Regression, Similarity
from firstk.solvers import Gradient

# What a code is fitted for: labels, targets, scored pairs, judged documents, or the vectors themselves.
Task = Literal["labels", "targets", "pairs", "judgements", "none"]
# Weights of the mixture, relative to the one at which both of its terms are equal along their first axis.
MIXTURE_WEIGHTS = (0.1, 1.0, 10.0)
# Share of a fit's passes over the rows that training makes here: enough to rank objectives.
PASSES = 0.4


@dataclass(frozen=True)
class Candidate:
    """An objective to try.

    Attributes
    ----------
    name : str
        Its name in a table.
    objective : Objective
    pairs : bool
        Whether it is fitted on pairs; otherwise on rows, with labels or targets where it takes them.
    solver : str
        The solver to ask for, where it is not "auto".
    trained : bool
        Whether gradient descent finds it, which needs torch.
    explicit : tuple of str
        Settings that have to be given even at their defaults.
    settles : tuple of str
        Settings left to "auto" that become what the folds chose, as another candidate is the same with one of the
        values: a fit of all rows could choose that one, which was ranked by itself.
    """

    name: str
    objective: Objective
    pairs: bool = False
    solver: str = "auto"
    trained: bool = False
    explicit: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the objective that are not its defaults, or have to be given in any case."""
        own = {part.name: (getattr(self.objective, part.name), part.default) for part in fields(self.objective)}  # type: ignore[arg-type]
        return {name: value for name, (value, default) in own.items() if value != default or name in self.explicit}

    def settled(self, chosen: Sequence[Mapping[str, Any]]) -> Candidate:
        """Return the candidate with settings of its own choice, from those of each fold: the lower median."""
        own: Any = self.objective
        values = {name: median_low([settings[name] for settings in chosen]) for name in self.settles}
        return replace(self, objective=replace(own, **values))

    def solver_for(self, rows: int) -> str | Gradient:
        """Return the solver of a small fit: the one to ask for, with fewer passes over rows where it trains on them."""
        if not self.trained or self.pairs:  # pairs are few, and their runs short
            return self.solver
        require("torch", "torch", f"Objective '{self.objective.name}'")
        from firstk.solvers.gradient.losses import training_loss_of

        loss = training_loss_of(self.objective)
        whole = max(loss.epochs, loss.steps // max(1, rows // loss.batch_size))  # of a fit of these rows by default
        return Gradient(epochs=max(1, round(PASSES * whole)))


def candidates_for(task: Task, balance: float | None = None) -> tuple[Candidate, ...]:
    """Return the objectives for a task, the simplest first: of those that are as good, the first is recommended.

    Parameters
    ----------
    task : {"labels", "targets", "pairs", "judgements", "none"}
    balance : float, optional
        For labels and targets: the weight at which both terms of a mixture are equal; see `balanced_weight`.
    """
    plain = (
        Candidate("reconstruction", Reconstruction()),
        Candidate("similarity, dot_products", Similarity(keep="dot_products")),
    )
    # Beside judgements, similarity learns from them unless it is told what to keep of the vectors.
    neighbors = Candidate("similarity, neighbors", Similarity(), explicit=("keep",))
    half = Candidate("similarity, variance", Similarity(keep="variance"))
    if task == "none":
        return (*plain, half, neighbors)
    if task in ("pairs", "judgements"):
        return (
            *plain,
            half,
            neighbors,
            Candidate("similarity, pairs, neighbor_weight 0", Similarity(neighbor_weight=0.0), pairs=True),
            Candidate("similarity, pairs", Similarity(), pairs=True, settles=("neighbor_weight",)),
            Candidate("similarity, pairs, gradient", Similarity(), pairs=True, solver="gradient", trained=True),
        )
    # Weights of two digits, so that a command shows what was tried.
    weights = [float(f"{balance * share:.1e}") for share in MIXTURE_WEIGHTS] if balance else []
    mixtures = tuple(Candidate(f"mixture, lam {lam:g}", Mixture(lam=lam)) for lam in weights)
    if task == "targets":
        supervised = (
            Candidate("regression", Regression()),
            Candidate("regression, shrinkage auto", Regression(shrinkage="auto")),
        )
        return (*plain, *supervised, *mixtures, neighbors)
    return (
        *plain,
        Candidate("fisher", Fisher()),
        Candidate("error_bound", ErrorBound()),
        *mixtures,
        neighbors,
        Candidate("classification", Classification(), trained=True),
    )


def balanced_weight(cross: np.ndarray, St: np.ndarray) -> float:
    """Return the weight at which both terms of a mixture are equal along their first axis.

    Parameters
    ----------
    cross : ndarray of shape (p, q)
        Cross scatter of rows and targets (one-hot labels).
    St : ndarray of shape (p, p)
        Scatter of the rows.
    """
    values, P = np.linalg.eigh(St)
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    gains = (P[:, kept].T @ cross) / np.sqrt(values[kept])[:, None]
    return float(np.linalg.norm(gains, 2) ** 2 / values[-1]) if kept.any() and values[-1] > 0 else 0.0
