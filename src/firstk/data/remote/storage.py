"""Kinds of storage behind one protocol: buckets of S3, Google and Azure by pyarrow, all others by fsspec.

Both find credentials in the environment. Where a request fails for a moment it is made again: pyarrow's clients do so
themselves, as the hub's does for bytes and lists of names; for the rest of what fsspec asks for it is done here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from firstk._base.checks import require
from firstk.data.remote.range_file import Result, with_retries
from firstk.exceptions import InvalidInputError

EXTRA = "cloud"
# Attempts of a request by pyarrow's own client; of Google's, the time they may take.
ATTEMPTS = 5
_TIME = timedelta(seconds=20)
# Seconds without a byte until a request has failed. pyarrow's 3 are too few where a large object is put together.
_SILENCE = 60
# Bytes of a file that are sent at a time.
_PIECE = 1 << 23
# What HTTP says of a file that is not there, and of one that may not be seen.
_GONE, _FORBIDDEN = (404, 410), (401, 403)


class Info(NamedTuple):
    """What a store says of a name.

    Attributes
    ----------
    kind : str
        "file", "folder" or "nothing".
    size : int
        -1 where the store does not say.
    version : str
        Changes with the content: an ETag, or a time.
    """

    kind: str
    size: int = 0
    version: str = ""


class RemoteStorage(Protocol):
    """One kind of storage. Names are without the scheme. One of `failures` is raised where it fails again and again."""

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


@cache
def storage_of(scheme: str) -> RemoteStorage:
    """Return the storage behind a scheme; raise MissingExtraError where a package of it is not installed."""
    purpose = f"Reading and writing {scheme}:// addresses"
    if scheme in _ARROW:
        fs = require("pyarrow.fs", EXTRA, purpose)
        return _ArrowStorage(fs, _ARROW[scheme](fs, scheme))
    if scheme == "hf":
        require("huggingface_hub", EXTRA, purpose)
    if scheme.startswith("http"):
        require("aiohttp", EXTRA, purpose)
    return _FsspecStorage(require("fsspec", EXTRA, purpose), scheme)


def _s3(fs: Any, scheme: str) -> Any:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return fs.S3FileSystem(
        endpoint_override=endpoint,
        # By a bucket alone pyarrow finds its region by a request, which other servers do not answer.
        region=region or ("us-east-1" if endpoint else None),
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        request_timeout=_SILENCE,
    )


def _google(fs: Any, scheme: str) -> Any:
    """Return Google's storage, or the emulator that STORAGE_EMULATOR_HOST names, as Google's own clients do."""
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    if not emulator:
        return fs.GcsFileSystem(retry_time_limit=_TIME)
    url = urlsplit(emulator if "://" in emulator else f"http://{emulator}")
    return fs.GcsFileSystem(anonymous=True, scheme=url.scheme, endpoint_override=url.netloc, retry_time_limit=_TIME)


def _azure(fs: Any, scheme: str) -> Any:
    """Return an account of Azure, by a connection string or by variables of its own."""
    held = os.environ
    stated = dict(
        part.split("=", 1) for part in held.get("AZURE_STORAGE_CONNECTION_STRING", "").split(";") if "=" in part
    )
    account = stated.get("AccountName") or held.get("AZURE_STORAGE_ACCOUNT") or held.get("AZURE_STORAGE_ACCOUNT_NAME")
    if not account:
        raise InvalidInputError(
            f"An address {scheme}://CONTAINER/NAME needs the account: set AZURE_STORAGE_ACCOUNT, or "
            "AZURE_STORAGE_CONNECTION_STRING."
        )
    # pyarrow takes one credential, or finds its own: of the connection string before variables.
    known = (
        ("account_key", stated.get("AccountKey")),
        ("sas_token", stated.get("SharedAccessSignature")),
        ("account_key", held.get("AZURE_STORAGE_KEY")),
        ("sas_token", held.get("AZURE_STORAGE_SAS_TOKEN")),
    )
    settings = dict([(name, secret) for name, secret in known if secret][:1])
    if "BlobEndpoint" in stated:
        url = urlsplit(stated["BlobEndpoint"])
        for service in ("blob", "dfs"):
            settings |= {f"{service}_storage_authority": url.netloc, f"{service}_storage_scheme": url.scheme}
    return fs.AzureFileSystem(account_name=account, **settings)


_ARROW: dict[str, Callable[[Any, str], Any]] = {
    "s3": _s3,
    "s3a": _s3,
    "gs": _google,
    "gcs": _google,
    "az": _azure,
    "abfs": _azure,
    "abfss": _azure,
}


class _ArrowStorage:
    """A bucket behind pyarrow."""

    # ValueError: ArrowInvalid, for a name that a bucket cannot have.
    failures: tuple[type[BaseException], ...] = (OSError, ValueError)

    def __init__(self, module: Any, fs: Any):
        self._module, self._fs = module, fs
        # S3 and Azure answer with an ETag when a file is opened. With Google that fetches the file, and its time says
        # as much, to the millisecond.
        self._tagged = fs.type_name != "gcs"

    def info(self, key: str) -> Info:
        """Return what is known of a name."""
        if not self._tagged:
            return self._listed(key)
        try:
            with self._fs.open_input_file(key) as file:
                size, held = file.size(), file.metadata() or {}
        except OSError:  # of a folder, too
            found = self._listed(key)
            if found.kind == "file":
                raise
            return found
        tag = held.get("ETag") or held.get("Last-Modified") or b""
        return Info("file", int(size), tag.decode() if isinstance(tag, bytes) else str(tag))

    def _listed(self, key: str) -> Info:
        found, kinds = self._fs.get_file_info(key.rstrip("/")), self._module.FileType
        if found.type == kinds.File:
            return Info("file", int(found.size), str(found.mtime_ns))
        # A folder is what has names in it. Of Azure, pyarrow overlooks one where another name begins as its name does,
        # and leaves a mark of one whose files were deleted.
        bucket = found.type == kinds.Directory and "/" not in key.rstrip("/")
        there = bucket or self._fs.get_file_info(self._within(key.rstrip("/")))
        return Info("folder" if there else "nothing")

    def _within(self, key: str, *, deep: bool = False) -> Any:
        return self._module.FileSelector(key, recursive=deep, allow_not_found=True)

    def reader(self, key: str) -> Callable[[int, int], bytes]:
        """Return a function that reads bytes of a file, which is opened once."""
        file = self._fs.open_input_file(key)
        return lambda start, stop: file.read_at(stop - start, start)

    def names(self, key: str, *, deep: bool) -> list[str]:
        """Return the files of a folder."""
        found = self._fs.get_file_info(self._within(key, deep=deep))
        return [one.path for one in found if one.type == self._module.FileType.File]

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
        """Copy within the store, and delete: pyarrow moves nothing in accounts of Azure without folders."""
        self._fs.copy_file(key, to)
        self._fs.delete_file(key)

    def delete(self, key: str) -> None:
        """Delete a file."""
        self._fs.delete_file(key)


class _FsspecStorage:
    """Any storage that fsspec knows."""

    def __init__(self, fsspec: Any, scheme: str):
        self._fs, self._prefix, self._hub = fsspec.filesystem(scheme), f"{scheme}://", scheme == "hf"
        self.failures: tuple[type[BaseException], ...] = (OSError, TimeoutError)
        if scheme.startswith("http"):
            import aiohttp

            self.failures = (aiohttp.ClientError, OSError, TimeoutError)
        elif self._hub:
            from huggingface_hub.errors import HfHubHTTPError

            # Connections that fail raise errors of the client below, whose package changes with versions.
            self.failures = (*HfHubHTTPError.__bases__, OSError, TimeoutError)

    def _name(self, key: str) -> str:
        return self._prefix + key

    def _again(self, work: Callable[[], Result]) -> Result:
        return with_retries(work, self.failures)

    def info(self, key: str) -> Info:
        """Return what is known of a name."""

        def ask() -> dict[str, Any]:
            self._fs.invalidate_cache()
            try:
                return dict(self._fs.info(self._name(key)))
            except FileNotFoundError as error:
                # For the web fsspec says so of every failure; the first of its causes tells which it was.
                cause, status = error.__cause__, getattr(error.__cause__, "status", None)
                if status in _FORBIDDEN:
                    raise PermissionError(str(cause)) from None
                if cause is not None and not isinstance(cause, FileNotFoundError) and status not in _GONE:
                    raise cause from None
                return {}

        if not (found := self._again(ask)):
            return Info("nothing")
        if found.get("type") == "directory":
            return Info("folder")
        tags = ("ETag", "etag", "blob_id", "oid", "Last-Modified", "last_modified", "mtime", "created")
        tag = next((found[name] for name in tags if found.get(name)), "")
        return Info("file", -1 if found.get("size") is None else int(found["size"]), str(tag))

    def reader(self, key: str) -> Callable[[int, int], bytes]:
        """Return a function that reads bytes of a file."""

        def read(start: int, stop: int) -> bytes:
            held: bytes = self._fs.cat_file(self._name(key), start=start, end=stop)
            if len(held) != stop - start:
                raise OSError(f"{stop - start} bytes were asked for, and {len(held)} came")
            return held

        return read if self._hub else lambda start, stop: self._again(lambda: read(start, stop))

    def names(self, key: str, *, deep: bool) -> list[str]:
        """Return the files of a folder."""

        def find() -> list[str]:
            return list(self._fs.find(self._name(key), maxdepth=None if deep else 1))

        found = find() if self._hub else self._again(find)
        return [one.removeprefix(self._prefix).lstrip("/") for one in found]

    def upload(self, local: Path, key: str) -> None:
        """Copy a file."""
        self._again(lambda: self._fs.put_file(str(local), self._name(key)))

    def move(self, key: str, to: str) -> None:
        """Give a file another name."""
        self._again(lambda: self._fs.mv(self._name(key), self._name(to)))

    def delete(self, key: str) -> None:
        """Delete a file."""
        self._again(lambda: self._fs.rm_file(self._name(key)))
