"""Facts about the vectors that need no task: norms, directions, copies, columns, spectrum, rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk._base.linalg import rank_tolerance
from firstk.advice.diagnosis.axes import Spectrum
from firstk.moments.moments import Moments

# Norms this close to 1 count as unit norms that were stored in 16 bits.
UNIT_TOLERANCE = 2e-3
# A column whose mean is this many standard deviations away from 0 loses digits unless it is centered.
LARGE_OFFSET = 100.0
# A column that varies by no more than this many roundings of the column that varies most is dead.
ROUNDINGS = 10
SINGLE, DOUBLE = (float(np.finfo(kind).eps) for kind in (np.float32, np.float64))
# From this mean cosine of pairs on, all vectors are reported to point one way.
ONE_WAY = 0.3


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

    def sentences(self) -> list[str]:
        """Return the findings: what is unusual about the vectors."""
        found = [self._about_rank(), *self._about_norms(), *self._about_columns(), *self._about_copies()]
        found.append(
            f"Effective dimension: {self.effective_dimension:.3g}; {self.variance_dims['90']} of {self.rank} "
            f"directions hold 90 % of the variance, {self.variance_dims['99']} hold 99 %."
        )
        return [sentence for sentence in found if sentence]

    def _about_rank(self) -> str:
        if self.lossless:
            return (
                f"{self.exact_width} coordinates keep these vectors without loss, as their rank is below their width "
                f"{self.width}. PrefixEncoder({self.exact_width}, objective=Similarity(keep='dot_products'), "
                "solver=ClosedForm(precision='float64')).fit(X).transform(X) gives them, with all dot products and "
                "distances as they were."
            )
        if self.rank < self.width and self.rows <= self.width:
            return (
                f"There are only {self.rows} rows for {self.width} columns: that they fit into {self.rank} directions "
                "says nothing about other rows."
            )
        if self.rank_with_mean < self.width:
            return (
                f"The vectors have rank {self.rank_with_mean} of {self.width}, and some directions are so much smaller "
                "than others that dot products do not see them."
                + ("" if self.dead_columns else " If columns differ in their units, scale them first.")
            )
        return f"The vectors have full rank {self.width}: every shorter code loses something."

    def _about_norms(self) -> list[str]:
        norms = (
            "All vectors have unit norm."
            if self.unit_norms
            else f"Norms lie between {self.norm_least:.4g} and {self.norm_most:.4g}, {self.norm_mean:.4g} on average."
        )
        if self.zero_rows:
            norms += f" {_count(self.zero_rows, 'row')} of zeros: cosines mean nothing for them."
        way = f"Pairs of vectors have cosine {self.mean_cosine:.3f} on average"
        way += (
            ": they share a direction, which centring removes."
            if self.mean_cosine >= ONE_WAY
            else ": they share no direction."
        )
        return [norms, way]

    def _about_columns(self) -> list[str]:
        found = []
        if self.constant_columns:
            verb = "varies" if len(self.constant_columns) == 1 else "vary"
            found.append(
                f"{_count(len(self.constant_columns), 'column')} never {verb} ({_few(self.constant_columns)})."
            )
        if self.dead_columns:
            verb = "is" if len(self.dead_columns) == 1 else "are"
            found.append(
                f"{_count(len(self.dead_columns), 'column')} {verb} dead ({_few(self.dead_columns)}): next to the "
                "others, all that varies there is rounding error. Do not scale columns to unit variance: that would "
                "make signal of it."
            )
        if self.offset_columns:
            found.append(
                f"{_count(len(self.offset_columns), 'column')} stand {LARGE_OFFSET:g} standard deviations or more away "
                f"from 0 ({_few(self.offset_columns)}): center the vectors before they are stored in few bits."
            )
        if self.largest_column_share > 0.5 and self.width > 2:
            found.append(f"One column alone has {self.largest_column_share:.0%} of the variance: check its units.")
        return found

    def _about_copies(self) -> list[str]:
        found = []
        if self.copies:
            repeat, share = "repeats" if self.copies == 1 else "repeat", f"{self.copies / self.rows:.2%}"
            found.append(f"{_count(self.copies, 'row')} {repeat} an earlier row exactly ({share}).")
        if self.contradictions:
            found.append(
                f"{_count(self.contradictions, 'vector')} occur with more than one label: no classifier can be right "
                "about all of them."
            )
        return found

    def table(self) -> list[tuple[str, str]]:
        """Return the numbers as lines of a table."""
        shares = ", ".join(f"{share} %: {k}" for share, k in self.variance_dims.items())
        return [
            ("rows, width", f"{self.rows:,} x {self.width}"),
            ("rank: centred, as they stand", f"{self.rank}, {self.rank_with_mean}"),
            ("effective dimension", f"{self.effective_dimension:.2f}"),
            ("directions for a share of variance", shares),
            ("mean cosine of pairs", f"{self.mean_cosine:.4f}"),
            ("norm of mean / mean norm", f"{self.mean_share:.4f}"),
            ("norms: mean, least, most", f"{self.norm_mean:.5g}, {self.norm_least:.5g}, {self.norm_most:.5g}"),
            ("copies, contradictions", f"{self.copies}, {self.contradictions}"),
            ("constant columns, large offsets", f"{len(self.constant_columns)}, {len(self.offset_columns)}"),
        ]


def describe(sums: RowSums, axes: Spectrum, ranks: tuple[int, int, int], eps: float = DOUBLE) -> Vectors:
    """Compute the facts about the vectors.

    Parameters
    ----------
    sums : RowSums
    axes : Spectrum
        Spectrum of all rows.
    ranks : tuple of int
        `rank`, `rank_with_mean` and `exact_width`.
    eps : float
        Relative size of a rounding of the numbers as they were given.
    """
    n, mean, variance = sums.rows, sums.mean, sums.variance
    spectrum = axes.spectrum / axes.spectrum[0] if axes.rank else axes.spectrum  # squares must not overflow
    mean_norm = sums.norm_sum / n
    unit = abs(sums.norm_least - 1) <= UNIT_TOLERANCE and abs(sums.norm_most - 1) <= UNIT_TOLERANCE
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
        variance_dims={f"{100 * s:g}": axes.reaching(s) if axes.rank else 0 for s in (0.5, 0.9, 0.95, 0.99)},
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


def surely_full(axes: Spectrum, moments: Moments) -> bool:
    """Return whether the known spectrum implies full rank, so that no second eigenvalue problem is needed.

    After columns are scaled to unit variance, no eigenvalue is below the smallest one over the largest variance, and
    none is above p.
    """
    if axes.rank < moments.p:
        return False
    variance = np.diag(moments.St)
    stored = moments.input_eps**2 / 3 * float(np.max(1 + moments.mean**2 / variance))
    return float(axes.spectrum[-1] / variance.max()) > max(rank_tolerance(moments.p, moments.eps) * moments.p, stored)


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


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _few(columns: tuple[int, ...]) -> str:
    return ", ".join(map(str, columns[:8])) + (", ..." if len(columns) > 8 else "")
