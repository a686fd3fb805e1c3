"""Pieces of charts as inline SVG: pictures, axes, levels and styles of lines.

Text in an SVG shrinks with it, so a phone gets its own drawing (`NARROW`) and not a small copy of the wide one.
"""

from __future__ import annotations

from typing import Any

from firstk.advice.report.html import Html, element
from firstk.advice.report.layout import Frame, Octaves, Values, shortened
from firstk.advice.report.palette import Look

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


def stroke(look: Look) -> str:
    """Return `line_style` as text."""
    return element("line", **line_style(look))[len("<line ") : -len("/>")]


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
