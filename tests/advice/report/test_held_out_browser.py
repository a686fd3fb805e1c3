"""The page of a study in a browser: the slider moves everything on it, in light, dark, narrow and on paper."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from evaluation.report.test_browser import View, keys  # noqa: F401
from firstk.advice.held_out import Provenance, evaluate_fit

from firstk import PrefixEncoder
from firstk.advice.report import Page, write_page
from firstk.advice.report.held_out_page import page_of
from firstk.advice.report.images import kept_shares
from firstk.advice.report.storage import cells_at
from firstk.data import load_digits
from firstk.estimator.fit_files import draw, fit_stream

PIXELS = """const image = document.querySelectorAll('.images .rebuilt')[arguments[0]];
const canvas = document.createElement('canvas');
canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
const pen = canvas.getContext('2d'); pen.drawImage(image, 0, 0);
return [...pen.getImageData(0, 0, canvas.width, canvas.height).data].filter((_, i) => i % 4 === 0);"""


@pytest.fixture(scope="module")
def found():
    digits = load_digits()
    done = fit_stream(PrefixEncoder(16, objective="fisher"), [{"X": digits.X, "y": digits.y}], draw(1797, 0.2))
    return evaluate_fit(done, Provenance({"file": "digits.npz"}, 1797, 4, "Evaluated on 359 rows.", (8, 8)))


@pytest.fixture(scope="module")
def studied(found) -> Page:
    return page_of(found, rows=1_000_000, k=8)


@pytest.fixture(scope="module")
def studied_file(studied: Page, tmp_path_factory) -> Path:
    return write_page(tmp_path_factory.mktemp("study") / "report.html", studied)


@pytest.fixture
def view(browser: Any, studied_file: Path):
    opened = []

    def make(**settings: Any) -> View:
        opened.append(View(browser, studied_file, **settings))
        return opened[-1]

    yield make
    for one in opened:
        one.close()  # which also looks for errors on the console


def grey(found, k: int, sample: int) -> list[int]:
    """What the picture should be: the rebuilt image, from black at `low` to white at `high`."""
    images = found.images
    levels = (images.rebuilt(k)[sample] - images.low) / (images.high - images.low)
    return [round(255 * min(max(value, 0.0), 1.0)) for value in levels]


def test_the_slider_moves_numbers_bars_and_offers(view, studied: Page, found, keys):  # noqa: F811
    page = view()
    stored = studied.storage

    def bytes_shown():
        return [cell.text for cell in page.all("table.stored [data-code] .value")]

    assert bytes_shown() == list(cells_at(stored, 8))
    before = page.find("p.follows").text
    kept = len(page.all("svg.axes.wide .stems path:not(.cut)"))
    assert kept == 8 * 4
    assert page.find(".offers tr.now th").text == "8"
    page.press(keys.ARROW_RIGHT)
    assert bytes_shown() == list(cells_at(stored, 9))
    assert page.find("p.follows").text != before
    assert "Coordinates 1 to 9 hold" in page.find("p.follows").text
    assert len(page.all("svg.axes.wide .stems path:not(.cut)")) == 9 * 4
    assert len(page.all(".points circle:not(.cut)")) == 9
    page.press(keys.ARROW_RIGHT, keys.ARROW_RIGHT, keys.ARROW_RIGHT)
    assert page.find(".offers tr.now th").text == "12"
    # Bits are there only where a byte is full, and embedded bits follow a slider of their own.
    at_12 = {point.precision for point in found.precisions.points if point.k == 12 and not point.code} - {"embedded"}
    assert {"float32", "int8"} <= at_12
    assert len(page.all("svg.plot.wide circle.now")) == len(at_12) + 1


def test_images_are_rebuilt_in_the_page(view, found, keys):  # noqa: F811
    page = view()
    for press, k in ((None, 8), (keys.ARROW_LEFT, 7), (keys.HOME, 1), (keys.END, 16)):
        if press:
            page.press(press)
        for sample in (0, 7):
            shown, expected = page.run(PIXELS, sample), grey(found, k, sample)
            assert len(shown) == 64
            assert max(abs(a - b) for a, b in zip(shown, expected, strict=True)) <= 1
        shares = [part.text for part in page.all(".images .share")]
        assert shares == kept_shares(found.images, (k,))[0]
    assert page.run(PIXELS, 0) != grey(found, 1, 0)


def test_without_a_script_the_pictures_are_there(view, found):
    page = view(script=False)
    assert page.run(PIXELS, 3) == grey(found, 8, 3)
    assert page.find("table.stored").is_displayed()


def test_what_follows_the_slider_is_reached_by_keys(view):
    page = view()
    regions = page.all("[role='region']")
    assert regions
    assert all(region.get_attribute("tabindex") == "0" and region.get_attribute("aria-label") for region in regions)
    assert all(image.get_attribute("alt") for image in page.all("img"))


@pytest.mark.parametrize("width", [320, 380, 620, 1100])
def test_no_width_needs_scrolling_sideways(view, width: int):
    page = view(width=width)
    page.run("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert page.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.find("svg.axes.wide").is_displayed() == (width > 600)
    assert page.find("svg.plot.narrow").is_displayed() == (width <= 600)


def test_dark_changes_bars_and_points(view):
    stroke = "return getComputedStyle(document.querySelector('.stems path')).stroke"
    fill = "return getComputedStyle(document.querySelector('.points circle')).fill"
    light = view()
    colours = light.run(stroke), light.run(fill)
    dark = view(scheme="dark")
    assert dark.run(stroke) != colours[0]
    assert dark.run(fill) != colours[1]


def test_paper_has_all_tables_and_pictures(view):
    page = view(scheme="dark")
    page.cdp("Emulation.setEmulatedMedia", media="print")
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert not page.find(".control").is_displayed()
    assert all(table.is_displayed() for table in page.all("table"))
    assert all(image.is_displayed() for image in page.all("img"))
    page.run("dispatchEvent(new Event('afterprint'))")
    assert base64.b64decode(page.cdp("Page.printToPDF")["data"]).startswith(b"%PDF")


def test_curves_have_bands_that_hold_them(view):
    page = view()
    bands = page.all("svg.chart.wide[data-section='0'] .band")
    assert len(bands) == 1 + 4 + 1  # ours, the baselines, and the raw vectors
    assert "interval" in page.find("table.at thead").text
