"""Panels as they are drawn: what shows directions of a plane has one scale on both axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from firstk_papers.frame.drawing import _figure
from firstk_papers.frame.instances import line
from firstk_papers.frame.panels import Chart, Heatmap
from firstk_papers.frame.runner import Result

RECORD = Path(__file__).resolve().parents[3] / "results" / "full" / "bao2020-fig1.json"


def scales(panel):
    """Return how many pixels a unit takes, across and up."""
    figure = _figure([panel])
    figure.draw_without_rendering()  # constrained layout places the axes only now
    to_pixels = figure.axes[0].transData.transform
    (left, low), (right, _), (_, high) = to_pixels([(0, 0), (1, 0), (0, 1)])
    return abs(right - left), abs(high - low)


@pytest.mark.parametrize("equal", [False, True])
def test_equal_axes_have_one_scale(equal):
    turn = np.linspace(0, 2 * np.pi, 50)
    circle = Chart("Circle", "x", "y", (line("circle", np.cos(turn), np.sin(turn)),), equal=equal)
    for panel in (circle, Heatmap("Heat", "x", "y", ((0.0, 1.0), (1.0, 0.0)), equal=equal)):
        across, up = scales(panel)
        assert (across == pytest.approx(up)) == equal


def test_the_plane_of_bao2020_figure_1_has_one_scale():
    heat, path, along = Result.from_json(RECORD.read_text()).panels
    assert (heat.equal, path.equal, along.equal) == (True, True, False)
