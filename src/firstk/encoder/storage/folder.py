"""A model on disk: a folder of config.json, model.safetensors, README.md and named extras, written atomically.

Nothing is ever unpickled. Reading checks format, version and checksums before anything is used. README.md is for
people: it is written, never read, and may be edited.

config.json is strict JSON that seals itself and the files beside it: `digest` is the SHA-256 of everything else in it,
in canonical form; `files` holds the SHA-256 of each file that is trusted. So a change anywhere is noticed, and one that
means nothing (white space, the order of names) is not.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import numpy as np

from firstk._base import tensors
from firstk._base.atomic_file import atomic_folder, current, restore, write_new
from firstk._base.json_records import strict_json
from firstk.data.remote import check_local
from firstk.exceptions import CorruptModelError, FirstkError, InvalidInputError

_Read = TypeVar("_Read")
# How often a model is read again that was replaced while it was read.
_ATTEMPTS = 100
# Facts as JSON holds them.
Config = dict[str, Any]
# From the name of a file to what it holds; None where there is none.
Files = Callable[[str], bytes | None]
FORMAT = "firstk-encoder"
FORMAT_VERSION = 1
# What a folder of each format holds, and the class that loads it.
ALIGNMENT = "firstk-alignment"
FORMATS = {FORMAT: ("an encoder", "PrefixEncoder"), ALIGNMENT: ("an alignment", "PrefixAlignment")}
CONFIG, TENSORS, CARD = "config.json", "model.safetensors", "README.md"
# The further file in which `firstk fit` keeps its evaluation.
EVALUATION = "study.json"
# Facts about the folder; everything else in it is about the encoder.
_HEADER = ("format", "format_version", "files", "digest")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


# -- writing ---------------------------------------------------------------------------------------------------------


def write_model(
    path: str | Path,
    config: Mapping[str, object],
    arrays: Mapping[str, np.ndarray],
    *,
    card: str = "",
    extra: Mapping[str, str | bytes] | None = None,
    format: str = FORMAT,
) -> Path:
    """Write a model folder in one atomic step.

    An existing model is replaced; a folder that holds anything else is left alone, and raises an error.

    Parameters
    ----------
    path : path
    config : mapping
        Facts about the encoder that JSON can hold.
    arrays : mapping of ndarrays
    card : str
        Text of README.md.
    extra : mapping of str or bytes, optional
        What further files hold, by name, such as ``{"study.json": text}``; `read_extra` and `read_extra_bytes` read
        them.
    format : str
        One of `FORMATS`.
    """
    check_local(path)
    target = Path(path).resolve()  # a link stays a link: what it points to is replaced
    check_target(target)
    files = model_files(config, arrays, card=card, extra=extra, format=format)
    try:
        with atomic_folder(target) as folder:
            for name, payload in files.items():
                write_new(folder / name, payload)  # the old model is replaced only when the new one is on the disk
    except OSError as error:
        raise InvalidInputError(
            f"Cannot write a model to '{target}': {error.strerror}. Nothing was changed; choose another folder."
        ) from None
    return target


def model_files(
    config: Mapping[str, object],
    arrays: Mapping[str, np.ndarray],
    *,
    card: str = "",
    extra: Mapping[str, str | bytes] | None = None,
    format: str = FORMAT,
) -> dict[str, bytes]:
    """Return what the files of a model folder hold, by name; see `write_model`."""
    trusted = {TENSORS: tensors.to_bytes(arrays)}
    for name, text in (extra or {}).items():
        check_extra_name(name)
        try:
            trusted[name] = text if isinstance(text, bytes) else str.encode(text, "utf-8")
        except (TypeError, UnicodeEncodeError):
            raise InvalidInputError(
                f"The extra file '{name}' of a model must be a str, or bytes. Got {type(text).__name__}."
            ) from None
    files = {name: _checksum(payload) for name, payload in trusted.items()}
    header = {"format": format, "format_version": FORMAT_VERSION, "files": files}
    facts = {name: value for name, value in sorted(config.items()) if name not in _HEADER}
    try:
        whole = header | {"digest": _digest(header | facts)} | facts
        payload = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"A saved model holds what JSON can hold, with finite numbers only ({error})."
        ) from None
    return trusted | {CARD: card.encode("utf-8", "replace"), CONFIG: payload}


def check_target(target: Path) -> None:
    """Check that a model can be saved here without loss of something else."""
    try:
        above = Path.cwd().is_relative_to(target.resolve())
    except (OSError, ValueError, RuntimeError):  # no such place; or our own folder is gone
        above = False
    if above:
        raise InvalidInputError(
            f"A model is a folder that is replaced when it is saved again, and '{target}' is the current folder "
            "or one above it. Name a folder in it."
        )
    restore(target)

    def check(target: Path, get: Files) -> None:
        for above in target.parents:
            if above.is_file():
                raise InvalidInputError(
                    f"Cannot write a model to '{target}': '{above}' is a file. Choose another folder."
                )
        if target.exists() and not target.is_dir():
            raise InvalidInputError(f"A model is a folder, and '{target}' is a file. Choose another name.")
        if not target.is_dir() or not any(target.iterdir()):
            return
        # A firstk model and nothing else is replaced: other libraries have a config.json too.
        own, ours = {CONFIG, TENSORS, CARD}, True
        try:
            own |= set(_manifest(target, get).files)
        except FirstkError:  # a damaged model may be replaced, but the extra files that it lists are not trusted
            try:
                found = json.loads(get(CONFIG) or b"")
            except (ValueError, RecursionError):
                found = None
            ours = isinstance(found, dict) and _is_ours(found.get("format"))
        if not ours or not {file.name for file in target.iterdir()} <= own:
            raise InvalidInputError(
                f"The folder '{target}' holds something that is not a firstk model. Choose an empty or new one."
            )

    _steadily(target, check)


# -- reading ---------------------------------------------------------------------------------------------------------


def read_model(path: str | Path, format: str = FORMAT) -> tuple[Config, dict[str, np.ndarray]]:
    """Read a model folder of this format; raise CorruptModelError if it is damaged or none."""
    return _steadily(path, lambda folder, get: _model(folder, get, format))


def parse_model(files: Mapping[str, bytes], where: str) -> tuple[Config, dict[str, np.ndarray]]:
    """Do what `read_model` does with files that are in memory; an error message calls their place `where`."""
    return _model(Path(where), files.get, FORMAT)


def is_alignment(path: str | Path) -> bool:
    """Tell whether a folder holds a saved alignment, which `PrefixAlignment` loads."""
    return (Path(path) / CONFIG).is_file() and read_manifest(path, None).format == ALIGNMENT


def read_manifest(path: str | Path, format: str | None = FORMAT) -> Manifest:
    """Read config.json of a model folder of this format; of any, if it is None."""
    return _steadily(path, lambda folder, get: _manifest(folder, get, format))


def read_extra(path: str | Path, name: str) -> str | None:
    """Return the text of an extra file of a model, as `read_extra_bytes` does its bytes."""
    payload = read_extra_bytes(path, name)
    try:
        return None if payload is None else payload.decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptModelError(f"'{Path(path) / name}' is not text.") from None


def read_extra_bytes(path: str | Path, name: str) -> bytes | None:
    """Return what an extra file of a model holds, its checksum checked; None where the model was saved without it."""
    check_extra_name(name)

    def read(folder: Path, get: Files) -> bytes | None:
        manifest = _manifest(folder, get)
        return _trusted(folder, get, name, manifest) if name in manifest.files else None

    return _steadily(path, read)


def _steadily(path: str | Path, read: Callable[[Path, Files], _Read]) -> _Read:
    """Read a folder; again, if it was replaced meanwhile, as its files may then be of two models."""

    def identity(folder: Path) -> tuple[object, ...]:
        try:
            found = folder.stat()
        except (OSError, ValueError):
            return (folder,)
        return folder, found.st_dev, found.st_ino, found.st_ctime_ns

    def get(name: str) -> bytes | None:
        """Return what a file holds; None where there is none. Links are followed: a cache of models is made of them."""
        file = folder / name
        try:
            return file.read_bytes() if file.is_file() else None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise CorruptModelError(f"'{file}' cannot be read: {why}.") from None

    check_local(path)
    for attempt in range(_ATTEMPTS):
        folder = current(Path(path))
        seen = identity(folder)
        try:
            return read(folder, get)
        except (FirstkError, FileNotFoundError):
            if attempt == _ATTEMPTS - 1 or identity(current(Path(path))) == seen:
                raise
    raise AssertionError("the last attempt returns or raises")


def _model(folder: Path, get: Files, format: str) -> tuple[Config, dict[str, np.ndarray]]:
    manifest = _manifest(folder, get, format)
    payload = _trusted(folder, get, TENSORS, manifest)
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return manifest.config, load(payload)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptModelError(f"'{folder / TENSORS}' is not a safetensors file of numbers ({error}).") from None


def _trusted(folder: Path, get: Files, name: str, manifest: Manifest) -> bytes:
    """Return the bytes of a file if they are those that were saved."""
    payload = get(name)
    if payload is None:
        raise CorruptModelError(f"'{folder}' has no readable {name}: the model is incomplete. Copy or save it again.")
    if _checksum(payload) != manifest.files.get(name):
        raise CorruptModelError(
            f"'{folder / name}' does not match the checksum in {CONFIG}: it is damaged or from another model. "
            "Copy or save the model again."
        )
    return payload


# -- config.json -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Manifest:
    """The content of config.json.

    Attributes
    ----------
    config : dict
        Facts about the encoder.
    files : dict
        SHA-256 of each trusted file, by name.
    format : str
        One of `FORMATS`.
    """

    config: Config
    files: dict[str, str]
    format: str


def _manifest(folder: Path, get: Files, format: str | None = None) -> Manifest:
    """Read config.json, of this format or of any; raise CorruptModelError for anything but what firstk wrote."""
    where, payload = f"'{folder}' is not a firstk model", get(CONFIG)
    if payload is None:
        raise CorruptModelError(f"{where}: there is no {CONFIG} in it.")
    try:
        found = strict_json(payload)
    except ValueError as error:
        raise CorruptModelError(f"'{folder}/{CONFIG}' is not readable JSON ({str(error)[:200]}).") from None
    if not isinstance(found, dict) or not _is_ours(found.get("format")):
        raise CorruptModelError(f"{where}: {CONFIG} does not say format '{FORMAT}'.")
    version = found.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise CorruptModelError(
            f"'{folder}' has format version {version!r:.40}; this firstk reads version {FORMAT_VERSION}. "
            "Use the firstk that wrote it, or a newer one, or save the model again."
        )
    if found.pop("digest", None) != _digest(found):
        raise CorruptModelError(
            f"'{folder}/{CONFIG}' does not match its own digest: it is damaged, or was edited by hand. "
            "Copy or save the model again."
        )
    files = found.get("files")
    if not isinstance(files, dict) or not all(
        _plain_name(name) and isinstance(sha, str) and _SHA256.fullmatch(sha) for name, sha in files.items()
    ):
        raise CorruptModelError(f"'{folder}' is a damaged firstk model: {CONFIG} does not list its files.")
    if format not in (None, found["format"]):
        held, loader = FORMATS[found["format"]]
        raise CorruptModelError(f"'{folder}' holds {held}, not {FORMATS[format][0]}: load it with {loader}.load.")
    return Manifest({name: value for name, value in found.items() if name not in _HEADER}, files, found["format"])


def check_extra_name(name: object) -> None:
    """Check that a name is a plain file name, and none that the model needs itself."""
    if not _plain_name(name) or name.lower() in {own.lower() for own in (CONFIG, TENSORS, CARD)}:
        raise InvalidInputError(
            f"An extra file of a model has a plain name of letters, digits, '.', '_' and '-', and not one of "
            f"{CONFIG}, {TENSORS}, {CARD}. Got {name!r}."
        )


def _checksum(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def _digest(found: Mapping[str, object]) -> str:
    canonical = json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return _checksum(canonical.encode("ascii"))


def _is_ours(format: object) -> bool:
    return isinstance(format, str) and format in FORMATS


def _plain_name(name: object) -> TypeGuard[str]:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
