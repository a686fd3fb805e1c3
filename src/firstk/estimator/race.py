"""A race of candidates over folds: those that are clearly beaten drop out, and it ends when the choice is clear.

Candidates are compared with a leader by paired differences on held-out rows (Maron and Moore 1994, Hoeffding races;
here the error of a difference is that of the bootstrap). A candidate drops out when it is worse by three standard
errors more than would still count as a tie, and the race goes on for those that may win: so it ends in the choice that
all folds of all candidates lead to, but for differences that their noise would explain. Nothing is drawn anew, and no
clock is read: the same scores give the same race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from firstk.contracts import Objective

# Mean scores that differ by less are equal: a neighbor found on one processor and not on another changes as much.
ROUNDING = 5e-4
# Standard errors of a paired difference beyond which it is clear, and from how many held-out rows on.
CLEAR = 3.0
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
    running : ndarray of bool, optional
        Which candidates take part; all if not given.
    leading : ndarray of bool, optional
        Which of them others may be beaten by; all if not given.
    alike : float
        Equally preferred candidates whose difference is clearly smaller are alike, and one of them goes on.

    Attributes
    ----------
    scores : ndarray of shape (folds, candidates)
        NaN where a candidate did not take part.
    done : int
        Number of folds so far.
    """

    def __init__(
        self,
        candidates: Sequence[Objective],
        folds: Folds,
        score: Callable[[Sequence[Objective], Fold], Scores],
        *,
        running: np.ndarray | None = None,
        leading: np.ndarray | None = None,
        alike: float = 0.0,
    ):
        self.candidates, self.folds, self.score, self.alike = candidates, folds, score, alike
        self._first, self._second = np.array([each.tie_break for each in candidates]).T
        everyone = np.ones(len(candidates), dtype=bool)
        self.running = everyone if running is None else running.copy()
        self.leading = everyone.copy() if leading is None else leading.copy()
        self.scores = np.full((len(folds), len(candidates)), np.nan)
        self._resampled: list[np.ndarray] = []
        self.done = self.rows = 0

    def won(self, tie: float = ROUNDING, sure: float = 0.0) -> Objective:
        """Return the candidate with the best mean or, of those that tie with it, the one that is preferred.

        `tie` and `sure` as in :func:`best`.
        """
        self.run(tie, sure)
        return self.best(self.complete, tie, sure)

    def best(self, among: np.ndarray, tie: float = ROUNDING, sure: float = 0.0) -> Objective:
        """Return the choice among some candidates that took part in all folds so far."""
        there = np.flatnonzero(among & self.complete)
        return best([self.candidates[int(i)] for i in there], self.scores[: self.done, there], tie, sure)

    def run(self, tie: float = ROUNDING, sure: float = 0.0) -> np.ndarray:
        """Score folds until one candidate is left that may win, or no folds are; return which may."""
        while self.done < len(self.folds):
            if self._tells():
                self._drop(tie, sure)
                if self.running.sum() <= 1:
                    break
            self._score_fold(self.running | self._is_leader())
        return self.running

    def compared(self, tie: float) -> tuple[np.ndarray, np.ndarray]:
        """Return who is clearly within `tie` of the leader, and who clearly is not, after the first folds."""
        while self.done < len(self.folds) and not self._tells():
            self._score_fold(self.running)
        loss, error = self._losses(self._leader())
        if self.done == len(self.folds):
            return loss <= tie, loss > tie
        near = loss <= tie - CLEAR * error
        near[self._leader()] = True
        return near, loss > tie + CLEAR * error

    def within(self, tie: float, unclear: np.ndarray) -> np.ndarray:
        """Return who is within `tie` of the leader, after as many folds as it takes for those that are `unclear`."""
        while self.done < len(self.folds) and unclear.any():
            self._score_fold(unclear | self._is_leader())
            loss, error = self._losses(self._leader())
            unclear = unclear & (np.abs(loss - tie) < CLEAR * error)
        within: np.ndarray = self._losses(self._leader())[0] <= tie
        return within

    @property
    def complete(self) -> np.ndarray:
        """Who took part in all folds so far."""
        there: np.ndarray = ~np.isnan(self.scores[: self.done]).any(axis=0)
        return there

    def means(self) -> np.ndarray:
        """Return the mean score of each candidate over its folds."""
        return _mean(self.scores[: self.done])

    def _score_fold(self, who: np.ndarray) -> None:
        places = np.flatnonzero(who)
        fold = self.folds[self.done]
        scores, resampled = self.score([self.candidates[int(i)] for i in places], fold)
        self.scores[self.done, places] = scores
        drawn = np.full((len(self.candidates), resampled.shape[1]), np.nan)
        drawn[places] = resampled
        self._resampled.append(drawn)
        self.done += 1
        self.rows += len(fold[1])

    def _tells(self) -> bool:
        """Whether enough rows were held out to tell candidates apart."""
        return self.rows >= FEWEST_ROWS

    def _drop(self, tie: float, sure: float) -> None:
        """Drop those that cannot win: clearly beaten, or less preferred than one that clearly ties with the leader."""
        loss, error = self._losses(self._leader())
        self.running &= loss <= tie + (CLEAR + sure) * error
        for preference in np.unique(self._first[self.running & self.leading]):
            self._drop_alike(self.running & self.leading & (self._first == preference))
        # Who ties does so with the best of all, be it one that may not lead.
        top = self._best_of(self.complete & (self.running | self.leading))
        loss, error = self._losses(top)
        tied = self.running & self.leading & (loss <= tie - (CLEAR + sure) * error)
        tied[top] = self.leading[top]
        if not tied.any():
            return
        first, most = self._first, self._first[tied].max()
        loss, error = self._losses(self._best_of(tied & (first == most)))
        # Those that are less preferred win only if they are better than a tie; of the equally preferred the best wins.
        self.running &= (first >= most) | (-loss > tie - (CLEAR + sure) * error)
        self.running &= (first != most) | (loss <= ROUNDING + CLEAR * error)

    def _drop_alike(self, which: np.ndarray) -> None:
        """Keep one of those that are alike the best of equally preferred candidates: the one that would win now."""
        foremost = self._best_of(which)
        loss, error = self._losses(foremost)
        alike = which & (loss <= self.alike - CLEAR * error)
        alike[foremost] = True
        kept = np.flatnonzero(alike & (loss <= ROUNDING))
        alike[kept[np.argmax(self._second[kept])]] = False
        self.running &= ~alike
        self.leading &= ~alike

    def _leader(self) -> int:
        """Return the best of those that took part in all folds and may lead."""
        return self._best_of(self.complete & self.leading)

    def _best_of(self, which: np.ndarray) -> int:
        there = np.flatnonzero(which)
        return int(there[np.argmax(self.means()[there])])

    def _is_leader(self) -> np.ndarray:
        marked = np.zeros(len(self.candidates), dtype=bool)
        if self.done:
            marked[self._leader()] = True
        return marked

    def _losses(self, leader: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what each loses against the leader over its folds, and the standard error of that."""
        loss = self.scores[: self.done, [leader]] - self.scores[: self.done]
        spread = [(drawn[leader] - drawn).var(axis=1) for drawn in self._resampled]
        # The variance of a mean of F folds is the sum of theirs over F^2.
        return _mean(loss), np.sqrt(np.nansum(spread, axis=0)) / np.maximum((~np.isnan(loss)).sum(axis=0), 1)


def _mean(table: np.ndarray) -> np.ndarray:
    """Return the means of columns over what is not NaN; NaN for those that have nothing else."""
    count = (~np.isnan(table)).sum(axis=0)
    means: np.ndarray = np.divide(np.nansum(table, axis=0), count, out=np.full(len(count), np.nan), where=count > 0)
    return means


def best(candidates: Sequence[Objective], table: np.ndarray, tie: float = ROUNDING, sure: float = 0.0) -> Objective:
    """Return the candidate with the best mean over folds, or of those that tie with it the preferred one.

    Parameters
    ----------
    candidates : sequence of Objective
    table : ndarray of shape (folds, candidates)
        Scores.
    tie : float
        Means that differ by no more tie.
    sure : float
        Or by no more than so many standard errors of the paired difference over folds.
    """
    means = table.mean(axis=0)
    loss = table[:, [int(means.argmax())]] - table
    error = loss.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else np.zeros(len(means))
    tied = loss.mean(axis=0) <= np.maximum(tie, sure * error)
    first, second = np.array([each.tie_break for each in candidates]).T
    tied &= first == first[tied].max()
    tied &= means >= means[tied].max() - ROUNDING
    return candidates[int(np.flatnonzero(tied)[second[tied].argmax()])]
