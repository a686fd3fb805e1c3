"""The page of an evaluation: what to store, how it compares, what it saves, and each coordinate by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from firstk.encoder.recommendation import EMBEDDED, RAW, OperatingPoint, Recommendation
from firstk.evaluation.operating_points import PrecisionTable
from firstk.evaluation.records import Comparison, HeldOutReport
from firstk.evaluation.report.advice import advice_of, asked_level, figures_of, start_of, terms_of, title_of
from firstk.evaluation.report.page import Page, Section
from firstk.evaluation.report.parts import AxesSection, ImagesSection, PrecisionSection, StorageSection
from firstk.evaluation.report.reading import score_text
from firstk.evaluation.report.terms import metric_of

AXES_TEXT = "Each coordinate by itself, on the held-out rows."
PRECISION_TEXT = (
    "Each point is one way to store a vector; higher and further left is better. The ring is what is recommended, and "
    "squares are other methods. Steps join the best of this model for each number of bytes. Queries stay float32."
)
NEW_TEXT = "These scores are of searches for new documents, which the fit has not learned from."
STORAGE_TEXT = (
    "Bytes of the vectors as they are, of what is recommended, of embedded bits, and of the first k coordinates in "
    "each precision. A file or a database adds ids, other columns and its index to them, and once, "
    "whatever the number of rows, what embedded bits are read by."
)
IMAGES_TEXT = (
    "Held-out images above; below, what the best linear decoder rebuilds from their first k coordinates, and the share "
    "of the squared distance from the mean image that is rebuilt."
)

Commands = Callable[[OperatingPoint], Iterable[str]]


def page_of(
    report: HeldOutReport,
    *,
    rows: int | None = None,
    k: int | None = None,
    keep: float | None = None,
    bytes_per_vector: int | None = None,
    commands: Commands | None = None,
) -> Page:
    """Return the page of an evaluation: of a fit on held-out rows, or of a saved encoder on files.

    Parameters
    ----------
    report : HeldOutReport
    rows : int, optional
        How many vectors are to be stored; as many as the file held, if not given.
    k : int, optional
        The prefix length to recommend, in float32 unless `keep` is given too.
    keep : float in (0, 1], optional
        The share to keep. Without this, `k` and `bytes_per_vector`, the page recommends what the evaluation did.
    bytes_per_vector : int, optional
        The most that a stored vector may take.
    commands : callable (OperatingPoint) -> iterable of str, optional
        Returns the commands that store vectors as a point says.
    """
    curve, rows = report.lead.ours, report.rows if rows is None else rows
    advice = advice_of(report, k, keep, bytes_per_vector)
    asked = asked_level(advice, curve.higher_is_better)
    lead, *others = (_section(comparison) for comparison in report.comparisons)
    if advice is not None and advice.on_new:
        lead = replace(lead, text=f"{lead.text} {NEW_TEXT}".strip())
    lead = replace(lead, asked=asked, input_interval=_raw_interval(report.precisions))
    sections: list[object] = [lead]
    if report.precisions is not None:
        by_bytes = _precision_section(report.precisions, advice, asked)
        # What is recommended stands first: a number of bytes, where it has no k.
        first = by_bytes.chosen is not None and not by_bytes.chosen.is_prefix
        sections.insert(0 if first else 1, by_bytes)
    sections += [_storage_section(report, rows, advice), *others]
    if report.axes is not None:
        sections.append(AxesSection("What is each coordinate worth?", AXES_TEXT, report.axes))
    if report.images is not None:
        sections.append(ImagesSection("What do k coordinates see?", IMAGES_TEXT, report.images))
    return Page(
        title=title_of(report, advice),
        summary=_summary(report, advice, rows),
        sections=tuple(sections),
        chosen_k=start_of(advice, curve),
        keep=None if advice is None or advice.advised is None else advice.keep,
        facts=tuple(report.facts.items()),
        notes=(report.held_out, *_interval_note(lead, advice), *report.notes),
        commands=_commands(advice, commands),
        figures=figures_of(advice, rows),
        terms=terms_of(advice, curve),
    )


def _summary(report: HeldOutReport, advice: Recommendation | None, rows: int) -> str:
    if advice is None:
        whole = report.lead.ours.input_score
        score = report.lead.ours.full if whole is None else whole
        return f"The score to keep is not positive ({score_text(score)}), so no code can be said to keep a share of it."
    return "\n\n".join(advice.lines(rows))


def _commands(advice: Recommendation | None, commands: Commands | None) -> tuple[str, ...]:
    if commands is None or advice is None:
        return ()
    return tuple(
        f"{command}  # {remark}" if remark else command
        for point, remark in advice.to_store()
        for command in commands(point)
    )


def _section(comparison: Comparison) -> Section:
    term = metric_of(comparison.ours.metric)
    ours, *baselines = (replace(curve, metric=term.name) for curve in (comparison.ours, *comparison.baselines))
    return Section(term.heading, term.text, (ours,), tuple(baselines))


def _raw_interval(table: PrecisionTable | None) -> tuple[float, float] | None:
    """Return the interval of the raw vectors' score, where they were resampled."""
    if table is None:
        return None
    raw = next((point for point in table.points if point.code == RAW and point.precision == "float32"), None)
    ends = None if raw is None else table.interval_of(raw)
    return None if ends is None or ends[0] == ends[1] else ends


def _precision_section(
    table: PrecisionTable, advice: Recommendation | None, asked: tuple[str, float] | None
) -> PrecisionSection:
    """Show the table, with a ring around what is advised."""
    advised = None if advice is None else advice.advised
    point = None if advised is None or advised.point not in table.points else advised.point
    named = replace(table, metric=metric_of(table.metric).name)
    text = f"{PRECISION_TEXT} {NEW_TEXT}" if advice is not None and advice.on_new else PRECISION_TEXT
    most = None if advice is None else advice.bytes_per_vector
    return PrecisionSection("How few bytes will do?", text, named, point, asked, most)


def _storage_section(report: HeldOutReport, rows: int, advice: Recommendation | None) -> StorageSection:
    table = report.precisions
    names = () if table is None else tuple(dict.fromkeys(point.precision for point in table.prefixes))
    names = names or ("float32",)
    advised = None if advice is None else advice.advised
    whole: tuple[tuple[str, int], ...] = ()
    if advised is not None:
        whole = ((f"recommended: {advised.point}", advised.point.bytes),)
    bits = () if table is None else table.embedded
    if advised is not None and bits and (advised.point.precision != EMBEDDED or advised.point.code):
        # As many bytes of bits, or the nearest below.
        near = max((o for o in bits if o.bytes <= advised.point.bytes), key=lambda o: o.bytes, default=bits[0])
        whole += ((str(near), near.bytes),)
    return StorageSection("What is saved?", STORAGE_TEXT, rows, report.columns, report.itemsize, names, whole)


def _interval_note(lead: Section, advice: Recommendation | None) -> tuple[str, ...]:
    if lead.confidence is None:
        return ()
    text = f"Bands and intervals are {100 * lead.confidence:g} % bootstrap intervals over the evaluated data."
    if advice is not None and advice.advised is not None and advice.advised.low is not None:
        text += " The share that is promised is corrected for having been chosen on the same data."
    return (text,)
