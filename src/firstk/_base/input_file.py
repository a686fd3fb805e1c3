"""Checks of files that are read: they are regular files, and they stay as they are until they have been read.

A pipe or a device has no end to wait for and cannot be read twice. A file that is replaced, overwritten, cut off or
appended to while it is read would give rows of two versions as if they were one.
"""

from __future__ import annotations

import glob
import os
import stat
from dataclasses import dataclass
from pathlib import Path

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
    """Size, time and place of a file: another one after any change of its content, or of the file behind its name."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stamp:
        """Return the stamp of a regular file; raise InvalidInputError for anything else."""
        try:
            facts = os.stat(path)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            why = getattr(error, "strerror", None) or error
            raise InvalidInputError(
                f"Cannot read '{path}': {why}. Check the name, the folder and your rights."
            ) from None
        return cls.from_facts(path, facts)

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

    def check(self, path: str | os.PathLike[str], now: os.stat_result | None = None) -> None:
        """Raise InvalidInputError unless the file is still the one it was; `now` is what ``os.fstat`` says of it."""
        try:
            facts = os.stat(path) if now is None else now
        except OSError:
            raise _changed(path, "it was removed") from None
        found = Stamp.from_facts(path, facts)
        moved = self.inode and (found.device, found.inode) != (self.device, self.inode)
        if found.size != self.size:
            raise _changed(path, f"it had {self.size:,} bytes and has {found.size:,}")
        if moved or found.modified != self.modified:
            raise _changed(path, "another file took its place, or it was written to")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise InvalidInputError for a pipe, a device, a folder or a socket, on which reading would hang or never end."""
    Stamp.of(path)


def check_there(path: str | os.PathLike[str]) -> None:
    """Raise InvalidInputError unless a path is that of a file or folder, or a pattern that some file matches."""
    place = Path(path).expanduser()
    if not place.exists() and not any(Path(one).is_file() for one in glob.iglob(str(place), recursive=True)):
        raise InvalidInputError(f"There is no file '{path}'. Check the name and the folder.")


def _changed(path: str | os.PathLike[str], how: str) -> InvalidInputError:
    return InvalidInputError(
        f"'{path}' was changed while it was read: {how}. Rows of two versions must not be mixed: start again, and "
        "leave the file alone until the end."
    )
