"""The section of bytes: what the raw vectors take, and what their first k coordinates take."""

from __future__ import annotations

from firstk.evaluation.report.page import Page
from firstk.evaluation.report.parts import StorageSection
from firstk.evaluation.report.reading import share_text

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def bytes_text(count: float) -> str:
    """Write bytes with three digits and a decimal unit.

    Examples
    --------
    >>> bytes_text(15_360_000_000), bytes_text(999), bytes_text(1000)
    ('15.4 GB', '999 bytes', '1.00 kB')
    """
    if count < 1000:
        return f"{count:g} bytes"
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    digits = 2 if count < 9.995 else 1 if count < 99.95 else 0
    return f"{count:.{digits}f} {_UNITS[power]}"


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
