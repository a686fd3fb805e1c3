"""Facts about the vectors that need no task: norms, directions, copies, columns, spectrum, rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk._base.linalg import rank_tolerance
from firstk.moments.moments import Moments

# Norms this close to 1 count as unit norms that were stored in 16 bits.
UNIT_ROUNDING = 2e-3
# A column whose mean is this many standard deviations away from 0 loses digits unless it is centered.
LARGE_OFFSET = 100.0
# A column that varies by no more than this many roundings of the column that varies most is dead.
ROUNDINGS = 10
SINGLE, DOUBLE = (float(np.finfo(kind).eps) for kind in (np.float32, np.float64))
# A column that has more of the variance than this, among more columns than so many, is looked at.
MOST_OF_VARIANCE, MANY_COLUMNS = 0.5, 2


class RowSums:
    """Sums over rows that give norms, mean cosine and copies; additive, so independent of the batch size.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    hashes : ndarray of shape (n,)
        Hashes of the vectors.
    labelled_hashes : ndarray of shape (n,), optional
        Hashes of the vectors with their labels.
    """

    def __init__(self, X: np.ndarray, hashes: np.ndarray, labelled_hashes: np.ndarray | None = None):
        X = X.astype(np.float64)
        largest = np.abs(X).max(axis=1, keepdims=True)  # so that squares cannot overflow
        norms = largest[:, 0] * np.linalg.norm(X / np.where(largest > 0, largest, 1.0), axis=1)
        self.rows, self.mean = len(X), X.mean(axis=0)
        self.squares = np.sum((X - self.mean) ** 2, axis=0)
        self.directions = (X / np.where(norms > 0, norms, 1.0)[:, None]).sum(axis=0)
        self.least, self.most = X.min(axis=0), X.max(axis=0)
        self.norm_sum, self.norm_squares = float(norms.sum()), float(norms @ norms)
        self.norm_least, self.norm_most = float(norms.min()), float(norms.max())
        self.zeros = int(np.count_nonzero(norms == 0))
        self.hashes = [hashes]
        self.labelled_hashes = [] if labelled_hashes is None else [labelled_hashes]

    def merge(self, other: RowSums) -> RowSums:
        """Merge the sums of other rows; means and squared deviations by Chan, Golub and LeVeque (1983)."""
        rows, apart = self.rows + other.rows, other.mean - self.mean
        self.squares += other.squares + apart**2 * (self.rows * other.rows / rows)
        self.mean += apart * (other.rows / rows)
        self.rows = rows
        self.directions += other.directions
        self.least, self.most = np.minimum(self.least, other.least), np.maximum(self.most, other.most)
        self.norm_sum += other.norm_sum
        self.norm_squares += other.norm_squares
        self.norm_least, self.norm_most = min(self.norm_least, other.norm_least), max(self.norm_most, other.norm_most)
        self.zeros += other.zeros
        self.hashes += other.hashes
        self.labelled_hashes += other.labelled_hashes
        return self

    @property
    def variance(self) -> np.ndarray:
        """Variance of each column over all rows."""
        return self.squares / self.rows

    def copies(self) -> tuple[int, int]:
        """Return the number of rows that repeat an earlier one, and of distinct vectors with more than one label."""
        vectors = np.concatenate(self.hashes)
        distinct = np.unique(vectors)
        if not self.labelled_hashes:
            return self.rows - len(distinct), 0
        # One row per (vector, label); vectors that still occur twice have several labels.
        _, first = np.unique(np.concatenate(self.labelled_hashes), return_index=True)
        _, times = np.unique(vectors[first], return_counts=True)
        return self.rows - len(distinct), int(np.count_nonzero(times > 1))


@dataclass(frozen=True)
class Vectors:
    """Facts about the vectors that need no task.

    Attributes
    ----------
    rows, width : int
    rank, rank_with_mean : int
        Numerical rank of the centered vectors, and of the vectors as given; independent of the units of columns.
    exact_width : int
        Number of coordinates that preserve all dot products, up to the rounding error of float64 sums.
    effective_dimension : float
        Participation ratio (sum of l)^2 / sum of l^2 of the spectrum l: the equivalent number of equal axes.
    variance_dims : dict
        Smallest number of principal axes that explain 50, 90, 95, 99 % of the variance.
    mean_cosine : float
        Mean cosine of all pairs of different rows, in closed form: (|sum of x/|x||^2 - n) / (n (n - 1)).
    mean_share : float
        Norm of the mean over the mean norm: 0 for centered vectors, 1 if all are the same.
    norm_mean, norm_least, norm_most : float
    unit_norms : bool
    zero_rows : int
    copies : int
        Rows that repeat an earlier row in every coordinate, found by 64-bit hashes.
    contradictions : int
        Distinct vectors that occur with more than one label.
    constant_columns, offset_columns : tuple of int
        Columns that do not vary; columns whose mean is 100 standard deviations or more away from 0.
    dead_columns : tuple of int
        Columns that vary, but by no more than ten roundings of the column that varies most (1.2e-6 of it in float32).
    largest_column_share : float
        Share of the variance in the column with the most variance.
    """

    rows: int
    width: int
    rank: int
    rank_with_mean: int
    exact_width: int
    effective_dimension: float
    variance_dims: dict[str, int]
    mean_cosine: float
    mean_share: float
    norm_mean: float
    norm_least: float
    norm_most: float
    unit_norms: bool
    zero_rows: int
    copies: int
    contradictions: int
    constant_columns: tuple[int, ...]
    offset_columns: tuple[int, ...]
    largest_column_share: float
    dead_columns: tuple[int, ...] = ()

    @property
    def lossless(self) -> bool:
        """Whether fewer coordinates represent the vectors, and not only because rows are few or units differ widely."""
        return self.rank_with_mean == self.exact_width < self.width < self.rows

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the vectors, or unusual, by reason code: what to look at first, first.

        "few rows": no more than columns. "contradictions", "copies", "zeros": see the fields. "lossless": fewer
        coordinates keep everything. "units": directions so small that dot products do not see them. "dead",
        "constant", "offset": columns. "one column": it has most of the variance.
        """
        few = self.rank < self.width and self.rows <= self.width
        found = {
            "contradictions": self.contradictions > 0,
            "copies": self.copies > 0,
            "zeros": self.zero_rows > 0,
            "lossless": self.lossless,
            "few rows": few,
            "units": self.rank_with_mean < self.width and not self.lossless and not few,
            "dead": bool(self.dead_columns),
            "one column": self.largest_column_share > MOST_OF_VARIANCE and self.width > MANY_COLUMNS,
            "offset": bool(self.offset_columns),
            "constant": bool(self.constant_columns),
        }
        return tuple(name for name, there in found.items() if there)


def spectrum_of(moments: Moments) -> np.ndarray:
    """Return the variances along principal axes, largest first, without those that are rounding."""
    values = np.linalg.eigvalsh(moments.St)[::-1]
    return values[values > max(rank_tolerance(len(values), moments.eps) * values[0], 0.0)]


def variance_shares(spectrum: np.ndarray) -> np.ndarray:
    """Return the share of the variance that the first k axes explain, for every k."""
    return np.cumsum(spectrum) / spectrum.sum()


def describe(sums: RowSums, spectrum: np.ndarray, ranks: tuple[int, int, int], eps: float = DOUBLE) -> Vectors:
    """Compute the facts about the vectors.

    Parameters
    ----------
    sums : RowSums
    spectrum : ndarray
        Variances along principal axes.
    ranks : tuple of int
        `rank`, `rank_with_mean` and `exact_width`.
    eps : float
        Relative size of a rounding of the numbers as they were given.
    """
    n, mean, variance = sums.rows, sums.mean, sums.variance
    shares = variance_shares(spectrum) if len(spectrum) else np.zeros(0)
    spectrum = spectrum / spectrum.max(initial=0.0) if len(spectrum) else spectrum  # squares must not overflow
    mean_norm = sums.norm_sum / n
    unit = abs(sums.norm_least - 1) <= UNIT_ROUNDING and abs(sums.norm_most - 1) <= UNIT_ROUNDING
    filled = n - sums.zeros
    cosine = (float(sums.directions @ sums.directions) - filled) / (filled * (filled - 1)) if filled > 1 else 0.0
    copies, contradictions = sums.copies()
    varies = sums.least < sums.most
    spread = np.sqrt(variance)
    dead = varies & (spread <= ROUNDINGS * eps * spread.max())
    offset = varies & ~dead & (np.abs(mean) >= LARGE_OFFSET * spread)
    return Vectors(
        rows=n,
        width=len(mean),
        rank=ranks[0],
        rank_with_mean=ranks[1],
        exact_width=ranks[2],
        effective_dimension=float(spectrum.sum() ** 2 / np.sum(spectrum**2)) if len(spectrum) else 0.0,
        variance_dims={
            f"{100 * share:g}": min(int(np.searchsorted(shares, share - 1e-12)) + 1, len(shares))
            for share in (0.5, 0.9, 0.95, 0.99)
        },
        mean_cosine=cosine,
        mean_share=float(np.linalg.norm(mean)) / mean_norm if mean_norm > 0 else 0.0,
        norm_mean=mean_norm,
        norm_least=sums.norm_least,
        norm_most=sums.norm_most,
        unit_norms=bool(unit),
        zero_rows=sums.zeros,
        copies=copies,
        contradictions=contradictions,
        constant_columns=tuple(np.flatnonzero(~varies).tolist()),
        offset_columns=tuple(np.flatnonzero(offset).tolist()),
        largest_column_share=float(variance.max() / variance.sum()) if variance.sum() > 0 else 0.0,
        dead_columns=tuple(np.flatnonzero(dead).tolist()),
    )


def ranks_of(moments: Moments) -> tuple[int, int, int]:
    """Return `rank`, `rank_with_mean` and `exact_width` of :class:`Vectors`."""
    raw = moments.St + np.outer(moments.mean, moments.mean)
    values = np.linalg.eigvalsh(raw)
    exact = int(np.count_nonzero(values > rank_tolerance(len(raw), moments.eps) * values[-1]))
    return numerical_rank(moments.St, moments), numerical_rank(raw, moments), exact


def surely_full(spectrum: np.ndarray, moments: Moments) -> bool:
    """Return whether the known spectrum implies full rank, so that no second eigenvalue problem is needed.

    After columns are scaled to unit variance, no eigenvalue is below the smallest one over the largest variance, and
    none is above p.
    """
    if len(spectrum) < moments.p:
        return False
    variance = np.diag(moments.St)
    stored = moments.input_eps**2 / 3 * float(np.max(1 + moments.mean**2 / variance))
    return float(spectrum[-1] / variance.max()) > max(rank_tolerance(moments.p, moments.eps) * moments.p, stored)


def numerical_rank(S: np.ndarray, moments: Moments) -> int:
    """Return the rank of a second moment, independent of the units of columns and the rounding of stored numbers.

    Columns are scaled to unit second moment. A number stored with relative spacing eps has an error of variance up to
    eps^2 / 12 of its square; the largest eigenvalue of such errors in n >= p rows is at most four times that.
    Eigenvalues below it, or below the rounding error of the products, do not count.
    """
    varies = np.flatnonzero(np.diag(S) > 0)
    if len(varies) == 0:
        return 0
    inner = S[np.ix_(varies, varies)]
    scale = np.sqrt(np.diag(inner))
    values = np.linalg.eigvalsh(inner / scale[:, None] / scale)
    square = np.diag(moments.St)[varies] + moments.mean[varies] ** 2
    stored = 4 * moments.input_eps**2 / 12 * float(np.max(square / np.diag(inner)))
    return int(np.count_nonzero(values > max(rank_tolerance(len(S), moments.eps) * values[-1], stored)))
