"""The page as text: structure, escaping, and how it is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from evaluation.report.conftest import NASTY, make_curve

from firstk import PrefixCurve
from firstk.advice.report import Page, Section, render_page, write_page
from firstk.advice.report.reading import score_text, share_kept
from firstk.exceptions import InvalidInputError

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


def test_the_page_is_well_formed_and_has_one_title(outline: Outline, page: Page):
    assert outline.stack == []
    assert len(outline.all("h1")) == 1
    assert outline.text_in("h1") == [page.title]
    assert {"Accuracy", "Loss", "What was fitted", "Notes"} <= set(outline.text_in("h2"))
    ids = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_nothing_is_loaded_from_anywhere(text: str, outline: Outline):
    assert not re.search(r"(https?:)?//[a-z0-9-]+\.", text, re.IGNORECASE)
    assert "url(" not in text
    assert "@import" not in text
    assert not any("src" in attrs or "href" in attrs for _, attrs in outline.elements)
    assert "default-src 'none'" in text


def test_every_curve_and_every_score_is_in_a_table(outline: Outline, page: Page):
    cells = outline.text_in("details")
    for section in page.sections:
        for curve in section.everything:
            assert (curve.label or curve.metric) in cells
            assert all(score_text(score) in cells for score in curve.score)
    assert all("open" in attrs for attrs in outline.all("details"))  # readable without a script


def test_every_chart_has_a_title_and_a_description(outline: Outline, page: Page):
    charts = [attrs for attrs in outline.all("svg") if "chart" in (attrs["class"] or "")]
    assert len(charts) == 2 * len(page.sections)
    ids = {attrs.get("id") for _, attrs in outline.elements}
    for attrs in charts:
        assert attrs["role"] == "img"
        assert set(attrs["aria-labelledby"].split()) <= ids


def test_lines_differ_without_colour(text: str):
    chart = text[text.index("<svg") : text.index("</svg>")]
    curves = re.findall(r"<polyline [^>]*>", chart)
    dashes = [re.search(r'stroke-dasharray="([^"]*)"', line) for line in curves]
    assert len(curves) == 5
    assert len({dash and dash[1] for dash in dashes}) == 5


def test_one_name_looks_the_same_in_every_section():
    pca, svd, ours = make_curve("PCA", 5), make_curve("SVD", 9), make_curve("ours", 3)
    text = render_page(Page("t", "", [Section("a", "", [ours], [pca, svd]), Section("b", "", [ours], [svd])]))
    names = re.findall(r'style="fill:var\(--([a-z0-9-]+)\)">SVD</text>', text)
    assert names == ["baseline-1", "baseline-1"]


def test_strings_are_escaped(text: str, outline: Outline, page: Page):
    assert "alert('label')</script>" not in text
    assert "<b>more</b>" not in text
    assert len(outline.all("script")) == 2
    assert NASTY in outline.text_in("table")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["sections"][0][4]["name"] == NASTY
    assert data["k"] == list(page.stops)


def test_template_signs_in_strings_are_left_alone(page: Page):
    assert "costs $summary or $5" in render_page(replace(page, title="costs $summary or $5"))


def test_the_choice_is_said_with_what_it_keeps(page: Page, outline: Outline):
    said = " ".join(outline.text_in("header")).replace("\xa0", " ")
    assert "12" in said
    assert "95 % of its full-width score" in said
    assert "best baseline there, PCA" in said
    other = Outline(render_page(replace(page, relative_to="input")))
    assert "95 % of the raw vectors' score" in " ".join(other.text_in("header"))
    assert "headline" not in re.sub(r"<style>.*?</style>", "", render_page(replace(page, chosen_k=None)), flags=re.S)


def test_a_curve_that_ends_early_says_where_it_was_read(outline: Outline):
    assert "k = 8" in outline.text_in("small")


def test_shares_follow_smallest():
    rising, loss = make_curve("a", 4), PrefixCurve(k=[1, 2], score=[4.0, 2.0], metric="m", higher_is_better=False)
    k = rising.smallest(keep=0.9)
    assert share_kept(rising, rising.at(k), rising.full) >= 0.9
    assert share_kept(loss, 4.0, loss.full) == 0.5
    assert share_kept(rising, 0.5, None) is None
    assert share_kept(rising, 0.5, 0.0) is None
    assert share_kept(loss, 0.0, 2.0) is None


@pytest.mark.parametrize("scores", [(0.5,), (0.0, 0.0), (-3.0, -1.0), (1e-7, 3e-7), (1e9, 2e9), (1.0, 1.0 + 1e-15)])
def test_scores_of_any_size_are_drawn(scores: tuple[float, ...]):
    curve = PrefixCurve(k=range(5, 5 + len(scores)), score=scores, metric="m")
    text = render_page(Page("t", "", [Section("s", curves=[curve])]))
    coordinates = [float(x) for pair in re.findall(r'points="([^"]*)"', text) for x in re.split("[ ,]", pair)]
    assert all(0 <= x <= 1000 for x in coordinates)
    assert "nan" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.S).lower()


def test_a_long_table_is_thinned_for_the_printer_only():
    curve = make_curve("ours", 9, ks=tuple(range(1, 101)))
    text = render_page(Page("t", "", [Section("s", curves=[curve])], chosen_k=11))
    kept = re.findall(r'<tr(?: class="chosen")?><th scope="row">(\d+)</th>', text)
    assert kept == ["1", "2", "4", "8", "11", "16", "32", "64", "100"]
    assert text.count('class="between"') == 91


def test_written_whole_and_with_nothing_else(page: Page, tmp_path: Path):
    target = tmp_path / "deep" / "er" / "report.html"
    assert write_page(str(target), page) == target
    assert target.read_text(encoding="utf-8") == render_page(page)
    write_page(target, replace(page, title="second"))
    assert "<h1>second</h1>" in target.read_text(encoding="utf-8")
    assert os.listdir(target.parent) == ["report.html"]


def test_same_page_same_bytes(page: Page, page_file: Path, tmp_path: Path):
    assert write_page(tmp_path / "again.html", page).read_bytes() == page_file.read_bytes()


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
        InvalidInputError, match=r"'page' parameter of write_page must be a firstk\.evaluation\.report\.Page"
    ):
        write_page(tmp_path / "r.html", {"title": "t"})
