"""A report as one self-contained HTML file: charts as SVG, tables, and a slider over k.

All numbers and positions are computed here; the script only looks them up.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base.checks import bad_parameter
from firstk.advice.records import AxisStatistics, ImageSamples
from firstk.advice.report.byte_chart import byte_charts
from firstk.advice.report.charts import CurveChart, frames_for, panels, scatter, swatch
from firstk.advice.report.html import (
    Html,
    document,
    element,
    joined,
    pairs_html,
    paragraphs,
    static,
    write_document,
)
from firstk.advice.report.layout import RAW_LOOK, RAW_NAME, Octaves
from firstk.advice.report.page import BytesChart, Cell, Curves, Glossary, Page, Row, Section, Steps, Table
from firstk.advice.text_neighbors import TextNeighbors
from firstk.words.text import share_text

FEW_ROWS = 40  # A longer table is printed at powers of two only.


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


def render_page(page: Page) -> str:
    """Return a report as the text of an HTML file."""
    if not isinstance(page, Page):
        raise bad_parameter("page", "write_page", "a firstk.advice.report.Page", page)
    writer = _Writer(page)
    wide, narrow = writer.frames
    shares = {
        "wide-left": wide.left / wide.width,
        "wide-right": 1 - wide.right / wide.width,
        "narrow-left": narrow.left / narrow.width,
        "narrow-right": 1 - narrow.right / narrow.width,
    }
    terms, body = writer.new(page.terms), joined(map(writer.section, range(len(page.sections))))
    # JSON that no label can break out of, as only ``<`` could end its element.
    data = json.dumps(writer.data(), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return document(
        body,
        title=page.title,
        summary=page.summary,
        commands=page.commands,
        figures=page.figures,
        terms=terms,
        about="What was fitted",
        facts=page.facts,
        notes=page.notes,
        variables=" ".join(f"--{name}: {100 * share:.3f}%;" for name, share in shares.items()),
        scripts=joined(
            element("script", Html(data), type="application/json", id="data"),
            element("script", Html(f"\n{static('page.js')}")),
        ),
    )


class _Writer:
    """Writes the parts of a page in their order, and collects what the script looks up.

    Attributes
    ----------
    strings : dict
        Every text that follows a slider, once, with its place.
    texts : list of list of int
        Of each element that follows: the place of its text at each stop.
    heights, images : list
        Of each chart the places of its dots; of each group of images what rebuilds it.
    explained : set of str
        Terms that have been explained above.
    """

    def __init__(self, page: Page):
        self.page, self.stops, self.looks = page, page.stops, page.looks
        self.frames = frames_for(page)
        self.across = Octaves(page.stops[0], page.stops[-1])
        self.strings: dict[str, int] = {}
        self.texts: list[list[int]] = []
        self.heights: list[list[list[float | None]]] = []
        self.images: list[dict[str, object]] = []
        self.explained: set[str] = set()
        self.number = 0

    def data(self) -> dict[str, object]:
        """Return all that the script looks up."""
        lead, parts = self.page.lead, self.page.sections[self.page.lead_number].parts
        own = next(part for part in parts if isinstance(part, Table)).rows[0]
        text, last = Cell(own.cells[0]) if not isinstance(own.cells[0], Cell) else own.cells[0], self.stops[-1]
        score = text.text if isinstance(text.text, Steps) else Steps((0,), (text.text,))
        # What a screen reader says of the slider at k.
        said = Steps.of(self.stops, lambda k: f"k = {k} of {last}, {own.name}: {lead.metric} {score.at(k)}")
        return {
            "k": self.stops,
            # Six digits, as fine as the steps of the slider: what it is set to is what it gives back.
            "x": [round(self.across.share(k), 6) for k in self.stops],
            "start": self.stops.index(self.page.start),
            "said": self._place(said, self.stops),
            "texts": self.texts,
            "strings": list(self.strings),
            "heights": self.heights,
            "images": self.images,
        }

    def _place(self, text: Steps, stops: Sequence[int]) -> int:
        self.texts.append([self.strings.setdefault(text.at(stop), len(self.strings)) for stop in stops])
        return len(self.texts) - 1

    def following(self, text: str | Steps, slider: tuple[Sequence[int], int] | None = None, **more: Any) -> Html:
        """Return text; one that changes with the slider is an element that the script finds.

        A slider is where it stops and where it starts; that over k if not given.
        """
        stops, start = slider or (self.stops, self.page.start)
        if isinstance(text, Steps):
            return element("span", text.at(start), data_text=self._place(text, stops), **more)
        return joined(text)

    def section(self, number: int) -> Html:
        """Return a section; before the first with curves stands the slider, which it and all below follow."""
        section, self.number = self.page.sections[number], number
        parts = [RENDERERS[type(part)](self, part, section) for part in section.parts]
        whole = element("section", element("h2", section.heading), "\n", joined(paragraphs(section.text), *parts))
        if number != self.page.lead_number:
            return whole
        page, back = self.page, None
        label = "Coordinates kept" if number == 0 else "If the first k coordinates are stored instead"
        if page.chosen_k is not None:
            back = element("button", f"back to k = {page.chosen_k}", type="button", hidden=True)
        told = [element("label", label, for_="k"), element("output", f"k = {page.start} of {self.stops[-1]}", for_="k")]
        track = {"type": "range", "min": 0, "max": 1, "step": "0.000001", "autocomplete": "off"}
        text = element("div", told, back, class_="control-text")
        slider = element("div", text, element("input", id="k", **track), class_="control", hidden=True)
        return joined(slider, whole)

    # -- figures -----------------------------------------------------------------------------------------------

    def curves(self, chart: Curves, section: Section) -> Html:
        """Draw curves, wide and narrow."""
        page, placed = self.page, [CurveChart.on(self.page, chart, frame) for frame in self.frames]
        drawn = [one.draw(section.heading, len(self.heights), page.start, page.chosen_k) for one in placed]
        self.heights.append(placed[0].heights(self.stops))
        return element("figure", drawn)

    def bytes_chart(self, chart: BytesChart, section: Section) -> Html:
        """Draw score against bytes, wide and narrow."""
        return byte_charts(chart.evaluation, chart.chosen, chart.asked, f"tradeoff-{self.number}")

    def coordinates(self, axes: AxisStatistics, section: Section) -> Html:
        """Draw panels, wide and narrow, and the scatter."""
        k, across = self.page.start, self.across
        drawn = [panels(axes, section.heading, self.number, frame, across, k) for frame in self.frames]
        return joined(element("figure", drawn), scatter(axes, k))

    def image_samples(self, images: ImageSamples, section: Section) -> Html:
        """Return originals above, rebuilt ones below."""
        k, rebuilt = self.page.start, images.rebuilt(self.page.start)
        shares = [kept_shares(images, stop) for stop in self.stops]
        items = []
        for i, (name, original) in enumerate(zip(images.names, images.originals.array(), strict=True)):
            share = Steps(self.stops, tuple(one[i] for one in shares))
            told = f"{name}, rebuilt from the first coordinates"
            pictures = (
                element("img", class_="original", alt=name, src=png_url(images, original)),
                element("img", class_="rebuilt", data_sample=i, alt=told, src=png_url(images, rebuilt[i])),
            )
            items.append(
                element("figure", pictures, element("figcaption", name, self.following(share, class_="share")))
            )
        packed = {
            "codes": images.codes,
            "decoder": images.decoder,
            "mean": images.mean,
        }  # what the script rebuilds from
        self.images.append(
            {"shape": images.shape, "low": images.low, "high": images.high}
            | {name: {"shape": one.shape, "scales": one.scales, "data": one.data} for name, one in packed.items()}
        )
        label = f"Held-out images, and what k = {k} coordinates rebuild of them"
        return element("div", items, class_="images", data_images=len(self.images) - 1, role="group", aria_label=label)

    def text_neighbors(self, found: TextNeighbors, section: Section) -> Html:
        """Return queries, each with a column for all numbers and one for each code."""
        return element("div", [self._query(found, i) for i in range(len(found.texts))], class_="texts")

    def _query(self, found: TextNeighbors, i: int) -> Html:
        def item(text: str | Steps, label: str | Steps) -> Html:
            now = label if isinstance(label, str) else label.at(self.page.start)
            other = "other" if now != found.labels[i] else None
            inside = element("span", self.following(text)), " ", element("small", self.following(label))
            return element("li", inside, class_=other)

        raw = [item(found.stored_texts[row], found.stored_labels[row]) for row in found.of_raw(i)]
        columns = [element("div", element("h4", "all numbers"), element("ol", raw))]
        k = Steps.of(self.stops, str)
        for name in filter(None, found.found):
            rows = [found.at(name, stop, i) for stop in self.stops]
            items = [
                item(*(Steps(self.stops, tuple(column[row] for row in place)) for column in
                       (found.stored_texts, found.stored_labels)))
                for place in zip(*rows, strict=True)
            ]  # fmt: skip
            heading = element("h4", f"{name}, k = ", self.following(k, class_="k"))
            columns.append(element("div", heading, element("ol", items)))
        heading = element("h3", found.texts[i], " ", element("small", found.labels[i]))
        return element("article", heading, element("div", columns, class_="columns"), data_label=found.labels[i])

    # -- text --------------------------------------------------------------------------------------------------

    def sentence(self, text: Steps, section: Section) -> Html:
        """Return a paragraph that follows the slider."""
        return element("p", self.following(text), class_="follows")

    def terms(self, terms: Glossary, section: Section) -> Html:
        """Explain what has not been explained above."""
        return pairs_html(self.new(terms.terms), "terms")

    def new(self, terms: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the terms that have not been explained above."""
        new = [(name, text) for name, text in terms if name not in self.explained]
        self.explained |= {name for name, _ in new}
        return new

    def table(self, table: Table, section: Section) -> Html:
        """Return a table, in a frame that scrolls where it may be long, with its slider if it has one."""
        slider = (table.sizes, table.size) if table.sizes else (self.stops, self.page.start)
        follows = table.follows and self.number >= self.page.lead_number
        fits = [row.k for row in table.rows if row.k is not None and row.k <= slider[1]]
        now = max(fits, default=table.rows[0].k) if follows else None
        thin = bool(table.folded) and len(table.rows) > FEW_ROWS
        rows = [self._row(row, table, thin, follows, now, slider) for row in table.rows]
        caption = [self.following(piece, slider, class_="k") for piece in table.caption]
        live = "polite" if table.sizes else None
        drawn = element(
            "table",
            element("caption", caption),
            element("thead", element("tr", [element("th", head, scope="col") for head in table.heads])),
            element("tbody", rows, aria_live=live),
            class_="full" if table.folded or table.scrolls else "at",
        )
        if not table.folded and not table.scrolls:
            return drawn
        label = f"{section.heading} {table.folded or ''.join(p for p in table.caption if isinstance(p, str))}"
        framed = element("div", drawn, class_="scroll", role="region", tabindex=0, aria_label=label)
        if table.sizes:
            ids, stops = f"bytes-{self.number}", table.sizes
            track = {"type": "range", "min": 0, "max": len(stops) - 1, "step": 1, "value": stops.index(table.size)}
            inside = element("label", "Bytes per vector", for_=ids), " ", element("input", id=ids, **track)
            control = element("div", inside, class_="bytes-control", hidden=True)
            framed = element("div", control, framed, class_="by-bytes", data_stops=" ".join(map(str, stops)))
        if not table.folded:
            return framed
        note = "Printed at powers of two and the chosen k; the page on a screen has all lengths."
        thinned = element("p", note, class_="thinned") if thin else None
        return element("details", element("summary", table.folded), thinned, framed, open=True)

    def _row(self, row: Row, table: Table, thin: bool, follows: bool, now: int | None, slider: Any) -> Html:
        k, kind, first = row.k, row.kind, table.rows[0].k
        if k is not None and table.folded and k == self.page.chosen_k:
            kind = "chosen"
        elif thin and k is not None and k & (k - 1) and k not in (first, table.rows[-1].k):
            kind = "between"
        if follows and k == now:
            kind = "now"
        line = None
        if row.line is not None:
            line = swatch(RAW_LOOK if row.line == (False, RAW_NAME) else self.looks[row.line])
        cells = []
        for cell in row.cells:
            text, small, best = cell if isinstance(cell, Cell) else Cell(cell)
            value = self.following(text, slider)
            beside = element("small", self.following(small, slider)) if small else None
            if table.follows:
                cells.append(element("td", value, " ", beside, element("span", "*" if best else "", class_="star")))
            else:
                cells.append(element("td", beside, " " if beside else None, value))
        name = element("th", line, element("span", row.name) if line else row.name, scope="row")
        return element("tr", name, cells, class_=kind or None, data_fit=k if follows else None)


RENDERERS: dict[type, Callable[[_Writer, Any, Section], Html]] = {
    Curves: _Writer.curves,
    BytesChart: _Writer.bytes_chart,
    AxisStatistics: _Writer.coordinates,
    ImageSamples: _Writer.image_samples,
    TextNeighbors: _Writer.text_neighbors,
    Steps: _Writer.sentence,
    Glossary: _Writer.terms,
    Table: _Writer.table,
}


def kept_shares(images: ImageSamples, k: int) -> list[str]:
    """Return the share of each image's squared distance from the mean image that `k` coordinates rebuild, as text."""
    whole = np.sum((images.originals.array() - images.mean.array()) ** 2, axis=1)
    left = np.sum((images.rebuilt(k) - images.originals.array()) ** 2, axis=1)
    return [share_text(1 - error / size) if size > 0 else "–" for error, size in zip(left, whole, strict=True)]


def png_url(images: ImageSamples, values: np.ndarray) -> str:
    """Return an image as a data address."""
    levels = np.clip((values - images.low) / (images.high - images.low), 0, 1)
    pixels = np.rint(255 * levels).astype(np.uint8).reshape(*images.shape[:2], -1)
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def png(pixels: np.ndarray) -> bytes:
    """Write pixels of shape (height, width, 1 or 3) as a PNG file (ISO/IEC 15948): no filter, one chunk of data."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
