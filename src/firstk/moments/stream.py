"""Statistics of a stream larger than memory: prefetched, computed on all cores, merged in order, kept in a checkpoint.

The chunks of a stream and the order in which they are merged are fixed, and each is worked on by one core. So the
result has the same bytes whatever the number of cores, and also when the work was stopped and resumed.
"""

from __future__ import annotations

import copy
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from scipy import sparse

from firstk._base.arrays import under, within
from firstk._base.checks import check_weights, is_int
from firstk._base.concurrency import cores, interruptible, ordered_map
from firstk._base.rows import Rows, half_as_single, is_sparse, sliceable
from firstk.data import task
from firstk.data.files.vector_table import rows_of
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.moments.checkpoint import Checkpoint
from firstk.moments.pairs import check_pairs
from firstk.moments.statistics import Statistics
from firstk.moments.targets import check_target

if TYPE_CHECKING:
    from firstk.contracts import Objective


Columns = Mapping[str, np.ndarray]
# Numbers of a chunk, of which a few are in memory at a time.
_CHUNK_NUMBERS = 8_000_000


def chunk_rows(width: int) -> int:
    """Return the rows of a chunk: some tens of megabytes, and enough that merging costs little beside measuring."""
    return max(_CHUNK_NUMBERS // width, 4 * width, 1)


# -- the stream --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows, and the position of the stream after them, in the stream's own count."""

    columns: Columns
    end: int


@dataclass(frozen=True, eq=False)
class Chunks:
    """A stream that can be resumed at any chunk.

    Attributes
    ----------
    after : callable (end) -> iterator of Chunk
        The chunks after the one that ended there, from 0. The same cuts every time.
    pairs : bool
        Whether they hold pairs.
    job : mapping
        What is read, in facts that JSON can hold: another stream must have other facts.
    files : callable () -> list of (int, Chunks), optional
        The same rows file by file, each with the number of its first row, where they may be read apart.
    """

    after: Callable[[int], Iterator[Chunk]]
    pairs: bool = False
    job: Mapping[str, object] = field(default_factory=dict)
    files: Callable[[], list[tuple[int, Chunks]]] | None = None

    @classmethod
    def of(cls, batches: Iterable[Columns]) -> Chunks:
        """Return an iterable of batches as chunks; to resume, it is read from its beginning."""
        stream = iter(batches)
        first = next(stream, None)
        if first is None:
            raise no_row()

        def after(end: int) -> Iterator[Chunk]:
            for number, batch in enumerate(chain([first], stream), start=1):
                if number > end:
                    yield Chunk(batch, number)

        return cls(after, "left" in first)


@dataclass(frozen=True, eq=False)
class HoldOut:
    """Hold out rows by their numbers, and remember some of the others as well.

    Attributes
    ----------
    held : ndarray of int
        Row numbers, ascending, on which nothing is fitted.
    reference : ndarray of int
        Row numbers, ascending, of rows that are fitted on and kept to look neighbors up among.
    """

    held: np.ndarray
    reference: np.ndarray

    @classmethod
    def nothing(cls) -> HoldOut:
        """Keep no row apart."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @property
    def digest(self) -> list[int]:
        """Counts and sums of the row numbers."""
        return [len(self.held), int(self.held.sum()), len(self.reference), int(self.reference.sum())]

    def split(self, columns: Columns, start: int) -> tuple[Columns, Columns, Columns]:
        """Divide a batch whose first row has the number `start`: rows to fit on, rows held out, and the reference."""
        here = (start, start + len_of(columns))
        held, reference = (
            wanted[slice(*np.searchsorted(wanted, here))] - start for wanted in (self.held, self.reference)
        )
        rest = np.delete(np.arange(len_of(columns)), held) if len(held) else slice(None)
        first, second = (
            {name: half_as_single(part[rows]) for name, part in columns.items()} for rows in (held, reference)
        )
        return {name: part[rest] for name, part in columns.items()}, first, second


# -- what is accumulated -------------------------------------------------------------------------------------------


class Additive(Protocol):
    """Statistics of some rows that can be merged with those of others."""

    def merge(self, other: Self, /) -> Self:
        """Take in the statistics of other rows."""


S = TypeVar("S", bound=Additive)


@dataclass
class Accumulated(Generic[S]):
    """What a stream has given so far.

    Attributes
    ----------
    statistics : Additive or None
        Of the rows that are not held out; None before the first. A checkpoint stores `Statistics` only.
    held, reference : mapping
        Rows kept apart, and rows to look neighbors up among.
    end, read, rows : int
        The position of the stream, how many rows came, and how many of them were fitted on.
    """

    statistics: S | None = None
    held: Columns = field(default_factory=dict)
    reference: Columns = field(default_factory=dict)
    end: int = 0
    read: int = 0
    rows: int = 0

    def take(self, part: Accumulated[S]) -> None:
        """Take in what the next chunk gave."""
        if self.statistics is None:
            self.statistics = part.statistics
        elif part.statistics is not None:
            self.statistics = self.statistics.merge(part.statistics)
        self.held, self.reference = joined(self.held, part.held), joined(self.reference, part.reference)
        self.end, self.read, self.rows = part.end, self.read + part.read, self.rows + part.rows

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return everything but the counts."""
        found = self.statistics
        statistics = under("statistics", found.to_arrays()) if isinstance(found, Statistics) else {}
        return statistics | under("held", self.held) | under("reference", self.reference)

    @property
    def counts(self) -> dict[str, int]:
        """The counts."""
        return {"end": self.end, "read": self.read, "rows": self.rows}

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray], counts: Mapping[str, int]) -> Accumulated[Any]:
        """Undo `to_arrays` and `counts`."""
        statistics = within(arrays, "statistics")
        try:
            end, read, rows = (counts[name] for name in ("end", "read", "rows"))
            if not all(is_int(count) and count >= 0 for count in (end, read, rows)) or rows > read:
                raise ValueError(f"{rows!r} rows of {read!r} up to {end!r}")
            held, reference = within(arrays, "held"), within(arrays, "reference")
            if any(len({len(part) for part in columns.values()}) > 1 for columns in (held, reference)):
                raise ValueError("columns of unequal length")
            found: Any = Statistics.from_arrays(statistics) if statistics else None
            return cls(found, held, reference, end, read, rows)
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptModelError(f"The checkpoint cannot be read ({error}). Remove it to start again.") from None


def joined(first: Columns, second: Columns) -> Columns:
    """Put two parts of some columns together."""
    if not first or not second:
        return first or second
    if not len(next(iter(second.values()))):
        return first
    return {name: np.concatenate([first[name], second[name]]) for name in first}


def accumulate(
    statistics_of: Callable[[Columns], S | None],
    chunks: Chunks,
    parts: HoldOut,
    *,
    workers: int | None = None,
    checkpoint: Checkpoint | None = None,
    job: Mapping[str, object] | None = None,
    progress: Callable[[int], object] = lambda rows: None,
    first: int = 0,
) -> Accumulated[S]:
    """Accumulate the statistics of a stream, and collect the rows that are kept apart.

    The first SIGINT, or SIGTERM with a checkpoint, ends the work after the chunk it is at: the checkpoint is written,
    and KeyboardInterrupt raised.

    Parameters
    ----------
    statistics_of : callable (columns) -> Statistics or None
        Statistics of the rows of a chunk, which it checks; None of rows that count for nothing.
    chunks : Chunks
    parts : HoldOut
        Which rows are held out.
    workers : int, optional
        Chunks that are worked on at the same time; the number of cores if not given.
    checkpoint : Checkpoint, optional
    job : mapping, optional
        Facts about the fit, beside those of the stream, that a checkpoint must agree with.
    progress : callable (rows) -> None
        Told how many rows have just been taken in; first, how many a checkpoint held.
    first : int
        Number of the first row, by which `parts` counts.
    """
    about = {"stream": dict(chunks.job), "held_out": parts.digest} | dict(job or {})
    so_far: Accumulated[S] = Accumulated()
    if checkpoint is not None and (found := checkpoint.read(about)) is not None:
        so_far = Accumulated.restored(*found)
        progress(so_far.read)

    def measure(item: tuple[int, Chunk]) -> Accumulated[S]:
        start, chunk = item
        rest, held, reference = parts.split(chunk.columns, start)
        rows = len_of(rest)
        return Accumulated(statistics_of(rest) if rows else None, held, reference, chunk.end, rows + len_of(held), rows)

    def numbered(read: int) -> Iterator[tuple[int, Chunk]]:
        """Give each chunk the number of its first row."""
        for chunk in chunks.after(so_far.end):
            yield read, chunk
            read += len_of(chunk.columns)

    written, signals = time.monotonic(), (signal.SIGINT, *(() if checkpoint is None else (signal.SIGTERM,)))
    with (
        interruptible(*signals) as interrupted,
        closing(ordered_map(measure, numbered(first + so_far.read), workers or cores())) as coming,
    ):
        for part in coming:
            so_far.take(part)
            progress(part.read)
            if checkpoint is not None and (interrupted.is_set() or time.monotonic() - written >= checkpoint.every):
                checkpoint.write(so_far.to_arrays(), so_far.counts, about)
                written = time.monotonic()
            if interrupted.is_set():
                raise KeyboardInterrupt
    return so_far


def len_of(columns: Columns) -> int:
    """Return the number of rows of some columns."""
    return len(next(iter(columns.values()))) if columns else 0


def no_row() -> InvalidInputError:
    """Build the error for a stream that gives nothing to fit on."""
    return InvalidInputError("There is no row to fit on. Give a file with rows, or hold fewer of them out.")


# -- batches ----------------------------------------------------------------------------------------------------------


def checked(objective: Objective, batch: object) -> task.Rows | task.Pairs | None:
    """Return a batch as the objective takes it; None where it has no rows, or all of them have weight zero.

    Parameters
    ----------
    objective : Objective
    batch : array, tuple or mapping
        Rows X; or (X, y), or (X, y, weight), or a mapping of those names; or, for pairs, (left, right),
        (left, right, scores), or a mapping.
    """
    pairs = objective.supervision == "pairs"
    names = ("left", "right", "scores") if pairs else ("X", "y", "weight")
    if isinstance(batch, Mapping):
        columns = batch
        if not set(names[:1]) <= set(batch) <= set(names):
            raise InvalidInputError(f"A batch has {', '.join(map(repr, names))}. Got {', '.join(map(repr, batch))}.")
    else:
        parts = batch if isinstance(batch, tuple) else (batch,)
        if not (2 if pairs else 1) <= len(parts) <= len(names):
            raise InvalidInputError(f"A batch is a tuple of {', '.join(names)}. Got {len(parts)} parts.")
        columns = dict(zip(names, parts, strict=False))
    if pairs:
        left, right = (as_rows(columns[side]) for side in ("left", "right"))
        if not left.shape[0] and not right.shape[0]:
            return None
        left, right, scores = check_pairs(left, right, columns.get("scores"), "Fitting pairs")
        return task.Pairs(left, right, scores)
    X, y, weight = as_rows(columns["X"]), columns.get("y"), columns.get("weight")
    n = X.shape[0]
    if not n or (weight is not None and len(weight) == n and not np.any(weight)):
        return None
    weight = check_weights(weight, n, "Fitting")
    target = None if objective.supervision == "rows" else check_target(y, objective, n)
    return task.Rows(X, target, weight)


def as_rows(part: Rows) -> np.ndarray | sparse.csr_matrix:
    """Return vectors as a matrix of float32 or float64, or a sparse one; half precision as single."""
    found = rows_of(part)
    rows = sliceable(part if found is None else found[0])
    if is_sparse(rows):
        return rows
    rows = half_as_single(rows)
    if rows.ndim != 2:
        raise InvalidInputError(f"A batch holds two-dimensional rows. Got shape {rows.shape}.")
    try:
        return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"Rows are numbers; these hold something else ({error}).") from None


def merged(parts: list[Statistics | None]) -> Statistics | None:
    """Return the statistics of all parts, in their order; the parts stay as they are."""
    found = [part for part in parts if part is not None]
    if len(found) < 2:
        return found[0] if found else None
    whole = copy.deepcopy(found[0])
    for part in found[1:]:
        if part.n_features != whole.n_features:
            raise InvalidInputError(f"Vectors have one width. Got {whole.n_features} and {part.n_features} numbers.")
        whole = whole.merge(part)
    return whole
