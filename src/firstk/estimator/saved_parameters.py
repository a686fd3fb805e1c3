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
