"""Objectives and orderings of the user's own: taken by protocol, with or without a base class; saved without code."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from contracts.members import data
from firstk import Fisher, FullPrefix, Gradient, PrefixEncoder
from firstk.contracts import Conventions, Pencil
from firstk.exceptions import InvalidInputError
from firstk.objectives import ClosedFormObjective
from firstk.orderings import Hooks, resolve_omega

X = data("rows")["X"]
Y = data("labels")["y"]


@dataclass(frozen=True)
class Weighted(ClosedFormObjective):
    """Principal components of weighted columns; the weight of the first may be "auto"."""

    first: float | str = 1.0

    name: ClassVar[str] = "weighted"
    supervision: ClassVar[str] = "rows"
    conventions: ClassVar[Conventions] = Conventions("metric", "mean", False, "uniform", "recall@10")

    @property
    def rotation_free(self):
        return False

    def pencil(self, statistics):
        scale = np.ones(statistics.n_features)
        scale[0] = self.first
        return Pencil(M=scale[:, None] * statistics.moments.St * scale)

    def candidates(self):
        return (Weighted(0.5), Weighted(2.0)) if self.first == "auto" else ()


@pytest.mark.parametrize(
    ("conventions", "message"),
    [
        (("orthogonal", "mean", False, "uniform", "r2"), "'scaling' parameter of Declared.conventions must be one of"),
        (("metric", "median", False, "uniform", "r2"), "'centring' .* must be one of 'mean', 'none'. Got 'median'"),
        (("metric", "sides", False, "uniform", "r2"), "'centring' .* must be one of 'mean', 'none'. Got 'sides'"),
        (("metric", "mean", "no", "uniform", "r2"), "'normalized' .* must be True or False"),
        (("metric", "mean", False, "linear", "r2"), "'omega' .* must be one of 'harmonic'"),
        (
            ("metric", "mean", False, "uniform", "accuracy"),
            "'metric' .* must be one of '1nn_accuracy'.* Got 'accuracy'",
        ),
        (
            ("orthonormal", "mean", False, "uniform", "r2"),
            "'N' parameter of Declared.pencil must be None, as the .*'metric'",
        ),
        (None, "'conventions' parameter of Declared must be a firstk.contracts.Conventions"),
    ],
)
def test_declared_conventions_are_checked(conventions, message):
    class Declared(Weighted):
        def pencil(self, statistics):
            return Pencil(M=statistics.moments.St, N=np.eye(statistics.n_features))

    Declared.conventions = None if conventions is None else Conventions(*conventions)
    with pytest.raises(InvalidInputError, match=message):
        PrefixEncoder(2, objective=Declared()).fit(X)


class Delegated:
    """No base class of firstk: everything is asked of another member."""

    def __init__(self, member):
        self._member = member
        for name in dir(type(member)):
            if not name.startswith("_"):
                setattr(self, name, getattr(member, name))


@dataclass(frozen=True)
class Last(Hooks):
    """Weigh the full width and the first coordinate alone."""

    name: ClassVar[str] = "last"
    residual: ClassVar[str] = "blocks"
    has_closed_form: ClassVar[bool] = True

    def prefix_weights(self, d, default):
        return resolve_omega({1: 1.0, d: 1.0}, d)

    def blocks(self, d):
        return tuple(sorted({1, d}))


def test_an_objective_of_ones_own_is_solved_and_evaluated():
    enc = PrefixEncoder(3, objective=Weighted(3.0)).fit(X)
    assert enc.solver_ == "closed_form"
    assert enc.objective_ == Weighted(3.0)
    assert len(enc.curve(X[:50]).k) == 3
    assert enc.encoder_.record.objective == "weighted"
    expected = np.linalg.eigh(np.cov((X * [3, 1, 1, 1, 1, 1]).T, bias=True))[1][:, ::-1][:, :3].T
    np.testing.assert_allclose(np.abs(enc.components_), np.abs(expected), atol=1e-8)


def test_its_settings_may_be_chosen():
    enc = PrefixEncoder(3, objective=Weighted("auto")).fit(X)
    assert enc.objective_ in Weighted("auto").candidates()
    assert len(enc.encoder_.record.auto) == 2


def test_it_is_trained_to_the_same_axes():
    pytest.importorskip("torch")
    solved = PrefixEncoder(2, objective=Weighted(3.0)).fit(X)
    trained = PrefixEncoder(2, objective=Weighted(3.0), solver=Gradient(), init="random", random_state=0).fit(X)
    assert trained.optimality_gap_ < 1e-9
    np.testing.assert_allclose(np.abs(trained.components_), np.abs(solved.components_), atol=1e-4)


def test_a_training_loss_of_ones_own():
    torch = pytest.importorskip("torch")
    from firstk.solvers.gradient.losses import LeastSquares

    class Absolute(LeastSquares):
        from_moments = False
        solves_pencil = False

        def loss(self, model, code, batch, prefix_sum):
            weights = code.new_tensor(prefix_sum.weights.omega)
            errors = [
                (batch["target"] - code[:, :k] @ model.decoder[:, :k].t()).abs().sum(1).mean()
                for k in range(1, code.shape[1] + 1)
            ]
            return (weights * torch.stack(errors)).sum()

    from firstk import Reconstruction

    class Robust(Reconstruction):
        name = "robust"
        training_loss = Absolute
        exact = False

    enc = PrefixEncoder(2, objective=Robust(), solver=Gradient(epochs=5), random_state=0).fit(X)
    assert enc.solver_ == "gradient"
    assert enc.optimality_gap_ is None
    assert enc.encoder_.record.own_classes["objective"].endswith("Robust")
    assert enc.inverse_transform(enc.transform(X)).shape == X.shape


def test_no_base_class_is_needed():
    plain = PrefixEncoder(2, objective=Fisher(), ordering=FullPrefix()).fit(X, Y)
    mine = PrefixEncoder(2, objective=Delegated(Fisher()), ordering=Delegated(FullPrefix())).fit(X, Y)
    np.testing.assert_array_equal(mine.components_, plain.components_)
    assert mine.predict(X).tolist() == plain.predict(X).tolist()


def test_an_ordering_of_ones_own_is_solved_and_trained():
    solved = PrefixEncoder(3, ordering=Last()).fit(X)
    assert solved.solver_ == "closed_form"
    assert solved.encoder_.record.omega == {"1": 0.5, "3": 0.5}
    pytest.importorskip("torch")
    trained = PrefixEncoder(3, ordering=Last(), solver=Gradient(), random_state=0).fit(X)
    np.testing.assert_allclose(np.abs(trained.components_), np.abs(solved.components_), atol=1e-4)


def test_what_is_missing_is_named():
    class Half:
        name = "half"

    with pytest.raises(InvalidInputError, match=r"a Half, lacks 19 of the 20 attributes .* supervision, .*pencil"):
        PrefixEncoder(objective=Half()).fit(X)
    with pytest.raises(InvalidInputError, match=r"a Half, lacks \d+ of the \d+ .* firstk.contracts.Ordering"):
        PrefixEncoder(ordering=Half()).fit(X)


@pytest.mark.parametrize("nothing", [3, None, object(), Fisher])
def test_what_is_no_objective_at_all_gets_the_list(nothing):
    with pytest.raises(InvalidInputError, match="must be one of 'reconstruction'"):
        PrefixEncoder(objective=nothing).fit(X)


def test_attributes_outside_their_choices_are_named():
    class Odd(Weighted):
        supervision = "nothing"

    with pytest.raises(InvalidInputError, match="'supervision' parameter of Odd"):
        PrefixEncoder(objective=Odd()).fit(X)

    class Strange(Last):
        residual = "nothing"

    with pytest.raises(InvalidInputError, match="'residual' parameter of Strange"):
        PrefixEncoder(ordering=Strange()).fit(X)


@pytest.mark.parametrize("alone", [False, True], ids=["estimator", "encoder alone"])
def test_the_encoder_is_saved_without_the_class(tmp_path, alone):
    enc = PrefixEncoder(3, objective=Weighted(3.0), ordering=Last()).fit(X)
    path = (enc.encoder_ if alone else enc).save(tmp_path / "model")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        back = PrefixEncoder.load(path)
    objective, ordering = (str(each.message) for each in caught)
    assert re.search(r"The objective of .* was a \S+Weighted, a class of your own, which is not saved", objective)
    assert re.search(r"The ordering of .* was a \S+Last, .* set_params\(ordering=...\)", ordering)
    np.testing.assert_array_equal(back.transform(X), enc.transform(X))
    assert back.n_components_ == 3
    with pytest.raises(AttributeError, match=r"set_params\(objective"):
        _ = back.objective_
    if not alone:
        left_out = back.encoder_.record.parameters.left_out
        assert set(left_out) == {"objective", "ordering"}
        assert all("class of your own" in reason for reason in left_out.values())
    for lost in (back, clone(back)):
        with pytest.raises(InvalidInputError, match=r"was a \S+Weighted, a class of your own.*set_params\(objective"):
            lost.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twice = PrefixEncoder.load(back.save(tmp_path / "again")).encoder_.record.parameters
    assert set(twice.left_out) == {"objective", "ordering"}
    again = back.set_params(objective=Weighted(3.0), ordering=Last())
    assert again.objective_ == Weighted(3.0)
    np.testing.assert_array_equal(again.fit(X).components_, enc.components_)


def test_a_member_of_ones_own_is_cloned_cut_and_merged():
    enc = PrefixEncoder(3, objective=Weighted(2.0), ordering=Last())
    assert clone(enc).get_params() == enc.get_params()
    parts = [clone(enc).partial_fit(part) for part in (X[:50], X[50:])]
    np.testing.assert_allclose(parts[0].merge(parts[1]).components_, enc.fit(X).components_, atol=1e-9)
    assert enc[:2].objective_ == Weighted(2.0)


@pytest.mark.parametrize(
    ("pencil", "message"),
    [
        (np.eye(4), "'result' parameter of Wrong.pencil must be a Pencil with M or with factor. Got 'ndarray'"),
        (Pencil(), "must be a Pencil with M or with factor"),
        (Pencil(M=np.eye(3)), r"'M' parameter of Wrong.pencil must be finite numbers of shape \(\d+, \d+\)"),
        (Pencil(M=np.full((X.shape[1],) * 2, np.nan)), "numbers that are not finite"),
        (Pencil(M=np.triu(np.ones((X.shape[1],) * 2))), "must be a symmetric matrix"),
        (Pencil(factor=np.ones((X.shape[1] + 1, 2))), "'factor' parameter of Wrong.pencil"),
    ],
)
def test_a_pencil_that_does_not_fit_the_data_is_named(pencil, message):
    class Wrong(Weighted):
        def pencil(self, statistics):
            return pencil

    with pytest.raises(InvalidInputError, match=message):
        PrefixEncoder(2, objective=Wrong()).fit(X)


def test_an_objective_without_a_pencil_is_told_so():
    class Bare(ClosedFormObjective):
        name = "bare"
        supervision = "rows"
        conventions = Weighted.conventions

    with pytest.raises(InvalidInputError, match=r"Bare defines no 'pencil'.*docs/extending.md"):
        PrefixEncoder(2, objective=Bare()).fit(X)
    with pytest.raises(InvalidInputError, match="Bare is trained by its squared error and defines no 'quadratic'"):
        Bare().quadratic(None)
