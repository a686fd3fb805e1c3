"""Files in object storage and on the web, with those methods of `pathlib.Path` that readers and writers use.

Everything that reads or writes files asks `place_of` for its place, and works alike with a `Path` and a `RemotePath`.
Here are names, retries and error messages without credentials; how each kind of storage is reached is in `storage`.
Needs the extra "cloud".
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import io
import os
import posixpath
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

from firstk.exceptions import FirstkError, InvalidInputError

if TYPE_CHECKING:
    from firstk._base.range_file import Ranges
    from firstk._base.storage import Info, Storage

# One slash or two: pathlib, through which some arguments pass, takes one away.
_URL = re.compile(r"(s3a?|gs|gcs|az|abfss?|hf|https?|memory):/{1,2}(?=[^/])", re.IGNORECASE)
# Variables whose values are never shown.
_SECRETS = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "HF_TOKEN",
)


def is_remote(path: object) -> bool:
    """Tell whether a path is an address of object storage or of the web."""
    if isinstance(path, RemotePath):
        return True
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    return isinstance(text, str) and _URL.match(text) is not None


def place_of(path: str | os.PathLike[str] | RemotePath) -> Any:
    """Return a `RemotePath` for an address, and a `Path` for anything else."""
    if isinstance(path, RemotePath):
        return path
    text = os.fspath(path)
    found = _URL.match(text) if isinstance(text, str) else None
    return Path(text).expanduser() if found is None else RemotePath(found[1].lower(), text[found.end() :])


def check_local(path: object) -> None:
    """Raise InvalidInputError for an address where a path of this machine is needed, such as the folder of a model."""
    if is_remote(path):
        place = place_of(path)  # type: ignore[arg-type]
        raise InvalidInputError(
            f"'{place}' is an address, and this must be on this machine: object storage is for files of vectors and "
            "codes. Write it here and copy it, or the other way round."
        )


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
    def storage(self) -> Storage:
        """The storage behind the scheme."""
        from firstk._base.storage import storage_of  # with numpy, which commands load when they run

        return storage_of(self.scheme)

    @contextlib.contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Turn failures of storage into OSError without secrets."""
        try:
            yield
        except FirstkError:
            raise
        except FileNotFoundError:
            raise FileNotFoundError(2, "There is no such file", str(self)) from None
        except self.storage.failures as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise OSError(5, f"{doing} failed: {scrubbed(said, self)[:300]}") from None

    def _tried(self, work: Callable[[], Any]) -> Any:
        """Do something with the storage, again where it fails for a moment."""
        from firstk._base.range_file import with_retries

        return with_retries(work, self.storage.failures)

    def info(self) -> Info:
        """Return what is there."""
        with self._explained("Asking for it"):
            found: Info = self._tried(lambda: self.storage.info(self.key))
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
        with self._explained("Listing it"):
            keys = self._tried(lambda: self.storage.names(self.key.rstrip("/"), deep=deep))
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
            raise io.UnsupportedOperation("object storage is written by atomic_file")
        from firstk._base.range_file import RangeFile

        opened: list[Callable[[int, int], bytes]] = []

        def once(start: int, stop: int) -> bytes:
            if not opened:
                opened.append(self.storage.reader(self.key))
            try:
                return _exactly(opened[0](start, stop), stop - start)
            except BaseException:
                opened.clear()  # what failed is opened again
                raise

        def fetch(start: int, stop: int) -> bytes:
            with self._explained("Reading it"):
                return self._tried(lambda: once(start, stop))

        raw = RangeFile(_shared(self, self._found(), fetch))
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
        with self._explained("Writing it"):
            self._tried(lambda: self.storage.upload(local, self.key))

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete a file."""
        with contextlib.suppress(*((FileNotFoundError,) if missing_ok else ())), self._explained("Deleting it"):
            self.storage.delete(self.key)

    def rename_files(self, to: RemotePath, last: str) -> None:
        """Move the files of a folder to another, the one called `last` at the end."""
        for one in sorted(self._files(deep=False), key=lambda path: (path.name == last, path.name)):
            target = to / one.name
            with self._explained("Moving it"):
                self._tried(_mover(self.storage, one.key, target.key))

    def remove_files(self) -> None:
        """Delete the files of a folder."""
        for one in self._files(deep=False):
            one.unlink(missing_ok=True)


# Ranges of files that were opened last: a table opens its files for each pass.
_SHARED: OrderedDict[tuple[RemotePath, Info], Ranges] = OrderedDict()
_MOST_SHARED = 4


def _shared(path: RemotePath, found: Info, fetch: Callable[[int, int], bytes]) -> Ranges:
    """Return the ranges of this version of a file, which passes share where a version is known."""
    from firstk._base.range_file import Ranges

    ranges = _SHARED.pop((path, found), None) or Ranges(found.size, fetch)
    if found.version:
        _SHARED[path, found] = ranges
        while len(_SHARED) > _MOST_SHARED:
            _SHARED.popitem(last=False)
    return ranges


def _mover(storage: Storage, key: str, to: str) -> Any:
    return lambda: storage.move(key, to)


def _exactly(held: bytes, count: int) -> bytes:
    if len(held) != count:
        raise OSError(f"{count} bytes were asked for, and {len(held)} came")
    return held


def _fits(parts: list[str], pattern: list[str]) -> bool:
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or _fits(parts[1:], pattern)
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


# How an address begins: SCHEME:// (pathlib takes a slash away) or MotherDuck's md:, after the scheme of a store.
_BEGINNING = re.compile(r"(?:[a-z][\w+.-]+:)?(?:[a-z][a-z0-9+.-]+:/{1,2}|(?:md|motherduck):)", re.IGNORECASE)
# To the last @, past slashes where there is a colon: a password may hold what should have been quoted.
_USER = re.compile(r".*:.*@|[^/?#]*@", re.DOTALL)
# In names of buckets a question mark may be part of a pattern.
_QUERY, _BUCKET_QUERY = re.compile(r"[?#]"), re.compile(r"#|\?[^/?#=&]*[=&]")
_BUCKET = re.compile(r"(?:s3a?|gs|gcs|az|abfss?|hf|memory):/", re.IGNORECASE)
# Pieces of a secret that are shorter are blotted out only where they are a word.
_SHORT = 4


def _parted(address: str) -> tuple[str, list[str]]:
    """Return what of an address may be shown, and what may not."""
    beginning = _BEGINNING.match(address)
    if beginning is None:
        return address, []
    head, rest, hidden = beginning[0], address[beginning.end() :], []
    if user := _USER.match(rest):
        hidden.append(user[0])
        rest = rest[user.end() :]
    if tail := (_BUCKET_QUERY if _BUCKET.search(head) else _QUERY).search(rest):
        hidden.append(rest[tail.start() :])
        rest = rest[: tail.start()]
    return head + rest, hidden


def shown(address: str) -> str:
    """Return an address of any scheme without user, password, query and fragment.

    Examples
    --------
    >>> shown("https://me:secret@host/rows.npy?X-Amz-Signature=abc")
    'https://host/rows.npy'
    """
    return _parted(address)[0]


def shown_place(path: object) -> str:
    """Return a path for messages and records: an address without its credentials, anything else as it is."""
    return str(path) if isinstance(path, RemotePath) else shown(str(path))


def blotted(text: str, address: str = "", secrets: Sequence[str] = ()) -> str:
    """Return a text without secrets, and without what `shown` leaves out of an address.

    Libraries take addresses apart in ways of their own, so each piece between separators is a secret, too, quoted or
    not and in any case.
    """
    kept, hidden = _parted(address)
    text = text.replace(address, kept) if hidden else text
    pieces = {*secrets, *hidden, *(piece for part in hidden for piece in re.split(r"[:@/?&=#;,\s]+", part))}
    pieces |= {form(one) for one in pieces for form in (unquote, quote, quote_plus)}
    for piece in sorted(pieces, key=len, reverse=True):
        if piece.strip(":@/?&=#;, "):
            whole = re.escape(piece)
            text = re.sub(whole if len(piece) >= _SHORT else rf"(?<!\w){whole}(?!\w)", "***", text, flags=re.I)
    return text


def scrubbed(text: str, place: RemotePath) -> str:
    """Return what a library says without credentials of the address or of the environment."""
    held = [os.environ.get(name, "") for name in _SECRETS]
    parts = [one for value in held for one in re.findall(r"(?:AccountKey|SharedAccessSignature)=([^;]+)", value)]
    text = blotted(text, f"{place.scheme}://{place.key}", [*held, *parts])
    text = re.sub(r"(https?://)[^/?#\s'\"]*@", r"\1", text)  # addresses that a library made of it
    return re.sub(r"\?[^\s'\"]*", "", text)
