"""Label noise, and the share of it that a fit memorizes in the tail of the spectrum.

"The Malignant Tail" finds label noise in the trailing directions of a code, and truncates them. Two things are
tested here: whether labels disagree with those of their neighbors even where the neighbors agree with one another,
and how much of the fit of the trailing directions is label noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk.metrics import nearest_neighbors
from firstk_papers.balestriero2024.axes import HeldOut, Readout, mean_and_error

# Directions past this share of the variance are the tail.
HEAD_VARIANCE = 0.95
N_NEIGHBORS = 10
MOST_ROWS = 4096
# Share of rows whose neighbors agree most with one another; in clean data these rows nearly always have their label.
SUREST = 0.25
# Disagreement among these rows that clean labels of real data show (docs/reproductions.md).
CLEAN = 0.05
# Minimum agreement over all rows relative to these; below it, disagreement may be due to the neighbors.
GUIDE = 0.7
# Share of noise in the fit of the tail from which on the tail is reported as noisy.
CARRIES = 0.1
CLEAR = 2.0


@dataclass(frozen=True)
class LabelNoise:
    """Disagreement of labels with those of their neighbors, and the share of label noise in the tail of the spectrum.

    Attributes
    ----------
    head, tail : int
        Directions up to 95 % of the variance, and those after them.
    disagreement, error : float or None
        Share of labels that differ from the most frequent label of ten neighbors, among the quarter of rows whose
        neighbors agree most with one another: an upper estimate of the share of wrong labels. None for targets.
    guide : float or None
        Agreement over all rows relative to that quarter: how reliable the neighbors are.
    head_fit, tail_fit : float
        In-sample R^2 of head and tail.
    head_noise, tail_noise : float or None
        The share of that fit which is label noise, assuming that labels are wrong as often as they disagree: k
        directions fit a share k / n of noise that is independent of the rows.
    tail_gain, tail_error : float
        Accuracy (R^2 for targets) that the tail adds to the head's linear readout on held-out rows.
    """

    head: int
    tail: int
    disagreement: float | None
    error: float | None
    guide: float | None
    head_fit: float
    tail_fit: float
    head_noise: float | None
    tail_noise: float | None
    tail_gain: float
    tail_error: float

    @property
    def noisy(self) -> bool | None:
        """Whether labels are noisy; None if neighbors are not reliable."""
        if self.disagreement is None or self.error is None or self.guide is None:
            return None
        if self.disagreement - CLEAR * self.error <= CLEAN:
            return False
        return True if self.guide >= GUIDE else None

    @property
    def tail_carries_noise(self) -> bool | None:
        """Whether labels are noisy and label noise is a tenth or more of the fit of the tail; None if unknown."""
        if self.noisy is None or self.tail_noise is None:
            return None
        return self.noisy and self.tail > 0 and self.tail_noise >= CARRIES


def look_for_noise(evidence: HeldOut) -> LabelNoise:
    """Compare labels with those of neighbors in the head of the spectrum, and evaluate the fit and gain of the tail."""
    axes, labels = evidence.axes, evidence.labels
    assert axes.target is not None
    head = axes.reaching(HEAD_VARIANCE)
    ks = np.array([head, axes.rank])
    scores = Readout(axes).scores(evidence.U, evidence.y, ks, "accuracy" if labels else "r2")
    sizes = np.array([head, axes.rank - head])
    fits = np.array([np.sum(axes.gains[:head] ** 2), np.sum(axes.gains[head:] ** 2)]) / axes.target.spread
    disagreement = error = guide = head_noise = tail_noise = None
    if labels and len(evidence.T_ref) > 4 * N_NEIGHBORS:
        disagreement, error, guide = _disagreement(evidence, head)
        memorised = sizes / axes.n * flip_variance(disagreement, len(axes.target.mean)) / axes.target.spread
        head_noise, tail_noise = np.minimum(memorised / np.where(fits > 0, fits, np.inf), 1.0).tolist()
    gain, gain_error = mean_and_error(scores[:, 1] - scores[:, 0])
    return LabelNoise(
        head=head,
        tail=axes.rank - head,
        disagreement=disagreement,
        error=error,
        guide=guide,
        head_fit=float(fits[0]),
        tail_fit=float(fits[1]),
        head_noise=head_noise,
        tail_noise=tail_noise,
        tail_gain=gain,
        tail_error=gain_error,
    )


def flip_variance(rate: float, classes: int) -> float:
    """Return the variance added to one-hot labels by flips at rate a to other classes: 1 - (1 - a)^2 - a^2/(C - 1)."""
    return 1.0 - (1.0 - rate) ** 2 - rate**2 / max(classes - 1, 1)


def _disagreement(evidence: HeldOut, head: int) -> tuple[float, float, float]:
    """Return the disagreement among rows whose neighbors agree most, its error, and the relative agreement of all rows.

    A row's own label does not affect the agreement among its neighbors, so this choice of rows is not biased.
    """
    Z, (classes, y) = evidence.T_ref[:MOST_ROWS, :head], np.unique(evidence.y_ref[:MOST_ROWS], return_inverse=True)
    neighbors = y[nearest_neighbors(Z, Z, N_NEIGHBORS, exclude_self=True)]  # (n, 10)
    votes = np.zeros((len(y), len(classes)), dtype=np.int64)
    np.add.at(votes, (np.arange(len(y))[:, None], neighbors), 1)
    agrees = votes.argmax(axis=1) == y
    # Ties at the edge of the quarter are broken by the order of the rows, which is a hash.
    surest = np.argsort(-votes.max(axis=1), kind="stable")[: max(1, round(SUREST * len(y)))]
    share = float(np.mean(agrees[surest]))
    error = float(np.sqrt(max(share * (1 - share), 1 / len(surest)) / len(surest)))
    return 1 - share, error, float(np.mean(agrees)) / (share or 1.0)
