"""Evaluation on files from Python: what the command prints, as records."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder, SparsePrefix
from firstk.advice.inputs import VectorSource
from firstk.data import load_digits
from firstk.data.files import write_vectors
from firstk.data.precision import PRECISIONS
from firstk.exceptions import InvalidInputError
from firstk.quality.choose import Limits


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def request_of(digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for part, X, y in (("train", digits.X_train, digits.y_train), ("test", digits.X_test, digits.y_test)):
        write_vectors(folder / f"{part}.npz", X, {"label": y})
    place = VectorSource(folder / "test.npz", label="label")
    return CurveRequest(place, reference=str(folder / "train.npz"))


@pytest.fixture(scope="module")
def fitted(digits):
    return PrefixEncoder(16, ordering=SparsePrefix([3, 6, 12])).fit(digits.X_train)


def test_scores_are_those_of_the_estimator(digits, fitted, request_of):
    reference = digits.X_train, digits.y_train
    slow = fitted.curve(digits.X_test, digits.y_test, reference=reference, metric="1nn_accuracy", confidence=0.95)
    told = []
    found = evaluate_files(fitted.encoder_, request_of, "1nn_accuracy", progress=told.append)
    assert found.curve == slow
    assert found.curve.supported == (3, 6, 12)
    assert [curve.label for curve in found.baselines] == [
        "PCA",
        "uncentred SVD",
        "plain truncation",
        "random dimensions",
    ]
    assert found.refusal is None
    best = found.recommendation.best.point
    assert best.k in (3, 6, 12) or not best.is_prefix
    # The encoder is the principal axes itself: their curve is not swept again.
    assert told[:4] == [f"1nn_accuracy, {name}" for name in ("ours", *(curve.label for curve in found.baselines[1:]))]
    assert found.given.said == "Evaluated on 360 rows of test.npz, against 1,437 rows of train.npz."


def test_a_choice_is_made_among_supported_lengths(fitted, request_of):
    prefixes = tuple(name for name in PRECISIONS if name != "embedded")
    for limits in (
        Limits(keep=0.9, precisions=prefixes),
        Limits(keep=0.9, precisions=("int8",)),
        Limits(bytes_per_vector=44, precisions=prefixes),
    ):
        found = evaluate_files(fitted.encoder_, request_of, "1nn_accuracy", limits, confidence=None, baselines=False)
        assert found.baselines == ()
        chosen = found.recommendation.chosen.point
        assert chosen.k in (3, 6, 12)
        assert chosen.score == pytest.approx(found.curve.at(chosen.k), abs=0.03)
    # Bits have no length, and are scored at the very bytes that are asked for.
    few = Limits(bytes_per_vector=7, precisions=("embedded",))
    found = evaluate_files(fitted.encoder_, request_of, "1nn_accuracy", few, confidence=None, baselines=False)
    assert found.recommendation.chosen.point.bytes <= 7
    assert 7 in [point.bytes for point in found.table.embedded]
    # A length that is asked for may be any.
    found = evaluate_files(fitted.encoder_, request_of, "1nn_accuracy", Limits(k=7), baselines=False)
    chosen = found.table.choose(k=7, precision="float32")
    assert (chosen.k, chosen.score) == (7, pytest.approx(found.curve.at(7), abs=1e-12))
    assert found.recommendation.chosen.point.k == 7


def test_limits_that_cannot_be_met_leave_the_scores(fitted, request_of):
    found = evaluate_files(
        fitted.encoder_, request_of, "1nn_accuracy", Limits(bytes_per_vector=1, precisions=("int8",)), baselines=False
    )
    assert found.recommendation is None
    assert isinstance(found.refusal, InvalidInputError)
    assert found.curve.full > 0.8


def test_rows_are_read_once_for_any_use(digits, fitted, request_of):
    given = read_evaluation(fitted.encoder_, request_of, "readback_variance")
    np.testing.assert_array_equal(given.data.X, digits.X_test)
    np.testing.assert_array_equal(given.training, digits.X_train)
    assert (given.metric, given.notes, given.store) == ("readback_variance", (), request_of.reference)
