"""Sections of a page that hold no curves: coordinates, images, texts, precisions, bytes. Frozen records, checked.

How each is drawn is decided in the module of its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from firstk._base.checks import bad_parameter, check_choice, is_int
from firstk.advice.records import AxisStatistics, ImageSamples
from firstk.advice.text_neighbors import TextNeighbors
from firstk.data.precision import PRECISIONS
from firstk.quality.evaluation import Evaluation
from firstk.quality.point import Point


@dataclass(frozen=True)
class AxesSection:
    """What each coordinate is like by itself: spectrum, magnitude, variance, usefulness."""

    heading: str
    text: str
    axes: AxisStatistics

    def __post_init__(self) -> None:
        _check(self, "axes", AxisStatistics)


@dataclass(frozen=True)
class ImagesSection:
    """A few images, and what the first k coordinates rebuild of them."""

    heading: str
    text: str
    images: ImageSamples

    def __post_init__(self) -> None:
        _check(self, "images", ImageSamples)


@dataclass(frozen=True)
class TextsSection:
    """A few queries, and the texts that all numbers and the first k coordinates find for them."""

    heading: str
    text: str
    neighbors: TextNeighbors

    def __post_init__(self) -> None:
        _check(self, "neighbors", TextNeighbors)


@dataclass(frozen=True)
class PrecisionSection:
    """What a stored code is worth for each k and precision, next to the raw vectors and baselines in the same bytes.

    `chosen` is one of the table's points, or None; `asked` is a score that is to be kept, with its name; `most` are the
    bytes that are allowed.
    """

    heading: str
    text: str
    table: Evaluation
    chosen: Point | None = None
    asked: tuple[str, float] | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        _check(self, "table", Evaluation)

    @property
    def bytes(self) -> int | None:
        """The number of bytes to open with: those that are allowed, or those of what is chosen."""
        return self.most or (None if self.chosen is None else self.chosen.bytes)

    @property
    def as_prefix(self) -> int | None:
        """The prefix length that does best in as many bytes as what is chosen; None where nothing is."""
        if self.chosen is None:
            return None
        size, lengths = self.chosen.bytes, self.table.supported
        fitting = (o for o in self.table.prefixes if o.bytes <= size and (lengths is None or o.k in lengths))
        best = max(fitting, key=lambda point: point.score, default=None)
        return None if best is None else best.k


@dataclass(frozen=True)
class StorageSection:
    """Bytes of raw vectors against bytes of their first k coordinates.

    Parameters
    ----------
    heading, text : str
    rows : int
        How many vectors are stored.
    columns, itemsize : int
        Width of a raw vector, and bytes of each of its numbers.
    precisions : tuple of str
        Precisions in which the coordinates may be stored.
    whole : tuple of (str, int)
        Codes whose bytes do not depend on k, with these: what is recommended first, and embedded bits.
    """

    heading: str
    text: str
    rows: int
    columns: int
    itemsize: int
    precisions: tuple[str, ...] = ("float32",)
    whole: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        _check(self)
        if not all(isinstance(name, str) and is_int(size) and size > 0 for name, size in self.whole):
            raise bad_parameter("whole", "StorageSection", "names, each with its bytes", self.whole)
        for name in self.precisions:
            check_choice(name, PRECISIONS, "precisions", "StorageSection")
        for name in ("rows", "columns", "itemsize"):
            if not is_int(getattr(self, name)) or getattr(self, name) < 1:
                raise bad_parameter(name, "StorageSection", "an int of at least 1", getattr(self, name))

    def each(self, k: int | None = None, precision: str = "float32") -> int:
        """Bytes of a vector: raw, or cut to `k` coordinates in a precision."""
        return self.itemsize * self.columns if k is None else PRECISIONS[precision].bytes_per_vector(k)

    def bytes_at(self, k: int | None = None, precision: str = "float32") -> int:
        """Bytes of all rows."""
        return self.rows * self.each(k, precision)


KINDS = (AxesSection, ImagesSection, TextsSection, PrecisionSection, StorageSection)


def set_field(record: object, name: str, value: object) -> None:
    """Set a field of a frozen record, while it is made."""
    object.__setattr__(record, name, value)


def text_of(value: object, name: str, owner: str, *, empty: bool = True) -> str:
    """Return `value` if it is text."""
    if not isinstance(value, str) or not (empty or value.strip()):
        raise bad_parameter(name, owner, "a str" if empty else "a str that is not empty", value)
    return value


def _check(section: object, name: str | None = None, kind: type = object) -> None:
    owner = type(section).__name__
    text_of(getattr(section, "heading", None), "heading", owner, empty=False)
    text_of(getattr(section, "text", None), "text", owner)
    if name is not None and not isinstance(getattr(section, name), kind):
        raise bad_parameter(name, owner, f"a {kind.__name__}", getattr(section, name))
