"""Settings of every registered member: checked, frozen, and the same after JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields

import pytest

from contracts.members import OBJECTIVES, ORDERINGS, SOLVERS, check, settings, with_setting
from firstk import objectives, orderings, solvers
from firstk._base.json_records import settings_of
from firstk.contracts import Objective, Ordering, Solver
from firstk.exceptions import FirstkError

AXES = {
    "objective": (OBJECTIVES, Objective, objectives),
    "ordering": (ORDERINGS, Ordering, orderings),
    "solver": (SOLVERS, Solver, solvers),
}
MEMBERS = [(axis, name) for axis, (members, _, _) in AXES.items() for name in members]


@pytest.mark.parametrize(("axis", "name"), MEMBERS)
def test_every_member_satisfies_its_protocol_under_its_own_name(axis, name):
    members, protocol, _ = AXES[axis]
    assert isinstance(members[name], protocol)
    assert members[name].name == name


@pytest.mark.parametrize(("axis", "name"), MEMBERS)
def test_every_member_passes_its_own_check(axis, name):
    assert check(AXES[axis][0][name]) is None


@pytest.mark.parametrize(("member", "setting"), settings(), ids=lambda part: getattr(part, "name", part))
def test_every_setting_is_checked(member, setting):
    with pytest.raises(FirstkError, match=setting):
        check(with_setting(member, setting, object()))


@pytest.mark.parametrize(("member", "setting"), settings(), ids=lambda part: getattr(part, "name", part))
def test_no_setting_can_be_changed_in_place(member, setting):
    with pytest.raises(FrozenInstanceError):
        setattr(member, setting, None)


@pytest.mark.parametrize(("axis", "name"), MEMBERS)
def test_settings_come_back_equal_from_json(axis, name):
    members, _, package = AXES[axis]
    plain = json.loads(json.dumps(settings_of(members[name]), allow_nan=False))
    assert set(plain) == {part.name for part in fields(members[name])}
    assert package.restore(name, plain) == members[name]


@pytest.mark.parametrize(("axis", "name"), MEMBERS)
def test_a_member_resolves_to_itself_and_its_class_does_not(axis, name):
    members, _, package = AXES[axis]
    assert package.resolve(members[name]) is members[name]
    with pytest.raises(FirstkError, match=f"'{axis}' parameter of PrefixEncoder must be one of"):
        package.resolve(type(members[name]))
