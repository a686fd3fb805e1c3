"""Figures in matplotlib, for notebooks and documents: the curves of the report page, the spectrum of a diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from firstk._base.atomic_file import atomic_file
from firstk._base.checks import require
from firstk.advice.report.byte_chart import bytes_axis, check_chosen, lines_of, looks_of_lines, name_of_point
from firstk.advice.report.layout import FEW_POINTS, RAW, RAW_LOOK, RAW_NAME, Look, Octaves, assign, shortened
from firstk.advice.report.page import Curves, name_of
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import Point
from firstk.quality.curve import PrefixCurve
from firstk.quality.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FORMATS = (".svg", ".png", ".pdf")
FONT = 9.0


def plot_curves(curves: Sequence[PrefixCurve], baselines: Sequence[PrefixCurve] = (), ax: Axes | None = None) -> Axes:
    """Draw curves of one metric against k.

    Parameters
    ----------
    curves : sequence of PrefixCurve
        Ours, in colour.
    baselines : sequence of PrefixCurve
        What they are compared with, dashed and grey.
    ax : matplotlib axes, optional
        Where to draw; a new figure if not given. The legend stands to the right of the axes, so leave room there.

    Returns
    -------
    ax : matplotlib axes
        ``ax.figure.savefig(path)`` writes it to a file.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidInputError
        If there is no curve, the metrics differ, or two curves have the same label.
    """
    pyplot = require("matplotlib.pyplot", "report", "plot_curves")
    chart = Curves(curves, baselines)  # type: ignore[arg-type]
    if ax is None:
        ax = pyplot.subplots(figsize=(7.2, 3.8), layout="constrained")[1]
    looks = assign([name_of(curve) for curve in chart.curves], [name_of(curve) for curve in chart.baselines])
    for score in chart.input_scores:
        ax.axhline(score, label=RAW_NAME, **_style(RAW_LOOK))
    # No name is there twice, so the looks are in the order of the curves. Ours last: they lie on top.
    for curve, look in reversed(list(zip(chart.everything, looks.values(), strict=True))):
        mark = "o" if len(curve) <= FEW_POINTS else ""
        ax.plot(curve.k, curve.score, label=name_of(curve), marker=mark, markersize=3.5, **_style(look))
        if curve.low is not None and curve.high is not None:
            ax.fill_between(curve.k, curve.low, curve.high, color=look.color, alpha=0.15, linewidth=0)
    across = Octaves(min(c.k[0] for c in chart.everything), max(c.k[-1] for c in chart.everything))
    _finish(ax, across, "k, coordinates kept", reverse=True)
    direction = "higher is better" if chart.higher_is_better else "lower is better"
    ax.set_title(f"{shortened(chart.metric, 44)}, {direction}", loc="left", fontsize=FONT + 1)
    return ax


def _style(look: Look) -> dict[str, Any]:
    # matplotlib measures dashes in line widths, the page in pixels.
    dash = (0, tuple(part / look.width for part in look.dash)) if look.dash else "-"
    return {"color": look.color, "linestyle": dash, "linewidth": 0.8 * look.width}


def _finish(ax: Axes, across: Octaves, name: str, *, reverse: bool = False) -> None:
    """Give axes ticks at powers of two, a quiet grid, and a legend at the right."""
    ax.set_xscale("log", base=2)
    ticks = across.ticks(room=0.09)
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.set_xticks([], minor=True)
    if across.low < across.high:
        ax.set_xlim(across.low, across.high)
    ax.set_xlabel(name)
    ax.grid(axis="y", color="#e4e5e1", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize=FONT, loc="upper left", bbox_to_anchor=(1, 1), reverse=reverse)


def plot_tradeoff(evaluation: Evaluation, chosen: Point | None = None, ax: Axes | None = None) -> Axes:
    """Draw score against bytes per vector, a line for each precision, the front in black, other codes in grey.

    Parameters
    ----------
    evaluation : Evaluation
    chosen : Point, optional
        One of the evaluation's, marked with a ring.
    ax : matplotlib axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    ax : matplotlib axes
        ``ax.figure.savefig(path)`` writes it to a file.
    """
    pyplot = require("matplotlib.pyplot", "report", "plot_tradeoff")
    check_chosen(evaluation, chosen, "plot_tradeoff")
    if ax is None:
        ax = pyplot.subplots(figsize=(7.2, 3.8), layout="constrained")[1]
    looks = looks_of_lines(evaluation)
    for name, points in lines_of(evaluation).items():
        look, own = looks[name], name in evaluation.precisions
        ax.plot(
            [o.bytes for o in points], [o.score for o in points], label=name, color=look.color,
            marker="o" if own else "s", markersize=3, linewidth=1.2 if own else 0.7, linestyle="-" if own else ":",
        )  # fmt: skip
    front = evaluation.pareto_front
    ax.step(
        [o.bytes for o in front], [o.score for o in front], where="post", color="#1b1d22", linewidth=0.8, label="front"
    )
    if evaluation.input_score is not None:
        ax.axhline(evaluation.input_score, color=RAW[0], linewidth=0.8, linestyle="--", label=RAW_NAME)
    if chosen is not None:
        label = name_of_point(chosen)
        ax.plot([chosen.bytes], [chosen.score], "o", markersize=9, fillstyle="none", color="#1b1d22", label=label)
    _finish(ax, bytes_axis(evaluation, None), "bytes per vector")
    ax.set_title(shortened(evaluation.metric, 44), loc="left", fontsize=FONT + 1)
    return ax


def check_figure(path: Path) -> None:
    """Raise for a figure that cannot be written, before long work is done for it."""
    if path.suffix.lower() not in _FORMATS:
        raise InvalidInputError(f"A figure ends in {', '.join(_FORMATS)}. Got '{path}'.")
    require("matplotlib.figure", "report", "A figure")
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInputError(f"Cannot write a figure to '{path}'. Choose a file in a folder that exists.")


def write_figure(path: Path, figure: Figure, dpi: float | Literal["figure"] = "figure") -> Path:
    """Write a figure by an atomic write; its ending is its format."""
    check_figure(path)
    with atomic_file(path, "A figure") as temporary:
        figure.savefig(temporary, format=path.suffix.lower()[1:], dpi=dpi)
    return path
