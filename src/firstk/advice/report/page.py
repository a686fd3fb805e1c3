"""What a report page says: frozen records of text and curves, checked when they are made.

How it is drawn is not decided here. Another kind of section is another record, with its own renderer in `html`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_int, is_real
from firstk.advice.report.palette import Look, assign
from firstk.advice.report.parts import KINDS, PrecisionSection, StorageSection, set_field, text_of
from firstk.exceptions import InvalidInputError
from firstk.quality.curve import PrefixCurve

# Beyond this, the distance of two scores no longer fits a float.
LARGEST_DRAWN = 1e100

Value = str | int | float


@dataclass(frozen=True)
class Section:
    """One heading, one metric, one chart.

    Parameters
    ----------
    heading : str
        What the chart shows.
    text : str
        What to read off it, in plain text; an empty line starts a paragraph.
    curves : sequence of PrefixCurve
        Ours, at least one. The labels tell curves apart, so no two may be the same.
    baselines : sequence of PrefixCurve
        What they are compared with, in the same metric.
    asked : (str, float), optional
        A score that is to be kept, with its name: drawn as a level.
    input_interval : (float, float), optional
        Ends of the interval of the raw vectors' score.
    """

    heading: str
    text: str = ""
    curves: tuple[PrefixCurve, ...] = ()
    baselines: tuple[PrefixCurve, ...] = ()
    asked: tuple[str, float] | None = None
    input_interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        set_field(self, "heading", text_of(self.heading, "heading", "Section", empty=False))
        set_field(self, "text", text_of(self.text, "text", "Section"))
        curves, baselines = check_group(self.curves, self.baselines, f"Section '{self.heading}'")
        set_field(self, "curves", curves)
        set_field(self, "baselines", baselines)

    @property
    def everything(self) -> tuple[PrefixCurve, ...]:
        """All curves, ours first."""
        return self.curves + self.baselines

    @property
    def metric(self) -> str:
        """What all curves of the section measure."""
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
class Page:
    """All that a report says.

    Parameters
    ----------
    title : str
    summary : str
        Plain text, the answer before the pictures; an empty line starts a paragraph, and the first is set large.
    sections : sequence of Section, and of those in :mod:`firstk.advice.report.parts`
        The first curve of the first Section is the one the page is about.
    chosen_k : int, optional
        The prefix length to recommend, one of those at which that curve was evaluated. The slider starts there; if
        not given, where the first k coordinates do best in the bytes of what is recommended, else at the full width.
    keep : float in (0, 1], optional
        The share of the score that `chosen_k` was asked to keep.
    relative_to : {"full", "input"}
        Of which score: that of the full width, or that of the raw vectors; as in `PrefixCurve.smallest`.
    facts : mapping or sequence of (name, value)
        Shown in this order: rows, columns, objective, where the encoder is saved, library version.
    notes : sequence of str
        Notes for the end of the page.
    commands : sequence of str
        Commands that do what the summary says.
    figures : sequence of (str, str)
        Large figures below the summary, each with what it is; if not given, those of `chosen_k`.
    terms : sequence of (str, str)
        Terms of the summary, each with its explanation in one line.

    Examples
    --------
    >>> curve = PrefixCurve(k=[1, 2, 4], score=[0.5, 0.8, 0.9], metric="accuracy", label="fisher")
    >>> page = Page("Digits", "Two of four coordinates do.", [Section("Accuracy", curves=[curve])], chosen_k=2)
    >>> page.stops
    (1, 2, 4)
    """

    title: str
    summary: str
    sections: tuple[Any, ...]
    chosen_k: int | None = None
    keep: float | None = None
    relative_to: str = "full"
    facts: tuple[tuple[str, Value], ...] = ()
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    terms: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        set_field(self, "title", text_of(self.title, "title", "Page", empty=False))
        set_field(self, "summary", text_of(self.summary, "summary", "Page"))
        set_field(self, "sections", _sections(self.sections))
        set_field(self, "facts", _facts(self.facts))
        for name in ("notes", "commands"):
            texts = _items(getattr(self, name), name, "Page", "a sequence of str")
            set_field(self, name, tuple(text_of(text, name, "Page") for text in texts))
        for name in ("figures", "terms"):
            set_field(self, name, _text_pairs(getattr(self, name), name))
        check_choice(self.relative_to, ("full", "input"), "relative_to", "Page")
        if self.keep is not None:
            set_field(self, "keep", check_fraction(self.keep, "keep", "Page", open_left=True))
        if self.chosen_k is not None:
            set_field(self, "chosen_k", _chosen(self.chosen_k, self.lead))

    @property
    def stops(self) -> tuple[int, ...]:
        """Every prefix length that some curve was evaluated at, in order: where the slider can stand."""
        return tuple(sorted({k for s in self.curve_sections for curve in s.everything for k in curve.k}))

    @property
    def curve_sections(self) -> tuple[Section, ...]:
        """The sections that hold curves."""
        return tuple(section for section in self.sections if isinstance(section, Section))

    @property
    def storage(self) -> StorageSection | None:
        """The section that counts bytes, if there is one."""
        return next((section for section in self.sections if isinstance(section, StorageSection)), None)

    @property
    def lead_number(self) -> int:
        """The place of the first section that holds curves: it and those after it follow the slider over k."""
        return next(i for i, section in enumerate(self.sections) if isinstance(section, Section))

    @property
    def lead(self) -> PrefixCurve:
        """The curve that the page is about: the first of the first section that holds curves."""
        return self.sections[self.lead_number].curves[0]

    @property
    def start(self) -> int:
        """The prefix length to open with: the chosen one, the best in the chosen bytes, or the full width."""
        if self.chosen_k is not None:
            return self.chosen_k
        shown = (s.as_prefix for s in self.sections if isinstance(s, PrecisionSection))
        return next((k for k in shown if k in self.lead.k), self.lead.k[-1])


def looks_of(page: Page) -> dict[tuple[bool, str], Look]:
    """Return how each curve of a page looks, by (is it ours, its name)."""
    ours = [name_of(curve) for section in page.curve_sections for curve in section.curves]
    return assign(ours, [name_of(curve) for section in page.curve_sections for curve in section.baselines])


def drawn(section: Section, looks: dict[tuple[bool, str], Look]) -> list[tuple[PrefixCurve, Look]]:
    """Pair the curves of a section with their looks, ours first."""
    ours = [(curve, looks[True, name_of(curve)]) for curve in section.curves]
    return ours + [(curve, looks[False, name_of(curve)]) for curve in section.baselines]


def name_of(curve: PrefixCurve) -> str:
    """Return what a table or chart calls the curve."""
    return curve.label or curve.metric


def check_group(curves: object, baselines: object, owner: str) -> tuple[tuple[PrefixCurve, ...], ...]:
    """Return curves that can share one chart: one metric, one direction, no name twice."""
    ours = _curves(curves, "curves", owner)
    others = _curves(baselines, "baselines", owner)
    if not ours:
        raise InvalidInputError(f"{owner} needs at least one PrefixCurve in 'curves'. Got 0.")
    group = ours + others
    metrics = sorted({f"{c.metric} ({'higher' if c.higher_is_better else 'lower'} is better)" for c in group})
    if len(metrics) > 1:
        raise InvalidInputError(
            f"{owner} draws one metric on one axis. Got {len(metrics)}: {', '.join(metrics)}. "
            "Put each metric on its own."
        )
    names = [name_of(curve) for curve in group]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(
            f"{owner} tells curves apart by their labels. Got {names.count(twice[0])} curves called '{twice[0]}'; "
            "rename one with dataclasses.replace(curve, label=...)."
        )
    return ours, others


def _items(values: object, name: str, owner: str, allowed: str) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise bad_parameter(name, owner, allowed, values)
    return list(values)


def _curves(values: object, name: str, owner: str) -> tuple[PrefixCurve, ...]:
    # A single curve is iterable too, over its points; wrapping it in a list is what was meant.
    if isinstance(values, PrefixCurve):
        raise InvalidInputError(f"The '{name}' of {owner} are a sequence of PrefixCurve. Got one; write [curve].")
    curves = _items(values, name, owner, "a sequence of PrefixCurve")
    for position, curve in enumerate(curves):
        if not isinstance(curve, PrefixCurve):
            raise InvalidInputError(
                f"The '{name}' of {owner} are PrefixCurve records. Got {type(curve).__name__} at position "
                f"{position}; make one with PrefixEncoder.curve or PrefixCurve(k, score, metric)."
            )
        largest = max(map(abs, (*curve.score, curve.input_score or 0.0)))
        if largest > LARGEST_DRAWN:
            raise InvalidInputError(
                f"The curve '{name_of(curve)}' of {owner} reaches {largest:g}, and only scores up to "
                f"{LARGEST_DRAWN:g} can be drawn. Leave it out, or take its logarithm."
            )
    return tuple(curves)


def _sections(values: object) -> tuple[Any, ...]:
    sections = _items(values, "sections", "Page", "a sequence of Section")
    known = all(isinstance(section, (Section, *KINDS)) for section in sections)
    if not any(isinstance(section, Section) for section in sections) or not known:
        raise bad_parameter("sections", "Page", "a sequence of sections, at least one of them a Section", values)
    return tuple(sections)


def _facts(values: object) -> tuple[tuple[str, Value], ...]:
    allowed = "a mapping or a sequence of (name, value), names str and values str, int or float"
    pairs = _items(values.items() if isinstance(values, Mapping) else values, "facts", "Page", allowed)
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise bad_parameter("facts", "Page", allowed, pair)
        if not (isinstance(pair[1], str) or is_real(pair[1])):
            raise bad_parameter("facts", "Page", allowed, tuple(pair))
    return tuple((name, _own_number(value)) for name, value in pairs)


def _text_pairs(values: object, name: str) -> tuple[tuple[str, str], ...]:
    allowed = "a sequence of pairs of str"
    pairs = _items(values, name, "Page", allowed)
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise bad_parameter(name, "Page", allowed, pair)
    return tuple((first, second) for first, second in pairs)


def _own_number(value: Any) -> Value:
    """Return numpy's numbers as Python's own."""
    if isinstance(value, str):
        return value
    return int(value) if is_int(value) else float(value)


def _chosen(k: Any, curve: PrefixCurve) -> int:
    if not is_int(k) or k not in curve.k:
        ks = list(map(str, curve.k))
        shown = ", ".join(ks if len(ks) <= 12 else [*ks[:10], "...", ks[-1]])
        allowed = f"a prefix length of '{name_of(curve)}', the first curve: {shown}; or None"
        raise bad_parameter("chosen_k", "Page", allowed, k)
    return int(k)
