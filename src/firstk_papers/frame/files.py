"""Files of results, written atomically: an interrupted run leaves the old file or the new one, never a part of one."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firstk.exceptions import InvalidInputError


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write; it replaces `path` when the block succeeds, and is removed otherwise.

    The folder of `path` is made where it is missing.
    """
    with _named_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(0o666 & ~_umask())  # mkstemp gives it to its owner alone
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_folder(folder: Path) -> None:
    """Make a folder, and raise an error if no file can be written there: before long work, not after it."""
    with _named_errors(folder):
        there = next((part for part in (folder, *folder.parents) if part.exists() and not part.is_dir()), None)
        if there is not None:
            raise InvalidInputError(f"Cannot write into '{folder}': '{there}' is a file. Choose another place.")
        folder.mkdir(parents=True, exist_ok=True)
        # Permissions alone do not tell: a disk is full or read-only, and root may do everything.
        with tempfile.TemporaryFile(dir=folder):
            pass


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Turn a full disk, a missing permission and the like into an error message with the path."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "there is no space left on the device" if full else (error.strerror or str(error)).rstrip(".")
        raise InvalidInputError(f"Cannot write '{path}': {why}. Choose another place.") from None


def _umask() -> int:
    """Return the mask of new files; it can be read only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
