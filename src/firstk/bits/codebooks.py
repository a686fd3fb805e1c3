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
that was not tried yet is taken to be worth 64 bits, so each is tried, if it has a number for each one and a half of the
rows of a centroid: trials of narrower ones would be wasted bytes. The last term makes codebooks narrow where rows are
few. They end where the best eight bits of trees gain as much, unless rows are so many that all see 256. Where it is
known how many rows share the model, a codebook of width w is charged its :math:`256 w` bytes divided by these rows, and
gains are compared per byte.

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
# Rows that a coordinate of a codebook can use: one and a half for each of its numbers.
_ROWS_PER_NUMBER = 1.5 * ENTRIES
# What a tree leaves of the variance of a normal variable after 0, 1, ... bits (Max 1960).
_TREE = np.array([1.0, 0.3634, 0.1175, 0.0345, 0.0095])
# The largest centroid in steps.
STEPS = 127
# Rows whose distances are computed at once: they stay in the cache.
_ROWS = 512
# The longest sum of centroids on the grid of `encode`: what is left of rows has integers that float32 holds.
_REACH = 2.0**22
# Candidates that are kept after each byte, and the most.
EFFORT, MOST_EFFORT = 2, 8


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

    def encode(
        self,
        Z: np.ndarray,
        doubt: np.ndarray | None = None,
        exact: Callable[[np.ndarray], np.ndarray] | None = None,
        effort: int = EFFORT,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes of codes, uint8 of shape (n, levels), and what they leave over, (n, m).

        After each byte the `effort` candidates that leave least are kept (a beam; Chen, Guan and Wang 2010). Rows and
        centroids are rounded to a grid on which all sums are integers, and ties go to the first candidate. So bytes
        depend neither on rounding nor on the rows beside them.

        Parameters
        ----------
        Z : ndarray of shape (n, m)
        doubt : ndarray of shape (n,), optional
            How far a row may be from the true one, along any direction.
        exact : callable, optional
            Returns the rows of some numbers without doubt; those of `Z` if not given.
        effort : int
        """
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        codes = np.empty((len(Z), self.levels), dtype=np.uint8)
        exact = Z.__getitem__ if exact is None else exact
        if not self.levels:
            return codes, Z
        scale = _REACH / sum(float(np.linalg.norm(book, axis=1).max()) for _, book in self.books)
        grid = np.rint(scale * Z)
        if doubt is not None:
            edge = 0.5 - np.abs(scale * Z - grid).max(axis=1, initial=0.0) <= 2 * scale * doubt
            if edge.any():
                grid[edge] = np.rint(scale * exact(np.flatnonzero(edge)))
        # No sum of centroids is longer.
        grid = np.rint(grid * np.minimum(1.0, _REACH / (np.linalg.norm(grid, axis=1, keepdims=True) + 1)))
        books = []
        for (window, book), steps, step in zip(self.books, self.in_steps, self.steps.tolist(), strict=True):
            squares = np.square(steps, dtype=np.int64).sum(axis=1)
            # A residual no longer than 2^fine has integer products below 2^23 with centroids in steps.
            fine = 23 - (int(squares.max()).bit_length() + 1) // 2
            centroids = np.rint(scale * book.astype(np.float64)).astype(np.float32)
            step *= scale
            books.append((window, centroids, steps.T.astype(np.float32), squares, step, fine))
        for start in range(0, len(Z), _ROWS // effort):
            left = grid[start : start + _ROWS // effort, None].astype(np.float32)
            errors = _squares(left)
            places, paths = np.arange(len(left)), np.empty((len(left), 1, 0), dtype=np.uint8)
            for window, book, steps, squares, step, fine in books:
                part = left[:, :, window]
                own = errors if part.shape == left.shape else _squares(part)
                # Products of rounded rows with centroids in steps are sums of integers, exact in float32.
                power = np.ldexp(1.0, fine - (np.frexp(own)[1] + 1) // 2).astype(np.float32)[:, :, None]
                apart = np.rint(part * power).reshape(-1, len(steps)) @ steps
                apart = apart.reshape(len(left), -1, ENTRIES)
                apart *= np.float32(-2 * step) / power
                apart += (step**2 * squares).astype(np.float32)
                apart += errors.astype(np.float32)[:, :, None]
                apart = apart.reshape(len(left), -1)
                best = np.empty((len(left), min(effort, apart.shape[1])), dtype=np.int64)
                for place in range(best.shape[1]):
                    best[:, place] = apart.argmin(axis=1)
                    apart[places, best[:, place]] = np.inf
                parent, entry = best // ENTRIES, best % ENTRIES
                left = left[places[:, None], parent]
                left[:, :, window] -= book[entry]
                errors = (errors - own)[places[:, None], parent] + _squares(left[:, :, window])
                paths = np.dstack([paths[places[:, None], parent], entry.astype(np.uint8)])
            codes[start : start + len(left)] = paths[:, 0]
        return codes, Z - self.sums(codes)

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
    [slice(0, 16, None), slice(0, 64, None)]
    """
    d = len(variances)
    trees = np.sort(np.outer(costs * variances, -np.diff(_TREE)), axis=None)[-8:].sum()
    narrowest = min(rows / _ROWS_PER_NUMBER, WIDTHS[-1])
    # Where all codebooks are wide, they find more neighbors than variances tell (docs/decisions/bits.md).
    best, found = -np.inf if narrowest > WIDTHS[-2] and np.isinf(shared_by) else trees, None
    for width, worth in {min(d, width): worth for width, worth in zip(WIDTHS, bits.tolist(), strict=True)}.items():
        if width < min(d, narrowest):
            continue
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


def _squares(rows: np.ndarray) -> np.ndarray:
    """Return the squared norms of rows of integers, (n, b, m), which are exact."""
    return np.einsum("nbm,nbm->nb", rows, rows, dtype=np.float64)
