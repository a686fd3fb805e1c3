"""The committed results of the full tier: one for each experiment, with the outcomes the expected files record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firstk_papers.frame.claims import WORDS
from firstk_papers.frame.page import write_results_page
from firstk_papers.frame.runner import Result, read_results
from firstk_papers.frame.specs import catalogue

SPECS = catalogue()
FULL = Path(__file__).resolve().parents[2] / "results" / "full"
RECORDS = [(tier, name) for tier in ("full", "authors") for name, spec in SPECS.items() if tier in spec.tiers]


@pytest.mark.parametrize(("tier", "name"), RECORDS)
def test_the_record_is_of_this_spec(tier, name):
    spec = SPECS[name]
    result = Result.from_json((FULL.with_name(tier) / f"{spec.stem}.json").read_text())
    assert (result.id, result.tier) == (name, tier)
    assert result.settings == json.loads(json.dumps(spec.settings(tier)))
    assert {c.id: c.held for c in result.claims} == {c.id: (c.expect or {}).get(tier) for c in spec.claims}
    said = [(c.statement, c.threshold, c.reading) for c in result.claims]
    assert said == [(c.statement, c.threshold_text, c.reading) for c in spec.claims]
    assert result.reading == spec.reading != ""
    named = (result.paper, result.title, result.where, result.substitutes)
    assert named == (spec.paper, spec.title, spec.where, spec.substitutes)


@pytest.mark.parametrize(("tier", "name"), RECORDS)
def test_the_figure_is_there(tier, name):
    for kind in ("svg", "png"):
        assert (FULL.with_name(tier) / f"{SPECS[name].stem}.{kind}").stat().st_size > 5_000


def test_the_docs_list_the_outcomes_that_depend_on_the_run():
    page = (FULL.parents[1] / "docs" / "reproductions.md").read_text()
    said = [line for line in page.splitlines() if " to " in line and line.endswith(("| held |", "| did not hold |"))]
    rows = []
    for spec in SPECS.values():
        for claim in spec.claims:
            if claim.depends("smoke"):
                seen = claim.depends("smoke").partition(" over ")[0]
                full = WORDS[claim.expect["full"]]
                rows.append(f"| {spec.id}, {claim.id} | {claim.threshold_text} | {seen} | {full} |")
    assert said == rows != []


def test_the_page_is_that_of_the_records(tmp_path):
    for spec in SPECS.values():
        (tmp_path / f"{spec.stem}.svg").touch()  # the page shows figures that are there
    page = write_results_page(tmp_path, read_results(FULL, SPECS), SPECS, "full")
    assert page.read_text() == (FULL / "index.html").read_text()


def test_no_result_is_left_over():
    assert {path.stem for path in FULL.glob("*.json")} <= {spec.stem for spec in SPECS.values()}
