"""Centred sums of one batch: group means and the scatter within groups, in one pass over blocks of rows.

Rows are centred by rough means of their groups, taken from a few rows; the sums of what is left put the roughness
right. So nothing is ever a raw sum of squares, and the data are read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from firstk._base.checks import check_matrix, check_same_length, check_weights, largest_of, too_small
from firstk._base.rows import Rows, as_dense, is_sparse, sliceable
from firstk.exceptions import InvalidInputError

# Entries of a block: about 12 MiB of float32, a compromise between cache and the cost of adding up products.
_BLOCK_ENTRIES = 3_200_000
# Rows of a block at most: products are summed in the working precision over a block, and their error grows with it.
_BLOCK_ROWS = 32_768
# Rows whose means are near enough to centre by without losing digits.
_ANCHOR_ROWS = 256
NO_LABEL = np.array([""])


@dataclass(frozen=True, eq=False)
class Batch:
    """A checked batch of rows."""

    X: np.ndarray | sparse.csr_matrix  # (n, p)
    y: np.ndarray | None
    targets: np.ndarray | None  # (n, q)
    weights: np.ndarray | None
    dtype: type  # in which rows are centred and multiplied
    owner: str = "Moments.update"  # what an error message calls the caller

    @property
    def p(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    @property
    def width(self) -> int:
        """Number of columns and targets."""
        return self.p + (0 if self.targets is None else self.targets.shape[1])

    def centred(self, rows: slice | np.ndarray, centre: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the given rows, targets beside them, less `centre` into `out`; return the part that is filled.

        `centre` may be that part of `out` itself.
        """
        block = as_dense(self.X[rows])
        out = out[: len(block)]
        np.subtract(block, centre[:, : self.p], out=out[:, : self.p], casting="same_kind")
        if self.targets is not None:
            np.subtract(self.targets[rows], centre[:, self.p :], out=out[:, self.p :], casting="same_kind")
        return out


def check_batch(
    X: Rows,
    y: ArrayLike | None,
    targets: ArrayLike | None,
    weights: ArrayLike | None,
    precision: str,
    owner: str = Batch.owner,
) -> Batch:
    """Check shapes and types; finiteness is checked on the sums, where it costs nothing."""
    X = sliceable(X)
    if is_sparse(X):
        if 0 in X.shape:
            raise InvalidInputError(f"{owner} needs at least one row and one column in 'X'. Got shape {X.shape}.")
    elif X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "fiub":
        X = check_matrix(X, owner)
    n = X.shape[0]
    if y is not None:
        y = np.asarray(y)
        if y.ndim != 1:
            raise InvalidInputError(f"{owner} takes one label a row. Got labels of shape {y.shape}.")
        check_same_length(range(n), y, "X", "y", owner)
    if targets is not None:
        targets = np.asarray(targets)
        targets = check_matrix(targets.reshape(n, -1) if len(targets) == n else targets, owner, "targets")
        check_same_length(range(n), targets, "X", "targets", owner)
    narrow = X.dtype.kind == "f" and X.dtype.itemsize <= 4 and precision == "auto"
    return Batch(X, y, targets, check_weights(weights, n, owner), np.float32 if narrow else np.float64, owner)


class Groups:
    """The groups that the rows of a batch fall into; one when there are no labels."""

    def __init__(self, batch: Batch):
        n = batch.X.shape[0]
        if batch.y is None:
            self.labels, self.codes = NO_LABEL, np.zeros(n, dtype=np.intp)
        else:
            self.labels, self.codes = np.unique(batch.y, return_inverse=True)
        self.count = len(self.labels)
        self.row_weight = np.ones(n) if batch.weights is None else batch.weights
        self.weight: np.ndarray = np.bincount(self.codes, self.row_weight, minlength=self.count)

    def anchors(self, batch: Batch) -> np.ndarray:
        """Rough group means, in float64, of a few rows spread over the batch and at least one of every group.

        A row that outweighs the others is its group's mean, nearly: centred by anything else, it would leave the
        scatter as the small difference of two large numbers. So such rows are always among the few.
        """
        weight, counted = self.row_weight, np.flatnonzero(self.row_weight)
        first = np.full(self.count, -1)
        first[self.codes[counted[::-1]]] = counted[::-1]
        few = np.union1d(counted[:: max(1, len(counted) // _ANCHOR_ROWS)], first[first >= 0])
        if batch.weights is not None:
            rows = np.bincount(self.codes[counted], minlength=self.count)
            heavy = np.maximum(self.weight / _ANCHOR_ROWS, 4 * self.weight / np.maximum(rows, 1))
            few = np.union1d(few, np.flatnonzero(weight > heavy[self.codes]))
        share = weight[few] / np.bincount(self.codes[few], weight[few], minlength=self.count)[self.codes[few]]
        with np.errstate(over="ignore", invalid="ignore"):
            rows = batch.centred(few, np.zeros((1, batch.width)), np.empty((len(few), batch.width)))
            return self._indicator(self.codes[few], share) @ rows

    def spread(self, anchors: np.ndarray, rows: slice, out: np.ndarray) -> np.ndarray:
        """Return the anchor of each of the given rows, written into `out`; where there is one group, its anchor."""
        if self.count == 1:
            return anchors
        codes = self.codes[rows]
        return np.take(anchors, codes, axis=0, out=out[: len(codes)], mode="clip")  # "raise" would need a copy

    def sums(self, block: np.ndarray, rows: slice) -> np.ndarray:
        """Weighted sums of a block's rows over groups, shape (groups, width)."""
        weight = self.row_weight[rows].astype(block.dtype)
        if self.count == 1:
            return (weight @ block)[None]
        return self._indicator(self.codes[rows], weight) @ block

    def _indicator(self, codes: np.ndarray, values: np.ndarray) -> sparse.csr_matrix:
        return sparse.csr_matrix((values, (codes, np.arange(len(codes)))), shape=(self.count, len(codes)))


def batch_scatter(batch: Batch) -> tuple[Groups, np.ndarray, np.ndarray]:
    """Return the groups of a batch, their means and the scatter within them, undivided, in float64."""
    groups, means, scatter = _centred_sums(batch)
    variation, floor = np.diag(scatter), _smallest_square(batch)
    # Squares that small have lost digits, or are gone altogether: look again with more of them.
    if batch.dtype is np.float32 and (np.all(variation <= 0) or np.any((variation > 0) & (variation < floor))):
        batch = replace(batch, dtype=np.float64)
        groups, means, scatter = _centred_sums(batch)
        variation, floor = np.diag(scatter), _smallest_square(batch)
    if 0 < variation.max() < floor:
        raise _too_small(batch)
    return groups, means, scatter


def _too_small(batch: Batch) -> InvalidInputError:
    """Build the error for values or weights whose products are short of digits."""
    if batch.weights is not None and (weight := batch.weights.max()) < min(1.0, largest_of(batch.X)):
        return InvalidInputError(
            f"{batch.owner} met weights too small for their precision: the largest is {weight:.1e}. Divide all weights "
            "by it: only their ratios matter."
        )
    return too_small(largest_of(batch.X), batch.owner)


def _smallest_square(batch: Batch) -> float:
    """Sum of squares below which the squares themselves may be short of digits."""
    precision = np.finfo(batch.dtype)
    return float(batch.X.shape[0] * precision.tiny / precision.eps)


def _centred_sums(batch: Batch) -> tuple[Groups, np.ndarray, np.ndarray]:
    """Do the work of `batch_scatter` in the precision of the batch."""
    groups = Groups(batch)
    anchors: np.ndarray = groups.anchors(batch).astype(batch.dtype)
    residual = np.zeros((groups.count, batch.width))
    scatter = np.zeros((batch.width, batch.width))
    product: np.ndarray = np.empty((batch.width, batch.width), dtype=batch.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite raises an error below
        for rows, buffer in _blocks(batch):
            block = batch.centred(rows, groups.spread(anchors, rows, buffer), buffer)
            residual += groups.sums(block, rows)
            if batch.weights is not None:
                block *= np.sqrt(batch.weights[rows]).astype(batch.dtype)[:, None]
            # numpy sees that this is symmetric and does half the work; scipy's BLAS would do the same, but its threads
            # and numpy's wait for one another.
            scatter += np.matmul(block.T, block, out=product)
        safe = np.where(groups.weight > 0, groups.weight, 1.0)[:, None]
        scatter -= (residual / safe).T @ residual
    _check_sums(residual, scatter, batch)
    return groups, anchors.astype(np.float64) + residual / safe, scatter


def _blocks(batch: Batch) -> Iterator[tuple[slice, np.ndarray]]:
    """Cut the rows into blocks, with one buffer for all of them.

    Blocks are of even size: a last block of a few rows would cost as much bookkeeping as a full one.
    """
    n = batch.X.shape[0]
    step = -(-n // max(1, round(n / max(64, min(_BLOCK_ENTRIES // batch.width, _BLOCK_ROWS)))))
    buffer = np.empty((step, batch.width), dtype=batch.dtype)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        yield rows, buffer


def _check_sums(residual: np.ndarray, scatter: np.ndarray, batch: Batch) -> None:
    """Raise InvalidInputError for NaN and infinities: one of them anywhere makes a sum that is not finite."""
    if np.isfinite(residual).all() and np.isfinite(scatter).all():
        return
    check_matrix(as_dense(batch.X), batch.owner)
    raise InvalidInputError(f"{batch.owner} met numbers too large for their precision: scale the columns down first.")
