"""What an estimator was made with comes back from disk, as far as JSON can say it; what cannot is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from firstk import (
    MLP,
    ClosedForm,
    Denoising,
    Fisher,
    FullPrefix,
    Gradient,
    Masking,
    NestedDropout,
    NonuniformL2,
    PrefixEncoder,
    Rotation,
    Similarity,
    SparsePrefix,
)
from firstk._base.prefix_weights import resolve_omega
from firstk.encoder.record import FitRecord
from firstk.estimator.nested_parameters import parameters_of, saved_parameters

X = np.random.default_rng(0).standard_normal((40, 4)) * [4, 3, 2, 1]
Y = np.arange(40) % 3

CLOSED = {
    "defaults": {},
    "names": {"objective": "similarity", "solver": "closed_form"},
    "settings": {"objective": Denoising(Masking(0.4, [0, 0, 1, 1])), "solver": ClosedForm("float64")},
    "auto stays auto": {"objective": Similarity(keep="neighbors", shrinkage="auto")},
    "a list of weights": {"n_components": 3, "ordering": FullPrefix(omega=[3.0, 2.0, 1.0])},
    "an array of weights": {"n_components": 3, "ordering": FullPrefix(omega=np.array([3.0, 2.0, 1.0]))},
    "weights by length": {"n_components": 3, "ordering": FullPrefix(omega={1: 2.0, 3: 1.0})},
    "resolved weights": {"n_components": 3, "ordering": FullPrefix(omega=resolve_omega("harmonic", 3))},
    "lengths": {"ordering": SparsePrefix([1, 4])},
    "lengths with weights": {"ordering": SparsePrefix({1: 1.0, 4: 3.0})},
    "numbers of numpy": {"n_components": np.int64(2), "random_state": np.int32(7), "verbose": np.False_},
}


@pytest.mark.parametrize("case", CLOSED)
def test_parameters_come_back_equal(case, tmp_path):
    enc = PrefixEncoder(**CLOSED[case]).fit(X)
    back = PrefixEncoder.load(enc.save(tmp_path / "model"))
    assert back.get_params() == enc.get_params()
    assert back.encoder_.record.parameters.left_out == {}
    assert back.fit(X).components_.tobytes() == enc.components_.tobytes()


EXPRESSIBLE = {
    "network": ["linear", "mlp", MLP(), MLP([8, 4], 0.2, False)],
    "solver": ["auto", Gradient(epochs=3, learning_rate=0.1, patience=None), Gradient(checkpoint="there")],
    "ordering": [NestedDropout(prior=[0.5, 0.5]), NonuniformL2([1.0, 2.0]), Rotation(rule="hebbian")],
    "objective": [Fisher("auto", 1e-4)],
    "init": ["random"],
    "device": ["cpu"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in EXPRESSIBLE.items() for value in values])
def test_what_trains_comes_back_equal_too(name, value):
    said = saved_parameters({name: value})
    assert said.left_out == {}
    encoder = PrefixEncoder().fit(X).encoder_
    encoder = type(encoder)(**vars(encoder) | {"record": FitRecord(parameters=said)})
    assert parameters_of(encoder) == {name: value}


def test_a_path_comes_back_as_text():
    said = saved_parameters({"solver": Gradient(checkpoint=Path("a") / "b")})
    assert said.given["solver"]["settings"]["checkpoint"] == str(Path("a") / "b")


class Mine(Fisher):
    """An objective of the user's own, of which only the base is known here."""


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("init", np.eye(4), "an array is not kept"),
        ("random_state", np.random.RandomState(0), "pass an int"),
        ("network", object(), r"load\(path, module=network\)"),
        ("objective", Mine(), "a class of your own"),
    ],
)
def test_what_cannot_be_said_is_named(name, value, reason):
    import re

    said = saved_parameters({name: value})
    assert said.given == {}
    assert re.search(reason, said.left_out[name])


def test_a_trained_network_says_so_after_loading(tmp_path):
    pytest.importorskip("torch", reason="training needs the extra 'torch'")
    for network in ("mlp", MLP((4,), dropout=0.3)):
        enc = PrefixEncoder(2, objective="classification", network=network, solver=Gradient(epochs=1), random_state=0)
        back = PrefixEncoder.load(enc.fit(X, Y).save(tmp_path / "model"))
        assert back.get_params() == enc.get_params()
        assert back.network == network


def test_without_parameters_the_facts_speak(tmp_path):
    pytest.importorskip("torch", reason="training needs the extra 'torch'")
    enc = PrefixEncoder(2, objective="classification", network=MLP((4,)), solver=Gradient(epochs=1), random_state=0)
    enc.fit(X, Y).encoder_.save(tmp_path / "model")  # the frozen encoder alone
    back = PrefixEncoder.load(tmp_path / "model")
    assert back.network == MLP((4,))
    assert back.n_components == 2
    assert back.objective == enc.objective_


def test_a_cut_encoder_says_its_width(tmp_path):
    assert PrefixEncoder.load(PrefixEncoder().fit(X)[:2].save(tmp_path / "model")).n_components == 2
