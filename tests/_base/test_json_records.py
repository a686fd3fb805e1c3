"""Records by their type hints: what is written is read back, and an error names the record and the field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from firstk._base.json_records import (
    Count,
    JsonRecord,
    Lengths,
    Share,
    check_fields,
    from_plain,
    settings_of,
    strict_json,
    to_plain,
)
from firstk.exceptions import InvalidInputError


class Step(NamedTuple):
    k: Count
    size: int


@dataclass(frozen=True)
class Inner:
    name: str
    share: Share


@dataclass(frozen=True)
class Outer:
    k: Lengths
    inner: Inner
    steps: tuple[Step, ...]
    pair: tuple[int, str]
    several: tuple[Inner, ...] = ()
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    rows: Count | None = field(default=None, metadata={"stored_as": "lines"})
    flag: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


OUTER = Outer(
    [1, 2], Inner("a", 0.5), [Step(1, 2)], (3, "x"), [Inner("b", 1)], {"file": "a", "rows": 3, "mean": 0.5},
    {"seeds": [1, 2]}, np.int64(7),
)  # fmt: skip


def test_records_are_read_back_equal():
    plain = to_plain(OUTER)
    assert plain["steps"] == [[1, 2]]
    assert plain["details"] == {"seeds": [1, 2]}
    again = from_plain(Outer, json.loads(json.dumps(plain, allow_nan=False)))
    assert again == OUTER
    assert isinstance(again.steps[0], Step)
    assert type(again.rows) is int
    assert {name: type(value) for name, value in again.facts.items()} == {"file": str, "rows": int, "mean": float}


def test_fields_are_converted_when_a_record_is_made():
    assert OUTER.k == (1, 2)
    assert OUTER.several == (Inner("b", 1.0),)
    with pytest.raises(TypeError):
        OUTER.details["seeds"] = 3


def test_a_field_may_have_another_name_in_files():
    plain = to_plain(OUTER)
    assert plain["lines"] == 7
    assert "rows" not in plain
    assert from_plain(Outer, plain) == OUTER


def test_all_fields_must_be_there():
    plain = to_plain(OUTER)
    del plain["flag"]
    with pytest.raises(InvalidInputError, match="Missing: flag; unknown: none"):
        from_plain(Outer, plain)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": [2, 1]}, "'k' parameter of Outer must be strictly increasing ints"),
        ({"k": "12"}, "'k' parameter of Outer"),
        ({"inner": {"name": "a", "share": 2}}, r"'share' parameter of Inner must be a number in \[0, 1\]. Got 2"),
        ({"inner": {"name": 1, "share": 0}}, "'name' parameter of Inner must be a str"),
        ({"inner": 3}, "Inner has the fields name, share. Got 3"),
        ({"steps": [[0, 1]]}, "'steps' parameter of Outer must be an int of at least 1. Got 0"),
        ({"steps": [[1]]}, "'steps'"),
        ({"pair": [1, 2]}, "'pair'"),
        ({"pair": [1, "x", 2]}, "'pair'"),
        ({"facts": {"a": None}}, "'facts'"),
        ({"facts": 3}, "'facts'"),
        ({"rows": True}, "'rows' parameter of Outer must be an int of at least 1"),
        ({"rows": 2**63}, "'rows'"),
        ({"flag": 1}, "'flag' parameter of Outer must be True or False"),
        ({"several": [1.5]}, "Inner has the fields"),
        ({"surprise": 1}, "Missing: none; unknown: surprise"),
    ],
)
def test_an_error_names_the_record_and_the_field(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        from_plain(Outer, to_plain(OUTER) | changes)


def test_numbers_that_are_not_finite_are_not_written():
    with pytest.raises(InvalidInputError, match="finite numbers only"):
        to_plain({"a": (1.0, float("nan"))})


def test_settings_name_the_objects_in_them():
    @dataclass(frozen=True)
    class Objective:
        noise: Inner
        weights: np.ndarray

    assert settings_of(Objective(Inner("a", 0.5), np.array([1, 2]))) == {
        "noise": {"name": "a", "share": 0.5},
        "weights": [1, 2],
    }


def test_json_text_says_its_format():
    class Noted(Inner, JsonRecord):
        FORMAT, IGNORED = "x/1", ("note",)

    class Newer(Inner, JsonRecord):
        FORMAT, AGAIN = "x/2", "make it again"

    class Plain(Inner, JsonRecord):
        FORMAT = "x/1"

    text = json.dumps({"format": "x/1", "note": "", "name": "a", "share": 0})
    assert vars(Noted.from_json(text)) == {"name": "a", "share": 0.0}
    with pytest.raises(InvalidInputError, match=r"of format 'x/2'.*: make it again"):
        Newer.from_json(text)
    with pytest.raises(InvalidInputError, match="unknown: note"):
        Plain.from_json(text)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[NaN]", "[1e999]", "[" * 100_000, b"\xff", "{"])
def test_strict_json(text):
    with pytest.raises(ValueError):
        strict_json(text)
