"""Differences of two methods on the same rows: bootstrap intervals, and Holm's control of many comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from firstk.metrics.bootstrap import MeanScore, resampled_scores

RESAMPLES, LEVEL = 1000, 0.05


@dataclass(frozen=True)
class Difference:
    """Ours less a peer at one length: difference, 95 % interval of the paired bootstrap, and p of no difference."""

    value: float
    low: float
    high: float
    p: float


def draws(runs: Sequence[Any], resamples: int = RESAMPLES) -> np.ndarray:
    """Return resampled scores of a method, (resamples, K), a mean over its seeds; the same rows for all methods."""
    if all(isinstance(run, MeanScore) for run in runs):  # a mean over rows of means over seeds: one resampling for all
        runs = [MeanScore(np.mean([run.values for run in runs], axis=0))]
    return np.mean([resampled_scores(run, resamples=resamples) for run in runs], axis=0)


def difference(ours: float, peer: float, drawn_ours: np.ndarray, drawn_peer: np.ndarray) -> Difference:
    """Return the difference of two scores with the same resampled rows.

    p is that of a normal law with the deviation of the resampled differences: shares of draws have too coarse a
    resolution for many comparisons.
    """
    spread = drawn_ours - drawn_peer
    low, high = np.quantile(spread, [0.025, 0.975])
    value, deviation = ours - peer, float(spread.std())
    if deviation == 0:
        return Difference(value, float(low), float(high), 1.0 if value == 0 else 0.0)
    return Difference(value, float(low), float(high), float(2 * norm.sf(abs(value) / deviation)))


def holm(p: Sequence[float]) -> np.ndarray:
    """Return p adjusted for the number of comparisons (Holm 1979): ``max_{j<=i} min(1, (m - j + 1) p_(j))``.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p, dtype=float)
    order = np.argsort(given, kind="stable")
    steps = np.minimum(1.0, given[order] * (len(given) - np.arange(len(given))))
    adjusted = np.empty_like(given)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def verdict(value: float, adjusted: float) -> str:
    """Return "ahead", "behind" or "level"."""
    return "level" if adjusted >= LEVEL else "ahead" if value > 0 else "behind"
