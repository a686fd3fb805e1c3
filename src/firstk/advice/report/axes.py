"""The section of single coordinates: a panel for each statistic over the axis of k, and magnitude against usefulness.

The panels share the horizontal axis of the curves, so that one slider serves both: coordinates that are cut off fade.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from firstk.advice.records import AxisStatistics
from firstk.advice.report.layout import Frame, Octaves, Values
from firstk.advice.report.page import Page
from firstk.advice.report.parts import AxesSection
from firstk.advice.report.reading import score_text, share_text
from firstk.advice.report.svg import frames_for
from firstk.advice.report.tables import folded_table
from firstk.advice.report.terms import known_terms, terms_html

PANEL, GAP, TOP = 82.0, 40.0, 52.0  # Height of a panel, distance of two, and room above the first.
PLOT = Frame(width=380, height=300, left=56, right=364, top=36, bottom=250, labelled=False)
NAMED_POINTS = 6  # So many of the first coordinates have their number next to their point.


def axes_html(page: Page, number: int) -> str:
    """Return charts and tables of the section."""
    section: AxesSection = page.sections[number]
    charts = "\n".join(_panels(page, section, frame, number) for frame in frames_for(page))
    return (
        f"<figure>{charts}</figure>\n"
        f'<p class="follows" data-section="{number}">{escape(_text(section.axes, page.start))}</p>\n'
        f"{_scatter(section.axes, number, page.start)}\n"
        f"{terms_html(known_terms(name for name, _ in statistics_of(section.axes)))}\n{_table(section, page)}"
    )


def axes_data(page: Page, number: int) -> dict[str, object]:
    """Return the text at each stop, which the script looks up."""
    axes = page.sections[number].axes
    return {"sentences": [_text(axes, k) for k in page.stops]}


def statistics_of(axes: AxisStatistics) -> list[tuple[str, tuple[float, ...]]]:
    """Return what the panels and the table show: names and values."""
    shown = [("spectrum", axes.spectrum), ("mean |z|", axes.magnitude), ("variance of z", axes.variance)]
    return shown + ([(axes.measure, axes.usefulness)] if axes.usefulness else [])


def _text(axes: AxisStatistics, k: int) -> str:
    total = sum(axes.variance)
    kept = share_text(sum(axes.variance[:k]) / total if total > 0 else None)
    text = f"Coordinates 1 to {min(k, axes.d)} hold {kept} of the variance of the code."
    if axes.usefulness and k <= axes.d:
        alone = score_text(axes.usefulness[k - 1])
        chance = "" if axes.chance is None else f" (knowing nothing: {score_text(axes.chance)})"
        text += f" Coordinate {k} alone: {axes.measure} {alone}{chance}."
    return text


def _panels(page: Page, section: AxesSection, frame: Frame, number: int) -> str:
    kind = "wide" if frame.labelled else "narrow"
    shown = statistics_of(section.axes)
    bottom = TOP + len(shown) * PANEL + (len(shown) - 1) * GAP
    whole = replace(frame, top=TOP, bottom=bottom, height=bottom + 50)
    across = Octaves(page.stops[0], page.stops[-1])
    edges = " ".join(f'data-{edge}="{getattr(whole, edge):.1f}"' for edge in ("left", "right", "top", "bottom"))
    panels = [
        _panel(
            name,
            values,
            replace(whole, top=TOP + i * (PANEL + GAP), bottom=TOP + i * (PANEL + GAP) + PANEL),
            across,
            page.start,
        )
        for i, (name, values) in enumerate(shown)
    ]
    return "\n".join(
        [
            f'<svg class="chart axes {kind}" viewBox="0 0 {whole.width:g} {whole.height:g}" role="img" '
            f'aria-labelledby="axes-{number}-{kind}-title axes-{number}-{kind}-desc" data-section="{number}" {edges}>',
            f'<title id="axes-{number}-{kind}-title">{escape(section.heading)}</title>',
            f'<desc id="axes-{number}-{kind}-desc">{escape(describe(section.axes))}</desc>',
            *panels,
            _bottom_axis(whole, across),
            f'<g class="cursor" transform="translate({whole.x(across.share(page.start)):.1f} 0)">'
            f'<line y1="{TOP - 14:g}" y2="{bottom:g}"/></g>',
            "</svg>",
        ]
    )


def _grid(up: Values, frame: Frame, base: float | None = None) -> list[str]:
    """Return a horizontal line with its number for each tick; the one at `base` is drawn as the base line."""
    lines = []
    for tick, text in zip(up.ticks, up.texts(), strict=True):
        y = frame.y(up.share(tick))
        lines.append(
            f'<line class="{"base" if tick == base else "grid"}" x1="{frame.left:g}" x2="{frame.right:.1f}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{frame.left - 8:g}" y="{y + 4.5:.1f}" text-anchor="end">{text}</text>'
        )
    return lines


def _panel(name: str, values: Sequence[float], frame: Frame, across: Octaves, k: int) -> str:
    up = Values.covering([0.0, *values], about=2)
    parts = [f'<g class="axis"><text class="measure" x="{frame.left:g}" y="{frame.top - 10:g}">{escape(name)}</text>']
    parts += _grid(up, frame, base=0.0)
    zero = frame.y(up.share(0.0))
    stems = []
    for j, value in enumerate(values, start=1):
        x, y = frame.x(across.share(j)), frame.y(up.share(value))
        cut = ' class="cut"' if j > k else ""
        stems.append(f'<path data-k="{j}"{cut} d="M{x:.1f} {zero:.1f}V{y:.1f}"/>')
    width = _stem_width(frame, across, len(values))
    return "\n".join(parts) + f'</g><g class="stems" stroke-width="{width:.2f}">{"".join(stems)}</g>'


def _stem_width(frame: Frame, across: Octaves, d: int) -> float:
    """Return a width at which most stems stand apart: the right end of a log axis is dense."""
    middle = max(2, d // 2)
    spacing = frame.x(across.share(middle)) - frame.x(across.share(middle - 1)) if across.low < across.high else 8.0
    return min(max(0.6 * spacing, 1.0), 6.0)


def _bottom_axis(frame: Frame, across: Octaves) -> str:
    room = 40 / (frame.right - frame.left)
    ticks = "".join(
        f'<line class="base" x1="{x:.1f}" x2="{x:.1f}" y1="{frame.bottom:g}" y2="{frame.bottom + 5:g}"/>'
        f'<text x="{x:.1f}" y="{frame.bottom + 20:g}" text-anchor="middle">{k}</text>'
        for k in across.ticks(room)
        for x in (frame.x(across.share(k)),)
    )
    middle = (frame.left + frame.right) / 2
    name = f'<text x="{middle:.1f}" y="{frame.bottom + 42:g}" text-anchor="middle">coordinate</text>'
    return f'<g class="axis">{ticks}{name}</g>'


def describe(axes: AxisStatistics) -> str:
    """Say in words what the panels show."""
    parts = [
        f"{name} from {score_text(values[0])} at coordinate 1 to {score_text(values[-1])} at coordinate {axes.d}"
        for name, values in statistics_of(axes)
    ]
    return f"A bar for each of {axes.d} coordinates. {'; '.join(parts)}."


def correlation_text(axes: AxisStatistics) -> str:
    """Say what the rank correlation is, or why there is none."""
    if axes.rank_correlation is None:
        return "A rank correlation means nothing here: one of the two does not vary."
    return f"Rank correlation (Spearman) of mean |z| and {axes.measure}: {axes.rank_correlation:.3f}."


def _scatter(axes: AxisStatistics, number: int, k: int) -> str:
    """Draw mean |z| against usefulness, a point a coordinate (Talukder et al. 2026 figure 2, panels v and vi)."""
    if not axes.usefulness:
        return ""
    across, up = Values.covering([0.0, *axes.magnitude], about=3), Values.covering(axes.usefulness, about=4)
    lines = [f'<text class="measure" x="0" y="16">{escape(axes.measure)}<tspan> against mean |z|</tspan></text>']
    lines += _grid(up, PLOT)
    for tick, text in zip(across.ticks, across.texts(), strict=True):
        x = PLOT.x(across.share(tick))
        lines.append(f'<text x="{x:.1f}" y="{PLOT.bottom + 20:g}" text-anchor="middle">{text}</text>')
    lines.append(
        f'<text x="{(PLOT.left + PLOT.right) / 2:g}" y="{PLOT.bottom + 42:g}" text-anchor="middle">mean |z|</text>'
    )
    points = []
    for j, (size, use) in enumerate(zip(axes.magnitude, axes.usefulness, strict=True), start=1):
        x, y = PLOT.x(across.share(size)), PLOT.y(up.share(use))
        cut = ' class="cut"' if j > k else ""
        points.append(
            f'<circle data-k="{j}"{cut} cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>coordinate {j}</title></circle>'
        )
        if j <= NAMED_POINTS:
            points.append(f'<text x="{x + 7:.1f}" y="{y - 5:.1f}">{j}</text>')
    caption = escape(correlation_text(axes), quote=True)
    return (
        f'<figure class="scatter"><svg class="plot" viewBox="0 0 {PLOT.width:g} {PLOT.height:g}" role="img" '
        f'aria-label="{escape(axes.measure)} against mean |z|. {caption}" data-section="{number}">'
        f'<g class="axis">{"".join(lines)}</g><g class="points">{"".join(points)}</g></svg>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _table(section: AxesSection, page: Page) -> str:
    shown = statistics_of(section.axes)
    rows = [(j + 1, [score_text(values[j]) for _, values in shown]) for j in range(section.axes.d)]
    return folded_table(
        f"All {section.axes.d} coordinates as a table",
        "Each coordinate by itself",
        ["coordinate", *(name for name, _ in shown)],
        rows,
        page.chosen_k,
    )
