"""``check``: the verdict goes by the quality that is lost; fresh rows pass, foreign rows do not."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.data import load_digits
from firstk.estimator.check import CheckReport, Drift, Kept, NewRows, check_rows
from firstk.exceptions import InvalidInputError
from firstk.metrics.profile import measure_profile
from firstk.words.check import headline

D = 24
BASIS = np.linalg.qr(np.random.default_rng(9).standard_normal((D, D)))[0]
SCALE = 1.0 / np.arange(1, D + 1)


def rows(n: int, seed: int, scale: np.ndarray = SCALE) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, D)) * scale @ BASIS + 0.5


@pytest.fixture(scope="module")
def encoder():
    return PrefixEncoder().fit(rows(4000, 0))


def test_fresh_rows_pass_and_say_how_sure_that_is(encoder):
    report = encoder.check(rows(4000, 1), k=8)
    assert report.verdict == "fine"
    assert not report.refit
    assert headline(report).startswith("still keeps ")
    kept = report.worst
    assert kept.ratio_low < kept.ratio < kept.ratio_high
    assert kept.ratio == pytest.approx(1, abs=0.03)  # three standard errors
    assert report.share_now == pytest.approx(report.share_then, abs=0.02)


def test_rows_of_another_set_do_not(encoder):
    report = encoder.check(rows(2000, 2, SCALE[::-1]), k=8)
    assert report.refit
    assert headline(report).startswith("refit: keeps ")
    assert report.worst.ratio < 0.7
    assert report.share_best > 0.9 > report.share_now


def test_a_fifth_of_foreign_rows_is_enough(encoder):
    X = rows(4000, 3)
    X[:800] = rows(800, 4, SCALE[::-1])
    assert encoder.check(X, k=8).refit


def test_fresh_halves_raise_no_alarm():
    alarms = 0
    for seed in range(10):
        X = rows(1600, 100 + seed)
        enc = PrefixEncoder().fit(X[:800])
        alarms += enc.check(X[800:], k=8).refit
    assert alarms <= 1


def test_a_drift_that_costs_nothing_is_no_reason(encoder):
    """A mean that moves by a tenth of a standard deviation: all neighbors are still found."""
    report = encoder.check(rows(20_000, 5) + 0.1 * SCALE[0] * BASIS[0], k=12)
    assert report.drift.mean_shift > 0.02
    assert not report.refit


def test_few_rows_are_unclear(encoder):
    report = encoder.check(rows(64, 6), k=4)
    assert report.verdict == "unclear"
    assert "64 rows cannot tell" in headline(report)


@pytest.mark.parametrize(
    ("n", "margin", "words"),
    [
        (500, 0.004, r"check more, up to 8,192 are scored\.$"),
        (500, 0.03, r"more would not either, as what it kept at the fit is known to 3\.0 % only\. .*against=\.$"),
        (9000, 0.004, r"too close to that, and no more than 8,192 are scored\. Decide by another tolerance than 0\.02"),
    ],
)
def test_an_unclear_verdict_says_what_would_tell(n, margin, words):
    kept = Kept("recall@10", 0.9, 0.88, 0.85, 0.91, 0.985, 0.965, 1.005, 64, margin)
    report = CheckReport("unclear", 4, n, 900, (kept,), None, None, None, Drift(0, 1), 0.02, 0.95)
    assert re.search(words, headline(report))


def test_the_headline_is_of_the_metric_that_decides():
    """The other one keeps less, and is sure of it: nothing is unclear about it."""
    sure = Kept("recall@10", 0.55, 0.57, 0.56, 0.58, 1.036, 1.005, 1.067, 256, 0.026)
    unsure = Kept("1nn_accuracy", 1.28, 1.34, 1.28, 1.39, 1.043, 0.945, 1.141, 256, 0.088)
    report = CheckReport("unclear", 12, 4000, 800, (sure, unsure), None, None, None, Drift(0, 1), 0.02, 0.95)
    assert headline(report).startswith("unclear: keeps 104.3 % (94.5 to 114.1) of the 1nn_accuracy")


def test_the_margin_of_the_profile_is_what_more_rows_cannot_lower(encoder):
    """A profile of few rows keeps the interval wide, however many rows are checked."""
    few, many = (encoder.check(rows(n, 20), against=rows(300, 21), k=4).worst for n in (500, 8000))
    surer = encoder.check(rows(8000, 20), against=rows(8000, 21), k=4).worst
    assert many.profile_margin == pytest.approx(few.profile_margin, rel=0.1)
    assert (many.ratio_high - many.ratio_low) / 2 > many.profile_margin > 2 * surer.profile_margin


def test_labels_do_not_change_which_rows_are_scored(encoder):
    X, y = rows(12_000, 22), np.random.default_rng(0).integers(0, 3, 12_000)
    assert encoder.check(X, y, k=8).worst == encoder.check(X, k=8).worst
    twice, labels = np.concatenate([X[:200]] * 2), np.repeat([0, 1], 200)
    order = np.random.default_rng(1).permutation(400)
    found = [NewRows(encoder.encoder_).update(twice[at], labels[at]).sample["y"] for at in (np.arange(400), order)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("k", [1, 5, 8, D])
def test_one_length_is_scored_as_all_of_them_are(encoder, k):
    X = rows(700, 23)
    one, every = (measure_profile(encoder.encoder_, X, k=asked).scores["recall@10"] for asked in (k, None))
    assert len(one.k) <= 2 < len(every.k)
    for size in one.sizes:
        assert one.kept(k, size) == pytest.approx(every.kept(k, size), rel=1e-9)


def test_partition_does_not_change_the_answer(encoder):
    X = rows(3000, 7)
    whole = check_rows(NewRows(encoder.encoder_).update(X), encoder._profile(), k=8)
    parts = NewRows(encoder.encoder_)
    for part in (X[2000:], X[:500], X[500:2000]):
        parts.update(part)
    again = check_rows(parts, encoder._profile(), k=8)
    assert again.worst.ratio == pytest.approx(whole.worst.ratio, abs=1e-12)
    assert again.share_now == pytest.approx(whole.share_now, abs=1e-10)


def test_saved_models_answer_as_fitted_ones(encoder, tmp_path):
    loaded = PrefixEncoder.load(encoder.save(tmp_path / "model"))
    X = rows(1000, 8)
    assert loaded.check(X, k=8).to_dict() == encoder.check(X, k=8).to_dict()
    json.dumps(loaded.check(X).to_dict(), allow_nan=False)


def test_models_without_a_profile_say_what_to_do(encoder):
    old = encoder.with_encoder(replace(encoder.encoder_, profile=None, sample=None))
    with pytest.raises(InvalidInputError, match=r"holds no profile.*against="):
        old.check(rows(500, 9))
    assert not old.check(rows(2000, 10), against=rows(2000, 11), k=8).refit
    assert old.check(rows(2000, 10, SCALE[::-1]), against=rows(2000, 11), k=8).refit


def test_labels_count_where_the_fit_had_some(tmp_path):
    digits = load_digits()
    X, y = digits.X_train, digits.y_train
    enc = PrefixEncoder(objective="fisher").fit(X[:700], y[:700])
    model = PrefixEncoder.load(enc.save(tmp_path / "m", held_out=(X[700:], y[700:])))
    report = model.check(digits.X_test, digits.y_test, k=6)
    assert {one.metric for one in report.kept} == {"recall@10", enc.encoder_.record.metric}
    assert not report.refit


def test_labels_that_were_not_saved_are_named(encoder, tmp_path):
    digits = load_digits()
    enc = PrefixEncoder(objective="fisher").fit(digits.X_train, digits.y_train)
    plain = PrefixEncoder.load(enc.save(tmp_path / "m", held_out=digits.X_test))
    report = plain.check(digits.X_test, digits.y_test, k=6)
    assert [one.metric for one in report.kept] == ["recall@10"]
    assert "No score by" in " ".join(report.notes)


def test_drift_by_a_slow_reference(encoder):
    A, B = rows(900, 13), rows(700, 14) + 0.05
    found = encoder.check(B, against=A, k=4).drift
    assert found.mean_shift == pytest.approx(np.linalg.norm(A.mean(0) - B.mean(0)) / np.sqrt(A.var(0).sum()), rel=1e-5)
    assert found.scatter_ratio == pytest.approx(B.var(0).sum() / A.var(0).sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": rows(100, 0), "y": np.zeros(5)}, "Got 5 for 100 rows"),
        ({"X": rows(100, 0), "against": (1, 2, 3)}, "a tuple of 3"),
        ({"X": rows(63, 0)}, "at least 64. Got 63"),
        ({"X": np.ones((100, D))}, "same vector"),
        ({"X": rows(100, 0), "k": 25}, r"int in \[1, 24\]"),
        ({"X": rows(100, 0), "tolerance": 0}, "'tolerance' parameter"),
        ({"X": rows(100, 0), "confidence": 1.0}, "'confidence' parameter"),
        ({"X": rows(100, 0)[:, :5]}, "expecting 24 features"),
        ({"X": np.where(np.arange(D) == 3, np.nan, rows(100, 0))}, "NaN"),
    ],
)
def test_bad_input_is_told(encoder, arguments, message):
    with pytest.raises(ValueError, match=message):
        encoder.check(**arguments)


def test_input_is_left_alone(encoder):
    X = rows(200, 15)
    before = X.copy()
    encoder.check(X)
    np.testing.assert_array_equal(X, before)


def test_the_verdict_is_of_the_interval():
    def verdict(low, high):
        one = Kept("recall@10", 0.9, 0.8, 0.7, 0.9, (low + high) / 2, low, high, 64, 0.0)
        from firstk.estimator.check import verdict_of

        return verdict_of((one,), 0.02)

    assert [verdict(0.99, 1.01), verdict(0.97, 1.0), verdict(0.9, 0.97)] == ["fine", "unclear", "refit"]
    assert isinstance(CheckReport("fine", 1, 1, 1, (), None, None, None, Drift(0, 1), 0.02, 0.95).to_dict(), dict)
