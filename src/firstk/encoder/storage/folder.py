"""A model on disk: a folder of config.json, model.safetensors, README.md and named extras, written atomically.

Nothing is ever unpickled. Reading checks format, version and checksums before anything is used. README.md is for
people: it is written, never read, and may be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from firstk._base import tensors
from firstk._base.atomic_file import atomic_folder, current, restore, write_new
from firstk.encoder.storage.manifest import (
    CARD,
    CONFIG,
    TENSORS,
    Config,
    Manifest,
    check_extra_name,
    checksum,
    claims,
    parse,
)
from firstk.exceptions import CorruptModelError, FirstkError, InvalidInputError

_Read = TypeVar("_Read")
# How often a model is read again that was replaced while it was read.
_ATTEMPTS = 100


def write_model(
    path: str | Path,
    config: Mapping[str, object],
    arrays: Mapping[str, np.ndarray],
    *,
    card: str = "",
    extra: Mapping[str, str] | None = None,
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
    extra : mapping of str, optional
        Texts of further files by name, such as ``{"study.json": text}``; `read_extra` reads them.
    """
    target = Path(path).resolve()  # a link stays a link: what it points to is replaced
    check_target(target)
    files = model_files(config, arrays, card=card, extra=extra)
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
    extra: Mapping[str, str] | None = None,
) -> dict[str, bytes]:
    """Return what the files of a model folder hold, by name; see `write_model`."""
    trusted = {TENSORS: tensors.to_bytes(arrays)}
    for name, text in (extra or {}).items():
        check_extra_name(name)
        trusted[name] = _encoded(name, text)
    manifest = Manifest(dict(config), {name: checksum(payload) for name, payload in trusted.items()})
    return trusted | {CARD: card.encode("utf-8", "replace"), CONFIG: manifest.payload()}


def _encoded(name: str, text: object) -> bytes:
    try:
        return str.encode(text, "utf-8")  # type: ignore[arg-type]
    except (TypeError, UnicodeEncodeError):
        raise InvalidInputError(
            f"The extra file '{name}' of a model must be a str. Got {type(text).__name__}."
        ) from None


def check_target(target: Path) -> None:
    """Check that a model can be saved here without loss of something else."""
    if _surrounds_us(target):
        raise InvalidInputError(
            f"A model is a folder that is replaced when it is saved again, and '{target}' is the current folder "
            "or one above it. Name a folder in it."
        )
    restore(target)
    _steadily(target, _check_folder)


def _surrounds_us(target: Path) -> bool:
    try:
        return Path.cwd().is_relative_to(target.resolve())
    except (OSError, ValueError, RuntimeError):  # no such place; or our own folder is gone
        return False


def _check_folder(target: Path) -> None:
    for above in target.parents:
        if above.is_file():
            raise InvalidInputError(f"Cannot write a model to '{target}': '{above}' is a file. Choose another folder.")
    if target.exists() and not target.is_dir():
        raise InvalidInputError(f"A model is a folder, and '{target}' is a file. Choose another name.")
    if target.is_dir() and any(target.iterdir()) and not _holds_only_a_model(target):
        raise InvalidInputError(
            f"The folder '{target}' holds something that is not a firstk model. Choose an empty or new one."
        )


def _holds_only_a_model(folder: Path) -> bool:
    """Tell whether a folder is a firstk model and nothing else: other libraries have a config.json too."""
    own = {CONFIG, TENSORS, CARD}
    try:
        own |= set(_manifest(lambda name: _bytes_of(folder / name), folder).files)
    except FirstkError:  # a damaged model may be replaced, but the extra files that it lists are not trusted
        if not claims(_bytes_of(folder / CONFIG) or b""):
            return False
    return {file.name for file in folder.iterdir()} <= own


# -- reading -------------------------------------------------------------------------------------------------------


def read_model(path: str | Path) -> tuple[Config, dict[str, np.ndarray]]:
    """Read a model folder; raise CorruptModelError if it is damaged or none."""
    return _steadily(path, lambda folder: _model(lambda name: _bytes_of(folder / name), folder))


def parse_model(files: Mapping[str, bytes], where: str) -> tuple[Config, dict[str, np.ndarray]]:
    """Do what `read_model` does with files that are in memory; an error message calls their place `where`."""
    return _model(files.get, Path(where))


def read_manifest(path: str | Path) -> Manifest:
    """Read config.json of a model folder."""
    return _steadily(path, lambda folder: _manifest(lambda name: _bytes_of(folder / name), folder))


def read_extra(path: str | Path, name: str) -> str | None:
    """Return the text of an extra file of a model, its checksum checked; None where the model was saved without it."""
    check_extra_name(name)

    def read(folder: Path) -> str | None:
        manifest = _manifest(lambda name: _bytes_of(folder / name), folder)
        if name not in manifest.files:
            return None
        try:
            return _trusted(_bytes_of(folder / name), folder, name, manifest).decode("utf-8")
        except UnicodeDecodeError:
            raise CorruptModelError(f"'{folder / name}' is not text.") from None

    return _steadily(path, read)


def _steadily(path: str | Path, read: Callable[[Path], _Read]) -> _Read:
    """Read a folder; again, if it was replaced meanwhile, as its files may then be of two models."""
    for _ in range(_ATTEMPTS - 1):
        folder = current(Path(path))
        seen = _identity(folder)
        try:
            return read(folder)
        except (FirstkError, FileNotFoundError):
            if _identity(current(Path(path))) == seen:
                raise
    return read(current(Path(path)))


def _identity(folder: Path) -> tuple[object, ...]:
    try:
        found = folder.stat()
    except (OSError, ValueError):
        return (folder,)
    return folder, found.st_dev, found.st_ino, found.st_ctime_ns


def _model(get: Callable[[str], bytes | None], folder: Path) -> tuple[Config, dict[str, np.ndarray]]:
    manifest = _manifest(get, folder)
    payload = _trusted(get(TENSORS), folder, TENSORS, manifest)
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return manifest.config, load(payload)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptModelError(f"'{folder / TENSORS}' is not a safetensors file of numbers ({error}).") from None


def _manifest(get: Callable[[str], bytes | None], folder: Path) -> Manifest:
    payload = get(CONFIG)
    if payload is None:
        raise CorruptModelError(f"'{folder}' is no firstk model: there is no {CONFIG} in it.")
    return parse(payload, folder)


def _trusted(payload: bytes | None, folder: Path, name: str, manifest: Manifest) -> bytes:
    """Return the bytes of a file if they are those that were saved."""
    if payload is None:
        raise CorruptModelError(f"'{folder}' has no readable {name}: the model is incomplete. Copy or save it again.")
    if checksum(payload) != manifest.files.get(name):
        raise CorruptModelError(
            f"'{folder / name}' does not match the checksum in {CONFIG}: it is damaged or from another model. "
            "Copy or save the model again."
        )
    return payload


def _bytes_of(file: Path) -> bytes | None:
    """Return what a file holds; None where there is none. Links are followed, as a cache of models is made of them."""
    try:
        return file.read_bytes() if file.is_file() else None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CorruptModelError(f"'{file}' cannot be read: {why}.") from None
