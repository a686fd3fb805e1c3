"""The page of evidence is made from its record, and hides no loss."""

import json

from benchmarks.evidence.page import PAGE, made
from benchmarks.evidence.record import RECORD


def test_the_page_is_that_of_the_record():
    assert PAGE.read_text("utf-8") == made(json.loads(RECORD.read_text("utf-8")))


def test_losses_are_counted_and_listed():
    one = {"difference": -0.05, "low": -0.07, "high": -0.03, "p": 0.001, "verdict": "behind"}
    two = one | {"difference": 0.05, "low": 0.03, "high": 0.07, "verdict": "ahead"}
    scores = {"test": {"all": [0.5, 0.6]}}
    table = {
        "model": "minilm", "task": "made", "measure": "accuracy", "ks": [4, 8], "chosen": "firstk fisher",
        "rows": {"all": 10}, "raw": {"all": 0.7}, "methods": {"firstk fisher": scores, "PCA": scores, "LDA": scores},
        "comparisons": {"all": {"PCA": [one, two], "LDA": [two, two | {"verdict": "level"}]}}, "not run": ["CSR"],
    }  # fmt: skip
    page = made({"minilm, made": table})
    assert "| minilm | made | fisher | 1-0-1 | 1-1-0 |" in page
    assert "In all: 2 ahead, 1 level, 1 behind." in page
    assert "| minilm | made | 4 | PCA | -0.050 | -0.070 to -0.030 |" in page
    assert "have no row where they were not run: CSR." in page
