"""Every registered solver and training loss through its contract."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import firstk
from contracts.members import OBJECTIVES, SOLVERS, TRAINABLE, P, data, settled
from firstk.contracts import TrainingLossName
from firstk.data.task import of_columns
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.problem import Problem
from firstk.objectives import ErrorBound, Reconstruction
from firstk.orderings import FullPrefix

every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())


@every_solver
def test_attributes_have_the_types_of_the_contract(solver):
    assert isinstance(solver.trains, bool)
    assert isinstance(solver.shows_coordinates, bool)
    assert solver.precision in ("auto", "float64")


@every_solver
def test_a_request_is_answered_by_an_encoder_and_stays_as_it_is(solver):
    pytest.importorskip("torch") if solver.trains else None
    goal = ErrorBound() if solver.name == "quasi_newton" else Reconstruction()
    problem = Problem(goal, FullPrefix(), solver, 3, device="cpu")
    statistics = problem.accumulate(of_columns(data(goal.supervision)))
    request = problem.request(problem.objective, statistics)
    before = {name: part.copy() for name, part in statistics.to_arrays().items()}
    assert solver.check_combination(request.objective, request.ordering, request.network) is None
    assert solver.check_streamable(request.objective, request.ordering, request.network, "this") is None
    first, second = solver.solve(request), solver.solve(request)
    assert isinstance(first, FittedEncoder)
    assert first.components.shape == (3, P)
    assert first.components.tobytes() == second.components.tobytes()
    assert request.axes is None
    assert all(np.array_equal(statistics.to_arrays()[name], part) for name, part in before.items())


def test_every_named_training_loss_has_a_class_and_an_objective():
    pytest.importorskip("torch")
    from firstk.contracts import TrainingLoss
    from firstk.solvers.gradient.losses import TRAINING_LOSSES

    assert set(TRAINING_LOSSES) == set(get_args(TrainingLossName))
    assert {objective.training_loss for objective in OBJECTIVES.values()} == set(TRAINING_LOSSES)
    assert all(
        issubclass(type(kind({})), kind) and isinstance(kind({}), TrainingLoss) for kind in TRAINING_LOSSES.values()
    )


@pytest.mark.parametrize("objective", TRAINABLE.values(), ids=TRAINABLE.keys())
def test_a_training_loss_can_do_what_it_says(objective):
    torch = pytest.importorskip("torch")
    from firstk.solvers.gradient.build import build, with_axes
    from firstk.solvers.gradient.losses import training_loss_of
    from firstk.solvers.gradient.settings import Gradient

    goal, rows = settled(objective), data(objective.supervision)
    kind = training_loss_of(goal)
    problem = Problem(goal, FullPrefix(), Gradient(), 2, device="cpu")
    request = with_axes(problem.request(goal, problem.accumulate(of_columns(rows)), rows))
    task = build(request, problem.solver)
    assert isinstance(task.training_loss, kind.for_statistics(request.statistics))
    assert task.moments == kind.from_moments
    part = task.part(None)
    loss = task.loss(task.encode(part.rows), part)
    assert loss.ndim == 0
    assert torch.isfinite(loss)
    code = task.training_loss.learned(request, task.model)
    form = task.training_loss.canonical(request, code, kind.second_moment(request))
    again = task.training_loss.canonical(request, form, kind.second_moment(request))
    np.testing.assert_allclose(again.components, form.components, atol=1e-8)
    assert task.training_loss.spectrum(request, task, form).shape == (2,)


def test_nothing_outside_a_loss_asks_for_its_name():
    package = Path(firstk.__file__).parent
    names, found = set(get_args(TrainingLossName)) - {"pairs"}, []
    files = [*(package / "solvers" / "gradient").glob("*.py"), *(package / "estimator").glob("*.py")]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and node.value in names:
                found.append(f"{file.name}:{node.lineno}")
            if isinstance(node, ast.Compare) and "training_loss" in ast.unparse(node):
                found.append(f"{file.name}:{node.lineno}")
    assert len(files) > 15
    assert found == []
