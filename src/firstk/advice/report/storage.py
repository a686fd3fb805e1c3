"""The section of bytes: what is recommended, embedded bits, the first k coordinates in each precision, raw vectors."""

from __future__ import annotations

from html import escape

from firstk.advice.report.page import Page
from firstk.advice.report.parts import StorageSection
from firstk.advice.report.reading import share_text
from firstk.words.text import bytes_text


def cells_at(section: StorageSection, k: int) -> list[str]:
    """Return, for each precision, bytes of a code, bytes of all codes, and the share that is saved."""
    cells: list[str] = []
    for name in section.precisions:
        cells += _cells(section, section.each(k, name))
    return cells


def _cells(section: StorageSection, each: int) -> list[str]:
    """Return bytes of a code, bytes of all codes, and the share that is saved."""
    return [f"{each:,}", bytes_text(section.rows * each), share_text(1 - each / section.each())]


def storage_html(page: Page, number: int) -> str:
    """Return the table of the section; the script rewrites the cells of the codes."""
    section: StorageSection = page.sections[number]
    texts = iter(cells_at(section, page.start))
    rows = "".join(_row(name, _cells(section, each), not i) for i, (name, each) in enumerate(section.whole))
    rows += "".join(
        _row(f"first k coordinates, {name}", [next(texts) for _ in range(3)], False, moves=True)
        for name in section.precisions
    )
    return (
        f'<table class="at stored" data-section="{number}"><caption>{section.rows:,} vectors at k = '
        f'<span class="k">{page.start}</span></caption>'
        '<thead><tr><th scope="col">stored</th><th scope="col">bytes a vector</th><th scope="col">all vectors</th>'
        f'<th scope="col">saved</th></tr></thead><tbody>{rows}'
        f'<tr class="raw"><th scope="row">raw vectors, {section.columns:,} numbers</th><td>{section.each():,}</td>'
        f"<td>{bytes_text(section.bytes_at())}</td><td></td></tr></tbody></table>"
    )


def _row(name: str, texts: list[str], chosen: bool, *, moves: bool = False) -> str:
    """Return a row; the script rewrites those that move with k."""
    cells = "".join(f'<td><span class="value">{text}</span></td>' for text in texts)
    kind, code = ' class="ours"' if chosen else "", " data-code" if moves else ""
    return f'<tr{kind}{code}><th scope="row">{escape(name)}</th>{cells}</tr>'


def storage_data(page: Page, number: int) -> dict[str, object]:
    """Return the cells at each stop."""
    return {"cells": [cells_at(page.sections[number], k) for k in page.stops]}
