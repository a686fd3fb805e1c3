"""``--set NAME=VALUE``: settings of the encoder that have no option of their own, by their names in Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.estimator.prefix_encoder import PrefixEncoder

# Parameters of PrefixEncoder that may be set by name; others have options of their own.
NAMES = ("ordering", "solver", "network", "init", "device")
_SHAPE = "NAME=VALUE, such as objective.shrinkage=auto, ordering=sparse_prefix:8,16,32 or network=mlp:256,256"


def encoder_of(objective: str, given: Sequence[str], **others: Any) -> PrefixEncoder:
    """Return the encoder that the options describe: an objective by name, and settings as ``--set`` takes them."""
    from firstk import objectives
    from firstk._base.checks import check_choice
    from firstk.estimator.prefix_encoder import PrefixEncoder

    check_choice(objective, objectives.PUBLIC, "--objective", "firstk fit")
    named, nested = settings_of(given)
    encoder = PrefixEncoder(objective=objectives.PUBLIC[objective](), **named, **others)
    known = encoder.get_params()
    for name, value in nested.items():
        if name not in known:
            member, _, setting = name.partition("__")
            own = sorted(one.partition("__")[2] for one in known if one.startswith(f"{member}__"))
            have = f"It has {', '.join(own)}." if own else "It has none."
            raise InvalidInputError(f"--set {member}.{setting}: '{setting}' is no setting of this {member}. {have}")
        encoder.set_params(**{name: value})
    return encoder


def settings_of(given: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters of the encoder by name, and nested ones by the names that ``set_params`` takes."""
    named: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for word in given:
        name, equals, text = word.partition("=")
        member, dot, setting = name.strip().partition(".")
        if not equals or member not in ("objective", *NAMES) or (member == "objective") > bool(dot):
            raise InvalidInputError(f"--set takes {_SHAPE}. Got '{word}'.")
        if dot:
            nested[f"{member}__{setting}"] = _value(setting, text.strip())
        else:
            named[member] = _member(member, text.strip())
    return named, nested


def _member(name: str, text: str) -> Any:
    """Return an ordering or a network by its name, with what follows a colon; others as they are."""
    kind, _, numbers = text.partition(":")
    if name == "ordering" and kind == "sparse_prefix":
        from firstk.orderings import SparsePrefix

        return SparsePrefix(_whole_numbers(numbers, name, text))
    if name == "network" and kind == "mlp" and numbers:
        from firstk.encoder.network import MLP

        return MLP(hidden=tuple(_whole_numbers(numbers, name, text)))
    return text


def _value(setting: str, text: str) -> Any:
    """Return the value of a setting: as JSON where it is some, none as None, a noise by its name, else as text."""
    if setting == "noise":
        from firstk.objectives import GaussianNoise, Masking

        kinds = {"masking": Masking, "gaussian": GaussianNoise}
        name, _, value = text.partition(":")
        if name not in kinds:
            raise InvalidInputError(f"A noise is masking:SHARE_KEPT or gaussian:SIGMA. Got '{text}'.")
        return kinds[name](*([] if not value else [_value("", value)]))
    if text in ("none", "None"):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _whole_numbers(text: str, name: str, word: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isascii() and part.strip().isdigit() and int(part) > 0 for part in parts):
        raise InvalidInputError(f"--set {name} takes whole numbers with commas after the colon. Got '{word}'.")
    return [int(part) for part in parts]


def image_of(word: str | None) -> tuple[int, ...] | None:
    """Return the shape that ``28x28`` or ``32x32x3`` names; None stays None."""
    if word is None:
        return None
    parts = word.split("x")
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts) or not (
        len(parts) == 2 or parts[2:] in (["1"], ["3"])
    ):
        raise InvalidInputError(f"--image takes ROWSxCOLUMNS or ROWSxCOLUMNSx3, such as 28x28. Got '{word}'.")
    return tuple(map(int, parts))
