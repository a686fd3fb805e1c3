"""The page of results: everything is said, and in a browser the filter works without an error."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from firstk_papers.frame.page import write_results_page
from firstk_papers.frame.specs import PAPERS, catalogue


@pytest.fixture
def page(done_toy):
    specs, result, folder = done_toy
    good = replace(result, id="toys/fig2", claims=result.claims[:1])
    more = specs | {"toys/fig9": replace(specs["toys/fig1"], id="toys/fig9", title="Never <run>")}
    return write_results_page(folder, [result, good], more, "smoke")


def test_everything_is_said(page):
    text = page.read_text()
    said = [
        "The sum is large.", "at least 14", "measured", "did not hold", "not measured", "They grow.",
        "note &amp; more.", "n = 3: stopped early.", "integers: a few (time)", "a &lt;b&gt;", "Never &lt;run&gt;",
        "not run",
    ]  # fmt: skip
    assert [part for part in said if part not in text] == []
    assert "http" not in text.replace("http://www.w3.org", "")


def test_a_claim_that_depends_on_the_run_is_shown_as_such(done_toy, tmp_path):
    specs, found, _ = done_toy
    only = replace(found, claims=(replace(found.claims[1], depends="2 to 20 over 3 seeds"),))
    text = write_results_page(tmp_path, [only], specs, "smoke").read_text()
    assert '<span class="badge depends">depends on the run</span>' in text
    assert "2 to 20 over 3 seeds; here: did not hold" in text
    assert '<td class="failed">1</td>' not in text, "it is not counted as one that failed"
    assert '<td class="depends">1</td>' in text
    assert 'data-outcome="held"' in text, "the filter shows what did not hold"


def test_the_title_says_what_is_on_the_page(page, done_toy, tmp_path):
    text = page.read_text()
    assert "<title>Experiments of toys (smoke)</title>" in text
    assert "<h1>Experiments of toys</h1>" in text
    assert "<h2>toys</h2>" in text
    assert "paper" not in text[text.index("<h1>") : text.index("<table")], "these are of no paper"
    specs, _, _ = done_toy
    more = specs | {f"{name}/fig1": replace(specs["toys/fig1"], id=f"{name}/fig1") for name in ("games", "a <b>")}
    assert (
        "<h1>Experiments of toys, games and a &lt;b&gt;</h1>"
        in write_results_page(tmp_path, [], more, "full").read_text()
    )


def test_the_title_of_our_own_page(tmp_path):
    text = write_results_page(tmp_path, [], catalogue(), "full").read_text()
    assert "<title>Reproducing the papers (full)</title>" in text
    assert "<h1>Reproducing the papers</h1>" in text


def test_a_paper_is_named_by_author_and_year(done_toy, tmp_path):
    _, found, _ = done_toy
    specs = catalogue()
    text = write_results_page(tmp_path, [replace(found, paper=name) for name in PAPERS], specs, "full").read_text()
    headings = re.findall("<h2>(.*)</h2>", text)
    assert headings == [f"{paper.citation}. {paper.title}" for paper in PAPERS.values()]
    assert headings[0].startswith("Talukder et al. 2026. Objective-Specific")


def test_one_experiment_is_no_plural(done_toy, tmp_path, browser):
    specs, result, _ = done_toy
    browser.get(write_results_page(tmp_path, [result], specs, "smoke").as_uri())
    assert browser.find_element("id", "shown").text == "1 of 1 experiment shown"


def test_the_filter_in_a_browser(page, browser):
    browser.set_window_size(1200, 900)
    browser.get(page.as_uri())
    articles = browser.find_elements("css selector", "article")
    assert [a.is_displayed() for a in articles] == [True, True]
    picture = browser.find_element("css selector", "figure img")
    assert browser.execute_script("return arguments[0].naturalWidth", picture) > 100
    label, shown = (browser.find_element("css selector", name).rect for name in (".filter label", "#shown"))
    assert shown["y"] > label["y"] or shown["x"] - label["x"] - label["width"] >= 16, "they run into one another"
    browser.find_element("id", "failed").click()
    assert [a.is_displayed() for a in articles] == [True, False]
    assert browser.find_element("id", "shown").text == "1 of 2 experiments shown"
    assert browser.get_log("browser") == []
