"""The picture of score against bytes: what is drawn is what the table says."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from firstk.advice.operating_points import OperatingPoint, PrecisionTable

from firstk.advice.report import draw_tradeoff, plot_tradeoff
from firstk.exceptions import InvalidInputError

mpl.use("Agg")
OFFERS = [
    OperatingPoint(8, "float32", 32, 0.8),
    OperatingPoint(16, "float32", 64, 0.9),
    OperatingPoint(8, "int8", 8, 0.79),
    OperatingPoint(16, "int8", 16, 0.85),
]


@pytest.fixture
def table():
    return PrecisionTable(OFFERS, "<accuracy>", input_score=0.95, input_bytes=256)


def test_svg_has_every_point_where_it_belongs(table):
    root = ET.fromstring(draw_tradeoff(table, table.points[0]))
    dots = {title.text.split(":")[0]: dot for dot in root.iter("circle") for title in dot.iter("title")}
    assert set(dots) == {f"k = {o.k}, {o.precision}" for o in OFFERS} | {"chosen"}
    across = {o: float(dots[f"k = {o.k}, {o.precision}"].get("cx")) for o in OFFERS}
    up = {o: -float(dots[f"k = {o.k}, {o.precision}"].get("cy")) for o in OFFERS}
    assert sorted(OFFERS, key=across.get) == sorted(OFFERS, key=lambda o: o.bytes)
    assert sorted(OFFERS, key=up.get) == sorted(OFFERS, key=lambda o: o.score)
    steps = np.diff([across[o] for o in sorted(OFFERS, key=lambda o: o.bytes)])
    np.testing.assert_allclose(steps, steps[0], atol=0.2)  # bytes double each time, on a log axis
    assert dots["chosen"].get("cx") == dots["k = 8, float32"].get("cx")


def test_svg_says_the_front_in_words(table):
    (words,) = [desc.text for desc in ET.fromstring(draw_tradeoff(table)).iter("desc")]
    assert "0.7900 in 8 bytes (k = 8, int8); 0.8500 in 16 bytes" in words
    assert "(k = 8, float32)" not in words


def test_figure_has_a_line_for_each_precision_and_the_front(table):
    ax = plot_tradeoff(table, table.points[0])
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.get_lines()}
    assert lines["int8"] == [[8, 0.79], [16, 0.85]]
    assert lines["front"] == [[8, 0.79], [16, 0.85], [64, 0.9]]
    assert lines["k = 8, float32"] == [[32, 0.8]]
    assert {"raw vectors", "float32"} <= set(lines)
    mpl.pyplot.close(ax.figure)


@pytest.mark.parametrize("draw", [plot_tradeoff, draw_tradeoff])
def test_bad_input_is_a_sentence(draw, table):
    with pytest.raises(InvalidInputError, match="a PrecisionTable"):
        draw(OFFERS)
    with pytest.raises(InvalidInputError, match="one of the table's points"):
        draw(table, OperatingPoint(1, "int8", 1, 0.1))
