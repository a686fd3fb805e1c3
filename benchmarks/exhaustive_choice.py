"""The choice of "auto" settings the slow, obvious way: every candidate is fitted anew on every fold, and scored there.

What :func:`firstk.estimator.auto.choose` finds with shared work and early stops is compared with it, in tests and in
``benchmarks.waiting``. Folds and rules are those of the library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk import PrefixEncoder
from firstk._base.prefix_weights import resolve_omega
from firstk.estimator.auto import MOST_ROWS, UNSEEN_LOSS, Folds, _evaluation_data, _pair_folds, _row_folds
from firstk.metrics.bootstrap import resampled_scores
from firstk.metrics.curve import per_row_scores, settled_metric
from firstk.moments.statistics import RowSample
from firstk.quality.paired import DRAWS, TOLERANCE, select


@dataclass(frozen=True)
class Exhaustive:
    """All scores, and the candidate that they lead to.

    Attributes
    ----------
    candidates : sequence of Objective
    tables : list of ndarray of shape (folds, candidates)
        Held-out scores; for positives with queries for seen documents, those on unseen and on seen documents.
    chosen : Objective
    """

    candidates: Sequence[Any]
    tables: list[np.ndarray]
    chosen: Any

    def loss(self, other: Any) -> tuple[float, float]:
        """Return the mean score that another candidate loses against the chosen one, and its error over folds.

        By the table that decides: of seen documents, where there is one.
        """
        table = self.tables[-1]
        lost = table[:, self.candidates.index(self.chosen)] - table[:, self.candidates.index(other)]
        return float(lost.mean()), float(lost.std(ddof=1) / np.sqrt(len(lost)))


def exhaustive_choice(objective: Any, columns: Mapping[str, np.ndarray | None]) -> Exhaustive:
    """Score all candidates of an objective on all folds of a sample of the data, and apply the rules."""
    sample = RowSample(objective.sample_size).update(columns)
    n, candidates = min(len(sample), MOST_ROWS), objective.candidates()
    if objective.supervision != "pairs":
        table, draws = _table(candidates, sample, _row_folds(sample, n))
        return Exhaustive(candidates, [table], _best(candidates, table, draws))
    unseen, seen = _pair_folds(sample, n)
    table, draws = _table(candidates, sample, unseen)
    if not seen:
        return Exhaustive(candidates, [table], _best(candidates, table, draws))
    means, (again, draws) = table.mean(axis=0), _table(candidates, sample, seen)
    good = np.flatnonzero(means >= means.max() - UNSEEN_LOSS)
    chosen = _best([candidates[i] for i in good], again[:, good], draws[good], 0.0)
    return Exhaustive(candidates, [table, again], chosen)


def _best(candidates: Sequence[Any], table: np.ndarray, draws: np.ndarray, most: float = TOLERANCE) -> Any:
    """Return the candidate that shrinks most of those level; of equal ones the best, then most neighbors."""
    first, second = np.array([each.tie_break for each in candidates]).T
    places = np.argsort(-second, kind="stable")
    found = select(table.mean(axis=0)[places], draws[places], order=(-first[places]).tolist(), most=most)
    return candidates[places[found.chosen]]


def _table(candidates: Sequence[Any], sample: RowSample, folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """Return scores by fold and candidate, and the means over folds on resampled rows, shape (C, B)."""
    found = [[_score(each, sample.take(kept), sample.take(held)) for each in candidates] for kept, held in folds]
    scores = np.array([[score for score, _ in fold] for fold in found])
    return scores, np.mean([[draws for _, draws in fold] for fold in found], axis=0)


def _score(candidate: Any, kept: Mapping[str, np.ndarray], held: Mapping[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """Fit on some rows and score others: the weighted mean of the curve at 2, 4, 8, ... and the full width."""
    estimator = PrefixEncoder(objective=candidate)
    if "left" in kept:
        encoder = estimator.fit_pairs(kept["left"], kept["right"], kept.get("scores")).encoder_
    else:
        encoder = estimator.fit(kept["X"], kept.get("y"), kept.get("weight")).encoder_
    data = _evaluation_data(kept, held)
    ks = [k for k in (2**i for i in range(1, 20)) if k < encoder.d] + [encoder.d]
    parts = np.split(resolve_omega(candidate.conventions.omega, encoder.d).omega, ks[:-1])
    weights = [part.sum() for part in parts]
    scores = per_row_scores(encoder, data, settled_metric(encoder, data), np.array(ks))
    draws = np.average(resampled_scores(scores, resamples=DRAWS), weights=weights, axis=1)
    return float(np.average(scores.score(), weights=weights)), draws
