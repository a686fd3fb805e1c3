"""The section of bytes: score against bytes as a picture, a table of k times precision, and one of other codes."""

from __future__ import annotations

from html import escape

from firstk.advice.report.by_bytes import bytes_data, bytes_html
from firstk.advice.report.page import Page
from firstk.advice.report.reading import NOTHING, score_text
from firstk.advice.report.terms import interval_term, known_terms, terms_html
from firstk.advice.report.tradeoff import (
    FRAME,
    SMALL,
    draw_tradeoff,
    looks_of_lines,
    name_of_point,
)
from firstk.quality.evaluation import Evaluation
from firstk.quality.paired import CONFIDENCE
from firstk.quality.point import PRODUCT_QUANTIZER, Point


def precision_html(page: Page, number: int) -> str:
    """Return picture and tables of the section; the script marks the row and the points of the k that fits."""
    section = page.sections[number]
    table, current = section.table, _followed(page, number, page.start)
    charts = "\n".join(
        draw_tradeoff(table, section.chosen, asked=section.asked, ids=f"tradeoff-{number}-{name}", frame=frame)
        for name, frame in (("wide", FRAME), ("narrow", SMALL))
    )
    return (
        f'<figure class="offers" data-section="{number}">{charts}{_legend(table)}</figure>\n'
        f"{bytes_html(table, section.bytes, number)}\n{_table(table, current, number)}\n"
        f"{terms_html(_terms(table))}\n{_others(table)}"
    )


def precision_data(page: Page, number: int) -> dict[str, object]:
    """Return the row of the table at each stop."""
    table = page.sections[number].table
    return {"rows": [_followed(page, number, k) for k in page.stops]} | bytes_data(table)


def _followed(page: Page, number: int, k: int) -> int | None:
    """Return the row that is marked at k; None where the section stands above the slider over k."""
    return row_at(page.sections[number].table, k) if number > page.lead_number else None


def row_at(table: Evaluation, k: int) -> int:
    """Return the longest prefix length of a table that fits into k; the shortest where none does, 0 where none is."""
    lengths = table.lengths
    return max((own for own in lengths if own <= k), default=min(lengths, default=0))


def _legend(table: Evaluation) -> str:
    """Name the lines below the narrow picture, which has no room for names."""
    items = "".join(
        f'<li style="color:var(--{look.name})">{escape(name)}</li>' for name, look in looks_of_lines(table).items()
    )
    return f'<ul class="legend" aria-hidden="true">{items}</ul>'


def _terms(table: Evaluation) -> list[tuple[str, str]]:
    names = [point.stored_as for point in table.points] + list(table.codes)
    found = known_terms(name for name in names if name != "faiss")
    return [*found] if table.draws is None else [*found, interval_term(CONFIDENCE)]


def _columns(table: Evaluation) -> list[str]:
    """Return the ways in which prefixes of the encoder's own codes are stored and asked, finest first."""
    return list(dict.fromkeys(point.stored_as for point in table.points if not point.code and point.is_prefix))


def _table(table: Evaluation, current: int | None, number: int) -> str:
    points = {(o.k, o.stored_as): o for o in table.points if not o.code and o.is_prefix and o.k in table.lengths}
    if not points:
        return ""
    columns = _columns(table)
    rows = []
    for k in sorted({k for k, _ in points}):
        cells = "".join(_cell(points.get((k, name)), table.pareto_front) for name in columns)
        now = ' class="now"' if k == current else ""
        rows.append(f'<tr data-offer="{k}"{now}><th scope="row">{k}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    return (
        '<div class="scroll offers" role="region" tabindex="0" aria-label="Score and bytes for each k and precision" '
        f'data-section="{number}"><table class="full"><caption>{escape(table.metric)}, and bytes of a vector. '
        f'* Best score for its size.</caption><thead><tr><th scope="col">k</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(point: Point | None, front: tuple[Point, ...]) -> str:
    if point is None:
        return f"<td>{NOTHING}</td>"
    star = '<span class="star">*</span>' if point in front else '<span class="star"></span>'
    return f"<td>{score_text(point.score)} <small>{point.bytes:,} B</small>{star}</td>"


def _others(table: Evaluation) -> str:
    """Return the best of every code for each size, with intervals, as a table that opens on demand."""
    shown = [(code, point) for code in ("", *table.codes) for point in table.front_of(code)]
    rows = "".join(
        f'<tr{"" if code else " class=chosen"}><th scope="row">{escape(_name(table, point))}</th>'
        f"<td>{point.bytes:,}</td><td>{score_text(point.score)}</td><td>{_interval(table, point)}</td></tr>"
        for code, point in sorted(shown, key=lambda pair: (pair[1].bytes, -pair[1].score))
    )
    return (
        "<details open><summary>The best of each code for its size, as a table</summary>"
        '<div class="scroll" role="region" tabindex="0" aria-label="The best of each code for its size">'
        f'<table class="full"><caption>{escape(table.metric)}: this model in bold, others beside it</caption>'
        '<thead><tr><th scope="col">stored</th><th scope="col">bytes a vector</th><th scope="col">score</th>'
        f'<th scope="col">{100 * CONFIDENCE:g} % interval</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _name(table: Evaluation, point: Point) -> str:
    name = name_of_point(point)
    return name if point.code or point.precision == PRODUCT_QUANTIZER else f"{table.label or 'this model'}, {name}"


def _interval(table: Evaluation, point: Point) -> str:
    ends = table.interval_of(point)
    return NOTHING if ends is None else f"{score_text(ends[0])} to {score_text(ends[1])}"
