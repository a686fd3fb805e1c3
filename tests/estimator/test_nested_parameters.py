"""Settings of the members as parameters of the estimator: get_params, set_params, clone and searches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from firstk import MLP, Denoising, Fisher, FullPrefix, GaussianNoise, Gradient, PrefixEncoder, SparsePrefix
from firstk.data import load_digits


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def test_settings_of_every_axis_are_parameters():
    enc = PrefixEncoder(
        objective=Denoising(GaussianNoise(0.5)), ordering=FullPrefix("harmonic"), solver=Gradient(epochs=3),
        network=MLP((4,)),
    )  # fmt: skip
    found = enc.get_params()
    assert found["objective__noise"] == GaussianNoise(0.5)
    assert found["objective__noise__sigma"] == 0.5
    assert found["ordering__omega"] == "harmonic"
    assert found["solver__epochs"] == 3
    assert found["network__hidden"] == (4,)
    assert not any("__" in name for name in enc.get_params(deep=False))


def test_a_name_has_the_settings_of_its_defaults():
    found = PrefixEncoder(objective="fisher", solver="gradient").get_params()
    assert found["objective"] == "fisher"
    assert found["objective__shrinkage"] == "auto"
    assert found["solver__epochs"] == "auto"
    assert not any(name.startswith("ordering__") for name in PrefixEncoder(ordering="sparse_prefix").get_params())


@pytest.mark.parametrize(
    ("given", "changes", "after"),
    [
        ({"objective": Fisher()}, {"objective__shrinkage": 0.5}, {"objective": Fisher(0.5)}),
        ({"objective": "fisher"}, {"objective__shrinkage": 0.5}, {"objective": Fisher(0.5)}),
        ({}, {"objective": "fisher", "objective__shrinkage": 0.5}, {"objective": Fisher(0.5)}),
        ({}, {"objective__shrinkage": 0.5, "objective": Fisher(0.1, 1e-3)}, {"objective": Fisher(0.5, 1e-3)}),
        ({"objective": "denoising"}, {"objective__noise": GaussianNoise(), "objective__noise__sigma": 3.0},
         {"objective": Denoising(GaussianNoise(3.0))}),
        ({"ordering": "sparse_prefix"}, {"ordering__prefixes": [2, 4]}, {"ordering": SparsePrefix([2, 4])}),
        ({}, {"ordering__omega": "harmonic"}, {"ordering": FullPrefix("harmonic")}),
        ({"solver": "gradient"}, {"solver__epochs": 7}, {"solver": Gradient(epochs=7)}),
        ({"network": "mlp"}, {"network__hidden": (8,)}, {"network": MLP((8,))}),
    ],
)  # fmt: skip
def test_a_setting_replaces_the_member(given, changes, after):
    enc = PrefixEncoder(**given)
    assert enc.set_params(**changes) is enc
    assert {name: getattr(enc, name) for name in after} == after
    assert clone(enc).get_params() == enc.get_params()


def test_members_are_replaced_and_not_changed():
    objective = Fisher(0.1)
    one, two = PrefixEncoder(objective=objective), PrefixEncoder(objective=objective)
    one.set_params(objective__shrinkage=0.9)
    assert (objective, two.objective, one.objective) == (Fisher(0.1), Fisher(0.1), Fisher(0.9))


@pytest.mark.parametrize(
    ("given", "changes", "message"),
    [
        (
            {"objective": "fisher"},
            {"objective__shrinkag": 1},
            r"Invalid parameter 'shrinkag' for Fisher.*\['shrinkage'",
        ),
        ({}, {"objektive": 1}, "Invalid parameter 'objektive' for estimator PrefixEncoder"),
        ({}, {"n_components__k": 1}, "Invalid parameter 'k' for n_components=None, which has no settings"),
        ({}, {"solver__epochs": 1}, r"solver='auto', which has no settings.*'gradient'.*set_params\(solver="),
        ({}, {"network__hidden": (1,)}, "network='linear', which has no settings.*'mlp'"),
        ({"ordering": "sparse_prefix"}, {"ordering__estimator": "exact"}, "needs the setting ordering__prefixes too"),
        ({"objective": "denoising"}, {"objective__noise__sigma": 1}, "Invalid parameter 'sigma' for Masking"),
        (
            {"objective": "fisher"},
            {"objective__shrinkage__a": 1},
            "Invalid parameter 'a' for shrinkage='auto' of Fisher",
        ),
    ],
)
def test_unknown_settings_are_refused_and_nothing_changes(given, changes, message):
    enc = PrefixEncoder(**given)
    before = enc.get_params()
    with pytest.raises(ValueError, match=message):
        enc.set_params(**changes)
    assert enc.get_params() == before


def test_settings_of_a_class_of_ones_own():
    @dataclass(frozen=True)
    class Own(Fisher):
        power: float = 1.0

    enc = PrefixEncoder(objective=Own()).set_params(objective__power=2.0)
    assert enc.objective == Own(power=2.0)


def test_a_search_over_a_setting_in_a_pipeline(digits):
    X, y = digits.X_train[:300], digits.y_train[:300]
    pipe = Pipeline([("scale", StandardScaler()), ("enc", PrefixEncoder(objective="fisher"))])
    grid = {"enc__objective__shrinkage": [0.0, 0.2, 0.9]}
    folds = KFold(3)
    search = GridSearchCV(pipe, grid, cv=folds, error_score="raise").fit(X, y)
    by_hand = []
    for a in grid["enc__objective__shrinkage"]:
        one = make_pipeline(StandardScaler(), PrefixEncoder(objective=Fisher(a)))
        by_hand.append(np.mean([one.fit(X[fit], y[fit]).score(X[held], y[held]) for fit, held in folds.split(X)]))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand)
    assert search.best_estimator_["enc"].objective == Fisher(search.best_params_["enc__objective__shrinkage"])


def test_a_halving_search(digits):
    search = HalvingGridSearchCV(
        PrefixEncoder(objective=Fisher()), {"objective__shrinkage": [0.1, 0.5, 0.9]}, cv=2, random_state=0,
        error_score="raise",
    )  # fmt: skip
    assert search.fit(digits.X_train, digits.y_train).best_params_["objective__shrinkage"] in (0.1, 0.5, 0.9)


class Small(PrefixEncoder):
    """An estimator of a user's own, with an __init__ of its own."""

    def __init__(self, width=3):
        self.width = width
        super().__init__(width, objective="fisher")


def test_a_subclass_has_the_parameters_of_its_own_init(digits):
    small = Small().set_params(width=4)
    assert small.get_params() == small.get_params(deep=False) == {"width": 4}
    assert clone(small).n_components == 4
    assert small.fit(digits.X_train, digits.y_train)[:2].transform(digits.X_test).shape[1] == 2
    with pytest.raises(ValueError, match="objective"):
        small.set_params(objective__shrinkage=0.5)
