"""The section of bytes: what the raw vectors take, and what their first k coordinates take in each precision."""

from __future__ import annotations

from html import escape

from firstk.encoder.recommendation import bytes_text
from firstk.evaluation.report.page import Page
from firstk.evaluation.report.parts import StorageSection
from firstk.evaluation.report.reading import share_text


def cells_at(section: StorageSection, k: int) -> list[str]:
    """Return, for each precision, bytes of a code, bytes of all codes, and the share that is saved."""
    cells: list[str] = []
    for name in section.precisions:
        saved = 1 - section.each(k, name) / section.each()
        cells += [f"{section.each(k, name):,}", bytes_text(section.bytes_at(k, name)), share_text(saved)]
    return cells


def storage_html(page: Page, number: int) -> str:
    """Return the table of the section; the script rewrites the cells of the codes."""
    section: StorageSection = page.sections[number]
    texts = iter(cells_at(section, page.start))
    rows = "".join(_row(name, [next(texts) for _ in range(3)], name == section.chosen) for name in section.precisions)
    return (
        f'<table class="at stored" data-section="{number}"><caption>{section.rows:,} vectors at k = '
        f'<span class="k">{page.start}</span></caption>'
        '<thead><tr><th scope="col">stored</th><th scope="col">bytes a vector</th><th scope="col">all vectors</th>'
        f'<th scope="col">saved</th></tr></thead><tbody>{rows}'
        f'<tr class="raw"><th scope="row">raw vectors, {section.columns:,} numbers</th><td>{section.each():,}</td>'
        f"<td>{bytes_text(section.bytes_at())}</td><td></td></tr></tbody></table>"
    )


def _row(precision: str, texts: list[str], chosen: bool) -> str:
    cells = "".join(f'<td><span class="value">{text}</span></td>' for text in texts)
    kind = ' class="ours"' if chosen else ""
    return f'<tr{kind} data-code><th scope="row">first k coordinates, {escape(precision)}</th>{cells}</tr>'


def storage_data(page: Page, number: int) -> dict[str, object]:
    """Return the cells at each stop."""
    return {"cells": [cells_at(page.sections[number], k) for k in page.stops]}
