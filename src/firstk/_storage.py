"""A model on disk: a folder of config.json, model.safetensors, README.md and named extras, written whole or not at all.

Nothing is ever unpickled. Reading checks format, version and checksums before anything is used. README.md is for
people: it is written, never read, and may be edited.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from firstk._checks import CorruptModel, FirstkError, InvalidInput
from firstk._manifest import CARD, CONFIG, TENSORS, Manifest, check_extra_name, checksum, claims, parse


def write_model(
    path: str | Path,
    config: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    card: str = "",
    extra: Mapping[str, str] | None = None,
) -> Path:
    """Write a model folder under a temporary name and rename it into place.

    An existing model is replaced; a folder that holds anything else is left alone and refused.

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
    from safetensors.numpy import save

    target = Path(path).resolve()  # a link stays a link: what it points to is replaced
    check_target(target)
    trusted = {TENSORS: save({name: np.ascontiguousarray(part) for name, part in arrays.items()})}
    for name, text in (extra or {}).items():
        check_extra_name(name)
        trusted[name] = _encoded(name, text)
    manifest = Manifest(dict(config), {name: checksum(payload) for name, payload in trusted.items()})
    _write_whole(target, trusted | {CARD: card.encode("utf-8", "replace"), CONFIG: manifest.payload()})
    return target


def _encoded(name: str, text: Any) -> bytes:
    try:
        return text.encode("utf-8")
    except (AttributeError, UnicodeEncodeError):
        raise InvalidInput(f"The extra file '{name}' of a model must be a str. Got {type(text).__name__}.") from None


def _write_whole(target: Path, files: Mapping[str, bytes]) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise InvalidInput(f"Cannot write a model to '{target}': {error.strerror}. Choose another folder.") from None
    try:
        for name, payload in files.items():
            with (draft / name).open("wb") as file:
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())  # the old model goes only when the new one is on the disk
        draft.chmod(0o755)
        _swap(draft, target)
    except OSError as error:
        raise InvalidInput(f"Could not write the model to '{target}': {error.strerror}. Nothing was changed.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_target(target: Path) -> None:
    """Refuse a place where a model cannot be saved without loss of something else."""
    for above in target.parents:
        if above.is_file():
            raise InvalidInput(f"Cannot write a model to '{target}': '{above}' is a file. Choose another folder.")
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"A model is a folder, and '{target}' is a file. Choose another name.")
    if target.is_dir() and any(target.iterdir()) and not _holds_only_a_model(target):
        raise InvalidInput(
            f"The folder '{target}' holds something that is not a firstk model. Choose an empty or new one."
        )


def _holds_only_a_model(folder: Path) -> bool:
    """Tell whether a folder is a firstk model and nothing else: other libraries have a config.json too."""
    own = {CONFIG, TENSORS, CARD}
    try:
        own |= set(read_manifest(folder).files)
    except FirstkError:  # a damaged model may be replaced, but what it lists beside its own is not believed
        if not claims(_bytes_of(folder / CONFIG) or b""):
            return False
    return {file.name for file in folder.iterdir()} <= own


def _swap(draft: Path, target: Path) -> None:
    """Put `draft` where `target` is; a folder cannot be replaced in one step, so the old one steps aside first."""
    if not target.exists():
        draft.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
    old = aside / "model"
    try:
        target.rename(old)
        try:
            draft.rename(target)
        except OSError:
            old.rename(target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        with contextlib.suppress(OSError):  # not empty: the old model could not step back, and must not be lost
            aside.rmdir()


# -- reading -------------------------------------------------------------------------------------------------------


def read_model(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a model folder, or say in a sentence why it is none."""
    folder = Path(path)
    manifest = read_manifest(folder)
    payload = _trusted(folder, TENSORS, manifest)
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return manifest.config, load(payload)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptModel(f"'{folder / TENSORS}' is not a safetensors file of numbers ({error}).") from None


def read_manifest(path: str | Path) -> Manifest:
    """Read config.json of a model folder."""
    folder = Path(path)
    payload = _bytes_of(folder / CONFIG)
    if payload is None:
        raise CorruptModel(f"'{folder}' is no firstk model: there is no {CONFIG} in it.")
    return parse(payload, folder)


def read_extra(path: str | Path, name: str) -> str | None:
    """Return the text of an extra file of a model, its checksum checked; None where the model was saved without it."""
    folder = Path(path)
    check_extra_name(name)
    manifest = read_manifest(folder)
    if name not in manifest.files:
        return None
    try:
        return _trusted(folder, name, manifest).decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptModel(f"'{folder / name}' is not text.") from None


def _trusted(folder: Path, name: str, manifest: Manifest) -> bytes:
    """Return the bytes of a file if they are those that were saved."""
    payload = _bytes_of(folder / name)
    if payload is None:
        raise CorruptModel(f"'{folder}' has no readable {name}: the model is incomplete. Copy or save it again.")
    if checksum(payload) != manifest.files.get(name):
        raise CorruptModel(
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
        raise CorruptModel(f"'{file}' cannot be read: {why}.") from None
