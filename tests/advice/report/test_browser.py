"""Pages in a browser: the slider moves, all that follows it follows, and a page fits phones, the dark and paper.

The first test runs with the others; ``make test-full`` runs the rest.
"""

from __future__ import annotations

import base64
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from advice.report.conftest import make_evaluation, make_report
from firstk.advice.report import Page, write_page
from firstk.advice.report.page_html import kept_shares
from firstk.advice.report.sections import page_of
from firstk.words.text import score_text

PIXELS = """const image = document.querySelectorAll('.images .rebuilt')[arguments[0]];
return image.decode().then(() => {
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
  const pen = canvas.getContext('2d'); pen.drawImage(image, 0, 0);
  return [...pen.getImageData(0, 0, canvas.width, canvas.height).data].filter((_, i) => i % 4 === 0);
});"""
TEXTS = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"


class View:
    """The page in a window of one width, in one scheme, with questions a test may ask."""

    def __init__(self, browser: Any, file: Path, width: int = 1100, scheme: str = "light", script: bool = True):
        self.browser = browser
        self.cdp("Emulation.setScriptExecutionDisabled", value=not script)
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.cdp("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.get(file.as_uri())

    def cdp(self, command: str, **parameters: Any) -> Any:
        return self.browser.execute_cdp_cmd(command, parameters)

    def find(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements("css selector", selector)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def texts(self, selector: str) -> list[str]:
        return self.run(TEXTS, selector)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.find("#k").send_keys(key)

    @property
    def k(self) -> int:
        return int(re.match(r"k = (\d+) of", self.find("output").text)[1])

    def scores(self) -> list[str]:
        return self.run("return [...document.querySelectorAll('table.at')[0].tBodies[0].rows].slice(0, -1)"
                        ".map((row) => row.cells[1].lastChild.textContent)")  # fmt: skip

    def line(self) -> str:
        return self.find("svg.chart.wide .cursor").get_attribute("transform")

    def close(self) -> None:
        self.cdp("Emulation.setScriptExecutionDisabled", value=False)
        assert self.browser.get_log("browser") == []


@pytest.fixture(scope="module")
def fit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a fit that recommends coordinates: all of it follows the slider."""
    report = make_report(choice=make_evaluation().choose(keep=0.9, precision=["float32", "int8"]))
    return write_page(tmp_path_factory.mktemp("fit") / "report.html", page_of(report, rows=1_000_000))


@pytest.fixture
def open_page(browser: Any, page_file: Path):
    views = []

    def opened(file: Path = page_file, **settings: Any) -> View:
        views.append(View(browser, file, **settings))
        return views[-1]

    yield opened
    for view in views:
        view.close()  # which also looks for errors on the console


@pytest.fixture
def keys() -> Any:
    return pytest.importorskip("selenium.webdriver.common.keys").Keys


def expected(page: Page, k: int) -> list[str]:
    return [score_text(c.score[max(i for i, own in enumerate(c.k) if own <= k)], 4) for c in page.charts[0].everything]


def test_the_slider_moves_line_numbers_and_texts(open_page, page: Page, keys):
    view = open_page()
    assert view.k == 12
    assert view.scores() == expected(page, 12)
    before = view.line()
    view.press(keys.ARROW_RIGHT)
    assert view.k == 16
    assert view.scores() == expected(page, 16) != expected(page, 12)
    assert view.line() != before
    assert "16" in view.texts("table.at:last-of-type caption")[0]
    assert view.find("#k").get_attribute("aria-valuetext") == f"k = 16 of 64, ours: accuracy {expected(page, 16)[0]}"
    view.press(keys.HOME)
    assert view.texts(".texts [data-text].k, .texts li:has([data-text]) > span") == ["1", "one", "two <b>"]
    assert view.texts(".texts li.other span:first-child span") == ["two <b>"]
    view.find(".control button").click()
    assert view.k == 12
    assert view.line() == before


@pytest.mark.full
def test_every_prefix_is_reached_by_arrow_keys(open_page, page: Page, keys):
    view = open_page()
    view.press(keys.HOME)
    seen = [view.k]
    for _ in page.stops[1:]:
        view.press(keys.ARROW_RIGHT)
        seen.append(view.k)
    assert tuple(seen) == page.stops
    view.press(keys.ARROW_RIGHT)
    assert view.k == 64
    view.press(keys.ARROW_LEFT)
    assert view.k == 48


@pytest.mark.full
def test_all_returns_to_how_the_page_was_drawn(open_page, fit_file: Path, keys):
    state = """return [...document.querySelectorAll('.cursor, .cursor circle:not([hidden])')].map(
        (part) => part.getAttribute('transform') ?? part.getAttribute('cy'))"""
    for file in (None, fit_file):
        given = {} if file is None else {"file": file}
        still = open_page(script=False, **given)
        drawn = [float(n) for n in re.findall(r"[\d.]+", " ".join(still.run(state)))]
        words = still.texts("[data-text], tr.now th, .cut")
        view = open_page(**given)
        view.press(keys.HOME)
        view.find(".control button").click()
        moved = [float(n) for n in re.findall(r"[\d.]+", " ".join(view.run(state)))]
        assert moved == pytest.approx(drawn, abs=0.06)
        assert view.texts("[data-text], tr.now th, .cut") == words


@pytest.mark.full
def test_a_chart_can_be_pointed_at(open_page):
    action_chains = pytest.importorskip("selenium.webdriver").ActionChains
    view = open_page()
    chart = view.find("svg.chart.wide")
    left, right = (float(chart.get_attribute(f"data-{edge}")) for edge in ("left", "right"))
    width = chart.rect["width"]
    # Offsets count from the middle of the element; k = 8 is half way from 1 to 64.
    offset = (left + right) / 2 * width / 760 - width / 2
    action_chains(view.browser).move_to_element_with_offset(chart, round(offset), 0).click().perform()
    assert view.k == 8


@pytest.mark.full
def test_thumb_and_line_are_in_line(open_page, keys):
    view = open_page()
    for key in (keys.HOME, keys.END):
        view.press(key)
        line = view.find("svg.chart.wide .cursor line").rect["x"]
        slider = view.find("#k").rect
        thumb = slider["x"] + 10 if key == keys.HOME else slider["x"] + slider["width"] - 10
        assert line == pytest.approx(thumb, abs=1.5)


@pytest.mark.full
def test_bars_rows_and_points_follow(open_page, fit_file: Path, keys):
    view = open_page(file=fit_file)
    assert view.k == 8
    view.press(keys.ARROW_LEFT)
    assert view.k == 4
    assert len(view.all("svg.axes.wide .stems path:not(.cut)")) == 4 * 4
    assert len(view.all(".points circle:not(.cut)")) == 4
    assert view.texts("tr.now th") == ["4"]
    assert "Coordinates 1 to 4 hold" in view.texts("p.follows")[0]
    # Float32 and int8 follow this slider, bits one of their own.
    assert len(view.all("svg.plot.wide circle.now")) == 2 + 1
    size = view.find(".by-bytes input")
    size.send_keys(keys.HOME)
    assert view.texts(".by-bytes caption .k") == ["1"]
    assert view.texts(".by-bytes tbody tr:first-child td") == ["0.5500", "0.5402 to 0.5599", "embedded bits, 1 byte"]


@pytest.mark.full
def test_images_are_rebuilt_in_the_page(open_page, fit_file: Path, keys):
    images = make_report().images
    for presses, k in (((), 8), ((keys.HOME,), 2), ((keys.ARROW_LEFT,), 4)):
        view = open_page(file=fit_file, script=bool(presses))
        view.press(*presses)
        for sample in (0, 1):
            levels = (images.rebuilt(k)[sample] - images.low) / (images.high - images.low)
            wanted = [round(255 * min(max(value, 0.0), 1.0)) for value in levels]
            if presses:  # a canvas needs the script
                shown = view.run(PIXELS, sample)
                assert max(abs(a - b) for a, b in zip(shown, wanted, strict=True)) <= 1
        assert view.texts(".images .share") == kept_shares(images, k)


@pytest.mark.full
@pytest.mark.parametrize("width", [320, 400, 620, 1100])
def test_no_width_needs_scrolling_sideways(open_page, fit_file: Path, width: int):
    for given in ({}, {"file": fit_file}):
        view = open_page(width=width, **given)
        view.run("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
        assert view.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        for kind in ("wide", "narrow"):
            shown = {chart.is_displayed() for chart in view.all(f"svg.{kind}")}
            assert shown == {(width > 600) == (kind == "wide")}


@pytest.mark.full
def test_names_at_the_curves_do_not_overlap_and_fit(open_page):
    view = open_page()
    for chart in view.all("svg.chart.wide"):
        boxes = [text.rect for text in chart.find_elements("css selector", ".names text")]
        boxes.sort(key=lambda box: box["y"])
        assert boxes
        assert all(a["y"] + a["height"] <= b["y"] + 2 for a, b in pairwise(boxes))
        assert all(box["x"] + box["width"] <= chart.rect["x"] + chart.rect["width"] + 1 for box in boxes)


@pytest.mark.full
def test_dark_is_dark(open_page, fit_file: Path):
    def colours(view: View) -> list[str]:
        names = (("body", "backgroundColor"), ("svg.wide polyline", "stroke"), (".stems path", "stroke"),
                 (".points circle", "fill"))  # fmt: skip
        return [view.run(f"return getComputedStyle(document.querySelector('{one}')).{what}") for one, what in names]

    light, dark = colours(open_page(file=fit_file)), colours(open_page(file=fit_file, scheme="dark"))
    assert (light[0], dark[0]) == ("rgb(253, 253, 251)", "rgb(20, 24, 31)")
    assert all(a != b for a, b in zip(light, dark, strict=True))


@pytest.mark.full
def test_paper_has_all_tables_and_no_slider(open_page, fit_file: Path):
    view = open_page(file=fit_file, scheme="dark")
    assert not view.find("details table").is_displayed()
    view.cdp("Emulation.setEmulatedMedia", media="print")
    view.run("dispatchEvent(new Event('beforeprint'))")
    assert not view.find(".control").is_displayed()
    assert all(part.is_displayed() for part in view.all("table, img, svg.wide"))
    assert view.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    view.run("dispatchEvent(new Event('afterprint'))")
    assert base64.b64decode(view.cdp("Page.printToPDF")["data"]).startswith(b"%PDF")


@pytest.mark.full
def test_without_a_script_charts_and_tables_are_there(open_page, page: Page):
    view = open_page(script=False)
    assert not view.find(".control").is_displayed()
    assert view.find("svg.chart.wide .cursor text").text == "k = 12"
    assert all(table.is_displayed() for table in view.all("table"))
    assert view.scores() == expected(page, 12)


@pytest.mark.full
def test_what_scrolls_is_reached_by_keys_and_labels_are_no_scripts(open_page, fit_file: Path):
    view = open_page(file=fit_file)
    regions = view.all("[role='region']")
    assert regions
    assert all(region.get_attribute("tabindex") == "0" and region.get_attribute("aria-label") for region in regions)
    view = open_page()
    assert len(view.all("script")) == 2
    assert "alert('label')" in view.find("table.at").text
