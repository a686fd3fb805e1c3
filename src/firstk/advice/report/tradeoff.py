"""Score against bytes per vector: every prefix length in every precision, and the front that no other beats.

Beside the encoder's own codes, muted, stand the raw vectors and baselines in the same bytes. Drawn twice from one
table: as SVG for the page, in matplotlib for notebooks and files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from firstk._base.checks import bad_parameter, require
from firstk.advice.report.layout import Frame, Octaves, Values, floor_of, shortened
from firstk.advice.report.palette import ASKED_LOOK, RAW, RAW_LOOK, RAW_NAME, Look, assign
from firstk.advice.report.reading import score_text
from firstk.advice.report.svg import broken_part, heading_of, stroke
from firstk.quality.evaluation import Evaluation
from firstk.quality.point import EMBEDDED, PRODUCT_QUANTIZER, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAME = Frame(width=760, height=412, left=52, right=612, top=52, bottom=362, labelled=True)
SMALL = Frame(width=380, height=312, left=44, right=362, top=52, bottom=264, labelled=False)
LEGEND_LINE = 20.0
Level = tuple[str, float]


def plot_tradeoff(table: Evaluation, chosen: Point | None = None, ax: Axes | None = None) -> Axes:
    """Draw score against bytes per vector, a line for each precision, the front in black, other codes in grey.

    Parameters
    ----------
    table : Evaluation
    chosen : Point, optional
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
    looks = looks_of_lines(table)
    for name, points in lines_of(table).items():
        look, own = looks[name], name in table.precisions
        ax.plot(
            [o.bytes for o in points], [o.score for o in points], label=name, color=look.color,
            marker="o" if own else "s", markersize=3, linewidth=1.2 if own else 0.7, linestyle="-" if own else ":",
        )  # fmt: skip
    front = table.pareto_front
    ax.step(
        [o.bytes for o in front], [o.score for o in front], where="post", color="#1b1d22", linewidth=0.8, label="front"
    )
    if table.input_score is not None:
        ax.axhline(table.input_score, color=RAW[0], linewidth=0.8, linestyle="--", label=RAW_NAME)
    if chosen is not None:
        label = name_of_point(chosen)
        ax.plot([chosen.bytes], [chosen.score], "o", markersize=9, fillstyle="none", color="#1b1d22", label=label)
    ax.set_xscale("log", base=2)
    ticks = _bytes_axis(table, None).ticks(room=0.09)
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.set_xlabel("bytes per vector")
    ax.set_title(shortened(table.metric, 44), loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return ax


def draw_tradeoff(
    table: Evaluation,
    chosen: Point | None = None,
    *,
    asked: Level | None = None,
    ids: str = "tradeoff",
    frame: Frame = FRAME,
) -> str:
    """Draw the same as SVG, in the colours of the page's style sheet; `ids` tells several on one page apart."""
    _check(table, chosen, "draw_tradeoff")
    picture = _placed(table, frame, asked)
    looks = looks_of_lines(table)
    parts = [
        f'<svg class="plot {"wide" if frame.labelled else "narrow"}" viewBox="0 0 {frame.width:g} {frame.height:g}" '
        f'role="img" aria-labelledby="{ids}-title {ids}-desc">',
        f'<title id="{ids}-title">{escape(table.metric)} against bytes per vector</title>',
        f'<desc id="{ids}-desc">{escape(describe(table))}</desc>',
        _axes(picture),
        # Others first: our own lie on top.
        _band(picture, looks.get(EMBEDDED)),
        *(_line(picture, points, looks[name]) for name, points in reversed(lines_of(table).items())),
        _front(picture),
        _legend(picture) if frame.labelled else "",
        "" if chosen is None else _ring(picture, chosen),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


def describe(table: Evaluation) -> str:
    """Say in words what the picture shows: the front, from the fewest bytes to the most."""
    front = "; ".join(f"{score_text(o.score)} in {o.bytes} bytes ({name_of_point(o)})" for o in table.pareto_front)
    raw = "" if table.input_score is None else f" {RAW_NAME.capitalize()}: {score_text(table.input_score)}."
    return f"Best score for its size: {front}.{raw}"


def name_of_point(point: Point) -> str:
    """Return what a picture calls a point."""
    if point.code == RAW_NAME or point.precision == PRODUCT_QUANTIZER:
        return ", ".join(dict.fromkeys((name_of_code(point.code), point.stored_as)))
    if not point.is_prefix:
        return ", ".join(part for part in (point.code, "embedded bits") if part)
    return ", ".join(part for part in (point.code, f"k = {point.k}", point.stored_as) if part)


def name_of_code(code: str) -> str:
    """Return what a picture calls the codes of others: faiss is known here for its product quantizer."""
    return PRODUCT_QUANTIZER if code == "faiss" else code


def lines_of(table: Evaluation) -> dict[str, tuple[Point, ...]]:
    """Return the points of each line: the encoder's own by precision, then the front of each other code."""
    # Float32 at the lengths of the other precisions: the curve above has all of them.
    shown = [o for o in table.own if not o.is_prefix or o.k in table.lengths]
    own = {name: tuple(o for o in shown if o.precision == name) for name in table.precisions}
    return own | {name_of_code(code): table.front_of(code) for code in table.codes}


def looks_of_lines(table: Evaluation) -> dict[str, Look]:
    """Return how each line looks: the encoder's own in colour, others in grey."""
    names = lines_of(table)
    others = [name for name in names if name not in table.precisions]
    return dict(zip(names, assign(table.precisions, others).values(), strict=True))


def _check(table: object, chosen: object, owner: str) -> None:
    if not isinstance(table, Evaluation):
        raise bad_parameter("table", owner, "a Evaluation", table)
    if chosen is not None and chosen not in table.points:
        raise bad_parameter("chosen", owner, "one of the table's points, or None", chosen)


# -- axes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Picture:
    """A table placed into a frame, with both of its axes and its levels."""

    table: Evaluation
    frame: Frame
    across: Octaves
    up: Values
    levels: tuple[tuple[Look, Level], ...]

    def shows(self, one: Point) -> bool:
        """Tell whether a point is within the axes."""
        return one.bytes >= self.across.low

    def point(self, one: Point) -> tuple[float, float]:
        return self.frame.x(self.across.share(one.bytes)), self.frame.y(self.up.share(one.score))


def _placed(table: Evaluation, frame: Frame, asked: Level | None) -> _Picture:
    levels: list[tuple[Look, Level]] = []
    if table.input_score is not None:
        levels.append((RAW_LOOK, (RAW_NAME, table.input_score)))
    if asked is not None:
        levels.append((ASKED_LOOK, asked))
    points = [one for line in lines_of(table).values() for one in line]
    scores = [*(one.score for one in points), *(score for _, (_, score) in levels)]
    whole = min([max(one.score for one in table.own), *(score for look, (_, score) in levels if look is RAW_LOOK)])
    floor = floor_of(scores, whole, None if asked is None else asked[1])
    across = _bytes_axis(table, floor)
    drawn = [one.score for one in points if one.bytes >= across.low] + [score for _, (_, score) in levels]
    return _Picture(table, frame, across, Values.covering(drawn, floor=floor), tuple(levels))


def _bytes_axis(table: Evaluation, floor: float | None) -> Octaves:
    """Return the axis of bytes: with a floor, from half of the fewest bytes that reach it."""
    points = [one for line in lines_of(table).values() for one in line]
    costs = [one.bytes for one in points]
    if floor is None:
        return Octaves(min(costs), max(costs))
    first = min(one.bytes for one in points if one.score >= floor) // 2
    return Octaves(max(min(costs), 1 << max(0, first.bit_length() - 1)), max(costs))


def _axes(picture: _Picture) -> str:
    table, frame, up = picture.table, picture.frame, picture.up
    heading = heading_of(table.metric, True, up, frame)
    parts = ['<g class="axis">', heading, broken_part(up, frame)]
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
    for look, (name, score) in picture.levels:
        y = frame.y(up.share(score))
        parts.append(
            f'<line class="{look.name}" x1="{frame.left:g}" x2="{frame.right:g}" y1="{y:.1f}" y2="{y:.1f}" '
            f"{stroke(look)}><title>{escape(name)}</title></line>"
        )
    return "\n".join(parts)


# -- marks -----------------------------------------------------------------------------------------------------------


def _line(picture: _Picture, line: Sequence[Point], look: Look) -> str:
    stored = [one for one in line if picture.shows(one)]
    points = [picture.point(one) for one in stored]
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    marks = "".join(_mark(one, x, y, look) for (x, y), one in zip(points, stored, strict=True))
    kind = "curve" if look.ours else "curve other"
    width = 1.5 if look.ours else 1.0
    dash = f' stroke-dasharray="{" ".join(f"{part:g}" for part in look.dash)}"' if look.dash else ""
    return (
        f'<g class="{kind}"><polyline points="{steps}" fill="none" stroke-width="{width}"{dash} '
        f'style="stroke:var(--{look.name})"/><g style="fill:var(--{look.name})">{marks}</g></g>'
    )


def _mark(one: Point, x: float, y: float, look: Look) -> str:
    """Draw a point: a dot that a slider finds by its k or bytes, or a small square for what is not our own."""
    title = f"<title>{escape(name_of_point(one))}: {score_text(one.score)} in {one.bytes} bytes</title>"
    if look.ours:
        place = f'data-offer="{one.k}"' if one.is_prefix else f'data-bytes="{one.bytes}"'
        return f'<circle {place} cx="{x:.1f}" cy="{y:.1f}" r="3">{title}</circle>'
    return f'<rect x="{x - 2.5:.1f}" y="{y - 2.5:.1f}" width="5" height="5">{title}</rect>'


def _band(picture: _Picture, look: Look | None) -> str:
    """Draw the intervals of embedded bits as a band around their line: they can be cut at any byte."""
    shown = [one for one in picture.table.embedded if picture.shows(one)]
    ends = [ends for one in shown if (ends := picture.table.interval_of(one)) is not None]
    if look is None or len(ends) < 2:
        return ""
    low, high = picture.up.ticks[0], picture.up.ticks[-1]
    across = [picture.point(one)[0] for one in shown]
    sides = (
        [
            (x, picture.frame.y(picture.up.share(min(max(pair[side], low), high))))
            for x, pair in zip(across, ends, strict=True)
        ]
        for side in (0, 1)
    )
    below, above = sides
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*below, *reversed(above)])
    return f'<polygon class="band" points="{corners}" style="fill:var(--{look.name})" fill-opacity="0.15"/>'


def _front(picture: _Picture) -> str:
    """Draw steps: until more bytes are spent, the score stays; with the interval of each of its points."""
    front = [one for one in picture.table.pareto_front if picture.shows(one)]
    points = [picture.point(one) for one in front]
    if not points:
        return ""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    intervals = ((x, picture.table.interval_of(one)) for (x, _), one in zip(points, front, strict=True))
    low, high = picture.up.ticks[0], picture.up.ticks[-1]
    whiskers = "".join(
        f"M{x:.1f} {picture.frame.y(picture.up.share(max(ends[0], low))):.1f}"
        f"V{picture.frame.y(picture.up.share(min(ends[1], high))):.1f}"
        for x, ends in intervals
        if ends is not None
    )
    bars = f'<path class="whiskers" d="{whiskers}" fill="none" stroke-width="1"/>' if whiskers else ""
    return f'{bars}<path class="front" d="{path}" fill="none" stroke-width="1" style="stroke:currentColor"/>'


def _legend(picture: _Picture) -> str:
    start = picture.frame.right + 16
    parts = []
    lines = [(name, look) for look, (name, _) in picture.levels]
    points = list(looks_of_lines(picture.table).items())
    names = [name for name, _ in lines]
    for i, (name, look) in enumerate([*points, *lines]):
        y = picture.frame.top + LEGEND_LINE * i
        level = i >= len(points)
        if level:
            sign = f'<line x1="{start - 6:g}" x2="{start + 6:g}" y1="{y:g}" y2="{y:g}" {stroke(look)}/>'
        elif look.ours:
            sign = f'<circle cx="{start:g}" cy="{y:g}" r="4" style="fill:var(--{look.name})"/>'
        else:
            sign = f'<rect x="{start - 3:g}" y="{y - 3:g}" width="6" height="6" style="fill:var(--{look.name})"/>'
        text = "raw, rounded" if not level and name in names else name
        parts.append(
            f'{sign}<text x="{start + 12:g}" y="{y + 4.5:g}" style="fill:var(--{look.name})">{escape(text)}</text>'
        )
    return '<g class="names">' + "".join(parts) + "</g>"


def _ring(picture: _Picture, chosen: Point) -> str:
    if not picture.shows(chosen):
        return ""
    x, y = picture.point(chosen)
    return (
        f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="8" fill="none" stroke-width="2" '
        f'style="stroke:currentColor"><title>chosen: {escape(name_of_point(chosen))}</title></circle>'
    )
