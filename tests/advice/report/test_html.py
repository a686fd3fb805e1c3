"""The page as text: structure, escaping, and how it is written."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from advice.report.conftest import NASTY, make_curve, make_report
from firstk import PrefixCurve
from firstk.advice.report import Page, curve_section, render_page, write_page
from firstk.advice.report.html import element
from firstk.advice.report.page_html import kept_shares, png
from firstk.advice.report.sections import page_of, share_of
from firstk.exceptions import InvalidInputError
from firstk.words.text import score_text

VOID = {"meta", "input", "br", "link", "img"}


class Outline(HTMLParser):
    """Collects elements with their attributes and text, and checks that every element is closed."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.stack: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((tuple(self.stack), data.strip()))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    def text_in(self, tag: str) -> list[str]:
        return [text for stack, text in self.texts if tag in stack]


@pytest.fixture(scope="module")
def text(page: Page) -> str:
    return render_page(page)


@pytest.fixture(scope="module")
def outline(text: str) -> Outline:
    return Outline(text)


def body_of(text: str) -> str:
    """Return what a page says and what its script looks up, an element on each line; pictures are left out."""
    text = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.DOTALL)
    text = re.sub(r'base64,[^"]*|"data":"[^"]*"', "...", text)  # zlib's bytes are not ours
    return text[text.index("<body>") :].replace("><", ">\n<").replace("],[", "],\n[") + "\n"


def test_the_page_of_curves_and_texts(text: str, golden):
    golden("curves.html", body_of(text))


def test_the_page_of_a_fit(golden):
    page = page_of(make_report(), rows=1_000_000, commands=["firstk transform model digits.npz -o short.npz"])
    golden("fit.html", body_of(render_page(page)))


def test_every_element_is_closed_and_every_id_is_there_once(text: str):
    for whole in (text, render_page(page_of(make_report()))):
        outline = Outline(whole)
        assert outline.stack == []
        assert len(outline.all("h1")) == 1
        ids = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        drawings = [attrs for attrs in outline.all("svg") if "aria-hidden" not in attrs]
        assert all(attrs["role"] == "img" for attrs in drawings)
        assert {one for attrs in drawings for one in attrs.get("aria-labelledby", "").split()} <= set(ids)


def test_nothing_is_loaded_from_anywhere(text: str):
    for whole in (text, render_page(page_of(make_report()))):
        assert not re.search(r"(https?:)?//[a-z0-9-]+\.", whole, re.IGNORECASE)
        assert "url(" not in whole
        assert "@import" not in whole
        assert "default-src 'none'" in whole
        elements = Outline(whole).elements
        assert not any("href" in attrs for _, attrs in elements)
        assert all(attrs.get("src", "data:").startswith("data:") for _, attrs in elements)
        assert all(attrs["alt"] for tag, attrs in elements if tag == "img")


def test_every_curve_and_every_score_is_in_a_table(outline: Outline, page: Page):
    cells = outline.text_in("details")
    for chart in page.charts:
        for curve in chart.everything:
            assert (curve.label or curve.metric) in cells
            assert all(score_text(score, 4) in cells for score in curve.score)
    assert all("open" in attrs for attrs in outline.all("details"))  # readable without a script


def test_lines_differ_without_colour(text: str):
    chart = text[text.index("<svg") : text.index("</svg>")]
    curves = re.findall(r"<polyline [^>]*>", chart)
    dashes = [re.search(r'stroke-dasharray="([^"]*)"', line) for line in curves]
    assert len(curves) == 5
    assert len({dash and dash[1] for dash in dashes}) == 5


def test_one_name_looks_the_same_in_every_section():
    pca, svd, ours = make_curve("PCA", 5), make_curve("SVD", 9), make_curve("ours", 3)
    sections = [curve_section("a", "", [ours], [pca, svd]), curve_section("b", "", [ours], [svd])]
    names = re.findall(r'style="fill:var\(--([a-z0-9-]+)\)">SVD</text>', render_page(Page("t", "", sections)))
    assert names == ["baseline-1", "baseline-1"]


def test_elements_escape_text_and_attributes():
    made = element(
        "p", "<&", element("b", '"'), None, ["a", "b"], title='"<', class_="x", data_k=1.25, open=True, no=None
    )
    assert made == '<p title="&quot;&lt;" class="x" data-k="1.2" open>&lt;&amp;<b>&quot;</b>ab</p>'
    assert element("line", x1=2.0) + element("img", alt="") == '<line x1="2"/><img alt="">'


def test_strings_are_escaped(text: str, outline: Outline, page: Page):
    assert "alert('label')</script>" not in text
    assert "<b>more</b>" not in text
    assert len(outline.all("script")) == 2
    assert NASTY in outline.text_in("table")
    assert "costs $summary or $5" in render_page(replace(page, title="costs $summary or $5"))


def test_the_script_finds_every_text_at_every_stop(text: str, page: Page, outline: Outline):
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["k"] == list(page.stops)
    places = [int(attrs["data-text"]) for _, attrs in outline.elements if "data-text" in attrs]
    assert sorted([*places, data["said"]]) == list(range(len(data["texts"])))
    assert all(len(one) == len(page.stops) for one in data["texts"])
    assert {place for one in data["texts"] for place in one} == set(range(len(data["strings"])))


def test_shares_follow_smallest():
    rising, loss = make_curve("a", 4), PrefixCurve(k=[1, 2], score=[4.0, 2.0], metric="m", higher_is_better=False)
    assert share_of(rising, rising.at(rising.smallest(keep=0.9)), rising.full) >= "90.0"
    assert share_of(loss, 4.0, loss.full) == "50.0\u00a0%"
    assert [share_of(rising, 0.5, None), share_of(rising, 0.5, 0.0), share_of(loss, 0.0, 2.0)] == ["–"] * 3


@pytest.mark.parametrize("scores", [(0.5,), (0.0, 0.0), (-3.0, -1.0), (1e-7, 3e-7), (1e9, 2e9), (1.0, 1.0 + 1e-15)])
def test_scores_of_any_size_are_drawn(scores: tuple[float, ...]):
    curve = PrefixCurve(k=range(5, 5 + len(scores)), score=scores, metric="m")
    text = render_page(Page("t", "", [curve_section("s", "", [curve])]))
    coordinates = [float(x) for pair in re.findall(r'points="([^"]*)"', text) for x in re.split("[ ,]", pair)]
    assert all(0 <= x <= 1000 for x in coordinates)
    assert "nan" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.DOTALL).lower()


def test_a_long_table_is_thinned_for_the_printer_only():
    curve = make_curve("ours", 9, ks=tuple(range(1, 101)))
    text = render_page(Page("t", "", [curve_section("s", "", [curve])], chosen_k=11))
    kept = re.findall(r'<tr(?: class="chosen")?><th scope="row">(\d+)</th>', text)
    assert kept == ["1", "2", "4", "8", "11", "16", "32", "64", "100"]
    assert text.count('class="between"') == 91


def test_a_page_of_many_stops_stays_small():
    curves = [make_curve(f"code {i}", 40 + i, ks=tuple(range(1, 769))) for i in range(5)]
    assert len(render_page(Page("t", "", [curve_section("s", "", curves)]))) < 700_000


def test_a_png_reads_back():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    written = png(pixels)
    assert written[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(written):
        (size,) = struct.unpack(">I", written[at : at + 4])
        kind, body = written[at + 4 : at + 8], written[at + 8 : at + 8 + size]
        assert struct.unpack(">I", written[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + size
    assert struct.unpack(">IIBB", chunks[b"IHDR"][:10]) == (4, 2, 8, 2)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(2, 13)
    np.testing.assert_array_equal(rows[:, 1:].reshape(2, 4, 3), pixels)


def test_shares_of_images_are_of_the_distance_from_the_mean():
    images = make_report().images
    away, left = (images.originals.array() - other for other in (images.mean.array(), images.rebuilt(2)))
    assert kept_shares(images, 2) == [
        f"{100 * (1 - (one @ one) / (whole @ whole)):.1f}\u00a0%" for whole, one in zip(away, left, strict=True)
    ]


# -- files ---------------------------------------------------------------------------------------------------------


def test_written_whole_and_with_nothing_else(page: Page, page_file: Path, tmp_path: Path):
    target = tmp_path / "deep" / "er" / "report.html"
    assert write_page(str(target), page) == target
    assert target.read_bytes() == page_file.read_bytes() == render_page(page).encode()
    write_page(target, replace(page, title="second"))
    assert "<h1>second</h1>" in target.read_text(encoding="utf-8")
    assert os.listdir(target.parent) == ["report.html"]


def test_a_failed_write_leaves_the_old_page(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")

    def full(source, destination):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(
        InvalidInputError, match=r"report\.html': there is no space left on the device\. Nothing was left"
    ):
        write_page(target, page)
    assert target.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_half_a_surrogate_pair_is_written_as_a_question_mark(page: Page, tmp_path: Path):
    assert "<h1>a?b</h1>" in write_page(tmp_path / "r.html", replace(page, title="a\udc80b")).read_text("utf-8")


def test_places_that_cannot_be_written_are_refused(page: Page, tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"Cannot write .*choose another place"):
        write_page(file / "report.html", page)
    with pytest.raises(InvalidInputError, match=r"A report is a file, and .* is a folder\. Name a file in it"):
        write_page(tmp_path, page)
    with pytest.raises(InvalidInputError, match="Cannot write"):
        write_page(tmp_path / ("x" * 300), page)
    assert os.listdir(tmp_path) == ["file"]


def test_a_page_needs_neither_matplotlib_nor_scikit_learn_nor_torch():
    code = "import sys, firstk.advice.report\n"
    code += "print(sorted({'matplotlib', 'sklearn', 'torch', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_something_that_is_no_page_is_refused(tmp_path: Path):
    with pytest.raises(
        InvalidInputError, match=r"'page' parameter of write_page must be a firstk\.advice\.report\.Page"
    ):
        write_page(tmp_path / "r.html", {"title": "t"})
