"""A race of candidates over folds: those that are clearly beaten drop out, and it ends when one is left.

Candidates are compared with the best by paired differences on held-out rows (Maron and Moore 1994, Hoeffding races;
here the error of a difference is that of the bootstrap). A candidate drops out when it is behind by three standard
errors more than may be lost: so a race ends in the choice that all folds of all candidates lead to, but for differences
that their noise would explain. Nothing is drawn anew, and no clock is read: the same scores give the same race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from firstk.contracts import Objective
from firstk.quality.paired import OFTEN, TOLERANCE, select

# Held-out rows that tell candidates apart.
FEWEST_ROWS = 100

# Rows to fit on, and rows to evaluate on.
Fold = tuple[np.ndarray, np.ndarray]
Folds = list[Fold]
# Score of each candidate on a fold, shape (C,), and on resamples of its rows, shape (C, B), the same ones for all.
Scores = tuple[np.ndarray, np.ndarray]


class Race:
    """Held-out scores of candidates, fold by fold, of those that matter.

    Parameters
    ----------
    candidates : sequence of Objective
    folds : list of (rows to fit on, rows to evaluate on)
    score : callable
        From some candidates and a fold to their scores.
    most : float
        What may be lost against the best.

    Attributes
    ----------
    running : list of int
        Places of the candidates that took part in all folds: those that may be chosen.
    scores : ndarray of shape (folds, candidates)
        NaN where a candidate did not take part.
    """

    def __init__(
        self,
        candidates: Sequence[Objective],
        folds: Folds,
        score: Callable[[Sequence[Objective], Fold], Scores],
        most: float = TOLERANCE,
    ):
        self.candidates, self.most = candidates, most
        # Those that shrink most are the simplest; of equal ones, as good as one another, those with most of the rest.
        self._order = [-each.tie_break[0] for each in candidates]
        self.running = sorted(range(len(candidates)), key=lambda i: -candidates[i].tie_break[1])
        self.scores = np.full((len(folds), len(candidates)), np.nan)
        self._draws: list[np.ndarray] = []
        rows = 0
        for number, fold in enumerate(folds):
            found, drawn = score([candidates[i] for i in self.running], fold)
            self.scores[number, self.running] = found
            self._draws = [*self._draws, drawn]
            rows += len(fold[1])
            if rows >= FEWEST_ROWS:
                # Those that are clearly beaten drop out.
                means, draws = self.means()[self.running], np.mean(self._draws, axis=0)
                best = int(means.argmax())
                error = (draws - draws[best]).std(axis=1)
                kept = np.flatnonzero(means[best] - means <= self.most + OFTEN * error)
                self.running = [self.running[int(i)] for i in kept]
                self._draws = [drawn[kept] for drawn in self._draws]
                if len(self.running) == 1:
                    break

    def won(self) -> Objective:
        """Return the simplest of the candidates that are level with the best."""
        order = [self._order[i] for i in self.running]
        found = select(self.means()[self.running], np.mean(self._draws, axis=0), order=order, most=self.most)
        return self.candidates[self.running[found.chosen]]

    def within(self) -> list[Objective]:
        """Return the candidates that lose no more than may be lost, clearly or not."""
        means = self.means()[self.running]
        return [
            self.candidates[i] for i, mean in zip(self.running, means, strict=True) if mean >= means.max() - self.most
        ]

    def means(self) -> np.ndarray:
        """Return the mean score of each candidate over the folds in which it took part."""
        return np.asarray(np.nanmean(self.scores[: len(self._draws)], axis=0))

    def _drop(self) -> None:
        """Drop those that are clearly beaten."""
        means, draws = self.means()[self.running], np.mean(self._draws, axis=0)
        best = int(means.argmax())
        error = (draws - draws[best]).std(axis=1)
        kept = np.flatnonzero(means[best] - means <= self.most + OFTEN * error)
        self.running = [self.running[int(i)] for i in kept]
        self._draws = [drawn[kept] for drawn in self._draws]
