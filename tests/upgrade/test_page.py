"""The page of an upgrade says what its record says: the verdict first, every score, and points in the picture."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from firstk.quality.paired import Difference
from firstk.upgrade import Terms, evaluate_upgrade, verdict_of
from firstk.upgrade.page import render_upgrade
from firstk.upgrade.records import RE_EMBED
from fixtures.made_upgrade import made_upgrade, rotation


@pytest.fixture(scope="module")
def report():
    return evaluate_upgrade(made_upgrade(pairs=300), methods=("auto",), estimator=rotation).report


class Balance(HTMLParser):
    """Collects tags that are not closed."""

    empty = ("meta",)

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.empty:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_leads_with_the_verdict_and_has_every_score(report):
    verdict = verdict_of(report)
    page = render_upgrade(verdict, commands=["firstk transform up old.parquet -o <new>.parquet"])
    assert "<h1>Translate the store</h1>" in page
    assert str(verdict).splitlines()[0] in page
    assert "-o &lt;new&gt;.parquet" in page
    for pool in report.pools:
        for one in pool.options:
            assert f"{one.score.value:.3f} ({one.score.low:.3f} to {one.score.high:.3f})" in page
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert "http" not in re.sub(r"http-equiv", "", page)  # nothing is loaded


def test_every_gain_is_drawn_on_one_axis_per_table(report):
    page = render_upgrade(verdict_of(report))
    drawn = [re.findall(r'<circle cx="([\d.]+)" cy="7" r="3"', table) for table in page.split("<table")[1:3]]
    for pool, places in zip(report.pools, drawn, strict=True):
        gains = [one.gain.value for one in pool.options if one.gain is not None]
        assert len(places) == len(gains) > 3
        across = np.array(list(map(float, places)))
        slope = np.ptp(across) / np.ptp(gains)
        np.testing.assert_allclose(across - across[0], slope * (np.array(gains) - gains[0]), atol=0.15)
    assert page.count('class="chosen"') == 2  # the recommended translation, in both tables


def test_the_heading_names_re_embedding_where_it_gains(report):
    def shifted(one, by):
        moved = Difference(by, by - 0.01, by + 0.01)
        return replace(one, gain=moved) if one.option.translates or one.option.kind == RE_EMBED else one

    first, held = report.pools
    first = replace(first, options=tuple(shifted(one, -0.1) for one in first.options))
    for by, heading in ((0.1, "Stay with the old model, or re-embed everything"), (-0.1, "Stay with the old model")):
        pool = replace(held, options=tuple(shifted(one, by) for one in held.options))
        made = replace(report, pools=(first, pool), cross_fitted_gain=None)
        assert f"<h1>{heading}</h1>" in render_upgrade(verdict_of(made))


@pytest.mark.parametrize("width", [400, 1280])
def test_tables_fit_the_width(report, browser, tmp_path, width):
    page = tmp_path / "page.html"
    terms = Terms(rows=10_000_000)
    page.write_text(render_upgrade(verdict_of(report, terms)), encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    from selenium.webdriver.support.ui import WebDriverWait

    tables = "return [...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth)"
    # A busy machine may lay the page out once more after it has loaded.
    expected = [0] * len(report.pools)
    assert WebDriverWait(browser, 10).until(lambda page: page.execute_script(tables) == expected)


def test_a_page_without_judgements_says_that_it_is_fidelity():
    data = made_upgrade(n=300, queries_old=None, asked=None)
    report = evaluate_upgrade(data, methods=("auto",), estimator=rotation).report
    page = render_upgrade(verdict_of(report))
    assert "<h1>Find out what is relevant first</h1>" in page
    assert "not relevance" in page
