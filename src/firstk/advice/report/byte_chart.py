"""The chart of scores against bytes per vector: every length in every precision, and the front that no other beats.

Beside the encoder's own codes, muted, stand the raw vectors and baselines in the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firstk._base.checks import bad_parameter
from firstk.advice.report.charts import (
    NARROW,
    fill_of,
    heading_of,
    level,
    line_style,
    octave_axis,
    picture,
    points_of,
    value_axis,
)
from firstk.advice.report.html import Html, element
from firstk.advice.report.layout import ASKED_LOOK, RAW_LOOK, RAW_NAME, Frame, Look, Octaves, Values, assign, floor_of
from firstk.quality.choice import EMBEDDED, PRODUCT_QUANTIZER, Point
from firstk.quality.evaluation import Evaluation
from firstk.words.text import number_of, score_text

FRAME = Frame(width=760, height=412, left=52, right=612, top=52, bottom=362, labelled=True)
LEGEND_LINE = 20.0


def draw_tradeoff(
    evaluation: Evaluation,
    chosen: Point | None = None,
    *,
    asked: tuple[str, float] | None = None,
    ids: str = "tradeoff",
    frame: Frame = FRAME,
) -> Html:
    """Draw score against bytes per vector as SVG, in the colours of the page's style sheet.

    Parameters
    ----------
    evaluation : Evaluation
    chosen : Point, optional
        One of the evaluation's, marked with a ring.
    asked : (str, float), optional
        A score that is to be kept, with its name: drawn as a level.
    ids : str
        Tells several pictures on one page apart.
    frame : Frame
    """
    check_chosen(evaluation, chosen, "draw_tradeoff")
    chart = _ByteChart.of(evaluation, frame, asked)
    looks = looks_of_lines(evaluation)
    axes = [
        heading_of(evaluation.metric, True, chart.up, frame),
        *value_axis(chart.up, frame, base=chart.up.ticks[0]),
        *octave_axis(chart.across, frame, "bytes per vector", room=46),
        *(level(frame, frame.y(chart.up.share(score)), look, name) for look, name, score in chart.levels),
    ]
    # Others first: our own lie on top.
    lines = [chart.line(points, looks[name]) for name, points in reversed(lines_of(evaluation).items())]
    return picture(
        frame,
        ids,
        f"{evaluation.metric} against bytes per vector",
        describe(evaluation),
        element("g", axes, class_="axis"),
        chart.band(looks.get(EMBEDDED)),
        lines,
        chart.front(),
        chart.legend(looks) if frame.labelled else None,
        None if chosen is None else chart.ring(chosen),
        kind="plot",
    )


def byte_charts(evaluation: Evaluation, chosen: Point | None, asked: tuple[str, float] | None, ids: str) -> Html:
    """Draw the chart wide and narrow; the narrow one has no room for names, and a legend below it."""
    items = [
        element("li", shown_as(name), style=f"color:var(--{look.name})")
        for name, look in looks_of_lines(evaluation).items()
    ]
    charts = [draw_tradeoff(evaluation, chosen, asked=asked, ids=ids, frame=frame) for frame in (FRAME, NARROW)]
    return element("figure", charts, element("ul", items, class_="legend", aria_hidden="true"), class_="offers")


def describe(evaluation: Evaluation) -> str:
    """Say in words what the chart shows: the front, from the fewest bytes to the most."""
    front = [
        f"{score_text(o.score, 4)} in {number_of(o.bytes, 'byte')} ({name_of_point(o)})"
        for o in evaluation.pareto_front
    ]
    whole = evaluation.input_score
    raw = "" if whole is None else f" {RAW_NAME.capitalize()}: {score_text(whole, 4)}."
    return f"Best score for its size: {'; '.join(front)}.{raw}"


def name_of_point(point: Point) -> str:
    """Return what a chart calls a point."""
    if point.code == RAW_NAME or point.precision == PRODUCT_QUANTIZER:
        return ", ".join(dict.fromkeys((name_of_code(point.code), point.stored_as)))
    if not point.is_prefix:
        return ", ".join(part for part in (point.code, "embedded bits") if part)
    return ", ".join(part for part in (point.code, f"k = {point.k}", point.stored_as) if part)


def name_of_code(code: str) -> str:
    """Return what a chart calls the codes of others: faiss is known here for its product quantizer."""
    return PRODUCT_QUANTIZER if code == "faiss" else code


def shown_as(precision: str) -> str:
    """Return what a chart or table calls a precision."""
    return "embedded bits" if precision == EMBEDDED else precision


def lines_of(evaluation: Evaluation) -> dict[str, tuple[Point, ...]]:
    """Return the points of each line: the encoder's own by precision, then the front of each other code."""
    # Float32 at the lengths of the other precisions: the chart over k has all of them.
    shown = [o for o in evaluation.own if not o.is_prefix or o.k in evaluation.lengths]
    own = {name: tuple(o for o in shown if o.precision == name) for name in evaluation.precisions}
    return own | {name_of_code(code): evaluation.front_of(code) for code in evaluation.codes}


def looks_of_lines(evaluation: Evaluation) -> dict[str, Look]:
    """Return how each line looks: the encoder's own in colour, others in grey."""
    names = lines_of(evaluation)
    others = [name for name in names if name not in evaluation.precisions]
    return dict(zip(names, assign(evaluation.precisions, others).values(), strict=True))


def check_chosen(evaluation: object, chosen: object, owner: str) -> None:
    """Raise for what is no evaluation, or none of its points."""
    if not isinstance(evaluation, Evaluation):
        raise bad_parameter("evaluation", owner, "an Evaluation", evaluation)
    if chosen is not None and chosen not in evaluation.points:
        raise bad_parameter("chosen", owner, "one of the evaluation's points, or None", chosen)


def bytes_axis(evaluation: Evaluation, floor: float | None) -> Octaves:
    """Return the axis of bytes: with a floor, from half of the fewest bytes that reach it."""
    points = [one for line in lines_of(evaluation).values() for one in line]
    fewest, most = (end(one.bytes for one in points) for end in (min, max))
    if floor is None:
        return Octaves(fewest, most)
    first = min(one.bytes for one in points if one.score >= floor) // 2
    return Octaves(max(fewest, 1 << max(0, first.bit_length() - 1)), most)


@dataclass(frozen=True)
class _ByteChart:
    """An evaluation placed into a frame, with both of its axes and its levels."""

    evaluation: Evaluation
    frame: Frame
    across: Octaves
    up: Values
    levels: tuple[tuple[Look, str, float], ...]

    @classmethod
    def of(cls, evaluation: Evaluation, frame: Frame, asked: tuple[str, float] | None) -> _ByteChart:
        whole = evaluation.input_score
        levels: tuple[tuple[Look, str, float], ...] = () if whole is None else ((RAW_LOOK, RAW_NAME, whole),)
        levels += () if asked is None else ((ASKED_LOOK, *asked),)
        points = [one for line in lines_of(evaluation).values() for one in line]
        scores = [*(one.score for one in points), *(score for _, _, score in levels)]
        best = max(one.score for one in evaluation.own)
        floor = floor_of(scores, best if whole is None else min(best, whole), None if asked is None else asked[1])
        across = bytes_axis(evaluation, floor)
        drawn = [one.score for one in points if one.bytes >= across.low] + [score for _, _, score in levels]
        return cls(evaluation, frame, across, Values.covering(drawn, floor=floor), levels)

    def _placed(self, points: Sequence[Point]) -> list[tuple[Point, float, float]]:
        """Return the points that are within the axes, with their places."""
        return [(one, self.frame.x(self.across.share(one.bytes)), self._y(one.score)) for one in points
                if one.bytes >= self.across.low]  # fmt: skip

    def _y(self, score: float) -> float:
        """Return the height of a score; what is outside of the axis is drawn at its end."""
        return self.frame.y(self.up.share(min(max(score, self.up.ticks[0]), self.up.ticks[-1])))

    def line(self, points: Sequence[Point], look: Look) -> Html:
        """Draw the points of a line: dots that a slider finds by k or bytes, small squares for what is not our own."""
        marks = []
        for one, x, y in self._placed(points):
            title = element(
                "title", f"{name_of_point(one)}: {score_text(one.score, 4)} in {number_of(one.bytes, 'byte')}"
            )
            if look.ours:
                place = {"data_fit": one.k} if one.is_prefix else {"data_bytes": one.bytes}
                marks.append(element("circle", title, **place, cx=x, cy=y, r=3))
            else:
                marks.append(element("rect", title, x=x - 2.5, y=y - 2.5, width=5, height=5))
        style = line_style(look) | {"stroke_width": "1.5" if look.ours else "1"}
        return element(
            "g",
            element("polyline", points=points_of([(x, y) for _, x, y in self._placed(points)]), **style),
            element("g", marks, style=fill_of(look)),
            class_="curve" if look.ours else "curve other",
        )

    def band(self, look: Look | None) -> Html | None:
        """Draw the intervals of embedded bits as a band around their line: they can be cut at any byte."""
        placed = [(x, self.evaluation.interval_of(one)) for one, x, _ in self._placed(self.evaluation.embedded)]
        ends = [(x, *pair) for x, pair in placed if pair is not None]
        if look is None or len(ends) < 2:
            return None
        corners = [(x, self._y(low)) for x, low, _ in ends] + [(x, self._y(high)) for x, _, high in reversed(ends)]
        return element("polygon", class_="band", points=points_of(corners), style=fill_of(look), fill_opacity="0.15")

    def front(self) -> Html | None:
        """Draw steps: until more bytes are spent, the score stays; with the interval of each of its points."""
        placed = self._placed(self.evaluation.pareto_front)
        if not placed:
            return None
        whiskers = "".join(
            f"M{x:.1f} {self._y(ends[0]):.1f}V{self._y(ends[1]):.1f}"
            for one, x, _ in placed
            if (ends := self.evaluation.interval_of(one)) is not None
        )
        (_, x, y), *others = placed
        path = f"M{x:.1f} {y:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for _, x, y in others)
        bars = element("path", class_="whiskers", d=whiskers, fill="none", stroke_width=1) if whiskers else None
        steps = element("path", class_="front", d=path, fill="none", stroke_width=1, style="stroke:currentColor")
        return element("g", bars, steps)

    def legend(self, looks: dict[str, Look]) -> Html:
        """Name the lines and levels at the right."""
        start, levels = self.frame.right + 16, [(name, look) for look, name, _ in self.levels]
        # The raw vectors have a level, and a line of their own as they are rounded.
        points = [("raw, rounded" if name in dict(levels) else name, look) for name, look in looks.items()]
        parts = []
        for i, (name, look) in enumerate([*points, *levels]):
            y = self.frame.top + LEGEND_LINE * i
            if i >= len(points):
                parts.append(element("line", x1=start - 6, x2=start + 6, y1=y, y2=y, **line_style(look)))
            elif look.ours:
                parts.append(element("circle", cx=start, cy=y, r=4, style=fill_of(look)))
            else:
                parts.append(element("rect", x=start - 3, y=y - 3, width=6, height=6, style=fill_of(look)))
            parts.append(element("text", shown_as(name), x=start + 12, y=y + 4.5, style=fill_of(look)))
        return element("g", parts, class_="names")

    def ring(self, chosen: Point) -> list[Html]:
        """Draw a ring around what is chosen."""
        title = element("title", f"chosen: {name_of_point(chosen)}")
        style = {"fill": "none", "stroke_width": 2, "style": "stroke:currentColor"}
        return [
            element("circle", title, class_="chosen", cx=x, cy=y, r=8, **style) for _, x, y in self._placed([chosen])
        ]
