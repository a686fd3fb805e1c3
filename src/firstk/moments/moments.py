"""Moments: all that a closed form needs to know of the data, in one pass, on any partition.

Rows fall into groups (classes, or one group when there are no labels). What is kept is the weight and mean of
each group and the scatter *within* groups, from which every other scatter follows; nothing is ever a raw sum
of squares, so offsets do no harm. ``update`` and ``merge`` are one operation, which makes the result independent
of batching, partition and order up to rounding.

The **resolution rule**: a column counts as constant when its standard deviation is at most ten roundings of its own
mean, or of the largest column's standard deviation. A rounding is 1.2e-7 of float32 numbers; of float64 it is so small
that columns in other units are safe. A closed form divides by standard deviations: an output that is dead in the model
that made the vectors, and holds rounding errors, would get a weight of ten million, and the rounding of a query would
decide its neighbors. Such columns are left out of every scatter here, which makes it one rule for all objectives.
Directions that are no columns need none: the scatter rank rule drops them.

The sums of one batch come first: rows are centred by rough means of their groups, taken from a few rows, and sums of
what is left correct them, in one pass over blocks of rows. Where rows have no labels and their mean is small beside
their spread, they are multiplied as they are, without a copy: the correction then costs less than a digit.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import block_diag

from firstk._base.checks import check_choice, check_matrix, check_same_length, check_weights, largest_of, too_small
from firstk._base.concurrency import cores, ordered_map
from firstk._base.progress import tracked
from firstk._base.rows import Resolution, Rows, as_dense, is_sparse, sliceable
from firstk.exceptions import CorruptModelError, InvalidInputError

# Entries of a block: about 12 MiB of float32, a compromise between cache and the cost of adding up products.
_BLOCK_ENTRIES = 3_200_000
# Rows of a block at most: products are summed in the working precision over a block, and their error grows with it.
_BLOCK_ROWS = 32_768
# Rows whose means are near enough to centre by without losing digits.
_ANCHOR_ROWS = 256
# Rows are multiplied as they are where the squared mean is at most so many times the variance, of each column and of
# all together: products then lose no more than a factor of ten in a column, and of three in the whole.
_COLUMN_OFFSET, _OFFSET = 9.0, 2.0
# Rows that are multiplied as they are at a time, and summed in the working precision; memory of products on all cores.
_PLAIN_ROWS, _SUMMED_ROWS, _PRODUCT_BYTES = 4096, 1024, 1 << 26
# Roundings that do not count as variation.
ROUNDINGS = 10
NO_LABEL = np.array([""])


@dataclass(frozen=True, eq=False)
class CheckedBatch:
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
    owner: str = CheckedBatch.owner,
) -> CheckedBatch:
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
    return CheckedBatch(X, y, targets, check_weights(weights, n, owner), np.float32 if narrow else np.float64, owner)


class Groups:
    """The groups that the rows of a batch fall into; one when there are no labels."""

    def __init__(self, batch: CheckedBatch):
        n = batch.X.shape[0]
        if batch.y is None:
            self.labels, self.codes = NO_LABEL, np.zeros(n, dtype=np.intp)
        else:
            self.labels, self.codes = np.unique(batch.y, return_inverse=True)
        self.count = len(self.labels)
        self.row_weight = np.ones(n) if batch.weights is None else batch.weights
        self.weight: np.ndarray = np.bincount(self.codes, self.row_weight, minlength=self.count)

    def anchors(self, batch: CheckedBatch) -> np.ndarray:
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


def batch_scatter(batch: CheckedBatch) -> tuple[Groups, np.ndarray, np.ndarray]:
    """Return the groups of a batch, their means and the scatter within them, undivided, in float64."""
    groups, means, scatter = _centred_sums(batch)
    variation, floor = np.diag(scatter), _smallest_square(batch)
    # Squares that small have lost digits, or are gone altogether: look again with more of them.
    if batch.dtype is np.float32 and (np.all(variation <= 0) or np.any((variation > 0) & (variation < floor))):
        batch = replace(batch, dtype=np.float64)
        groups, means, scatter = _centred_sums(batch)
        variation, floor = np.diag(scatter), _smallest_square(batch)
    if 0 < variation.max() < floor:
        if batch.weights is not None and (weight := batch.weights.max()) < min(1.0, largest_of(batch.X)):
            raise InvalidInputError(
                f"{batch.owner} met weights too small for their precision: the largest is {weight:.1e}. Divide all "
                "weights by it: only their ratios matter."
            )
        raise too_small(largest_of(batch.X), batch.owner)
    return groups, means, scatter


def _smallest_square(batch: CheckedBatch) -> float:
    """Sum of squares below which the squares themselves may be short of digits."""
    precision = np.finfo(batch.dtype)
    return float(batch.X.shape[0] * precision.tiny / precision.eps)


def _centred_sums(batch: CheckedBatch) -> tuple[Groups, np.ndarray, np.ndarray]:
    """Do the work of `batch_scatter` in the precision of the batch."""
    groups = Groups(batch)
    if _is_near_origin(batch):
        return groups, *_plain_sums(batch, groups)
    anchors: np.ndarray = groups.anchors(batch).astype(batch.dtype)
    residual = np.zeros((groups.count, batch.width))
    scatter = np.zeros((batch.width, batch.width))
    product: np.ndarray = np.empty((batch.width, batch.width), dtype=batch.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite raises an error below
        blocks = _blocks(batch)
        for rows, buffer in tracked(blocks, batch.X.shape[0], "multiplying", "row", lambda part: len(part[1])):
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


def _is_near_origin(batch: CheckedBatch) -> bool:
    """Tell whether rows can be multiplied as they are, by a few rows spread over the batch."""
    X, n = batch.X, batch.X.shape[0]
    if is_sparse(X) or batch.width > batch.p or batch.y is not None or batch.weights is not None:
        return False
    if X.dtype != batch.dtype or not X.flags.c_contiguous or n < 2 * _ANCHOR_ROWS:
        return False
    few = X[:: n // _ANCHOR_ROWS].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # comparisons of NaN are false
        offset, variance = few.mean(axis=0) ** 2, few.var(axis=0)
        return bool(np.all(offset <= _COLUMN_OFFSET * variance) and offset.sum() <= _OFFSET * variance.sum())


def _plain_sums(batch: CheckedBatch, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the scatter of rows that need no centring before they are multiplied."""
    X, n, p = batch.X, batch.X.shape[0], batch.p
    total, scatter = np.zeros((1, p)), np.zeros((p, p))
    steps = range(0, n, -(-n // -(-n // _PLAIN_ROWS)))

    def sums(start: int) -> tuple[int, np.ndarray, np.ndarray]:
        block, found = X[start : start + steps.step], np.zeros((1, p))
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite raises an error below
            for first in range(0, len(block), _SUMMED_ROWS):
                part = slice(first, min(first + _SUMMED_ROWS, len(block)))
                found += groups.sums(block[part], slice(start + part.start, start + part.stop))
            return len(block), found, block.T @ block

    # Blocks beside one another keep the cores busy better than the threads of BLAS on one after the other.
    workers = min(cores(), len(steps) // 2, _PRODUCT_BYTES // (p * p * batch.X.itemsize))
    parts = ordered_map(sums, steps, workers) if workers > 1 else map(sums, steps)
    with np.errstate(over="ignore", invalid="ignore"):
        for _, found, product in tracked(parts, n, "multiplying", "row", lambda part: part[0]):
            total += found
            scatter += product
        mean = total / n
        scatter -= mean.T @ total
    _check_sums(total, scatter, batch)
    return mean, scatter


def _blocks(batch: CheckedBatch) -> Iterator[tuple[slice, np.ndarray]]:
    """Cut the rows into blocks, with one buffer for all of them.

    Blocks are of even size: a last block of a few rows would cost as much bookkeeping as a full one.
    """
    n = batch.X.shape[0]
    step = -(-n // max(1, round(n / max(64, min(_BLOCK_ENTRIES // batch.width, _BLOCK_ROWS)))))
    buffer = np.empty((step, batch.width), dtype=batch.dtype)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        yield rows, buffer


def _check_sums(residual: np.ndarray, scatter: np.ndarray, batch: CheckedBatch) -> None:
    """Raise InvalidInputError for NaN and infinities: one of them anywhere makes a sum that is not finite."""
    if np.isfinite(residual).all() and np.isfinite(scatter).all():
        return
    check_matrix(as_dense(batch.X), batch.owner)
    raise InvalidInputError(f"{batch.owner} met numbers too large for their precision: scale the columns down first.")


# -- moments ---------------------------------------------------------------------------------------------------------


_STATE = ("group_labels", "group_weight", "group_mean", "within")


class Moments:
    """Weight, mean and centred scatter of a stream of rows; per class with labels, jointly with targets.

    Parameters
    ----------
    precision : {"auto", "float64"}
        "auto" centres and multiplies blocks of float32 (and float16) rows in float32 and accumulates in float64:
        the scatter is then off by 1e-7 to 2e-7 of its largest eigenvalue (docs/decisions/moments.md). "float64"
        does everything in float64. Rows of float64 are always handled in float64.
    owner : str
        What an error message calls the caller.

    Attributes
    ----------
    n : float
        Total weight: the number of rows, unless weights were given.
    rows : int
        Number of rows seen.
    mean, target_mean : ndarray of shape (p,), (q,)
    classes : ndarray or None
        Sorted labels seen so far.
    eps : float
        Precision of the products behind the scatter, for the rank rule.
    resolution : Resolution
        How finely the numbers were given, by which columns count as constant.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 8.0]])
    >>> whole = Moments().update(X)
    >>> parts = Moments().update(X[:1]).merge(Moments().update(X[1:]))
    >>> whole.mean, np.allclose(whole.St, parts.St)
    (array([2., 4.]), True)
    """

    def __init__(self, precision: str = "auto", *, owner: str = CheckedBatch.owner):
        self.owner = owner
        self.precision = check_choice(precision, ("auto", "float64"), "precision", "Moments")
        self.rows = 0
        self.p = self.q = 0
        self.eps = float(np.finfo(np.float64).eps)
        # Precision of the numbers themselves, of rows and of targets: what varies by less is constant.
        self.input_eps = self.target_eps = float(np.finfo(np.float64).eps)
        self.resolution = Resolution()
        self.labelled = False
        self.group_labels: np.ndarray = NO_LABEL[:0]
        self.group_weight: np.ndarray = np.zeros(0)
        self.group_mean = np.zeros((0, 0))  # (groups, p + q)
        self.within = np.zeros((0, 0))  # (p + q, p + q), undivided

    # -- accumulation ----------------------------------------------------------------------------------------

    def update(
        self,
        X: Rows,
        y: ArrayLike | None = None,
        *,
        targets: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Moments:
        """Take in a batch of rows; on bad input nothing changes.

        Parameters
        ----------
        X : array-like, memory map or sparse matrix of shape (n, p)
        y : array-like of shape (n,), optional
            Labels.
        targets : array-like of shape (n,) or (n, q), optional
        sample_weight : array-like of shape (n,), optional
        """
        batch = check_batch(X, y, targets, sample_weight, self.precision, self.owner)
        other = Moments._of(batch, self.precision)
        self._check_mergeable(other)
        return self._merge_in(other)

    @classmethod
    def _of(cls, batch: CheckedBatch, precision: str) -> Moments:
        groups, means, within = batch_scatter(batch)
        made = cls(precision)
        made.rows, made.p, made.q = batch.X.shape[0], batch.p, batch.width - batch.p
        made.labelled = batch.y is not None
        made.eps = float(np.finfo(batch.dtype).eps)
        made.input_eps, made.target_eps = _precision_of(batch.X), _precision_of(batch.targets)
        made.resolution = Resolution.of(batch.X)
        made.group_labels, made.group_weight = groups.labels, groups.weight
        made.group_mean, made.within = means, within
        return made

    def merge(self, other: Moments) -> Moments:
        """Take in the moments of other rows, exactly as if their rows had been seen here."""
        self._check_mergeable(other)
        return self._merge_in(copy.deepcopy(other) if not self.rows else other)

    def moved(self, offset: np.ndarray, *given: Rows) -> None:
        """Add `offset`, shape (p,), to every row that was seen; `given` are the rows as they had come, if others."""
        self.group_mean[:, : self.p] += offset
        if given:
            self.resolution = functools.reduce(operator.add, map(Resolution.of, given))

    def from_basis(self, basis: np.ndarray) -> Moments:
        """Return these moments in full coordinates, when they were taken in those of an orthonormal basis."""
        joint = block_diag(basis, np.eye(self.q))
        full = copy.copy(self)
        full.p = len(basis)
        full.group_mean, full.within = self.group_mean @ joint.T, joint @ self.within @ joint.T
        full.group_weight = self.group_weight.copy()
        return full

    def _check_mergeable(self, other: Moments) -> None:
        if not self.rows or not other.rows:
            return
        if (self.p, self.q) != (other.p, other.q):
            raise InvalidInputError(
                f"Moments of {self.p} columns and {self.q} targets cannot take in {other.p} and {other.q}."
            )
        if self.labelled != other.labelled:
            raise InvalidInputError("Moments with labels cannot take in rows without labels, nor the reverse.")
        kinds = {part.group_labels.dtype.kind for part in (self, other)}
        if self.labelled and kinds & set("US") and kinds & set("biuf"):
            raise InvalidInputError("Labels as text and labels as numbers cannot be matched: convert one of them.")

    def _merge_in(self, other: Moments) -> Moments:
        """Shift both sides to common group means and add; see Chan, Golub and LeVeque (1983).

        `other` is used up: an empty object takes over its arrays instead of copying them.
        """
        if not other.rows:
            return self
        if not self.rows:
            self.p, self.q, self.labelled = other.p, other.q, other.labelled
            self.group_labels, self.group_weight = other.group_labels, other.group_weight
            self.group_mean, self.within = other.group_mean, other.within
        else:
            # The positions of `labels` among this object's groups, adding those it has not seen.
            union = np.union1d(self.group_labels, other.group_labels)
            if len(union) > len(self.group_labels):
                old = np.searchsorted(union, self.group_labels)
                weight, mean = np.zeros(len(union)), np.zeros((len(union), self.p + self.q))
                weight[old], mean[old] = self.group_weight, self.group_mean
                self.group_labels, self.group_weight, self.group_mean = union, weight, mean
            mine = np.searchsorted(self.group_labels, other.group_labels)
            w_self, w_other = self.group_weight[mine], other.group_weight
            total = w_self + w_other
            share = np.divide(w_other, total, out=np.zeros_like(total), where=total > 0)
            delta = other.group_mean - self.group_mean[mine]
            self.within += other.within
            self.within += (delta * (w_self * share)[:, None]).T @ delta
            self.group_mean[mine] += delta * share[:, None]
            self.group_weight[mine] = total
        self.rows += other.rows
        self.eps = max(self.eps, other.eps)
        self.input_eps = max(self.input_eps, other.input_eps)
        self.target_eps = max(self.target_eps, other.target_eps)
        self.resolution += other.resolution
        return self

    def without(self, part: Moments) -> Moments:
        """Return the moments of the rows that were seen here and not there, where `part` is of some of these rows.

        ``merge`` undone: with weights w and means m of all rows, of the part and of the rest, group by group,
        ``within_rest = within - within_part - w_rest w_part / w (m_rest - m_part)(m_rest - m_part)^T``. Digits are lost
        in proportion to all rows over the rest, which is 1.25 for a fold of five.
        """
        mine = np.searchsorted(self.group_labels, part.group_labels)
        rest = copy.copy(self)
        rest.rows = self.rows - part.rows
        weight, mean = self.group_weight.copy(), self.group_mean.copy()
        weight[mine] -= part.group_weight
        # Of a group that is gone as a whole, weights leave roundings.
        left = weight > self.group_weight * len(self.group_weight) * np.finfo(np.float64).eps
        share = np.divide(part.group_weight, weight[mine], out=np.zeros(len(mine)), where=left[mine])
        mean[mine] += (mean[mine] - part.group_mean) * share[:, None]
        apart = mean[mine] - part.group_mean
        lost = np.where(left[mine], weight[mine] * part.group_weight / self.group_weight[mine], 0.0)
        rest.within = self.within - part.within
        rest.within -= (apart * lost[:, None]).T @ apart
        rest.group_labels, rest.group_weight, rest.group_mean = self.group_labels[left], weight[left], mean[left]
        return rest

    # -- state -----------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return all that is known as arrays of numbers and text, from which ``from_arrays`` builds the same object.

        Examples
        --------
        >>> moments = Moments().update(np.eye(3), ["a", "b", "a"])
        >>> np.array_equal(Moments.from_arrays(moments.to_arrays()).Sw, moments.Sw)
        True
        """
        return {
            "precision": np.array([self.precision]),
            "counts": np.array([self.rows, self.p, self.q, self.labelled], dtype=np.int64),
            "eps": np.array([self.eps, self.input_eps, self.target_eps]),
            "resolution": np.array(astuple(self.resolution), dtype=np.int64),
            **{name: getattr(self, name) for name in _STATE},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Moments:
        """Undo ``to_arrays``."""
        try:
            made = cls(str(arrays["precision"][0]))
            rows, made.p, made.q, labelled = (int(count) for count in arrays["counts"])
            made.rows, made.labelled = rows, bool(labelled)
            made.eps, made.input_eps, made.target_eps = (float(value) for value in arrays["eps"])
            if not np.isin(arrays["resolution"], (0, 1)).all():
                raise ValueError(f"flags are {arrays['resolution']}")
            made.resolution = Resolution(*(bool(flag) for flag in arrays["resolution"]))
            for name in _STATE:
                setattr(made, name, np.array(arrays[name]))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CorruptModelError(f"These are not the arrays of moments ({error!r}).") from None
        groups, width = made.group_labels.size, (made.p + made.q) * bool(rows)
        shapes = (made.group_labels.shape, made.group_weight.shape, made.group_mean.shape, made.within.shape)
        if shapes != ((groups,), (groups,), (groups, width), (width, width)):
            raise CorruptModelError(f"The arrays of moments do not fit together: shapes {shapes}.")
        return made

    # -- what follows from them ------------------------------------------------------------------------------

    @property
    def n(self) -> float:
        """Total weight."""
        return float(self.group_weight.sum())

    @property
    def classes(self) -> np.ndarray | None:
        """Sorted labels, or None without labels."""
        return self.group_labels if self.labelled else None

    @property
    def _joint_mean(self) -> np.ndarray:
        # Relative to one of the groups, so that a common offset does not cost digits.
        anchor = self.group_mean[0]
        return anchor + self.group_weight @ (self.group_mean - anchor) / self.n

    @property
    def mean(self) -> np.ndarray:
        """Mean of the rows."""
        return self._joint_mean[: self.p]

    @property
    def target_mean(self) -> np.ndarray:
        """Mean of the targets."""
        return self._joint_mean[self.p :]

    @property
    def class_means(self) -> np.ndarray:
        """Mean of each class, shape (C, p)."""
        return self.group_mean[:, : self.p]

    @property
    def class_shares(self) -> np.ndarray:
        """Weight of each class over the total, shape (C,)."""
        return self.group_weight / self.n

    @property
    def between_factor(self) -> np.ndarray:
        """F of shape (p + q, C) with ``F F^T`` the between-group scatter of rows and targets, divided by n."""
        return ((self.group_mean - self._joint_mean) * np.sqrt(self.class_shares)[:, None]).T

    def _constant(self, variances: np.ndarray) -> np.ndarray:
        """Tell which columns and targets vary by no more than ten roundings: of their own numbers, or of the largest.

        The second is for columns alone, as targets may be in any units. It compares *total* variation, because a column
        that hardly varies within classes may be what tells them apart.
        """
        eps = np.repeat([self.input_eps, self.target_eps], [self.p, self.q])
        constant = np.sqrt(np.maximum(variances, 0.0)) <= ROUNDINGS * eps * np.abs(self._joint_mean)
        total = np.diag(self.within) / self.n + np.square(self.between_factor).sum(axis=1)
        spread = np.sqrt(np.maximum(total[: self.p], 0.0))
        constant[: self.p] |= spread <= ROUNDINGS * self.resolution.eps * spread.max(initial=0.0)
        return constant

    def _joint(self, scatter: np.ndarray) -> np.ndarray:
        """Set rows and columns of numerically constant columns to exactly zero."""
        constant = self._constant(np.diag(scatter))
        scatter[constant] = 0.0
        scatter[:, constant] = 0.0
        return scatter

    def variances(self, *, within: bool = False) -> np.ndarray:
        """Return the diagonal of St, or of Sw, without the rest of it; zero for numerically constant columns."""
        found = np.diag(self.within) / self.n
        if not within:
            found = found + np.square(self.between_factor).sum(axis=1)
        return np.where(self._constant(found), 0.0, found)[: self.p]

    def check_digits(self, variances: np.ndarray) -> None:
        """Raise InvalidInputError if all variances are zero for want of digits, and not because nothing varies."""
        if np.any(variances > 0):
            return
        spread = np.sqrt(np.maximum(np.diag(self.within)[: self.p], 0.0) / self.n)
        rounding = self.input_eps * np.abs(self.mean)
        blurred = np.flatnonzero(spread > rounding)
        if not len(blurred):
            return  # constant indeed
        most = blurred[spread[blurred].argmax()]
        kind = "float32" if self.input_eps > np.finfo(np.float64).eps else "float64"
        wider = ", or convert to float64 first" if kind == "float32" else ""
        raise InvalidInputError(
            f"The columns vary by no more than ten roundings of their {kind} numbers, which is taken for constant: "
            f"the widest by {spread[most]:.2g} about its mean {self.mean[most]:.6g}. Subtract the offset{wider}."
        )

    @property
    def _total(self) -> np.ndarray:
        F = self.between_factor
        return self._joint(self.within / self.n + F @ F.T)

    @property
    def St(self) -> np.ndarray:
        """Total scatter divided by n, shape (p, p)."""
        return self._total[: self.p, : self.p]

    @property
    def Sw(self) -> np.ndarray:
        """Within-class scatter divided by n, shape (p, p)."""
        return self._joint(self.within / self.n)[: self.p, : self.p]

    @property
    def Sb(self) -> np.ndarray:
        """Between-class scatter divided by n, shape (p, p): St = Sw + Sb."""
        F = self.between_factor[: self.p]
        return F @ F.T

    @property
    def Sxy(self) -> np.ndarray:
        """Cross scatter of rows and targets divided by n, shape (p, q)."""
        return self._total[: self.p, self.p :]

    @property
    def Syy(self) -> np.ndarray:
        """Scatter of the targets divided by n, shape (q, q)."""
        return self._total[self.p :, self.p :]


def _precision_of(numbers: np.ndarray | sparse.csr_matrix | None) -> float:
    """Return the relative precision in which numbers were given; whole numbers are exact."""
    kind = np.float64 if numbers is None or numbers.dtype.kind != "f" else numbers.dtype
    return float(np.finfo(kind).eps)
