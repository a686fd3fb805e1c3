"""The folder of data sets, and readers of their files: idx and npz.

Files are untrusted input. A reader either returns arrays of the documented shape or raises `MissingDataError` or
`InvalidInputError`; nothing is unpickled.
"""

from __future__ import annotations

import gzip
import io
import lzma
import math
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from firstk.exceptions import FirstkError, InvalidInputError

VARIABLE = "FIRSTK_DATA"

# Exceptions that the standard library raises for a damaged archive or stream.
_BROKEN = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class MissingDataError(FirstkError, FileNotFoundError):
    """A data set that is not in the data folder and cannot be fetched."""


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds the data sets; it need not exist.

    Parameters
    ----------
    folder : path, optional
        Used unchanged if given. Otherwise the environment variable FIRSTK_DATA, otherwise `firstk` in the
        user's cache: XDG_CACHE_HOME where it is set, else ~/.cache, ~/Library/Caches (macOS) or
        LOCALAPPDATA (Windows).

    Examples
    --------
    >>> data_folder("some/place").as_posix()
    'some/place'
    """
    if folder is not None:
        try:
            return Path(folder).expanduser()
        except TypeError:
            raise InvalidInputError(
                f"The 'folder' parameter of data_folder must be a path, or None for the default. Got {folder!r}."
            ) from None
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    return _user_cache() / "firstk"


def _user_cache() -> Path:
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser()
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    return Path("~/.cache").expanduser()


def locate(home: Path, subfolder: str, names: Sequence[str]) -> list[Path] | None:
    """Return the paths of all `names` in `home/subfolder`, or None if one is missing.

    A name that ends in .gz is also found without that ending, because users may unpack such files.
    """
    found = []
    for name in names:
        packed = home / subfolder / name
        candidates = [packed, packed.with_suffix("")] if packed.suffix == ".gz" else [packed]
        path = next((c for c in candidates if c.is_file()), None)
        if path is None:
            return None
        found.append(path)
    return found


def missing(title: str, home: Path, subfolder: str, names: Sequence[str], way_out: str) -> MissingDataError:
    """Build the error for a missing data set: expected files, folder, and how to get them."""
    absent = [name for name in names if locate(home, subfolder, [name]) is None]
    return MissingDataError(
        f"{title} is not in {home / subfolder}: looked for {', '.join(names)}; "
        f"{len(absent)} of {len(names)} missing ({', '.join(absent)}). "
        f"Set the environment variable {VARIABLE} to the folder that holds '{subfolder}/'. "
        f"In Python, pass folder={way_out}."
    )


def unusable(path: Path, why: str) -> InvalidInputError:
    """Build the error for a file that exists but cannot be used."""
    return InvalidInputError(f"The data file {path} cannot be used: {why}. Replace it with an intact copy.")


def read_idx(path: Path, ndim: int) -> np.ndarray:
    """Return the bytes of an idx file (the format of MNIST) as a uint8 array of `ndim` dimensions.

    The file is two zero bytes, a type byte (8: unsigned byte), the number of dimensions, each length as a
    big-endian 32-bit integer, then the entries. gzip is recognized by its first bytes.
    """
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except _BROKEN as error:
        raise unusable(path, f"reading fails ({error})") from None
    start = 4 + 4 * ndim
    if len(content) < start:
        raise unusable(path, f"it has {len(content)} bytes, and the idx header alone takes {start}")
    if content[:4] != bytes([0, 0, 8, ndim]):
        raise unusable(
            path,
            f"it starts with {content[:4].hex(' ')}, and an idx file of bytes in {ndim} dimensions with "
            f"00 00 08 {ndim:02x}",
        )
    shape = struct.unpack(f">{ndim}I", content[4:start])
    promised, held = math.prod(shape), len(content) - start
    if promised != held or promised == 0:
        raise unusable(path, f"its header promises {shape} = {promised} entries, and it holds {held}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_npz(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the arrays `names` of an npz file."""
    try:
        with zipfile.ZipFile(path) as archive:
            absent = [name for name in names if f"{name}.npy" not in archive.namelist()]
            if absent:
                raise unusable(path, f"it lacks the arrays {', '.join(absent)} (it has {archive.namelist()})")
            # Members are read completely first, which checks their CRC before the header is parsed.
            return {name: _read_npy(archive.read(f"{name}.npy")) for name in names}
    except InvalidInputError:
        raise
    except _BROKEN as error:
        raise unusable(path, f"reading fails ({error or type(error).__name__})") from None


def _read_npy(content: bytes) -> np.ndarray:
    stream = io.BytesIO(content)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(npy.read_magic(stream))
    if read is None:
        raise ValueError("an array has an unknown format version")
    try:
        shape, _, dtype = read(stream)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:  # of Python's own parser
        raise ValueError(f"the header of an array is damaged: {type(error).__name__}") from None
    # A forged shape must not claim memory.
    if not dtype.hasobject and stream.tell() + math.prod(shape) * dtype.itemsize > len(content):
        raise ValueError("an array ends before its rows do")
    return np.load(io.BytesIO(content), allow_pickle=False)


def as_vectors(path: Path, name: str, array: np.ndarray, width: int | None = None) -> np.ndarray:
    """Return embeddings as float32, after checking that they are a finite matrix of `width` columns."""
    if array.ndim != 2 or array.dtype.kind != "f" or 0 in array.shape:
        raise unusable(path, f"{name} must be a matrix of floats; it is {array.dtype} of shape {array.shape}")
    if width is not None and array.shape[1] != width:
        raise unusable(path, f"{name} must have {width} columns; it has {array.shape[1]}")
    array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise unusable(path, f"{name} has NaN or infinity")
    return array


def as_rows(path: Path, name: str, array: np.ndarray, shape: tuple[int | None, ...], limit: int) -> np.ndarray:
    """Return int64 class indices or row numbers, after checking their shape and that all are below `limit`.

    None in `shape` accepts any length.
    """
    fits = array.ndim == len(shape) and all(
        want is None or want == got for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype.kind not in "iu":
        wanted = tuple("any" if want is None else want for want in shape)
        raise unusable(path, f"{name} must be integers of shape {wanted}; it is {array.dtype} of {array.shape}")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < limit:
        raise unusable(path, f"{name} must lie in [0, {limit - 1}]; it reaches from {array.min()} to {array.max()}")
    return array.astype(np.int64)


def as_column(path: Path, name: str, array: np.ndarray, length: int, kind: str) -> np.ndarray:
    """Return `array` after checking that it is a vector of `length` and of a dtype of `kind` ("f", "U")."""
    if array.shape != (length,) or array.dtype.kind != kind:
        what = {"f": "floats", "U": "texts"}[kind]
        raise unusable(path, f"{name} must be {length} {what}; it is {array.dtype} of shape {array.shape}")
    if kind == "f" and not np.isfinite(array).all():
        raise unusable(path, f"{name} has NaN or infinity")
    return array
