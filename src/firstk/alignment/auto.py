"""What "auto" stands for: the method and its settings, chosen on held-out pairs.

Pairs of a bounded sample are held out by folds; the moments of the rest are those of all pairs less those of the fold,
so a choice for a million pairs costs as much as one for a few thousand.

A candidate is scored by two questions to each held-out new vector that searches the old vectors of the fold, both
encoded by the candidate: the reciprocal rank of its own row, and whether the nearest other row is the one that the new
model puts nearest. The score is the mean of the two. Recall of more neighbors ranks settings by coarse topics, as a
fold has few rows; figures are in docs/decisions.md.
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
# Mean scores of one method that differ by less are the luck of the folds; a tenth of a usual standard error.
TIE = 0.001


@dataclass(frozen=True)
class Trial:
    """A candidate and its score on held-out pairs.

    Attributes
    ----------
    method : str
    settings : mapping
    score : float
        Mean of the reciprocal rank of a row's own text, and of how often the nearest other text is the new model's.
    error : float
        Standard error of the score over held-out rows.
    behind : float
        By how much it is behind the best candidate.
    behind_error : float
        Standard error of that difference, from differences row by row.
    """

    method: str
    settings: Mapping[str, Any]
    score: float
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
    score, error : float
        Of what was chosen, on held-out pairs, with its standard error.
    chance : float
        What a random order of the held-out rows would score.
    held_out : int
        Number of held-out rows, over all folds.
    why : str
    tried : tuple of Trial
        In the order of their scores, best first.
    """

    method: str
    settings: Mapping[str, Any]
    score: float
    error: float
    chance: float
    held_out: int
    why: str
    tried: tuple[Trial, ...]

    @property
    def at_chance(self) -> bool:
        """Whether the best candidate scores no more than a random order would, to three standard errors."""
        best = self.tried[0]
        return best.score <= self.chance + 3 * best.error

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
    table = np.array([np.concatenate(part) for part in scores])
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
        """Return the score of each held-out row, from 0 to 1."""
        old = unit_rows(encode_old(self.old, "choose"))
        new = unit_rows(encode_new(self.new, "choose"))
        cosines = new @ old.T
        ahead = (cosines > np.diag(cosines)[:, None]).sum(axis=1)
        return (1.0 / (1.0 + ahead) + (_nearest_other(cosines) == self.nearest)) / 2


def _nearest_other(cosines: np.ndarray) -> np.ndarray:
    """Return the nearest row of each, other than its own."""
    others = cosines.copy()
    np.fill_diagonal(others, -np.inf)
    return others.argmax(axis=1)


def _chance(n: int) -> float:
    """Return the expected score of a random order of n rows."""
    return float((np.reciprocal(np.arange(1.0, n + 1)).sum() / n + 1 / (n - 1)) / 2)


def _decided(
    candidates: Sequence[AlignmentMethod],
    table: np.ndarray,
    weight: np.ndarray,
    folds: Sequence[np.ndarray],
) -> tuple[AlignmentMethod, AlignmentChoice]:
    """Choose from the scores of candidates (rows) on held-out rows (columns)."""
    means, errors = _mean_and_error(table, weight)
    best = int(np.argmax(means))
    behind, behind_errors = _mean_and_error(table[best] - table, weight)
    level = [
        i for i, candidate in enumerate(candidates) if candidate.name == candidates[best].name and behind[i] <= TIE
    ]
    chosen = max(level, key=lambda i: (*candidates[i].tie_break, means[i]))
    tried = [
        Trial(c.name, settings_of(c), float(means[i]), float(errors[i]), float(behind[i]), float(behind_errors[i]))
        for i, c in enumerate(candidates)
    ]
    winner = candidates[chosen]
    why = (
        ("best" if chosen == best else "level with the best")
        + f" of {len(candidates)} candidates on {table.shape[1]} held-out pairs"
        + ("" if chosen == best else ", and adapts less to the pairs")
    )
    chance = float(np.mean([_chance(len(rows)) for rows in folds]))
    record = AlignmentChoice(
        winner.name, settings_of(winner), float(means[chosen]), float(errors[chosen]), chance,
        table.shape[1], why, tuple(sorted(tried, key=lambda trial: -trial.score)),
    )  # fmt: skip
    return winner, record


def _mean_and_error(table: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted means of rows, and their standard errors."""
    share = weight / weight.sum()
    means = table @ share
    return means, np.sqrt(np.square(table - means[:, None]) @ np.square(share))
