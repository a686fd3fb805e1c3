"""The contract of a file format: all of `firstk.data.files` on one page.

A file of vectors is a table in which one column is a vector. A format opens such a file for reading in blocks, and
creates one for writing in blocks; everything else (shards, NaN, atomic writes) is done once for all formats.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from firstk._base.checks import some_rows
from firstk._base.input_file import Stamp
from firstk._base.json_records import strict_json
from firstk.bits.embedded import Embedded
from firstk.data.precision import Floating, Precision, Rounded, read_precision
from firstk.data.remote import RemotePath
from firstk.data.stamp import CodeStamp
from firstk.exceptions import FirstkError, InvalidInputError

# Numbers that are no floats become the smallest float that holds them all exactly, or float64.
_SMALL_INTEGERS = ("int8", "uint8", "int16", "uint16")
# The key of metadata under which firstk describes the codes of a file, as JSON.
_KEY = "firstk"


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table.

    Attributes
    ----------
    vectors : ndarray of shape (n, p)
        float16, float32 or float64, as stored. It may be read-only.
    columns : mapping of str to ndarray
        The other columns that were asked for, n entries each.
    rows : ndarray of shape (n,), int64
        Row numbers in the table, from 0; rows that were dropped are missing here.
    dropped : int
        How many were.
    """

    vectors: np.ndarray
    columns: Mapping[str, np.ndarray]
    rows: np.ndarray
    dropped: int = 0

    @property
    def start(self) -> int:
        """Row number of the first row."""
        return int(self.rows[0]) if len(self.rows) else 0

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True)
class Layout:
    """What a new file will hold, known before its first row.

    Attributes
    ----------
    vectors : str
        Name of the vector column.
    width : int
    dtype : numpy dtype
        Of the vectors.
    columns : tuple of str
        Names of the other columns.
    metadata : mapping of str to str
        Facts that are stored in the file, where the format has a place for them.
    binary : bool
        Whether a row is a string of bytes, not a list of numbers, where the format knows the difference.
    """

    vectors: str
    width: int
    dtype: np.dtype
    columns: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    binary: bool = False


@dataclass(frozen=True)
class Wanted:
    """What the caller said about the columns of a table, and what is known of them by now.

    Attributes
    ----------
    vectors : str, optional
        Name of the vectors.
    beside : tuple of str
        Names of columns that are not vectors.
    text : frozenset of str
        Columns that are text, although the cells of one file or block of it could be read as numbers.
    plain : bool
        Whether all columns are wanted one by one, and none has to be a vector.
    """

    vectors: str | None = None
    beside: tuple[str, ...] = ()
    text: frozenset[str] = frozenset()
    plain: bool = False

    def with_default(self, name: str | None, there: Container[str]) -> Wanted:
        """Return this with the vectors named that a file itself names, unless the caller did."""
        return self if self.vectors is not None or name is None or name not in there else replace(self, vectors=name)


class Carried(Mapping[str, np.ndarray]):
    """Columns of some rows that may be computed with, or written to another file, which must change nothing.

    ``columns[name]`` is what a command computes with, such as numbers in place of text.

    Attributes
    ----------
    held : dict
        The columns by name, as the file has them.
    """

    def __init__(self, held: Mapping[str, Any]):
        self.held = dict(held)

    def __contains__(self, name: object) -> bool:
        return name in self.held  # without computing it

    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)

    def exact(self, name: str) -> np.ndarray:
        """Return a column as it is stored."""
        return self[name]

    @abstractmethod
    def take(self, kept: np.ndarray) -> Carried:
        """Return the rows `kept`."""


def exactly(columns: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Return a column as it is stored, for a writer."""
    return columns.exact(name) if isinstance(columns, Carried) else np.asarray(columns[name])


@dataclass(frozen=True)
class Facts:
    """What a reader knows before it reads rows.

    Attributes
    ----------
    vectors : str
        Name of the vector column.
    members : tuple of str
        The columns that make it up: one that holds lists, or one a coordinate.
    width : int
        0 where no vector is there to tell.
    dtype : numpy dtype
        Of the vectors as they are read: float16, float32 or float64.
    columns : tuple of str
        Names of the other columns.
    metadata : mapping of str to str
        What firstk stored with the rows.
    typed : bool
        Whether columns have types; otherwise all cells tell which columns are text.
    """

    vectors: str
    members: tuple[str, ...]
    width: int
    dtype: np.dtype
    columns: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    typed: bool = True


class Reader(Protocol):
    """One open file.

    A format may have two methods more. ``piece(start, stop)`` returns the vectors of some rows without reading others.
    ``survey(columns)``, where columns have no types, returns the number of rows, and which columns are read as text.
    """

    facts: Facts

    def count(self) -> int:
        """Return the number of rows."""

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield vectors and other columns of at most `size` rows at a time, in order, in bounded memory.

        A missing number is NaN. Rows of the wrong length raise an error here, as only a reader sees them.
        """

    def column(self, name: str) -> Any:
        """Return a whole column: an array, or what is sliced and measured as one."""


class Writer(Protocol):
    """One file that is being written, under a name that nobody else reads."""

    def write(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows."""

    def close(self) -> None:
        """Finish the file; until then it is not one."""

    def abandon(self) -> None:
        """Let go of the file without finishing it; never fails."""


class AppendingWriter:
    """What writers share that append rows to one open file."""

    def __init__(self, layout: Layout, file: IO[Any]):
        self._layout, self._file = layout, file

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def abandon(self) -> None:
        """Let go of the file."""
        with suppress(Exception):
            self._file.close()


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes
    ----------
    name : str
    endings : tuple of str
        Of file names, with the dot.
    holds : str
        Which other columns fit beside the vectors: "anything", "arrays", "numbers" or "nothing".
    notes : bool
        Whether the format stores metadata.
    read : callable (path, wanted) -> Reader
    create : callable (path, layout) -> Writer, optional
        None for what is only read.
    """

    name: str
    endings: tuple[str, ...]
    holds: str
    notes: bool
    read: Callable[[Path, Wanted], Reader]
    create: Callable[[Path, Layout], Writer] | None = None


def code_layout(
    name: str, precision: Precision, k: int, columns: tuple[str, ...], facts: Mapping[str, object] | None
) -> Layout:
    """Return the layout of a file of codes of k coordinates; `facts` are what it says about itself, None: nothing."""
    width = precision.bytes_per_vector(k) if must_be_restored(precision) else k
    metadata = {}
    if facts is not None:
        said = strict_json(json.dumps(dict(facts) | {"vectors": name, "stored": precision.record()}))
        metadata[_KEY] = json.dumps({"sha256": _digest(said)} | said)
    return Layout(name, width, stored_type(precision), columns, metadata, binary=is_bit_string(precision))


def _digest(said: Mapping[str, object]) -> str:
    """Return the SHA-256 of what a file says about itself, as canonical JSON."""
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def vectors_named(metadata: Mapping[str, str]) -> str | None:
    """Return the column of codes that metadata name; None where they name none."""
    try:
        name = strict_json(metadata[_KEY])["vectors"]
    except (ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) else None


def is_bit_string(precision: Precision) -> bool:
    """Tell whether codes are strings of bits that can be cut at any byte, and stand for coordinates only as a whole."""
    return isinstance(precision, Embedded)


def must_be_restored(precision: Precision) -> bool:
    """Tell whether codes of this precision need what is written beside them."""
    return not isinstance(precision, Floating)


def stored_type(precision: Precision) -> np.dtype:
    """Return the type of codes as they are stored."""
    return np.dtype(precision.dtype if isinstance(precision, Rounded) else np.uint8)


@dataclass(frozen=True, eq=False)
class CodeRecord:
    """What a file of codes says about itself.

    Attributes
    ----------
    k : int
    precision : Precision
        Fitted, so that other codes can be stored alike.
    stamp : CodeStamp
        By which one knows whether two files have codes of the same encoder.
    metric : str, optional
        What products of query codes with codes of embedded bits serve.
    side : str
        "document" or "query".
    """

    k: int
    precision: Precision
    stamp: CodeStamp
    metric: str | None = None
    side: str = "document"

    @property
    def encoder(self) -> str:
        """Fingerprint of what made the codes."""
        return self.stamp.encoder

    @classmethod
    def read(cls, path: object, metadata: Mapping[str, str]) -> CodeRecord | None:
        """Return the record of a file, checked against its checksum; None where firstk wrote none."""
        if _KEY not in metadata:
            return None
        try:
            facts = strict_json(metadata[_KEY])
            if facts.pop("sha256") != _digest(facts):
                raise ValueError("it does not match its checksum")
            precision, metric = read_precision(facts["stored"]), facts.get("metric")
            side = str(facts.get("side", "document"))
            stamp = CodeStamp.read(facts["stamp"])
            return cls(int(facts["k"]), precision, stamp, metric and str(metric), side)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInputError(
                f"'{path}' says that firstk wrote it, and not how: its metadata is damaged. Write it again."
            ) from None


class Restoring:
    """Turn stored codes into numbers, as the metadata of their file tells; numbers are left as they are."""

    def __init__(self, path: object, metadata: Mapping[str, str], width: int, dtype: np.dtype):
        self.width, self.dtype, self._precision = width, dtype, None
        record = CodeRecord.read(path, metadata)
        if record is not None and must_be_restored(record.precision):
            k, precision = record.k, record.precision
            if isinstance(precision, Embedded) and 1 <= width <= precision.n_bytes:
                k = precision.width  # codes may have been cut since
            elif precision.bytes_per_vector(k) != width:
                raise InvalidInputError(
                    f"'{path}' holds {width} numbers a row; {precision.name} codes of {k} were expected."
                )
            self.width, self.dtype, self._precision = k, np.dtype(np.float32), precision

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Return what the stored numbers mean."""
        if self._precision is None:
            return vectors
        return self._precision.restore(vectors.astype(stored_type(self._precision), copy=False))


def float_type(dtype: DTypeLike) -> np.dtype:
    """Return the float type in which numbers of `dtype` are read: their own if they are floats."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f" and dtype.itemsize in (2, 4, 8):
        return dtype.newbyteorder("=")
    return np.dtype(np.float32 if dtype.name in _SMALL_INTEGERS else np.float64)


def unreadable(path: object, why: str, way_out: str = "Write it again, or give another file") -> InvalidInputError:
    """Build the error for a file that exists and cannot be used."""
    return InvalidInputError(f"Cannot read vectors from '{path}': {why}. {way_out}.")


def no_room(form: str, holds: str, name: str) -> InvalidInputError:
    """Build the error for a column that a format cannot store."""
    return InvalidInputError(
        f"A file of format {form} holds {holds} only, and column {name!r} holds something else, or lacks entries. "
        "Leave it out (columns= names those that travel along), or write parquet, arrow or csv."
    )


@contextmanager
def reading(path: object, name: str, broken: tuple[type[BaseException], ...]) -> Iterator[None]:
    """Turn the error of a library about a damaged file into InvalidInputError."""
    try:
        yield
    except (FirstkError, KeyboardInterrupt):
        raise
    except broken as error:
        said = str(error).strip().splitlines()
        why = said[0][:200] if said else type(error).__name__
        raise unreadable(path, f"it is damaged or no {name} file ({why})") from None


@contextmanager
def reading_unchanged(path: Path, stamp: Stamp | None) -> Iterator[None]:
    """Raise InvalidInputError if a file is not what it was when its stamp was taken; None: no file."""
    if stamp is None:
        yield
        return
    if not isinstance(path, RemotePath):  # there a check is a request, and the one afterwards tells as much
        stamp.check(path)
    try:
        yield
    except OSError as error:
        stamp.check(path)
        raise unreadable(path, (error.strerror or str(error)).rstrip(".")) from None
    except FirstkError:
        stamp.check(path)  # a change explains whatever else was found
        raise
    stamp.check(path)


def ragged(
    path: object, width: int, rows: Sequence[int] | np.ndarray, lengths: Sequence[int] | np.ndarray
) -> InvalidInputError:
    """Build the error for vectors of different lengths."""
    has = "has" if len(rows) == 1 else "have"
    return unreadable(
        path,
        f"its vectors are ragged: the first has {width} entries, and row {some_rows(rows)} {has} {some_rows(lengths)}",
        "All must have one length",
    )
