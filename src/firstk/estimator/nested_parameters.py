"""Parameters of an estimator: nested names such as ``objective__shrinkage``, and all of them as JSON and back.

scikit-learn reaches into what has ``get_params``. Members of the axes are frozen dataclasses, so a setting is changed
by putting a changed copy in their place: one that is shared by two estimators stays as it is in the other. What JSON
cannot hold (a module, an array, a generator) is left out and named, with the reason; it comes back as its default.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from firstk import objectives, orderings, solvers
from firstk._base.checks import check_verbose, is_int, is_share
from firstk._base.json_records import settings_of
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import MLP, TrainedMLP
from firstk.encoder.record import SavedParameters
from firstk.exceptions import FirstkError, InvalidInputError

if TYPE_CHECKING:
    from torch import nn

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


# How a member of each axis is built again from its name and settings, and checked where it is a name.
_MEMBERS: dict[str, tuple[Callable[[str, dict[str, Any]], object], Callable[[Any], object]]] = {
    "objective": (objectives.restore, objectives.resolve),
    "ordering": (orderings.restore, orderings.resolve),
    "solver": (solvers.restore, solvers.resolve),
    "network": (lambda name, settings: {MLP.name: MLP}[name](**settings), {"linear": None, MLP.name: None}.__getitem__),
}
_TYPES: dict[str, tuple[type, ...]] = {"init": (str,), "device": (str,), "random_state": (int, type(None))}
_REGISTERED = {"objective": objectives.registered, "ordering": orderings.registered}
_REASONS = {
    "network": "a module is code; pass it to load(path, module=network)",
    "init": "an array is not kept: the encoder that it led to is",
    "random_state": "a generator is not kept: pass an int",
}


def saved_parameters(parameters: Mapping[str, Any]) -> SavedParameters:
    """Return parameters as JSON values, and why some cannot be."""
    given: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, value in parameters.items():
        try:
            plain = value.item() if isinstance(value, np.generic) else value
            if name == "device" and not isinstance(plain, str):
                plain = str(plain)
            elif plain is None or isinstance(plain, (str, bool, int, float)):
                plain = json.loads(json.dumps(plain, allow_nan=False))
            else:  # an object as its name and settings
                plain = {"name": plain.name, "settings": settings_of(plain)}
                plain = json.loads(json.dumps(plain, default=os.fspath, allow_nan=False))
            made = _from_json(name, plain)  # what could not be restored is named, not saved
            if isinstance(plain, dict) and type(made) is not type(value):
                raise TypeError(f"{type(value).__name__} is a class of the user's own")
        except (KeyError, TypeError, ValueError, AttributeError):
            own = name in _REGISTERED and not _REGISTERED[name](value)
            reason = f"a class of your own is code; pass it to set_params({name}=...)" if own else _REASONS.get(name)
            left_out[name] = reason or "it cannot be said in JSON"
        else:
            given[name] = plain
    return SavedParameters(given, left_out)


def parameters_of(encoder: FittedEncoder, module: nn.Module | None = None) -> dict[str, Any]:
    """Return the constructor parameters that a saved encoder was made with, or that lead to one like it.

    Models saved by `FittedEncoder.save` hold no parameters; theirs are taken from the record of the fit, with
    everything "auto" settled.
    """
    record = encoder.record
    if record.parameters is None:
        found: dict[str, Any] = {"n_components": encoder.d, "network": "linear"}
        if isinstance(net := encoder.network, TrainedMLP):  # from its layers, which do not tell the dropout of training
            found["network"] = MLP(hidden=tuple(len(W) for W in net.weights[:-1]), normalize=net.normalize)
        if "objective" not in record.own_classes:
            found["objective"] = objectives.restore(record.objective, record.settings)
        if "ordering" not in record.own_classes:
            found["ordering"] = orderings.restore(record.ordering, record.ordering_settings)
    else:
        found = {name: _from_json(name, value) for name, value in record.parameters.given.items()}
    return found if module is None else found | {"network": module}


def _from_json(name: str, plain: object) -> object:
    """Return the parameter that a JSON value stands for, raising for what no estimator could have been made with."""
    try:
        if name in _MEMBERS:
            restore, check = _MEMBERS[name]
            if isinstance(plain, dict):
                member = restore(plain["name"], plain["settings"])
                if isinstance(member, MLP):
                    member.check()
                return member
            check(plain)
        elif name == "n_components":
            named = plain is None or (isinstance(plain, str) and plain == "rank")
            if not named and not is_share(plain) and not (isinstance(plain, int) and is_int(plain) and plain > 0):
                raise ValueError(f"{plain!r} is not a positive int")
        elif name == "verbose":
            check_verbose(plain, "PrefixEncoder")
        elif not isinstance(plain, _TYPES[name]):
            raise TypeError(f"{plain!r} is of type {type(plain).__name__}")
    except FirstkError as error:
        raise ValueError(f"{name}: {error}") from None
    return plain
