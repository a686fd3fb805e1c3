"""One example of every registered member, by loops over the registries: a new member is in these tests by itself."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace

import numpy as np

from firstk import objectives, orderings, solvers
from firstk.contracts import MomentObjective

N, P, C = 120, 6, 3
# Settings of members that cannot be made without any.
REQUIRED = {"sparse_prefix": {"prefixes": (1, 3)}}


def examples(registry):
    """Return {name: a member with default settings}."""
    return {name: kind(**REQUIRED.get(name, {})) for name, kind in registry.items()}


OBJECTIVES = examples({**objectives.PUBLIC, **objectives.REGISTRY.internal})
ORDERINGS = examples(orderings.PUBLIC)
SOLVERS = examples({name: kind for name, kind in solvers.PUBLIC.items() if name != "auto"})
# Objectives that training by gradient finds too; those of moments alone have a solver of their own.
TRAINABLE = {name: objective for name, objective in OBJECTIVES.items() if not isinstance(objective, MomentObjective)}


def settings():
    """Return (member, field name) for every setting of every registered member."""
    everyone = [*OBJECTIVES.values(), *ORDERINGS.values(), *SOLVERS.values()]
    return [(member, part.name) for member in everyone for part in fields(member)]


def with_setting(member, name, value):
    return replace(member, **{name: value})


def check(member):
    """Call a member's check, which for orderings takes the width of the code."""
    takes_width = "d" in inspect.signature(member.check).parameters
    return member.check(4) if takes_width else member.check()


def data(supervision, seed=0):
    """Return rows as `Problem.accumulate` takes them, for an objective that learns from such data."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % C
    X = rng.normal(size=(N, P)) * np.linspace(3, 1, P) + 2 * rng.normal(size=(C, P))[y] + 1
    if supervision == "pairs":
        return {"left": X, "right": X + 0.3 * rng.normal(size=X.shape), "scores": rng.uniform(size=N)}
    if supervision == "rows":
        return {"X": X}
    return {"X": X, "y": y if supervision.startswith("labels") else X @ rng.normal(size=(P, 2))}


def fit(encoder, rows):
    """Fit an estimator on such rows."""
    if "left" in rows:
        return encoder.fit_pairs(rows["left"], rows["right"], rows["scores"])
    return encoder.fit(rows["X"], rows.get("y"))


def settled(objective):
    """Return an objective as a solver gets it: of rows or pairs, with nothing left to "auto"."""
    found = objective.resolved(pairs=objective.supervision == "pairs")
    return found.candidates()[0] if found.candidates() else found
