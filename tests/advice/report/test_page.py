"""What a page refuses, and with which sentence."""

from __future__ import annotations

import numpy as np
import pytest

from advice.report.conftest import make_curve
from firstk.advice.report import Page, Section, curve_section, storage_section
from firstk.exceptions import InvalidInputError

OURS = make_curve("ours", 4)
SECTION = curve_section("Accuracy", "", [OURS])


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"heading": ""}, "'heading' parameter of Section must be a str that is not empty. Got '' instead"),
        ({"text": None}, "'text' parameter of Section must be a str"),
        ({"curves": []}, "A chart needs at least one PrefixCurve in 'curves'. Got 0."),
        ({"curves": OURS}, "PrefixCurve has the fields k, score, metric"),
        ({"curves": [np.ones(3)]}, "PrefixCurve has the fields k, score, metric"),
        ({"curves": 3}, "'curves' parameter of Curves must be a sequence. Got 3 instead"),
        ({"baselines": [OURS]}, r"Got 2 curves called 'ours'; rename one with dataclasses.replace"),
        (
            {"baselines": [make_curve("b", 4, metric="recall")]},
            "Got 2: accuracy .*, recall .* Put each metric on its own",
        ),
        ({"baselines": [make_curve("b", 4, higher_is_better=False)]}, "draws one metric on one axis"),
    ],
)
def test_sections_that_cannot_be_drawn_are_refused(fields: dict, sentence: str):
    with pytest.raises(InvalidInputError, match=sentence):
        curve_section(**{"heading": "s", "text": "", "curves": [OURS], **fields})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"title": ""}, "'title' parameter of Page must be a str that is not empty"),
        ({"summary": 1}, "'summary' parameter of Page must be a str"),
        ({"sections": []}, "at least one of them with curves"),
        ({"sections": [Section("s", "", [])]}, "at least one of them with curves"),
        ({"sections": [OURS]}, "Section has the fields heading, text, parts"),
        ({"sections": SECTION}, "'sections' parameter of Page must be"),
        ({"chosen_k": 80}, "prefix length of 'ours', the first curve: 1, 2, 3, .*, 64; or None. Got 80 instead"),
        ({"chosen_k": True}, "Got True instead"),
        ({"start_k": 5}, "'start_k' parameter of Page must be a prefix length"),
        ({"facts": {"rows": None}}, "'facts' parameter of Page must be .* Got None instead"),
        ({"facts": ["rows"]}, "'facts' parameter of Page must be"),
        ({"facts": {1: "rows"}}, "'facts' parameter of Page must be"),
        ({"notes": "one sentence"}, "'notes' parameter of Page must be str"),
        ({"notes": [1]}, "'notes' parameter of Page must be str"),
    ],
)
def test_pages_that_say_nothing_sensible_are_refused(fields: dict, sentence: str):
    with pytest.raises(InvalidInputError, match=sentence):
        Page(**{"title": "t", "summary": "", "sections": [SECTION], **fields})


def test_parts_that_are_none_are_refused():
    with pytest.raises(InvalidInputError, match="Curves has the fields curves, baselines"):
        Section("s", "", [OURS])


def test_bytes_of_no_rows_are_refused():
    with pytest.raises(InvalidInputError, match="'rows' parameter of storage_section must be an int of at least 1"):
        storage_section("h", "", rows=0, columns=1, itemsize=1, ks=[1])


def test_pages_are_frozen_copies_with_numbers_of_python():
    sections = [SECTION]
    page = Page("t", "", sections, chosen_k=np.int64(8), facts={"rows": np.int64(7), "f": 0.5})
    sections.clear()
    assert page.sections == (SECTION,)
    assert page.facts == (("rows", 7), ("f", 0.5))
    assert [type(v) for v in (page.chosen_k, page.facts[0][1])] == [int, int]
    with pytest.raises(AttributeError):
        page.title = "u"


def test_the_slider_stands_wherever_some_curve_was_evaluated():
    page = Page("t", "", [SECTION, curve_section("b", "", [make_curve("c", 3, ks=(5, 100))])])
    assert page.stops == tuple(sorted({*OURS.k, 5, 100}))
    assert page.start == 64
