"""The facts in config.json and their types: what is read from disk may have any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstk.encoder.storage.card import saved_curve
from firstk.exceptions import CorruptModelError, InvalidInputError

_NONE = type(None)
_REQUIRED: dict[str, tuple[type, ...]] = {"d": (int,), "p": (int,), "pinned": (int,), "normalised": (bool,)}
_OPTIONAL: dict[str, tuple[type, ...]] = {
    "objective": (str,),
    "settings": (dict,),
    "ordering": (str,),
    "ordering_settings": (dict,),
    "supported": (list,),
    "omega": (str, dict, _NONE),
    "solver": (str,),
    "metric": (str,),
    "network": (str,),
    "layers": (int,),
    "unit_code": (bool,),
    "classes": (list, _NONE),
    "rows": (int,),
    "library_version": (str,),
    "data_fingerprint": (str, _NONE),
    "source_model": (str, _NONE),
    "curve": (dict, _NONE),
    "feature_names": (list, _NONE),
    "parameters": (dict, _NONE),
}


def check_facts(config: Mapping[str, Any], path: object) -> None:
    """Raise CorruptModelError if a fact is missing, of a wrong type, or contradicts another."""
    damaged = f"'{path}' is a damaged firstk model"
    for name, kinds in (_REQUIRED | _OPTIONAL).items():
        if name in _REQUIRED and name not in config:
            raise CorruptModelError(f"{damaged}: its config.json does not say '{name}'.")
        if name in config and type(config[name]) not in kinds:
            got = type(config[name]).__name__
            raise CorruptModelError(f"{damaged}: '{name}' in its config.json is of type {got}.")
    d, p, pinned = config["d"], config["p"], config["pinned"]
    if d < 1 or p < 1 or not 0 <= pinned <= d:
        raise CorruptModelError(f"{damaged}: its widths are d={d}, p={p}, pinned={pinned}.")
    try:
        saved_curve(config, d)
    except (InvalidInputError, TypeError) as error:
        raise CorruptModelError(f"{damaged}: its curve cannot be read ({error}).") from None
