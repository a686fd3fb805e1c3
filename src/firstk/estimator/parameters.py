"""Constructor parameters of an estimator as JSON, and back: what can be said in JSON comes back equal.

What cannot (a module, an array, a generator) is left out and named, with the reason; it comes back as its default.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from firstk import objectives, orderings, solvers
from firstk._base.checks import is_int
from firstk.contracts import settings_of
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import MLP, Layers
from firstk.exceptions import FirstkError


def _whole(value: Any) -> Any:
    if value is not None and not (is_int(value) and value > 0):
        raise ValueError(f"{value!r} is no positive int")
    return value


def _kind(*kinds: type) -> Any:
    def check(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"{value!r} is of type {type(value).__name__}")
        return value

    return check


def _network(name: str, settings: dict[str, Any]) -> MLP:
    network = {MLP.name: MLP}[name](**settings)
    network.check()
    return network


# How an object of each parameter is built again from its name and settings.
_BUILDERS: dict[str, Any] = {
    "objective": objectives.restore,
    "ordering": orderings.restore,
    "solver": solvers.restore,
    "network": _network,
}
# What a value of each parameter must be, when it is no such object: names that mean something, and plain kinds.
_CHECKS: dict[str, Any] = {
    "n_components": _whole,
    "objective": objectives.resolve,
    "ordering": orderings.resolve,
    "solver": solvers.resolve,
    "network": lambda name: {"linear": None, MLP.name: None}[name],
    "init": _kind(str),
    "device": _kind(str),
    "random_state": _kind(int, type(None)),
    "verbose": _kind(bool, int),
}
_REGISTERED = {"objective": objectives.registered, "ordering": orderings.registered}
_REASONS = {
    "network": "a module is code; pass it to load(path, module=network)",
    "init": "an array is not kept: the encoder that it led to is",
    "random_state": "a generator is not kept: pass an int",
}


def expressed(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return {"given": parameters as JSON values, "left_out": reasons by name}."""
    given: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, value in parameters.items():
        try:
            plain = _plain(name, value)
            _back(name, plain)  # what would not come back is better named than saved
        except (KeyError, TypeError, ValueError, AttributeError):
            own = name in _REGISTERED and not _REGISTERED[name](value)
            reason = f"a class of your own is code; pass it to set_params({name}=...)" if own else _REASONS.get(name)
            left_out[name] = reason or "it cannot be said in JSON"
        else:
            given[name] = plain
    return {"given": given, "left_out": left_out}


def restored(encoder: FittedEncoder, module: Any = None) -> dict[str, Any]:
    """Return the constructor parameters that a saved encoder was made with, or that lead to one like it.

    Models of format version 1, and those saved by `FittedEncoder.save`, hold no parameters; theirs are told from the
    facts of the fit, with everything "auto" settled.
    """
    config = encoder.config
    saved = config.get("parameters")
    if saved is None:
        found: dict[str, Any] = {
            "n_components": encoder.d,
            "network": _network_of(encoder),
        }
        own = config.get("own_classes", {})
        if "objective" not in own:
            found["objective"] = objectives.restore(config["objective"], config["settings"])
        if "ordering" not in own:
            found["ordering"] = orderings.restore(config["ordering"], config["ordering_settings"])
    else:
        found = {name: _back(name, value) for name, value in saved["given"].items()}
    return found if module is None else found | {"network": module}


def _network_of(encoder: FittedEncoder) -> Any:
    """Tell the network from its layers; the dropout of its training is not in them."""
    if not isinstance(encoder.body, Layers):
        return "linear"
    return MLP(hidden=tuple(len(W) for W in encoder.body.weights[:-1]), normalize=encoder.body.normalize)


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as a JSON value: an object as its name and settings."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return json.loads(json.dumps(value, allow_nan=False))
    if name == "device":
        return str(value)
    plain = {"name": value.name, "settings": settings_of(value)}
    plain = json.loads(json.dumps(plain, default=os.fspath, allow_nan=False))
    if type(_back(name, plain)) is not type(value):
        raise TypeError(f"{type(value).__name__} is a class of the user's own")
    return plain


def _back(name: str, plain: Any) -> Any:
    """Return the parameter that a JSON value stands for, refusing what no estimator could have been made with."""
    try:
        if isinstance(plain, dict):
            return _BUILDERS[name](plain["name"], plain["settings"])
        _CHECKS[name](plain)
    except FirstkError as error:
        raise ValueError(f"{name}: {error}") from None
    return plain
