"""A model on disk: a folder with config.json and model.safetensors, written whole or not at all.

Nothing is ever unpickled. Reading checks the format, the checksum and the shapes before anything is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from firstk._checks import CorruptModel, InvalidInput

FORMAT = "firstk-encoder"
FORMAT_VERSION = 1
_CONFIG, _TENSORS = "config.json", "model.safetensors"


def write_model(path: str | Path, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Path:
    """Write a model folder under a temporary name and rename it into place.

    An existing model is replaced; a folder that holds anything else is left alone and refused.
    """
    from safetensors.numpy import save

    target = Path(path).resolve()  # a link stays a link: what it points to is replaced
    check_target(target)
    payload = save({name: np.ascontiguousarray(part) for name, part in arrays.items()})
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    text = json.dumps(header | dict(config), indent=2, ensure_ascii=False, allow_nan=False)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise InvalidInput(f"Cannot write a model to '{target}': {error.strerror}. Choose another folder.") from None
    try:
        (draft / _TENSORS).write_bytes(payload)
        (draft / _CONFIG).write_text(text + "\n", encoding="utf-8")
        draft.chmod(0o755)
        _swap(draft, target)
    except OSError as error:
        raise InvalidInput(f"Could not write the model to '{target}': {error.strerror}. Nothing was changed.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def check_target(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"A model is a folder, and '{target}' is a file. Choose another name.")
    if target.is_dir() and any(target.iterdir()) and not _holds_only_a_model(target):
        raise InvalidInput(
            f"The folder '{target}' holds something that is not a firstk model. Choose an empty or new one."
        )


def _holds_only_a_model(folder: Path) -> bool:
    """Tell whether a folder is a firstk model and nothing else: other libraries have a config.json too."""
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    names = {file.name for file in folder.iterdir()}
    return isinstance(config, dict) and config.get("format") == FORMAT and names <= {_CONFIG, _TENSORS}


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


def read_model(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a model folder, or say in a sentence why it is none."""
    folder = Path(path)
    config = _read_config(folder)
    try:
        payload = (folder / _TENSORS).read_bytes()
    except OSError:
        raise CorruptModel(f"'{folder}' has no readable {_TENSORS}: the model is incomplete. Save it again.") from None
    if hashlib.sha256(payload).hexdigest() != config.get("sha256"):
        raise CorruptModel(
            f"'{folder / _TENSORS}' does not match the checksum in {_CONFIG}: it is damaged or from another model. "
            "Copy or save the model again."
        )
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return config, load(payload)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CorruptModel(f"'{folder / _TENSORS}' is not a safetensors file ({error}).") from None


def _read_config(folder: Path) -> dict[str, Any]:
    file = folder / _CONFIG
    if not file.is_file():
        raise CorruptModel(f"'{folder}' is no firstk model: there is no {_CONFIG} in it.")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CorruptModel(f"'{file}' is not readable JSON ({error}).") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise CorruptModel(f"'{folder}' is no firstk model: {_CONFIG} does not say format '{FORMAT}'.")
    version = config.get("format_version")
    if version != FORMAT_VERSION:
        raise CorruptModel(
            f"'{folder}' has format version {version!r}; this firstk reads version {FORMAT_VERSION}. "
            "Use the firstk that wrote it, or save it again."
        )
    return config
