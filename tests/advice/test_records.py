"""A report goes to JSON and back, and what is damaged is refused with a sentence."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk import Evaluation
from firstk.advice.records import AxisStatistics, ImageSamples, Packed, Report
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.quality.choice import Point

RNG = np.random.default_rng(0)


def images():
    rng = np.random.default_rng(1)
    return ImageSamples(
        shape=(2, 3),
        names=("a", "b"),
        originals=Packed.of(rng.random((2, 6))),
        codes=Packed.of(rng.normal(size=(2, 4))),
        decoder=Packed.of(rng.normal(size=(4, 6))),
        mean=Packed.of(rng.random((1, 6))),
        low=0.0,
        high=1.0,
    )


def report(**changes):
    points = [Point(1, "int8", 1, 0.2), *(Point(k, "float32", 4 * k, s) for k, s in ((1, 0.1), (2, 0.5), (4, 0.9)))]
    points.append(Point(2, "float32", 8, 0.3, code="PCA"))
    lead = Evaluation(tuple(points), "accuracy", input_score=0.95, input_bytes=24, label="ours", n_evaluated=7)
    fields = {
        "facts": {"file": "a.npz", "rows": 7},
        "rows": 9,
        "columns": 6,
        "itemsize": 4,
        "held_out": "Evaluated on 2 rows.",
        "evaluations": (lead,),
        "choice": lead.choose(keep=0.5),
        "axes": AxisStatistics((3.0, 2.0), (1.0, 0.5), (1.5, 0.4), (0.4, 0.2), "accuracy", 0.1, 1.0, 2),
        "images": images(),
        "notes": ("a note",),
    }
    return Report(**fields | changes)


def test_json_and_back():
    for one in (report(), report(axes=None, images=None, choice=None, evaluations=())):
        assert Report.from_json(one.to_json()) == one


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_packing_loses_less_than_a_grey_level_can_show(scale):
    M = scale * RNG.normal(size=(5, 40))
    error = np.abs(Packed.of(M).array() - M).max(axis=1)
    assert (error <= np.abs(M).max(axis=1) / 65534 * (1 + 1e-9)).all()


def test_packing_keeps_zero_rows():
    np.testing.assert_array_equal(Packed.of(np.zeros((2, 3))).array(), np.zeros((2, 3)))


def test_images_are_rebuilt_from_the_first_coordinates():
    one = images()
    by_hand = one.mean.array()[0].copy()
    for j in range(3):
        by_hand += one.codes.array()[1, j] * one.decoder.array()[j]
    np.testing.assert_allclose(one.rebuilt(3)[1], by_hand)


def test_a_report_without_evaluations_says_why():
    with pytest.raises(InvalidInputError, match=r"no evaluation\. too few rows"):
        _ = report(evaluations=(), notes=("too few rows",)).lead


def damaged():
    whole = json.loads(report().to_json())
    yield "not json", "{"
    yield "another format", json.dumps(whole | {"format": "firstk.Study/99"})
    yield "a list", "[]"
    yield "a field less", json.dumps({k: v for k, v in whole.items() if k != "rows"})
    yield "a field more", json.dumps(whole | {"surprise": 1})
    yield "no rows", json.dumps(whole | {"rows": 0})
    yield "text for rows", json.dumps(whole | {"rows": "9"})
    yield "axes of two lengths", json.dumps(whole | {"axes": whole["axes"] | {"variance": [1.0]}})
    yield "nan", json.dumps(whole | {"axes": whole["axes"] | {"variance": [float("nan"), 1.0]}})
    yield (
        "not base64",
        json.dumps(whole | {"images": whole["images"] | {"mean": whole["images"]["mean"] | {"data": "?"}}}),
    )
    yield "wrong size", json.dumps(whole | {"images": whole["images"] | {"shape": [2, 2]}})
    yield "no range", json.dumps(whole | {"images": whole["images"] | {"high": 0.0}})
    yield "no curve", json.dumps(whole | {"evaluations": [3]})
    yield "no choice", json.dumps(whole | {"choice": whole["choice"] | {"offers": 3}})


@pytest.mark.parametrize(("what", "text"), list(damaged()), ids=lambda value: value[:20])
def test_damage_is_a_sentence(what, text):
    with pytest.raises(InvalidInputError) as caught:
        Report.from_json(text)
    assert len(str(caught.value)) > 30, what


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_change_of_the_text_is_read_or_refused(data):
    text = report().to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 4)) :]
    try:
        Report.from_json(changed)
    except FirstkError:
        return


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("axes", "variance", 1), -0.4),
        (("axes", "magnitude", 0), -1.0),
        (("axes", "pinned"), -1),
        (("axes", "pinned"), 3),
        (("axes", "pinned"), True),
        (("axes", "chance"), 10**400),
        (("rows",), True),
        (("rows",), 10**30),
        (("evaluations", 0, "points", 0, "k"), "1"),
        (("evaluations", 0, "points", 0, "k"), 0),
        (("evaluations", 0, "points", 0, "k"), 10**30),
        (("evaluations", 0, "points", 0, "score"), [0.1, 0.5]),
        (("evaluations", 0, "n_evaluated"), 10**400),
        (("images", "shape"), [3, 2, 2]),
        (("images", "codes", "shape"), [2, 10**30]),
        (("choice", "offers", 0, "point", "k"), -1),
        (("choice", "offers", 0, "point", "bytes"), 10**400),
    ],
)
def test_numbers_that_make_no_sense_are_refused(path, value):
    values = json.loads(report().to_json())
    *inner, last = path
    at = values
    for key in inner:
        at = at[key]
    at[last] = value
    with pytest.raises(InvalidInputError):
        Report.from_json(json.dumps(values))
