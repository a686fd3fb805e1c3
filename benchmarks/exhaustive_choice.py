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
from firstk.estimator.auto import (
    MOST_ROWS,
    SURE,
    TIE,
    UNSEEN_LOSS,
    _evaluation_data,
    _pair_folds,
    _row_folds,
)
from firstk.estimator.race import Folds, best
from firstk.metrics.curve import prefix_scores, settled_metric
from firstk.moments.statistics import RowSample


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
        table = _table(candidates, sample, _row_folds(sample, n))
        return Exhaustive(candidates, [table], best(candidates, table, sure=SURE))
    unseen, seen = _pair_folds(sample, n)
    table = _table(candidates, sample, unseen)
    if not seen:
        return Exhaustive(candidates, [table], best(candidates, table, TIE))
    means, again = table.mean(axis=0), _table(candidates, sample, seen)
    good = np.flatnonzero(means >= means.max() - UNSEEN_LOSS)
    chosen = best([candidates[i] for i in good], again[:, good])
    return Exhaustive(candidates, [table, again], chosen)


def _table(candidates: Sequence[Any], sample: RowSample, folds: Folds) -> np.ndarray:
    return np.array(
        [[_score(each, sample.take(kept), sample.take(held)) for each in candidates] for kept, held in folds]
    )


def _score(candidate: Any, kept: Mapping[str, np.ndarray], held: Mapping[str, np.ndarray]) -> float:
    """Fit on some rows and return the weighted mean of the curve on others, at 2, 4, 8, ... and the full width."""
    estimator = PrefixEncoder(objective=candidate)
    if "left" in kept:
        encoder = estimator.fit_pairs(kept["left"], kept["right"], kept.get("scores")).encoder_
    else:
        encoder = estimator.fit(kept["X"], kept.get("y"), kept.get("weight")).encoder_
    data = _evaluation_data(kept, held)
    ks = [k for k in (2**i for i in range(1, 20)) if k < encoder.d] + [encoder.d]
    weights = resolve_omega(candidate.conventions.omega, encoder.d).omega
    parts = np.split(weights, ks[:-1])
    scores = prefix_scores(encoder, data, settled_metric(encoder, data), np.array(ks))
    return float(np.average(scores, weights=[part.sum() for part in parts]))
