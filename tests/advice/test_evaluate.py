"""Evaluations: every point against rounding, cutting and scoring by hand."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.neighbors import KNeighborsClassifier

from firstk import Pairs, PrefixEncoder, Rows, evaluate
from firstk._base.concurrency import in_worker
from firstk.advice.baselines import baselines_of
from firstk.advice.evaluate import default_bytes, finer_ladder, ladder
from firstk.data import load_digits
from firstk.data.precision import PRECISIONS
from firstk.exceptions import InvalidInputError

MODULE = sys.modules["firstk.advice.evaluate"]


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def evidence_of(d):
    return Rows(d.X_test, d.y_test, reference=Rows(d.X_train, d.y_train))


def test_neighbor_accuracy_of_rounded_references(digits):
    enc = PrefixEncoder(objective="fisher").fit(digits.X_train, digits.y_train)
    made = evaluate(enc.encoder_, evidence_of(digits), ks=[3, 9], sizes=(), baselines=False)
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


@pytest.mark.parametrize("metric", ["1nn_accuracy", "readback_variance"])
def test_scores_and_draws_do_not_depend_on_the_cores(digits, monkeypatch, metric):
    encoder = PrefixEncoder(objective="fisher").fit(digits.X_train, digits.y_train).encoder_
    others = {name: code for name, code in baselines_of(digits.X_train).items() if name in ("PCA", "plain truncation")}
    tables = []
    for cores in (1, 4):
        monkeypatch.setattr(MODULE, "cores", lambda cores=cores: cores)
        tables.append(evaluate(encoder, evidence_of(digits), metric=metric, ks=[2, 9], baselines=others))
    alone, together = tables
    assert [point for point in alone.points if point.code == "PCA" and point.precision == "embedded"]
    assert [replace(point, score=0.0) for point in alone] == [replace(point, score=0.0) for point in together]
    assert np.allclose([point.score for point in alone], [point.score for point in together], rtol=0, atol=1e-9)
    assert np.allclose(alone.draws.array(), together.draws.array(), rtol=0, atol=1e-6)


def test_codes_of_many_rows_are_scored_one_at_a_time(digits, monkeypatch):
    encoder = PrefixEncoder(4).fit(digits.X_train).encoder_
    many = np.broadcast_to(np.float32(0), (10_000_000, 64))
    monkeypatch.setattr(MODULE, "cores", lambda: 4)
    for rows, expected in ((many, {False}), (digits.X_test, {True})):
        grid = MODULE._Grid(encoder, Rows(rows), "readback_variance", [4], [], True, 0)
        assert set(grid._run(((str(i), lambda: [in_worker()]) for i in range(8)), lambda name: None)) == expected


@pytest.mark.parametrize("room", [1, 3])
def test_without_room_for_a_code_on_each_core_every_code_has_all_cores(digits, monkeypatch, room):
    """A worker has one core, and does what it would spread over the others one after the other."""
    encoder = PrefixEncoder(4).fit(digits.X_train).encoder_
    given, workers = MODULE.per_row_scores, []
    monkeypatch.setattr(MODULE, "cores", lambda: 4)
    monkeypatch.setattr(MODULE, "per_row_scores", lambda *parts: (workers.append(in_worker()), given(*parts))[1])
    taken = MODULE.COPIES * 4 * digits.X_train.size
    for most, inside in ((room * taken, False), (4 * taken, True)):
        monkeypatch.setattr(MODULE, "AT_ONCE", most)
        workers.clear()
        evaluate(encoder, evidence_of(digits), ks=[4], precisions=["float32", "int8"], sizes=[], baselines=False)
        assert workers
        assert set(workers) == {inside}


def test_bits_take_a_byte_a_column_at_most():
    X = np.random.default_rng(0).normal(size=(4200, 8))
    encoder = PrefixEncoder().fit(X).encoder_
    assert encoder.quantizer(None).bytes > 8  # codebooks come on top
    assert max(default_bytes(encoder)) == 8
    assert max(default_bytes(encoder, 10)) == 10


def test_raw_vectors_are_those_of_the_curve(digits):
    enc = PrefixEncoder(4, objective="fisher").fit(digits.X_train, digits.y_train)
    made = evaluate(enc.encoder_, evidence_of(digits), ks=[4], precisions=["float32"], baselines=False)
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
    made = evaluate(enc.encoder_, Pairs(left, right, scores=scores), ks=[2, 4], sizes=(), baselines=False)
    assert made.metric == "spearman"
    for point in made.prefixes:
        stored = enc.encode_document(right, point.k)
        fitted = PRECISIONS[point.precision].fit(stored)
        back = unit(fitted.restore(fitted.quantise(stored)).astype(float))
        cosines = np.sum(unit(enc.encode_query(left, point.k)) * back, axis=1)
        assert point.score == pytest.approx(spearmanr(cosines, scores)[0], abs=1e-6)


def test_embedded_bits_of_scored_pairs_are_compared_with_queries_as_encode_query_gives_them():
    """Coordinates without bits would lengthen queries: cosines of different queries would not compare."""
    rng = np.random.default_rng(0)
    left = rng.normal(size=(600, 12))
    right, scores = left + rng.normal(size=left.shape), rng.normal(size=600)
    encoder = PrefixEncoder(objective="similarity").fit_pairs(left, right, scores + (left * right).sum(axis=1)).encoder_
    data = Pairs(left, right, scores=scores + (left * right).sum(axis=1))
    made = evaluate(encoder, data, ks=[4], baselines=False)
    found = [point for point in made.points if point.precision == "embedded" and not point.code]
    assert found
    for point in found:
        quantizer = encoder.quantizer(point.bytes)
        asked, stored = quantizer.encode_query(left), quantizer.decode(quantizer.encode(right))
        cosines = (unit(asked) * unit(stored)).sum(axis=1)
        assert point.score == pytest.approx(spearmanr(cosines, data.scores)[0], abs=1e-6)
    assert len(encoder.quantizer(found[0].bytes).embedded.used) < encoder.d


def test_explained_variance_of_rounded_codes(digits):
    enc = PrefixEncoder(8).fit(digits.X_train)
    made = evaluate(enc.encoder_, Rows(digits.X_test), metric="explained_variance", ks=[8], sizes=(), baselines=False)
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
    made = evaluate(enc.encoder_, Rows(digits.X_test), metric="recall@10", ks=[4, 8], baselines=False)
    assert len(calls) == 1
    assert made.curve().at(8) == enc.curve(digits.X_test, metric="recall@10").at(8)


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


def test_bad_input_is_a_sentence(digits):
    encoder = PrefixEncoder(8).fit(digits.X_train).encoder_
    evidence = Rows(digits.X_test)
    for wrong, words in (
        ({"ks": [9]}, r"'k' parameter of evaluate must be an int in \[1, 8\]"),
        ({"precisions": ["int2"]}, "'precision' parameter of evaluate"),
        ({"metric": "1nn_accuracy"}, "needs y, the labels"),
        ({"metric": "beauty"}, "'metric'"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            evaluate(encoder, evidence, **wrong)
