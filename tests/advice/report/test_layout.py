"""Axes and labels: round ticks, nothing on top of anything else, colours that can be read."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstk.advice.report.layout import BASELINES, OURS, RAW, Octaves, Values, spread

FINITE = st.floats(-1e6, 1e6)


@given(st.integers(1, 5000), st.integers(0, 5000), st.floats(0.02, 0.3))
def test_ticks_over_k_are_ends_and_powers_of_two_with_room_between(low: int, more: int, room: float):
    axis = Octaves(low, low + more)
    ticks = axis.ticks(room)
    assert (ticks[0], ticks[-1]) == (low, low + more)
    assert all(k & (k - 1) == 0 for k in ticks[1:-1])
    shares = [axis.share(k) for k in ticks]
    assert all(b - a >= room - 1e-9 for a, b in pairwise(shares)) or len(ticks) == 2


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_the_vertical_axis_holds_every_score_with_few_ticks(scores: list[float]):
    axis = Values.covering(scores)
    assert 2 <= len(axis.ticks) <= 9
    assert all(-1e-6 <= axis.share(score) <= 1 + 1e-6 for score in scores)


@pytest.mark.parametrize(
    ("scores", "texts"),
    [
        ((0.1, 0.98), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((0.9, 1.0), ["0.90", "0.92", "0.94", "0.96", "0.98", "1.00"]),
        ((-1.0, 11.0), ["-2.5", "0.0", "2.5", "5.0", "7.5", "10.0", "12.5"]),
        ((0.0, 1e-5), ["0", "2e-06", "4e-06", "6e-06", "8e-06", "1e-05"]),
    ],
)
def test_ticks_of_scores_are_round_and_alike(scores: tuple[float, ...], texts: list[str]):
    assert Values.covering(scores).texts() == texts


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.floats(0.1, 20))
def test_spread_keeps_order_distance_and_bounds(wanted: list[float], gap: float):
    placed = spread(wanted, gap, 0, 100)
    reached = min(gap, 100 / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    assert all(placed[b] - placed[a] >= reached - 1e-6 for a, b in pairwise(order))
    assert all(-1e-6 <= y <= 100 + 1e-6 for y in placed)


def test_spread_moves_nothing_that_has_room():
    assert spread([50.0, 10.0, 90.0], 18, 0, 100) == [50.0, 10.0, 90.0]


def _luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("pair", [*OURS, *BASELINES, RAW])
def test_colours_have_the_contrast_of_text_in_both_schemes(pair: tuple[str, str]):
    for color, paper in zip(pair, ("#fdfdfb", "#14181f"), strict=True):
        light, dark = sorted((_luminance(color), _luminance(paper)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("scores", [[5e-324], [0.0, 5e-324], [-5e-324, 5e-324], [0.0]])
def test_scores_that_differ_by_nothing_have_an_axis(scores):
    axis = Values.covering(scores)
    assert axis.ticks[0] <= min(scores) <= max(scores) <= axis.ticks[-1]
    assert 2 <= len(axis.ticks) <= 8
