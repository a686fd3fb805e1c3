"""Checks of files that are read: they are regular files, and they stay as they are until they have been read.

A pipe or a device has no end to wait for and cannot be read twice. A file that is replaced, overwritten, cut off or
appended to while it is read would give rows of two versions as if they were one.
"""

from __future__ import annotations

import difflib
import glob
import itertools
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstk._base.remote import RemotePath, is_remote, place_of, shown_place
from firstk.exceptions import InvalidInputError

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
# Names of a folder among which one like a missing file's is looked for.
MOST_LISTED = 10_000
# How like it must be, of 1: two letters swapped in a short name, or another ending.
LIKE = 0.8


@dataclass(frozen=True)
class Stamp:
    """Size, time and place of a file: another one after any change of its content, or of the file behind its name.

    Of a file in object storage `modified` is a hash of its ETag, and `device` and `inode` are 0.
    """

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: Any) -> Stamp:
        """Return the stamp of a regular file; raise InvalidInputError for anything else."""
        try:
            if is_remote(path):
                return cls(0, 0, *place_of(path).facts())
            facts = os.stat(path)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            why = getattr(error, "strerror", None) or error
            raise InvalidInputError(
                f"Cannot read '{shown_place(path)}': {why}. Check the name, the folder and your rights."
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

    @classmethod
    def of_open(cls, path: Any, file: Any) -> Stamp:
        """Return the stamp of an open file, whatever has its name by now; of one in object storage, by its name."""
        return cls.of(path) if isinstance(path, RemotePath) else cls.from_facts(path, os.fstat(file.fileno()))

    def check_open(self, path: Any, file: Any) -> None:
        """Raise InvalidInputError unless an open file is still the one it was."""
        self.check(path, None if isinstance(path, RemotePath) else os.fstat(file.fileno()))

    def check(self, path: str | os.PathLike[str], now: os.stat_result | None = None) -> None:
        """Raise InvalidInputError unless the file is still the one it was; `now` is what ``os.fstat`` says of it."""
        try:
            if is_remote(path):
                found = Stamp(0, 0, *place_of(path).facts())
            else:
                found = Stamp.from_facts(path, os.stat(path) if now is None else now)
        except FileNotFoundError:
            raise _changed(path, "it was removed") from None
        except OSError as error:
            if not is_remote(path):
                raise _changed(path, "it was removed") from None
            raise InvalidInputError(
                f"Cannot read '{shown_place(path)}': {error.strerror or error}. Try again."
            ) from None
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
    if is_remote(path):
        there = is_there(path) or _matches_some(place_of(path))
    else:
        place = Path(path).expanduser()
        there = place.exists() or any(Path(one).is_file() for one in glob.iglob(str(place), recursive=True))
    if not there:
        raise InvalidInputError(f"There is no file '{shown_place(path)}'. {_alike(path)}")


def _alike(path: str | os.PathLike[str]) -> str:
    """Return what to try instead of a file that is not there: the name most like its own in the same folder."""
    place = None if is_remote(path) else Path(path).expanduser()
    if place is None or not place.parent.is_dir():
        return "Check the name and the folder."
    try:
        with os.scandir(place.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, MOST_LISTED)]
    except OSError:
        names = []
    # Another shard is no misspelled one, and a link that leads nowhere has the name itself.
    names = [name for name in names if re.sub(r"\d", "0", name) != re.sub(r"\d", "0", place.name)]
    near = difflib.get_close_matches(place.name, names, n=1, cutoff=LIKE)
    return f"Did you mean '{place.parent / near[0]}'?" if near else "Check the name and the folder."


def is_there(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is that of a file or folder, here or in object storage."""
    with explained_reading(path):
        return bool(place_of(path).exists())


def _matches_some(place: RemotePath) -> bool:
    with explained_reading(place):
        return bool(place.matches())


@contextmanager
def explained_reading(path: object) -> Iterator[None]:
    """Turn failures of a look at a place into InvalidInputError."""
    try:
        yield
    except OSError as error:
        raise InvalidInputError(
            f"Cannot read '{shown_place(path)}': {error.strerror or error}. Check the address."
        ) from None


def _changed(path: str | os.PathLike[str], how: str) -> InvalidInputError:
    return InvalidInputError(
        f"'{shown_place(path)}' was changed while it was read: {how}. Rows of two versions must not be mixed: start "
        "again, and leave the file alone until the end."
    )
