"""Precision tables: every point against rounding, cutting and scoring by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.neighbors import KNeighborsClassifier

from firstk import PrefixEncoder
from firstk.data import load_digits
from firstk.data.precision import PRECISIONS
from firstk.evaluation.precision_cost import finer_ladder, ladder, precision_table, search_times
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import EvaluationData


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def evidence_of(d):
    return EvaluationData(X=d.X_test, y=d.y_test, X_ref=d.X_train, y_ref=d.y_train)


def test_neighbor_accuracy_of_rounded_references(digits):
    enc = PrefixEncoder(objective="fisher").fit(digits.X_train, digits.y_train)
    made = precision_table(enc.encoder_, evidence_of(digits), ks=[3, 9])
    assert len(made.prefixes) == 2 * (len(PRECISIONS) - 1)
    assert (made.metric, made.input_bytes, made.n_evaluated) == ("1nn_accuracy", 64 * 4, len(digits.X_test))
    for point in made.prefixes:
        stored, asking = enc.transform(digits.X_train, point.k), enc.transform(digits.X_test, point.k)
        fitted = PRECISIONS[point.precision].fit(stored)
        back = fitted.restore(fitted.quantise(stored))
        assert point.bytes == fitted.quantise(stored).nbytes / len(stored)
        nearest = (unit(asking) @ unit(back).T).argmax(axis=1)
        slow = np.mean(digits.y_train[nearest] == digits.y_test)
        # Bits make many ties, which rounding of cosines breaks one way or the other.
        assert point.score == pytest.approx(slow, abs=0.06 if point.precision == "binary" else 0.006)


def test_raw_vectors_are_those_of_the_curve(digits):
    enc = PrefixEncoder(4, objective="fisher").fit(digits.X_train, digits.y_train)
    made = precision_table(enc.encoder_, evidence_of(digits), ks=[4], precisions=["float32"])
    raw = KNeighborsClassifier(1, metric="cosine").fit(digits.X_train, digits.y_train)
    assert made.input_score == pytest.approx(raw.score(digits.X_test, digits.y_test))
    reference = (digits.X_train, digits.y_train)
    assert made.points[0].score == enc.curve(digits.X_test, digits.y_test, reference=reference).at(4)


def test_codes_that_are_normalized_are_rounded_after_that():
    rng = np.random.default_rng(0)
    left = rng.standard_normal((200, 6))
    right = left + 0.5 * rng.standard_normal((200, 6))
    scores = np.sum(left * right, axis=1)
    enc = PrefixEncoder(objective="similarity").fit_pairs(left, right, scores)
    assert enc.encoder_.normalized
    made = precision_table(enc.encoder_, EvaluationData(left=left, right=right, scores=scores), ks=[2, 4])
    assert made.metric == "spearman"
    for point in made.prefixes:
        stored = enc.encode_document(right, point.k)
        fitted = PRECISIONS[point.precision].fit(stored)
        back = unit(fitted.restore(fitted.quantise(stored)).astype(float))
        cosines = np.sum(unit(enc.encode_query(left, point.k)) * back, axis=1)
        assert point.score == pytest.approx(spearmanr(cosines, scores)[0], abs=1e-6)


def test_explained_variance_of_rounded_codes(digits):
    enc = PrefixEncoder(8).fit(digits.X_train)
    made = precision_table(enc.encoder_, EvaluationData(X=digits.X_test), ks=[8])
    X = digits.X_test - enc.mean_
    for point in made.prefixes:
        Z = enc.transform(digits.X_test)
        fitted = PRECISIONS[point.precision].fit(Z)
        left = np.sum((digits.X_test - enc.inverse_transform(fitted.restore(fitted.quantise(Z)))) ** 2)
        assert point.score == pytest.approx(1 - left / np.sum(X**2), abs=1e-5)


def test_recall_finds_its_truth_once(digits, monkeypatch):
    from firstk.metrics import neighbors

    calls = []
    found = neighbors.nearest_neighbors
    monkeypatch.setattr(neighbors, "nearest_neighbors", lambda *a, **k: calls.append(1) or found(*a, **k))
    enc = PrefixEncoder(8).fit(digits.X_train)
    made = precision_table(enc.encoder_, EvaluationData(X=digits.X_test), "recall@10", ks=[4, 8])
    assert len(calls) == 1
    assert made.choose(k=8, precision="float32").score == enc.curve(digits.X_test, metric="recall@10").at(8)


def test_ladder_goes_by_half_octaves():
    assert ladder(1) == (1,)
    assert ladder(5) == (1, 2, 3, 4, 5)
    assert ladder(384) == (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384)


@pytest.mark.parametrize("d", [1, 5, 16, 19, 21, 64, 76, 384, 1000])
def test_lengths_to_choose_among_are_no_more_than_a_quarter_apart(d):
    found = finer_ladder(d)
    assert set(ladder(d)) - set(found) == {k for k in ladder(d) if k < d // 64}
    assert found[-1] == d
    assert all(1 < b / a <= 1.25 for a, b in pairwise(found) if a >= 16)


def test_latency_grows_with_the_stated_rows(digits):
    enc = PrefixEncoder(8).fit(digits.X_train)
    made = precision_table(enc.encoder_, EvaluationData(X=digits.X_test), ks=[2, 8], latency=True, rows=50_000)
    assert made.n_searched == 50_000
    assert all(point.seconds > 0 for point in made.prefixes)
    assert (
        len({point.seconds for point in made.prefixes if point.k == 2}) == 1
    )  # one search a k, whatever the precision
    few = dict(search_times(enc.encoder_, digits.X_test, [8], 100_000))
    many = dict(search_times(enc.encoder_, digits.X_test, [8], 100_000_000))
    assert many[8] > 50 * few[8]  # reckoned in proportion, 1000 times; searches of one run vary


def test_bad_input_is_a_sentence(digits):
    encoder = PrefixEncoder(8).fit(digits.X_train).encoder_
    evidence = EvaluationData(X=digits.X_test)
    for wrong, words in (
        ({"ks": [9]}, r"'k' parameter of precision_table must be an int in \[1, 8\]"),
        ({"precisions": ["int2"]}, "'precision' parameter of precision_table"),
        ({"metric": "1nn_accuracy"}, "needs y, the labels"),
        ({"metric": "beauty"}, "'metric'"),
        ({"rows": 0}, "'rows'"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            precision_table(encoder, evidence, **wrong)
