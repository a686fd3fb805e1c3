r"""What "auto" stands for: the method and its settings, chosen on held-out pairs.

Pairs of a bounded sample are held out by folds; the moments of the rest are those of all pairs less those of the fold,
so a choice for a million pairs costs as much as one for a few thousand.

A candidate is scored by how surely a held-out new vector finds its own text among the old vectors of the fold, both
encoded by the candidate: the mean log-probability that a softmax over cosines :math:`c_{ij}` gives it,

.. math:: \max_\tau \frac1n \sum_i \Big(\frac{c_{ii}}\tau - \log \sum_j e^{c_{ij} / \tau}\Big),

at the temperature that suits the candidate best, as candidates spread cosines differently (the contrastive score of
van den Oord et al. 2018). Own texts are nearly always found, so that their rank says little; by how much they are
ahead of the others still differs between candidates. Figures for this and other scores: docs/decisions/upgrade.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._base.json_records import settings_of
from firstk._base.progress import Verbose, progress_bar
from firstk._base.rows import unit_rows
from firstk.exceptions import InvalidInputError
from firstk.metrics import MeanScore, resampled_scores
from firstk.moments import CrossMoments, RowSample, row_priorities
from firstk.quality import DRAWS, Difference, select
from firstk.upgrade.contract import AlignmentMethod

N_FOLDS = 5
# Pairs that a choice looks at: enough to rank settings, few enough to take seconds.
MOST_ROWS = 4096
FEWEST_ROWS = 50
# Temperatures that are tried.
_TEMPERATURES = np.geomspace(0.01, 0.5, 9)


@dataclass(frozen=True)
class MethodTrial:
    """A candidate and its score on held-out pairs.

    Attributes
    ----------
    method : str
    settings : mapping
    score : float
        Mean log-probability of a row's own text.
    own : float
        Mean reciprocal rank of a row's own text.
    ahead : Difference
        How far the score is ahead of that of the best candidate: at most 0.
    """

    method: str
    settings: Mapping[str, Any]
    score: float
    own: float
    ahead: Difference


@dataclass(frozen=True)
class AlignmentChoice:
    """What "auto" tried, and what it chose.

    Attributes
    ----------
    method : str
    settings : mapping
    own : float
        Mean reciprocal rank of a row's own text on held-out pairs, by what was chosen.
    chance : float
        Mean reciprocal rank of a row's own text in a random order.
    held_out : int
        Number of held-out rows, over all folds.
    why : str
    tried : tuple of MethodTrial
        In the order of their scores, best first.
    """

    method: str
    settings: Mapping[str, Any]
    own: float
    chance: float
    held_out: int
    why: str
    tried: tuple[MethodTrial, ...]

    @property
    def at_chance(self) -> bool:
        """Whether no candidate ranks a row's own text higher than a random order does, to three standard errors."""
        error = np.sqrt(self.chance / self.held_out)  # a reciprocal rank is at most 1, so its square is no larger
        return bool(max(trial.own for trial in self.tried) <= self.chance + 3 * error)

    def best_of(self, method: str) -> AlignmentMethod | None:
        """Return a method with its best settings of those that were tried; None where it was not tried."""
        from firstk.upgrade.methods import restore

        best = next((trial for trial in self.tried if trial.method == method), None)
        return None if best is None else restore(best.method, best.settings)


def choose(
    methods: Sequence[AlignmentMethod],
    moments: CrossMoments,
    sample: RowSample,
    *,
    unit: bool = False,
    verbose: Verbose = False,
) -> tuple[AlignmentMethod, AlignmentChoice]:
    """Return the best candidate of all methods, its settings settled, and the record of the choice.

    The best mean score wins. Scores are log-probabilities, near 0 where texts are found, of which the library's
    tolerance would make nearly all candidates level: nothing is given up for the sake of simplicity. Of candidates
    with the same score, the one wins whose translations are nearest to the held-out new vectors, in squared distance.

    Parameters
    ----------
    methods : sequence of AlignmentMethod
    moments : CrossMoments
        Of all pairs.
    sample : RowSample
        Of these pairs: "left" are old vectors, "right" new ones, maybe "weight".
    unit : bool
        Whether translations are scaled to unit norm.
    verbose : bool or "auto"
    """
    candidates = [candidate for method in methods for candidate in method.candidates()]
    sample = without_copies(sample)
    folds = held_out_folds(sample)
    scores: list[list[np.ndarray]] = [[] for _ in candidates]
    weights = []
    with progress_bar(len(folds) * len(candidates), "choosing a method", "fit", verbose) as done:
        for rows in folds:
            fold = _Fold(moments, sample, rows)
            weights.append(fold.weight)
            for i, candidate in enumerate(candidates):
                scores[i].append(fold.scores(candidate))
                done()
    table = np.array([np.concatenate(part) for part in scores])  # (candidates, held-out rows, ranks and temperatures)
    weight = np.concatenate(weights)
    means = np.einsum("crj,r->cj", table, weight / weight.sum())
    at = means[:, 1:].argmax(axis=1)
    values = MeanScore(np.take_along_axis(table[:, :, 1:], at[:, None, None], axis=2)[:, :, 0].T, weights=weight)
    score, draws = values.score(), resampled_scores(values, resamples=DRAWS, random_state=0).T
    found = select(score, draws, most=0.0)
    level = np.flatnonzero(found.level)
    if len(level) > 1:  # by squared errors of translations, in parts of the variance of new vectors
        missed = np.zeros(len(candidates))
        for rows in folds:
            fold = _Fold(moments, sample, rows)
            missed[level] += [fold.error(candidates[i], unit) for i in level]
        order = np.round(missed / (np.trace(moments.new_scatter) * weight.sum()), 9)
        found = select(score, draws, order=order, most=0.0)
    chosen = found.chosen
    tried = [
        MethodTrial(candidate.name, settings_of(candidate), float(one), float(own), ahead)
        for candidate, one, own, ahead in zip(candidates, score, means[:, 0], found.ahead, strict=True)
    ]
    why = (
        ("best" if chosen == found.best else "level with the best")
        + f" of {len(candidates)} candidates by cross-validation over {table.shape[1]:,} pairs"
        + ("" if chosen == found.best else ", and its translations are nearer")
    )
    chance = float(np.mean([np.reciprocal(np.arange(1.0, len(rows) + 1)).mean() for rows in folds]))
    record = AlignmentChoice(
        tried[chosen].method, tried[chosen].settings, tried[chosen].own, chance, table.shape[1], why,
        tuple(sorted(tried, key=lambda trial: -trial.score)),
    )  # fmt: skip
    return candidates[chosen], record


def without_copies(sample: RowSample) -> RowSample:
    """Return the distinct pairs of a sample, each with the weight of all its copies: a weight of 2 is a pair twice.

    Copies in several folds would be fitted on where they are held out, and answer each other in a search.
    """
    hashes = row_priorities({name: sample[name] for name in ("left", "right")})
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    if "weight" not in sample and len(first) == len(sample):
        return sample
    distinct = sample.part(first)
    distinct.columns["weight"] = np.bincount(which, sample.columns.get("weight")).astype(float)
    return distinct


def held_out_folds(sample: RowSample) -> list[np.ndarray]:
    """Return the rows of each fold: every fifth of the sample, whose order is that of a hash of the rows."""
    n = min(len(sample), MOST_ROWS)
    if n < FEWEST_ROWS:
        raise InvalidInputError(
            f"Choosing a method of PrefixAlignment needs at least {FEWEST_ROWS} pairs. Got {n}: give more pairs, or a "
            "method with its settings, such as method=Procrustes()."
        )
    return [np.arange(n)[start::N_FOLDS] for start in range(N_FOLDS)]


class _Fold:
    """Held-out rows, and the moments of all others."""

    def __init__(self, moments: CrossMoments, sample: RowSample, rows: np.ndarray):
        held = sample.take(rows)
        self.old, self.new = held["left"], held["right"]
        weight = held.get("weight")
        self.weight = np.ones(len(rows)) if weight is None else weight
        part = CrossMoments().update(self.old, self.new, weight)
        self.moments = moments.without(part)

    def scores(self, candidate: AlignmentMethod) -> np.ndarray:
        """Return, for each held-out row, its own text's reciprocal rank and log-probability at each temperature."""
        encode_old, encode_new = candidate.comparing(self.moments)
        old = unit_rows(encode_old(self.old, "choose"))
        new = unit_rows(encode_new(self.new, "choose"))
        cosines = new @ old.T
        own = np.diag(cosines)[:, None]
        ranks = 1.0 / (1.0 + (cosines > own).sum(axis=1))
        return np.column_stack([ranks, own_log_probabilities(cosines)])

    def error(self, candidate: AlignmentMethod, unit: bool) -> float:
        """Return the weighted sum of squared distances of held-out new vectors from the translations of their texts."""
        translation = candidate.translating(self.moments)
        found = translation(self.old, "choose")
        return float(self.weight @ np.square((unit_rows(found) if unit else found) - self.new).sum(axis=1))


def own_log_probabilities(cosines: np.ndarray) -> np.ndarray:
    """Return what a softmax gives the diagonal, in logarithms: shape (n, number of temperatures)."""
    above = cosines - np.diag(cosines)[:, None]
    top = above.max(axis=1, keepdims=True)
    spread = (above - top).astype(np.float32)  # 0 at most, so that nothing overflows
    made = [top[:, 0] / t + np.log(np.exp(spread / np.float32(t)).sum(axis=1)) for t in _TEMPERATURES]
    return -np.column_stack(made)
