"""Names in object storage and on the web, with those methods of `pathlib.Path` that readers and writers use.

Everything that reads or writes files asks `place_of` for its place, and works alike with a `Path` and a `RemotePath`.
"""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import glob
import hashlib
import io
import itertools
import os
import posixpath
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from firstk._base.atomic_file import atomic_file, explained_os_errors
from firstk.data.remote.secrets import scrubbed, shown, shown_place
from firstk.exceptions import FirstkError, InvalidInputError

if TYPE_CHECKING:
    from firstk.data.remote.range_file import Ranges
    from firstk.data.remote.storage import Info, RemoteStorage

# One slash or two: pathlib, through which some arguments pass, takes one away.
_URL = re.compile(r"(s3a?|gs|gcs|az|abfss?|hf|https?|memory):/{1,2}(?=[^/])", re.IGNORECASE)
# Names of a folder among which one like a missing file's is looked for.
MOST_LISTED = 10_000
# How like it must be, of 1: two letters swapped in a short name, or another ending.
LIKE = 0.8


def is_remote(path: object) -> bool:
    """Tell whether a path is an address of object storage or of the web."""
    return isinstance(path, RemotePath) or (isinstance(path, (str, os.PathLike)) and _address(path) is not None)


def _address(path: str | os.PathLike[str]) -> re.Match[str] | None:
    text = os.fspath(path)
    return _URL.match(text) if isinstance(text, str) else None


def place_of(path: str | os.PathLike[str] | RemotePath) -> Any:
    """Return a `RemotePath` for an address, and a `Path` for anything else."""
    if isinstance(path, RemotePath):
        return path
    found = _address(path)
    return Path(path).expanduser() if found is None else RemotePath(found[1].lower(), found.string[found.end() :])


def check_local(path: object) -> None:
    """Raise InvalidInputError for an address where a path of this machine is needed, such as the folder of a model."""
    if is_remote(path):
        raise InvalidInputError(
            f"'{place_of(path)}' is an address, and this must be on this machine: object storage is for files of "  # type: ignore[arg-type]
            "vectors and codes. Write it here and copy it, or the other way round."
        )


@contextlib.contextmanager
def written(path: Any, what: str) -> Iterator[Path]:
    """Yield an empty file of this machine to write: as `atomic_file`, or to be uploaded when the block ends well.

    Formats go back to their beginning to fill in a header, which object storage cannot.
    """
    target = place_of(path)
    if not isinstance(target, RemotePath):
        with atomic_file(target, what) as temporary:
            yield temporary
        return
    with explained_os_errors(str(target)), tempfile.TemporaryDirectory(prefix="firstk-") as folder:
        if target.is_dir():
            raise InvalidInputError(f"'{target}' is a folder. Name a file in it.")
        temporary = Path(folder) / target.name
        temporary.touch()
        yield temporary
        target.upload(temporary)


@dataclass(frozen=True)
class RemotePath:
    """A name in object storage or on the web.

    Attributes
    ----------
    scheme : str
    key : str
        What follows ``scheme://``.
    """

    scheme: str
    key: str

    # -- names ---------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        """Return the address without a password and without a query, which may be a signature."""
        return shown(f"{self.scheme}://{self.key}")

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    @property
    def _path(self) -> PurePosixPath:
        return PurePosixPath(urlsplit(f"x://{self.key}").path if self.scheme.startswith("http") else self.key)

    @property
    def name(self) -> str:
        """The last part."""
        return self._path.name

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return self._path.suffix

    @property
    def parent(self) -> RemotePath:
        """The folder."""
        return RemotePath(self.scheme, posixpath.dirname(self.key.rstrip("/")))

    def with_name(self, name: str) -> RemotePath:
        """Return another name in the same folder."""
        return self.parent / name

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(self.scheme, f"{self.key.rstrip('/')}/{name}")

    def expanduser(self) -> RemotePath:
        """Return the path itself."""
        return self

    def resolve(self) -> RemotePath:
        """Return the path itself."""
        return self

    def samefile(self, other: object) -> bool:
        """Tell whether two paths are the same."""
        return self == other

    # -- what is there -------------------------------------------------------------------------------------------------

    @property
    def storage(self) -> RemoteStorage:
        """The storage behind the scheme."""
        from firstk.data.remote.storage import storage_of  # with numpy, which commands load when they run

        return storage_of(self.scheme)

    def _ask(self, doing: str, work: Callable[[RemoteStorage], Any]) -> Any:
        """Do something with the storage; raise OSError without secrets where it fails."""
        storage = self.storage
        try:
            return work(storage)
        except FirstkError:
            raise
        except FileNotFoundError:
            raise FileNotFoundError(2, "There is no such file", str(self)) from None
        except storage.failures as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise OSError(5, f"{doing} failed: {scrubbed(said, f'{self.scheme}://{self.key}')[:300]}") from None

    def info(self) -> Info:
        """Return what is there."""
        found: Info = self._ask("Asking for it", lambda storage: storage.info(self.key))
        if found.size < 0:
            raise InvalidInputError(
                f"'{self}' does not say how long it is, so it cannot be read by ranges. Download it."
            )
        return found

    def exists(self) -> bool:
        """Tell whether there is a file or a folder."""
        return self.info().kind != "nothing"

    def is_file(self) -> bool:
        """Tell whether there is a file."""
        return self.info().kind == "file"

    def is_dir(self) -> bool:
        """Tell whether there is a folder: some name begins with this one and a slash."""
        return self.info().kind == "folder"

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the files of a folder."""
        yield from self._files(deep=False)

    def _files(self, *, deep: bool) -> list[RemotePath]:
        keys = self._ask("Listing it", lambda storage: storage.names(self.key.rstrip("/"), deep=deep))
        return [RemotePath(self.scheme, key) for key in keys]

    def matches(self) -> list[RemotePath]:
        """Return the files that this pattern matches; ``**`` is any number of folders, as for `glob`."""
        parts = self.key.split("/")
        fixed = next((i for i, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
        if fixed == len(parts) or self.scheme.startswith("http"):
            return [self] if self.is_file() else []
        deep = len(parts) - fixed > 1
        found = RemotePath(self.scheme, "/".join(parts[:fixed]))._files(deep=deep)
        return [one for one in found if _fits(one.key.split("/")[fixed:], parts[fixed:])]

    # -- reading and writing -------------------------------------------------------------------------------------------

    def open(
        self, mode: str = "r", buffering: int = -1, encoding: str | None = None, newline: str | None = None
    ) -> Any:
        """Open for reading, by ranges."""
        if "w" in mode or "a" in mode or "+" in mode:
            raise io.UnsupportedOperation("object storage is written by `written`")
        from firstk.data.remote.range_file import RangeFile, Ranges

        opened: list[Callable[[int, int], bytes]] = []

        def fetch(start: int, stop: int) -> bytes:
            try:
                if not opened:
                    opened.append(self._ask("Reading it", lambda storage: storage.reader(self.key)))
                held: bytes = self._ask("Reading it", lambda storage: opened[0](start, stop))
            except BaseException:
                opened.clear()  # what failed is opened again
                raise
            return held

        # Passes over one version of a file share what was fetched.
        found = self._found()
        ranges = _SHARED.pop((self, found), None) or Ranges(found.size, fetch)
        if found.version:
            _SHARED[self, found] = ranges
            while len(_SHARED) > _MOST_SHARED:
                _SHARED.popitem(last=False)
        raw = RangeFile(ranges)
        if "b" in mode:
            return raw if buffering == 0 else io.BufferedReader(raw, 1 << 18)
        return io.TextIOWrapper(io.BufferedReader(raw, 1 << 18), encoding=encoding or "utf-8", newline=newline)

    def _found(self) -> Info:
        found = self.info()
        if found.kind != "file":
            raise FileNotFoundError(2, "There is no such file", str(self))
        return found

    def read_bytes(self) -> bytes:
        """Return all bytes."""
        with self.open("rb") as file:
            return bytes(file.read())

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the text."""
        return self.read_bytes().decode(encoding)

    def facts(self) -> tuple[int, int]:
        """Return the size, and a number that changes with the content."""
        found = self._found()
        return found.size, int(hashlib.blake2b(found.version.encode(), digest_size=7).hexdigest(), 16)

    def upload(self, local: Path) -> None:
        """Copy a file of this machine here; the name appears, or its content changes, when all of it is there."""
        if self.scheme.startswith("http"):
            raise InvalidInputError(f"'{self}' is on the web, which is only read. Choose another place.")
        self._ask("Writing it", lambda storage: storage.upload(local, self.key))

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete a file."""
        with contextlib.suppress(*((FileNotFoundError,) if missing_ok else ())):
            self._ask("Deleting it", lambda storage: storage.delete(self.key))

    def rename_files(self, to: RemotePath, last: str) -> None:
        """Move the files of a folder to another, the one called `last` at the end."""
        for one in sorted(self._files(deep=False), key=lambda path: (path.name == last, path.name)):
            one._ask("Moving it", lambda storage, one=one: storage.move(one.key, (to / one.name).key))  # type: ignore[misc]

    def remove_files(self) -> None:
        """Delete the files of a folder."""
        for one in self._files(deep=False):
            one.unlink(missing_ok=True)


# Ranges of files that were opened last: a table opens its files for each pass.
_SHARED: OrderedDict[tuple[RemotePath, Info], Ranges] = OrderedDict()
_MOST_SHARED = 4


def _fits(parts: list[str], pattern: list[str]) -> bool:
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or _fits(parts[1:], pattern)
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


# -- files that a user names, here or there ----------------------------------------------------------------------------


def check_there(path: str | os.PathLike[str]) -> None:
    """Raise InvalidInputError unless a path is that of a file or folder, or a pattern that some file matches."""
    place = place_of(path)
    with explained_reading(path):
        if place.exists():
            return
        if isinstance(place, RemotePath):
            there, tip = bool(place.matches()), "Check the name and the folder."
        else:
            there = any(Path(one).is_file() for one in glob.iglob(str(place), recursive=True))
            names, tip = [], "Check the name and the folder."
            if not there:
                with contextlib.suppress(OSError), os.scandir(place.parent) as entries:
                    names = [entry.name for entry in itertools.islice(entries, MOST_LISTED)]
            # Another shard is no misspelled one, and a link that leads nowhere has the name itself.
            names = [name for name in names if re.sub(r"\d", "0", name) != re.sub(r"\d", "0", place.name)]
            if near := difflib.get_close_matches(place.name, names, n=1, cutoff=LIKE):
                tip = f"Did you mean '{place.parent / near[0]}'?"
    if not there:
        raise InvalidInputError(f"There is no file '{shown_place(path)}'. {tip}")


def is_there(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is that of a file or folder, here or in object storage."""
    with explained_reading(path):
        return bool(place_of(path).exists())


@contextlib.contextmanager
def explained_reading(path: object) -> Iterator[None]:
    """Turn failures of a look at a place into InvalidInputError."""
    try:
        yield
    except OSError as error:
        raise InvalidInputError(
            f"Cannot read '{shown_place(path)}': {error.strerror or error}. Check the address."
        ) from None
