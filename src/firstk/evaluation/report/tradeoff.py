"""Score against bytes per vector: every prefix length in every precision, and the front that no other beats.

Drawn twice from one table: as SVG for the page, in matplotlib for notebooks and files.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from firstk._base.checks import bad_parameter, require
from firstk.evaluation.operating_points import OperatingPoint, PrecisionTable
from firstk.evaluation.report.layout import Frame, Octaves, Values, shortened
from firstk.evaluation.report.palette import RAW, RAW_NAME, Look, assign
from firstk.evaluation.report.reading import score_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAME = Frame(width=760, height=392, left=52, right=620, top=52, bottom=342, labelled=True)
SMALL = Frame(width=380, height=312, left=44, right=362, top=52, bottom=264, labelled=False)
LEGEND_LINE = 20.0


def plot_tradeoff(table: PrecisionTable, chosen: OperatingPoint | None = None, ax: Axes | None = None) -> Axes:
    """Draw score against bytes per vector, a line for each precision, the front in black.

    Parameters
    ----------
    table : PrecisionTable
    chosen : OperatingPoint, optional
        One of the table's, marked with a ring.
    ax : matplotlib axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    ax : matplotlib axes
        ``ax.figure.savefig(path)`` writes it to a file.
    """
    pyplot = require("matplotlib.pyplot", "report", "plot_tradeoff")
    _check(table, chosen, "plot_tradeoff")
    if ax is None:
        ax = pyplot.subplots(figsize=(7.2, 3.8), layout="constrained")[1]
    for name, look in looks_of_precisions(table).items():
        points = [point for point in table.own if point.precision == name]
        bytes_, scores = [o.bytes for o in points], [o.score for o in points]
        ax.plot(bytes_, scores, color=look.color, marker="o", markersize=3, linewidth=1.2, label=name)
    front = table.pareto_front
    ax.step(
        [o.bytes for o in front], [o.score for o in front], where="post", color="#1b1d22", linewidth=0.8, label="front"
    )
    if table.input_score is not None:
        ax.axhline(table.input_score, color=RAW[0], linewidth=0.8, linestyle="--", label=RAW_NAME)
    if chosen is not None:
        label = f"k = {chosen.k}, {chosen.precision}"
        ax.plot([chosen.bytes], [chosen.score], "o", markersize=9, fillstyle="none", color="#1b1d22", label=label)
    ax.set_xscale("log", base=2)
    ticks = _bytes_axis(table).ticks(room=0.09)
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.set_xlabel("bytes per vector")
    ax.set_title(shortened(table.metric, 44), loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return ax


def draw_tradeoff(
    table: PrecisionTable, chosen: OperatingPoint | None = None, *, ids: str = "tradeoff", frame: Frame = FRAME
) -> str:
    """Draw the same as SVG, in the colours of the page's style sheet; `ids` tells several on one page apart."""
    _check(table, chosen, "draw_tradeoff")
    picture = _Picture(table, frame, _bytes_axis(table), _score_axis(table))
    parts = [
        f'<svg class="plot {"wide" if frame.labelled else "narrow"}" viewBox="0 0 {frame.width:g} {frame.height:g}" '
        f'role="img" aria-labelledby="{ids}-title {ids}-desc">',
        f'<title id="{ids}-title">{escape(table.metric)} against bytes per vector</title>',
        f'<desc id="{ids}-desc">{escape(describe(table))}</desc>',
        _axes(picture),
        *(_line(picture, name, look) for name, look in looks_of_precisions(table).items()),
        _front(picture),
        _legend(picture) if frame.labelled else "",
        "" if chosen is None else _ring(picture, chosen),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


def describe(table: PrecisionTable) -> str:
    """Say in words what the picture shows: the front, from the fewest bytes to the most."""
    front = "; ".join(
        f"{score_text(o.score)} in {o.bytes} bytes (k = {o.k}, {o.precision})" for o in table.pareto_front
    )
    raw = "" if table.input_score is None else f" {RAW_NAME.capitalize()}: {score_text(table.input_score)}."
    return f"No other is better for as few bytes: {front}.{raw}"


def _check(table: object, chosen: object, owner: str) -> None:
    if not isinstance(table, PrecisionTable):
        raise bad_parameter("table", owner, "a PrecisionTable", table)
    if chosen is not None and chosen not in table.points:
        raise bad_parameter("chosen", owner, "one of the table's points, or None", chosen)


def looks_of_precisions(table: PrecisionTable) -> dict[str, Look]:
    """Return how the line of each precision looks."""
    return dict(zip(table.precisions, assign(table.precisions, ()).values(), strict=True))


def _bytes_axis(table: PrecisionTable) -> Octaves:
    costs = [point.bytes for point in table.own]
    return Octaves(min(costs), max(costs))


def _score_axis(table: PrecisionTable) -> Values:
    raw = [] if table.input_score is None else [table.input_score]
    return Values.covering([*(point.score for point in table.own), *raw])


@dataclass(frozen=True)
class _Picture:
    """A table placed into a frame, with both of its axes."""

    table: PrecisionTable
    frame: Frame
    across: Octaves
    up: Values

    def point(self, one: OperatingPoint) -> tuple[float, float]:
        return self.frame.x(self.across.share(one.bytes)), self.frame.y(self.up.share(one.score))


def _axes(picture: _Picture) -> str:
    table, frame, up = picture.table, picture.frame, picture.up
    direction = "higher is better" if table.higher_is_better else "lower is better"
    metric = escape(shortened(table.metric, 60 if frame.labelled else 30))
    parts = [f'<g class="axis"><text class="measure" x="0" y="16">{metric}<tspan>, {direction}</tspan></text>']
    for tick, text in zip(up.ticks, up.texts(), strict=True):
        y, kind = frame.y(up.share(tick)), "base" if tick == up.ticks[0] else "grid"
        parts.append(
            f'<line class="{kind}" x1="{frame.left:g}" x2="{frame.right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{frame.left - 8:g}" y="{y + 4.5:.1f}" text-anchor="end">{text}</text>'
        )
    for tick in picture.across.ticks(46 / (frame.right - frame.left)):
        x = frame.x(picture.across.share(tick))
        parts.append(f'<text x="{x:.1f}" y="{frame.bottom + 20:g}" text-anchor="middle">{tick:,}</text>')
    middle = (frame.left + frame.right) / 2
    parts.append(f'<text x="{middle:.1f}" y="{frame.bottom + 42:g}" text-anchor="middle">bytes per vector</text></g>')
    if table.input_score is not None:
        y = frame.y(up.share(table.input_score))
        parts.append(
            f'<line class="raw" x1="{frame.left:g}" x2="{frame.right:g}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke-width="1" style="stroke:var(--raw)"><title>{RAW_NAME}</title></line>'
        )
    return "\n".join(parts)


def _line(picture: _Picture, name: str, look: Look) -> str:
    stored = [point for point in picture.table.own if point.precision == name]
    points = [picture.point(one) for one in stored]
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle data-offer="{o.k}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>k = {o.k}, {o.precision}: '
        f"{score_text(o.score)} in {o.bytes} bytes</title></circle>"
        for (x, y), o in zip(points, stored, strict=True)
    )
    dash = f' stroke-dasharray="{" ".join(f"{part:g}" for part in look.dash)}"' if look.dash else ""
    return (
        f'<g class="curve"><polyline points="{steps}" fill="none" stroke-width="1.5"{dash} '
        f'style="stroke:var(--{look.name})"/><g style="fill:var(--{look.name})">{dots}</g></g>'
    )


def _front(picture: _Picture) -> str:
    """Draw steps: until more bytes are spent, the score stays."""
    points = [picture.point(one) for one in picture.table.pareto_front]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    return f'<path class="front" d="{path}" fill="none" stroke-width="1" style="stroke:currentColor"/>'


def _legend(picture: _Picture) -> str:
    start = picture.frame.right + 16
    parts = []
    for i, (name, look) in enumerate(looks_of_precisions(picture.table).items()):
        y = picture.frame.top + LEGEND_LINE * i
        parts.append(
            f'<circle cx="{start:g}" cy="{y:g}" r="4" style="fill:var(--{look.name})"/>'
            f'<text x="{start + 12:g}" y="{y + 4.5:g}" style="fill:var(--{look.name})">{escape(name)}</text>'
        )
    return '<g class="names">' + "".join(parts) + "</g>"


def _ring(picture: _Picture, chosen: OperatingPoint) -> str:
    x, y = picture.point(chosen)
    return (
        f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="8" fill="none" stroke-width="2" '
        f'style="stroke:currentColor"><title>chosen: k = {chosen.k}, {chosen.precision}</title></circle>'
    )
