"""Settings of the objective, ordering, solver and network as parameters of the estimator: ``objective__shrinkage``.

scikit-learn reaches into what has ``get_params``. Members of the axes are frozen dataclasses, so a setting is changed
by putting a changed copy in their place: one that is shared by two estimators stays as it is in the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator

from firstk import objectives, orderings, solvers
from firstk.encoder.network import MLP
from firstk.exceptions import InvalidInputError

# Classes by the names that a parameter may have; "auto" and "linear" name no class, so they have no settings.
_NAMED: dict[str, Mapping[str, type[Any]]] = {
    "objective": objectives.PUBLIC,
    "ordering": orderings.PUBLIC,
    "solver": {name: kind for name, kind in solvers.PUBLIC.items() if name == kind.name},
    "network": {MLP.name: MLP},
}


class NestedParameters(BaseEstimator):
    """``get_params`` and ``set_params`` that reach into the members of the axes."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool
            Whether to add the settings of the objective, ordering, solver and network: ``objective__shrinkage``, and
            ``objective__noise__keep`` for a setting of a setting. A member given by its name has its defaults.
        """
        found: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name in _NAMED.keys() & found:  # a subclass may take others
                member = found[name]
                # What a name stands for, with its defaults, where it has some for all settings.
                if isinstance(member, str) and (kind := _NAMED[name].get(member)) is not None:
                    member = None if _required(kind) else kind()
                found.update(_settings(name, member))
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``objective__shrinkage=0.5`` replaces the objective by one with this setting.

        A member given by its name becomes the object: ``PrefixEncoder(objective="fisher")`` then has
        ``Fisher(shrinkage=0.5)``.
        """
        plain: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in params.items():
            name, _, setting = key.partition("__")
            given = params.get(name, getattr(self, name, None))
            if setting and name in self._get_param_names() and not hasattr(given, "set_params"):
                nested[name][setting] = value
            else:
                plain[key] = value
        for name, changes in nested.items():
            plain[name] = _changed(name, plain.get(name, getattr(self, name)), changes)
        super().set_params(**plain)
        return self


def _required(kind: type[Any]) -> list[str]:
    """Return the settings that have no default."""
    return [part.name for part in fields(kind) if part.default is MISSING and part.default_factory is MISSING]


def _settings(prefix: str, member: object) -> dict[str, Any]:
    """Return the settings of a member, and theirs, under names that begin with `prefix`."""
    if not _has_settings(member):
        return {}
    found: dict[str, Any] = {}
    for part in fields(member):  # type: ignore[arg-type]
        key, value = f"{prefix}__{part.name}", getattr(member, part.name)
        found |= {key: value} | _settings(key, value)
    return found


def _changed(name: str, value: object, changes: Mapping[str, Any]) -> object:
    """Return a copy of the member of an axis with settings changed, or made with them where it was given by name."""
    named, first = _NAMED.get(name, {}), next(iter(changes))
    kind = named.get(value) if isinstance(value, str) else None
    if kind is not None and (missing := _required(kind)):
        _check_names(kind, repr(value), changes)
        if absent := [setting for setting in missing if setting not in changes]:
            raise InvalidInputError(f"The {name} {value!r} needs the setting {name}__{absent[0]} too.")
        return kind(**changes)
    member = kind() if kind is not None else value
    if not _has_settings(member):
        instead = f"; {', '.join(map(repr, named))} have: set_params({name}=..., {name}__{first}=...)" if named else ""
        raise InvalidInputError(f"Invalid parameter {first!r} for {name}={value!r}, which has no settings{instead}.")
    return _with(member, repr(member), changes)


def _has_settings(member: object) -> bool:
    return is_dataclass(member) and not isinstance(member, type)


def _with(member: Any, described: str, changes: Mapping[str, Any]) -> object:
    """Return a copy of a dataclass with settings changed, those of its settings too."""
    _check_names(type(member), described, changes)
    now = {key: value for key, value in changes.items() if "__" not in key}
    within: dict[str, dict[str, Any]] = defaultdict(dict)
    for key, value in changes.items():
        name, _, setting = key.partition("__")
        if setting:
            within[name][setting] = value
    for name, inner in within.items():
        part = now.get(name, getattr(member, name))
        if not _has_settings(part):
            raise InvalidInputError(
                f"Invalid parameter {next(iter(inner))!r} for {name}={part!r} of {described}, which has no settings."
            )
        now[name] = _with(part, repr(part), inner)
    return replace(member, **now)


def _check_names(kind: type[Any], described: str, changes: Mapping[str, Any]) -> None:
    valid = [part.name for part in fields(kind) if part.init]
    for key in changes:
        if key.partition("__")[0] not in valid:
            raise InvalidInputError(f"Invalid parameter {key!r} for {described}. Valid parameters are: {valid!r}.")
