"""The section of stored precisions: score against bytes as a picture, and a table of k times precision."""

from __future__ import annotations

from html import escape

from firstk.evaluation.operating_points import OperatingPoint, PrecisionTable
from firstk.evaluation.report.page import Page
from firstk.evaluation.report.reading import NOTHING, score_text
from firstk.evaluation.report.tradeoff import FRAME, SMALL, draw_tradeoff, looks_of_precisions


def precision_html(page: Page, number: int) -> str:
    """Return picture and table of the section; the script marks the row and the points of the k that fits."""
    section = page.sections[number]
    table, current = section.table, row_at(section.table, page.start)
    charts = "\n".join(
        draw_tradeoff(table, section.chosen, ids=f"tradeoff-{number}-{name}", frame=frame)
        for name, frame in (("wide", FRAME), ("narrow", SMALL))
    )
    return (
        f'<figure class="offers" data-section="{number}">{charts}{_legend(table)}</figure>\n'
        f"{_table(table, current, number)}"
    )


def precision_data(page: Page, number: int) -> dict[str, object]:
    """Return the row of the table at each stop."""
    table = page.sections[number].table
    return {"rows": [row_at(table, k) for k in page.stops]}


def row_at(table: PrecisionTable, k: int) -> int:
    """Return the longest prefix length of a table that fits into k; the shortest where none does."""
    lengths = sorted({point.k for point in table.own})
    return max((own for own in lengths if own <= k), default=lengths[0])


def _legend(table: PrecisionTable) -> str:
    """Name the precisions below the narrow picture, which has no room for names."""
    items = "".join(
        f'<li style="color:var(--{look.name})">{escape(name)}</li>' for name, look in looks_of_precisions(table).items()
    )
    return f'<ul class="legend" aria-hidden="true">{items}</ul>'


def _table(table: PrecisionTable, current: int, number: int) -> str:
    points = {(point.k, point.precision): point for point in table.own}
    rows = []
    for k in sorted({point.k for point in table.own}):
        cells = "".join(_cell(points.get((k, name)), table.pareto_front) for name in table.precisions)
        now = ' class="now"' if k == current else ""
        rows.append(f'<tr data-offer="{k}"{now}><th scope="row">{k}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.precisions)
    return (
        '<div class="scroll offers" role="region" tabindex="0" aria-label="Score and bytes for each k and precision" '
        f'data-section="{number}"><table class="full"><caption>{escape(table.metric)}, and bytes of a vector. '
        f'* No other is better for as few bytes.</caption><thead><tr><th scope="col">k</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(point: OperatingPoint | None, front: tuple[OperatingPoint, ...]) -> str:
    if point is None:
        return f"<td>{NOTHING}</td>"
    star = '<span class="star">*</span>' if point in front else '<span class="star"></span>'
    return f"<td>{score_text(point.score)} <small>{point.bytes:,} B</small>{star}</td>"
