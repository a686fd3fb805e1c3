"""Every registered ordering through its contract: weights, blocks, hooks, and what its booleans stand for."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from sklearn.base import clone

from contracts.members import ORDERINGS, data
from firstk import MLP, Fisher, Gradient, PrefixEncoder, Reconstruction
from firstk.contracts import Residual
from firstk.exceptions import IllegalCombinationError
from firstk.orderings import FullPrefix

every_ordering = pytest.mark.parametrize("ordering", ORDERINGS.values(), ids=ORDERINGS.keys())
FLAGS = [
    "has_closed_form",
    "needs_linear_encoder",
    "needs_decoder",
    "needs_plain_gradient",
    "starts_tied",
    "penalizes_scale",
    "acts_on_weights",
    "acts_on_codes",
]
# What each needs of the rest, by its mathematics: the library follows the booleans, so nothing else can tell.
NEEDS = {
    "full_prefix": {"has_closed_form"},
    "sparse_prefix": {"has_closed_form"},
    "unordered": set(),
    "uniform_l2": {"needs_linear_encoder", "penalizes_scale", "acts_on_weights"},
    "nonuniform_l2": {"needs_linear_encoder", "penalizes_scale", "acts_on_weights"},
    "monotone_l1": {"penalizes_scale", "acts_on_codes"},
    "nested_dropout": set(),
    "rotation": {
        "needs_linear_encoder",
        "needs_decoder",
        "needs_plain_gradient",
        "starts_tied",
        "acts_on_weights",
    },
    "variational": {"needs_linear_encoder", "needs_decoder", "penalizes_scale", "acts_on_weights"},
}
D = 4
ROWS, LABELLED = data("rows"), data("labels")


def possible(wanted):
    return nullcontext() if wanted else pytest.raises(IllegalCombinationError)


@every_ordering
def test_attributes_have_the_types_of_the_contract(ordering):
    assert ordering.residual in get_args(Residual)
    assert all(isinstance(getattr(ordering, name), bool) for name in FLAGS)
    assert {name for name in FLAGS if getattr(ordering, name)} == NEEDS[ordering.name]
    assert ordering.estimator in ("auto", "exact", "sampled")


@every_ordering
@pytest.mark.parametrize("d", [3, 4, 7])
def test_weights_of_prefixes_are_shares(ordering, d):
    ordering.check(d)
    weights = ordering.prefix_weights(d, "uniform")
    assert weights.omega.shape == (d,)
    assert (weights.omega >= 0).all()
    np.testing.assert_allclose(weights.omega.sum(), 1.0)
    np.testing.assert_allclose(weights.cum, weights.omega[::-1].cumsum()[::-1], atol=1e-12)


@every_ordering
@pytest.mark.parametrize("d", [3, 4, 7])
def test_the_order_is_fixed_at_lengths_of_the_code(ordering, d):
    blocks = ordering.blocks(d)
    assert list(blocks) == sorted(set(blocks))
    assert all(isinstance(k, int) and 1 <= k <= d for k in blocks)
    assert blocks


@every_ordering
def test_where_axes_or_blocks_are_fixed_they_have_weight(ordering):
    if ordering.residual in ("axes", "blocks"):
        assert ordering.blocks(D) == tuple(ordering.prefix_weights(D, "uniform").support.tolist())


@every_ordering
def test_extras_are_finite_arrays(ordering):
    assert all(part.dtype == np.float64 and np.isfinite(part).all() for part in ordering.extras(D).values())


@every_ordering
def test_has_closed_form_says_whether_the_closed_form_takes_it(ordering):
    with possible(ordering.has_closed_form):
        PrefixEncoder(D, ordering=ordering, solver="closed_form").fit(ROWS["X"])
    if ordering.has_closed_form:
        solved = PrefixEncoder(D, ordering=ordering).fit(ROWS["X"])
        np.testing.assert_array_equal(solved.components_, PrefixEncoder(D).fit(ROWS["X"]).components_)


def trained(ordering, settings=None, objective="reconstruction", network="linear"):
    pytest.importorskip("torch")
    settings = Gradient(epochs=2) if settings is None else settings
    enc = PrefixEncoder(D, ordering=ordering, objective=objective, solver=settings, network=network, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return enc.fit(LABELLED["X"], None if objective == "reconstruction" else LABELLED["y"])


@every_ordering
def test_training_is_deterministic_and_changes_no_parameter(ordering):
    first = trained(ordering)
    second = trained(clone(PrefixEncoder(ordering=ordering)).ordering)
    assert first.components_.tobytes() == second.components_.tobytes()
    assert first.ordering is ordering
    assert replace(ordering) == ordering
    assert first.encoder_.record.ordering == ordering.name


@every_ordering
def test_needs_linear_encoder(ordering):
    pytest.importorskip("torch")
    with possible(not ordering.needs_linear_encoder):
        trained(ordering, network=MLP((5,)))


@every_ordering
def test_needs_decoder_and_penalizes_scale(ordering):
    pytest.importorskip("torch")
    exact = replace(ordering, **{"estimator": "exact"} if isinstance(ordering, FullPrefix) else {})
    drawn = exact.estimator == "sampled"  # which no scatter takes
    with possible(not (ordering.needs_decoder or ordering.penalizes_scale or drawn)):
        trained(exact, objective=Fisher())


@every_ordering
def test_needs_plain_gradient(ordering):
    pytest.importorskip("torch")
    with possible(not ordering.needs_plain_gradient):
        trained(ordering, Gradient(epochs=2, optimizer="adam"))


@every_ordering
def test_acts_on_weights(ordering):
    pytest.importorskip("torch")
    with possible(not ordering.acts_on_weights):
        trained(ordering, Gradient(epochs=2, whiten=True))


@every_ordering
def test_acts_on_codes(ordering):
    pytest.importorskip("torch")
    enc = PrefixEncoder(D, ordering=ordering, solver=Gradient(epochs=2))
    assert hasattr(enc, "partial_fit") == (not ordering.acts_on_codes and ordering.estimator != "sampled")


@every_ordering
def test_starts_tied(ordering):
    pytest.importorskip("torch")
    from firstk.data.task import of_columns
    from firstk.estimator.problem import Problem
    from firstk.solvers.gradient.build import build, with_axes

    problem = Problem(Reconstruction(), ordering, Gradient(whiten=False), D, init="small", device="cpu")
    request = with_axes(problem.request(problem.objective, problem.accumulate(of_columns(ROWS)), ROWS))
    model = build(request, problem.solver).model
    tied = bool((model.encoder.weight == model.decoder.t()).all())
    assert tied == ordering.starts_tied
