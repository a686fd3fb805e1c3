"""Constructor parameters of an estimator as JSON, and back.

What JSON cannot hold (a module, an array, a generator) is left out and named, with the reason; it comes back as its
default.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk import objectives, orderings, solvers
from firstk._base.checks import check_verbose, is_int, is_share
from firstk._base.json_records import settings_of
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import MLP, TrainedMLP
from firstk.encoder.record import SavedParameters
from firstk.exceptions import FirstkError

if TYPE_CHECKING:
    from torch import nn


def _check_width(value: object) -> None:
    named = value is None or (isinstance(value, str) and value == "rank")
    if not named and not is_share(value) and not (isinstance(value, int) and is_int(value) and value > 0):
        raise ValueError(f"{value!r} is no positive int")


def _instance_of(*kinds: type) -> Callable[[object], None]:
    def check(value: object) -> None:
        if not isinstance(value, kinds):
            raise TypeError(f"{value!r} is of type {type(value).__name__}")

    return check


def _network(name: str, settings: dict[str, Any]) -> MLP:
    network = {MLP.name: MLP}[name](**settings)
    network.check()
    return network


# How an object of each parameter is built again from its name and settings.
_BUILDERS: dict[str, Callable[[str, dict[str, Any]], object]] = {
    "objective": objectives.restore,
    "ordering": orderings.restore,
    "solver": solvers.restore,
    "network": _network,
}
# Checks of a value of each parameter that is no such object: a registered name, or a plain type.
_CHECKS: dict[str, Callable[[Any], object]] = {
    "n_components": _check_width,
    "objective": objectives.resolve,
    "ordering": orderings.resolve,
    "solver": solvers.resolve,
    "network": lambda name: {"linear": None, MLP.name: None}[name],
    "init": _instance_of(str),
    "device": _instance_of(str),
    "random_state": _instance_of(int, type(None)),
    "verbose": lambda value: check_verbose(value, "PrefixEncoder"),
}
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
            plain = _to_json(name, value)
            _from_json(name, plain)  # what could not be restored is named, not saved
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


def _to_json(name: str, value: Any) -> object:
    """Return a parameter as a JSON value: an object as its name and settings."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return json.loads(json.dumps(value, allow_nan=False))
    if name == "device":
        return str(value)
    plain = {"name": value.name, "settings": settings_of(value)}
    plain = json.loads(json.dumps(plain, default=os.fspath, allow_nan=False))
    if type(_from_json(name, plain)) is not type(value):
        raise TypeError(f"{type(value).__name__} is a class of the user's own")
    return plain


def _from_json(name: str, plain: object) -> object:
    """Return the parameter that a JSON value stands for, raising for what no estimator could have been made with."""
    try:
        if isinstance(plain, dict):
            return _BUILDERS[name](plain["name"], plain["settings"])
        _CHECKS[name](plain)
    except FirstkError as error:
        raise ValueError(f"{name}: {error}") from None
    return plain
