"""What a page says: frozen records of text, tables and what figures show, checked when they are made.

How each is drawn is not decided here: `page_html` has a renderer for every kind of part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from firstk._base.checks import bad_parameter
from firstk._base.json_records import Name, check_fields
from firstk.advice.records import AxisStatistics, ImageSamples
from firstk.advice.report.layout import Look, assign
from firstk.advice.text_neighbors import TextNeighbors
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import Point
from firstk.quality.curve import PrefixCurve
from firstk.quality.evaluation import Evaluation

NOTHING = "–"


@dataclass(frozen=True)
class Steps:
    """A text that follows a slider.

    Parameters
    ----------
    steps : sequence of int
        Ascending numbers, of coordinates or bytes.
    texts : sequence of str
        What is said from each of them on; before the first, a dash.

    Examples
    --------
    >>> scores = Steps((1, 4), ("0.5", "0.9"))
    >>> scores.at(3), scores.at(4), scores.at(0)
    ('0.5', '0.9', '–')
    """

    steps: tuple[int, ...]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, steps: Iterable[int], text: Callable[[int], str]) -> Steps:
        """Make the text of each step by a function."""
        steps = tuple(steps)
        return cls(steps, tuple(map(text, steps)))

    def at(self, stop: int) -> str:
        """Return the text where the slider stands."""
        place = bisect_right(self.steps, stop) - 1
        return NOTHING if place < 0 else self.texts[place]


class Cell(NamedTuple):
    """A cell of a table: its text, a small text beside it, and whether it is marked as the best for its size."""

    text: str | Steps = NOTHING
    small: str | Steps = ""
    best: bool = False


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes
    ----------
    name : str
    cells : sequence of str, Steps or Cell
    kind : {"", "ours", "raw", "chosen"}
        How it is set apart.
    line : (bool, str), optional
        The curve whose line stands before the name: is it ours, and its name.
    k : int, optional
        The prefix length that it is of.
    """

    name: str
    cells: tuple[str | Steps | Cell, ...]
    kind: str = ""
    line: tuple[bool, str] | None = None
    k: int | None = None


@dataclass(frozen=True)
class Table:
    """A table, whose cells may follow the slider over k or one of its own.

    Attributes
    ----------
    caption : sequence of str or Steps
        Pieces of one line.
    heads : sequence of str
        Of all columns, that of the names too.
    rows : sequence of Row
    folded : str
        What is said in its place until it is opened; "" if it is always open.
    scrolls : bool
        It may be long or wide, and has a frame.
    follows : bool
        The row whose k is the longest that fits is marked as the slider moves.
    sizes : sequence of int
        Numbers of bytes at which a slider of its own stops.
    size : int
        Where that slider begins.
    """

    caption: tuple[str | Steps, ...]
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    folded: str = ""
    scrolls: bool = False
    follows: bool = False
    sizes: tuple[int, ...] = ()
    size: int = 0


@dataclass(frozen=True)
class Glossary:
    """Terms, each with its explanation in one line; a page explains each once, where it first appears."""

    terms: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Curves:
    """A chart of scores against k.

    Parameters
    ----------
    curves : sequence of PrefixCurve
        Ours, at least one. The labels tell curves apart, so no two may be the same.
    baselines : sequence of PrefixCurve
        What they are compared with, in the same metric.
    asked : (str, float), optional
        A score that is to be kept, with its name: drawn as a level.
    input_interval : (float, float), optional
        Ends of the interval of the raw vectors' score.
    """

    curves: tuple[PrefixCurve, ...]
    baselines: tuple[PrefixCurve, ...] = ()
    asked: tuple[str, float] | None = None
    input_interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.curves:
            raise InvalidInputError("A chart needs at least one PrefixCurve in 'curves'. Got 0.")
        drawn = self.everything
        metrics = sorted({f"{c.metric} ({'higher' if c.higher_is_better else 'lower'} is better)" for c in drawn})
        if len(metrics) > 1:
            raise InvalidInputError(
                f"A chart draws one metric on one axis. Got {len(metrics)}: {', '.join(metrics)}. "
                "Put each metric on its own."
            )
        names = [name_of(curve) for curve in drawn]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidInputError(
                f"A chart tells curves apart by their labels. Got {names.count(twice[0])} curves called '{twice[0]}'; "
                "rename one with dataclasses.replace(curve, label=...)."
            )

    @property
    def everything(self) -> tuple[PrefixCurve, ...]:
        """All curves, ours first."""
        return self.curves + self.baselines

    @property
    def lines(self) -> list[tuple[bool, str]]:
        """What tells the curves apart on a page: whether each is ours, and its name."""
        ours = [(True, name_of(curve)) for curve in self.curves]
        return ours + [(False, name_of(curve)) for curve in self.baselines]

    @property
    def metric(self) -> str:
        """What all curves measure."""
        return self.curves[0].metric

    @property
    def higher_is_better(self) -> bool:
        """False for losses."""
        return self.curves[0].higher_is_better

    @property
    def confidence(self) -> float | None:
        """Of the intervals that some curve has; None where none has any."""
        return next((curve.confidence for curve in self.everything if curve.confidence is not None), None)

    @property
    def input_scores(self) -> tuple[float, ...]:
        """Scores of the raw vectors: one, unless curves were evaluated on different rows."""
        return tuple(dict.fromkeys(c.input_score for c in self.everything if c.input_score is not None))


@dataclass(frozen=True)
class BytesChart:
    """A chart of scores against bytes; `chosen` is one of the evaluation's points, `asked` as in `Curves`."""

    evaluation: Evaluation
    chosen: Point | None = None
    asked: tuple[str, float] | None = None


Part = Curves | BytesChart | AxisStatistics | ImageSamples | TextNeighbors | Table | Glossary | Steps


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, and what is shown.

    Parameters
    ----------
    heading : str
    text : str
        Plain text; an empty line starts a paragraph.
    parts : sequence
        Of `Curves`, `BytesChart`, `AxisStatistics`, `ImageSamples`, `TextNeighbors`, `Table`, `Glossary`, and `Steps`,
        a paragraph that follows the slider. `curve_section` and its like in `sections` make the usual ones.
    """

    heading: Name
    text: str = ""
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Page:
    """All that a report says.

    Parameters
    ----------
    title : str
    summary : str
        Plain text, the answer before the pictures; an empty line starts a paragraph, and the first is set large.
    sections : sequence of Section
        The first curve of the first chart of curves is the one the page is about.
    chosen_k : int, optional
        The prefix length to recommend, one of those at which that curve was evaluated. The slider starts there.
    start_k : int, optional
        Where the slider starts if no k is chosen; at the full width if not given.
    facts : mapping or sequence of (name, value)
        Shown in this order: rows, columns, objective, where the encoder is saved, library version.
    notes : sequence of str
        Notes for the end of the page.
    commands : sequence of str
        Commands that do what the summary says.
    figures : sequence of (str, str)
        Large figures below the summary, each with what it is.
    terms : sequence of (str, str)
        Terms of the summary, each with its explanation in one line.

    Examples
    --------
    >>> from firstk.advice.report import curve_section
    >>> curve = PrefixCurve(k=[1, 2, 4], score=[0.5, 0.8, 0.9], metric="accuracy", label="fisher")
    >>> page = Page("Digits", "Two of four coordinates do.", [curve_section("Accuracy", "", [curve])], chosen_k=2)
    >>> page.stops
    (1, 2, 4)
    """

    title: Name
    summary: str
    sections: tuple[Section, ...]
    chosen_k: int | None = None
    start_k: int | None = None
    facts: tuple[tuple[str, str | int | float], ...] = ()
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    terms: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        facts = self.facts.items() if isinstance(self.facts, Mapping) else self.facts
        # numpy's numbers become Python's own
        own = [tuple(v.item() if isinstance(v, np.generic) else v for v in pair) for pair in facts]
        object.__setattr__(self, "facts", tuple(own))
        check_fields(self)
        if not self.charts:
            raise bad_parameter("sections", "Page", "a sequence of sections, at least one of them with curves", ())
        for name in ("chosen_k", "start_k"):
            value = getattr(self, name)
            if value is not None and value not in self.lead.k:
                ks = list(map(str, self.lead.k))
                shown = ", ".join(ks if len(ks) <= 12 else [*ks[:10], "...", ks[-1]])
                allowed = f"a prefix length of '{name_of(self.lead)}', the first curve: {shown}; or None"
                raise bad_parameter(name, "Page", allowed, value)

    @property
    def charts(self) -> tuple[Curves, ...]:
        """The charts of curves."""
        return tuple(part for section in self.sections for part in section.parts if isinstance(part, Curves))

    @property
    def stops(self) -> tuple[int, ...]:
        """Every prefix length that some curve was evaluated at, in order: where the slider can stand."""
        return tuple(sorted({k for chart in self.charts for curve in chart.everything for k in curve.k}))

    @property
    def lead_number(self) -> int:
        """The place of the first section with curves: it and those after it follow the slider over k."""
        return next(i for i, s in enumerate(self.sections) if any(isinstance(part, Curves) for part in s.parts))

    @property
    def lead(self) -> PrefixCurve:
        """The curve that the page is about: the first of the first chart."""
        return self.charts[0].curves[0]

    @property
    def start(self) -> int:
        """The prefix length to open with."""
        return self.chosen_k or self.start_k or self.lead.k[-1]

    @property
    def looks(self) -> dict[tuple[bool, str], Look]:
        """How each curve looks, by whether it is ours and its name: the same in all charts and tables."""
        lines = [line for chart in self.charts for line in chart.lines]
        return assign([name for ours, name in lines if ours], [name for ours, name in lines if not ours])


def name_of(curve: PrefixCurve) -> str:
    """Return what a table or chart calls the curve."""
    return curve.label or curve.metric
