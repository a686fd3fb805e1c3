r"""Codebooks: the first bytes of a string, each the nearest of 256 centroids to what the bytes before it left over.

.. math:: a_l = \arg\min_c |r_{l-1} - C_l[c]|^2, \qquad r_l = r_{l-1} - C_l[a_l], \qquad r_0 = (z_1, \dots, z_m),

where :math:`C_l` is zero outside the window of coordinates that codebook l sees. A byte of a codebook sees many
coordinates at once, where a bit of a tree sees one: it finds groups of rows, and at about a bit for each coordinate it
fills space better. Dropping the last byte leaves the code of the bytes before it: residual (multi-stage) vector
quantization, with the centroids of k-means (`k_means`).

**Rows that are left out.** A centroid is the mean of n rows, one of which is the row that it stands for: what it leaves
of that row is smaller than what it would leave of another. Codebooks and trees that are fitted on such residuals are
too narrow for rows that come later. So they are fitted on what a centroid would leave of each row had that row been
left out of its mean,

.. math:: z - \frac{n C - z}{n - 1} = \frac{n}{n - 1} (z - C),

or, of a row that has a centroid to itself, on what the second nearest one leaves.

**Windows.** Before each byte, the window is the one that lowers the weighted error of rows to come most, as far as the
variances v of what is left can tell. The best code of R bits leaves :math:`D_i = \min(v_i, t)` of them, t such that
:math:`\sum_i \tfrac12 \log_2 (v_i / D_i) = R` (reverse water-filling; Cover and Thomas 2006, section 10.3.3). Of 256
centroids fitted on n rows, other rows keep about 256 / n more of that than was expected (each centroid is off by the
mean error of n / 256 rows), so that

.. math:: \text{gain} = \sum_i w_i \, (v_i - D_i) - \frac{256}{n} \sum_i w_i D_i.

R is what the last codebook of that width had, less that share, and no more than a wider one had since: groups of rows
give the first ones more than eight bits' worth, and where there are none left, about six and a half remain. A width
that was not tried yet is taken to be worth 64 bits, so each is tried. The last term makes codebooks narrow where rows
are few. They end where the best eight bits of trees gain as much. Where it is known how many rows share the model, a
codebook of width w is charged its :math:`256 w` bytes divided by these rows, and gains are compared per byte.

**Eight bits.** Centroids are stored once, but on small stores they would take more room than all codes. So they are
multiples of a step, one for each codebook, and are rounded before residuals are taken: later codebooks see the rounding
(figures in docs/decisions/bits.md).

References: Juang and Gray 1982; Gersho and Gray 1992, section 12.11; Lloyd 1982; Chen, Guan and Wang 2010 (search).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firstk.bits.k_means import ENTRIES, as_integers, k_means, runner_up

# The most codebooks, the fewest rows to fit on, sixteen for each centroid, and the widths of windows, which begin at a
# quarter of their width or at the narrowest. The power of variances that errors are weighted by was chosen on rows held
# out of the fit (docs/decisions/bits.md).
LEVELS, FEWEST_ROWS = 24, 16 * ENTRIES
WIDTHS = (8, 16, 32, 64, 128, 256)
TAU = 1 / 3
# What a width that was not tried is taken to be worth, in bits.
_FIRST_BITS = 64.0
# What a tree leaves of the variance of a normal variable after 0, 1, ... bits (Max 1960).
_TREE = np.array([1.0, 0.3634, 0.1175, 0.0345, 0.0095])
# The largest centroid in steps.
STEPS = 127
# Standard errors of a rounded sum that are allowed for, as for coordinates (firstk.bits.encoding).
_LAMBDA = 8.0
# Rows whose distances are computed at once: they stay in the cache.
_ROWS = 512
# The longest sum of centroids on the grid of `_searched`, and the most candidates: keys are integers below 2^53.
_REACH, MOST_EFFORT = 2.0**20, 8


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
    >>> books.windows.tolist(), bool((np.diff(books.errors.sum(axis=1)) < 0).all())
    ([[0, 8], [0, 8], [0, 8], [0, 8], [0, 8], [0, 8]], True)
    """

    centroids: np.ndarray
    steps: np.ndarray
    windows: np.ndarray
    errors: np.ndarray

    @classmethod
    def none(cls) -> Codebooks:
        """Return no codebooks."""
        return cls(np.zeros((ENTRIES, 0), np.int8), np.zeros(0, np.float32), np.zeros((0, 2), int), np.zeros((1, 0)))

    @classmethod
    def fit(
        cls, Z: np.ndarray, weight: np.ndarray | None = None, shared_by: float = np.inf
    ) -> tuple[Codebooks, np.ndarray]:
        """Fit codebooks on codes of shape (n, d), one after the other; none on fewer than 4,096 rows.

        `shared_by` is how many rows share the bytes of the centroids. Returned are the codebooks and what they leave
        over, of the shape of `Z`, for those who fit the rest of a string.
        """
        largest = float(np.abs(Z).max(initial=0.0))
        if len(Z) < FEWEST_ROWS or not 0 < largest < np.sqrt(np.finfo(np.float32).max):
            return cls.none(), Z
        share = np.full(len(Z), 1.0 / len(Z)) if weight is None else weight / weight.sum()
        left, scale = as_integers(Z)
        rows = 1 / np.square(share).sum()
        apart = Z - share @ Z
        errors = [share @ np.square(apart, out=apart)]
        del apart
        costs, bits = errors[0] ** TAU, np.full(len(WIDTHS), _FIRST_BITS)
        books: list[np.ndarray] = []
        steps, windows = [], []
        for _ in range(min(LEVELS, 4 + 2 * -(-Z.shape[1] // WIDTHS[0]))):
            window = best_window(errors[-1], costs, bits, rows, shared_by)
            if window is None or not left[:, window].any():
                break
            means, owner = k_means(left[:, window], share)
            step = max(1.0, np.ceil(np.abs(means).max() / STEPS))
            rounded = np.rint(means / step)
            # In place, as rows are many.
            others = _left_over(left[:, window], means, owner, share)
            np.rint(others, out=others)
            others += (means - step * rounded)[owner]
            left[:, window] = others
            others /= scale
            error = errors[-1].copy()
            error[window] = share @ np.square(others, out=others)
            del others
            worth = bits_worth(errors[-1][window], float(error[window].sum()) / (1 + ENTRIES / rows))
            width = int(np.searchsorted(WIDTHS, window.stop - window.start))
            bits[: width + 1] = np.minimum(bits[: width + 1], worth)
            bits[width] = worth
            errors.append(error)
            books.append(rounded.astype(np.int8))
            steps.append(step / scale)
            windows.append((window.start, window.stop))
        if not books:
            return cls.none(), Z
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
        effort: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes of codes, uint8 of shape (n, levels), and what they leave over, (n, m).

        `Z` and `doubt` are those of `decided`; `exact` returns the rows of some numbers without doubt, those of `Z` if
        not given; `effort` is how many candidates are kept after each byte (`_searched`). Products of matrices decide
        where their rounding cannot matter; rows for which it could are decided by sums in a fixed order. So bytes do
        not depend on the rows beside them.
        """
        Z = np.asarray(Z, dtype=np.float64)
        exact = Z.__getitem__ if exact is None else exact
        if effort > 1:
            codes = self._searched(Z, np.zeros(len(Z)) if doubt is None else doubt, exact, effort)
            return codes, Z - self.sums(codes)
        codes, left, unsure = self.decided(Z, doubt)
        again = np.flatnonzero(unsure)
        for start in range(0, len(again), _ROWS):
            some = again[start : start + _ROWS]
            rows = np.array(exact(some), dtype=np.float64)
            for level, (window, book) in enumerate(self.books):
                for number, row in zip(some, rows, strict=True):  # sums in a fixed order; of equals the lower number
                    apart = book.astype(np.float64) - row[window]
                    codes[number, level] = np.argmin(np.einsum("cm,cm->c", apart, apart))
                rows[:, window] -= book[codes[some, level]]
            left[some] = rows
        return codes, left

    def _searched(
        self, Z: np.ndarray, doubt: np.ndarray, exact: Callable[[np.ndarray], np.ndarray], effort: int
    ) -> np.ndarray:
        """Return the bytes of codes, uint8 of shape (n, levels), of the best of `effort` candidates for each.

        After each byte the candidates that leave least are kept (a beam; Chen, Guan and Wang 2010), instead of one.
        `Z`, `doubt` and `exact` are those of `encode`, in float64. Coordinates and centroids are rounded to a grid on
        which all sums are integers below 2^53, and ties go to the first candidate: no bytes depend on rounding.
        """
        scale = _REACH / sum(float(np.linalg.norm(book, axis=1).max()) for _, book in self.books)
        books = [(window, np.rint(scale * book.astype(np.float64))) for window, book in self.books]
        grid, codes = np.rint(scale * Z), np.empty((len(Z), self.levels), dtype=np.uint8)
        edge = 0.5 - np.abs(scale * Z - grid).max(axis=1, initial=0.0) <= 2 * scale * doubt
        if edge.any():
            grid[edge] = np.rint(scale * exact(np.flatnonzero(edge)))
        # No sum of centroids is longer.
        grid = np.rint(grid * np.minimum(1.0, _REACH / (np.linalg.norm(grid, axis=1, keepdims=True) + 1)))
        for start in range(0, len(Z), _ROWS // effort):
            left = grid[start : start + _ROWS // effort, None]
            errors, paths = np.zeros((len(left), 1)), np.empty((len(left), 1, 0), dtype=np.uint8)
            for window, book in books:
                part = left[:, :, window]
                apart = errors[:, :, None] + np.square(book).sum(axis=1) - 2 * (part @ book.T)
                # The number of a candidate in the last digits: keys differ, so that any way of sorting keeps the same.
                keys = apart.reshape(len(left), -1) * (effort * ENTRIES) + np.arange(apart[0].size)
                keys = np.sort(np.partition(keys, effort - 1, axis=1)[:, :effort], axis=1)
                errors, number = keys // (effort * ENTRIES), (keys % (effort * ENTRIES)).astype(np.int64)
                parent, entry = (number // ENTRIES)[:, :, None], number % ENTRIES
                left = np.take_along_axis(left, parent, axis=1)
                left[:, :, window] -= book[entry]
                paths = np.take_along_axis(paths, parent, axis=1)
                paths = np.concatenate([paths, entry[:, :, None].astype(np.uint8)], axis=2)
            codes[start : start + len(left)] = paths[:, 0]
        return codes

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
        return f"steps are not {len(windows)} finite float32 numbers of at least 0"
    if not np.isfinite(errors).all() or (errors < 0).any():
        return "errors are not finite, or negative"
    return ""


def best_window(
    variances: np.ndarray, costs: np.ndarray, bits: np.ndarray, rows: float, shared_by: float = np.inf
) -> slice | None:
    """Return the window of the codebook that gains most per byte for rows to come; None where trees gain as much.

    `variances` are of what is left, (d,), and `costs` what a unit of its error costs; `bits` is what a codebook of each
    of `WIDTHS` is worth. It is fitted on `rows` rows, and `shared_by` rows share its bytes.

    Examples
    --------
    >>> v = np.linspace(1, 0, 64) ** 4
    >>> [best_window(v, v ** (1 / 3), np.full(6, 6.5), n) for n in (4_096, 1_000_000)]
    [slice(0, 8, None), slice(0, 16, None)]
    """
    d = len(variances)
    trees = np.sort(np.outer(costs * variances, -np.diff(_TREE)), axis=None)[-8:].sum()
    best, found = trees, None
    for width, worth in {min(d, width): worth for width, worth in zip(WIDTHS, bits.tolist(), strict=True)}.items():
        starts = np.append(np.arange(0, d - width, max(WIDTHS[0], width // 4)), d - width)
        seen = starts[:, None] + np.arange(width)
        v, w = variances[seen], costs[seen]
        left = np.minimum(v, _water_level(v, worth)[:, None])
        gains = ((w * (v - left)).sum(axis=1) - ENTRIES / rows * (w * left).sum(axis=1)) / (
            1 + ENTRIES * width / shared_by
        )
        place = int(gains.argmax())
        if gains[place] > best:
            best, found = gains[place], slice(int(starts[place]), int(starts[place]) + width)
    return found


def _water_level(variances: np.ndarray, bits: float) -> np.ndarray:
    """Return the t of each row of variances for which the best code of so many bits leaves min(v, t) of each v."""
    ordered = -np.sort(-variances, axis=1)
    # With the k largest above the level, bits = sum of half log2(v / t) over these: as many as lie above their own t.
    logs = np.log2(np.maximum(ordered, np.finfo(np.float64).tiny))
    levels = 2 ** ((np.cumsum(logs, axis=1) - 2 * bits) / np.arange(1, variances.shape[1] + 1))
    above = np.maximum((levels < ordered).sum(axis=1), 1) - 1
    return np.asarray(levels[np.arange(len(levels)), above])


def bits_worth(variances: np.ndarray, left: float) -> float:
    """Return how many bits the best code of normal coordinates needs to leave so much error in all."""
    low, high = 0.0, 64.0
    for _ in range(50):
        middle = (low + high) / 2
        error = np.minimum(variances, _water_level(variances[None], middle)).sum()
        low, high = (middle, high) if error > left else (low, middle)
    return high


def _left_over(rows: np.ndarray, means: np.ndarray, owner: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return what centroids would leave of each row if it were left out of its mean (see this module)."""
    weight = np.bincount(owner, share, minlength=len(means))[owner]
    others = weight - share
    alone = others <= 1e-6 * share
    factor = np.divide(weight, others, out=np.ones(len(share)), where=~alone)
    found = means[owner]
    np.subtract(rows, found, out=found)
    found *= factor[:, None]
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
