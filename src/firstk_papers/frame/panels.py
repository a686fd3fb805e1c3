"""What a study finds: numbers that claims are judged by, and panels that are drawn. Frozen records, all JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

DIGITS = 6  # significant ones that a result file keeps of a series


@dataclass(frozen=True)
class Series:
    """One line, cloud of points or row of bars.

    Attributes
    ----------
    name : str
        For the legend; the same name has the same colour in every panel of an experiment.
    x, y : tuple of float
        A None in `y` leaves a gap.
    low, high : tuple of float, optional
        A band about `y`.
    kind : {"line", "points", "bars"}
    ours : bool
        Drawn strongly: what firstk does, beside the paper's method.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] | None = None
    high: tuple[float | None, ...] | None = None
    kind: str = "line"
    ours: bool = False


@dataclass(frozen=True)
class Mark:
    """A straight line across a chart at one value of `axis` ("x" or "y")."""

    at: float
    axis: str = "y"
    label: str = ""


@dataclass(frozen=True)
class Chart:
    """Series over two axes, each "linear" or "log"; `equal` gives both one scale, as directions in a plane need."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_scale: str = "linear"
    y_scale: str = "linear"
    marks: tuple[Mark, ...] = ()
    equal: bool = False


@dataclass(frozen=True)
class Heatmap:
    """A matrix as colours; its first row is at the top. `low` and `high` are the ends of the colour scale.

    `equal` makes its entries squares, where rows and columns are two directions of one plane.
    """

    title: str
    x_label: str
    y_label: str
    values: tuple[tuple[float, ...], ...]
    low: float | None = None
    high: float | None = None
    equal: bool = False


@dataclass(frozen=True)
class Pictures:
    """A grid of images: ``pixels[row][column]`` holds the uint8 values of one image, in hexadecimal."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    pixels: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers under named columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]


Panel = Chart | Heatmap | Pictures | Table
KINDS: dict[str, type] = {kind.__name__.lower(): kind for kind in (Chart, Heatmap, Pictures, Table)}


@dataclass(frozen=True)
class Findings:
    """What a report function makes of the cells.

    Attributes
    ----------
    measures : dict
        Named numbers or truths that claims refer to; None where this tier cannot tell.
    panels : tuple of panels
        Drawn together as the figure of the experiment.
    notes : tuple of str
        Sentences for the page.
    censored : tuple of str
        What was stopped before the paper's own length, a sentence each.
    """

    measures: dict[str, Any]
    panels: tuple[Panel, ...] = ()
    notes: tuple[str, ...] = ()
    censored: tuple[str, ...] = ()


def rounded(values: Iterable[Any]) -> tuple[float | None, ...]:
    """Return numbers with six significant digits, and None for what is missing or not finite.

    Examples
    --------
    >>> rounded([0.123456789, float("nan"), 2])
    (0.123457, None, 2.0)
    """
    return tuple(None if value is None or not isfinite(value) else float(f"{value:.{DIGITS}g}") for value in values)
