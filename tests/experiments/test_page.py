"""The page of results: everything is said, and in a browser the filter works without an error."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstk.experiments.page import write_results_page
from firstk.experiments.runner import run
from firstk.experiments.specs import catalogue


@pytest.fixture
def page(toy, tmp_path):
    folder, _ = toy
    specs = catalogue(folder)
    found = run(list(specs.values()), "smoke", tmp_path / "out")
    good = replace(found.results["toys/fig1"], id="toys/fig2", claims=found.results["toys/fig1"].claims[:1])
    more = specs | {"toys/fig9": replace(specs["toys/fig1"], id="toys/fig9", title="Never <run>")}
    return write_results_page(tmp_path / "out", [found.results["toys/fig1"], good], more, "smoke")


def test_everything_is_said(page):
    text = page.read_text()
    said = [
        "The sum is large.", "at least 14", "measured", "did not hold", "not judged", "They grow.", "note &amp; more.",
        "n = 3: stopped early.", "integers: a few (time)", "a &lt;b&gt;", "Never &lt;run&gt;", "not run",
    ]  # fmt: skip
    assert [part for part in said if part not in text] == []
    assert "http" not in text.replace("http://www.w3.org", "")


def test_the_filter_in_a_browser(page, browser):
    browser.set_window_size(1200, 900)
    browser.get(page.as_uri())
    articles = browser.find_elements("css selector", "article")
    assert [a.is_displayed() for a in articles] == [True, True]
    picture = browser.find_element("css selector", "figure img")
    assert browser.execute_script("return arguments[0].naturalWidth", picture) > 100
    browser.find_element("id", "failed").click()
    assert [a.is_displayed() for a in articles] == [True, False]
    assert browser.find_element("id", "shown").text == "1 of 2 experiments shown"
    assert browser.get_log("browser") == []
