"""The usual sections of a page: curves, bytes, storage, single coordinates. Each is its charts and tables, as data."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from firstk._base.checks import bad_parameter, check_choice, is_int
from firstk.advice.records import AxisStatistics, Report
from firstk.advice.report.byte_chart import name_of_code, name_of_point, shown_as
from firstk.advice.report.charts import statistics_of
from firstk.advice.report.layout import RAW_NAME
from firstk.advice.report.page import (
    NOTHING,
    BytesChart,
    Cell,
    Curves,
    Glossary,
    Page,
    Row,
    Section,
    Steps,
    Table,
    name_of,
)
from firstk.data.precision import PRECISIONS
from firstk.quality.choice import EMBEDDED, PRODUCT_QUANTIZER, RAW, Choice, Point
from firstk.quality.curve import PrefixCurve
from firstk.quality.evaluation import Evaluation
from firstk.quality.paired import CONFIDENCE
from firstk.words import page as words
from firstk.words.choice import further_lines
from firstk.words.terms import interval_term, known_terms, metric_of
from firstk.words.text import bytes_text, number_of, score_text, share_text

__all__ = ["page_of"]

Level = tuple[str, float]


def curve_section(
    heading: str,
    text: str,
    curves: Sequence[PrefixCurve],
    baselines: Sequence[PrefixCurve] = (),
    *,
    asked: Level | None = None,
    input_interval: tuple[float, float] | None = None,
) -> Section:
    """Return a section of one metric: a chart, a table at one k, which is also the legend, and one of all k.

    Parameters
    ----------
    heading, text : str
    curves, baselines, asked, input_interval
        As in `Curves`.
    """
    chart = Curves(curves, baselines, asked, input_interval)  # type: ignore[arg-type]
    terms = [*known_terms([name_of(curve) for curve in chart.baselines] + [RAW_NAME] * bool(chart.input_scores))]
    terms += [] if chart.confidence is None else [interval_term(chart.confidence)]
    return Section(heading, text, (chart, _at_k(chart), Glossary(tuple(terms)), _at_all(chart, heading)))


def _at_k(chart: Curves) -> Table:
    stops = sorted({k for curve in chart.everything for k in curve.k})
    banded = chart.confidence is not None
    heads = ["code", "score", *([f"{100 * (chart.confidence or 0):g} % interval"] if banded else []),
             "of its full width", *(["of the raw vectors"] if chart.input_scores else [])]  # fmt: skip
    rows = []
    for curve, line in zip(chart.everything, chart.lines, strict=True):
        k = curve.k
        # Where a curve was not evaluated, it is read at the longest prefix that fits.
        read = [k[max(bisect_right(k, stop) - 1, 0)] for stop in stops]
        own = tuple(f"k = {at}" if at < stop else "" for at, stop in zip(read, stops, strict=True))
        cells = [Cell(Steps(k, tuple(score_text(score, 4) for score in curve.score)), Steps(tuple(stops), own))]
        if banded:
            ends = [None] * len(k) if curve.low is None else list(zip(curve.low, curve.high or (), strict=True))
            cells.append(Cell(Steps(k, tuple(map(_interval, ends)))))
        wholes = [curve.full, *([curve.input_score] if chart.input_scores else [])]
        cells += [Cell(Steps(k, tuple(share_of(curve, score, whole) for score in curve.score))) for whole in wholes]
        rows.append(Row(name_of(curve), tuple(cells), "ours" if line[0] else "", line))
    for score in chart.input_scores:
        interval = [_interval(chart.input_interval, "")] if banded else []
        rows.append(Row(RAW_NAME, (score_text(score, 4), *interval, "", share_text(1.0)), "raw", (False, RAW_NAME)))
    k_text = Steps.of(stops, str)
    return Table((f"{chart.metric} at k = ", k_text, ", as float32"), tuple(heads), tuple(rows))


def _at_all(chart: Curves, heading: str) -> Table:
    """Return every score, a prefix length in each row: what the chart shows, for those who do not see it."""
    stops = sorted({k for curve in chart.everything for k in curve.k})
    found = [dict(curve) for curve in chart.everything]
    rows = [
        Row(str(k), tuple(score_text(scores[k], 4) if k in scores else NOTHING for scores in found), k=k) for k in stops
    ]
    return Table(
        (f"{chart.metric} at every evaluated k, as float32",),
        ("k", *(name_of(curve) for curve in chart.everything)),
        tuple(rows),
        folded=f"All {len(stops)} prefix lengths as a table",
    )


def share_of(curve: PrefixCurve, score: float, whole: float | None) -> str:
    """Return the share of `whole` that `score` keeps, as in `PrefixCurve.smallest`; a dash where it means nothing."""
    if whole is None or whole <= 0 or (not curve.higher_is_better and score <= 0):
        return NOTHING
    share = score / whole if curve.higher_is_better else whole / score
    return share_text(share) if abs(share) < 100 else f"{100 * share:.3g}\u00a0%"


def _interval(ends: tuple[float, float] | None, missing: str = NOTHING) -> str:
    return missing if ends is None else f"{score_text(ends[0], 4)} to {score_text(ends[1], 4)}"


# -- bytes ---------------------------------------------------------------------------------------------------------


def bytes_section(
    heading: str,
    text: str,
    evaluation: Evaluation,
    chosen: Point | None = None,
    asked: Level | None = None,
    size: int | None = None,
) -> Section:
    """Return a section of what so many bytes are worth: a chart, and tables of our bits, prefixes and other codes.

    Parameters
    ----------
    heading, text : str
    evaluation : Evaluation
    chosen, asked
        As in `BytesChart`.
    size : int, optional
        The number of bytes that the table of bytes opens with.
    """
    names = [point.stored_as for point in evaluation.points] + list(evaluation.codes)
    terms = [*known_terms(name for name in names if name != "faiss")]
    terms += [] if evaluation.draws is None else [interval_term(CONFIDENCE)]
    tables = [table for table in (_in_bytes(evaluation, size), _precisions(evaluation)) if table.rows]
    chart = BytesChart(evaluation, chosen, asked)
    return Section(heading, text, (chart, *tables, Glossary(tuple(terms)), _fronts(evaluation)))


def _in_bytes(evaluation: Evaluation, size: int | None) -> Table:
    """Return the best of each kind of code in at most so many bytes; the slider stops at those of embedded bits."""
    sizes = [point.bytes for point in evaluation.embedded]
    kinds = {"embedded bits": evaluation.embedded, "first k coordinates": evaluation.prefixes}
    for code in evaluation.codes:
        kinds[name_of_code(code)] = tuple(o for o in evaluation.points if o.code == code and o.queries == "float32")
    rows: list[Row] = []
    for name, points in kinds.items() if sizes else ():
        best = [max((o for o in points if o.bytes <= size), key=lambda o: (o.score, -o.bytes), default=None)
                for size in sizes]  # fmt: skip
        scores = [NOTHING if o is None else score_text(o.score, 4) for o in best]
        ends = [NOTHING if o is None else _interval(evaluation.interval_of(o)) for o in best]
        stored = []  # without the name of the code, which the row says
        for o in best:
            k = "" if o is None or o.code == RAW or not o.is_prefix else f"k = {o.k}, "
            stored.append(NOTHING if o is None else f"{k}{shown_as(o.stored_as)}, {number_of(o.bytes, 'byte')}")
        cells = tuple(Steps(tuple(sizes), tuple(texts)) for texts in (scores, ends, stored))
        rows.append(Row(name, cells, "" if rows else "ours"))
    wanted = size or (sizes[len(sizes) // 2] if sizes else 0)
    return Table(
        (f"{evaluation.metric} in ", Steps.of(sizes, lambda size: f"{size:,}"), " bytes per vector at most"),
        ("stored", "score", "interval", "as"),
        tuple(rows),
        scrolls=True,
        sizes=tuple(sizes),
        size=max((own for own in sizes if own <= wanted), default=min(sizes, default=0)),
    )


def _precisions(evaluation: Evaluation) -> Table:
    """Return score and bytes of each k in each precision."""
    shown = [o for o in evaluation.points if not o.code and o.is_prefix and o.k in evaluation.lengths]
    columns, front = tuple(dict.fromkeys(o.stored_as for o in shown)), evaluation.pareto_front
    cells = {(o.k, o.stored_as): Cell(score_text(o.score, 4), f"{o.bytes:,} B", o in front) for o in shown}
    rows = [
        Row(str(k), tuple(cells.get((k, name), Cell()) for name in columns), k=k) for k in sorted({o.k for o in shown})
    ]
    caption = f"{evaluation.metric}, and bytes of a vector. * Best score for its size."
    return Table((caption,), ("k", *columns), tuple(rows), scrolls=True, follows=True)


def _fronts(evaluation: Evaluation) -> Table:
    """Return the best of every code for each size, with intervals."""
    shown = [point for code in ("", *evaluation.codes) for point in evaluation.front_of(code)]
    rows = []
    for point in sorted(shown, key=lambda o: (o.bytes, -o.score)):
        name, own = name_of_point(point), not point.code and point.precision != PRODUCT_QUANTIZER
        once = NOTHING if point.stored_once is None else bytes_text(point.stored_once)
        cells = (f"{point.bytes:,}", once, score_text(point.score, 4), _interval(evaluation.interval_of(point)))
        whose = f"{evaluation.label or 'this model'}, {name}" if own else name
        rows.append(Row(whose, cells, "" if point.code else "chosen"))
    return Table(
        (f"{evaluation.metric}: this model in bold, others beside it",),
        ("stored", "bytes per vector", "once", "score", f"{100 * CONFIDENCE:g} % interval"),
        tuple(rows),
        folded="The best of each code for its size, as a table",
    )


def storage_section(
    heading: str,
    text: str,
    *,
    rows: int,
    columns: int,
    itemsize: int,
    ks: Iterable[int],
    precisions: Sequence[str] = ("float32",),
    whole: Iterable[tuple[str, int]] = (),
) -> Section:
    """Return a section of bytes: of the raw vectors, and of their first k coordinates.

    Parameters
    ----------
    heading, text : str
    rows : int
        How many vectors are stored.
    columns, itemsize : int
        Width of a raw vector, and bytes of each of its numbers.
    ks : iterable of int
        Prefix lengths at which the slider may stop.
    precisions : sequence of str
        Precisions in which the coordinates may be stored.
    whole : iterable of (str, int)
        Codes whose bytes do not depend on k, with these: what is recommended first, and embedded bits.
    """
    for name, value in (("rows", rows), ("columns", columns), ("itemsize", itemsize)):
        if not is_int(value) or value < 1:
            raise bad_parameter(name, "storage_section", "an int of at least 1", value)
    for name in precisions:
        check_choice(name, PRECISIONS, "precisions", "storage_section")
    raw, ks = itemsize * columns, tuple(ks)

    def cells(each: int) -> tuple[str, str, str]:
        return f"{each:,}", bytes_text(rows * each), share_text(1 - each / raw)

    lines = [Row(name, cells(each), "" if i else "ours") for i, (name, each) in enumerate(whole)]
    for name in precisions:
        at_k = zip(*(cells(PRECISIONS[name].bytes_per_vector(k)) for k in ks), strict=True)
        lines.append(Row(f"first k coordinates, {name}", tuple(Steps(ks, texts) for texts in at_k)))
    lines.append(Row(f"raw vectors, {columns:,} numbers", (f"{raw:,}", bytes_text(rows * raw), ""), "raw"))
    caption = (f"{rows:,} vectors at k = ", Steps.of(ks, str))
    return Section(
        heading, text, (Table(caption, ("stored", "bytes per vector", "all vectors", "saved"), tuple(lines)),)
    )


# -- single coordinates --------------------------------------------------------------------------------------------


def coordinate_section(heading: str, text: str, axes: AxisStatistics) -> Section:
    """Return a section of what each coordinate is like by itself."""
    shown, total = statistics_of(axes), sum(axes.variance)

    def said(k: int) -> str:
        kept = share_text(sum(axes.variance[:k]) / total) if total > 0 else NOTHING
        told = f"Coordinates 1 to {k} hold {kept} of the variance of the code."
        if not axes.usefulness:
            return told
        chance = "" if axes.chance is None else f" (knowing nothing: {score_text(axes.chance, 4)})"
        return f"{told} Coordinate {k} alone: {axes.measure} {score_text(axes.usefulness[k - 1], 4)}{chance}."

    rows = [Row(str(j + 1), tuple(score_text(v[j], 4) for _, v in shown), k=j + 1) for j in range(axes.d)]
    table = Table(
        ("Each coordinate by itself",),
        ("coordinate", *(name for name, _ in shown)),
        tuple(rows),
        folded=f"All {axes.d} coordinates as a table",
    )
    terms = Glossary(known_terms(name for name, _ in shown))
    return Section(heading, text, (Steps.of(range(1, axes.d + 1), said), axes, terms, table))


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
    point = None if advised is None or advised.point not in lead.points else advised.point
    on_new = choice is not None and choice.on_new
    most = None if choice is None else choice.limits.bytes_per_vector
    by_k = _curves(lead, choice)
    by_bytes = bytes_section(
        "How few bytes will do?",
        f"{words.PRECISION_TEXT} {words.NEW_TEXT}" if on_new else words.PRECISION_TEXT,
        replace(lead, metric=metric_of(lead.metric).name),
        point,
        words.asked_level(choice),
        most or (None if point is None else point.bytes),
    )
    # What is recommended stands first: a number of bytes, where it has no k.
    sections = [by_k, by_bytes] if point is None or point.is_prefix else [by_bytes, by_k]
    whole: tuple[tuple[str, int], ...] = ()
    start_k = None
    if advised is not None:
        size, precision = advised.point.bytes, advised.point.precision
        whole = ((f"recommended: {advised.point}", size),)
        if lead.embedded and (precision != EMBEDDED or advised.point.code):
            # As many bytes of bits, or the nearest below.
            near = max((o for o in lead.embedded if o.bytes <= size), key=lambda o: o.bytes, default=lead.embedded[0])
            whole += ((str(near), near.bytes),)
        # The slider starts at the prefix that does best in as many bytes.
        ks = set(curve.k if lead.supported is None else lead.supported) & set(curve.k)
        fitting = [o for o in lead.prefixes if o.bytes <= size and o.k in ks]
        start_k = max(fitting, key=lambda o: o.score).k if fitting else None
    sections.append(
        storage_section(
            "What is saved?",
            words.STORAGE_TEXT,
            rows=rows,
            columns=report.columns,
            itemsize=report.itemsize,
            ks=curve.k,
            # What a store takes for a form is told by the points.
            precisions=tuple(dict.fromkeys(one.precision for one in lead.prefixes if not one.form)) or ("float32",),
            whole=whole,
        )
    )
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
        start_k=start_k,
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
