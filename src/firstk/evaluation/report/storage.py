"""The section of bytes: what the raw vectors take, and what their first k coordinates take."""

from __future__ import annotations

from firstk.encoder.recommendation import bytes_text
from firstk.evaluation.report.page import Page
from firstk.evaluation.report.parts import StorageSection
from firstk.evaluation.report.reading import share_text


def cells_at(section: StorageSection, k: int) -> tuple[str, str, str]:
    """Return bytes of a code, bytes of all codes, and the share that is saved."""
    saved = 1 - k / section.columns
    return f"{k * section.itemsize:,}", bytes_text(section.bytes_at(k)), share_text(saved)


def storage_html(page: Page, number: int) -> str:
    """Return the table of the section; the script rewrites the cells of its second row."""
    section: StorageSection = page.sections[number]
    each = section.columns * section.itemsize
    code = "".join(f'<td><span class="value">{text}</span></td>' for text in cells_at(section, page.start))
    return (
        f'<table class="at stored" data-section="{number}"><caption>{section.rows:,} vectors at k = '
        f'<span class="k">{page.start}</span>, {8 * section.itemsize} bits a number</caption>'
        '<thead><tr><th scope="col">stored</th><th scope="col">bytes a vector</th><th scope="col">all vectors</th>'
        '<th scope="col">saved</th></tr></thead><tbody>'
        f'<tr class="ours" data-code><th scope="row">first k coordinates</th>{code}</tr>'
        f'<tr class="raw"><th scope="row">raw vectors, {section.columns} numbers</th><td>{each:,}</td>'
        f"<td>{bytes_text(section.bytes_at())}</td><td></td></tr></tbody></table>"
    )


def storage_data(page: Page, number: int) -> dict[str, object]:
    """Return the cells at each stop."""
    return {"cells": [cells_at(page.sections[number], k) for k in page.stops]}
