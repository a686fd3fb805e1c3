"""Files in object storage and on the web, with those methods of `pathlib.Path` that readers and writers use.

Everything that reads or writes files asks `place_of` for its place, and works alike with a `Path` and a `RemotePath`.
Buckets of S3, Google and Azure are reached by pyarrow, all others by fsspec; credentials are found by these in the
environment. Needs the extra "cloud".
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from firstk.exceptions import FirstkError, InvalidInputError

if TYPE_CHECKING:
    from firstk._base.range_file import Ranges

EXTRA = "cloud"
_PURPOSE = "Reading and writing {scheme}:// addresses"
# One slash or two: pathlib, through which some arguments pass, takes one away.
_URL = re.compile(r"(s3a?|gs|gcs|az|abfss?|hf|https?|memory):/{1,2}(?=[^/])", re.IGNORECASE)
_ARROW = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
# Attempts of a request by pyarrow's own client, each of which is one of ours.
SDK_ATTEMPTS = 3
# Bytes of a file that are sent at a time.
_PIECE = 1 << 23
# Variables whose values are never shown.
_SECRETS = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
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


class Info(NamedTuple):
    """What a store says of a name.

    Attributes
    ----------
    kind : str
        "file", "folder" or "nothing".
    size : int
    version : str
        Changes with the content: an ETag, or a time.
    """

    kind: str
    size: int = 0
    version: str = ""


class Storage(Protocol):
    """One kind of storage. Names are without the scheme. One of `failures` is raised where it fails."""

    failures: tuple[type[BaseException], ...]

    def info(self, key: str) -> Info:
        """Return what is known of a name."""

    def reader(self, key: str) -> Callable[[int, int], bytes]:
        """Return a function from a start and a stop to the bytes of a file between them."""

    def names(self, key: str, *, deep: bool) -> list[str]:
        """Return the names of files in a folder; with `deep`, also in folders in it."""

    def upload(self, local: Path, key: str) -> None:
        """Copy a file of this machine; the name appears when all of it is there."""

    def move(self, key: str, to: str) -> None:
        """Give a file another name."""

    def delete(self, key: str) -> None:
        """Delete a file."""


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
        return _storage(self.scheme)

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
            said = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
            raise OSError(5, f"{doing} failed: {scrubbed(said, self)}") from None

    def _tried(self, work: Callable[[], Any]) -> Any:
        """Do something with the storage, again where it fails for a moment."""
        from firstk._base.range_file import with_retries

        return with_retries(work, self.storage.failures)

    def info(self) -> Info:
        """Return what is there."""
        with self._explained("Asking for it"):
            return self._tried(lambda: self.storage.info(self.key))

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


def shown(address: str) -> str:
    """Return an address without user, password and query.

    Examples
    --------
    >>> shown("https://me:secret@host/rows.npy?X-Amz-Signature=abc")
    'https://host/rows.npy'
    """
    # To the last @ of the host: a password may hold one that was not quoted.
    plain = re.sub(r"(://)[^/?#]*@(?=[^/])", r"\1", address) if "://" in address else address
    return plain.partition("?")[0] if plain.lower().startswith("http") else plain


def shown_place(path: object) -> str:
    """Return a path for messages and records: an address without its credentials, anything else as it is."""
    return str(place_of(path)) if is_remote(path) else str(path)  # type: ignore[arg-type]


def scrubbed(text: str, place: RemotePath) -> str:
    """Return what a library says without credentials of the address or of the environment."""
    text = text.replace(f"{place.scheme}://{place.key}", str(place))
    text = re.sub(r"(https?://)[^/?#\s'\"]*@", r"\1", text)
    text = re.sub(r"\?[^\s'\"]*", "", text)
    for name in _SECRETS:
        if secret := os.environ.get(name):
            text = text.replace(secret, "***")
    return text


# -- kinds of storage --------------------------------------------------------------------------------------------------


@cache
def _storage(scheme: str) -> Storage:
    from firstk._base.checks import require  # with numpy, which commands load when they run

    purpose = _PURPOSE.format(scheme=scheme)
    if scheme in _ARROW:
        return _ArrowStorage(require("pyarrow.fs", EXTRA, purpose), scheme)
    if scheme == "hf":
        require("huggingface_hub", EXTRA, purpose)
    if scheme.startswith("http"):
        require("aiohttp", EXTRA, purpose)
    return _FsspecStorage(require("fsspec", EXTRA, purpose), scheme)


class _ArrowStorage:
    """A bucket behind pyarrow."""

    failures: tuple[type[BaseException], ...] = (OSError,)

    def __init__(self, fs: Any, scheme: str):
        self._module, environ = fs, os.environ
        if scheme in ("s3", "s3a"):
            endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
            retries = fs.AwsStandardS3RetryStrategy(max_attempts=SDK_ATTEMPTS)
            region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
            # By a bucket alone pyarrow finds its region by a request, which other servers do not answer.
            self._fs = fs.S3FileSystem(
                endpoint_override=endpoint, region=region or ("us-east-1" if endpoint else None), retry_strategy=retries
            )
        elif scheme in ("gs", "gcs"):
            self._fs = fs.GcsFileSystem()
        else:
            account = environ.get("AZURE_STORAGE_ACCOUNT") or environ.get("AZURE_STORAGE_ACCOUNT_NAME")
            if not account:
                raise InvalidInputError(
                    f"An address {scheme}://CONTAINER/NAME needs the account: set AZURE_STORAGE_ACCOUNT."
                )
            self._fs = fs.AzureFileSystem(account_name=account, account_key=environ.get("AZURE_STORAGE_KEY"))

    def info(self, key: str) -> Info:
        """Return what is known of a name."""
        try:
            with self._fs.open_input_file(key) as file:
                size, held = file.size(), file.metadata() or {}
        except OSError:  # of a folder, too
            found = self._fs.get_file_info(key.rstrip("/"))
            if found.type == self._module.FileType.File:
                raise
            return Info("folder" if found.type == self._module.FileType.Directory else "nothing")
        tag = held.get("ETag") or held.get("Last-Modified") or b""
        return Info("file", int(size), tag.decode() if isinstance(tag, bytes) else str(tag))

    def reader(self, key: str) -> Callable[[int, int], bytes]:
        """Return a function that reads bytes of a file, which is opened once."""
        file = self._fs.open_input_file(key)
        return lambda start, stop: file.read_at(stop - start, start)

    def names(self, key: str, *, deep: bool) -> list[str]:
        """Return the files of a folder."""
        chosen = self._module.FileSelector(key, recursive=deep, allow_not_found=True)
        return [one.path for one in self._fs.get_file_info(chosen) if one.type == self._module.FileType.File]

    def upload(self, local: Path, key: str) -> None:
        """Copy a file: several parts, which become an object at the end."""
        from concurrent.futures import ThreadPoolExecutor

        def work() -> None:
            # pyarrow's own copy_files passes over errors of the last part; `close` raises them.
            stream = self._fs.open_output_stream(key, compression=None)  # else names in .gz are packed once more
            with local.open("rb") as file:
                while piece := file.read(_PIECE):
                    stream.write(piece)
            stream.close()

        # In a thread, which Ctrl-C does not reach: a stream that is let go of completes what it has got so far.
        with ThreadPoolExecutor(1) as alone:
            alone.submit(work).result()

    def move(self, key: str, to: str) -> None:
        """Copy within the store, and delete."""
        self._fs.move(key, to)

    def delete(self, key: str) -> None:
        """Delete a file."""
        self._fs.delete_file(key)


class _FsspecStorage:
    """Any storage that fsspec knows."""

    def __init__(self, fsspec: Any, scheme: str):
        self._fs, self._prefix = fsspec.filesystem(scheme), f"{scheme}://"
        self._web = scheme.startswith("http")
        self.failures: tuple[type[BaseException], ...] = (OSError, TimeoutError)
        if self._web:
            import aiohttp

            self.failures = (aiohttp.ClientError, OSError, TimeoutError)

    def _name(self, key: str) -> str:
        return self._prefix + key

    def info(self, key: str) -> Info:
        """Return what is known of a name."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.info(self._name(key))
        except FileNotFoundError:
            return Info("nothing")
        if found.get("type") == "directory":
            return Info("folder")
        if found.get("size") is None:
            raise InvalidInputError(
                f"'{shown(self._name(key))}' does not say how long it is, so it cannot be read by ranges. Download it."
            )
        tags = ("ETag", "etag", "blob_id", "oid", "Last-Modified", "last_modified", "mtime", "created")
        tag = next((found[name] for name in tags if found.get(name)), "")
        return Info("file", int(found["size"]), str(tag))

    def reader(self, key: str) -> Callable[[int, int], bytes]:
        """Return a function that reads bytes of a file."""
        return lambda start, stop: self._fs.cat_file(self._name(key), start=start, end=stop)

    def names(self, key: str, *, deep: bool) -> list[str]:
        """Return the files of a folder."""
        found = self._fs.find(self._name(key), maxdepth=None if deep else 1)
        return [one.removeprefix(self._prefix).lstrip("/") for one in found]

    def upload(self, local: Path, key: str) -> None:
        """Copy a file."""
        if self._web:
            raise InvalidInputError(
                f"'{shown(self._name(key))}' is on the web, which is only read. Choose another place."
            )
        self._fs.put_file(str(local), self._name(key))

    def move(self, key: str, to: str) -> None:
        """Give a file another name."""
        self._fs.mv(self._name(key), self._name(to))

    def delete(self, key: str) -> None:
        """Delete a file."""
        self._fs.rm_file(self._name(key))
