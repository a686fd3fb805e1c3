"""Whether labels are noisy, and whether the tail of the spectrum is where a fit would memorise the noise.

"The Malignant Tail" (listed in 003) finds label noise in the trailing directions of trained codes, where cutting them
restores generalisation. Two questions are asked here, each of which can be answered yes or no. Do labels disagree with
their neighbours even where the neighbours are surest? And do trailing directions fit labels on the rows they were fitted
on, while they bring nothing, or harm, on rows held out?
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk.diagnosis.axes import Axes, Readout, mean_and_error
from firstk.diagnosis.gathering import Gathered
from firstk.metrics import nearest_neighbours

# Directions past this share of the variance are the tail.
HEAD_VARIANCE = 0.95
N_NEIGHBOURS = 10
MOST_ROWS = 4096
# The share of rows whose neighbours are surest; the labels of clean data are nearly always theirs.
SUREST = 0.25
# Disagreement there up to this much is what clean labels of real data show (docs/diagnosis.md).
CLEAN = 0.05
# Agreement over all rows, relative to the surest: below this the neighbours are too poor a guide to blame labels.
GUIDE = 0.7
CLEAR = 2.0


@dataclass(frozen=True)
class LabelNoise:
    """Disagreement of labels with their neighbours, and what the tail of the spectrum fits and brings.

    Attributes
    ----------
    head, tail : int
        Directions up to 95 % of the variance, and those after them.
    disagreement, error : float or None
        Share of labels that differ from the most frequent label of ten neighbours, among the quarter of rows whose
        neighbours agree most with one another: an estimate, from above, of the share of wrong labels. None for targets.
    guide : float or None
        Agreement over all rows relative to the surest quarter: how far the neighbours can be trusted.
    tail_fit : float
        R^2 that the tail adds in sample.
    tail_gain, tail_error : float
        R^2 that it adds on rows held out.
    """

    head: int
    tail: int
    disagreement: float | None
    error: float | None
    guide: float | None
    tail_fit: float
    tail_gain: float
    tail_error: float

    @property
    def noisy(self) -> bool | None:
        """Whether labels are noisy; None when neighbours cannot tell."""
        if self.disagreement is None or self.error is None or self.guide is None:
            return None
        if self.disagreement - CLEAR * self.error <= CLEAN:
            return False
        return True if self.guide >= GUIDE else None

    @property
    def memorises(self) -> bool:
        """Whether the tail fits labels and loses by it on held-out rows."""
        return self.tail > 0 and self.tail_fit > 0 and self.tail_gain < -CLEAR * self.tail_error

    @property
    def tail_carries_noise(self) -> bool | None:
        """Whether the tail carries label noise: the labels are noisy, and what the tail fits is lost on held-out rows.

        None when the labels cannot be judged.
        """
        return None if self.noisy is None else self.noisy and self.memorises

    def sentences(self) -> list[str]:
        """Answer both questions."""
        return [sentence for sentence in (self._about_labels(), self._about_tail()) if sentence]

    def _about_labels(self) -> str:
        if self.disagreement is None or self.error is None:
            return ""
        share = f"{self.disagreement:.1%} +- {self.error:.1%} of labels differ where neighbours are surest"
        if self.noisy:
            return f"The labels look noisy: {share}."
        if self.noisy is None:
            return f"Neighbours are too poor a guide to tell label noise from hard classes: {share}, which is the most."
        return f"The labels look clean: {share}."

    def _about_tail(self) -> str:
        if self.tail == 0:
            return "There is no tail: every direction is needed for 95 % of the variance."
        name = f"the tail, {self.tail} directions past 95 % of the variance,"
        fits = f"adds R^2 {self.tail_fit:.4f} in sample and {self.tail_gain:+.4f} +- {self.tail_error:.4f} held out"
        if self.tail_carries_noise:
            return f"Yes, the tail carries label noise: {name} {fits}. Cut at k = {self.head} before reading labels."
        if self.memorises:
            return f"{name.capitalize()} memorises rows: it {fits}. Cut at k = {self.head}, or give more rows."
        if self.tail_gain > CLEAR * self.tail_error:
            return f"No, the tail carries signal, not noise: {name} {fits}."
        return f"No harm is seen in the tail: {name} {fits}."

    def table(self) -> list[tuple[str, str]]:
        """Return the numbers as lines of a table."""
        lines = [("head, tail directions", f"{self.head}, {self.tail}")]
        if self.disagreement is not None:
            lines.append(("disagreement where surest", f"{self.disagreement:.4f} +- {self.error:.4f}"))
            lines.append(("agreement of all / of the surest", f"{self.guide:.3f}"))
        held = f"{self.tail_fit:.4f}, {self.tail_gain:+.4f} +- {self.tail_error:.4f}"
        return [*lines, ("R^2 of the tail: in sample, held out", held)]


def look_for_noise(axes: Axes, gathered: Gathered) -> LabelNoise:
    """Judge labels by neighbours in the head of the spectrum, and the tail by held-out rows."""
    assert axes.target is not None
    head = axes.reaching(HEAD_VARIANCE)
    ks = np.array([head, axes.rank])
    scores = Readout(axes).scores(axes.whitened(gathered.X_held), gathered.y_held, ks, "r2")
    fit = float(np.sum(axes.gains[head:] ** 2)) / (axes.target.spread or 1.0)
    tail = (fit, *mean_and_error(scores[:, 1] - scores[:, 0]))
    disagreement = error = guide = None
    if gathered.kind == "labels" and len(gathered.X_ref) > 4 * N_NEIGHBOURS:
        disagreement, error, guide = _disagreement(axes, gathered, head)
    return LabelNoise(head, axes.rank - head, disagreement, error, guide, *tail)


def _disagreement(axes: Axes, gathered: Gathered, head: int) -> tuple[float, float, float]:
    """Return the disagreement among the surest rows, its standard error, and the relative agreement of all rows.

    A row's own label has no part in how sure its neighbours are, so choosing the surest rows does not flatter it.
    """
    X, (classes, y) = gathered.X_ref[:MOST_ROWS], np.unique(gathered.y_ref[:MOST_ROWS], return_inverse=True)
    Z = (X - axes.mean) @ axes.P[:, :head]
    neighbours = y[nearest_neighbours(Z, Z, N_NEIGHBOURS, exclude_self=True)]  # (n, 10)
    votes = np.zeros((len(y), len(classes)), dtype=np.int64)
    np.add.at(votes, (np.arange(len(y))[:, None], neighbours), 1)
    agrees = votes.argmax(axis=1) == y
    # Ties at the edge of the quarter are broken by the order of the rows, which is a hash.
    surest = np.argsort(-votes.max(axis=1), kind="stable")[: max(1, round(SUREST * len(y)))]
    share = float(np.mean(agrees[surest]))
    error = float(np.sqrt(max(share * (1 - share), 1 / len(surest)) / len(surest)))
    return 1 - share, error, float(np.mean(agrees)) / (share or 1.0)
