r"""Trees of thresholds: for each coordinate a scalar quantizer of which every shorter prefix of bits is one too.

A cell is split where the two halves, each represented by its mean, have the least squared error: the optimum of Lloyd's
and Max's conditions for two cells. Its halves are split in turn, so that b bits name one of :math:`2^b` cells, and the
first b - 1 of them the cell around it. Gaussian and Laplacian sources lose nothing by such successive refinement in
theory, and scalar trees some per cent of the error of unconstrained levels.

References: Lloyd 1982; Max 1960; Equitz and Cover 1991 (successive refinement); Gersho and Gray 1992, chapter 15.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_matrix, check_weights
from firstk._base.progress import tracked
from firstk.exceptions import InvalidInputError

# Bits that a coordinate can get: 256 cells, of 32 rows each in a sample of 8,192.
DEPTH = 8
# A cell of fewer rows is not split: its halves would be single rows, whose means say little about other rows.
FEWEST_ROWS = 4
# Numbers of a block of coordinates that are worked on together: they stay in the cache.
_BLOCK_NUMBERS = 131_072


@dataclass(frozen=True, eq=False)
class Trees:
    r"""A tree of cells for each of d coordinates, in heap order: root 0, children 2i + 1 (below) and 2i + 2 (above).

    A number z goes below where :math:`z \le t` and above where :math:`z > t`; t is halfway between the means of the two
    halves, as nearest representatives demand. A cell that is not split is inherited by both children, and all its
    numbers go below.

    Attributes
    ----------
    centroids : ndarray of float32, shape (d, 2**(depth + 1) - 1)
        E[z | cell].
    squares : ndarray of float32, the same shape
        E[z^2 | cell].
    distortion : ndarray of float64, shape (d, depth + 1)
        Mean squared error of a coordinate that has 0, 1, ... bits, on the rows that the trees were fitted on.

    Examples
    --------
    >>> trees = Trees.fit([[0.0], [1.0], [4.0], [5.0]], depth=1)
    >>> trees.centroids, trees.thresholds, trees.distortion
    (array([[2.5, 0.5, 4.5]], dtype=float32), array([[2.5]], dtype=float32), array([[4.25, 0.25]]))
    """

    centroids: np.ndarray
    squares: np.ndarray
    distortion: np.ndarray

    @classmethod
    def fit(cls, Z: ArrayLike, weight: ArrayLike | None = None, depth: int = DEPTH) -> Trees:
        """Fit the trees on codes of shape (n, d), whose rows may have weights; a sample of some thousands is enough."""
        Z = check_matrix(Z, "Trees.fit", "Z")
        weight = check_weights(weight, len(Z), "Trees.fit", "weight")
        d, step = Z.shape[1], max(1, _BLOCK_NUMBERS // len(Z))
        centroids, squares = (np.empty((d, 2 ** (depth + 1) - 1)) for _ in range(2))
        distortion = np.empty((d, depth + 1))
        starts = range(0, d, step)
        for start in tracked(starts, len(starts), "training the quantizer", "block"):
            block = slice(start, start + step)
            columns = np.ascontiguousarray(Z[:, block].T, dtype=np.float64)
            centroids[block], squares[block], distortion[block] = _grown(columns, weight, depth)
        largest, limit = float(np.abs(Z).max()), float(np.sqrt(np.finfo(np.float32).max))
        if largest > limit:
            raise InvalidInputError(
                f"Trees hold numbers up to {limit:.3g}, whose squares are float32 numbers; 'Z' has {largest:.3g}. "
                "Scale the vectors before the fit."
            )
        return cls(centroids.astype(np.float32), squares.astype(np.float32), distortion)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.centroids)

    @property
    def depth(self) -> int:
        """The most bits that a coordinate can have."""
        return self.distortion.shape[1] - 1

    @cached_property
    def thresholds(self) -> np.ndarray:
        """Thresholds of the nodes that are no leaves, float32 of shape (d, 2**depth - 1), in heap order.

        That of a cell which is not split is its upper end, infinity for the uppermost.
        """
        levels = []
        lower, upper = np.full((self.d, 1), -np.inf, np.float32), np.full((self.d, 1), np.inf, np.float32)
        for bits in range(1, self.depth + 1):
            cells = self.centroids[:, 2**bits - 1 : 2 ** (bits + 1) - 1]
            below, above = cells[:, ::2], cells[:, 1::2]
            halfway = ((below.astype(np.float64) + above) / 2).astype(np.float32)
            # Inside the cell, whatever rounding does. A cell that is not split lies below its threshold as a whole:
            # with a threshold in its middle, a bit that means nothing would depend on the last digit of a number.
            level = np.where(below < above, np.clip(halfway, lower, upper), upper)
            levels.append(level)
            lower, upper = (np.stack(walls, axis=2).reshape(self.d, -1) for walls in ((lower, level), (level, upper)))
        return np.hstack(levels)

    def sorted_thresholds(self, coordinate: int, bits: int) -> np.ndarray:
        """Return the 2**bits - 1 thresholds between the cells of a coordinate that has so many bits, ascending."""
        return np.sort(self.thresholds[coordinate, : 2**bits - 1])

    def values(self, coordinate: int, bits: int) -> np.ndarray:
        """Return E[z | cell] of the 2**bits cells of a coordinate, from below to above."""
        return self.centroids[coordinate, 2**bits - 1 : 2 ** (bits + 1) - 1]

    def square_values(self, coordinate: int, bits: int) -> np.ndarray:
        """Return E[z^2 | cell] of the 2**bits cells of a coordinate, from below to above."""
        return self.squares[coordinate, 2**bits - 1 : 2 ** (bits + 1) - 1]

    def cut(self, k: int) -> Trees:
        """Return the trees of the first k coordinates."""
        return Trees(self.centroids[:k], self.squares[:k], self.distortion[:k])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what is stored: everything else follows from it."""
        return {"centroids": self.centroids, "squares": self.squares, "distortion": self.distortion}


def wrong_trees(trees: Trees, d: int) -> str:
    """Say what makes arrays no trees of d coordinates; nothing where they are trees."""
    depth = trees.distortion.shape[-1] - 1 if trees.distortion.ndim else 0
    cells = (d, 2 ** (depth + 1) - 1)
    shapes = {"centroids": cells, "squares": cells, "distortion": (d, depth + 1)}
    if not 1 <= depth <= DEPTH:
        return f"trees of depth {depth}, where 1 to {DEPTH} are possible"
    for name, shape in shapes.items():
        part, dtype = getattr(trees, name), np.dtype(np.float64 if name == "distortion" else np.float32)
        if part.shape != shape or part.dtype != dtype:
            return f"'{name}' is {part.dtype}{part.shape}; {dtype}{shape} was expected"
        if not np.isfinite(part).all():
            return f"'{name}' holds NaN or infinity"
    if (trees.squares < 0).any() or (trees.distortion < 0).any():
        return "mean squares are negative"
    if (np.diff(trees.distortion, axis=1) > 0).any():
        return "'distortion' grows with the number of bits"
    for bits in range(1, depth + 1):
        if (np.diff(trees.centroids[:, 2**bits - 1 : 2 ** (bits + 1) - 1], axis=1) < 0).any():
            return f"the centroids of {bits} bits do not ascend"
    return ""


def _grown(columns: np.ndarray, weight: np.ndarray | None, depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grow the trees of some coordinates, one a row: centroids, squares and distortion.

    Sums of sorted numbers from the first to any other make the error of every possible split a few subtractions:
    splitting a cell with weight W and sum S into (W_1, S_1) and (W_2, S_2) lowers its squared error by
    S_1^2 / W_1 + S_2^2 / W_2 - S^2 / W = (S_1 W - S W_1)^2 / (W_1 W_2 W). So a level costs one pass over the numbers,
    and a tree O(n log n) for sorting.
    """
    c, n = columns.shape
    if weight is None:
        ordered, share = np.sort(columns, axis=1), np.full((c, n), 1.0 / n)
    else:
        order = np.argsort(columns, axis=1, kind="stable")
        ordered, share = np.take_along_axis(columns, order, axis=1), (weight / weight.sum())[order]
    # About the mean, so that an offset costs no digits.
    mean = (ordered * share).sum(axis=1, keepdims=True)
    centred = ordered - mean
    summed = (np.cumsum(part, axis=1) for part in (share, share * centred, share * centred**2))
    sums = _Sums(*(np.concatenate([np.zeros((c, 1)), part], axis=1) for part in summed))
    splittable = np.zeros((c, n), dtype=bool)  # whether a cell may end before a number: not between equal ones
    splittable[:, 1:] = ordered[:, 1:] > ordered[:, :-1]
    bounds = np.broadcast_to(np.array([0, n]), (c, 2))
    # Of each level the means of its cells, about the mean of the coordinate, and the mean squares.
    centroids, squares = [np.zeros((c, 1))], [sums.between(bounds)[2] / sums.between(bounds)[0]]
    distortion = [squares[0][:, 0]]
    for _ in range(depth):
        bounds, gain = _split(sums, bounds, splittable)
        total, first, second = sums.between(bounds)
        # An empty half, and the one beside it, inherit from the cell above.
        filled = np.repeat((np.diff(bounds, axis=1) > 0)[:, 1::2], 2, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            centroids.append(np.where(filled, first / total, np.repeat(centroids[-1], 2, axis=1)))
            squares.append(np.where(filled, second / total, np.repeat(squares[-1], 2, axis=1)))
        distortion.append(np.maximum(distortion[-1] - gain, 0.0))
    about = np.hstack(centroids)
    # E[z^2] = E[(z - m)^2] + 2 m E[z - m] + m^2
    whole = np.hstack(squares) + 2 * mean * about + mean**2
    return about + mean, np.maximum(whole, 0.0), np.stack(distortion, axis=1)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Weights, weighted numbers and weighted squares, summed from the first to any other number, (c, n + 1) each."""

    weight: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def between(self, bounds: np.ndarray) -> list[np.ndarray]:
        """Return the three sums of each cell."""
        return [np.diff(np.take_along_axis(part, bounds, axis=1), axis=1) for part in vars(self).values()]


def _split(sums: _Sums, bounds: np.ndarray, splittable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split each cell where that lowers the error most; return the new bounds, and by how much errors fell.

    A cell that is not split ends up with an empty half above.
    """
    c, n = splittable.shape
    start, end = bounds[:, :-1], bounds[:, 1:]
    counts = (end - start).ravel()
    before = [np.take_along_axis(part, start, axis=1) for part in (sums.weight, sums.first)]
    whole = sums.between(bounds)[:2]

    def spread(of_cells: np.ndarray) -> np.ndarray:
        return np.repeat(of_cells.ravel(), counts).reshape(c, n)

    # Of each place of a split, the weight and sum below it: what falls is (S_1 W - S W_1)^2 / (W_1 W_2 W).
    weight, first = (part[:, :n] - spread(lower) for part, lower in zip((sums.weight, sums.first), before, strict=True))
    all_weight = spread(whole[0])
    fall = first * all_weight
    fall -= spread(whole[1]) * weight
    fall *= fall
    all_weight -= weight
    all_weight *= weight
    allowed = splittable & (all_weight > 0)
    fall = np.divide(fall, all_weight, out=np.full((c, n), -1.0), where=allowed)
    place, best = _first_largest(fall, bounds)
    splits = (best > 0) & (end - start >= FEWEST_ROWS)
    gain = np.divide(best, whole[0], out=np.zeros(best.shape), where=splits)
    middle = np.where(splits, place, end)
    halves = np.stack([start, middle], axis=2).reshape(c, -1)
    return np.concatenate([halves, bounds[:, -1:]], axis=1), gain.sum(axis=1)


def _first_largest(numbers: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each cell of each row, the first place of its largest number and that number; -1 of empty cells."""
    c, n = numbers.shape
    starts = (bounds[:, :-1] + n * np.arange(c)[:, None]).ravel()
    counts = np.diff(bounds, axis=1).ravel()
    filled = np.flatnonzero(counts)
    flat = numbers.ravel()
    largest = np.full(len(starts), -1.0)
    largest[filled] = np.maximum.reduceat(flat, starts[filled])
    places = np.flatnonzero(flat == np.repeat(largest, counts))
    owner = filled[np.searchsorted(starts[filled], places, side="right") - 1]
    place = np.zeros(len(starts), dtype=np.int64)
    place[owner[::-1]] = places[::-1]  # of several, the first is written last
    shape = (c, bounds.shape[1] - 1)
    return place.reshape(shape) - n * np.arange(c)[:, None], largest.reshape(shape)
