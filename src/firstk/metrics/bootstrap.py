"""Scores before they are added up: one row for each row, pair or query, one column for each prefix length.

A score of a curve is a statistic of rows, queries or pairs: a mean, a share of squares explained, a rank correlation.
Kept apart by row, it can be taken again over rows drawn with replacement, for all prefix lengths at once: that is the
bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13: the percentile interval).
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from firstk._base.checks import bad_parameter, check_count, is_real
from firstk.metrics.ranking import midranks, rank_correlation
from firstk.quality.paired import CONFIDENCE, DRAWS

# Numbers in one block of draws: rows times draws.
BLOCK_ENTRIES = 1 << 21
# Columns that are held in float64 at a time.
BLOCK_COLUMNS = 64


class PerRowScores(Protocol):
    """Scores by row and prefix length, and the statistic that they make."""

    @property
    def n(self) -> int:
        """How many rows, queries or pairs there are."""

    def score(self) -> np.ndarray:
        """Return the statistic of each prefix length, shape (K,)."""

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """Return the statistic, shape (B, K), of B draws in which row i occurs ``counts[i, b]`` times."""


@dataclass(frozen=True, eq=False)
class MeanScore:
    """The mean over rows of `values` / `out_of`: accuracies, recalls, gains of rankings.

    Attributes
    ----------
    values : ndarray of shape (n, K)
        Hits (bool), counts (int) or scores (float).
    out_of : int
        The largest count, where counts are kept.
    weights : ndarray of shape (n,), optional
        What each row counts in the mean, positive; all count the same if not given.
    rows : ndarray of int of shape (n,), optional
        Which rows of the data they are, where some are not scored.
    """

    values: np.ndarray
    out_of: int = 1
    weights: np.ndarray | None = None
    rows: np.ndarray | None = None

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.values)

    def score(self) -> np.ndarray:
        """Return the mean of each column."""
        if self.weights is not None:
            return self.weights @ self.values.astype(np.float64) / (self.weights.sum() * self.out_of)
        return self.values.sum(axis=0, dtype=np.float64) / (self.n * self.out_of)

    def part(self, chosen: np.ndarray) -> MeanScore:
        """Return the scores of some rows of the data, given as a mask over all of them."""
        kept = chosen if self.rows is None else chosen[self.rows]
        return replace(
            self,
            values=self.values[kept],
            weights=None if self.weights is None else self.weights[kept],
            rows=None if self.rows is None else self.rows[kept],
        )

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """Return the means of resampled rows: one matrix product."""
        if self.weights is not None:
            weighted = counts * self.weights[:, None]
            return _weighted_sums(self.values, weighted) / (weighted.sum(axis=0)[:, None] * self.out_of)
        return _weighted_sums(self.values, counts) / (self.n * self.out_of)


@dataclass(frozen=True, eq=False)
class ExplainedShare:
    r"""One less the errors over the sizes, both added up over rows: explained variance and R².

    Attributes
    ----------
    errors : ndarray of shape (n, K)
        Squared error that each prefix leaves in each row.
    sizes : ndarray of shape (n,)
        Squared size of each row: of what is to be explained.
    targets : ndarray of shape (n, t), optional
        What is to be explained, where its size is that about its own mean: :math:`\sum_i |y_i|^2 - |\sum_i y_i|^2 / n`.
    """

    errors: np.ndarray
    sizes: np.ndarray
    targets: np.ndarray | None = None

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.errors)

    def score(self) -> np.ndarray:
        """Return the share that each prefix explains."""
        return 1.0 - self.errors.sum(axis=0) / self._whole(np.ones((self.n, 1)))

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """Return the shares of resampled rows."""
        whole = self._whole(counts)
        # A draw of equal rows has nothing to explain; its share is 0, as in a constant target.
        left = _weighted_sums(self.errors, counts)
        return 1.0 - np.divide(left, whole[:, None], out=np.ones_like(left), where=whole[:, None] > 0)

    def _whole(self, counts: np.ndarray) -> np.ndarray:
        """Return what is to be explained in each draw, shape (B,)."""
        whole: np.ndarray = counts.T @ self.sizes
        return whole if self.targets is None else whole - _squared_sums(self.targets, counts) / self.n


# Targets and draws with what the targets sum to in them: scores of the same rows share both, a table of them hundreds
# of times.
_summed: deque[tuple[weakref.ref[np.ndarray], weakref.ref[np.ndarray], np.ndarray]] = deque(maxlen=4)


def _squared_sums(targets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the squared norm of the sum of the targets in each draw, shape (B,)."""
    for known, drawn, sums in tuple(_summed):  # a copy, as another thread may put other draws there
        if known() is targets and drawn() is counts:
            return sums
    sums = np.square(counts.T @ targets).sum(axis=1)
    _summed.appendleft((weakref.ref(targets), weakref.ref(counts), sums))
    return sums


@dataclass(frozen=True, eq=False)
class RankAgreement:
    """Spearman's correlation of each column of `values` with `scores`; equal numbers share their mean rank.

    Attributes
    ----------
    values : ndarray of shape (n, K)
    scores : ndarray of shape (n,)
    """

    values: np.ndarray
    scores: np.ndarray

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return len(self.values)

    def score(self) -> np.ndarray:
        """Return the correlation of each prefix length."""
        return np.array([rank_correlation(column, self.scores) for column in self.values.T])

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """Return the correlations of resampled pairs, ranked anew.

        A pair that is drawn c times counts c times and ties with itself, so ranks are cumulative counts.
        """
        wanted = midranks(self.scores, counts) - (self.n + 1) / 2
        spread = np.sqrt(np.einsum("ib,ib,ib->b", counts, wanted, wanted))
        weighted = counts * wanted
        found = np.empty((counts.shape[1], self.values.shape[1]))
        for k, column in enumerate(self.values.T):
            ranks = midranks(column, counts) - (self.n + 1) / 2
            size = np.sqrt(np.einsum("ib,ib,ib->b", counts, ranks, ranks)) * spread
            products = np.einsum("ib,ib->b", weighted, ranks)
            found[:, k] = np.divide(products, size, out=np.zeros_like(products), where=size > 0)
        return found


def bootstrap_interval(
    scores: PerRowScores, confidence: float = CONFIDENCE, *, resamples: int = DRAWS, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile intervals of a score at every prefix length, from rows drawn with replacement.

    All prefix lengths see the same draws, so the ends of the interval move together along the curve.

    Parameters
    ----------
    scores : MeanScore, ExplainedShare or RankAgreement
    confidence : float in (0, 1)
        Share of draws between the two ends.
    resamples : int
        How many draws.
    random_state : int
        Seed of the draws: the same one gives the same interval.

    Returns
    -------
    low, high : ndarray of shape (K,)

    Examples
    --------
    >>> hits = np.arange(200)[:, None] % 10 < [5, 9]
    >>> low, high = bootstrap_interval(MeanScore(hits))
    >>> low.round(2), high.round(2)
    (array([0.43, 0.86]), array([0.58, 0.94]))
    """
    confidence = check_confidence(confidence, "bootstrap_interval")
    resamples = check_count(resamples, "resamples", "bootstrap_interval")
    draws = resampled_scores(scores, resamples=resamples, random_state=random_state)
    edge = (1 - confidence) / 2
    low, high = np.quantile(draws, [edge, 1 - edge], axis=0)
    return low, high


def resampled_scores(scores: PerRowScores, *, resamples: int, random_state: int = 0) -> np.ndarray:
    """Return the score of each prefix length on resampled rows, shape (resamples, K).

    Scores of equally many rows see the same draws, so their differences are paired.
    """
    if not resamples:
        return np.empty((0, len(scores.score())))
    return np.concatenate([scores.resampled(counts) for counts in _draws(scores.n, resamples, random_state)])


def check_confidence(value: Any, owner: str) -> float:
    """Return `value` as a float between 0 and 1, neither included."""
    if not is_real(value) or not 0 < value < 1:
        raise bad_parameter("confidence", owner, "a number between 0 and 1, such as 0.95", value)
    return float(value)


def _draws(n: int, resamples: int, random_state: int) -> Iterable[np.ndarray]:
    """Return blocks of shape (n, B): how often each of n rows is drawn, n draws a column."""
    if n * resamples <= BLOCK_ENTRIES:
        return _remembered_draws(n, resamples, random_state)
    return _drawn(n, resamples, random_state)


@lru_cache(maxsize=1)
def _remembered_draws(n: int, resamples: int, random_state: int) -> tuple[np.ndarray, ...]:
    """Return one block that is asked for again by each score that is compared with others."""
    return tuple(_drawn(n, resamples, random_state))


def _drawn(n: int, resamples: int, random_state: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(random_state)
    size = max(1, min(resamples, BLOCK_ENTRIES // n))
    for first in range(0, resamples, size):
        columns = range(min(size, resamples - first))
        yield np.stack([np.bincount(rng.integers(n, size=n), minlength=n) for _ in columns], axis=1).astype(np.float64)


def _weighted_sums(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return counts.T @ values, a few columns in float64 at a time."""
    sums = np.empty((counts.shape[1], values.shape[1]))
    for first in range(0, values.shape[1], BLOCK_COLUMNS):
        part = slice(first, first + BLOCK_COLUMNS)
        sums[:, part] = counts.T @ values[:, part].astype(np.float64)
    return sums
