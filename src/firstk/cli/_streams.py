"""Rows or pairs of a command as a stream of batches, for fits that see each row once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firstk._checks import InvalidInput
from firstk.cli._inputs import open_labelled, read_pairs, read_rows

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Place:
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
    """

    rows: int
    width: int
    itemsize: int
    label: str | None
    vectors: str
    make: Any

    def batches(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield mappings from names to arrays: "X" and maybe "y", or "left", "right" and maybe "scores"."""
        return self.make()


def open_stream(place: Place) -> Stream:
    """Open what a command reads; pairs are held in memory, as they look rows up in any order."""
    if place.pairs is not None:
        return _pairs(place)
    found = open_labelled(place.source, vectors=place.vectors, label=place.label, labels=place.labels, nan=place.nan)
    table = found.table

    def batches() -> Iterator[dict[str, np.ndarray]]:
        for X, y in found.batches():
            if len(X):
                yield {"X": X} if y is None else {"X": X, "y": y}

    return Stream(table.rows, table.width, table.dtype.itemsize, found.label, table.vectors, batches)


def _pairs(place: Place) -> Stream:
    if place.label is not None or place.labels is not None:
        raise InvalidInput("Pairs have scores, not labels: leave --label and --labels out, or --pairs.")
    assert place.pairs is not None
    found = read_pairs(place.source, place.pairs, vectors=place.vectors, nan=place.nan)
    sides = {"left": found.left, "right": found.right}
    whole = sides if found.scores is None else sides | {"scores": found.scores}
    width, itemsize = found.left.shape[1], found.left.dtype.itemsize
    return Stream(len(found.left), width, itemsize, None, "", lambda: iter([whole]))


def read_held_out(place: Place, file: str, stream: Stream) -> dict[str, np.ndarray]:
    """Read the rows, or pairs, of a user's own held-out file."""
    if place.pairs is not None:
        held = next(_pairs(Place(place.source, place.vectors, pairs=file, nan=place.nan)).batches())
    else:
        if place.labels is not None:
            raise InvalidInput(
                "A held-out file has its labels in a column of its own: name the column with --label, or hold out a "
                "share of the rows."
            )
        rows = read_rows(file, vectors=place.vectors, label=place.label, nan=place.nan)
        held = {"X": rows.X} if rows.y is None else {"X": rows.X, "y": rows.y}
    width = held["X" if "X" in held else "left"].shape[1]
    if width != stream.width:
        raise InvalidInput(f"'{file}' has vectors of {width} numbers, and '{place.source}' of {stream.width}.")
    return held
