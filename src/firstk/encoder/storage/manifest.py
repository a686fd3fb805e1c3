"""config.json: strict JSON that seals itself and the files beside it, and reads what older versions wrote.

`digest` is the SHA-256 of everything else in config.json, in canonical form; `files` holds the SHA-256 of each file
that is trusted. So a change anywhere is noticed, and one that means nothing (white space, the order of names) is not.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from firstk._base.json_records import strict_json
from firstk.exceptions import CorruptModelError, InvalidInputError

# Facts as JSON holds them.
Config = dict[str, Any]
FORMAT = "firstk-encoder"
FORMAT_VERSION = 2
CONFIG, TENSORS, CARD = "config.json", "model.safetensors", "README.md"
# Facts about the folder; everything else in it is about the encoder.
_HEADER = ("format", "format_version", "files", "digest")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Manifest:
    """The content of config.json.

    Attributes
    ----------
    config : dict
        Facts about the encoder.
    files : dict
        SHA-256 of each trusted file, by name.
    version : int
        Format version of the folder as it was found.
    """

    config: Config
    files: dict[str, str]
    version: int = FORMAT_VERSION

    def payload(self) -> bytes:
        """Return the bytes of config.json."""
        header = {"format": FORMAT, "format_version": FORMAT_VERSION, "files": self.files}
        facts = {name: value for name, value in sorted(self.config.items()) if name not in _HEADER}
        try:
            whole = header | {"digest": _digest(header | facts)} | facts
            return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(
                f"A saved model holds what JSON can hold, with finite numbers only ({error})."
            ) from None


def check_extra_name(name: object) -> None:
    """Check that a name is a plain file name, and none that the model needs itself."""
    if not _plain_name(name) or name.lower() in {own.lower() for own in (CONFIG, TENSORS, CARD)}:
        raise InvalidInputError(
            f"An extra file of a model has a plain name of letters, digits, '.', '_' and '-', and not one of "
            f"{CONFIG}, {TENSORS}, {CARD}. Got {name!r}."
        )


def checksum(payload: bytes) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(payload).hexdigest()


def parse(payload: bytes, folder: str | Path) -> Manifest:
    """Read the bytes of config.json; raise CorruptModelError for anything but what firstk wrote."""
    where = f"'{folder}' is no firstk model"
    found = _read_json(payload, folder)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise CorruptModelError(f"{where}: {CONFIG} does not say format '{FORMAT}'.")
    version = found.get("format_version")
    if type(version) is not int or version not in (FORMAT_VERSION, *MIGRATIONS):
        known = ", ".join(map(str, (*sorted(MIGRATIONS), FORMAT_VERSION)))
        raise CorruptModelError(
            f"'{folder}' has format version {_shown(version)}; this firstk reads versions {known}. "
            "Use the firstk that wrote it, or a newer one, or save the model again."
        )
    if version in MIGRATIONS:
        found = MIGRATIONS[version](found, folder)
    elif found.pop("digest", None) != _digest(found):
        raise CorruptModelError(
            f"'{folder}/{CONFIG}' does not match its own digest: it is damaged, or was edited by hand. "
            "Copy or save the model again."
        )
    files = found.get("files")
    if not isinstance(files, dict) or not all(_plain_name(name) and _is_sha256(sha) for name, sha in files.items()):
        raise CorruptModelError(f"'{folder}' is a damaged firstk model: {CONFIG} does not list its files.")
    config = {name: _respelled(value) if name in _SETTINGS else value for name, value in found.items()}
    return Manifest({name: value for name, value in config.items() if name not in _HEADER}, files, version)


def claims(payload: bytes) -> bool:
    """Tell whether a config.json, intact or damaged, calls itself firstk's."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def _read_json(payload: bytes, folder: str | Path) -> Any:
    try:
        return strict_json(payload)
    except ValueError as error:
        raise CorruptModelError(f"'{folder}/{CONFIG}' is not readable JSON ({str(error)[:200]}).") from None


def _canonical(found: object) -> bytes:
    return json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _digest(found: Mapping[str, object]) -> str:
    return checksum(_canonical(found))


def _plain_name(name: object) -> TypeGuard[str]:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _is_sha256(value: object) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


# -- older versions ------------------------------------------------------------------------------------------------


def _from_version_1(found: Config, folder: str | Path) -> Config:
    """Version 1 had one checksum, of the arrays, and no digest of config.json."""
    if "digest" in found or "files" in found:
        raise CorruptModelError(f"'{folder}' is a damaged firstk model: {CONFIG} mixes format versions 1 and 2.")
    return found | {"files": {TENSORS: found.pop("sha256", None)}}


# Names that followed scikit-learn and torch after models had been saved, and where in a config they can occur.
_SETTINGS = ("objective", "settings", "solver_settings", "auto", "parameters")
_KEYS = {"optimiser": "optimizer", "normalise": "normalize", "neighbours": "neighbor_weight"}
_VALUES = {"neighbours": "neighbors"}


def _respelled(value: Any) -> Any:
    """Return settings with names as they are spelled today."""
    if isinstance(value, dict):
        return {_KEYS.get(name, name): _respelled(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_respelled(item) for item in value]
    return _VALUES.get(value, value) if isinstance(value, str) else value


MIGRATIONS: dict[int, Callable[[Config, str | Path], Config]] = {1: _from_version_1}
