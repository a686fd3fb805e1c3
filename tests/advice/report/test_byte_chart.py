"""The chart of score against bytes: what is drawn is what the evaluation says."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from firstk.advice.report import draw_tradeoff, plot_tradeoff
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import Point
from firstk.quality.evaluation import Evaluation

POINTS = [
    Point(8, "float32", 32, 0.8),
    Point(16, "float32", 64, 0.9),
    Point(8, "int8", 8, 0.79),
    Point(16, "int8", 16, 0.85),
]


@pytest.fixture
def found():
    return Evaluation(POINTS, "<accuracy>", input_score=0.95, input_bytes=256)


def test_every_point_is_where_it_belongs(found):
    root = ET.fromstring(draw_tradeoff(found, found.points[0]))
    dots = {title.text.split(":")[0]: dot for dot in root.iter("circle") for title in dot.iter("title")}
    assert set(dots) == {f"k = {o.k}, {o.precision}" for o in POINTS} | {"chosen"}
    across = {o: float(dots[f"k = {o.k}, {o.precision}"].get("cx")) for o in POINTS}
    up = {o: -float(dots[f"k = {o.k}, {o.precision}"].get("cy")) for o in POINTS}
    assert sorted(POINTS, key=across.get) == sorted(POINTS, key=lambda o: o.bytes)
    assert sorted(POINTS, key=up.get) == sorted(POINTS, key=lambda o: o.score)
    steps = np.diff([across[o] for o in sorted(POINTS, key=lambda o: o.bytes)])
    np.testing.assert_allclose(steps, steps[0], atol=0.2)  # bytes double each time, on a log axis
    assert dots["chosen"].get("cx") == dots["k = 8, float32"].get("cx")


@pytest.mark.parametrize("draw", [plot_tradeoff, draw_tradeoff])
def test_bad_input_is_a_sentence(draw, found):
    with pytest.raises(InvalidInputError, match="an Evaluation"):
        draw(POINTS)
    with pytest.raises(InvalidInputError, match="one of the evaluation's points"):
        draw(found, Point(1, "int8", 1, 0.1))
