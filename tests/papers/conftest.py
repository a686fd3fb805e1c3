"""A folder with one toy experiment."""

from __future__ import annotations

import json

import pytest

from firstk_papers.frame.runner import run
from firstk_papers.frame.specs import catalogue

CLAIMS = [
    {"id": "sum", "where": "p. 1", "statement": "The sum is large.", "measure": "sum", "threshold": {"at_least": 14}},
    {"id": "small", "where": "p. 2", "statement": "The sum is small.", "measure": "sum", "threshold": {"below": 3}},
    {"id": "grows", "where": "p. 3", "statement": "It grows.", "measure": "grows", "threshold": {"is": True}},
    {"id": "later", "where": "p. 4", "statement": "Later.", "measure": "later", "threshold": {"between": [0, 1]}},
]


@pytest.fixture
def toy(tmp_path):
    """Return a folder of experiments with one toy in it, and the log of what it computed."""
    return written_toy(tmp_path)


@pytest.fixture(scope="module")
def done_toy(tmp_path_factory):
    """Return the specs of the toy, its result and the folder that it is in: to read, not to change."""
    folder = tmp_path_factory.mktemp("toy")
    specs = catalogue(written_toy(folder)[0])
    return specs, run(list(specs.values()), "smoke", folder / "out").results["toys/fig1"], folder / "out"


def written_toy(place):
    """Write the folder of the toy into a place; return it, and the log of what it will have computed."""
    folder, log = place / "specs", place / "log.txt"
    (folder / "toys").mkdir(parents=True)
    log.touch()
    spec = f"""
title = "Squares"
where = "Figure 1"
study = "fixtures.toy_study"
reading = "They grow."
substitutes = [{{paper = "integers", used = "a few", why = "time"}}]
[settings]
log = "{log}"
[smoke]
numbers = [1, 2, 3]
[full]
numbers = [1, 2, 3, 4]
"""
    (folder / "toys" / "fig1.toml").write_text(spec)
    (folder / "toys" / "fig1.expected.json").write_text(json.dumps({"claims": CLAIMS}))
    return folder, log
