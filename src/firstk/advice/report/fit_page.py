"""The page of a fit or an evaluation: what to store, how it compares, what it saves, and each coordinate by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from firstk.advice.records import Report
from firstk.advice.report.page import Page, Section
from firstk.advice.report.sections import bytes_section, coordinate_section, curve_section, storage_section
from firstk.quality.choose import Choice
from firstk.quality.evaluation import Evaluation
from firstk.quality.paired import CONFIDENCE
from firstk.quality.point import EMBEDDED, RAW
from firstk.words import page as words
from firstk.words.tables import further_lines
from firstk.words.terms import metric_of


def page_of(report: Report, *, rows: int | None = None, commands: Iterable[str] = ()) -> Page:
    """Return the page of a report.

    Parameters
    ----------
    report : Report
    rows : int, optional
        How many vectors are to be stored; as many as the file held, if not given.
    commands : iterable of str
        The commands that store vectors as the choice says.
    """
    lead, choice, rows = report.lead, report.choice, report.rows if rows is None else rows
    curve, advised = lead.curve(), None if choice is None else choice.advised
    by_k, by_bytes = _curves(lead, choice), _bytes(lead, choice)
    # What is recommended stands first: a number of bytes, where it has no k.
    bits = advised is not None and advised.point in lead.points and not advised.point.is_prefix
    sections = [by_bytes, by_k] if bits else [by_k, by_bytes]
    sections.append(_storage(report, rows, curve.k))
    sections += [_curves(one) for one in report.evaluations[1:] if one.baselines]
    if report.axes is not None:
        sections.append(coordinate_section("What is each coordinate worth?", words.AXES_TEXT, report.axes))
    if report.images is not None:
        sections.append(Section("What do k coordinates see?", words.IMAGES_TEXT, (report.images,)))
    intervals = () if curve.confidence is None else (words.about_intervals(choice, curve.confidence),)
    further = further_lines([one for one in report.evaluations[1:] if not one.baselines])
    return Page(
        title=words.title_of(choice, str(report.facts.get("file") or ""), lead.metric),
        summary=words.summary_of(choice, rows, curve.full if lead.input_score is None else lead.input_score),
        sections=tuple(sections),
        chosen_k=chosen_k(choice, curve.k),
        start_k=_best_prefix(lead, choice),
        facts=tuple(report.facts.items()),
        notes=(report.held_out, *intervals, *report.notes, *further),
        commands=tuple(commands),
        figures=words.figures_of(choice, rows),
        terms=words.terms_of(choice, lead.metric, CONFIDENCE),
    )


def _curves(evaluation: Evaluation, choice: Choice | None = None) -> Section:
    term = metric_of(evaluation.metric)
    ours, *baselines = (replace(curve, metric=term.name) for curve in (evaluation.curve(), *evaluation.baselines))
    if choice is None:
        return curve_section(term.heading, term.text, [ours], baselines)
    raw = next((point for point in evaluation.points if point.raw), None)
    ends = None if raw is None else evaluation.interval_of(raw)
    return curve_section(
        term.heading,
        f"{term.text} {words.NEW_TEXT}".strip() if choice.on_new else term.text,
        [ours],
        baselines,
        asked=words.asked_level(choice),
        input_interval=None if ends is None or ends[0] == ends[1] else ends,
    )


def _bytes(evaluation: Evaluation, choice: Choice | None) -> Section:
    """Show the evaluation, with a ring around what is advised."""
    advised = None if choice is None else choice.advised
    point = None if advised is None or advised.point not in evaluation.points else advised.point
    named = replace(evaluation, metric=metric_of(evaluation.metric).name)
    on_new = choice is not None and choice.on_new
    text = f"{words.PRECISION_TEXT} {words.NEW_TEXT}" if on_new else words.PRECISION_TEXT
    most = None if choice is None else choice.limits.bytes_per_vector
    size = most or (None if point is None else point.bytes)
    return bytes_section("How few bytes will do?", text, named, point, words.asked_level(choice), size)


def _storage(report: Report, rows: int, ks: tuple[int, ...]) -> Section:
    lead, advised = report.lead, None if report.choice is None else report.choice.advised
    whole: tuple[tuple[str, int], ...] = ()
    if advised is not None:
        whole = ((f"recommended: {advised.point}", advised.point.bytes),)
        if lead.embedded and (advised.point.precision != EMBEDDED or advised.point.code):
            # As many bytes of bits, or the nearest below.
            fitting = [o for o in lead.embedded if o.bytes <= advised.point.bytes]
            near = max(fitting, key=lambda o: o.bytes, default=lead.embedded[0])
            whole += ((str(near), near.bytes),)
    return storage_section(
        "What is saved?",
        words.STORAGE_TEXT,
        rows=rows,
        columns=report.columns,
        itemsize=report.itemsize,
        ks=ks,
        precisions=tuple(dict.fromkeys(point.precision for point in lead.prefixes)) or ("float32",),
        whole=whole,
    )


def chosen_k(choice: Choice | None, ks: tuple[int, ...]) -> int | None:
    """Return the prefix length that a page recommends: that of the encoder's own choice, where there is one."""
    if choice is None or choice.chance is not None:
        return None
    if choice.own is not None and not choice.own.point.is_prefix:
        return None  # bits have no k
    for offer in (choice.own, choice.advised, choice.get("most")):
        if offer is not None and offer.point.code != RAW and offer.point.is_prefix and offer.point.k in ks:
            return offer.point.k
    return None


def _best_prefix(evaluation: Evaluation, choice: Choice | None) -> int | None:
    """Return the prefix length that does best in as many bytes as what is advised; None where nothing is."""
    if choice is None or choice.advised is None:
        return None
    size, lengths = choice.advised.point.bytes, evaluation.curve().k
    ks = lengths if evaluation.supported is None else evaluation.supported
    fitting = [o for o in evaluation.prefixes if o.bytes <= size and o.k in ks and o.k in lengths]
    return max(fitting, key=lambda point: point.score).k if fitting else None
