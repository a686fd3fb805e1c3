"""What a study finds: numbers by which claims are evaluated, and panels that are drawn. Frozen records, all JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import isfinite

from firstk_papers.frame.claims import Measure
from firstk_papers.frame.types import JsonDict, JsonObject

DIGITS = 6  # significant ones that a result file keeps of a series


@dataclass(frozen=True)
class Series:
    """One line, cloud of points or row of bars.

    Attributes
    ----------
    name : str
        For the legend; the same name has the same color in every panel of an experiment.
    x, y : tuple of float
        A None in `y` leaves a gap.
    low, high : tuple of float, optional
        A band about `y`.
    kind : {"line", "points", "bars"}
    ours : bool
        Drawn with emphasis: what firstk does, next to the paper's method.
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
    """A matrix as colors; its first row is at the top. `low` and `high` are the ends of the color scale.

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
KINDS: dict[str, type[Panel]] = {kind.__name__.lower(): kind for kind in (Chart, Heatmap, Pictures, Table)}


def panel_to_json(panel: Panel) -> JsonDict:
    """Return a panel as a JSON object, with its kind."""
    return {"kind": type(panel).__name__.lower(), **asdict(panel)}


def panel_from_json(plain: JsonObject) -> Panel:
    """Read a panel back; an option that was not there yet when the record was written has its default."""
    values = _with_tuples(plain)
    kind = KINDS[values.pop("kind")]
    if kind is Chart:
        values["series"] = tuple(Series(**_with_tuples(one)) for one in values["series"])
        values["marks"] = tuple(Mark(**_with_tuples(one)) for one in values.get("marks", ()))
    return kind(**values)


def _with_tuples(plain: JsonObject) -> JsonDict:
    """Return a JSON object with tuples for lists."""

    def frozen(value: object) -> object:
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    return {name: frozen(value) for name, value in plain.items()}


@dataclass(frozen=True)
class Findings:
    """What a report function makes of the cells.

    Attributes
    ----------
    measures : dict
        Named numbers or truths that claims refer to; None where this tier does not measure it.
    panels : tuple of panels
        Drawn together as the figure of the experiment.
    notes : tuple of str
        Remarks for the page.
    censored : tuple of str
        What was stopped before the paper's own length, a remark each.
    """

    measures: Mapping[str, Measure]
    panels: tuple[Panel, ...] = ()
    notes: tuple[str, ...] = ()
    censored: tuple[str, ...] = ()


def rounded(values: Iterable[float | None]) -> tuple[float | None, ...]:
    """Return numbers with six significant digits, and None for what is missing or not finite.

    Examples
    --------
    >>> rounded([0.123456789, float("nan"), 2])
    (0.123457, None, 2.0)
    """
    return tuple(None if value is None or not isfinite(value) else float(f"{value:.{DIGITS}g}") for value in values)
