"""One chart as inline SVG: axes, curves, their names at the right, and a line at one k that a script can move.

Text in an SVG shrinks with it, so a phone gets its own drawing (`NARROW`) and not a small copy of the wide one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import chain

from firstk.advice.report.layout import FEW_POINTS, Frame, Octaves, Values, floor_of, shortened, stacked
from firstk.advice.report.page import Page, Section, drawn, looks_of, name_of
from firstk.advice.report.palette import ASKED_LOOK, RAW_LOOK, RAW_NAME, Look
from firstk.advice.report.reading import read, score_text, size_of
from firstk.quality.curve import PrefixCurve

WIDE = Frame(width=760, height=392, left=52, right=740, top=52, bottom=342, labelled=True)
NARROW = Frame(width=380, height=312, left=44, right=362, top=52, bottom=264, labelled=False)

LETTER, LINE = 6.6, 18.0  # Width of an average letter and distance of two lines, at 13 pixels.
LEADER, SWATCH, PAD = 16.0, 24.0, 6.0  # Space between the plot and a name.


@dataclass(frozen=True)
class Chart:
    """A section placed into a frame, with both of its axes."""

    section: Section
    drawn: Sequence[tuple[PrefixCurve, Look]]
    frame: Frame
    across: Octaves
    up: Values

    def point(self, k: int, score: float) -> tuple[float, float]:
        """Coordinates of a score at k."""
        return self.frame.x(self.across.share(k)), self.frame.y(self.up.share(score))


def frames_for(page: Page) -> tuple[Frame, Frame]:
    """Return the wide and the narrow frame: one pair for all charts, so that they and the slider line up."""
    names = [shortened(name_of(curve)) for section in page.curve_sections for curve in section.everything]
    gutter = LEADER + SWATCH + PAD + LETTER * max(map(len, [*names, RAW_NAME]))
    most = max(len(section.everything) + len(named_levels(section)) for section in page.curve_sections)
    extra = max(0.0, LINE * most - (WIDE.bottom - WIDE.top))
    wide = replace(WIDE, right=WIDE.width - gutter - 4, height=WIDE.height + extra, bottom=WIDE.bottom + extra)
    return wide, NARROW


def chart_for(page: Page, section: Section, frame: Frame) -> Chart:
    """Place a section into a frame. All charts of a page share the horizontal axis."""
    ends = chain(*((curve.low or ()) + (curve.high or ()) for curve in section.everything))
    scores: Iterable[float] = chain(*(curve.score for curve in section.everything), section.input_scores, ends)
    levels = () if section.asked is None else section.asked[1:]
    scores = list(chain(scores, levels, section.input_interval or ()))
    lines = drawn(section, looks_of(page))
    up = Values.covering(scores, floor=_floor(page, section, scores))
    return Chart(section, lines, frame, Octaves(page.stops[0], page.stops[-1]), up)


def _floor(page: Page, section: Section, scores: Sequence[float]) -> float | None:
    """Return the score below which the axis is compressed: far below the raw vectors, the best and the chosen k."""
    if not section.higher_is_better:
        return None
    whole = min([max(max(curve.score) for curve in section.curves), *section.input_scores])
    floor = floor_of(scores, whole, None if section.asked is None else section.asked[1])
    if floor is None or page.chosen_k is None:
        return floor
    return min([floor, *(0.95 * curve.at(page.chosen_k) for curve in section.curves if page.chosen_k in curve.k)])


def draw(chart: Chart, number: int, k: int, chosen_k: int | None) -> str:
    """Draw a chart with its line at `k`; `number` is that of the section."""
    frame = chart.frame
    kind = "wide" if frame.labelled else "narrow"
    ids = f"chart-{number}-{kind}"
    edges = " ".join(f'data-{edge}="{getattr(frame, edge):.1f}"' for edge in ("left", "right", "top", "bottom"))
    parts = [
        f'<svg class="chart {kind}" viewBox="0 0 {frame.width:g} {frame.height:g}" role="img" '
        f'aria-labelledby="{ids}-title {ids}-desc" data-section="{number}" {edges}>',
        f'<title id="{ids}-title">{escape(chart.section.heading)}</title>',
        f'<desc id="{ids}-desc">{escape(describe(chart.section))}</desc>',
        _axes(chart),
        "" if chosen_k is None else _choice(chart, chosen_k),
        _levels(chart),
        # Baselines first: ours lie on top.
        *(_curve(chart, curve, look) for curve, look in reversed(chart.drawn)),
        _names(chart) if frame.labelled else "",
        _cursor(chart, k),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


def describe(section: Section) -> str:
    """Say in words what the chart shows, for those who do not see it."""
    parts = []
    for curve in section.everything:
        first, last = (score_text(score, size_of(curve)) for score in (curve.score[0], curve.score[-1]))
        parts.append(f"{name_of(curve)} from {first} at k = {curve.k[0]} to {last} at k = {curve.k[-1]}")
    parts += [f"{name} {score_text(score)}" for name, _, score in named_levels(section)]
    return f"{section.metric} against the number of coordinates kept. {'; '.join(parts)}."


def swatch(look: Look) -> str:
    """Draw a short piece of a line, for a legend."""
    return (
        '<svg class="swatch" viewBox="0 0 28 10" width="28" height="10" aria-hidden="true">'
        f'<line x1="1" y1="5" x2="27" y2="5" {stroke(look)}/></svg>'
    )


def _axes(chart: Chart) -> str:
    frame, section = chart.frame, chart.section
    room = 40 / (frame.right - frame.left)
    heading = heading_of(section.metric, section.higher_is_better, chart.up, frame)
    parts = ['<g class="axis">', heading, broken_part(chart.up, frame)]
    for tick, text in zip(chart.up.ticks, chart.up.texts(), strict=True):
        y = frame.y(chart.up.share(tick))
        kind = "base" if tick == chart.up.ticks[0] else "grid"
        parts.append(
            f'<line class="{kind}" x1="{frame.left:g}" x2="{frame.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{frame.left - 8:g}" y="{y + 4.5:.1f}" text-anchor="end">{text}</text>'
        )
    for k in chart.across.ticks(room):
        x = frame.x(chart.across.share(k))
        parts.append(
            f'<line class="base" x1="{x:.1f}" x2="{x:.1f}" y1="{frame.bottom:g}" y2="{frame.bottom + 5:g}"/>'
            f'<text x="{x:.1f}" y="{frame.bottom + 20:g}" text-anchor="middle">{k}</text>'
        )
    middle = (frame.left + frame.right) / 2
    parts.append(
        f'<text x="{middle:.1f}" y="{frame.bottom + 42:g}" text-anchor="middle">k, coordinates kept</text></g>'
    )
    return "\n".join(parts)


def broken_part(up: Values, frame: Frame) -> str:
    """Mark the part of a broken axis that is compressed."""
    if not up.broken:
        return ""
    y = frame.y(up.share(up.ticks[1]))
    return (
        f'<rect class="compressed" x="{frame.left:g}" y="{y:.1f}" width="{frame.right - frame.left:.1f}" '
        f'height="{frame.bottom - y:.1f}"/>'
    )


def heading_of(metric: str, higher_is_better: bool, up: Values, frame: Frame) -> str:
    """Return the line above a chart: what is measured, which way is better, and where the axis is broken."""
    said = "higher is better" if higher_is_better else "lower is better"
    if up.broken:
        said += f"; {'the scale is ' if frame.labelled else ''}compressed below {up.texts()[1]}"
    name = escape(shortened(metric, round((frame.right - frame.left) / LETTER) - len(said)))
    return f'<text class="measure" x="0" y="16">{name}<tspan>, {said}</tspan></text>'


def _choice(chart: Chart, k: int) -> str:
    """Mark the chosen k on the axis; it stays when the line is moved."""
    x, y = chart.frame.x(chart.across.share(k)), chart.frame.bottom
    return f'<path class="choice" d="M{x:.1f} {y:g}l-5 8h10z"><title>chosen: k = {k}</title></path>'


def _levels(chart: Chart) -> str:
    """Draw the score of the raw vectors with its interval, and the score that is to be kept."""
    frame, section = chart.frame, chart.section
    drawn = [
        f'<line class="{look.name}" x1="{frame.left:g}" x2="{frame.right:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
        f"{stroke(look)}/>"
        for _, look, score in named_levels(section)
        for y in (frame.y(chart.up.share(score)),)
    ]
    if section.input_interval is not None:
        low, high = (frame.y(chart.up.share(end)) for end in section.input_interval)
        drawn.insert(
            0,
            f'<rect class="band" x="{frame.left:g}" y="{high:.1f}" width="{frame.right - frame.left:.1f}" '
            f'height="{low - high:.1f}" style="fill:var(--{RAW_LOOK.name})"/>',
        )
    return "\n".join(drawn)


def _curve(chart: Chart, curve: PrefixCurve, look: Look) -> str:
    points = [chart.point(k, score) for k, score in curve]
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in _visible(points))
    marked = points if len(points) <= FEW_POINTS else []
    if curve.k[-1] < chart.across.high:
        # The curve of a narrower code ends inside the plot: the dot says that it is meant to.
        marked = marked or points[-1:]
    size = 2.6 if look.ours else 2.1
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>' for x, y in marked)
    title = f"<title>{escape(name_of(curve))}</title>"
    return (
        f'<g class="curve">{title}{_band(chart, curve, look)}<polyline points="{steps}" {stroke(look)}/>'
        f'<g style="fill:var(--{look.name})">{dots}</g></g>'
    )


def _band(chart: Chart, curve: PrefixCurve, look: Look) -> str:
    """Draw the intervals of a curve as one area behind it."""
    if curve.low is None or curve.high is None:
        return ""
    there = _visible(chart.point(k, score) for k, score in zip(curve.k, curve.high, strict=True))
    back = _visible(chart.point(k, score) for k, score in zip(curve.k, curve.low, strict=True))
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in chain(there, reversed(back)))
    kind = "band" if look.ours else "band other"
    return f'<polygon class="{kind}" points="{corners}" style="fill:var(--{look.name})"/>'


def _visible(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Drop points less than half a pixel from the one before: the right end of a log axis is dense with them."""
    kept: list[tuple[float, float]] = []
    for point in points:
        if len(kept) > 1 and point[0] - kept[-2][0] < 0.5:
            kept[-1] = point
        else:
            kept.append(point)
    return kept


def _names(chart: Chart) -> str:
    """Write the names of curves next to their ends, moved apart where they would overlap."""
    frame, curves, levels = chart.frame, chart.section.everything, named_levels(chart.section)
    scores = (*(curve.score[-1] for curve in curves), *(score for _, _, score in levels))
    ends = [frame.y(chart.up.share(score)) for score in scores]
    places = stacked(curves, ends, LINE, frame.top, frame.bottom)
    lines = [(name_of(curve), look, curve.k[-1] == chart.across.high) for curve, look in chart.drawn]
    lines += [(name, look, True) for name, look, _ in levels]
    names = [
        _name(frame, name, look, end if reaches else None, y)
        for (name, look, reaches), end, y in zip(lines, ends, places, strict=True)
    ]
    return '<g class="names">' + "\n".join(names) + "</g>"


def named_levels(section: Section) -> list[tuple[str, Look, float]]:
    """Return the levels of a chart, with names and looks: the raw vectors, and the score that is to be kept."""
    raw = [(RAW_NAME, RAW_LOOK, score) for score in section.input_scores]
    return raw if section.asked is None else [*raw, (section.asked[0], ASKED_LOOK, section.asked[1])]


def _name(frame: Frame, name: str, look: Look, end: float | None, y: float) -> str:
    start = frame.right + LEADER
    leader = (
        ""
        if end is None
        else f'<line class="leader" x1="{frame.right + 3:.1f}" y1="{end:.1f}" x2="{start - 2:.1f}" y2="{y:.1f}" '
        f'style="stroke:var(--{look.name})"/>'
    )
    weight = ' class="ours"' if look.ours else ""
    return (
        f'{leader}<line x1="{start:.1f}" x2="{start + SWATCH:.1f}" y1="{y:.1f}" y2="{y:.1f}" {stroke(look)}/>'
        f'<text{weight} x="{start + SWATCH + PAD:.1f}" y="{y + 4.5:.1f}" style="fill:var(--{look.name})">'
        f"{escape(shortened(name))}</text>"
    )


def _cursor(chart: Chart, k: int) -> str:
    frame = chart.frame
    share = chart.across.share(k)
    dots = []
    for number, (curve, look) in enumerate(chart.drawn):
        reading = read(curve, k)
        # A curve that was not evaluated at this very k has a reading in the table, and no dot on the line.
        shown = reading is not None and reading.k == k
        y = frame.y(chart.up.share(reading.score)) if reading else frame.bottom
        dots.append(
            f'<circle data-curve="{number}" cy="{y:.1f}" r="{4.5 if look.ours else 3.5}" '
            f'style="stroke:var(--{look.name});fill:var(--{look.name if look.ours else "paper"})"'
            f"{'' if shown else ' hidden'}/>"
        )
    return (
        f'<g class="cursor" transform="translate({frame.x(share):.1f} 0)">'
        f'<line y1="{frame.top - 6:g}" y2="{frame.bottom:g}"/>'
        f'<text y="{frame.top - 12:g}" text-anchor="middle">k = {k}</text>{"".join(reversed(dots))}</g>'
    )


def stroke(look: Look) -> str:
    """Return the attributes by which a line gets its colour, width and dashes."""
    dash = f' stroke-dasharray="{" ".join(f"{part:g}" for part in look.dash)}"' if look.dash else ""
    return f'fill="none" stroke-width="{look.width}"{dash} style="stroke:var(--{look.name})"'


def heights(chart: Chart) -> list[Sequence[float]]:
    """Position of every score of every curve as a share of the vertical axis, for the script."""
    return [[round(chart.up.share(score), 5) for score in curve.score] for curve in chart.section.everything]
