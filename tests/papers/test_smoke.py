"""All experiments in their smallest form: each runs, each claim comes out as recorded, and again to the digit."""

from __future__ import annotations

import json

import pytest

from firstk_papers.frame.cells import Job, do_all, load
from firstk_papers.frame.page import write_results_page
from firstk_papers.frame.runner import jobs_of, read_results, run
from firstk_papers.frame.specs import catalogue

SPECS = catalogue()
TIMED = {"prefix_cost"}  # studies all of whose cells are times


@pytest.fixture(scope="module")
def smoke(tmp_path_factory, data_folder):
    """Run the whole smoke tier once, on both cores."""
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("FIRSTK_DATA", str(data_folder))
    folder = tmp_path_factory.mktemp("results") / "smoke"
    yield run(list(SPECS.values()), "smoke", folder, workers=2), folder
    monkeypatch.undo()


@pytest.mark.parametrize("name", SPECS)
def test_claims_come_out_as_recorded(smoke, name):
    found, folder = smoke
    assert name not in found.failed, found.failed[name]
    measured = {claim.id: claim.measured for claim in found.results[name].claims}
    wrong = [claim.as_recorded(measured[claim.id], "smoke") for claim in SPECS[name].claims]
    assert [text for text in wrong if text] == []
    assert (folder / f"{SPECS[name].stem}.png").stat().st_size > 5_000


def test_the_same_seed_gives_the_same_numbers(smoke, tmp_path):
    """The quickest cell of each study that measures no time, done again here."""
    _, folder = smoke
    kept = [json.loads(path.read_text()) for path in (folder / "cells").glob("*.json")]
    quickest = {}
    for part in sorted(kept, key=lambda part: part["seconds"]):
        if not part["cell"].get("timed"):
            quickest.setdefault(part["study"], part)
    assert set(quickest) == {job.study for spec in SPECS.values() for job in jobs_of(spec, "smoke")} - TIMED
    jobs = [Job(study, part["cell"]) for study, part in quickest.items()]
    do_all(jobs, tmp_path, 1, lambda job: None)
    for job in jobs:
        assert load(tmp_path, job)["result"] == quickest[job.study]["result"], job.study


def test_the_page_in_a_browser(smoke, browser):
    _, folder = smoke
    page = write_results_page(folder, read_results(folder, SPECS), SPECS, "smoke")
    browser.set_window_size(1200, 900)
    browser.get(page.as_uri())
    assert len(browser.find_elements("css selector", "article")) == len(SPECS)
    claims = browser.find_elements("css selector", ".claims tbody tr")
    assert len(claims) == sum(len(spec.claims) for spec in SPECS.values())
    widths = browser.execute_script("return [...document.querySelectorAll('figure img')].map((i) => i.naturalWidth)")
    assert min(widths) > 100
    assert browser.get_log("browser") == []
