"""Pieces of charts as inline SVG: pictures, axes, levels and styles of lines.

Text in an SVG shrinks with it, so a phone gets its own drawing (`NARROW`) and not a small copy of the wide one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from firstk.advice.records import AxisStatistics
from firstk.advice.report.html import Html, element
from firstk.advice.report.layout import (
    ASKED_LOOK,
    FEW_POINTS,
    RAW_LOOK,
    RAW_NAME,
    Frame,
    Look,
    Octaves,
    Values,
    floor_of,
    shortened,
    spread,
)
from firstk.advice.report.page import Curves, Page, name_of
from firstk.quality.curve import PrefixCurve
from firstk.words.text import score_text

WIDE = Frame(width=760, height=392, left=52, right=740, top=52, bottom=342, labelled=True)
NARROW = Frame(width=380, height=312, left=44, right=362, top=52, bottom=264, labelled=False)
# Width of an average letter at 13 pixels.
LETTER = 6.6


def picture(frame: Frame, ids: str, title: str, description: str, *inside: object, kind: str, **more: object) -> Html:
    """Return an SVG of the size of a frame, with what it shows in words for those who do not see it."""
    size = "wide" if frame.labelled else "narrow"
    ids = f"{ids}-{size}"
    return element(
        "svg",
        element("title", title, id=f"{ids}-title"),
        element("desc", description, id=f"{ids}-desc"),
        *inside,
        class_=f"{kind} {size}",
        viewBox=f"0 0 {frame.width:g} {frame.height:g}",
        role="img",
        aria_labelledby=f"{ids}-title {ids}-desc",
        **more,
    )


def edges(frame: Frame) -> dict[str, float]:
    """Return attributes by which the script finds the edges of the plot."""
    return {f"data_{edge}": getattr(frame, edge) for edge in ("left", "right", "top", "bottom")}


def heading_of(metric: str, higher_is_better: bool, up: Values, frame: Frame) -> Html:
    """Return the line above a chart: what is measured, which way is better, and where the axis is broken."""
    said = "higher is better" if higher_is_better else "lower is better"
    if up.broken:  # a narrow chart has no room for both
        said = f"{said}; the scale is " * frame.labelled + f"compressed below {up.texts()[1]}"
    name = shortened(metric, round((frame.right - frame.left) / LETTER) - len(said))
    return element("text", name, element("tspan", f", {said}"), class_="measure", x=0, y=16)


def value_axis(up: Values, frame: Frame, base: float | None = None) -> list[Html]:
    """Return a line with its number for each tick, a solid one at `base`; and the part that is compressed, if any."""
    parts = []
    if up.broken:
        y = frame.y(up.share(up.ticks[1]))
        size = {"width": frame.right - frame.left, "height": frame.bottom - y}
        parts.append(element("rect", class_="compressed", x=frame.left, y=y, **size))
    for tick, text in zip(up.ticks, up.texts(), strict=True):
        y, kind = frame.y(up.share(tick)), "base" if tick == base else "grid"
        parts.append(element("line", class_=kind, x1=frame.left, x2=frame.right, y1=y, y2=y))
        parts.append(element("text", text, x=frame.left - 8, y=y + 4.5, text_anchor="end"))
    return parts


def octave_axis(across: Octaves, frame: Frame, name: str, room: float = 40.0) -> list[Html]:
    """Return numbers below a plot, about `room` pixels apart, with what they are."""
    parts = []
    for k in across.ticks(room / (frame.right - frame.left)):
        x = frame.x(across.share(k))
        parts.append(element("line", class_="base", x1=x, x2=x, y1=frame.bottom, y2=frame.bottom + 5))
        parts.append(element("text", f"{k:,}", x=x, y=frame.bottom + 20, text_anchor="middle"))
    return [*parts, axis_name(frame, name)]


def axis_name(frame: Frame, name: str) -> Html:
    """Return what a horizontal axis shows."""
    return element("text", name, x=(frame.left + frame.right) / 2, y=frame.bottom + 42, text_anchor="middle")


def line_style(look: Look) -> dict[str, Any]:
    """Return the attributes by which a line gets its colour, width and dashes."""
    dash = " ".join(f"{part:g}" for part in look.dash) or None
    return {"fill": "none", "stroke_width": str(look.width), "stroke_dasharray": dash, "style": stroke_of(look)}


def stroke_of(look: Look) -> str:
    """Return the style of a stroke in the colour of a line."""
    return f"stroke:var(--{look.name})"


def fill_of(look: Look) -> str:
    """Return the style of a filling in the colour of a line."""
    return f"fill:var(--{look.name})"


def swatch(look: Look) -> Html:
    """Draw a short piece of a line, for a legend."""
    line = element("line", x1=1, y1=5, x2=27, y2=5, **line_style(look))
    return element("svg", line, class_="swatch", viewBox="0 0 28 10", width=28, height=10, aria_hidden="true")


def level(frame: Frame, y: float, look: Look, name: str | None = None) -> Html:
    """Draw a score as a line across a plot."""
    title = element("title", name) if name else None
    return element("line", title, class_=look.name, x1=frame.left, x2=frame.right, y1=y, y2=y, **line_style(look))


def points_of(corners: list[tuple[float, float]]) -> str:
    """Return corners as the points of a polyline or polygon."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)


PANEL, GAP, TOP = 82.0, 40.0, 52.0  # Height of a panel, distance of two, and room above the first.
PLOT = Frame(width=380, height=300, left=56, right=364, top=36, bottom=250, labelled=False)
NAMED_POINTS = 6  # So many of the first coordinates have their number next to their point.


def statistics_of(axes: AxisStatistics) -> list[tuple[str, tuple[float, ...]]]:
    """Return what the panels and the table show: names and values."""
    shown = [("spectrum", axes.spectrum), ("mean |z|", axes.magnitude), ("variance of z", axes.variance)]
    return shown + ([(axes.measure, axes.usefulness)] if axes.usefulness else [])


def panels(axes: AxisStatistics, heading: str, number: int, frame: Frame, across: Octaves, k: int) -> Html:
    """Draw a bar for each coordinate, in a panel for each statistic."""
    shown = statistics_of(axes)
    bottom = TOP + len(shown) * PANEL + (len(shown) - 1) * GAP
    whole = replace(frame, top=TOP, bottom=bottom, height=bottom + 50)
    line, drawn = element("line", y1=TOP - 14, y2=bottom), list[Html]()
    for i, (name, values) in enumerate(shown):
        panel = replace(whole, top=TOP + i * (PANEL + GAP), bottom=TOP + i * (PANEL + GAP) + PANEL)
        up = Values.covering([0.0, *values], about=2)
        measure = element("text", name, class_="measure", x=panel.left, y=panel.top - 10)
        zero, stems = panel.y(up.share(0.0)), []
        for j, value in enumerate(values, start=1):
            path = f"M{panel.x(across.share(j)):.1f} {zero:.1f}V{panel.y(up.share(value)):.1f}"
            stems.append(element("path", data_k=j, class_="cut" if j > k else None, d=path))
        # A width at which most stems stand apart: the right end of a log axis is dense.
        middle = max(2, len(values) // 2)
        apart = panel.x(across.share(middle)) - panel.x(across.share(middle - 1)) if across.low < across.high else 8.0
        width = f"{min(max(0.6 * apart, 1.0), 6.0):.2f}"
        drawn.append(element("g", measure, value_axis(up, panel, base=0.0), class_="axis"))
        drawn.append(element("g", stems, class_="stems", stroke_width=width))
    said = "; ".join(
        f"{name} from {score_text(values[0], 4)} at coordinate 1 to {score_text(values[-1], 4)} at coordinate {axes.d}"
        for name, values in shown
    )
    return picture(
        whole,
        f"axes-{number}",
        heading,
        f"A bar for each of {axes.d} coordinates. {said}.",
        drawn,
        element("g", octave_axis(across, whole, "coordinate"), class_="axis"),
        element("g", line, class_="cursor", transform=f"translate({whole.x(across.share(k)):.1f} 0)"),
        kind="chart axes",
        **edges(whole),
    )


def scatter(axes: AxisStatistics, k: int) -> Html | None:
    """Draw mean |z| against usefulness, one point per coordinate (Talukder et al. 2026 figure 2, panels v and vi)."""
    if not axes.usefulness:
        return None
    across, up = Values.covering([0.0, *axes.magnitude], about=3), Values.covering(axes.usefulness, about=4)
    heading = element("text", axes.measure, element("tspan", " against mean |z|"), class_="measure", x=0, y=16)
    ticks = [
        element("text", text, x=PLOT.x(across.share(tick)), y=PLOT.bottom + 20, text_anchor="middle")
        for tick, text in zip(across.ticks, across.texts(), strict=True)
    ]
    points = []
    for j, (size, use) in enumerate(zip(axes.magnitude, axes.usefulness, strict=True), start=1):
        x, y = PLOT.x(across.share(size)), PLOT.y(up.share(use))
        title, cut = element("title", f"coordinate {j}"), "cut" if j > k else None
        points.append(element("circle", title, data_k=j, class_=cut, cx=x, cy=y, r="3.5"))
        if j <= NAMED_POINTS:
            points.append(element("text", str(j), x=x + 7, y=y - 5))
    caption = "A rank correlation means nothing here: one of the two does not vary."
    if axes.rank_correlation is not None:
        caption = f"Rank correlation (Spearman) of mean |z| and {axes.measure}: {axes.rank_correlation:.3f}."
    drawing = element(
        "svg",
        element("g", heading, value_axis(up, PLOT), ticks, axis_name(PLOT, "mean |z|"), class_="axis"),
        element("g", points, class_="points"),
        class_="plot",
        viewBox=f"0 0 {PLOT.width:g} {PLOT.height:g}",
        role="img",
        aria_label=f"{axes.measure} against mean |z|. {caption}",
    )
    return element("figure", drawing, element("figcaption", caption), class_="scatter")


# Distance of two lines of text at 13 pixels, and space between the plot and a name.
LINE, LEADER, SWATCH, PAD = 18.0, 16.0, 24.0, 6.0


def frames_for(page: Page) -> tuple[Frame, Frame]:
    """Return the wide and the narrow frame: one pair for all charts over k, so that they and the slider line up."""
    names = [shortened(name_of(curve)) for chart in page.charts for curve in chart.everything]
    gutter = LEADER + SWATCH + PAD + LETTER * max(map(len, [*names, RAW_NAME]))
    most = max(len(chart.everything) + len(levels_of(chart)) for chart in page.charts)
    extra = max(0.0, LINE * most - (WIDE.bottom - WIDE.top))
    wide = replace(WIDE, right=WIDE.width - gutter - 4, height=WIDE.height + extra, bottom=WIDE.bottom + extra)
    return wide, NARROW


def levels_of(chart: Curves) -> list[tuple[str, Look, float]]:
    """Return the levels of a chart, with names and looks: the raw vectors, and the score that is to be kept."""
    raw = [(RAW_NAME, RAW_LOOK, score) for score in chart.input_scores]
    return raw if chart.asked is None else [*raw, (chart.asked[0], ASKED_LOOK, chart.asked[1])]


def described(chart: Curves) -> str:
    """Say in words what the chart shows, for those who do not see it."""
    parts = [
        f"{name_of(curve)} from {score_text(curve.score[0], 4)} at k = {curve.k[0]} to "
        f"{score_text(curve.score[-1], 4)} at k = {curve.k[-1]}"
        for curve in chart.everything
    ]
    parts += [f"{name} {score_text(score, 4)}" for name, _, score in levels_of(chart)]
    return f"{chart.metric} against the number of coordinates kept. {'; '.join(parts)}."


@dataclass(frozen=True)
class CurveChart:
    """A chart placed into a frame, with both of its axes; all charts of a page share the horizontal one."""

    chart: Curves
    looks: Mapping[tuple[bool, str], Look]
    frame: Frame
    across: Octaves
    up: Values

    @classmethod
    def on(cls, page: Page, chart: Curves, frame: Frame) -> CurveChart:
        """Place a chart of a page into a frame."""
        ends = chain(*((curve.low or ()) + (curve.high or ()) for curve in chart.everything))
        scores = [*chain(*(curve.score for curve in chart.everything)), *chart.input_scores, *ends]
        scores += [*(() if chart.asked is None else chart.asked[1:]), *(chart.input_interval or ())]
        floor = None
        if chart.higher_is_better:  # far below the raw vectors, the best and the chosen k, the axis is compressed
            whole = min([max(max(curve.score) for curve in chart.curves), *chart.input_scores])
            floor = floor_of(scores, whole, None if chart.asked is None else chart.asked[1])
        if floor is not None and (k := page.chosen_k) is not None:
            floor = min([floor, *(0.95 * curve.at(k) for curve in chart.curves if k in curve.k)])
        up = Values.covering(scores, floor=floor)
        return cls(chart, page.looks, frame, Octaves(page.stops[0], page.stops[-1]), up)

    def draw(self, heading: str, number: int, k: int, chosen_k: int | None) -> Html:
        """Draw the chart with its line at `k`; `number` is its place among the charts of the page."""
        frame, chart = self.frame, self.chart
        drawn = [(curve, self.looks[line]) for curve, line in zip(chart.everything, chart.lines, strict=True)]
        choice = band = None
        if chosen_k is not None:  # a mark on the axis, which stays when the line is moved
            path = f"M{self._x(chosen_k):.1f} {frame.bottom:g}l-5 8h10z"
            choice = element("path", element("title", f"chosen: k = {chosen_k}"), class_="choice", d=path)
        if chart.input_interval is not None:  # of the raw vectors' score
            low, high = map(self._y, chart.input_interval)
            size = {"width": frame.right - frame.left, "height": low - high}
            band = element("rect", class_="band", x=frame.left, y=high, **size, style=fill_of(RAW_LOOK))
        axes = [
            heading_of(chart.metric, chart.higher_is_better, self.up, frame),
            *value_axis(self.up, frame, base=self.up.ticks[0]),
            *octave_axis(self.across, frame, "k, coordinates kept"),
        ]
        return picture(
            frame,
            f"chart-{number}",
            heading,
            described(chart),
            element("g", axes, class_="axis"),
            choice,
            band,
            [level(frame, self._y(score), look) for _, look, score in levels_of(chart)],
            [self._curve(*one) for one in reversed(drawn)],  # baselines first: ours lie on top
            self._names(drawn) if frame.labelled else None,
            self._cursor(drawn, k),
            kind="chart",
            data_chart=number,
            **edges(frame),
        )

    def _x(self, k: int) -> float:
        return self.frame.x(self.across.share(k))

    def _y(self, score: float) -> float:
        return self.frame.y(self.up.share(score))

    def _path(self, curve: PrefixCurve, scores: Sequence[float]) -> list[tuple[float, float]]:
        """Return the corners of a line, less those within half a pixel: the right end of a log axis is dense."""
        kept: list[tuple[float, float]] = []
        for point in ((self._x(k), self._y(score)) for k, score in zip(curve.k, scores, strict=True)):
            if len(kept) > 1 and point[0] - kept[-2][0] < 0.5:
                kept[-1] = point
            else:
                kept.append(point)
        return kept

    def _curve(self, curve: PrefixCurve, look: Look) -> Html:
        marked = [(self._x(k), self._y(score)) for k, score in curve] if len(curve) <= FEW_POINTS else []
        if not marked and curve.k[-1] < self.across.high:
            # The curve of a narrower code ends inside the plot: the dot says that it is meant to.
            marked = [(self._x(curve.k[-1]), self._y(curve.score[-1]))]
        size = "2.6" if look.ours else "2.1"
        band = None
        if curve.low is not None and curve.high is not None:
            corners = points_of([*self._path(curve, curve.high), *reversed(self._path(curve, curve.low))])
            band = element("polygon", class_="band" if look.ours else "band other", points=corners, style=fill_of(look))
        return element(
            "g",
            element("title", name_of(curve)),
            band,
            element("polyline", points=points_of(self._path(curve, curve.score)), **line_style(look)),
            element("g", [element("circle", cx=x, cy=y, r=size) for x, y in marked], style=fill_of(look)),
            class_="curve",
        )

    def _names(self, drawn: Sequence[tuple[PrefixCurve, Look]]) -> Html:
        """Write the names of curves next to their ends, moved apart where they would overlap."""
        frame = self.frame
        lines = [(name_of(c), look, c.score[-1], c.k[-1] == self.across.high) for c, look in drawn]
        lines += [(name, look, score, True) for name, look, score in levels_of(self.chart)]
        ends = [self._y(score) for _, _, score, _ in lines]
        places = spread(ends, LINE, frame.top, frame.bottom)
        start, parts = frame.right + LEADER, []
        for (name, look, _, reaches), end, y in zip(lines, ends, places, strict=True):
            # A curve that ends inside the plot has no end at its edge to lead to.
            ways = {"x1": frame.right + 3, "y1": end, "x2": start - 2, "y2": y}
            parts.append(element("line", class_="leader", **ways, style=stroke_of(look)) if reaches else None)
            parts.append(element("line", x1=start, x2=start + SWATCH, y1=y, y2=y, **line_style(look)))
            place = {"x": start + SWATCH + PAD, "y": y + 4.5, "style": fill_of(look)}
            parts.append(element("text", shortened(name), class_="ours" if look.ours else None, **place))
        return element("g", parts, class_="names")

    def _cursor(self, drawn: Sequence[tuple[PrefixCurve, Look]], k: int) -> Html:
        """Draw the line at k, with a dot for each curve that was evaluated at this very k."""
        dots = [
            element(
                "circle",
                data_curve=number,
                cy=self._y(curve.at(k)) if k in curve.k else self.frame.bottom,
                r="4.5" if look.ours else "3.5",
                style=f"{stroke_of(look)};fill:var(--{look.name if look.ours else 'paper'})",
                hidden=k not in curve.k,
            )
            for number, (curve, look) in enumerate(drawn)
        ]
        return element(
            "g",
            element("line", y1=self.frame.top - 6, y2=self.frame.bottom),
            element("text", f"k = {k}", y=self.frame.top - 12, text_anchor="middle"),
            reversed(dots),
            class_="cursor",
            transform=f"translate({self._x(k):.1f} 0)",
        )

    def heights(self, stops: Sequence[int]) -> list[list[float | None]]:
        """Return the place of every curve at every stop, where it has one, as a share of the axis: for the script."""
        return [
            [round(self.up.share(curve.at(k)), 5) if k in curve.k else None for k in stops]
            for curve in self.chart.everything
        ]
