"""Experiments in their smallest form: each runs, each claim comes out as recorded, and again to the digit."""

from __future__ import annotations

import json
from functools import cache

import pytest

from firstk_papers.frame.cells import Job, do_all, load
from firstk_papers.frame.page import write_results_page
from firstk_papers.frame.runner import jobs_of, read_results, run
from firstk_papers.frame.specs import catalogue

SPECS = catalogue()
TIMED = {"prefix_cost"}  # studies all of whose cells are times
# Studies that take 10 seconds or more: their experiments are part of ``make test-full``.
LONG_STUDIES = {
    "equal_reconstruction", "expansions", "learned_order", "masking_alignment", "mnist_codes", "omega", "recovery",
    "subspace_training", "task_alignment",
}  # fmt: skip
LONG = [name for name, spec in SPECS.items() if {job.study for job in jobs_of(spec, "smoke")} & LONG_STUDIES]
SHORT = [name for name in SPECS if name not in LONG]


@pytest.fixture(scope="module")
def smoke_of(tmp_path_factory, data_folder):
    """Return a function that runs the smoke tier of some experiments once, on both cores."""
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("FIRSTK_DATA", str(data_folder))

    @cache
    def make(*names):
        folder = tmp_path_factory.mktemp("results") / "smoke"
        return run([SPECS[name] for name in names], "smoke", folder, workers=2), folder

    yield make
    monkeypatch.undo()


TIERS = [pytest.param(SHORT, id="short"), pytest.param(LONG, id="long", marks=pytest.mark.full)]


def each_of(names, **more):
    return [pytest.param(names, name, id=name, **more) for name in names]


@pytest.mark.parametrize(("names", "name"), [*each_of(SHORT), *each_of(LONG, marks=pytest.mark.full)])
def test_claims_come_out_as_recorded(smoke_of, names, name):
    found, folder = smoke_of(*names)
    assert name not in found.failed, found.failed[name]
    measured = {claim.id: claim.measured for claim in found.results[name].claims}
    wrong = [claim.as_recorded(measured[claim.id], "smoke") for claim in SPECS[name].claims]
    assert [text for text in wrong if text] == []
    assert (folder / f"{SPECS[name].stem}.png").stat().st_size > 5_000


@pytest.mark.parametrize("names", TIERS)
def test_the_same_seed_gives_the_same_numbers(smoke_of, names, tmp_path):
    """The quickest cell of each study that measures no time, done again here."""
    _, folder = smoke_of(*names)
    kept = [json.loads(path.read_text()) for path in (folder / "cells").glob("*.json")]
    quickest = {}
    for part in sorted(kept, key=lambda part: part["seconds"]):
        if not part["cell"].get("timed"):
            quickest.setdefault(part["study"], part)
    assert set(quickest) == {job.study for name in names for job in jobs_of(SPECS[name], "smoke")} - TIMED
    jobs = [Job(study, part["cell"]) for study, part in quickest.items()]
    do_all(jobs, tmp_path, 1, lambda job: None)
    for job in jobs:
        assert load(tmp_path, job)["result"] == quickest[job.study]["result"], job.study


def test_the_page_in_a_browser(smoke_of, browser):
    _, folder = smoke_of(*SHORT)
    shown = {name: SPECS[name] for name in SHORT}
    page = write_results_page(folder, read_results(folder, shown), shown, "smoke")
    browser.set_window_size(1200, 900)
    browser.get(page.as_uri())
    assert len(browser.find_elements("css selector", "article")) == len(shown)
    claims = browser.find_elements("css selector", ".claims tbody tr")
    assert len(claims) == sum(len(spec.claims) for spec in shown.values())
    widths = browser.execute_script("return [...document.querySelectorAll('figure img')].map((i) => i.naturalWidth)")
    assert min(widths) > 100
    assert browser.get_log("browser") == []
