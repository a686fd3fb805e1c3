"""What "auto" stands for: the method and its settings, chosen on held-out pairs.

Pairs of a bounded sample are held out by folds; the moments of the rest are those of all pairs less those of the fold,
so a choice for a million pairs costs as much as one for a few thousand.

A candidate is scored by two questions to each held-out new vector that searches the old vectors of the fold, both
encoded by the candidate: at which rank is its own row, and is the nearest other row the one that the new model puts
nearest? The score is the sum of the log-odds of the mean reciprocal rank and of the share of nearest rows that agree.
Own rows are found nearly always: on that scale 99.6 % against 99.3 % counts as much as it means for a store that is
larger than a fold. Figures for this and other scores are in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._base.json_records import from_plain, settings_of, to_plain
from firstk._base.progress import Verbose, progress_bar
from firstk._base.rows import unit_rows
from firstk.contracts import AlignmentMethod, AlignmentRows
from firstk.encoder.affine_map import AffineMap
from firstk.exceptions import InvalidInputError
from firstk.moments.cross import CrossMoments
from firstk.moments.statistics import RowSample

N_FOLDS = 5
# Pairs that a choice looks at: enough to rank settings, few enough to take seconds.
MOST_ROWS = 4096
FEWEST_ROWS = 50
# Scores of settings of one method that differ by less are level: about a tenth of a usual standard error.
TIE = 0.01
# Rows by which a rate is moved off 0 and 1: the log-odds of a rate of 1 say no more than the number of rows can.
_FLOOR = 3.0


@dataclass(frozen=True)
class Trial:
    """A candidate and its score on held-out pairs.

    Attributes
    ----------
    method : str
    settings : mapping
    score : float
        Sum of the log-odds of the two rates that follow.
    own : float
        Mean reciprocal rank of a row's own text.
    nearest : float
        How often the nearest other text is the one that the new model puts nearest.
    error : float
        Standard error of the score over held-out rows.
    behind : float
        By how much the score is behind that of the best candidate.
    behind_error : float
        Standard error of that difference, from differences row by row.
    """

    method: str
    settings: Mapping[str, Any]
    score: float
    own: float
    nearest: float
    error: float
    behind: float
    behind_error: float


@dataclass(frozen=True)
class AlignmentChoice:
    """What "auto" tried, and what it chose.

    Attributes
    ----------
    method : str
    settings : mapping
    own, nearest : float
        The two rates of what was chosen, on held-out pairs: mean reciprocal rank of a row's own text, and how often the
        nearest other text is the new model's.
    chance : float
        Mean reciprocal rank of a row's own text in a random order.
    held_out : int
        Number of held-out rows, over all folds.
    why : str
    tried : tuple of Trial
        In the order of their scores, best first.
    """

    method: str
    settings: Mapping[str, Any]
    own: float
    nearest: float
    chance: float
    held_out: int
    why: str
    tried: tuple[Trial, ...]

    @property
    def at_chance(self) -> bool:
        """Whether no candidate ranks a row's own text higher than a random order does, to three standard errors."""
        error = np.sqrt(self.chance / self.held_out)  # a reciprocal rank is at most 1, so its square is no larger
        return bool(max(trial.own for trial in self.tried) <= self.chance + 3 * error)

    def best_of(self, method: str) -> AlignmentMethod | None:
        """Return a method with its best settings of those that were tried; None where it was not tried."""
        from firstk.alignment.methods import restore

        best = next((trial for trial in self.tried if trial.method == method), None)
        return None if best is None else restore(best.method, best.settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as JSON values."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> AlignmentChoice:
        """Undo ``to_dict``."""
        return from_plain(cls, plain)


def choose(
    methods: Sequence[AlignmentMethod],
    moments: CrossMoments,
    sample: RowSample,
    *,
    seed: int = 0,
    verbose: Verbose = False,
) -> tuple[AlignmentMethod, AlignmentChoice]:
    """Return the best candidate of all methods, its settings settled, and the record of the choice.

    The best mean score wins; of settings of its method that tie with it, the one that adapts least to the pairs
    (`AlignmentMethod.tie_break`).

    Parameters
    ----------
    methods : sequence of AlignmentMethod
    moments : CrossMoments
        Of all pairs.
    sample : RowSample
        Of these pairs: "left" are old vectors, "right" new ones, maybe "weight".
    seed : int
        For methods that train.
    verbose : bool or "auto"
    """
    candidates = [candidate for method in methods for candidate in method.candidates()]
    folds = held_out_folds(sample)
    scores: list[list[np.ndarray]] = [[] for _ in candidates]
    weights = []
    with progress_bar(len(folds) * len(candidates), "choosing a method", "fit", verbose) as done:
        for rows in folds:
            fold = _Fold(moments, sample, rows)
            weights.append(fold.weight)
            for i, candidate in enumerate(candidates):
                trained = fold.training_rows(seed) if candidate.trains else None
                scores[i].append(fold.scores(*candidate.comparing(fold.moments, trained)))
                done()
    table = np.array([np.concatenate(part) for part in scores])  # (candidates, held-out rows, two rates)
    return _decided(candidates, table, np.concatenate(weights), folds)


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
    """Moments without the held-out rows, and the new model's nearest neighbor of each of these."""

    def __init__(self, moments: CrossMoments, sample: RowSample, rows: np.ndarray):
        held = sample.take(rows)
        self.sample, self.rows = sample, rows
        self.old, self.new = held["left"], held["right"]
        weight = held.get("weight")
        self.weight = np.ones(len(rows)) if weight is None else weight
        part = CrossMoments().update(self.old, self.new, weight)
        self.moments = moments.without(part)
        unit = unit_rows(self.new)
        self.nearest = _nearest_other(unit @ unit.T)

    def training_rows(self, seed: int) -> AlignmentRows:
        """Return the rows of the sample that are not held out."""
        rest = self.sample.take(np.setdiff1d(np.arange(len(self.sample)), self.rows))
        return AlignmentRows(rest["left"], rest["right"], rest.get("weight"), seed)

    def scores(self, encode_old: AffineMap, encode_new: AffineMap) -> np.ndarray:
        """Return, for each held-out row, the reciprocal rank of its own text and whether the nearest other agrees."""
        old = unit_rows(encode_old(self.old, "choose"))
        new = unit_rows(encode_new(self.new, "choose"))
        cosines = new @ old.T
        ahead = (cosines > np.diag(cosines)[:, None]).sum(axis=1)
        return np.column_stack([1.0 / (1.0 + ahead), _nearest_other(cosines) == self.nearest])


def _nearest_other(cosines: np.ndarray) -> np.ndarray:
    """Return the nearest row of each, other than its own."""
    others = cosines.copy()
    np.fill_diagonal(others, -np.inf)
    return others.argmax(axis=1)


def _decided(
    candidates: Sequence[AlignmentMethod], table: np.ndarray, weight: np.ndarray, folds: Sequence[np.ndarray]
) -> tuple[AlignmentMethod, AlignmentChoice]:
    """Choose from the rates of candidates (first axis) on held-out rows (second)."""
    share = weight / weight.sum()
    rates = np.clip(np.einsum("crj,r->cj", table, share), 0.0, 1.0)
    floor = _FLOOR / table.shape[1]
    scores = np.log((rates + floor) / (1 - rates + floor)).sum(axis=1)
    # Of a function of means, the influence of a row is the slope times how far the row is from the mean.
    slopes = 1 / (rates + floor) + 1 / (1 - rates + floor)
    influence = np.einsum("crj,cj->cr", table - rates[:, None], slopes)
    best = int(np.argmax(scores))
    behind = scores[best] - scores
    errors, behind_errors = (
        np.sqrt(np.square(part) @ np.square(share)) for part in (influence, influence - influence[best])
    )
    level = [
        i for i, candidate in enumerate(candidates) if candidate.name == candidates[best].name and behind[i] <= TIE
    ]
    chosen = max(level, key=lambda i: (*candidates[i].tie_break, scores[i]))
    columns = zip(scores, *rates.T, errors, behind, behind_errors, strict=True)
    tried = [
        Trial(candidate.name, settings_of(candidate), *map(float, numbers))
        for candidate, numbers in zip(candidates, columns, strict=True)
    ]
    winner = candidates[chosen]
    why = (
        ("best" if chosen == best else "level with the best")
        + f" of {len(candidates)} candidates on {table.shape[1]} held-out pairs"
        + ("" if chosen == best else ", and adapts less to the pairs")
    )
    chance = float(np.mean([np.reciprocal(np.arange(1.0, len(rows) + 1)).mean() for rows in folds]))
    record = AlignmentChoice(
        winner.name, settings_of(winner), tried[chosen].own, tried[chosen].nearest, chance, table.shape[1], why,
        tuple(sorted(tried, key=lambda trial: -trial.score)),
    )  # fmt: skip
    return winner, record
