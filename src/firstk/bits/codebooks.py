r"""Codebooks: the first bytes of a string, each the nearest of 256 centroids to what the bytes before it left over.

.. math:: a_l = \arg\min_c |r_{l-1} - C_l[c]|^2, \qquad r_l = r_{l-1} - C_l[a_l], \qquad r_0 = (z_1, \dots, z_m),

where :math:`C_l` is zero outside the window of coordinates that codebook l sees. A byte of a codebook sees many
coordinates at once, where a bit of a tree sees one: it finds groups of rows, and at about a bit for each coordinate it
fills space better. The first codebooks see all leading coordinates, those after them the eight neighbors whose weighted
error is largest. Dropping the last byte leaves the code of the bytes before it: residual (multi-stage) vector
quantization, with the centroids of k-means (`k_means`).

**Rows that are left out.** A centroid is the mean of n rows, one of which is the row that it stands for: what it leaves
of that row is smaller than what it would leave of another. Codebooks and trees that are fitted on such residuals are
too narrow for rows that come later. So they are fitted on what a centroid would leave of each row had that row been
left out of its mean,

.. math:: z - \frac{n C - z}{n - 1} = \frac{n}{n - 1} (z - C),

or, of a row that has a centroid to itself, on what the second nearest one leaves.

**Eight bits.** Centroids are stored once, but on small stores they would take more room than all codes. So they are
multiples of a step, one for each codebook, and are rounded before residuals are taken: later codebooks see the rounding
(figures in docs/decisions/bits.md).

References: Juang and Gray 1982; Gersho and Gray 1992, section 12.11; Lloyd 1982; Chen, Guan and Wang 2010 (search).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firstk.bits.k_means import ENTRIES, as_integers, k_means, runner_up

# Codebooks of all leading coordinates, how many these are, and the fewest rows to fit on, sixteen for each centroid.
# Then codebooks of windows, their width, and the coordinates in which these lie. Chosen on rows held out of the fit, as
# was the power of variances that errors are weighted by (docs/decisions/bits.md).
LEVELS, WIDTH, FEWEST_ROWS = 4, 128, 16 * ENTRIES
WINDOWS, WINDOW_WIDTH, WINDOWS_WITHIN = 20, 8, 256
TAU = 1 / 3
# The largest centroid in steps.
STEPS = 127
# Standard errors of a rounded sum that are allowed for, as for coordinates (firstk.bits.encoding).
_LAMBDA = 8.0
# Rows whose distances are computed at once: they stay in the cache.
_ROWS = 512


@dataclass(frozen=True, eq=False)
class Codebooks:
    r"""Codebooks of the first coordinates; none (``levels == 0``) where there are too few rows for them.

    Attributes
    ----------
    centroids : ndarray of int8, shape (256, sum of the widths of the windows)
        Side by side, in steps.
    steps : ndarray of float32, shape (levels,)
        What the centroids of each codebook are multiples of.
    windows : ndarray of int64, shape (levels, 2)
        The first coordinate that each codebook sees, and the one after the last.
    errors : ndarray of float64, shape (levels + 1, m)
        Of each coordinate the mean square of :math:`r_l`, on rows that were left out; row 0 is the variance.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(5000, 8)) * np.linspace(2, 1, 8)
    >>> books, left = Codebooks.fit(Z)
    >>> books.windows.tolist(), books.errors.sum(axis=1).round(1)
    ([[0, 8], [0, 8], [0, 8], [0, 8], [0, 8], [0, 8]], array([18.9,  5.2,  1.6,  0.5,  0.2,  0.1,  0. ]))
    """

    centroids: np.ndarray
    steps: np.ndarray
    windows: np.ndarray
    errors: np.ndarray

    @classmethod
    def none(cls) -> Codebooks:
        """Return no codebooks."""
        return joined_books([], 0)

    @classmethod
    def fit(cls, Z: np.ndarray, weight: np.ndarray | None = None) -> tuple[Codebooks, np.ndarray]:
        """Fit codebooks on codes of shape (n, d), one after the other; none on fewer than 4,096 rows.

        Returns
        -------
        books : Codebooks
        left : ndarray of shape (n, m)
            What they leave over, for those who fit the rest of a string.
        """
        lead = np.asarray(Z[:, :WINDOWS_WITHIN], dtype=np.float64)
        largest = float(np.abs(lead).max(initial=0.0))
        if len(lead) < FEWEST_ROWS or not 0 < largest < np.sqrt(np.finfo(np.float32).max):
            return cls.none(), lead[:, :0]
        share = np.full(len(lead), 1.0 / len(lead)) if weight is None else weight / weight.sum()
        left, scale = as_integers(lead)
        error = share @ np.square(lead - share @ lead)
        errors, costs = [error], error**TAU
        books, steps, windows = [], [], []
        for level in range(min(LEVELS + WINDOWS, LEVELS + 2 * -(-lead.shape[1] // WINDOW_WIDTH))):
            window = slice(0, min(WIDTH, lead.shape[1])) if level < LEVELS else _worst_window(error * costs)
            if not left[:, window].any():
                break  # further bytes would say nothing
            means, owner = k_means(left[:, window], share)
            step = max(1.0, np.ceil(np.abs(means).max() / STEPS))
            rounded = np.rint(means / step)
            others = _left_over(left[:, window], means, owner, share)
            left[:, window] = np.rint(others) + (means - step * rounded)[owner]
            error = error.copy()
            error[window] = share @ np.square(left[:, window] / scale)
            errors.append(error)
            books.append(rounded.astype(np.int8))
            steps.append(step / scale)
            windows.append((window.start, window.stop))
        made = cls(
            np.hstack(books), np.array(steps, dtype=np.float32), np.array(windows, dtype=np.int64), np.stack(errors)
        )
        return made, left / scale

    @property
    def levels(self) -> int:
        """Number of codebooks, one byte each."""
        return len(self.windows)

    @property
    def width(self) -> int:
        """Coordinates that they see."""
        return int(self.windows[:, 1].max(initial=0))

    @cached_property
    def books(self) -> list[tuple[slice, np.ndarray]]:
        """Of each codebook the coordinates that it sees, and its centroids there, float32 of shape (256, w)."""
        scaled = zip(self.windows.tolist(), self.steps, self.in_steps, strict=True)
        return [(slice(*window), np.ascontiguousarray(step * part)) for window, step, part in scaled]

    @cached_property
    def in_steps(self) -> list[np.ndarray]:
        """Of each codebook the centroids in steps, int8 of shape (256, w)."""
        return np.split(self.centroids, np.cumsum(self.windows[:, 1] - self.windows[:, 0]), axis=1)[:-1]

    def decided(self, Z: np.ndarray, doubt: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the bytes of codes, what they leave over, and which rows rounding or doubt could change.

        Parameters
        ----------
        Z : ndarray of float32 or float64, shape (n, m)
        doubt : ndarray of shape (n,), optional
            How far a row may be from the true one, along any direction.

        Returns
        -------
        codes : ndarray of uint8, shape (n, levels)
        left : ndarray like Z
        unsure : ndarray of bool, shape (n,)
        """
        codes, left = np.empty((len(Z), self.levels), dtype=np.uint8), np.array(Z)
        sizes = np.zeros(len(Z)) if doubt is None else doubt
        unsure = np.zeros(len(Z), dtype=bool)
        books = [(window, _Book(book, Z.dtype)) for window, book in self.books]
        for start in range(0, len(Z), _ROWS):
            rows = slice(start, start + _ROWS)
            rounded = float(np.finfo(Z.dtype).eps) * np.linalg.norm(left[rows], axis=1)
            for level, (window, book) in enumerate(books):
                # Every subtraction rounds once more.
                nearest, close = book.nearest(left[rows, window], sizes[rows] + level * rounded)
                left[rows, window] -= book.centroids[nearest]
                codes[rows, level] = nearest
                unsure[rows] |= close
        return codes, left, unsure

    def encode(
        self,
        Z: np.ndarray,
        doubt: np.ndarray | None = None,
        exact: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes of codes, uint8 of shape (n, levels), and what they leave over, (n, m).

        Parameters
        ----------
        Z : ndarray of shape (n, m)
        doubt : ndarray of shape (n,), optional
            How far a row may be from the true one, along any direction.
        exact : callable, optional
            Returns the rows of some numbers without doubt; those of `Z` if not given.

        Notes
        -----
        Products of matrices decide where their rounding cannot matter; rows for which it could are decided by sums in a
        fixed order. So bytes do not depend on the rows beside them.
        """
        codes, left, unsure = self.decided(np.asarray(Z, dtype=np.float64), doubt)
        again = np.flatnonzero(unsure)
        for start in range(0, len(again), _ROWS):
            some = again[start : start + _ROWS]
            codes[some], left[some] = self._one_by_one(Z[some] if exact is None else exact(some))
        return codes, left

    def _one_by_one(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Encode rows with sums in a fixed order; of equal distances the lower number."""
        codes, left = np.empty((len(Z), self.levels), dtype=np.uint8), np.array(Z, dtype=np.float64)
        for level, (window, centroids) in enumerate(self.books):
            book = centroids.astype(np.float64)
            for row in range(len(left)):
                apart = book - left[row, window]
                codes[row, level] = np.argmin(np.einsum("cm,cm->c", apart, apart))
            left[:, window] -= book[codes[:, level]]
        return codes, left

    def sums(self, codes: np.ndarray) -> np.ndarray:
        """Return what the first bytes of codes add up to, float32 of shape (n, m)."""
        total = np.zeros((len(codes), self.width), dtype=np.float32)
        for level, (window, book) in enumerate(self.books[: codes.shape[1]]):
            total[:, window] += book[codes[:, level]]
        return total

    def sums_of(self, codes: np.ndarray, coordinate: int) -> np.ndarray:
        """Return one coordinate of the sums in float64, (n,)."""
        total = np.zeros(len(codes))
        for level, (window, book) in enumerate(self.books):
            if window.start <= coordinate < window.stop:
                total += book[codes[:, level], coordinate - window.start]
        return total

    def first(self, levels: int) -> Codebooks:
        """Return the first codebooks."""
        return self._only(np.arange(min(levels, self.levels)), self.errors.shape[1])

    def cut(self, k: int) -> Codebooks:
        """Return the codebooks of the first k coordinates."""
        return self._only(np.flatnonzero(self.windows[:, 0] < k), k)

    def _only(self, levels: np.ndarray, k: int) -> Codebooks:
        """Return some codebooks, of the first k coordinates."""
        if not len(levels):
            return Codebooks.none()
        parts = [self.in_steps[level][:, : k - self.windows[level, 0]] for level in levels]
        errors = self.errors[np.concatenate([[0], levels + 1])]
        return Codebooks(np.hstack(parts), self.steps[levels], np.minimum(self.windows[levels], k), errors[:, :k])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what is stored; nothing where there are no codebooks."""
        names = ("centroids", "steps", "windows", "errors") if self.levels else ()
        return {name: getattr(self, name) for name in names}


def joined_books(books: Sequence[tuple[int, float, np.ndarray]], d: int) -> Codebooks:
    """Return codebooks by the first coordinate, step and centroids of each; what they leave over is not known."""
    windows = np.array([(start, start + book.shape[1]) for start, _, book in books], dtype=np.int64).reshape(-1, 2)
    centroids = np.hstack([np.zeros((ENTRIES, 0), np.int8), *(book for _, _, book in books)])
    return Codebooks(
        centroids, np.array([step for _, step, _ in books], dtype=np.float32), windows, np.zeros((len(books) + 1, d))
    )


def wrong_codebooks(books: Codebooks, d: int) -> str:
    """Say what makes arrays no codebooks of d coordinates; nothing where they are codebooks."""
    centroids, steps, windows, errors = books.centroids, books.steps, books.windows, books.errors
    if windows.ndim != 2 or windows.shape[1] != 2 or windows.dtype != np.int64:
        return f"windows are {windows.dtype} of shape {windows.shape}; int64 of shape (levels, 2) was expected"
    if not ((windows[:, 0] >= 0) & (windows[:, 0] < windows[:, 1]) & (windows[:, 1] <= d)).all():
        return f"windows do not lie within {d} coordinates"
    width = int((windows[:, 1] - windows[:, 0]).sum())
    if centroids.shape != (ENTRIES, width):
        return f"centroids are of shape {centroids.shape}; ({ENTRIES}, {width}) was expected"
    if errors.ndim != 2 or len(errors) != len(windows) + 1 or not books.width <= errors.shape[1] <= d:
        return f"errors are of shape {errors.shape} for {len(windows)} codebooks of {books.width} coordinates"
    if centroids.dtype != np.int8 or errors.dtype != np.float64:
        return f"centroids are {centroids.dtype} and errors {errors.dtype}; int8 and float64 were expected"
    if steps.dtype != np.float32 or steps.shape != (len(windows),) or not np.isfinite(steps).all() or (steps < 0).any():
        return f"steps are no {len(windows)} finite float32 numbers of at least 0"
    if not np.isfinite(errors).all() or (errors < 0).any():
        return "errors are not finite, or negative"
    return ""


def _worst_window(costs: np.ndarray) -> slice:
    """Return the eight neighboring coordinates, from a multiple of eight on, whose costs are largest together."""
    starts = np.arange(0, len(costs), WINDOW_WIDTH)
    start = min(int(starts[np.add.reduceat(costs, starts).argmax()]), max(0, len(costs) - WINDOW_WIDTH))
    return slice(start, min(start + WINDOW_WIDTH, len(costs)))


def _left_over(rows: np.ndarray, means: np.ndarray, owner: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return what centroids would leave of each row if it were left out of its mean (see this module)."""
    weight = np.bincount(owner, share, minlength=len(means))[owner]
    others = weight - share
    alone = others < 1e-6 * share
    factor = np.divide(weight, others, out=np.ones(len(share)), where=~alone)
    found = (rows - means[owner]) * factor[:, None]
    if alone.any():
        found[alone] = rows[alone] - means[runner_up(rows[alone], means, owner[alone])]
    return found


class _Book:
    """A codebook as a matrix that gives |c|^2 / 2 - x · c of rows with a one at their end: least for the nearest c."""

    def __init__(self, centroids: np.ndarray, dtype: np.dtype):
        half = 0.5 * np.einsum("cm,cm->c", centroids, centroids, dtype=np.float64)
        self.centroids = centroids.astype(dtype, copy=False)
        self.matrix = np.vstack([-centroids.T, half]).astype(dtype)
        self.longest = float(np.sqrt(2 * half.max()))
        # Of two products of m + 1 numbers each, in unit roundoffs (see firstk.bits.encoding).
        self.roundoff = float(np.finfo(dtype).eps) * _LAMBDA * np.sqrt(centroids.shape[1] + 1)

    def nearest(self, rows: np.ndarray, doubt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest centroid of each row, and whether rounding or doubt could make it another."""
        longer = np.ones((len(rows), rows.shape[1] + 1), rows.dtype)
        longer[:, :-1] = rows
        apart = longer @ self.matrix
        places, nearest = np.arange(len(rows)), apart.argmin(axis=1)
        least = apart[places, nearest]
        apart[places, nearest] = np.inf
        second = apart[places, apart.argmin(axis=1)]
        size = np.sqrt(np.einsum("nm,nm->n", rows, rows))
        # Two centroids are 2 * longest apart at most; errors of coordinates are independent but for a tenth.
        margin = 2.5 * doubt + self.roundoff * (size + self.longest) + 1e-300
        return nearest, second - least <= self.longest * margin
