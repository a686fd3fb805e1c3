"""Tables of a section: one for a single k, which is also the legend, and one with every number."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from firstk.advice.report.page import Page, Section, drawn, looks_of, name_of
from firstk.advice.report.palette import RAW_LOOK, RAW_NAME
from firstk.advice.report.reading import NOTHING, Reading, read, read_all, score_text, share_text
from firstk.advice.report.svg import swatch

FEW_ROWS = 40  # A longer table is printed at powers of two only.


def table_at(page: Page, number: int, k: int) -> str:
    """Scores at one k, a curve in each row; the script rewrites the cells."""
    section = page.sections[number]
    confidence = section.confidence
    banded = [] if confidence is None else [f"{100 * confidence:g} % interval"]
    heads = ["score", *banded, "of its full width", *(["of the raw vectors"] if section.input_scores else [])]
    rows = [
        f'<tr{" class=ours" if look.ours else ""} data-curve="{i}"><th scope="row">{swatch(look)}'
        f"<span>{escape(name_of(curve))}</span></th>{_cells(section, read(curve, k), k)}</tr>"
        for i, (curve, look) in enumerate(drawn(section, looks_of(page)))
    ]
    rows += [
        f'<tr class="raw"><th scope="row">{swatch(RAW_LOOK)}<span>{RAW_NAME}</span></th>'
        f"<td>{score_text(score)}</td>{_raw_interval(section) if banded else ''}<td></td>"
        f"<td>{share_text(1.0)}</td></tr>"
        for score in section.input_scores
    ]
    return (
        f'<table class="at" data-section="{number}"><caption>{escape(section.metric)} at '
        f'k = <span class="k">{k}</span>, as float32</caption>'
        f'<thead><tr><th scope="col">code</th>{"".join(f"<th scope=col>{head}</th>" for head in heads)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _raw_interval(section: Section) -> str:
    ends = section.input_interval
    return "<td></td>" if ends is None else f"<td>{score_text(ends[0])} to {score_text(ends[1])}</td>"


def cell_texts(section: Section, reading: Reading | None) -> list[str]:
    """Return what the cells of one curve say: score, interval where the section has any, and shares."""
    score, of_full, of_raw = reading.cells if reading else (NOTHING,) * 3
    banded = [] if section.confidence is None else [reading.interval if reading else NOTHING]
    return [score, *banded, of_full, *([of_raw] if section.input_scores else [])]


def _cells(section: Section, reading: Reading | None, k: int) -> str:
    score, *others = cell_texts(section, reading)
    elsewhere = f"k = {reading.k}" if reading and reading.k != k else ""
    first = f'<td><small>{elsewhere}</small> <span class="value">{score}</span></td>'
    return first + "".join(f'<td><span class="value">{text}</span></td>' for text in others)


def full_table(section: Section, page: Page) -> str:
    """Every score, a prefix length in each row: what the chart shows, for those who do not see it."""
    stops = sorted({k for curve in section.everything for k in curve.k})
    scores = [{reading.k: reading.cells[0] for reading in read_all(curve)} for curve in section.everything]
    return folded_table(
        f"All {len(stops)} prefix lengths as a table",
        f"{section.metric} at every evaluated k, as float32",
        ["k", *(name_of(curve) for curve in section.everything)],
        [(k, [found.get(k, NOTHING) for found in scores]) for k in stops],
        page.chosen_k,
        label=f"All scores: {section.heading}",
    )


def folded_table(
    summary: str,
    caption: str,
    heads: Sequence[str],
    rows: Sequence[tuple[int, Sequence[str]]],
    chosen: int | None,
    label: str = "",
) -> str:
    """Return a table that opens on demand, a number in the first column of each row; long ones print in part."""
    first, last, thin = rows[0][0], rows[-1][0], len(rows) > FEW_ROWS
    lines = []
    for k, texts in rows:
        marks = "chosen" if k == chosen else ""
        if thin and not (marks or k & (k - 1) == 0 or k in (first, last)):
            marks = "between"
        kind = f' class="{marks}"' if marks else ""
        lines.append(f'<tr{kind}><th scope="row">{k}</th>{"".join(f"<td>{text}</td>" for text in texts)}</tr>')
    note = (
        '<p class="thinned">Printed at powers of two and the chosen k; the page on a screen has all lengths.</p>'
        if thin
        else ""
    )
    columns = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    return (
        f"<details open><summary>{escape(summary)}</summary>{note}"
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label or caption, quote=True)}">'
        f'<table class="full"><caption>{escape(caption)}</caption><thead><tr>{columns}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div></details>"
    )
