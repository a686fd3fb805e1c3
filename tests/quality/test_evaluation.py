"""The choice of k and precision: the rule against trying every point, and what is refused."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk import Evaluation
from firstk.data.precision import PRECISIONS
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import Point
from firstk.quality.curve import PrefixCurve


def table(**changes):
    points = [
        Point(k, name, PRECISIONS[name].bytes_per_vector(k), score)
        for name, scores in {"float32": (0.5, 0.8, 0.9), "int8": (0.49, 0.79, 0.9), "binary": (0.2, 0.6, 0.85)}.items()
        for k, score in zip((8, 16, 32), scores, strict=True)
    ]
    values = {
        "points": tuple(points),
        "metric": "accuracy",
        "input_score": 0.95,
        "input_bytes": 256,
    }
    return Evaluation(**values | changes)


points = st.lists(
    st.builds(
        lambda k, name, score: Point(k, name, PRECISIONS[name].bytes_per_vector(k), score),
        st.integers(1, 64),
        st.sampled_from(sorted(PRECISIONS)),
        st.integers(1, 20).map(lambda i: i / 20),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda o: (o.k, o.precision),
)


@given(points)
@settings(max_examples=100, deadline=None)
def test_front_is_what_no_other_beats(given_points):
    made = Evaluation(tuple(given_points), "accuracy")

    def beats(a, b):
        return a.bytes <= b.bytes and a.score >= b.score and (a.bytes, a.score) != (b.bytes, b.score)

    expected = {(o.bytes, o.score) for o in made if not any(beats(other, o) for other in made)}
    assert {(o.bytes, o.score) for o in made.pareto_front} == expected
    assert len(made.pareto_front) == len(expected)


@given(points, st.floats(0.05, 1), st.integers(1, 300) | st.none())
@settings(max_examples=100, deadline=None)
def test_choose_is_the_cheapest_that_keeps_enough(given_points, keep, limit):
    made = Evaluation(tuple(given_points), "accuracy", input_score=0.9)

    def keeps(point):
        """Say whether this prefix and each longer one up to the best of its precision keep the share."""
        family = sorted((o for o in made if o.precision == point.precision), key=lambda o: o.k)
        most = max(o.score for o in family)
        last = max(o.k for o in family if o.score == most)
        return all(o.score >= keep * 0.9 for o in family if point.k <= o.k <= max(last, point.k))

    good = [o for o in made if keeps(o) and (limit is None or o.bytes <= limit)]
    if not good:
        with pytest.raises(InvalidInputError, match=r"No (code fits in|code of this model .*keeps)"):
            made.choose(keep=keep, bytes_per_vector=limit).point  # noqa: B018
        return
    found = made.choose(keep=keep, bytes_per_vector=limit).point
    assert found in good
    assert found.bytes == min(o.bytes for o in good)
    assert found.score == max(o.score for o in good if o.bytes == found.bytes)


@given(points, st.integers(1, 300))
@settings(max_examples=100, deadline=None)
def test_choose_without_a_share_is_the_best_within_the_limits(given_points, limit):
    made = Evaluation(tuple(given_points), "accuracy")
    good = [o for o in made if o.bytes <= limit]
    if good:
        assert made.choose(bytes_per_vector=limit).point.score == max(o.score for o in good)
    else:
        with pytest.raises(InvalidInputError, match=r"No (code fits in|code of this model .*evaluated)"):
            made.choose(bytes_per_vector=limit).point  # noqa: B018


def test_choose_by_name():
    made = table()
    assert made.choose(keep=0.85).point.precision == "binary"
    assert made.choose(keep=0.95, relative_to="full").point == Point(32, "int8", 32, 0.9)
    assert made.choose(keep=0.9).point.k == 32
    assert made.choose(bytes_per_vector=16).point.score == 0.85  # 32 bits are four bytes
    assert made.choose(k=16, precision="int8").point.score == 0.79
    assert made.choose(precision="float32", keep=0.9).point.k == 32


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"keep": 1.2}, r"'keep'.*\(0, 1\]"),
        (
            {"keep": 1.0, "relative_to": "input"},
            "No code of this model keeps 100 % of the raw vectors' accuracy",
        ),
        ({"keep": 0.9, "relative_to": "last"}, "'relative_to'"),
        ({"bytes_per_vector": 0}, "an int of at least 1. Got 0"),
        ({"bytes_per_vector": 0.5}, "an int of at least 1. Got 0.5"),
        ({"k": 0}, "'k'.* an int of at least 1. Got 0"),
        ({"precision": "int8", "bytes_per_vector": 1}, "the smallest takes 8 bytes"),
        ({"k": 9}, "no k = 9 .* it has k = 8, 16, 32"),
        ({"precision": "float16"}, "float32, int8, binary"),
    ],
)
def test_limits_that_cannot_be_met_are_sentences(limits, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        table().choose(**limits).point  # noqa: B018


def test_a_share_of_nothing_is_a_sentence():
    with pytest.raises(InvalidInputError, match="no score of the raw vectors to take a share of"):
        table(input_score=None).choose(keep=0.9, relative_to="input")


def test_json_round_trip():
    made = table(n_evaluated=10, label="fisher")
    for again in (Evaluation.from_json(made.to_json()), pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert again == made
    assert json.loads(made.to_json())["format"] == "firstk.Evaluation/1"


@pytest.mark.parametrize(
    "edit",
    [
        lambda v: v | {"format": "firstk.PrefixCurve/2"},
        lambda v: v | {"points": []},
        lambda v: v | {"points": 3},
        lambda v: v | {"points": [3]},
        lambda v: v | {"points": v["points"] * 2},
        lambda v: v | {"points": [v["points"][0] | {"precision": "int2"}]},
        lambda v: v | {"points": [v["points"][0] | {"k": 0}]},
        lambda v: v | {"points": [v["points"][0] | {"stored_once": -1}]},
        lambda v: v | {"points": [v["points"][0] | {"score": "high"}]},
        lambda v: v | {"points": [v["points"][0] | {"more": 1}]},
        lambda v: v | {"metric": ""},
        lambda v: v | {"input_bytes": 0},
        lambda v: {name: value for name, value in v.items() if name != "label"},
    ],
)
def test_json_that_is_no_table_is_refused(edit):
    with pytest.raises(InvalidInputError):
        Evaluation.from_json(json.dumps(edit(json.loads(table().to_json()))))


def test_a_precision_as_a_curve():
    found = table(label="fisher")
    assert found.curve().label == "fisher"
    assert found.curve(precision="int8") == PrefixCurve(
        (8, 16, 32), (0.49, 0.79, 0.9), "accuracy", 0.95, "fisher, int8"
    )


def test_printed_table_marks_the_front():
    lines = str(table()).splitlines()
    assert lines[1].split() == ["k", "float32", "int8", "binary"]
    assert lines[2].split() == ["8", "0.5000", "(32)", "0.4900", "(8)", "0.2000", "(1)*"]
    assert lines[-1] == "raw vectors: 0.9500 (256)"


def test_scores_that_differ_by_rounding_tie():
    points = [
        Point(8, "float32", 32, 0.9),
        Point(16, "int8", 16, 0.9 - 1e-9),
        Point(4, "int8", 4, 0.5),
    ]
    table = Evaluation(tuple(points), "accuracy")
    assert table.choose(keep=1).point.bytes == 16
    assert [point.bytes for point in table.pareto_front] == [4, 16]
