"""One pass over the rows: moments, held-out rows, reference rows, and sums for the facts about the vectors.

A hash of each vector decides whether it is held out or kept as a reference. So the diagnosis depends neither on the
batch size nor on the names of classes, and copies of a vector are never in both parts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_matrix
from firstk._base.linalg import row_space
from firstk._base.rows import half_as_single
from firstk.advice.diagnosis.axes import Axes
from firstk.advice.diagnosis.vectors import RowSums
from firstk.exceptions import InvalidInputError
from firstk.moments.fingerprint import joined_hashes, row_hashes
from firstk.moments.moments import NO_LABEL, Moments
from firstk.moments.statistics import RowSample
from firstk.moments.stream import Accumulated, Chunk, Chunks, Columns, HashHoldOut, accumulate, joined
from firstk.moments.targets import as_labels, check_labels, check_targets

Kind = Literal["none", "labels", "targets"]
OWNER = "diagnose"
# At most a quarter of the rows is held out, and at most MOST_HELD: more would not change the decimals shown.
HELD_SHARE, MOST_HELD = 0.25, 2048
# Maximum number of reference rows for neighbor search, and of numbers in them: fewer rows if vectors are wide.
MOST_REFERENCES, MOST_NUMBERS = 8192, 1 << 24
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
class HeldOut:
    """Rows on which codes are evaluated, along principal axes.

    Attributes
    ----------
    U, y : ndarray of shape (n, r), (n,)
        Held-out rows in whitened coordinates, and their labels or targets.
    T_ref, y_ref : ndarray of shape (m, r), (m,)
        Reference rows in plain principal coordinates, float32, and theirs.
    kind : {"none", "labels", "targets"}
    """

    U: np.ndarray
    y: np.ndarray
    T_ref: np.ndarray
    y_ref: np.ndarray
    kind: Kind


@dataclass(frozen=True, eq=False)
class Gathered:
    """Input of a diagnosis, in the coordinates of `basis` if there are fewer rows than columns.

    Attributes
    ----------
    moments : Moments
        Moments of the rows that are not held out.
    X_ref, y_ref : ndarray
        A sample of those rows.
    X_held, y_held : ndarray
        The held-out rows; empty without labels or targets.
    sums : RowSums
        Sums over all rows, in the original coordinates.
    kind : {"none", "labels", "targets"}
    basis : ndarray of shape (p, r) or None
    few : Moments or None
        Moments of all rows, held out or not, if there are fewer rows than columns.
    X_sample, y_sample : ndarray
        Held-out and reference rows together, in the original coordinates, ordered by their hashes.
    """

    moments: Moments
    X_ref: np.ndarray
    y_ref: np.ndarray
    X_held: np.ndarray
    y_held: np.ndarray
    sums: RowSums
    kind: Kind
    basis: np.ndarray | None = None
    few: Moments | None = None
    X_sample: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    y_sample: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def everything(self) -> Moments:
        """Moments of all rows, held out or not, without labels."""
        if self.few is not None:
            return self.few
        alone = copy.copy(self.moments)
        F = self.moments.between_factor
        alone.labelled, alone.group_labels = False, NO_LABEL
        alone.q, p = 0, self.moments.p
        alone.group_weight, alone.group_mean = np.array([alone.n]), self.moments.mean[None]
        alone.within = (self.moments.within + alone.n * (F @ F.T))[:p, :p]
        return alone if len(self.X_held) == 0 else Moments("float64").merge(alone).update(self.X_held)

    def along(self, axes: Axes) -> HeldOut:
        """Return held-out and reference rows in the coordinates of principal axes."""
        P = axes.P.astype(np.float32)
        T_ref = (self.X_ref - axes.mean).astype(np.float32) @ P
        return HeldOut(axes.whitened(self.X_held), self.y_held, T_ref, self.y_ref, self.kind)


@dataclass(eq=False)
class _Collected:
    """Data kept of rows that are not held out; additive.

    Attributes
    ----------
    sums : RowSums
    references : RowSample
    moments : Moments
        Empty if there are fewer rows than columns, because their basis is known only at the end.
    rows : mapping of ndarrays
        The rows themselves, in that case.
    """

    sums: RowSums
    references: RowSample
    moments: Moments
    rows: Columns

    def __post_init__(self) -> None:
        classes = self.moments.classes
        if classes is not None and len(classes) > max(MOST_CLASSES, self.moments.rows / 10):
            raise InvalidInputError(
                f"The labels have {len(classes)} different values in {self.moments.rows} rows: they {_NAMES}"
            )

    def merge(self, other: _Collected) -> _Collected:
        """Merge the data of other rows into this object."""
        return _Collected(
            self.sums.merge(other.sums),
            self.references.merge(other.references),
            self.moments.merge(other.moments),
            joined(self.rows, other.rows),
        )


@dataclass(frozen=True)
class _Collector:
    """Settings of the collection, known before the first row is read.

    Attributes
    ----------
    rows, width : int
        Expected number of rows, which determines how many are held out, and number of columns.
    kind : {"none", "labels", "targets"}
        Whether rows have labels or targets.
    """

    rows: int
    width: int
    kind: Kind

    @property
    def few(self) -> bool:
        """Whether there are fewer rows than columns."""
        return self.rows < self.width

    @property
    def hold_out(self) -> HashHoldOut:
        """The rule that selects held-out rows."""
        return HashHoldOut(0.0 if self.kind == "none" else min(HELD_SHARE, MOST_HELD / max(self.rows, 1)))

    def chunks(self, batches: Iterable[tuple[ArrayLike, ArrayLike | None]]) -> Chunks:
        """Return batches as a stream, checked and split into blocks."""

        def after(end: int) -> Iterator[Chunk]:
            for X, y in batches:
                columns = self.checked(X, y, end)
                for start in range(0, len(columns["X"]), BLOCK_ROWS):
                    block = {name: part[start : start + BLOCK_ROWS] for name, part in columns.items()}
                    end += len(block["X"])
                    yield Chunk(block, end)

        return Chunks(after)

    def checked(self, X: ArrayLike, y: ArrayLike | None, first: int) -> dict[str, np.ndarray]:
        """Return checked rows with their labels or targets; `first` is the number of the first row."""
        X = np.asarray(X)
        # float16 is kept, so that the moments know its precision.
        if X.dtype != np.float16 or X.ndim != 2 or not np.isfinite(X).all():
            X = check_matrix(X, OWNER, width=self.width)
        if self.kind == "none":
            return {"X": X}
        if y is None:
            raise InvalidInputError(f"{OWNER} needs 'y' for kind='{self.kind}'. Got None: pass y, or omit kind.")
        y = as_labels(y, OWNER)
        if self.kind == "targets":
            return {"X": X, "y": check_targets(y, len(X), OWNER, first).astype(np.float64)}
        y = check_labels(y, len(X), OWNER, first)
        return {"X": X, "y": y.astype(str) if y.dtype.kind in "OT" else y}

    def collect(self, columns: Columns) -> _Collected:
        """Collect rows that are not held out."""
        alone, both = _hashes(columns)
        references = RowSample(max(256, min(MOST_REFERENCES, MOST_NUMBERS // self.width)))
        references.update(columns, (alone & ~_LABEL_BITS) | (both & _LABEL_BITS))
        moments, rows = Moments(precision="float64"), dict(columns)
        if not self.few:
            moments, rows = self.measure(moments, columns), {}
        return _Collected(self.sums(columns, alone, both), references, moments, rows)

    def sums(self, columns: Columns, alone: np.ndarray, both: np.ndarray) -> RowSums:
        """Return the sums of rows, by their hashes without and with labels."""
        return RowSums(columns["X"], alone, both if self.kind == "labels" else None)

    def measure(self, moments: Moments, columns: Columns) -> Moments:
        """Update moments with rows and their labels or targets."""
        named = {"none": {}, "labels": {"y": columns.get("y")}, "targets": {"targets": columns.get("y")}}
        return moments.update(columns["X"], **named[self.kind])

    def finish(self, done: Accumulated[_Collected]) -> Gathered:
        """Return the gathered data; with fewer rows than columns, in a basis of the rows."""
        if done.read < 2:
            raise InvalidInputError(f"A diagnosis needs at least two rows. Got {done.read}.")
        empty = {"X": np.zeros((0, self.width)), "y": np.zeros(0)}
        held, found = empty | dict(done.held), done.statistics
        if found is None:  # all rows are copies of a few held-out vectors: then hold out none
            held, found = empty, self.collect(done.held)
        if len(held["X"]):
            found.sums.merge(self.sums(done.held, *_hashes(done.held)))
        moments, basis, few = found.moments, None, None
        references = empty | found.references.columns
        sample = _by_hash(held, references, self.kind)
        if self.few:
            rows = {name: part.astype(np.float64) if name == "X" else part for name, part in found.rows.items()}
            everyone = np.concatenate([held["X"], rows["X"]])
            few = Moments().update(everyone @ row_space(everyone))
            basis = row_space(rows["X"])
            moments = self.measure(moments, rows | {"X": rows["X"] @ basis})
            held, references = ({"X": part["X"] @ basis, "y": part["y"]} for part in (held, references))
        _check_names(moments, held["y"])
        return Gathered(
            moments, references["X"], references["y"], held["X"], held["y"], found.sums, self.kind, basis, few,
            sample["X"], sample["y"],
        )  # fmt: skip


def _hashes(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes of rows alone, and with their labels or targets."""
    alone = row_hashes({"X": columns["X"]})
    return alone, joined_hashes(alone, row_hashes({"y": columns["y"]})) if "y" in columns else alone


def _by_hash(held: Columns, references: Columns, kind: Kind) -> dict[str, np.ndarray]:
    """Return all rows at hand in the order of their hashes, which no order of the rows in a file changes."""
    parts = [references, held] if len(held["X"]) else [references]
    names = ("X",) if kind == "none" else ("X", "y")
    rows = {name: np.concatenate([half_as_single(part[name]) for part in parts]) for name in names}
    alone, both = _hashes(rows)
    order = np.lexsort((both, alone))
    return {"X": np.zeros((0, 0)), "y": np.zeros(0)} | {name: part[order] for name, part in rows.items()}


def _check_names(moments: Moments, held: np.ndarray) -> None:
    """Raise InvalidInputError if almost every label occurs only once."""
    classes, rows = moments.classes, moments.rows + len(held)
    if classes is None or rows < FEWEST_NAMED:
        return
    counts = dict(zip(classes.tolist(), np.rint(moments.class_shares * moments.n), strict=True))
    for label in held.tolist():
        counts[label] = counts.get(label, 0) + 1
    once = sum(count == 1 for count in counts.values())
    if once >= NAMED_SHARE * rows:
        raise InvalidInputError(f"{once} of {rows} labels occur once: they {_NAMES}")


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
    first = next(batches, None)
    if first is None:
        raise InvalidInputError(f"{OWNER} needs at least two rows. Got 0: pass a file with rows.")
    collector = _Collector(rows, width, settled_kind(first[1], kind))
    full = (batch for batch in chain([first], batches) if np.shape(batch[0])[0])
    return collector.finish(
        accumulate(collector.collect, collector.chunks(full), collector.hold_out, progress=progress)
    )


def settled_kind(y: ArrayLike | None, kind: str) -> Kind:
    """Return the kind of `y`: with "auto", floating-point numbers and several columns are targets."""
    if kind not in ("auto", "none", "labels", "targets"):
        raise bad_parameter("kind", OWNER, "'auto', 'labels' or 'targets'", kind)
    if y is None or kind == "none":
        return "none"
    if kind == "auto":
        return "targets" if np.asarray(y).dtype.kind == "f" or np.ndim(y) == 2 else "labels"
    return "labels" if kind == "labels" else "targets"
