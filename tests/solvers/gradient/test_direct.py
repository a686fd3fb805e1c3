"""Steps without autograd: the same training, and only where nothing else acts on gradients."""

import numpy as np
import pytest

pytest.importorskip("torch")

from firstk import Classification, FullPrefix, Gradient, PrefixEncoder, SparsePrefix, UniformL2
from firstk._base.checks import numba_may_compile
from firstk.data import load_digits
from firstk.orderings import MonotoneL1, Rotation, Variational
from firstk.solvers.gradient.losses.cross_entropy import CrossEntropy

SETTINGS = Gradient(epochs=3)


@pytest.fixture
def steps(monkeypatch):
    """Count the steps that were made without autograd."""
    if not numba_may_compile():
        pytest.skip("numba is needed")
    made = []
    given = CrossEntropy.direct

    def direct(*arguments):
        step = given(*arguments)
        return None if step is None else lambda batch: made.append(len(batch["input"])) or step(batch)

    monkeypatch.setattr(CrossEntropy, "direct", direct)
    return made


def trained(objective="classification", solver=SETTINGS, **settings):
    digits = load_digits()
    settings = {"n_components": 24, "objective": objective, "solver": solver, "random_state": 0} | settings
    return PrefixEncoder(**settings).fit(digits.X_train, digits.y_train)


def test_training_is_that_of_autograd(steps, monkeypatch):
    found = trained()
    n = len(load_digits().X_train)
    assert steps == [128] * (3 * (n // 128))
    monkeypatch.setattr(FullPrefix, "leaves_gradients", False)
    wanted = trained()
    assert len(steps) == 3 * (n // 128)
    np.testing.assert_allclose(found.trace_[-1]["loss"], wanted.trace_[-1]["loss"], rtol=1e-5)
    size = np.abs(wanted.components_).max()
    np.testing.assert_allclose(found.components_, wanted.components_, rtol=0, atol=1e-3 * size)


def test_clipped_gradients_are_those_of_autograd(steps, monkeypatch):
    solver = Gradient(epochs=2, clip=0.01)
    found = trained(solver=solver)
    assert steps
    monkeypatch.setattr(FullPrefix, "leaves_gradients", False)
    wanted = trained(solver=solver)
    np.testing.assert_allclose(found.trace_[-1]["loss"], wanted.trace_[-1]["loss"], rtol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": Classification(label_smoothing=0.1)},
        {"objective": Classification(reconstruction=0.2)},
        {"objective": Classification(own_heads=0)},
        {"ordering": FullPrefix(estimator="sampled")},
        {"ordering": SparsePrefix(prefixes=(8, 24))},
        {"solver": Gradient(epochs=2, batch_size="full")},
    ],
)
def test_all_else_goes_through_autograd(steps, settings):
    trained(**settings)
    assert not steps


def test_orderings_that_act_on_gradients_say_so():
    assert FullPrefix().leaves_gradients
    assert SparsePrefix(prefixes=(8, 24)).leaves_gradients
    for ordering in (UniformL2(), MonotoneL1(), Rotation(), Variational()):
        assert not ordering.leaves_gradients
