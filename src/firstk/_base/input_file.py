"""Checks of files that are read: they are regular files, and they stay as they are until they have been read.

A pipe or a device has no end to wait for and cannot be read twice. A file that is replaced, overwritten, cut off or
appended to while it is read would give rows of two versions as if they were one.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Any

from firstk.exceptions import InvalidInputError

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


@dataclass(frozen=True)
class Stamp:
    """Size, time and place of a file: another one after any change of its content, or of the file behind its name.

    A path that is not of this machine has a method `facts`, which returns size and version: `device` and `inode` are 0.
    """

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: Any) -> Stamp:
        """Return the stamp of a regular file; raise InvalidInputError for anything else."""
        try:
            return cls(0, 0, *path.facts()) if _has_facts(path) else cls.from_facts(path, os.stat(path))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            why = getattr(error, "strerror", None) or error
            raise InvalidInputError(
                f"Cannot read '{path}': {why}. Check the name, the folder and your rights."
            ) from None

    @classmethod
    def from_facts(cls, path: str | os.PathLike[str], facts: os.stat_result) -> Stamp:
        """Return the stamp that results of ``os.stat`` or ``os.fstat`` make."""
        if not stat.S_ISREG(facts.st_mode):
            kind = next((name for is_one, name in _KINDS if is_one(facts.st_mode)), "no regular file")
            raise InvalidInputError(
                f"Cannot read '{path}': it is {kind}, and a regular file is needed. Write its content to a file, and "
                "give that."
            )
        return cls(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)

    def __reduce__(self) -> tuple[type[Stamp], tuple[int, ...]]:
        return Stamp, (0, 0, self.size, self.modified)  # another machine has other numbers for devices and files

    @classmethod
    def of_open(cls, path: Any, file: Any) -> Stamp:
        """Return the stamp of an open file, whatever has its name by now; of one that is not here, by its name."""
        return cls.of(path) if _has_facts(path) else cls.from_facts(path, os.fstat(file.fileno()))

    def check_open(self, path: Any, file: Any) -> None:
        """Raise InvalidInputError unless an open file is still the one it was."""
        self.check(path, None if _has_facts(path) else os.fstat(file.fileno()))

    def check(self, path: Any, now: os.stat_result | None = None) -> None:
        """Raise InvalidInputError unless the file is still the one it was; `now` is what ``os.fstat`` says of it."""
        try:
            if _has_facts(path):
                found = Stamp(0, 0, *path.facts())
            else:
                found = Stamp.from_facts(path, os.stat(path) if now is None else now)
        except OSError as error:
            if _has_facts(path) and not isinstance(error, FileNotFoundError):
                raise InvalidInputError(f"Cannot read '{path}': {error.strerror or error}. Try again.") from None
            raise _changed(path, "it was removed") from None
        moved = self.inode and (found.device, found.inode) != (self.device, self.inode)
        if found.size != self.size:
            raise _changed(path, f"it had {self.size:,} bytes and has {found.size:,}")
        if moved or found.modified != self.modified:
            raise _changed(path, "another file took its place, or it was written to")


def _has_facts(path: object) -> bool:
    """Tell whether a path says size and version itself, as one of object storage does."""
    return hasattr(path, "facts")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise InvalidInputError for a pipe, a device, a folder or a socket, on which reading would hang or never end."""
    Stamp.of(path)


def _changed(path: str | os.PathLike[str], how: str) -> InvalidInputError:
    return InvalidInputError(
        f"'{path}' was changed while it was read: {how}. Rows of two versions must not be mixed: start "
        "again, and leave the file alone until the end."
    )
