"""The page in a browser: the slider moves, the numbers follow, and it fits a phone, a dark screen and a printer."""

from __future__ import annotations

import base64
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from firstk.advice.report import Page
from firstk.advice.report.reading import score_text


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

    def press(self, *keys: str) -> None:
        for key in keys:
            self.find("#k").send_keys(key)

    @property
    def k(self) -> int:
        return int(re.match(r"k = (\d+) of 64", self.find("output").text)[1])

    def scores(self) -> list[str]:
        return [cell.text for cell in self.all("table.at[data-section='0'] td:nth-child(2) .value")]

    def line(self) -> str:
        return self.find("svg.wide[data-section='0'] .cursor").get_attribute("transform")

    def close(self) -> None:
        self.cdp("Emulation.setScriptExecutionDisabled", value=False)
        assert self.browser.get_log("browser") == []


@pytest.fixture
def open_page(browser: Any, page_file: Path):
    views = []

    def opened(**settings: Any) -> View:
        views.append(View(browser, page_file, **settings))
        return views[-1]

    yield opened
    for view in views:
        view.close()  # which also looks for errors on the console


@pytest.fixture
def keys() -> Any:
    return pytest.importorskip("selenium.webdriver.common.keys").Keys


def expected(page: Page, k: int) -> list[str]:
    return [score_text(c.score[max(i for i, own in enumerate(c.k) if own <= k)]) for c in page.sections[0].everything]


def test_the_slider_moves_line_numbers_and_text(open_page, page: Page, keys):
    view = open_page()
    assert view.k == 12
    assert view.scores() == expected(page, 12)
    before = view.line()
    view.press(keys.ARROW_RIGHT)
    assert view.k == 16
    assert view.scores() == expected(page, 16) != expected(page, 12)
    assert view.line() != before
    assert view.find("svg.wide[data-section='1'] .cursor text").text == "k = 16"
    assert view.find("#k").get_attribute("aria-valuetext") == f"k = 16 of 64, ours: accuracy {expected(page, 16)[0]}"
    view.find(".control button").click()
    assert view.k == 12
    assert view.line() == before


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


def test_line_and_dots_return_to_where_the_page_was_drawn(open_page, keys):
    state = """return [...document.querySelectorAll('.cursor, .cursor circle:not([hidden])')].map(
        (part) => part.getAttribute('transform') ?? part.getAttribute('cy'))"""
    drawn = [float(n) for n in re.findall(r"[\d.]+", " ".join(open_page(script=False).run(state)))]
    view = open_page()
    view.press(keys.END)
    view.find(".control button").click()
    moved = [float(n) for n in re.findall(r"[\d.]+", " ".join(view.run(state)))]
    # Two sections in two frames; at k = 12 one curve of the first has ended and that of the second has no score.
    assert len(drawn) == 4 * 2 + 2 * 4
    assert moved == pytest.approx(drawn, abs=0.06)


def test_a_chart_can_be_pointed_at(open_page):
    action_chains = pytest.importorskip("selenium.webdriver").ActionChains
    view = open_page()
    chart = view.find("svg.wide[data-section='0']")
    left, right = (float(chart.get_attribute(f"data-{edge}")) for edge in ("left", "right"))
    width = chart.rect["width"]
    # Offsets count from the middle of the element; k = 8 is half way from 1 to 64.
    offset = (left + right) / 2 * width / 760 - width / 2
    action_chains(view.browser).move_to_element_with_offset(chart, round(offset), 0).click().perform()
    assert view.k == 8


def test_thumb_and_line_are_in_line(open_page, keys):
    view = open_page()
    for key in (keys.HOME, keys.END):
        view.press(key)
        line = view.find("svg.wide[data-section='0'] .cursor line").rect["x"]
        slider = view.find("#k").rect
        thumb = slider["x"] + 10 if key == keys.HOME else slider["x"] + slider["width"] - 10
        assert line == pytest.approx(thumb, abs=1.5)


@pytest.mark.parametrize("width", [320, 400, 620, 1100])
def test_no_width_needs_scrolling_sideways(open_page, width: int):
    view = open_page(width=width)
    view.run("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert view.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    shown = [chart.is_displayed() for chart in view.all("svg.chart")]
    assert shown == [width > 600, width <= 600] * 2


def test_names_at_the_curves_do_not_overlap_and_fit(open_page):
    view = open_page()
    for number in (0, 1):
        boxes = [text.rect for text in view.all(f"svg.wide[data-section='{number}'] .names text")]
        boxes.sort(key=lambda box: box["y"])
        assert all(a["y"] + a["height"] <= b["y"] + 2 for a, b in pairwise(boxes))
        chart = view.find(f"svg.wide[data-section='{number}']").rect
        assert all(box["x"] + box["width"] <= chart["x"] + chart["width"] + 1 for box in boxes)


def test_dark_is_dark(open_page):
    background = "return getComputedStyle(document.body).backgroundColor"
    stroke = "return getComputedStyle(document.querySelector('svg.wide polyline')).stroke"
    light = open_page()
    light_colors = light.run(background), light.run(stroke)
    dark = open_page(scheme="dark")
    assert light_colors[0] == "rgb(253, 253, 251)"
    assert dark.run(background) == "rgb(20, 24, 31)"
    assert dark.run(stroke) != light_colors[1]


def test_paper_has_tables_and_no_slider(open_page):
    view = open_page(scheme="dark")
    assert not view.find("table.full").is_displayed()
    view.cdp("Emulation.setEmulatedMedia", media="print")
    view.run("dispatchEvent(new Event('beforeprint'))")
    assert not view.find(".control").is_displayed()
    assert view.find("table.full").is_displayed()
    assert view.find("svg.wide").is_displayed()
    assert view.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    view.run("dispatchEvent(new Event('afterprint'))")
    assert base64.b64decode(view.cdp("Page.printToPDF")["data"]).startswith(b"%PDF")


def test_without_a_script_charts_and_tables_are_there(open_page, page: Page):
    view = open_page(script=False)
    assert not view.find(".control").is_displayed()
    assert view.find("svg.wide .cursor text").text == "k = 12"
    assert all(table.is_displayed() for table in view.all("table"))
    assert view.scores() == expected(page, 12)


def test_a_label_cannot_run_as_a_script(open_page):
    view = open_page()
    assert len(view.all("script")) == 2
    assert "alert('label')" in view.find("table.at").text
