"""The page of evidence is made from its record, and hides no loss."""

import json

from benchmarks.evidence import goals
from benchmarks.evidence.page import PAGE, made
from benchmarks.evidence.record import RECORD


def test_the_page_is_that_of_the_record():
    assert PAGE.read_text("utf-8") == made(json.loads(RECORD.read_text("utf-8")))


def test_losses_are_counted_and_listed():
    one = {"difference": -0.05, "low": -0.07, "high": -0.03, "p": 0.001, "verdict": "behind"}
    two = one | {"difference": 0.05, "low": 0.03, "high": 0.07, "verdict": "ahead"}
    scores = {"test": {"all": [0.5, 0.6]}}
    table = {
        "model": "minilm", "task": "made", "measure": "accuracy", "unit": "coordinates", "ks": [8, 16],
        "chosen": "firstk fisher", "rows": {"all": 10}, "raw": {"all": 0.7},
        "methods": {"firstk fisher": scores, "PCA": scores, "LDA": scores},
        "comparisons": {"all": {"PCA": [one, two], "LDA": [two, two | {"verdict": "level"}]}},
        "without labels": {"all": {"PCA": [one, two]}}, "not run": ["CSR"],
    }  # fmt: skip
    page = made({"minilm, made": table})
    assert "| minilm | made | fisher | 1-0-1 | 1-1-0 |" in page
    assert "In all: 2 ahead, 1 level, 1 behind." in page
    assert "| minilm | made | 8 | PCA | -0.050 | -0.070 to -0.030 |" in page
    assert "- minilm, made: CSR\n" in page
    assert (
        "| minilm | made | fisher | 1-0-0 | 0-1-0 |\n\nIn all: 1 ahead, 1 level, 0 behind." in page
    )  # with labels: LDA
    assert "| minilm | made | **-0.050** | +0.050 |" in page


def test_goals_are_met_or_missed_by_the_code_that_validation_data_chose():
    def table(task, part, ks, scores):
        return {
            "model": "minilm", "task": task, "ks": ks, "chosen": "firstk b",
            "methods": {"firstk a": {"test": {part: [1.0] * len(ks)}}, "firstk b": {"test": {part: scores}}},
        }  # fmt: skip

    one = {"difference": 0.02, "low": 0.0, "high": 0.04, "verdict": "level"}
    less = [one, one | {"difference": -0.006}, one | {"difference": -0.004}]
    scifact = table("scifact", "unseen", [16, 32, 64, 128], [0.3, 0.4999, 0.6, 0.6])
    scifact["methods"]["firstk b"]["test"]["seen"] = [0.9] * 4
    record = {
        "minilm, scifact": scifact,
        "potion, scifact": table("scifact", "all", [16, 32, 64], []) | {
            "model": "potion", "without labels": {"all": {"PCA": less}}
        },
    }  # fmt: skip
    lines = goals.section(record)
    results = [line.split("|")[-2].strip() for line in lines if line.endswith(("| met |", "| missed |"))]
    unseen, seen, without_pairs = ["met", "missed", "met", "missed"], ["met"] * 4, ["missed", "missed", "met"]
    assert results == unseen + seen + without_pairs
    assert any("Met: 7 of 11." in line for line in lines)
