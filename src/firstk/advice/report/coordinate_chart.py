"""Charts of single coordinates: a panel for each statistic over the axis of k, and magnitude against usefulness.

The panels share the horizontal axis of the curves, so that one slider serves both: coordinates that are cut off fade.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firstk.advice.records import AxisStatistics
from firstk.advice.report.html import Html, element
from firstk.advice.report.layout import Frame, Octaves, Values
from firstk.advice.report.svg import axis_name, edges, octave_axis, picture, value_axis
from firstk.words.text import score_text

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
    line = element("line", y1=TOP - 14, y2=bottom)
    said = "; ".join(
        f"{name} from {score_text(values[0], 4)} at coordinate 1 to {score_text(values[-1], 4)} at coordinate {axes.d}"
        for name, values in shown
    )
    return picture(
        whole,
        f"axes-{number}",
        heading,
        f"A bar for each of {axes.d} coordinates. {said}.",
        [
            _panel(name, values, replace(whole, top=top, bottom=top + PANEL), across, k)
            for i, (name, values) in enumerate(shown)
            for top in (TOP + i * (PANEL + GAP),)
        ],
        element("g", octave_axis(across, whole, "coordinate"), class_="axis"),
        element("g", line, class_="cursor", transform=f"translate({whole.x(across.share(k)):.1f} 0)"),
        kind="chart axes",
        **edges(whole),
    )


def _panel(name: str, values: Sequence[float], frame: Frame, across: Octaves, k: int) -> list[Html]:
    up = Values.covering([0.0, *values], about=2)
    measure = element("text", name, class_="measure", x=frame.left, y=frame.top - 10)
    zero, stems = frame.y(up.share(0.0)), []
    for j, value in enumerate(values, start=1):
        path = f"M{frame.x(across.share(j)):.1f} {zero:.1f}V{frame.y(up.share(value)):.1f}"
        stems.append(element("path", data_k=j, class_="cut" if j > k else None, d=path))
    # A width at which most stems stand apart: the right end of a log axis is dense.
    middle = max(2, len(values) // 2)
    apart = frame.x(across.share(middle)) - frame.x(across.share(middle - 1)) if across.low < across.high else 8.0
    return [
        element("g", measure, value_axis(up, frame, base=0.0), class_="axis"),
        element("g", stems, class_="stems", stroke_width=f"{min(max(0.6 * apart, 1.0), 6.0):.2f}"),
    ]


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
