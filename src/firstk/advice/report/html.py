"""A report as one self-contained HTML file: charts as SVG, tables, and a slider over k.

The page needs no network, no library and, but for the slider, no script. All numbers and positions are computed
here; the script only looks them up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from firstk._base.atomic_file import atomic_file
from firstk._base.checks import bad_parameter
from firstk.advice.report.axes import axes_data, axes_html
from firstk.advice.report.images import images_data, images_html
from firstk.advice.report.layout import Octaves
from firstk.advice.report.page import Page, Section, name_of
from firstk.advice.report.palette import RAW_NAME, css_variables
from firstk.advice.report.parts import AxesSection, ImagesSection, PrecisionSection, StorageSection, TextsSection
from firstk.advice.report.precision import precision_data, precision_html
from firstk.advice.report.reading import read, read_all, score_text, share_text, size_of, value_text
from firstk.advice.report.storage import storage_data, storage_html
from firstk.advice.report.svg import chart_for, draw, frames_for, heights
from firstk.advice.report.tables import cell_texts, full_table, table_at
from firstk.advice.report.terms import interval_term, known_terms, terms_html
from firstk.advice.report.texts import texts_data, texts_html
from firstk.words.text import bytes_text


def write_page(path: str | os.PathLike[str], page: Page) -> Path:
    """Write a report as one HTML file, by an atomic write.

    Parameters
    ----------
    path : path-like
        The file to write; its folder is made where it is missing, an existing file is replaced.
    page : Page
        What it says.

    Returns
    -------
    path : Path
        The file that was written.

    Raises
    ------
    InvalidInputError
        If `page` is no Page, or the file cannot be written there.
    """
    return write_document(path, render_page(page))


def write_document(path: str | os.PathLike[str], text: str) -> Path:
    """Write the text of a page by an atomic write."""
    with atomic_file(path, "A report", kinds=(".html", ".htm")) as temporary:
        # Labels may hold halves of surrogate pairs, which no file can: they become question marks.
        temporary.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    return Path(path)


def render_page(page: Page) -> str:
    """Return a report as the text of an HTML file."""
    if not isinstance(page, Page):
        raise bad_parameter("page", "write_page", "a firstk.advice.report.Page", page)
    wide, narrow = frames_for(page)
    shares = {
        "wide-left": wide.left / wide.width,
        "wide-right": 1 - wide.right / wide.width,
        "narrow-left": narrow.left / narrow.width,
        "narrow-right": 1 - narrow.right / narrow.width,
    }
    frames = " ".join(f"--{name}: {100 * share:.3f}%;" for name, share in shares.items())
    return document(
        title=page.title,
        header="\n".join(
            (
                summary_html(page.summary),
                commands_html(page.commands),
                headline_html(page.figures or _figures_at(page)),
                terms_html(page.terms),
            )
        ),
        body="\n".join(_body(page)),
        footer="\n".join((facts_html("What was fitted", page.facts), notes_html(page.notes))),
        variables=frames,
        scripts=Template(_static("scripts.html")).substitute(data=_embedded(_data(page)), script=_static("page.js")),
    )


def document(*, title: str, header: str, body: str, footer: str, variables: str = "", scripts: str = "") -> str:
    """Return a page as the text of an HTML file.

    Parameters
    ----------
    title : str
        Plain text; all other parts are HTML.
    header, body, footer : str
        The answer, sections, and facts and notes.
    variables : str
        Further variables of the style sheet.
    scripts : str
        What moves the page, if anything does.
    """
    return Template(_static("page.html")).substitute(
        title=escape(title),
        css=_static("page.css"),
        light=f"{css_variables(0)} {variables}".rstrip(),
        dark=css_variables(1),
        header=header,
        sections=body,
        footer=footer,
        scripts=scripts.rstrip("\n"),
    )


def _static(name: str) -> str:
    return files("firstk.advice.report").joinpath("static", name).read_text(encoding="utf-8")


def paragraphs(text: str, kind: str = "") -> str:
    """Return plain text as paragraphs, which empty lines part."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "\n".join(f"{opening}{escape(part.strip())}</p>" for part in text.split("\n\n") if part.strip())


def summary_html(text: str) -> str:
    """Return the paragraphs of a summary, the first set large."""
    first, *others = (part for part in text.split("\n\n") if part.strip()) if text.strip() else ("",)
    return "\n".join((paragraphs(first, "lead"), *(paragraphs(part) for part in others)))


def commands_html(commands: Sequence[str]) -> str:
    """Return the commands that do it."""
    if not commands:
        return ""
    lines = "\n".join(escape(command) for command in commands)
    told = "The command that does it:" if len(commands) == 1 else "The commands that do it:"
    return f'<p class="do">{told}</p>\n<pre tabindex="0"><code>{lines}</code></pre>'


def headline_html(figures: Sequence[tuple[str, str]]) -> str:
    """Show up to four large figures, each with what it is."""
    items = "".join(
        f"<div><dt>{escape(small).replace('k = ', 'k&nbsp;=&nbsp;')}</dt><dd>{escape(big)}</dd></div>"
        for big, small in figures
    )
    return f'<dl class="headline">{items}</dl>' if items else ""


def _figures_at(page: Page) -> list[tuple[str, str]]:
    """Return figures of the chosen k: k itself, our score there, the best baseline's, and bytes saved."""
    if page.chosen_k is None:
        return []
    first, k = page.sections[page.lead_number], page.chosen_k
    whole = "the raw vectors'" if page.relative_to == "input" else "its full-width"
    promise = f", the fewest that keep {100 * page.keep:g} % of {whole} score" if page.keep else ""
    figures = [(str(k), f"coordinates of {page.lead.k[-1]}{promise}")]
    ours = score_text(page.lead.at(k), size_of(page.lead))
    figures.append((ours, f"{first.metric} of {name_of(page.lead)} at k = {k}"))
    best = _best_baseline(first, k)
    if best:
        figures.append((best[1], f"{first.metric} of the best baseline there, {best[0]}"))
    if page.storage is not None:
        rows, saved = page.storage.rows, page.storage.bytes_at() - page.storage.bytes_at(k)
        share = share_text(saved / page.storage.bytes_at())
        figures.append(
            (bytes_text(saved), f"saved on {rows:,} vectors: {share} of {bytes_text(page.storage.bytes_at())}")
        )
    return figures


def _best_baseline(section: Section, k: int) -> tuple[str, str] | None:
    """Return name and score of the baseline that does best at this very k."""
    found = [(name_of(curve), read(curve, k)) for curve in section.baselines]
    there = [(name, reading) for name, reading in found if reading and reading.k == k]
    if not there:
        return None
    sign = 1 if section.higher_is_better else -1
    name, reading = max(there, key=lambda pair: sign * pair[1].score)
    return name, reading.cells[0]


def _body(page: Page) -> Iterator[str]:
    """Yield the sections, and the slider over k before the first that holds curves, which all below it follow."""
    for number in range(len(page.sections)):
        if number == page.lead_number:
            yield (
                Template(_static("slider.html"))
                .substitute(
                    label="Coordinates kept" if number == 0 else "If the first k coordinates are stored instead",
                    start=page.start,
                    widest=page.stops[-1],
                    back=""
                    if page.chosen_k is None
                    else f'<button type="button" hidden>back to k = {page.chosen_k}</button>',
                )
                .rstrip("\n")
            )
        yield _section(page, number)


def _section(page: Page, number: int) -> str:
    section = page.sections[number]
    return (
        f"<section><h2>{escape(section.heading)}</h2>\n{paragraphs(section.text)}\n"
        f"{_KINDS[type(section)].html(page, number)}</section>"
    )


def facts_html(heading: str, facts: Sequence[tuple[str, str | int | float]]) -> str:
    """Return plain facts below a heading."""
    if not facts:
        return ""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value_text(value))}</dd></div>" for name, value in facts)
    return f'<section class="facts"><h2>{escape(heading)}</h2><dl>{items}</dl></section>'


def notes_html(notes: Sequence[str]) -> str:
    """Return the notes at the end of a page."""
    if not notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<section class="notes"><h2>Notes</h2><ul>{items}</ul></section>'


def _data(page: Page) -> dict[str, object]:
    """Collect what the script looks up: the place of each k, and the texts of each section there."""
    across = Octaves(page.stops[0], page.stops[-1])
    return {
        "k": page.stops,
        # Six digits, as fine as the steps of the slider: what it is set to is what it gives back.
        "x": [round(across.share(k), 6) for k in page.stops],
        "start": page.stops.index(page.start),
        "lead": page.lead_number,
        "sections": [_KINDS[type(section)].data(page, number) for number, section in enumerate(page.sections)],
    }


def _curves_html(page: Page, number: int) -> str:
    section = page.sections[number]
    charts = "\n".join(
        draw(chart_for(page, section, frame), number, page.start, page.chosen_k) for frame in frames_for(page)
    )
    terms = terms_html(_terms(section))
    return f"<figure>{charts}</figure>\n{table_at(page, number, page.start)}\n{terms}\n{full_table(section, page)}"


def _terms(section: Section) -> list[tuple[str, str]]:
    """Explain what a chart and its table speak of."""
    terms = [*known_terms(name_of(curve) for curve in section.baselines)]
    terms += known_terms([RAW_NAME]) if section.input_scores else ()
    return terms if section.confidence is None else [*terms, interval_term(section.confidence)]


def _curves_data(page: Page, number: int) -> list[dict[str, object]]:
    section = page.sections[number]
    places = heights(chart_for(page, section, frames_for(page)[0]))
    return [
        {
            "name": name_of(curve),
            "metric": curve.metric,
            "k": curve.k,
            "y": curve_heights,
            "cells": [cell_texts(section, reading) for reading in read_all(curve)],
        }
        for curve, curve_heights in zip(section.everything, places, strict=True)
    ]


class _Kind(NamedTuple):
    """How a kind of section is written: its HTML, and what the script looks up for it."""

    html: Callable[[Page, int], str]
    data: Callable[[Page, int], object]


_KINDS: dict[type, _Kind] = {
    Section: _Kind(_curves_html, _curves_data),
    AxesSection: _Kind(axes_html, axes_data),
    ImagesSection: _Kind(images_html, images_data),
    TextsSection: _Kind(texts_html, texts_data),
    PrecisionSection: _Kind(precision_html, precision_data),
    StorageSection: _Kind(storage_html, storage_data),
}


def _embedded(data: dict[str, object]) -> str:
    """Return JSON that no label can break out of: inside a script element, only ``<`` could end it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
