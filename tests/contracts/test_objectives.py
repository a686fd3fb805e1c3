"""Every registered objective through its contract: types, pencils, candidates, and what it claims about itself."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from sklearn.base import clone

from contracts.members import OBJECTIVES, TRAINABLE, C, P, data, fit, settled
from firstk import PrefixEncoder, objectives
from firstk._base.prefix_weights import resolve_omega
from firstk.contracts import Conventions, Objective, Supervision, TrainingLossName
from firstk.data.task import of_columns
from firstk.encoder.fitted import Head
from firstk.estimator.problem import Problem
from firstk.metrics.curve import METRICS
from firstk.orderings import FullPrefix
from firstk.solvers import ClosedForm

every_objective = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
every_trainable = pytest.mark.parametrize("objective", TRAINABLE.values(), ids=TRAINABLE.keys())


def statistics_of(objective):
    return Problem(objective, FullPrefix(), ClosedForm()).accumulate(of_columns(data(objective.supervision)))


def test_no_two_objectives_have_one_name():
    assert not set(objectives.PUBLIC) & set(objectives.REGISTRY.internal)


@every_objective
def test_attributes_have_the_types_of_the_contract(objective):
    assert objective.supervision in get_args(Supervision)
    assert isinstance(objective.conventions, Conventions)
    assert objective.training_loss in get_args(TrainingLossName)
    for name in ("exact", "rotation_free", "scale_free"):
        assert isinstance(getattr(objective, name), bool), name
    assert isinstance(objective.sample_size, int)
    assert objective.sample_size >= 0
    assert all(isinstance(value, float) for value in objective.loss_settings.values())


@every_objective
def test_conventions_are_among_those_that_exist(objective):
    line = objective.conventions
    assert line.scaling in ("orthonormal", "metric", "noise", "projection", "power")
    assert line.centring in ("mean", "none", "sides")
    assert isinstance(line.normalized, bool)
    assert line.metric in {*METRICS, "pair_agreement"}, "of scored pairs, or of positives: the data decide"
    assert resolve_omega(line.omega, 4).d == 4


@every_objective
def test_resolving_ends_after_one_step(objective):
    for pairs in (False, True):
        once = objective.resolved(pairs)
        assert isinstance(once, Objective)
        assert once.resolved(pairs) == once
        assert once.check() is None


@every_objective
def test_candidates_leave_nothing_to_choose(objective):
    found = objective.resolved(pairs=objective.supervision == "pairs")
    candidates = found.candidates()
    assert len(set(candidates)) == len(candidates)
    assert (found.sample_size > 0) >= bool(candidates), "choosing needs rows"
    for candidate in candidates:
        assert type(candidate) is type(found)
        assert candidate.candidates() == ()
        assert candidate.check() is None
        first, second = candidate.tie_break
        assert isinstance(first, float)
        assert isinstance(second, float)


@every_objective
def test_a_pencil_has_the_shape_of_the_data_and_leaves_them_alone(objective):
    goal = settled(objective)
    statistics = statistics_of(goal)
    before = {name: part.copy() for name, part in statistics.to_arrays().items()}
    pencil = goal.pencil(statistics)
    M = pencil.formed()
    assert M.shape == (P, P)
    np.testing.assert_allclose(M, M.T, atol=1e-10 * np.abs(M).max())
    if pencil.N is not None:
        assert pencil.N.shape == (P, P)
        assert np.linalg.eigvalsh(pencil.N).min() > -1e-10 * np.abs(pencil.N).max()
    assert pencil.most is None or 1 <= pencil.most <= P
    after = statistics.to_arrays()
    assert all(np.array_equal(after[name], part) for name, part in before.items())


@every_objective
def test_readouts_have_a_column_for_every_axis(objective):
    goal = settled(objective)
    statistics, axes = statistics_of(goal), np.eye(2, P)
    decoder, head = goal.decoder(statistics, axes), goal.head(statistics, axes)
    assert decoder is None or decoder.shape == (P, 2)
    assert head is None or isinstance(head, Head)
    if head is not None:
        assert head.weight.shape[1] == 2
        assert len(head.weight) == (C if goal.supervision.startswith("labels") else 2)
    assert objectives.provides(objective, "decoder") == (goal.resolved(False).decoder(statistics, axes) is not None)


@every_objective
def test_a_fit_is_deterministic_and_changes_neither_data_nor_parameters(objective):
    pytest.importorskip("torch") if not objective.exact else None
    rows = data(objective.supervision)
    before = {name: part.copy() for name, part in rows.items()}
    enc = PrefixEncoder(2, objective=settled(objective), random_state=0)
    twin = clone(enc)
    assert twin.get_params() == enc.get_params()
    first, second = fit(enc, rows), fit(twin, rows)
    assert first.components_.tobytes() == second.components_.tobytes()
    assert first.spectrum_.tobytes() == second.spectrum_.tobytes()
    assert all(np.array_equal(rows[name], part) for name, part in before.items())
    assert enc.objective == settled(objective)
    assert first.objective_ == settled(objective)


@every_objective
def test_rotation_free_means_that_axes_turn_with_the_data(objective):
    goal = settled(objective)
    rows, Q = data(goal.supervision), np.linalg.qr(np.random.default_rng(1).normal(size=(P, P)))[0]
    turned = {name: part @ Q if name in ("X", "left", "right") else part for name, part in rows.items()}
    problem = Problem(goal, FullPrefix(), ClosedForm(), 2)
    plain, other = (
        ClosedForm().solve(problem.request(goal, problem.accumulate(of_columns(given)))).components
        for given in (rows, turned)
    )
    follows = np.abs(np.abs(other) - np.abs(plain @ Q)).max() < 1e-6 * np.abs(plain).max()
    assert follows == goal.rotation_free


@every_trainable
def test_scale_free_means_that_the_loss_of_moments_has_no_scale(objective):
    pytest.importorskip("torch")
    from firstk.solvers.gradient.build import build, with_axes
    from firstk.solvers.gradient.losses import training_loss_of
    from firstk.solvers.gradient.settings import Gradient

    goal = settled(objective)
    if not training_loss_of(goal).from_moments:  # such a loss is never computed without rows
        with pytest.raises(NotImplementedError):
            training_loss_of(goal)({}).moment_loss(None, None)
        return
    problem = Problem(goal, FullPrefix(), Gradient(whiten=False), 2)
    task = build(
        with_axes(problem.request(goal, problem.accumulate(of_columns(data(goal.supervision))))), problem.solver
    )
    before = task.training_loss.moment_loss(task.model, task.prefix_sum).item()
    task.model.encoder.C.data.mul_(2.0)
    after = task.training_loss.moment_loss(task.model, task.prefix_sum).item()
    assert (abs(after - before) < 1e-9 * abs(before)) == goal.scale_free


@every_trainable
def test_training_gives_what_the_closed_form_gives_a_place_for(objective):
    pytest.importorskip("torch")
    from firstk.solvers.gradient.settings import Gradient

    enc = PrefixEncoder(2, objective=settled(objective), solver=Gradient(epochs=2), random_state=0)
    fitted = fit(enc, data(objective.supervision))
    assert fitted.components_.shape == (2, P)
    assert np.isfinite(fitted.components_).all()
    assert fitted.encoder_.record.objective == settled(objective).name
    assert fitted.encoder_.record.solver_settings
    assert fitted.encoder_.record.epochs
