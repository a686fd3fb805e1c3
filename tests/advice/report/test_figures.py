"""The picture in matplotlib."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from evaluation.report.conftest import make_curve

from firstk import PrefixCurve
from firstk.advice.report import plot_curves
from firstk.exceptions import InvalidInputError, MissingExtraError


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'firstk[report]'")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_curves_are_drawn_over_a_log_axis_and_named(pyplot):
    ours, baselines = [make_curve("ours", 4)], [make_curve("PCA", 8), make_curve("random", 30)]
    ax = plot_curves(ours, baselines)
    lines = {line.get_label(): line for line in ax.lines}
    assert tuple(lines["PCA"].get_ydata()) == baselines[0].score
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "4", "8", "16", "32", "64"]
    assert lines["ours"].get_linestyle() == "-"
    assert lines["PCA"].get_linestyle() == "--"
    assert {text.get_text() for text in ax.texts} == {"ours", "PCA", "random", "raw vectors"}
    assert "accuracy, higher is better" in ax.get_title(loc="left")


def test_names_do_not_overlap(pyplot):
    ax = plot_curves([make_curve("ours", 1)], [make_curve(f"baseline {i}", 1 + i / 9) for i in range(6)])
    ax.figure.canvas.draw()
    # The extent of an annotation counts its leader too; that of the text alone is what must not overlap.
    text_type = pytest.importorskip("matplotlib.text").Text
    boxes = sorted((text_type.get_window_extent(text) for text in ax.texts), key=lambda box: box.y0)
    assert all(upper.y0 >= lower.y1 - 3 for lower, upper in pairwise(boxes))
    assert all(box.x1 <= ax.figure.bbox.x1 for box in boxes)


def test_axes_that_are_given_are_used(pyplot):
    _, axes = pyplot.subplots(1, 2)
    assert plot_curves([make_curve("ours", 4)], ax=axes[1]) is axes[1]
    assert not axes[0].lines


def test_a_single_prefix_and_losses_are_drawn(pyplot):
    loss = PrefixCurve(k=[8], score=[0.25], metric="loss", higher_is_better=False)
    ax = plot_curves([loss])
    ax.figure.canvas.draw()
    assert "lower is better" in ax.get_title(loc="left")


def test_curves_that_do_not_belong_together_are_refused(pyplot):
    with pytest.raises(InvalidInputError, match="plot_curves draws one metric on one axis"):
        plot_curves([make_curve("a", 2)], [make_curve("b", 2, metric="recall")])
    with pytest.raises(InvalidInputError, match="plot_curves needs at least one PrefixCurve"):
        plot_curves([])


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'firstk\[report\]'"):
        plot_curves([make_curve("a", 2)])
