"""The page of a report: what to store, how it compares, what it saves, and each coordinate by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from firstk.advice.records import Report
from firstk.advice.report.page import Page, Section
from firstk.advice.report.parts import AxesSection, ImagesSection, PrecisionSection, StorageSection
from firstk.advice.report.reading import score_text, share_text
from firstk.advice.report.terms import COORDINATES_TERM, interval_term, known_terms, metric_of
from firstk.quality.choose import Choice, Offer
from firstk.quality.curve import PrefixCurve
from firstk.quality.evaluation import Evaluation
from firstk.quality.paired import CONFIDENCE
from firstk.quality.point import EMBEDDED, PRODUCT_QUANTIZER, RAW, Point
from firstk.words import choice as words
from firstk.words.tables import further_lines
from firstk.words.text import bytes_text

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
    curve, choice, rows = report.lead.curve(), report.choice, report.rows if rows is None else rows
    asked = asked_level(choice)
    lead = _section(report.lead)
    if choice is not None and choice.on_new:
        lead = replace(lead, text=f"{lead.text} {NEW_TEXT}".strip())
    lead = replace(lead, asked=asked, input_interval=_raw_interval(report.lead))
    by_bytes = _precision_section(report.lead, choice, asked)
    # What is recommended stands first: a number of bytes, where it has no k.
    first = by_bytes.chosen is not None and not by_bytes.chosen.is_prefix
    sections: list[object] = [by_bytes, lead] if first else [lead, by_bytes]
    further = [one for one in report.evaluations[1:] if one.baselines]
    sections += [_storage_section(report, rows, choice), *map(_section, further)]
    if report.axes is not None:
        sections.append(AxesSection("What is each coordinate worth?", AXES_TEXT, report.axes))
    if report.images is not None:
        sections.append(ImagesSection("What do k coordinates see?", IMAGES_TEXT, report.images))
    lines = further_lines([one for one in report.evaluations[1:] if not one.baselines])
    return Page(
        title=title_of(report, choice),
        summary=_summary(report, choice, rows),
        sections=tuple(sections),
        chosen_k=start_of(choice, curve),
        keep=None if choice is None or choice.advised is None else choice.limits.keep,
        facts=tuple(report.facts.items()),
        notes=(report.held_out, *_interval_note(lead, choice), *report.notes, *lines),
        commands=tuple(commands),
        figures=figures_of(choice, rows),
        terms=terms_of(choice, curve),
    )


def _summary(report: Report, choice: Choice | None, rows: int) -> str:
    if choice is None:
        whole = report.lead.input_score
        score = report.lead.curve().full if whole is None else whole
        return f"The score to keep is not positive ({score_text(score)}), so no code can be said to keep a share of it."
    return "\n\n".join([*words.answer(choice, rows), *words.explanation(choice)])


def _section(evaluation: Evaluation) -> Section:
    term = metric_of(evaluation.metric)
    ours, *baselines = (replace(curve, metric=term.name) for curve in (evaluation.curve(), *evaluation.baselines))
    return Section(term.heading, term.text, (ours,), tuple(baselines))


def _raw_interval(evaluation: Evaluation) -> tuple[float, float] | None:
    """Return the interval of the raw vectors' score, where they were resampled."""
    raw = next((point for point in evaluation.points if point.raw), None)
    ends = None if raw is None else evaluation.interval_of(raw)
    return None if ends is None or ends[0] == ends[1] else ends


def _precision_section(
    evaluation: Evaluation, choice: Choice | None, asked: tuple[str, float] | None
) -> PrecisionSection:
    """Show the table, with a ring around what is advised."""
    advised = None if choice is None else choice.advised
    point = None if advised is None or advised.point not in evaluation.points else advised.point
    named = replace(evaluation, metric=metric_of(evaluation.metric).name)
    text = f"{PRECISION_TEXT} {NEW_TEXT}" if choice is not None and choice.on_new else PRECISION_TEXT
    most = None if choice is None else choice.limits.bytes_per_vector
    return PrecisionSection("How few bytes will do?", text, named, point, asked, None if most is None else int(most))


def _storage_section(report: Report, rows: int, choice: Choice | None) -> StorageSection:
    lead, advised = report.lead, None if choice is None else choice.advised
    names = tuple(dict.fromkeys(point.precision for point in lead.prefixes)) or ("float32",)
    whole: tuple[tuple[str, int], ...] = ()
    if advised is not None:
        whole = ((f"recommended: {advised.point}", advised.point.bytes),)
        bits = lead.embedded
        if bits and (advised.point.precision != EMBEDDED or advised.point.code):
            # As many bytes of bits, or the nearest below.
            near = max((o for o in bits if o.bytes <= advised.point.bytes), key=lambda o: o.bytes, default=bits[0])
            whole += ((str(near), near.bytes),)
    return StorageSection("What is saved?", STORAGE_TEXT, rows, report.columns, report.itemsize, names, whole)


def _interval_note(lead: Section, choice: Choice | None) -> tuple[str, ...]:
    if lead.confidence is None:
        return ()
    text = f"Bands and intervals are {100 * lead.confidence:g} % bootstrap intervals over the evaluated data."
    if choice is not None and choice.advised is not None and choice.advised.low is not None:
        text += " The share that is promised is corrected for having been chosen on the same data."
    return (text,)


# -- the head ------------------------------------------------------------------------------------------------------


def asked_level(choice: Choice | None) -> tuple[str, float] | None:
    """Return the score that keeps the share that is asked for, and what a chart calls it."""
    if choice is None or choice.limits.keep is None or choice.chance is not None:
        return None
    whole = "raw" if choice.reference == RAW else "the best"
    return f"{100 * choice.limits.keep:g} % of {whole}", choice.reference_score * choice.limits.keep


def start_of(choice: Choice | None, curve: PrefixCurve) -> int | None:
    """Return the prefix length that a page opens with: that of the encoder's own choice, where there is one."""
    if choice is None or choice.chance is not None:
        return None
    if choice.own is not None and not choice.own.point.is_prefix:
        return None  # bits have no k
    for offer in (choice.own, choice.advised, choice.get("most")):
        if offer is not None and offer.point.code != RAW and offer.point.is_prefix and offer.point.k in curve.k:
            return offer.point.k
    return None


def title_of(report: Report, choice: Choice | None) -> str:
    """Return a title that says what is saved and what is kept, in words of everyday."""
    file = PurePath(str(report.facts.get("file") or "Vectors")).name or "Vectors"
    quality = metric_of(report.lead.metric).quality
    if choice is None:
        return f"{file}: what short vectors keep of {quality}"
    if choice.chance is not None:
        return f"{file}: check the inputs, the scores are those of guessing"
    advised, where = choice.advised, words.where(choice)
    if advised is None:
        asked = "" if choice.limits.keep is None else f", where {100 * choice.limits.keep:g} % was asked for"
        best = choice.get("most")
        most = "no code is within the limits" if best is None else f"at most {words.share_text(best)} of {quality} kept"
        return f"{file}: {most}{where}{asked}"
    instead = "" if choice.input_bytes is None else f" instead of {choice.input_bytes:,}"
    best_name = "" if choice.reference == RAW else " at its best"
    return (
        f"{file}: {advised.point.bytes:,} bytes per vector{instead}{_by_what(advised.point)}, "
        f"{words.share_text(advised)} of {quality}{best_name} kept{where}"
    )


def _by_what(point: Point) -> str:
    """Name what makes the code, where it is not the encoder."""
    if point.precision == PRODUCT_QUANTIZER:
        return " with a product quantizer"
    if point.code == RAW:
        return f" by rounding to {point.precision}" if point.is_prefix else " as embedded bits of the raw vectors"
    return f" with {point.code}" if point.code else ""


def figures_of(choice: Choice | None, rows: int) -> tuple[tuple[str, str], ...]:
    """Return up to four large figures with what each is: bytes, share kept, the best other in these bytes, savings."""
    if choice is None or choice.chance is not None:
        return ()
    advised, before, where = choice.advised, choice.input_bytes, words.where(choice)
    whose = "of the raw vectors'" if choice.reference == RAW else "of the best"
    name = metric_of(choice.metric).name
    if advised is None:
        most = choice.get("most")
        if most is None:
            return ()
        told = f"{whose} {name}{where} at most: {most.point}, {most.point.bytes:,} bytes"
        return ((words.share_text(most), told),)
    point = advised.point
    instead = "" if before is None else f" instead of {before:,}"
    count = f", {choice.n_new:,} {choice.unit}" if choice.on_new and choice.n_new is not None else ""
    found = [
        (f"{point.bytes:,}", f"bytes per vector{instead}: {point}"),
        (words.share_text(advised), f"{whose} {name} of {score_text(choice.reference_score)}, kept{where}{count}"),
    ]
    rival = choice.get("ahead", "behind") if advised is choice.own else choice.own
    if rival is not None:
        found.append((words.share_text(rival), _about_rival(choice, advised, rival)))
    if before is not None and before > point.bytes:
        saved, whole = rows * (before - point.bytes), rows * before
        found.append((bytes_text(saved), f"saved on {rows:,} vectors: {share_text(saved / whole)} of their bytes"))
    return tuple(found)


def _about_rival(choice: Choice, advised: Offer, rival: Offer) -> str:
    """Say whose share the third figure is, and what it is over all queries where the choice is on new documents."""
    limit = choice.limits.bytes_per_vector
    who = "the best baseline" if rival.point.code else "this model"
    within = "" if limit is None or choice.limits.keep is not None else f" in at most {limit:,} bytes"
    told = f"by {who}{within}{words.where(choice)}: {rival.point}, {rival.point.bytes:,} bytes"
    if rival.over_all is None or advised.over_all is None:
        return told
    theirs, ours = (f"{100 * share:.0f} %" for share in (rival.over_all, advised.over_all))
    return f"{told} (over all queries {theirs}, and {ours} by what is recommended)"


def terms_of(choice: Choice | None, lead: PrefixCurve) -> tuple[tuple[str, str], ...]:
    """Explain what the recommendation speaks of: metric, precisions, baselines, intervals."""
    metric = metric_of(lead.metric)
    terms = [(lead.metric, metric.text)] if metric.text else []
    if choice is None or choice.chance is not None:
        return tuple(terms)
    points = [offer.point for offer in choice.offers]
    if any(point.is_prefix for point in points):
        terms.append(COORDINATES_TERM)
    told = {"faiss", EMBEDDED} if words.ABOUT_BITS in words.explanation(choice) else {"faiss"}
    terms += known_terms(name for point in points for name in (point.code, point.precision) if name not in told)
    shown = next((offer for offer in choice.offers if offer.low is not None), None)
    if shown is not None:
        name, _ = interval_term(CONFIDENCE)
        count = f"{choice.unit} evaluated" if choice.n_evaluated is None else f"{choice.n_evaluated:,} {choice.unit}"
        text = f"a {name}: the {count} cannot tell the share more exactly."
        terms.append((words.share_text(choice.advised or shown), text))
    return tuple(terms)
