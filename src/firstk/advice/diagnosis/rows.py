"""One pass over the rows: their moments, a sample of them, and sums for the facts about the vectors.

A hash of each vector decides whether it is in the sample, so a diagnosis depends on the data alone: neither on batches
nor on the order of rows nor on the names of classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_matrix
from firstk._base.linalg import row_space
from firstk._base.rows import half_as_single
from firstk.advice.diagnosis.vectors import RowSums
from firstk.exceptions import InvalidInputError
from firstk.moments.fingerprint import joined_hashes, row_hashes
from firstk.moments.moments import Moments
from firstk.moments.statistics import RowSample
from firstk.moments.stream import Chunk, Chunks, Columns, HoldOut, accumulate, joined
from firstk.moments.targets import as_labels, check_labels, check_targets

Kind = Literal["none", "labels", "targets"]
OWNER = "diagnose"
# Rows that objectives are compared on, and numbers in them: fewer rows if vectors are wide.
MOST_ROWS, MOST_NUMBERS = 10_240, 1 << 25
# Rows per block of a core: few, because hashes and norms are computed in float64.
BLOCK_ROWS = 4096
# If there are more classes than this, and than a tenth of the rows, labels are taken for row names.
MOST_CLASSES = 2000
# From this many rows on, labels are also taken for row names if this share of them occurs once.
FEWEST_NAMED, NAMED_SHARE = 20, 0.9
# Copies of a vector have the same hash; these bits are replaced by bits of the label's hash, to fix their order.
_LABEL_BITS = np.uint64(0xFFFF)
_NAMES = "look like names of rows, not like classes. Give another column, or targets if they are numbers to predict."


@dataclass(frozen=True, eq=False)
class Gathered:
    """Input of a diagnosis.

    Attributes
    ----------
    moments : Moments
        Of all rows; in a basis of them, if there are fewer rows than columns.
    few : bool
        Whether there are.
    sums : RowSums
        Over all rows.
    sample : mapping of ndarray
        "X" and perhaps "y" of the rows to compare objectives on, in the order of their hashes.
    kind : {"none", "labels", "targets"}
    classes : int
        Number of classes; 0 without labels.
    """

    moments: Moments
    few: bool
    sums: RowSums
    sample: Columns
    kind: Kind
    classes: int


@dataclass(eq=False)
class _Collected:
    """What is kept of rows; additive. Of fewer rows than columns the rows themselves, as their basis comes last."""

    sums: RowSums
    sample: RowSample
    moments: Moments
    rows: Columns
    labels: Counter[object]

    def __post_init__(self) -> None:
        if len(self.labels) > max(MOST_CLASSES, self.sums.rows / 10):
            raise InvalidInputError(
                f"The labels have {len(self.labels)} different values in {self.sums.rows} rows: they {_NAMES}"
            )

    def merge(self, other: _Collected) -> _Collected:
        """Merge the data of other rows into this object."""
        self.labels.update(other.labels)
        return _Collected(
            self.sums.merge(other.sums),
            self.sample.merge(other.sample),
            self.moments.merge(other.moments),
            joined(self.rows, other.rows),
            self.labels,
        )


def gather(X: ArrayLike, y: ArrayLike | None = None, kind: str = "auto") -> Gathered:
    """Gather from rows in memory."""
    X = np.asarray(X) if np.asarray(X).dtype == np.float16 else check_matrix(X, OWNER)
    if X.ndim != 2 or 0 in X.shape:
        X = check_matrix(X, OWNER)
    return gather_batches([(X, y)], len(X), X.shape[1], kind)


def gather_batches(
    batches: Iterable[tuple[ArrayLike, ArrayLike | None]],
    rows: int,
    width: int,
    kind: str = "auto",
    progress: Callable[[int], object] = lambda rows: None,
) -> Gathered:
    """Gather from batches of rows with their labels or targets (None without).

    Parameters
    ----------
    batches : iterable of (X, y)
    rows, width : int
        Total number of rows, and number of columns.
    kind : {"auto", "none", "labels", "targets"}
        Type of y; "auto" is resolved by the first batch.
    progress : callable (rows) -> None
        Called with the number of rows just processed.
    """
    batches = iter(batches)
    start = next(batches, None)
    if start is None:
        raise InvalidInputError(f"{OWNER} needs at least two rows. Got 0: pass a file with rows.")
    if kind not in ("auto", "none", "labels", "targets"):
        raise bad_parameter("kind", OWNER, "'auto', 'labels' or 'targets'", kind)
    if start[1] is None or kind == "none":
        kind = "none"
    elif kind == "auto":
        kind = "targets" if np.asarray(start[1]).dtype.kind == "f" or np.ndim(start[1]) == 2 else "labels"

    def checked(X: ArrayLike, y: ArrayLike | None, first: int) -> dict[str, np.ndarray]:
        """Return checked rows with their labels or targets; `first` is the number of the first row."""
        X = np.asarray(X)
        # float16 is kept, so that the moments know its precision.
        if X.dtype != np.float16 or X.ndim != 2 or not np.isfinite(X).all():
            X = check_matrix(X, OWNER, width=width)
        if kind == "none":
            return {"X": X}
        if y is None:
            raise InvalidInputError(f"{OWNER} needs 'y' for kind='{kind}'. Got None: pass y, or omit kind.")
        y = as_labels(y, OWNER)
        if kind == "targets":
            return {"X": X, "y": check_targets(y, len(X), OWNER, first).astype(np.float64)}
        y = check_labels(y, len(X), OWNER, first)
        return {"X": X, "y": y.astype(str) if y.dtype.kind in "OT" else y}

    def blocks(end: int) -> Iterator[Chunk]:
        for X, y in chain([start], batches):
            columns = checked(X, y, end) if np.shape(X)[0] else {"X": np.empty((0, width))}
            for row in range(0, len(columns["X"]), BLOCK_ROWS):
                block = {name: part[row : row + BLOCK_ROWS] for name, part in columns.items()}
                end += len(block["X"])
                yield Chunk(block, end)

    def collect(columns: Columns) -> _Collected:
        alone = row_hashes({"X": columns["X"]})
        both = joined_hashes(alone, row_hashes({"y": columns["y"]})) if "y" in columns else alone
        sample = RowSample(min(MOST_ROWS, max(256, MOST_NUMBERS // width)))
        sample.update(columns, (alone & ~_LABEL_BITS) | (both & _LABEL_BITS))
        moments, kept = Moments(precision="float64"), {"X": columns["X"]}
        if rows >= width:
            moments, kept = moments.update(columns["X"]), {}
        labels = Counter(columns["y"].tolist()) if kind == "labels" else Counter()
        return _Collected(RowSums(columns["X"], alone, both if labels else None), sample, moments, kept, labels)

    done = accumulate(collect, Chunks(blocks), HoldOut.nothing(), progress=progress)
    found = done.statistics
    if done.read < 2 or found is None:
        raise InvalidInputError(f"A diagnosis needs at least two rows. Got {done.read}.")
    once = sum(count == 1 for count in found.labels.values())
    if found.labels and done.read >= FEWEST_NAMED and once >= NAMED_SHARE * done.read:
        raise InvalidInputError(f"{once} of {done.read} labels occur once: they {_NAMES}")
    moments, few = found.moments, bool(found.rows)
    if few:  # with fewer rows than columns, in a basis of the rows
        X = found.rows["X"].astype(np.float64)
        moments = Moments().update(X @ row_space(X))
    sample = {name: half_as_single(part) for name, part in found.sample.columns.items()}
    return Gathered(moments, few, found.sums, sample, kind, len(found.labels))  # type: ignore[arg-type]
