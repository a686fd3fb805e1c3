"""Text files for reading and writing, plain or packed by gzip: the formats of text do not tell them apart."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from firstk.data.files.contract import reading, unreadable

# What reading a damaged text or gzip file raises.
_BROKEN: tuple[type[BaseException], ...] = (OSError, ValueError, EOFError, zlib.error)
# Higher levels take much longer for a few percent.
_LEVEL = 6
# Half of a pair of UTF-16, which JSON can hold and UTF-8 cannot, is written as JSON escapes it.
_ERRORS = "backslashreplace"


@contextmanager
def reading_text(path: Path, name: str, *broken: type[BaseException]) -> Iterator[None]:
    """Turn errors about a damaged text file into InvalidInputError; `broken` are those of the format."""
    with reading(path, name, (*_BROKEN, *broken)):
        try:
            yield
        except UnicodeDecodeError as error:
            why = f"it is no UTF-8 text (it holds byte 0x{error.object[error.start]:02x})"
            raise unreadable(path, why, "Save it as UTF-8 text, which spreadsheets call 'CSV UTF-8'") from None


def open_text(path: Path, *, packed: bool) -> TextIO:
    """Open a text file for reading, line ends as they are."""
    # utf-8-sig: spreadsheets put a mark before the first name.
    if packed:
        return _Unpacked(path)
    return path.open(newline="", encoding="utf-8-sig")


def create_text(path: Path, *, packed: bool) -> TextIO:
    """Open a text file for writing; the same rows give the same bytes."""
    return _Packed(path) if packed else path.open("w", newline="", encoding="utf-8", errors=_ERRORS)


class _Unpacked(io.TextIOWrapper):
    """A text file in gzip that is read."""

    def __init__(self, path: Path):
        self._file = path.open("rb")
        super().__init__(cast("io.BufferedReader", gzip.GzipFile(fileobj=self._file)), newline="", encoding="utf-8-sig")

    def close(self) -> None:
        """Close the archive, and the file under it, which gzip leaves open."""
        try:
            super().close()
        finally:
            self._file.close()


class _Packed(io.TextIOWrapper):
    """A text file in gzip, without the name and the time that gzip would write into it."""

    def __init__(self, path: Path):
        self._file = path.open("wb")
        packed = gzip.GzipFile("", "wb", _LEVEL, self._file, mtime=0)
        super().__init__(cast("io.BufferedWriter", packed), newline="", encoding="utf-8", errors=_ERRORS)

    def close(self) -> None:
        """Finish the archive, and close the file under it, which gzip leaves open."""
        try:
            super().close()
        finally:
            self._file.close()
