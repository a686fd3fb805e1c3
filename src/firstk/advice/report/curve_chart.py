"""The chart of scores against k: curves with bands, their names, and a line at one k that a script moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from firstk.advice.report.html import Html, element
from firstk.advice.report.layout import FEW_POINTS, Frame, Octaves, Values, floor_of, shortened, spread
from firstk.advice.report.page import Curves, Page, name_of
from firstk.advice.report.palette import ASKED_LOOK, RAW_LOOK, RAW_NAME, Look
from firstk.advice.report.svg import (
    LETTER,
    NARROW,
    WIDE,
    edges,
    fill_of,
    heading_of,
    level,
    line_style,
    octave_axis,
    picture,
    points_of,
    stroke_of,
    value_axis,
)
from firstk.quality.curve import PrefixCurve
from firstk.words.text import score_text

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


def describe(chart: Curves) -> str:
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
        up = Values.covering(scores, floor=_floor(page.chosen_k, chart, scores))
        return cls(chart, page.looks, frame, Octaves(page.stops[0], page.stops[-1]), up)

    def draw(self, heading: str, number: int, k: int, chosen_k: int | None) -> Html:
        """Draw the chart with its line at `k`; `number` is its place among the charts of the page."""
        frame, chart = self.frame, self.chart
        drawn = [(curve, self.looks[line]) for curve, line in zip(chart.everything, chart.lines, strict=True)]
        axes = [
            heading_of(chart.metric, chart.higher_is_better, self.up, frame),
            *value_axis(self.up, frame, base=self.up.ticks[0]),
            *octave_axis(self.across, frame, "k, coordinates kept"),
        ]
        return picture(
            frame,
            f"chart-{number}",
            heading,
            describe(chart),
            element("g", axes, class_="axis"),
            None if chosen_k is None else self._choice(chosen_k),
            self._raw_band(),
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
        return _visible((self._x(k), self._y(score)) for k, score in zip(curve.k, scores, strict=True))

    def _choice(self, k: int) -> Html:
        """Mark the chosen k on the axis; it stays when the line is moved."""
        path = f"M{self._x(k):.1f} {self.frame.bottom:g}l-5 8h10z"
        return element("path", element("title", f"chosen: k = {k}"), class_="choice", d=path)

    def _raw_band(self) -> Html | None:
        """Draw the interval of the raw vectors' score."""
        if self.chart.input_interval is None:
            return None
        low, high = map(self._y, self.chart.input_interval)
        size = {"width": self.frame.right - self.frame.left, "height": low - high}
        return element("rect", class_="band", x=self.frame.left, y=high, **size, style=fill_of(RAW_LOOK))

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


def _floor(chosen_k: int | None, chart: Curves, scores: Sequence[float]) -> float | None:
    """Return the score below which the axis is compressed: far below the raw vectors, the best and the chosen k."""
    if not chart.higher_is_better:
        return None
    whole = min([max(max(curve.score) for curve in chart.curves), *chart.input_scores])
    floor = floor_of(scores, whole, None if chart.asked is None else chart.asked[1])
    if floor is None or chosen_k is None:
        return floor
    return min([floor, *(0.95 * curve.at(chosen_k) for curve in chart.curves if chosen_k in curve.k)])


def _visible(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Drop points less than half a pixel from the one before: the right end of a log axis is dense with them."""
    kept: list[tuple[float, float]] = []
    for point in points:
        if len(kept) > 1 and point[0] - kept[-2][0] < 0.5:
            kept[-1] = point
        else:
            kept.append(point)
    return kept
