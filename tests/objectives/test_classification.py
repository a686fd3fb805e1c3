"""Classification: the own head at every prefix, the start, and where it beats what it started from."""

import numpy as np
import pytest

from firstk import Classification, Fisher, Gradient, PrefixEncoder
from firstk._checks import IllegalCombination
from firstk.data import load_digits

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def fitted(digits):
    return PrefixEncoder(9, objective="classification", random_state=0).fit(digits.X_train, digits.y_train)


def test_it_is_trained_and_has_a_number_for_every_prefix(fitted, digits):
    curve = fitted.curve(digits.X_test, digits.y_test)
    assert fitted.solver_ == "gradient"
    assert fitted.optimality_gap_ is None
    assert curve.metric == "head_accuracy"
    assert curve.at(9) > 0.85
    for k in (2, 9):
        assert np.mean(fitted.predict(digits.X_test, k) == digits.y_test) == pytest.approx(curve.at(k))


def test_training_lowers_the_loss_of_the_start_and_separates_what_fisher_does_not(fitted, digits):
    """On the rows it was trained on; on held-out digits Fisher's rule, with a bias of its own a prefix, is as good."""
    start = PrefixEncoder(9, objective=Fisher(fitted.objective_.shrinkage)).fit(digits.X_train, digits.y_train)
    theirs = start.curve(digits.X_train, digits.y_train, metric="head_accuracy")
    ours = fitted.curve(digits.X_train, digits.y_train)
    assert all(ours.at(k) > theirs.at(k) for k in (4, 6, 9))
    assert fitted.trace_[-1]["loss"] < 0.7 * fitted.trace_[0]["loss"]


def test_the_canonical_form_has_mean_code_norm_one_and_a_centred_head(fitted, digits):
    Z = fitted.transform(digits.X_train)
    assert np.mean(np.square(Z).sum(axis=1)) == pytest.approx(1.0, rel=1e-3)
    np.testing.assert_allclose(fitted.encoder_.head.weight.sum(axis=0), 0.0, atol=1e-9)
    assert (fitted.components_[np.arange(9), np.abs(fitted.components_).argmax(axis=1)] > 0).all()


def test_the_spectrum_is_what_each_coordinate_takes_off_the_loss(fitted, digits):
    Z, head = fitted.transform(digits.X_train).astype(float), fitted.encoder_.head
    label = np.searchsorted(head.classes, digits.y_train)
    losses = []
    for k in range(10):
        logits = Z[:, :k] @ head.weight[:, :k].T + head.offset
        logits -= logits.max(axis=1, keepdims=True)
        losses.append(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(label)), label]))
    np.testing.assert_allclose(fitted.spectrum_, -np.diff(losses), atol=1e-4)


def test_it_survives_saving_and_fewer_rows_than_columns(fitted, digits, tmp_path):
    fitted.save(tmp_path / "model")
    again = PrefixEncoder.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(digits.X_test, k=3), fitted.predict(digits.X_test, k=3))
    X, y = digits.X_train[:50], digits.y_train[:50]
    few = PrefixEncoder(5, objective=Classification(0.5), random_state=0).fit(X, y)
    assert few.components_.shape == (5, 64)
    assert few.score(X, y) > 0.9


def test_there_is_no_closed_form_to_ask_for(digits):
    with pytest.raises(IllegalCombination, match=r"no pencil.*solver='gradient'"):
        PrefixEncoder(4, objective="classification", solver="closed_form").fit(digits.X_train, digits.y_train)


def test_init_and_device(digits):
    X, y = digits.X_train, digits.y_train
    solver = Gradient(epochs=2)
    start = np.random.default_rng(0).normal(size=(4, 64))
    given = PrefixEncoder(4, objective=Classification(0.5), solver=solver, init=start, device="cpu", random_state=0)
    assert given.fit(X, y).components_.shape == (4, 64)
    for init, match in (("warm", "'init'"), (start[:2], r"must have shape \(4, 64\)")):
        with pytest.raises(ValueError, match=match):
            PrefixEncoder(4, objective=Classification(0.5), init=init).fit(X, y)
    with pytest.raises(ValueError, match="a device of torch"):
        PrefixEncoder(4, objective=Classification(0.5), device="abacus").fit(X, y)
