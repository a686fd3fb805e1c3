"""Panels as one figure, in SVG and PNG; the same panels always give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from firstk_papers.frame.checks import require
from firstk_papers.frame.files import atomic_file
from firstk_papers.frame.panels import Chart, Heatmap, Panel, Pictures, Series, Table

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (4.7, 3.5)  # inches
DPI = 110  # of the PNG
ACROSS = 3
FEW = 8  # sizes that are named on a logarithmic axis
COLORS = (
    "#1557c0", "#a8480a", "#0b7059", "#84309b", "#b01f54", "#5b5f66",
    "#8a6d00", "#00758f", "#7a4a2b", "#4d7c0f", "#c2410c", "#5b21b6",
)  # fmt: skip
DASHES: tuple[tuple[float, ...], ...] = ((), (14, 3), (14, 3, 3, 3), (8, 2), (14, 3, 3, 3, 3, 3))
BARS = "#d5d9df"
# Neither the date nor random ids: a figure that has not changed is the same file.
STYLE = {"svg.hashsalt": "firstk", "font.size": 9.0, "axes.titlesize": 10.0, "svg.fonttype": "path"}


class Look(TypedDict, total=False):
    """How a series is drawn; bars have a color alone."""

    color: str
    linestyle: str | tuple[int, tuple[float, ...]]
    linewidth: float


def draw(panels: Sequence[Panel], stem: Path) -> None:
    """Draw panels together into ``<stem>.svg`` and ``<stem>.png``; tables only where there is nothing else."""
    shown: list[Panel] = [panel for panel in panels if not isinstance(panel, Table)] or list(panels)
    if not shown:
        return
    matplotlib = require("matplotlib", "report", "firstk reproduce")
    with matplotlib.rc_context(STYLE):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        figure = _figure(shown)
        # Placed once for both files; `savefig` would place the panels, and draw them in vain, for each.
        engine = figure.get_layout_engine()
        assert engine is not None
        engine.execute(figure)
        figure.set_layout_engine("none")
        with atomic_file(stem.parent / f"{stem.name}.png") as temporary:
            FigureCanvasAgg(figure).print_png(temporary)
        with atomic_file(stem.parent / f"{stem.name}.svg") as temporary:
            FigureCanvasSVG(figure).print_svg(temporary, metadata={"Date": None})


def _figure(shown: Sequence[Panel]) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(len(shown), ACROSS if len(shown) != 4 else 2)
    down = ceil(len(shown) / across)
    # A Figure of its own, not pyplot's: nothing is left open, and no window system is needed.
    figure = Figure(figsize=(PANEL[0] * across, PANEL[1] * down), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, squeeze=False).ravel().tolist()
    looks = _looks([s for panel in shown if isinstance(panel, Chart) for s in panel.series])
    for panel, ax in zip(shown, axes, strict=False):
        ax.set_title(panel.title, loc="left")
        _DRAWN[type(panel)](ax, panel, looks)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    _legend(figure, axes)
    return figure


def _looks(series: Sequence[Series]) -> dict[str, Look]:
    """Give each name one color and dash in all panels; ours are emphasized and solid."""
    looks: dict[str, Look] = {}
    colors = cycle(COLORS)
    dashes = cycle(DASHES)
    for part in sorted({s.name: s for s in series}.values(), key=lambda s: not s.ours):
        if part.kind == "bars" and not part.ours:
            looks[part.name] = {"color": BARS}
            continue
        dash = () if part.ours else next(dashes)
        looks[part.name] = {
            "color": next(colors),
            "linestyle": (0, dash) if dash else "-",
            "linewidth": 2.4 if part.ours else 1.4,
        }
    return looks


def _chart(ax: Axes, panel: Chart, looks: dict[str, Look]) -> None:
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    ax.set_xscale(panel.x_scale)
    ax.set_yscale(panel.y_scale)
    bars = [s for s in panel.series if s.kind == "bars"]
    for series in sorted(panel.series, key=lambda s: (s.kind != "bars", s.ours)):  # ours on top, bars below
        _series(ax, series, looks[series.name], bars)
    for mark in panel.marks:
        line = ax.axhline if mark.axis == "y" else ax.axvline
        line(mark.at, color="#3c4148", linewidth=0.9, linestyle=":")
        place = (0.99, mark.at) if mark.axis == "y" else (mark.at, 0.98)
        across = ax.get_yaxis_transform() if mark.axis == "y" else ax.get_xaxis_transform()
        ax.text(*place, mark.label, transform=across, fontsize=7.5, color="#3c4148", ha="right", va="bottom" if
                mark.axis == "y" else "top", rotation=0 if mark.axis == "y" else 90)  # fmt: skip
    if panel.x_scale == "log":
        _tick_sizes(ax, sorted({x for series in panel.series for x in series.x}))
    if panel.equal:
        ax.set_aspect("equal", adjustable="box")
    ax.grid(color="#e7e8ea", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _tick_sizes(ax: Axes, sizes: Sequence[float]) -> None:
    """Name the sizes themselves where there are a few: powers of ten between them tell little, and crowd."""
    if len(sizes) <= FEW:
        ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
        ax.minorticks_off()


def _series(ax: Axes, series: Series, look: Look, bars: Sequence[Series]) -> None:
    x = np.array(series.x, dtype=float)
    y = _with_gaps(series.y)
    if series.kind == "bars":
        step = float(np.min(np.diff(x))) if len(x) > 1 else 1.0
        width = 0.8 * step / len(bars)
        ax.bar(x + (bars.index(series) - (len(bars) - 1) / 2) * width, y, width, color=look["color"], label=series.name)
        return
    if series.kind == "points":
        ax.plot(x, y, ".", markersize=4, color=look["color"], label=series.name, alpha=0.8)
        return
    ax.plot(x, y, label=series.name, marker="o" if len(x) <= 24 else "", markersize=2.8, **look)
    if series.low is not None and series.high is not None:
        low, high = (_with_gaps(edge) for edge in (series.low, series.high))
        ax.fill_between(x, low, high, color=look["color"], alpha=0.16, linewidth=0)


def _with_gaps(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _heatmap(ax: Axes, panel: Heatmap, _: dict[str, Look]) -> None:
    from matplotlib.ticker import MaxNLocator

    down, across = len(panel.values), len(panel.values[0])
    # Rows and columns are counted from one, as axes of a code are.
    ends = (0.5, across + 0.5, down + 0.5, 0.5)
    image = ax.imshow(panel.values, vmin=panel.low, vmax=panel.high, cmap="viridis", extent=ends)
    ax.set_aspect("equal" if panel.equal else "auto")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    ax.figure.colorbar(image, ax=ax, shrink=0.85)


def _pictures(ax: Axes, panel: Pictures, _: dict[str, Look]) -> None:
    """Lay the images out as one, a pixel of white between them."""
    high, wide = panel.shape[:2]
    sheet = np.full((len(panel.rows) * (high + 1), len(panel.columns) * (wide + 1), *panel.shape[2:]), 255, np.uint8)
    for i, row in enumerate(panel.pixels):
        for j, picture in enumerate(row):
            top, left = i * (high + 1), j * (wide + 1)
            sheet[top : top + high, left : left + wide] = np.frombuffer(bytes.fromhex(picture), np.uint8).reshape(
                panel.shape
            )
    ax.imshow(sheet, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    ax.set_xticks([(j + 0.5) * (wide + 1) for j in range(len(panel.columns))], panel.columns, fontsize=7)
    ax.set_yticks([(i + 0.5) * (high + 1) for i in range(len(panel.rows))], panel.rows, fontsize=7)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def cell_text(value: str | float | None) -> str:
    """Return a cell of a table as text."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(ax: Axes, panel: Table, _: dict[str, Look]) -> None:
    ax.set_axis_off()
    texts = [[cell_text(value) for value in row] for row in panel.rows]
    drawn = ax.table(texts, colLabels=list(panel.columns), loc="center", cellLoc="left")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(7.5)
    drawn.auto_set_column_width(list(range(len(panel.columns))))


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Write one legend for all panels, each name once."""
    found: dict[str, Artist] = {}
    for ax in axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if found:
        across = max(1, int(figure.get_figwidth() / 2.4))
        figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=across, frameon=False)


_DRAWN: dict[type, Callable[[Axes, Any, dict[str, Look]], None]] = {
    Chart: _chart,
    Heatmap: _heatmap,
    Pictures: _pictures,
    Table: _table,
}
