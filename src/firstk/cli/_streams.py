"""Rows or pairs of a command as a stream of batches, for fits that see each row once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firstk.cli._inputs import open_labelled, read_pairs, read_rows
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.moments.stream import Chunks, Columns


@dataclass(frozen=True)
class VectorSource:
    """Where a command's rows come from, in the words of its options."""

    source: Any
    vectors: str | None = None
    label: str | None = None
    labels: str | None = None
    pairs: str | None = None
    nan: str = "refuse"


@dataclass(frozen=True, eq=False)
class Stream:
    """Batches of rows or pairs, and what is known of them before they are read.

    Attributes
    ----------
    rows : int
        How many rows or pairs there are, those to be dropped included.
    width, itemsize : int
        Of a vector, and bytes of each of its numbers in the file.
    label : str or None
        What labels or targets are called.
    vectors : str
        What the vectors are called.
    chunks : Chunks
        The rows themselves.
    """

    rows: int
    width: int
    itemsize: int
    label: str | None
    vectors: str
    chunks: Chunks

    def batches(self) -> Iterator[Columns]:
        """Yield mappings from names to arrays: "X" and maybe "y", or "left", "right" and maybe "scores"."""
        return (chunk.columns for chunk in self.chunks.after(0))


def open_stream(place: VectorSource) -> Stream:
    """Open what a command reads; pairs are held in memory, as they look rows up in any order."""
    if place.pairs is not None:
        return _pairs(place)
    from firstk.estimator.fit_files import chunks_of

    found = open_labelled(place.source, vectors=place.vectors, label=place.label, labels=place.labels, nan=place.nan)
    table, chunks = found.table, chunks_of(found.table, found.labels, found.names)
    chunks = replace(chunks, job=dict(chunks.job) | {"labels": place.labels})
    return Stream(table.rows, table.width, table.dtype.itemsize, found.label, table.vectors, chunks)


def _pairs(place: VectorSource) -> Stream:
    if place.label is not None or place.labels is not None:
        raise InvalidInputError("Pairs have scores, not labels: leave --label and --labels out, or --pairs.")
    from firstk.moments.stream import Chunks

    assert place.pairs is not None
    found = read_pairs(place.source, place.pairs, vectors=place.vectors, nan=place.nan)
    sides = {"left": found.left, "right": found.right}
    whole = sides if found.scores is None else sides | {"scores": found.scores}
    width, itemsize = found.left.shape[1], found.left.dtype.itemsize
    return Stream(len(found.left), width, itemsize, None, "", Chunks.of([whole]))


def read_held_out(place: VectorSource, file: str, stream: Stream) -> Columns:
    """Read the rows, or pairs, of a user's own held-out file."""
    if place.pairs is not None:
        held: Columns = next(_pairs(VectorSource(place.source, place.vectors, pairs=file, nan=place.nan)).batches())
    else:
        if place.labels is not None:
            raise InvalidInputError(
                "A held-out file has its labels in a column of its own: name the column with --label, or hold out a "
                "share of the rows."
            )
        rows = read_rows(file, vectors=place.vectors, label=place.label, nan=place.nan)
        held = {"X": rows.X} if rows.y is None else {"X": rows.X, "y": rows.y}
    width = held["X" if "X" in held else "left"].shape[1]
    if width != stream.width:
        raise InvalidInputError(f"'{file}' has vectors of {width} numbers, and '{place.source}' of {stream.width}.")
    return held
