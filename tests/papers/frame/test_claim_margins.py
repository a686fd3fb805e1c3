"""The tool that measures margins of claims: what counts as fragile, and how seeds are shifted."""

from __future__ import annotations

import pytest
from benchmarks.claim_margins import STEP, Margin, shifted

from firstk_papers.frame.claims import Claim
from firstk_papers.frame.runner import jobs_of
from firstk_papers.frame.specs import catalogue


def margin(threshold, values, recorded=None):
    claim = Claim("c", "p. 1", "It is so.", "value", threshold)
    found = {f"native+{i}": claim.evaluate({"value": value}) for i, value in enumerate(values)}
    values, outcomes = ({run: pair[i] for run, pair in found.items()} for i in (0, 1))
    return Margin("talukder2026/fig1/c", claim, False, recorded, values, outcomes)


@pytest.mark.parametrize(
    ("threshold", "values", "state"),
    [
        ({"at_most": 0.1}, [0.07, 0.12], "flips"),
        ({"at_most": 0.1}, [0.07, None], "flips"),  # measured in one run only
        ({"at_most": 0.1}, [0.07, 0.02], "close"),
        ({"at_most": 0.1}, [0.02, 0.01], "safe"),
        ({"above": 1e-6}, [0.08, 0.02], "safe"),  # far by ratios
        ({"above": 0}, [0.08, 0.02], "close"),
        ({"above": 0}, [0.08, 0.05, 0.06, 0.07, 0.03, 0.06], "safe"),  # many runs: more than three deviations
        ({"is": True}, [True, True], "safe"),
        ({"is": True}, [True, False], "flips"),
        ({"at_least": 1}, [None, None], "safe"),
    ],
)
def test_fragile_claims_are_found(threshold, values, state):
    assert margin(threshold, values).state == state


def test_an_outcome_other_than_the_recorded_one_is_reported():
    assert margin({"at_most": 0.1}, [0.01, 0.02], recorded=True).state == "safe"
    assert margin({"at_most": 0.1}, [0.01, 0.02], recorded=False).state == "differs"
    assert margin({"at_most": 0.1}, [0.01, 0.02]).state == "safe", "nothing is recorded"


def test_shifted_seeds_reach_the_cells():
    specs = catalogue()
    seeds = {}
    for name in ("talukder2026/fig6a", "bao2020/theorem1"):  # a list of seeds; one seed
        for shift in (0, 2):
            seeds[name, shift] = {job.cell["seed"] for job in jobs_of(shifted(specs[name], shift), "smoke")}
    assert seeds["talukder2026/fig6a", 2] == {2 * STEP, 0}, "the closed form has no seed"
    assert seeds["bao2020/theorem1", 2] == {seed + 2 * STEP for seed in seeds["bao2020/theorem1", 0]}
    counted = specs["balestriero2024/theorem2"]
    assert shifted(counted, 1).tiers["smoke"]["seeds"] == counted.tiers["smoke"]["seeds"], "a number of them, no list"
