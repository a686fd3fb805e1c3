"""A file that is written whole or not at all: under a draft's name beside it, then renamed.

Everything that firstk writes as one file goes through here. A draft that a killed process left behind is removed by
the next one that writes the same file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import secrets
import tempfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from firstk._checks import InvalidInput

_DRAFT = ".partial"
# By which the folder of a saved model is known, whole or damaged.
_MODEL_FILE, _MODEL_MARK = "config.json", b'"firstk-encoder"'


@contextlib.contextmanager
def whole_file(
    path: str | os.PathLike[str], what: str, *, kinds: Collection[str] = (), durable: bool = False
) -> Iterator[Path]:
    """Yield a draft to write; it takes the place of `path` when the block ends well, and goes away when it does not.

    Parameters
    ----------
    path : path-like
        The file to write; its folder is made where it is missing, an existing file is replaced. A file of a saved
        model is not, and nothing is put beside it.
    what : str
        What the sentence of an error calls the file, such as "An ONNX model".
    kinds : collection of str
        Endings of files that may be replaced; any if empty.
    durable : bool
        Wait until the draft is on the disk before the old file goes: for what a power cut must not cost.
    """
    with saying(path):
        target = Path(path).resolve()  # a link stays a link: what it points to is replaced
        if target.is_dir():
            raise InvalidInput(f"{what} is a file, and '{path}' is a folder. Name a file in it.")
        _check_replaceable(path, target, what, kinds)
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        # In the same folder, because only there is a rename one step.
        draft = target.parent / f"{_stem(target)}{os.getpid()}-{secrets.token_hex(3)}{_DRAFT}"
        try:
            yield draft
            if durable:
                with draft.open("rb+") as file:
                    os.fsync(file.fileno())
            os.replace(draft, target)
        finally:
            with contextlib.suppress(OSError):  # what kept the draft from being written is said already
                draft.unlink(missing_ok=True)


def check_folder(folder: Path) -> None:
    """Make a folder and refuse one that takes no files: asked before long work, because it is hours late after it."""
    with saying(folder):  # around the question, too: what lies behind a locked folder cannot even be asked
        there = next((part for part in (folder, *folder.parents) if part.exists() and not part.is_dir()), None)
        if there is not None:
            raise InvalidInput(f"Cannot write into '{folder}': '{there}' is a file. Choose another place.")
        folder.mkdir(parents=True, exist_ok=True)
        # Rights alone do not tell: a disk is full or read-only, and root may do everything. A file does.
        with tempfile.TemporaryFile(dir=folder):
            pass


def _check_replaceable(path: Any, target: Path, what: str, kinds: Collection[str]) -> None:
    """Refuse to destroy a saved model, or a file of another kind."""
    config = target.parent / _MODEL_FILE
    if config.is_file() and _MODEL_MARK in config.read_bytes():
        raise InvalidInput(
            f"'{path}' lies in the folder of a saved model, which holds nothing else. Name another file."
        )
    if kinds and target.exists() and target.suffix.lower() not in kinds:
        raise InvalidInput(
            f"'{path}' is there already, and does not end in {' or '.join(kinds)}: {what[0].lower()}{what[1:]} would "
            "destroy it. Name another file."
        )


@contextlib.contextmanager
def saying(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn a full disk, a missing permission and the like into a sentence."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "there is no space left on the device" if full else (error.strerror or str(error)).rstrip(".")
        raise InvalidInput(
            f"Cannot write '{path}': {why}. Nothing was left half-written; choose another place."
        ) from None


def _stem(target: Path) -> str:
    """Return how drafts of a file on this machine begin: short, as the file's own name may be near the limit."""
    return f".firstk-{zlib.crc32(os.fsencode(target.name)):08x}-{platform.node()}-"


def _sweep(target: Path) -> None:
    """Remove drafts of `target`, and what stands beside them, whose process is gone."""
    stem = _stem(target)
    with contextlib.suppress(OSError):
        # Names, not paths: a folder may hold thousands of shards, and this is asked for each.
        for name in os.listdir(target.parent):
            if name.startswith(stem) and _DRAFT in name:
                number = name.removeprefix(stem).partition("-")[0]
                if number.isdecimal() and not _alive(int(number)):
                    (target.parent / name).unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
