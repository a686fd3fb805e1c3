"""Curves: what they hold, what they answer, and what they refuse to read."""

import copy
import dataclasses
import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstk.exceptions import InvalidInputError
from firstk.quality.curve import PrefixCurve


def curve(**changes):
    values = {
        "k": [1, 2, 4, 8],
        "score": [0.4, 0.7, 0.89, 0.9],
        "metric": "accuracy",
        "input_score": 0.92,
        "label": "digits",
        "n_evaluated": 100,
        "details": {"similarity": "cosine", "seeds": [1, 2], "nested": {"a": None, "b": True}},
    }
    return PrefixCurve(**(values | changes))


finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.tuples(st.integers(1, 10**6), finite), min_size=1, max_size=8, unique_by=lambda pair: pair[0]),
    st.none() | finite,
    st.text(min_size=1),
    st.dictionaries(st.text(), json_values, max_size=3),
)
def test_json_round_trip_is_exact(pairs, input_score, metric, details):
    ks, scores = zip(*sorted(pairs), strict=True)
    first = PrefixCurve(ks, scores, metric, input_score=input_score, details=details)
    again = PrefixCurve.from_json(first.to_json())
    assert again == first
    assert again.to_json() == first.to_json()


def test_numpy_numbers_become_plain_ones():
    made = curve(
        k=np.array([1, 2, 4, 8]),
        score=np.array([0.5, 0.6, 0.7, 0.8], dtype=np.float32),
        details={"a": np.arange(2)},
    )
    assert {type(k) for k in made.k} == {int}
    assert {type(s) for s in made.score} == {float}
    assert made.to_dict()["details"] == {"a": [0, 1]}


def test_frozen_through_and_through():
    details = {"seeds": [1, 2]}
    made = curve(details=details)
    details["seeds"].append(3)
    assert made.details["seeds"] == (1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.label = "other"
    with pytest.raises(TypeError):
        made.details["new"] = 1


def test_copies_are_equal_and_hashable():
    made = curve()
    for other in (
        pickle.loads(pickle.dumps(made)),
        copy.deepcopy(made),
        PrefixCurve.from_dict(made.to_dict()),
    ):
        assert other == made
        assert hash(other) == hash(made)
    assert curve(details={}) != made


def test_reading_off_the_curve():
    made = curve()
    assert len(made) == 4
    assert list(made) == [(1, 0.4), (2, 0.7), (4, 0.89), (8, 0.9)]
    assert made.full == 0.9
    assert made.at(4) == 0.89
    with pytest.raises(InvalidInputError, match=r"prefix lengths 1, 2, 4, 8. Got 3"):
        made.at(3)
    with pytest.raises(InvalidInputError, match="Got True"):
        made.at(True)


@pytest.mark.parametrize(
    ("keep", "relative_to", "k"), [(1.0, "full", 8), (0.98, "full", 4), (0.4, "full", 1), (0.95, "input", 4)]
)
def test_smallest(keep, relative_to, k):
    assert curve().smallest(keep, relative_to) == k


def test_smallest_is_the_first_that_reaches_the_target():
    made = curve(score=[0.4, 0.95, 0.6, 0.9])
    assert made.smallest(1.0) == 2


def test_smallest_of_a_loss():
    made = curve(score=[4.0, 2.0, 1.05, 1.0], higher_is_better=False, input_score=0.5)
    assert made.smallest(0.95, "full") == 4
    assert made.smallest(0.5, "best") == 2
    assert made.smallest(0.5) == 8  # of the raw vectors
    with pytest.raises(InvalidInputError, match=r"The best is 1 at k = 8: it keeps 0.5"):
        made.smallest(0.9)


@pytest.mark.parametrize("keep", [0, -0.1, 1.01, np.nan, "all", True])
def test_smallest_refuses_shares_outside_zero_to_one(keep):
    with pytest.raises(InvalidInputError, match=r"'keep'.*\(0, 1\]"):
        curve().smallest(keep)


def test_smallest_refuses_what_means_nothing():
    with pytest.raises(InvalidInputError, match=r"accuracy of all 8 coordinates is -0.2, of which a share"):
        curve(score=[-1, -0.5, -0.3, -0.2]).smallest(relative_to="full")
    with pytest.raises(InvalidInputError, match="accuracy of the raw vectors is 0"):
        curve(input_score=0).smallest(relative_to="input")
    with pytest.raises(InvalidInputError, match="no input_score"):
        curve(input_score=None).smallest(relative_to="input")
    with pytest.raises(InvalidInputError, match="'auto', 'best', 'full', 'input'"):
        curve().smallest(relative_to="last")


def test_smallest_says_the_best_when_out_of_reach():
    with pytest.raises(
        InvalidInputError,
        match=r"No prefix keeps 0.99 of the accuracy of the raw vectors, 0.92. The best is 0.9 at k = 8.*0.978",
    ):
        curve().smallest(0.99)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"k": [1, 2, 2, 3]}, "strictly increasing"),
        ({"k": [0, 1, 2, 3]}, "from 1 on"),
        ({"k": [1.0, 2.0, 3.0, 4.0]}, "'k'"),
        ({"k": [], "score": []}, "at least one"),
        ({"k": "1248"}, "'k'"),
        ({"score": [0.1, 0.2]}, "4 prefix lengths and 2 scores"),
        ({"score": [0.1, 0.2, np.nan, 0.4]}, "'score'"),
        ({"score": [0.1, 0.2, "0.3", 0.4]}, "'score'"),
        ({"score": [1, 2, 3, 10**400]}, "'score'"),
        ({"score": 0.1}, "'score'"),
        ({"metric": ""}, "'metric'"),
        ({"label": None}, "'label'"),
        ({"input_score": np.inf}, "'input_score'"),
        ({"higher_is_better": 1}, "'higher_is_better'"),
        ({"n_evaluated": 0}, "'n_evaluated'"),
        ({"supported": []}, "'supported'"),
        ({"supported": [4, 2]}, "'supported'"),
        ({"supported": [0, 2]}, "'supported'"),
        ({"supported": "2"}, "'supported'"),
        ({"n_evaluated": 2.5}, "'n_evaluated'"),
        ({"details": [1]}, "'details'"),
        ({"details": {1: 2}}, "names are str"),
        ({"details": {"a": {"b": [0, np.nan]}}}, r"\['a'\]\['b'\]\[1\]"),
        ({"details": {"a": object()}}, r"details\['a'\]"),
    ],
)
def test_wrong_fields_are_refused(changes, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        curve(**changes)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda text: text[:-1], "this is none"),
        (lambda text: "[1, 2]", "of format"),
        (lambda text: text.replace("PrefixCurve/1", "PrefixCurve/4"), "of format"),
        (lambda text: text.replace('"metric"', '"metrik"'), "Missing: metric; unknown: metrik"),
        (lambda text: text.replace("0.92", "NaN"), "NaN is not a number of JSON"),
        (lambda text: text.replace("0.92", "1e999"), "Out of range float"),
        (lambda text: text.replace("0.92", '"0.92"'), "'input_score'"),
        (lambda text: text.replace('"label": "digits"', '"label": "a", "label": "b"'), "label is repeated"),
        (lambda text: text.replace("[1, 2, 4, 8]", "[1.5, 2, 4, 8]"), "'k'"),
    ],
)
def test_json_that_is_no_curve_is_refused(edit, sentence):
    text = curve().to_json()
    assert edit(text) != text
    with pytest.raises(InvalidInputError, match=sentence):
        PrefixCurve.from_json(edit(text))


def test_intervals_go_through_json():
    made = curve(low=[0.3, 0.6, 0.8, 0.85], high=np.array([0.5, 0.8, 0.95, 0.95]), confidence=0.95)
    again = PrefixCurve.from_json(made.to_json())
    assert again == made
    assert (again.low, again.high, again.confidence) == ((0.3, 0.6, 0.8, 0.85), (0.5, 0.8, 0.95, 0.95), 0.95)
    assert "  4  0.8900  0.8000 to 0.9500" in str(made).splitlines()
    assert "0.95 interval" in str(made)


@pytest.mark.parametrize(
    "changes",
    [
        {"low": [0, 0, 0, 0]},
        {"confidence": 0.9},
        {"low": [0] * 4, "high": [1] * 4, "confidence": 1},
        {"low": [0] * 4, "high": [1] * 4, "confidence": "most"},
        {"low": [0] * 3, "high": [1] * 3, "confidence": 0.9},
        {"low": [0, 0, 0, 2], "high": [1] * 4, "confidence": 0.9},
        {"low": [0, 0, 0, np.nan], "high": [1] * 4, "confidence": 0.9},
    ],
)
def test_wrong_intervals_are_refused(changes):
    with pytest.raises(InvalidInputError, match=r"low|confidence"):
        curve(**changes)


def test_json_says_what_it_is():
    assert json.loads(curve().to_json())["format"] == "firstk.PrefixCurve/1"


def test_only_supported_lengths_are_recommended():
    ks = range(1, 9)
    scores = [0.4, 0.7, 0.85, 0.86, 0.88, 0.9, 0.95, 1.0]
    free, listed = PrefixCurve(ks, scores, "accuracy"), PrefixCurve(ks, scores, "accuracy", supported=[2, 4, 6])
    assert (free.full_k, free.full, free.smallest(0.9)) == (8, 1.0, 6)
    # The longest of the list takes the place of the full width, and only members of the list are returned.
    assert (listed.recommendable, listed.full_k, listed.full) == ((2, 4, 6), 6, 0.9)
    assert (listed.smallest(0.9), listed.smallest(0.99), free.smallest(0.81)) == (4, 6, 3)
    assert listed.smallest_lengths() == {0.9: 4, 0.95: 4, 0.99: 6}
    again = PrefixCurve.from_json(listed.to_json())
    assert again == listed
    assert again.supported == (2, 4, 6)


def test_no_supported_length_was_evaluated():
    made = curve(supported=[3, 16])
    assert (made.recommendable, made.full_k, made.full) == ((), 8, 0.9)
    with pytest.raises(InvalidInputError, match=r"is fixed: 3, 16\. The curve has k = 1, 2, 4, 8"):
        made.smallest()
    assert made.smallest_lengths("input") == {0.9: None, 0.95: None, 0.99: None}


def test_the_best_that_is_out_of_reach_is_one_that_may_be_recommended():
    made = curve(score=[0.4, 0.7, 0.6, 0.9], supported=[1, 2, 4], input_score=1.0)
    with pytest.raises(InvalidInputError, match=r"The best is 0\.7 at k = 2: it keeps 0\.7\."):
        made.smallest(0.99, relative_to="input")


def test_one_lucky_score_is_not_recommended():
    scores = [0.5, 0.91, 0.80, 0.91, 0.92, 0.93]
    made = PrefixCurve(range(1, 7), scores, "accuracy", input_score=1.0)
    assert made.smallest(0.9) == 4  # k = 2 reaches the share, and k = 3 does not
    assert made.smallest(0.7) == 2


def test_coordinates_that_do_harm_do_not_hide_a_good_prefix():
    scores = [0.5, 0.93, 0.95, 0.951, 0.90, 0.866]
    made = PrefixCurve(range(1, 7), scores, "accuracy", input_score=0.926)
    assert made.best_k == 4
    assert made.smallest(0.99) == 2
    # With intervals, prefixes that may be as good as the best one count, and clearly worse ones do not.
    sure = replace(made, low=[s - 0.01 for s in scores], high=[s + 0.01 for s in scores], confidence=0.95)
    assert sure.smallest(0.99) == 2
    unsure = replace(made, low=[s - 0.1 for s in scores], high=[s + 0.1 for s in scores], confidence=0.95)
    with pytest.raises(InvalidInputError, match=r"The best is 0.951 at k = 4"):
        unsure.smallest(0.99)


def test_shares_are_of_the_raw_vectors_or_else_of_the_best_prefix():
    scores = [0.5, 0.8, 1.0, 0.9]
    assert PrefixCurve(range(1, 5), scores, "accuracy").smallest(0.89) == 3
    assert PrefixCurve(range(1, 5), scores, "accuracy", input_score=0.8).smallest(0.89) == 2
    assert PrefixCurve(range(1, 5), scores, "accuracy", input_score=0.8).smallest(0.89, "best") == 3
    assert PrefixCurve(range(1, 5), scores, "accuracy", input_score=0.8).smallest(0.89, "full") == 3


def test_a_curve_is_cut_with_its_intervals_and_supported_lengths():
    made = curve(low=[0.3, 0.6, 0.8, 0.85], high=[0.5, 0.8, 0.95, 0.95], confidence=0.95, supported=[2, 8])
    short = made.cut(5)
    assert (short.k, short.score, short.low, short.high) == (
        (1, 2, 4),
        (0.4, 0.7, 0.89),
        (0.3, 0.6, 0.8),
        (0.5, 0.8, 0.95),
    )
    assert (short.supported, short.confidence, short.metric) == ((2,), 0.95, "accuracy")
    assert made.cut(1).supported == (1,)  # cut before the first of the list
    assert curve(k=[2, 4, 6, 8]).cut(1) is None
    assert made.cut(8) == made


def test_tables_are_short_and_hold_the_ends():
    ks = range(1, 101)
    table = str(PrefixCurve(ks, [k / 100 for k in ks], "accuracy", label="digits"))
    assert table.splitlines()[0] == "digits: accuracy"
    assert [int(line.split()[0]) for line in table.splitlines()[2:]] == [1, 2, 4, 8, 16, 32, 64, 100]


def test_records_import_nothing_heavy():
    code = "import sys, firstk.quality.curve\n"
    code += "print(sorted({'torch', 'sklearn', 'matplotlib', 'scipy'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_target_is_reached_up_to_rounding():
    curve = PrefixCurve(k=(1, 2, 3), score=(0.5, 0.9 - 1e-9, 0.9), metric="accuracy")
    assert curve.smallest(keep=1.0) == 2
    assert PrefixCurve(k=(1, 2, 3), score=(0.5, 0.8999, 0.9), metric="accuracy").smallest(keep=1.0) == 3
    losses = PrefixCurve(k=(1, 2), score=(0.3 + 1e-9, 0.3), metric="loss", higher_is_better=False)
    assert losses.smallest(keep=1.0) == 1
