"""Embedded bits in an evaluation: scores against a search by hand, sizes, advice, and records."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from firstk import Evaluation, Pairs, PrefixEncoder, Rows, Similarity, evaluate
from firstk.advice.baselines import baselines_of
from firstk.advice.evaluate import default_bytes
from firstk.data import load_digits
from firstk.encoder.fitted import FittedEncoder
from firstk.quality.choice import RAW, Choice, Limits, Offer, Point
from firstk.words.choice import ABOUT_BITS, answer, explanation, headline

SIZES = [2, 5, 12]
BITS_ALONE = {"precisions": ["embedded"], "baselines": False}


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def data_of(d):
    return Rows(d.X_test, d.y_test, reference=Rows(d.X_train, d.y_train))


def slow_accuracy(scores, digits):
    return np.mean(digits.y_train[scores.argmax(axis=1)] == digits.y_test)


@pytest.mark.parametrize("objective", ["fisher", Similarity(keep="dot_products"), "reconstruction"])
def test_scores_are_those_of_a_search_in_the_bytes(digits, objective):
    y = digits.y_train if objective == "fisher" else None
    encoder = PrefixEncoder(8, objective=objective).fit(digits.X_train, y).encoder_
    table = evaluate(
        encoder,
        data_of(digits),
        metric="1nn_accuracy",
        ks=[8],
        sizes=[*SIZES, 500],
        precisions=["embedded"],
        baselines=False,
    )
    quantizer = encoder.quantizer(None)
    # More than the code has are left out.
    wanted = [size for size in SIZES if size <= quantizer.bytes]
    assert [point.bytes for point in table.embedded] == wanted == [point.bytes for point in table.own]
    asked, codes = quantizer.encode_query(digits.X_test), quantizer.encode(digits.X_train)
    for point in table.embedded:
        slow = slow_accuracy(quantizer.scores(asked, codes[:, : point.bytes]), digits)
        assert point.score == pytest.approx(slow, abs=0.006)
        assert point.k == np.count_nonzero(quantizer.at(point.bytes).embedded.bits)
    ends = [table.interval_of(point) for point in table.embedded]
    assert all(low < point.score < high for (low, high), point in zip(ends, table.embedded, strict=True))


def test_variance_is_read_from_decoded_codes(digits):
    enc = PrefixEncoder(8).fit(digits.X_train)
    table = evaluate(
        enc.encoder_,
        Rows(digits.X_test),
        metric="explained_variance",
        ks=[8],
        sizes=[3],
        precisions=["embedded"],
        baselines=False,
    )
    quantizer = enc.encoder_.quantizer(3, "l2")
    left = digits.X_test - enc.inverse_transform(quantizer.decode(quantizer.encode(digits.X_test)))
    whole = digits.X_test - enc.mean_
    assert table.embedded[0].score == pytest.approx(1 - np.sum(left**2) / np.sum(whole**2), abs=1e-4)


def test_pairs_with_sides_of_their_own():
    rng = np.random.default_rng(0)
    left = rng.standard_normal((300, 6))
    right = left + 0.5 * rng.standard_normal((300, 6)) + 1.0
    scores = np.sum(left * right, axis=1)
    encoder = PrefixEncoder(objective="similarity").fit_pairs(left, right, scores).encoder_
    assert encoder.normalized
    data = Pairs(left, right, scores=scores)
    table = evaluate(encoder, data, metric="spearman", sizes=[2, 4], **BITS_ALONE)
    for point in table.embedded:
        quantizer = encoder.quantizer(point.bytes)
        cosines = np.sum(unit(quantizer.encode_query(left)) * unit(quantizer.decode(quantizer.encode(right))), axis=1)
        assert point.score == pytest.approx(spearmanr(cosines, scores)[0], abs=1e-3)


def test_baselines_in_bytes(digits):
    encoder = PrefixEncoder(8, objective="fisher").fit(digits.X_train, digits.y_train).encoder_
    others = baselines_of(digits.X_train)
    table = evaluate(
        encoder, data_of(digits), ks=[8], sizes=[8], precisions=["float32", "embedded"],
        baselines={name: others[name] for name in ("PCA", "plain truncation")},
    )  # fmt: skip
    bits = {point.code: point for point in table.points if point.precision == "embedded"}
    assert set(bits) == {"", "PCA"}  # of columns as they are, bits keep less than those of PCA
    quantizer = others["PCA"].quantizer(8, rows=digits.X_train)
    found = quantizer.scores(quantizer.encode_query(digits.X_test), quantizer.encode(digits.X_train))
    assert bits["PCA"].score == pytest.approx(slow_accuracy(found, digits), abs=0.006)


def test_sizes_go_from_eight_to_all(digits):
    steps = (8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)
    # Those of a short code, and those of the raw vectors, which are as long as the vectors.
    assert default_bytes(PrefixEncoder(4).fit(digits.X_train).encoder_) == (1, 2, 3, 4, *steps)
    found = default_bytes(PrefixEncoder().fit(np.random.default_rng(0).normal(size=(3000, 200))).encoder_)
    assert found == (*steps, 96, 128, 192, 200)


def test_a_model_without_cells_has_no_bits_in_its_evaluation(digits, tmp_path):
    from dataclasses import replace

    encoder = PrefixEncoder(8).fit(digits.X_train).encoder_
    encoder.save(tmp_path / "model")
    older = replace(FittedEncoder.load(tmp_path / "model"), cells=None)
    assert default_bytes(older) == ()
    table = evaluate(older, Rows(digits.X_test), metric="recall@10", ks=[8])
    assert table.precisions == ("float32", "float16", "int8", "int4", "binary")


# -- choosing, and records -----------------------------------------------------------------------------------------


def table_of(*points):
    return Evaluation(points, "accuracy", input_score=0.9, input_bytes=256)


BITS = [Point(20, "embedded", 8, 0.8), Point(30, "embedded", 16, 0.89)]
INTS = [Point(8, "int8", 8, 0.7), Point(16, "int8", 16, 0.85)]


def test_bits_are_chosen_by_bytes_and_never_by_k():
    table = table_of(*BITS, *INTS)
    assert table.choose(bytes_per_vector=12).point == BITS[0]
    assert table.choose(keep=0.98).point == BITS[1]
    assert table.choose(k=16, precision="int8").point == INTS[1]
    with pytest.raises(ValueError, match=r"no k = 20 .* it has k = 8, 16"):
        table.choose(k=20, precision="int8")
    assert headline(table.choose(bytes_per_vector=16)).startswith(
        "Store embedded bits: 16 bytes per vector instead of 256. They keep"
    )  # fmt: skip
    assert ABOUT_BITS in explanation(table.choose(bytes_per_vector=16))
    assert ABOUT_BITS not in explanation(table.choose(bytes_per_vector=16, precision="int8"))
    assert (table.prefixes, table.embedded) == (tuple(INTS), tuple(BITS))
    assert table.curve(precision="int8").k == (8, 16)


def test_a_list_of_lengths_does_not_bind_bits():
    table = Evaluation((*BITS, *INTS), "accuracy", input_score=0.9, supported=(8,))
    assert table.choose(keep=0.98).point == BITS[1]


def test_a_table_reads_back_and_prints_its_bits():
    table = table_of(*BITS, *INTS)
    assert Evaluation.from_json(table.to_json()) == table
    assert "embedded bits: 0.8000 (8)*, 0.8900 (16)*" in str(table)
    assert str(table_of(*BITS)).splitlines()[1].startswith("embedded bits")


def test_points_say_what_is_stored_once(digits):
    encoder = PrefixEncoder(8).fit(digits.X_train).encoder_
    found = evaluate(encoder, data_of(digits), metric="1nn_accuracy", ks=[2, 8], sizes=[2, 5])
    for point in found.points:
        if point.code == RAW:
            assert point.stored_once == 0
        elif not point.code and point.precision == "embedded":
            assert point.stored_once == encoder.quantizer(point.bytes).stored_once
        elif not point.code:
            assert point.stored_once == encoder.stored_once(slice(point.k))
        assert point.bytes_in_all(10) == point.bytes + point.stored_once / 10
    assert Evaluation.from_json(found.to_json()).points == found.points


def test_a_recommendation_says_what_is_stored_once_where_it_matters():
    choice = Choice(
        "ndcg@10", RAW, 0.567, (Offer(Point(9, "embedded", 16, 0.55, stored_once=16_000), "cheapest"),), Limits()
    )
    assert answer(choice, 1000)[0].endswith("1,000 vectors take 16.0 kB, and 16.0 kB once for axes and cells.")
    assert answer(choice, 10_000_000)[0].endswith("10,000,000 vectors take 160 MB.")
