"""The frame of experiments on a toy: what is finished is kept, claims are evaluated, no file is half-written."""

from __future__ import annotations

import json
import sys

import pytest

from firstk.exceptions import InvalidInputError, MissingExtraError
from firstk_papers.frame.cells import Job, StudyError, load, save
from firstk_papers.frame.claims import Claim
from firstk_papers.frame.runner import Result, draw_all, read_results, run
from firstk_papers.frame.specs import catalogue, choose, read_spec


def claim(**threshold):
    return Claim("c", "p. 1", "It is so.", "value", threshold)


@pytest.mark.parametrize(
    ("threshold", "value", "held", "text"),
    [
        ({"at_least": 2}, 2, True, "at least 2"),
        ({"at_least": 2}, 1.9, False, "at least 2"),
        ({"at_most": 0.5}, 0.5, True, "at most 0.5"),
        ({"above": 2}, 2, False, "above 2"),
        ({"below": 2}, 1.5, True, "below 2"),
        ({"between": [1, 2]}, 2.5, False, "from 1 to 2"),
        ({"is": True}, True, True, "true"),
        ({"is": True}, False, False, "true"),
        ({"at_least": 2}, None, None, "at least 2"),
    ],
)
def test_claims_are_evaluated(threshold, value, held, text):
    asked = claim(**threshold)
    assert asked.evaluate({"value": value}) == (value, held)
    assert asked.threshold_text == text


def test_bad_claims_raise():
    with pytest.raises(InvalidInputError, match="a threshold is one of"):
        claim(about=3)
    with pytest.raises(InvalidInputError, match="which its study does not give"):
        claim(at_least=1).evaluate({"other": 1})
    with pytest.raises(InvalidInputError, match="a finite number"):
        claim(at_least=1).evaluate({"value": float("nan")})


def test_an_outcome_that_depends_on_the_run_has_a_spread_that_can_be_left():
    asked = Claim(
        "c", "p. 1", "It is so.", "value", {"at_most": 0.1},
        expect={"smoke": {"depends": [0.08, 0.12], "runs": "3 kernels x 3 seeds"}, "full": True},
    )  # fmt: skip
    for value, held in ((0.09, True), (0.11, False)):
        found = asked.result("talukder2026", {"value": value}, "smoke")
        assert (found.held, found.outcome) == (held, "depends")
        assert found.depends == "0.08 to 0.12 over 3 kernels x 3 seeds"
        assert asked.as_recorded(found.measured, "smoke") == ""
    assert asked.as_recorded(0.13, "smoke") == "", "half the spread is allowed on each side"
    assert "from 0.06 to 0.14" in asked.as_recorded(0.15, "smoke")
    assert "measured None" in asked.as_recorded(None, "smoke")
    full = asked.result("talukder2026", {"value": 0.09}, "full")
    assert (full.outcome, full.depends) == (True, "")
    assert asked.as_recorded(0.09, "full") == ""
    assert "measured 0.2: recorded as held" in asked.as_recorded(0.2, "full")


@pytest.mark.parametrize(
    ("threshold", "expect", "why"),
    [
        ({"at_most": 0.1}, {"depends": [0.2, 0.3], "runs": "9 runs"}, "never crosses the threshold"),
        ({"above": 0.1}, {"depends": [0.3, 0.0], "runs": "9 runs"}, "two numbers, the lower first"),
        ({"above": 0.1}, {"depends": [0.1, 0.1], "runs": "9 runs"}, "two numbers, the lower first"),
        ({"above": 0.1}, {"depends": [0.0, 0.2]}, "says over which runs"),
        ({"is": True}, {"depends": [0, 1], "runs": "9 runs"}, "a truth has no spread"),
        ({"above": 0.1}, "depends", "Got 'depends'"),
    ],
)
def test_a_spread_that_hides_a_failure_raises(threshold, expect, why):
    with pytest.raises(InvalidInputError, match=why):
        Claim("c", "p. 1", "It is so.", "value", threshold, expect={"smoke": expect})


def test_a_run_gives_records_figures_and_outcomes(toy, tmp_path):
    folder, _ = toy
    specs = catalogue(folder)
    found = run(list(specs.values()), "smoke", tmp_path / "out", workers=2)
    result = found.results["toys/fig1"]
    assert found.failed == {}
    assert [(c.id, c.measured, c.held) for c in result.claims] == [
        ("sum", 14.0, True), ("small", 14.0, False), ("grows", True, True), ("later", None, None),
    ]  # fmt: skip
    stored = json.loads((tmp_path / "out" / "toys-fig1.json").read_text())
    assert {"id", "paper", "where", "statement", "threshold", "measured", "held"} <= set(stored["claims"][0])
    assert read_results(tmp_path / "out", specs) == [result]
    assert Result.from_json(result.to_json()) == result
    for kind, opening in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        assert (tmp_path / "out" / f"toys-fig1.{kind}").read_bytes().startswith(opening)


def test_a_run_without_figures_writes_the_record_alone(toy, tmp_path):
    found = run(list(catalogue(toy[0]).values()), "smoke", tmp_path / "out", figures=False)
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_file()] == ["toys-fig1.json"]
    assert found.results["toys/fig1"].claims[0].held


def test_figures_are_the_same_from_any_number_of_processes(done_toy, tmp_path, monkeypatch):
    _, found, folder = done_toy
    records = [tmp_path / f"{name}.json" for name in "ab"]
    for record in records:
        record.write_text(found.to_json())
    draw_all(records, workers=2)
    for record in records:
        for kind in (".svg", ".png"):
            assert record.with_suffix(kind).read_bytes() == (folder / f"toys-fig1{kind}").read_bytes()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):  # from here: workers could not send it
        draw_all(records, workers=2)


def test_what_is_finished_is_not_done_again(toy, tmp_path):
    folder, log = toy
    specs = list(catalogue(folder).values())
    first = run(specs, "smoke", tmp_path / "out")
    picture = (tmp_path / "out" / "toys-fig1.svg").read_bytes()
    again = run(specs, "smoke", tmp_path / "out")
    assert again == first
    assert (tmp_path / "out" / "toys-fig1.svg").read_bytes() == picture
    assert sorted(log.read_text().split()) == ["1", "2", "3"]
    run(specs, "full", tmp_path / "out", figures=False)  # shares three of its four cells
    assert sorted(log.read_text().split()) == ["1", "2", "3", "4"]
    run(specs, "smoke", tmp_path / "out", fresh=True, figures=False)
    assert len(log.read_text().split()) == 7


def test_an_error_in_one_cell_keeps_the_rest(toy, tmp_path):
    folder, log = toy
    path = folder / "toys" / "fig1.toml"
    path.write_text(path.read_text().replace("[1, 2, 3]\n", "[1, -2, 3]\n"))
    found = run(list(catalogue(folder).values()), "smoke", tmp_path / "out")
    (message,) = found.failed.values()
    assert message.startswith('A number of at least 0 is needed. This was the cell {"number": -2, "log": ')
    assert message.endswith(" of the study 'fixtures.toy_study'.")
    assert sorted(log.read_text().split()) == ["1", "3"]
    assert not (tmp_path / "out" / "toys-fig1.json").exists()


@pytest.mark.parametrize(
    ("numbers", "message", "cause"),
    [
        ([1, 13], r'^The experiment toys/fig1 stopped at the cell {"number": 13.*: Unlucky: 13 is unlucky$', "measure"),
        ([14], "^The experiment toys/fig1 stopped in 'report' of .*toy_study': ZeroDivisionError: ", "division by"),
        ([], "^The experiment toys/fig1 stopped in 'cells' of .*toy_study': KeyError: 'numbers'$", "numbers"),
    ],
)
def test_an_error_in_a_study_names_experiment_and_cell(toy, tmp_path, numbers, message, cause):
    path = toy[0] / "toys" / "fig1.toml"
    path.write_text(path.read_text().replace("[1, 2, 3]\n", f"{numbers}\n"))
    with pytest.raises(StudyError, match=message) as caught:
        run(list(catalogue(toy[0]).values()), "smoke", tmp_path / "out")
    assert cause in str(caught.value.__cause__), "what went wrong, and where in the study"


def test_a_claim_without_its_measure_names_the_experiment(toy, tmp_path):
    path = toy[0] / "toys" / "fig1.expected.json"
    path.write_text(path.read_text().replace('"measure": "sum"', '"measure": "total"'))
    with pytest.raises(InvalidInputError, match=r"^The experiment toys/fig1: Claim 'sum' asks for the measure 'total'"):
        run(list(catalogue(toy[0]).values()), "smoke", tmp_path / "out")


def test_a_large_cell_is_cut_in_an_error_message():
    assert len(Job("s", {"spectrum": list(range(1000))}).shown) < 250


def test_damaged_or_foreign_cells_count_as_none(tmp_path):
    job = Job("s", {"a": 1})
    save(tmp_path, job, {"x": 1.0}, 0.5)
    assert load(tmp_path, job)["result"] == {"x": 1.0}
    assert load(tmp_path, Job("s", {"a": 2})) is None
    kept = next((tmp_path / "cells").iterdir())
    for damage in (b"{", b"\xff\xfe\x00", b'{"cell": {"a": 1}, "result": {}}'):
        kept.write_bytes(damage)
        assert load(tmp_path, job) is None
    with pytest.raises(InvalidInputError, match="finite numbers"):
        save(tmp_path, job, {"x": float("inf")}, 0.5)


def test_specs_are_found_by_name_and_errors_name_the_file(toy):
    folder, _ = toy
    specs = catalogue(folder)
    assert [s.id for s in choose(["all"], specs)] == [s.id for s in choose(["toys", "toys/fig1"], specs)]
    with pytest.raises(InvalidInputError, match="There is no experiment '003'"):
        choose(["003"], specs)
    path = folder / "toys" / "fig1.toml"
    path.write_text(path.read_text() + "\n[other]\n")
    with pytest.raises(InvalidInputError, match="toys/fig1' cannot be read: it has no field other"):
        read_spec(path)
    path.write_text("title = ")
    with pytest.raises(InvalidInputError, match=r"fig1\.toml' cannot be read: it is no TOML"):
        read_spec(path)
    path.write_text("title = 'x'")
    with pytest.raises(InvalidInputError, match="'toys/fig1' lacks 'where'"):
        read_spec(path)
    path.with_suffix(".expected.json").write_text("{")
    with pytest.raises(InvalidInputError, match=r"fig1\.expected\.json' cannot be read: it is not JSON"):
        read_spec(path)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bao2020/theorm4", "Did you mean bao2020/theorem4, bao2020/theorem5 or bao2020/theorem3?"),
        ("talukder2026/figure6", "Did you mean talukder2026/fig6, "),
        ("al", "Did you mean all?"),
        ("nothing like it", "There are the papers talukder2026, bao2020, balestriero2024, and all."),
    ],
)
def test_a_wrong_name_gets_the_nearest_few(name, meant):
    with pytest.raises(InvalidInputError, match="names every one") as caught:
        choose([name], catalogue())
    assert meant in str(caught.value)
    assert len(str(caught.value)) < 200, "not all of them"


def test_a_damaged_record_counts_as_not_run(toy, tmp_path):
    specs = catalogue(toy[0])
    for damage in (b"\xff", b"{}", b"garb{"):
        (tmp_path / "toys-fig1.json").write_bytes(damage)
        assert read_results(tmp_path, specs) == []


def test_a_figure_stands_for_its_parts(toy):
    folder, _ = toy
    for part in "ab":
        for kind in (".toml", ".expected.json"):
            (folder / "toys" / f"fig6{part}{kind}").write_text((folder / "toys" / f"fig1{kind}").read_text())
    assert [s.id for s in choose(["toys/fig6"], catalogue(folder))] == ["toys/fig6a", "toys/fig6b"]


def test_foreign_results_raise():
    for text in ("{", "[]", '{"panels": []}', '{"panels": [{"kind": "spiral"}]}'):
        with pytest.raises(InvalidInputError, match="no result of an experiment"):
            Result.from_json(text)


def test_a_record_from_before_an_option_is_read(done_toy):
    _, found, _ = done_toy
    plain = json.loads(found.to_json())
    for panel in plain["panels"]:
        panel.pop("equal", None)
        panel.pop("marks", None)
    lines, *others = Result.from_json(json.dumps(plain)).panels
    assert (lines.equal, lines.marks) == (False, ())
    assert tuple(others) == found.panels[1:]
    for one in plain["claims"]:
        del one["depends"]
    assert Result.from_json(json.dumps(plain)).claims == found.claims
    del plain["panels"][0]["title"]
    with pytest.raises(InvalidInputError, match="no result of an experiment"):
        Result.from_json(json.dumps(plain))


def test_missing_studies_and_functions_are_named(toy, tmp_path):
    folder, _ = toy
    path = folder / "toys" / "fig1.toml"
    written = path.read_text()
    path.write_text(written.replace("fixtures.toy_study", "no_such_study"))
    with pytest.raises(InvalidInputError, match=r"There is no study 'no_such_study'.*no_such_study\.py"):
        run(list(catalogue(folder).values()), "smoke", tmp_path / "out")
    path.write_text(written.replace('where = "Figure 1"', 'where = "Figure 1"\nreport = "figure_9"'))
    with pytest.raises(InvalidInputError, match="has no function 'figure_9'"):
        run(list(catalogue(folder).values()), "smoke", tmp_path / "out")
