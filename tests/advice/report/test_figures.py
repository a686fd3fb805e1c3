"""The picture in matplotlib."""

from __future__ import annotations

import sys

import pytest

from advice.report.conftest import make_curve, make_evaluation
from firstk import PrefixCurve
from firstk.advice.report import plot_curves, plot_tradeoff
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
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ours", "PCA", "random", "raw vectors"]
    assert "accuracy, higher is better" in ax.get_title(loc="left")


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
    with pytest.raises(InvalidInputError, match="A chart draws one metric on one axis"):
        plot_curves([make_curve("a", 2)], [make_curve("b", 2, metric="recall")])
    with pytest.raises(InvalidInputError, match="A chart needs at least one PrefixCurve"):
        plot_curves([])


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'firstk\[report\]'"):
        plot_curves([make_curve("a", 2)])


def test_bytes_have_a_line_for_each_precision_and_the_front(pyplot):
    found = make_evaluation()
    chosen = found.prefixes[0]
    ax = plot_tradeoff(found, chosen)
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.get_lines()}
    assert lines["int8"] == [[2, 0.59], [4, 0.79], [8, 0.89]]
    assert lines["front"] == [[o.bytes, o.score] for o in found.pareto_front]
    assert lines["k = 2, float32"] == [[8, 0.6]]
    assert {"raw vectors", "float32", "embedded", "PCA", "plain truncation"} <= set(lines)
