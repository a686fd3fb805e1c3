"""Measuring the profile of rows under an encoder, at the fit and later: the same function for both.

Scores that look for neighbors are taken among disjoint groups of equally many rows, so that profiles of files of
different lengths can be compared: recall@10 among 1,024 rows is another number than recall@10 among 256.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from firstk._base.rows import Rows as Matrix
from firstk._base.rows import as_dense, sliceable
from firstk.data.task import Rows
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.profile import SIZES, RowProfile, ScoreTable
from firstk.metrics.bootstrap import resampled_scores
from firstk.metrics.curve import METRICS, per_row_scores
from firstk.quality.paired import DRAWS

# The metric that every encoder has: whether short codes find the neighbors that the full vectors have.
RECALL = "recall@10"
# Rows of a fit that are scored at most, for which refits are scored too, and other rows; groups of them, among which
# scores are taken.
MOST_ROWS, MOST_OTHER_ROWS, MOST_GROUPS = 2048, 8192, 8
FEWEST_ROWS = SIZES[0]


@dataclass(frozen=True, eq=False)
class Scatter:
    """Mean and scatter of rows: all that the shares of variance need.

    Attributes
    ----------
    rows : int
    mean : ndarray of shape (p,)
    S : ndarray of shape (p, p)
        Scatter about the mean, divided by the number of rows.
    """

    rows: int
    mean: np.ndarray
    S: np.ndarray


def measure_profile(
    encoder: FittedEncoder,
    X: Matrix,
    y: np.ndarray | None = None,
    *,
    scatter: Scatter | None = None,
    sizes: tuple[int, ...] = SIZES,
    held_out: bool = False,
    most_rows: int = MOST_ROWS,
    k: int | None = None,
) -> RowProfile | None:
    """Measure rows under an encoder; None of fewer than 64 rows, and of rows that do not vary.

    Parameters
    ----------
    encoder : FittedEncoder
    X : array-like of shape (n, p)
        A sample of rows in random order, of which the first `most_rows` are scored.
    y : ndarray of shape (n,) or (n, q), optional
        Labels or targets: the objective's own metric is then scored too.
    scatter : Scatter, optional
        Of all rows, where `X` is a sample of them; of all of `X` if not given.
    sizes : tuple of int
        Numbers of rows among which scores are taken; those larger than the sample are left out.
    held_out : bool
        Whether the fit has not seen the rows.
    most_rows : int
    k : int, optional
        The only prefix length that is asked for; all lengths of `profile_lengths` are scored if not given.
    """
    given = sliceable(X)
    if given.shape[0] < FEWEST_ROWS:
        return None
    if scatter is None:
        everything = as_dense(given).astype(np.float64)
        mean = everything.mean(axis=0)
        centred = everything - mean
        scatter = Scatter(len(everything), mean, centred.T @ centred / len(everything))
    rows = as_dense(given[:most_rows]).astype(np.float64)
    total = float(np.trace(scatter.S))
    if not total > 0:
        return None
    labels = None if y is None else np.asarray(y)[:most_rows]
    lengths = profile_lengths(encoder.d)
    if k is not None:  # those between which the score of k is interpolated
        lengths = np.unique([lengths[lengths <= k][-1], lengths[lengths >= k][0]])
    single = rows.astype(np.float32)
    among = [size for size in sizes if size <= len(single)]
    metrics = [RECALL, *filter(None, [own_metric(encoder, y)])]
    return RowProfile(
        rows=scatter.rows,
        held_out=held_out,
        mean=scatter.mean,
        total=total,
        share=variance_shares(encoder, scatter.S),
        scores={name: _table(encoder, single, labels, name, among, lengths) for name in metrics},
    )


def variance_shares(encoder: FittedEncoder, S: np.ndarray) -> np.ndarray | None:
    r"""Return the share of variance in the span of the first k axes, for every k; None of a network.

    With :math:`B^\top = Q R`, :math:`\sum_{j \le k} q_j^\top S q_j / \operatorname{tr} S`: axes need not be orthogonal.
    """
    if encoder.network is not None:
        return None
    Q = qr(encoder.components.T, mode="economic")[0]
    shares: np.ndarray = np.cumsum(np.einsum("pd,pd->d", Q, S @ Q)) / np.trace(S)
    return shares


def profile_lengths(d: int) -> np.ndarray:
    """Return the prefix lengths at which profiles have scores: two an octave, and d.

    Examples
    --------
    >>> profile_lengths(40)
    array([ 1,  2,  3,  4,  6,  8, 12, 16, 24, 32, 40])
    """
    powers = 2 ** np.arange(int(np.log2(d)) + 1)
    both = np.concatenate([powers, 3 * powers // 2, [d]])
    return np.unique(both[both <= d])


def own_metric(encoder: FittedEncoder, y: np.ndarray | None) -> str | None:
    """Return the objective's own metric where it needs labels or targets and these are given."""
    name = encoder.record.metric
    needs = METRICS[name].needs if name in METRICS else ()
    return name if y is not None and "y" in needs else None


def _table(
    encoder: FittedEncoder, X: np.ndarray, y: np.ndarray | None, metric: str, sizes: list[int], ks: np.ndarray
) -> ScoreTable:
    score, error, raw = (np.zeros((len(sizes), n)) for n in (len(ks), len(ks), 1))
    for row, size in enumerate(sizes):
        found = [_scored(encoder, data, metric, ks) for data in _groups(X, y, metric, size)]
        score[row] = np.mean([one[0] for one in found], axis=0)
        error[row] = np.sqrt(np.mean([one[1] for one in found], axis=0) / len(found))
        raw[row] = np.mean([one[2] for one in found])
    return ScoreTable(np.array(sizes), ks, score, error, raw[:, 0])


def _groups(X: np.ndarray, y: np.ndarray | None, metric: str, size: int) -> Iterator[Rows]:
    """Yield disjoint groups of `size` rows; each half of a group looks among the other half where labels count."""
    for start in range(0, len(X) - size + 1, size)[:MOST_GROUPS]:
        rows = slice(start, start + size)
        if metric == RECALL or y is None:
            yield Rows(X[rows])
        else:
            halves = slice(start, start + size // 2), slice(start + size // 2, start + size)
            for asking, held in (halves, halves[::-1]):  # every row asks once, so that fewer rows tell
                yield Rows(X[asking], y[asking], reference=Rows(X[held], y[held]))


def _scored(encoder: FittedEncoder, data: Rows, metric: str, ks: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return scores, their sampling variances, and what the raw vectors score (1 where they have no score)."""
    scores = per_row_scores(encoder, data, metric, ks)
    draws = resampled_scores(scores, resamples=DRAWS)
    raw = METRICS[metric].raw(encoder, data)
    return scores.score(), draws.var(axis=0), raw if raw is not None and raw > 0 else 1.0
