r"""Codebooks: the first bytes of a string, each the nearest of 256 centroids to what the bytes before it left over.

.. math:: a_l = \arg\min_c |r_{l-1} - C_l[c]|^2, \qquad r_l = r_{l-1} - C_l[a_l], \qquad r_0 = (z_1, \dots, z_m).

A byte of a codebook sees m coordinates at once, where a bit of a tree sees one: it finds groups of rows, and at less
than a bit for each coordinate it fills space better. Dropping the last byte leaves the code of the bytes before it:
residual (multi-stage) vector quantization, with the centroids of k-means.

References: Juang and Gray 1982; Gersho and Gray 1992, section 12.11; Lloyd 1982; Chen, Guan and Wang 2010 (search).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Centroids of a codebook: one byte.
ENTRIES = 256
# Codebooks, the coordinates they see, and the fewest rows they are fitted on, sixteen for each centroid: chosen on rows
# held out of the fit (docs/decisions.md).
LEVELS, WIDTH, FEWEST_ROWS = 6, 64, 16 * ENTRIES
# Rounds of k-means.
_ROUNDS = 10
# k-means works on integers up to this: sums of their products are exact in float64, in any order.
_LARGEST = 2.0**20
# Standard errors of a rounded sum that are allowed for, as for coordinates (firstk.encoder.quantizer.cells).
_LAMBDA = 8.0
# Rows whose distances are computed at once: they stay in the cache.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class Codebooks:
    r"""Codebooks of the first m coordinates; none (``levels == 0``) where there are too few rows for them.

    Attributes
    ----------
    centroids : ndarray of float32, shape (levels, 256, m)
    errors : ndarray of float64, shape (levels + 1, m)
        Of each coordinate the mean square of :math:`r_l`, on the rows of the fit; row 0 is the variance.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(5000, 8)) * np.linspace(2, 1, 8)
    >>> books = Codebooks.fit(Z)
    >>> codes, left = books.encode(Z)
    >>> codes.shape, books.errors.sum(axis=1).round(1)
    ((5000, 6), array([18.9,  4.7,  1.3,  0.4,  0.1,  0. ,  0. ]))
    """

    centroids: np.ndarray
    errors: np.ndarray

    @classmethod
    def none(cls) -> Codebooks:
        """Return no codebooks."""
        return cls(np.zeros((0, ENTRIES, 0), np.float32), np.zeros((1, 0)))

    @classmethod
    def fit(cls, Z: np.ndarray, weight: np.ndarray | None = None, levels: int = LEVELS) -> Codebooks:
        """Fit codebooks on codes of shape (n, d), one after the other; none on fewer than 4,096 rows."""
        lead = np.asarray(Z[:, :WIDTH], dtype=np.float64)
        largest = float(np.abs(lead).max(initial=0.0))
        if len(lead) < FEWEST_ROWS or not 0 < largest < np.sqrt(np.finfo(np.float32).max):
            return cls.none()
        share = np.full(len(lead), 1.0 / len(lead)) if weight is None else weight / weight.sum()
        # A power of two, so that integers and centroids are the same numbers.
        scale = 2.0 ** np.floor(np.log2(_LARGEST / largest))
        left = np.rint(lead * scale)
        centroids = []
        for _ in range(levels):
            means = _means(left, share)
            left = left - means[_nearest(left, means)]
            centroids.append((means / scale).astype(np.float32))
            if not left.any():
                break  # few distinct rows: further bytes would say nothing
        books = cls(np.stack(centroids), np.zeros((len(centroids) + 1, lead.shape[1])))
        codes, rest = books.encode(lead)[0], lead
        column = share[:, None]
        books.errors[0] = (column * np.square(lead - (column * lead).sum(axis=0))).sum(axis=0)
        for level, book in enumerate(books.centroids.astype(np.float64)):
            rest = rest - book[codes[:, level]]
            books.errors[level + 1] = (column * np.square(rest)).sum(axis=0)
        return books

    @property
    def levels(self) -> int:
        """Number of codebooks, one byte each."""
        return len(self.centroids)

    @property
    def width(self) -> int:
        """Coordinates that they see, m."""
        return self.centroids.shape[2]

    def encode(
        self,
        Z: np.ndarray,
        doubt: np.ndarray | None = None,
        exact: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes of codes, uint8 of shape (n, levels), and what they leave over, (n, m).

        Parameters
        ----------
        Z : ndarray of float64, shape (n, m)
        doubt : ndarray of shape (n,), optional
            How far each row may be from the true one, as a norm.
        exact : callable, optional
            Returns the rows of some numbers without doubt; those of `Z` if not given.

        Notes
        -----
        Products of matrices decide where their rounding cannot matter; rows for which it could are decided by sums in a
        fixed order. So bytes do not depend on the rows beside them.
        """
        codes = np.empty((len(Z), self.levels), dtype=np.uint8)
        left = np.array(Z, dtype=np.float64)
        sizes = np.zeros(len(Z)) if doubt is None else doubt
        unsure = np.zeros(len(Z), dtype=bool)
        for start in range(0, len(Z), _ROWS):
            rows = slice(start, start + _ROWS)
            for level, book in enumerate(self.centroids.astype(np.float64)):
                codes[rows, level], close = _decided(left[rows], book, sizes[rows])
                unsure[rows] |= close
                left[rows] -= book[codes[rows, level]]
        for start in range(0, int(unsure.sum()), _ROWS):
            some = np.flatnonzero(unsure)[start : start + _ROWS]
            codes[some], left[some] = self._one_by_one(Z[some] if exact is None else exact(some))
        return codes, left

    def _one_by_one(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Encode rows with sums in a fixed order; of equal distances the lower number."""
        codes, left = np.empty((len(Z), self.levels), dtype=np.uint8), np.array(Z, dtype=np.float64)
        for level, book in enumerate(self.centroids.astype(np.float64)):
            for row in range(len(left)):
                apart = book - left[row]
                codes[row, level] = np.argmin(np.einsum("cm,cm->c", apart, apart))
            left -= book[codes[:, level]]
        return codes, left

    def sums(self, codes: np.ndarray) -> np.ndarray:
        """Return what the first bytes of codes add up to, float32 of shape (n, m)."""
        total = np.zeros((len(codes), self.width), dtype=np.float32)
        for level, book in enumerate(self.centroids[: codes.shape[1]]):
            total += book[codes[:, level]]
        return total

    def cut(self, k: int) -> Codebooks:
        """Return the codebooks of the first k coordinates."""
        return Codebooks(self.centroids[:, :, :k], self.errors[:, :k])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what is stored; nothing where there are no codebooks."""
        return {"centroids": self.centroids, "errors": self.errors} if self.levels else {}


def wrong_codebooks(books: Codebooks, d: int) -> str:
    """Say what makes arrays no codebooks of d coordinates; nothing where they are codebooks."""
    centroids, errors = books.centroids, books.errors
    if centroids.ndim != 3 or centroids.shape[1] != ENTRIES or centroids.shape[2] > d:
        return f"centroids are of shape {centroids.shape}; (levels, {ENTRIES}, {d} or fewer) was expected"
    if errors.shape != (len(centroids) + 1, centroids.shape[2]):
        return f"errors are of shape {errors.shape} for centroids of shape {centroids.shape}"
    if centroids.dtype != np.float32 or errors.dtype != np.float64:
        return f"centroids are {centroids.dtype} and errors {errors.dtype}; float32 and float64 were expected"
    if not np.isfinite(centroids).all() or not np.isfinite(errors).all() or (errors < 0).any():
        return "centroids or errors are not finite, or errors negative"
    return ""


def _decided(left: np.ndarray, book: np.ndarray, doubt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest centroid of each row, and whether rounding or doubt could make it another."""
    half = 0.5 * np.einsum("cm,cm->c", book, book)
    apart = half - left @ book.T
    rows = np.arange(len(left))
    nearest = apart.argmin(axis=1)
    least = apart[rows, nearest]
    apart[rows, nearest] = np.inf
    longest = np.sqrt(2 * half.max())
    size = np.sqrt(np.einsum("nm,nm->n", left, left))
    rounding = np.finfo(np.float64).eps * (_LAMBDA * np.sqrt(book.shape[1]) * (size + longest) + 1e-300)
    return nearest, apart.min(axis=1) - least <= 4 * longest * (doubt + rounding)


def _nearest(rows: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Return the nearest of some integer centroids to each integer row: exact, of equals the first."""
    half = np.square(centroids).sum(axis=1) / 2
    found = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        near = rows[part] @ centroids.T
        near -= half
        found[part] = near.argmax(axis=1)
    return found


def _means(rows: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the centroids of k-means on integer rows, rounded to integers."""
    centroids = rows[np.linspace(0, len(rows) - 1, ENTRIES).astype(np.int64)]
    for _ in range(_ROUNDS):
        owner = _nearest(rows, centroids)
        before, centroids = centroids, _updated(rows, share, owner, centroids)
        if np.array_equal(before, centroids):
            break
    return centroids


def _updated(rows: np.ndarray, share: np.ndarray, owner: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Return the mean of the rows of each centroid; one without rows moves to a row that is far from its own."""
    order = np.argsort(owner, kind="stable")
    kept, first = np.unique(owner[order], return_index=True)
    total = np.add.reduceat(rows[order] * share[order, None], first, axis=0)
    weight = np.add.reduceat(share[order], first)
    made = centroids.copy()
    heavy = weight > 0
    made[kept[heavy]] = np.rint(total[heavy] / weight[heavy, None])
    empty = np.setdiff1d(np.arange(len(centroids)), kept)
    if len(empty):
        apart = np.square(rows - centroids[owner]).sum(axis=1)
        made[empty] = rows[np.argsort(-apart, kind="stable")[: len(empty)]]
    return made
