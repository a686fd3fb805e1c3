"""The page of evidence is made from its record, and hides no loss."""

import csv
import io
import json

import pytest
from benchmarks.evidence import goals, summary
from benchmarks.evidence.page import PAGE, SCORES, made, scores_of
from benchmarks.evidence.record import RECORD


def test_page_and_scores_are_those_of_the_record():
    record = json.loads(RECORD.read_text("utf-8"))
    assert PAGE.read_text("utf-8") == made(record)
    assert SCORES.read_text("utf-8") == scores_of(record)


def made_table():
    one = {"difference": -0.05, "low": -0.07, "high": -0.03, "p": 0.001, "verdict": "behind"}
    two = one | {"difference": 0.05, "low": 0.03, "high": 0.07, "verdict": "ahead"}
    scores = [{"test": {"all": each}} for each in ([0.5, 0.6], [0.5, 0.4], [0.4, 0.5])]
    return {
        "model": "minilm", "task": "made", "measure": "accuracy", "unit": "coordinates", "ks": [8, 16],
        "chosen": "firstk fisher", "rows": {"all": 10}, "raw": {"all": 0.7},
        "methods": dict(zip(("firstk fisher", "PCA", "LDA"), scores, strict=True)),
        "comparisons": {"all": {"PCA": [one, two], "LDA": [two, two | {"verdict": "level"}]}},
        "without labels": {"all": {"firstk similarity": {"PCA": [one, two]}}}, "not run": ["CSR"],
    }  # fmt: skip


def test_losses_are_counted():
    table = made_table()
    other = table | {"model": "mpnet", "methods": table["methods"] | {"PCA": {"test": {"all": [0.5, 0.7]}}}}
    page = made({"minilm, made": table, "mpnet, made": other})
    # All peers, those with labels (LDA), similarity without labels, none in bytes; at k = 16 F L P, then P F L.
    assert "| made | 4-2-2 | 2-2-0 | 2-0-2 |  | -0.50 to -0.50 |" in page
    assert "- all peers: 4 ahead, 2 level, 2 behind." in page
    assert "| PCA | 2 | made | minilm, mpnet | 8 | -0.050 |" in page
    assert "- CSR: 2\n" in page


def test_every_score_and_comparison_is_in_the_csv():
    lines = list(csv.DictReader(io.StringIO(scores_of({"minilm, made": made_table()}))))
    assert [(line["method"], line["k"], line["ours"], line["verdict"]) for line in lines] == [
        ("firstk fisher", "8", "", ""), ("firstk fisher", "16", "", ""),
        ("PCA", "8", "firstk fisher", "behind"), ("PCA", "8", "firstk similarity", "behind"),
        ("PCA", "16", "firstk fisher", "ahead"), ("PCA", "16", "firstk similarity", "ahead"),
        ("LDA", "8", "firstk fisher", "ahead"), ("LDA", "16", "firstk fisher", "level"),
        ("CSR", "", "", ""),
    ]  # fmt: skip
    assert (lines[2]["score"], lines[2]["difference"], lines[2]["low"], lines[2]["high"]) == (
        "0.5", "-0.05", "-0.07", "-0.03",
    )  # fmt: skip
    assert (lines[-1]["score"], lines[-1]["verdict"]) == ("", "")


def scored(ours, peer):
    return {
        "model": "minilm", "task": "sts", "ks": [8, 16], "chosen": "firstk a", "raw": {"all": 0.8},
        "methods": {
            "firstk a": {"ours": True, "test": {"all": ours}}, "PCA": {"ours": False, "test": {"all": peer}},
            "truncation": {"ours": False, "test": {"all": [0.1, 0.2]}},
        },
        "comparisons": {"all": {}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "peer", "row"),
    [
        ([0.77, 0.78], [0.7, 0.77], "8 | 16 (PCA) * | 16 | more"),
        ([0.7, 0.759], [0.7, 0.7], "more | more * | more | more"),
        ([0.7, 0.76], [0.76, 0.7], "16 | 8 (PCA) * | 8 | more"),
    ],
)
def test_the_shortest_code_keeps_95_percent(ours, peer, row):
    assert f"| minilm | STS benchmark | {row} |" in summary.section({"minilm, sts": scored(ours, peer)})


def test_of_peers_with_equal_lengths_the_one_with_higher_scores_is_named():
    table = scored([0.77, 0.78], [0.2, 0.77])
    table["methods"] |= {"MRL list": {"ours": False, "test": {"all": [0.5, 0.77]}}}
    assert "| minilm | STS benchmark | 8 | 16 (MRL list) | 16 | more |" in summary.section({"minilm, sts": table})


def test_tables_without_peers_or_without_tasks_that_are_shown(tmp_path):
    table = scored([0.77, 0.78], [0.7, 0.77])
    del table["methods"]["PCA"], table["methods"]["truncation"]
    assert "| minilm | STS benchmark | 8 |  * |  |  |" in summary.section({"minilm, sts": table})
    assert summary.section({"minilm, made": table | {"task": "made"}}) == []
    summary.draw({"minilm, made": table | {"task": "made"}}, tmp_path / "none.svg")
    assert not list(tmp_path.iterdir())


def test_the_figure_has_a_panel_for_each_model_and_task(tmp_path):
    tables = {"minilm, sts": scored([0.77, 0.78], [0.7, 0.77])}
    summary.draw(tables, tmp_path / "figure.svg")
    summary.draw(tables, tmp_path / "again.svg")
    assert {path.name for path in tmp_path.iterdir()} == {"figure.svg", "again.svg"}
    assert (tmp_path / "figure.svg").read_bytes() == (tmp_path / "again.svg").read_bytes()
    assert "STS benchmark: minilm" in (tmp_path / "figure.svg").read_text("utf-8")


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
            "model": "potion", "without labels": {"all": {"firstk similarity": {"PCA": less}}}
        },
    }  # fmt: skip
    lines = goals.section(record)
    lengths = [
        part for line in lines if line.startswith(("| minilm", "| scifact", "| potion")) for part in line.split("; ")
    ]
    results = ["missed" if "**" in part else "met" for part in lengths]
    unseen, seen, without_pairs = ["met", "missed", "met", "missed"], ["met"] * 4, ["missed", "missed", "met"]
    assert results == unseen + seen + without_pairs
    assert any("Met: 7 of 11." in line for line in lines)
