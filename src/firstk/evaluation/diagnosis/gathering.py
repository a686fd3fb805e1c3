"""One pass over the rows: moments, a held-out part, rows to look among, and sums that describe the vectors.

Which rows are held out, and which are kept as references, is decided by a hash of the vectors alone. So a file read in
any batches gives the same diagnosis, whatever its classes are called, and two copies never stand on both sides.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from firstk._base.checks import check_matrix, check_same_length
from firstk._base.linalg import row_space
from firstk.evaluation.diagnosis.axes import Axes
from firstk.evaluation.diagnosis.vectors import RowSums
from firstk.exceptions import InvalidInputError
from firstk.moments.moments import Moments
from firstk.moments.row_sample import RowSample, joined_hashes, row_hashes
from firstk.moments.scatter import NO_LABEL
from firstk.moments.targets import as_labels

Kind = Literal["none", "labels", "targets"]
OWNER = "diagnose"
# Rows are held out up to a quarter of all; beyond MOST_HELD more of them would sharpen no decimal that is shown.
HELD_SHARE, MOST_HELD = 0.25, 2048
# Rows kept to look for neighbors among, and numbers in them: fewer rows of wide vectors.
MOST_REFERENCES, MOST_NUMBERS = 8192, 1 << 24
BLOCK_ROWS = 16384
# More classes than this, and more than a tenth of the rows, are names of rows and not classes.
MOST_CLASSES = 2000
# From this many rows on, labels of which this share occur once are names too.
FEWEST_NAMED, NAMED_SHARE = 20, 0.9
# Copies of one vector share its hash; these bits of it make room for the label, so that their order is settled too.
_LABEL_BITS = np.uint64(0xFFFF)
_NAMES = "look like names of rows, not like classes. Give another column, or targets if they are numbers to predict."


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows on which codes are judged, along principal axes.

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
    """What a diagnosis computes from, in working coordinates: those of `basis` with fewer rows than columns.

    Attributes
    ----------
    moments : Moments
        Of the rows that are not held out.
    X_ref, y_ref : ndarray
        A sample of those rows.
    X_held, y_held : ndarray
        The rows held out; empty without labels or targets.
    sums : RowSums
        Of all rows, as they came.
    kind : {"none", "labels", "targets"}
    basis : ndarray of shape (p, r) or None
    few : Moments or None
        Of all rows, held out or not, where there are fewer of them than columns.
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


class Gathering:
    """Take in batches of rows; `finish` hands out what was gathered.

    Parameters
    ----------
    rows : int
        How many rows will come, which decides how many are held out.
    width : int
    kind : {"none", "labels", "targets"}
        What stands beside the rows.
    """

    def __init__(self, rows: int, width: int, kind: Kind = "none"):
        self.width, self.kind = width, kind
        self.few = rows < width
        share = 0.0 if kind == "none" else min(HELD_SHARE, MOST_HELD / max(rows, 1))
        self.threshold = np.uint64(int(share * (2**64 - 1)))
        self.moments = Moments(precision="float64")
        self.references = RowSample(max(256, min(MOST_REFERENCES, MOST_NUMBERS // width)))
        self.sums = RowSums(width, labelled=kind == "labels")
        self.held: list[dict[str, np.ndarray]] = []
        self.kept: list[dict[str, np.ndarray]] = []

    def update(self, X: Any, y: Any = None) -> Gathering:
        """Take in rows, with their labels or targets."""
        X = np.asarray(X)
        # float16 stays as it is for the moments, which then know its precision.
        if X.dtype != np.float16 or X.ndim != 2 or not np.isfinite(X).all():
            X = check_matrix(X, OWNER, width=self.width)
        y = checked_target(y, self.kind, len(X), self.sums.rows)
        for start in range(0, len(X), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            self._take(X[rows], None if y is None else y[rows])
        return self

    def _take(self, X: np.ndarray, y: np.ndarray | None) -> None:
        columns = {"X": X} if y is None else {"X": X, "y": y}
        alone = row_hashes({"X": X})
        both = alone if y is None else joined_hashes(alone, row_hashes({"y": y}))
        self.sums.update(X, alone, both)
        out = alone < self.threshold
        priority = (alone & ~_LABEL_BITS) | (both & _LABEL_BITS)
        if out.any():
            self.held.append({name: part[out] for name, part in columns.items()})
            columns, priority = {name: part[~out] for name, part in columns.items()}, priority[~out]
        if len(priority) == 0:
            return
        self.references.update(columns, priority)
        if self.few:
            self.kept.append(columns)
        else:
            self._measure(self.moments, **columns)
            self._check_classes()

    def _measure(self, moments: Moments, X: np.ndarray, y: np.ndarray | None = None) -> Moments:
        return moments.update(X, **{"none": {}, "labels": {"y": y}, "targets": {"targets": y}}[self.kind])

    def _check_classes(self) -> None:
        classes = self.moments.classes
        if classes is not None and len(classes) > max(MOST_CLASSES, self.moments.rows / 10):
            raise InvalidInputError(
                f"The labels have {len(classes)} different values in {self.moments.rows} rows: they {_NAMES}"
            )

    def _check_names(self, held: np.ndarray) -> None:
        """Refuse labels that hardly ever occur twice, in all rows together."""
        classes, rows = self.moments.classes, self.sums.rows
        if classes is None or rows < FEWEST_NAMED:
            return
        counts = dict(zip(classes.tolist(), np.rint(self.moments.class_shares * self.moments.n), strict=True))
        for label in held.tolist():
            counts[label] = counts.get(label, 0) + 1
        once = sum(count == 1 for count in counts.values())
        if once >= NAMED_SHARE * rows:
            raise InvalidInputError(f"{once} of {rows} labels occur once: they {_NAMES}")

    def finish(self) -> Gathered:
        """Return what was gathered; with fewer rows than columns, in a basis of the rows."""
        if self.sums.rows < 2:
            raise InvalidInputError(f"A diagnosis needs at least two rows. Got {self.sums.rows}.")
        held, kept = _joined(self.held, self.width), _joined(self.kept, self.width)
        if not len(self.references):  # copies of one vector, or of a few, that were all held out: then none is
            self._return(held)
            held, kept = _joined([], self.width), _joined(self.kept, self.width)
        references = {name: self.references.columns.get(name, held[name][:0]) for name in ("X", "y")}
        basis = few = None
        if self.few:
            everyone = np.concatenate([held["X"], kept["X"]]).astype(np.float64)
            few = Moments().update(everyone @ row_space(everyone))
            basis = row_space(kept["X"].astype(np.float64))
            self._measure(self.moments, kept["X"] @ basis, kept["y"] if len(kept["y"]) else None)
            held, references = ({"X": part["X"] @ basis, "y": part["y"]} for part in (held, references))
        self._check_names(held["y"])
        return Gathered(
            self.moments, references["X"], references["y"], held["X"], held["y"], self.sums, self.kind, basis, few
        )  # fmt: skip

    def _return(self, held: dict[str, np.ndarray]) -> None:
        """Take rows that were held out as if they had not been."""
        columns = {name: part for name, part in held.items() if len(part)}
        self.references.update(columns)
        if self.few:
            self.kept.append(columns)
        else:
            self._measure(self.moments, **columns)


def gather(X: Any, y: Any, kind: Kind) -> Gathered:
    """Gather from rows that are at hand as a whole."""
    X = np.asarray(X) if np.asarray(X).dtype == np.float16 else check_matrix(X, OWNER)
    if X.ndim != 2 or 0 in X.shape:
        X = check_matrix(X, OWNER)
    return Gathering(len(X), X.shape[1], kind).update(X, y).finish()


def gather_batches(batches: Iterable[tuple[Any, Any]], rows: int, width: int, kind: Kind) -> Gathered:
    """Gather from batches of rows with their labels or targets (None without)."""
    gathering = Gathering(rows, width, kind)
    for X, y in batches:
        gathering.update(X, y)
    return gathering.finish()


def checked_target(y: Any, kind: Kind, n: int, start: int = 0) -> np.ndarray | None:
    """Return labels as numbers or text, targets as float64; missing ones are refused with their rows from `start`."""
    if kind == "none":
        return None
    if y is None:
        raise InvalidInputError(f"{OWNER} was told of {kind} and got none.")
    y = as_labels(y, OWNER)
    check_same_length(range(n), y, "X", "y", OWNER)
    if kind == "targets":
        return _numbers(y, start)
    if y.ndim != 1:
        raise InvalidInputError(f"{OWNER} takes one label a row. Got labels of shape {y.shape}.")
    gaps = np.array([label is None or label != label for label in y]) if y.dtype.kind in "fOT" else np.zeros(n, bool)
    _refuse_gaps(gaps, "labels", start)
    return np.array([str(label) for label in y]) if y.dtype.kind in "OT" else y


def _numbers(y: np.ndarray, start: int) -> np.ndarray:
    try:
        values = y.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{OWNER} takes numbers as targets, and these are {y.dtype}. Give them as labels instead."
        ) from None
    finite = np.isfinite(values.reshape(len(values), -1))
    _refuse_gaps(np.asarray(~finite.all(axis=1)), "targets", start)
    return values


def _refuse_gaps(gaps: np.ndarray, name: str, start: int) -> None:
    bad = np.flatnonzero(gaps) + start
    if len(bad):
        shown = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
        raise InvalidInputError(
            f"{OWNER} found {len(bad)} missing {name} (row {shown}). Drop or fill those rows first."
        )


def _joined(parts: list[dict[str, np.ndarray]], width: int) -> dict[str, np.ndarray]:
    """Put batches together; empty arrays where there are none."""
    empty = {"X": np.zeros((0, width)), "y": np.zeros(0)}
    return {
        name: np.concatenate([part[name] for part in parts]) if parts and name in parts[0] else empty[name]
        for name in empty
    }
