"""Text files for reading and writing, plain or packed by gzip: the formats of text do not tell them apart."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, cast

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
            why = f"it is not UTF-8 text (it holds byte 0x{error.object[error.start]:02x})"
            raise unreadable(path, why, "Save it as UTF-8 text, which spreadsheets call 'CSV UTF-8'") from None


def open_text(path: Path) -> TextIO:
    """Open a text file for reading, line ends as they are."""
    # utf-8-sig: spreadsheets put a mark before the first name.
    if path.name.lower().endswith(".gz"):
        return _Gzip(path.open("rb"), "rb", "utf-8-sig", "strict")
    return path.open(newline="", encoding="utf-8-sig")


def create_text(path: Path, *, packed: bool) -> TextIO:
    """Open a text file for writing; the same rows give the same bytes."""
    if packed:
        return _Gzip(path.open("wb"), "wb", "utf-8", _ERRORS)
    return path.open("w", newline="", encoding="utf-8", errors=_ERRORS)


class _Gzip(io.TextIOWrapper):
    """A text file in gzip, whose `close` closes the file under the archive, too, which gzip leaves open."""

    def __init__(self, file: BinaryIO, mode: str, encoding: str, errors: str):
        self._under = file
        # Without the name and the time that gzip would write into it.
        packed = gzip.GzipFile("", mode, _LEVEL, file, mtime=0)
        super().__init__(cast("io.BufferedReader", packed), newline="", encoding=encoding, errors=errors)

    def close(self) -> None:
        """Finish the archive, and close the file."""
        try:
            super().close()
        finally:
            self._under.close()
