"""What "auto" stands for: the method and its settings, chosen on held-out pairs.

Pairs of a bounded sample are held out by folds; the moments of the rest are those of all pairs less those of the fold,
so a choice for a million pairs costs as much as one for a few thousand. A candidate is scored by the new model's
neighbors: of the 10 held-out rows that the new model puts nearest to a held-out new vector, the share that is found
among old vectors, both encoded by the candidate.
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
NEIGHBORS = 10
# Standard errors of the paired difference by which a candidate must lose to count as worse.
SURE = 1.0


@dataclass(frozen=True)
class Trial:
    """A candidate and its score on held-out pairs.

    Attributes
    ----------
    method : str
    settings : mapping
    score : float
        Mean share of the new model's neighbors that are found.
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
    n_neighbors : int
        How many neighbors were looked for.
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
    n_neighbors: int
    held_out: int
    why: str
    tried: tuple[Trial, ...]

    @property
    def at_chance(self) -> bool:
        """Whether the best candidate finds no more neighbors than a random order would, to three standard errors."""
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

    Of candidates that are behind the best by at most one standard error of the difference, the one that adapts least
    to the pairs wins (`AlignmentMethod.tie_break`), among those of the best one's method.

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
    n_neighbors = min(NEIGHBORS, min(map(len, folds)) - 2)
    scores: list[list[np.ndarray]] = [[] for _ in candidates]
    weights = []
    with progress_bar(len(folds) * len(candidates), "choosing a method", "fit", verbose) as done:
        for rows in folds:
            fold = _Fold(moments, sample, rows, n_neighbors)
            weights.append(fold.weight)
            for i, candidate in enumerate(candidates):
                trained = fold.training_rows(seed) if candidate.trains else None
                scores[i].append(fold.recall(*candidate.comparing(fold.moments, trained)))
                done()
    table = np.array([np.concatenate(part) for part in scores])
    return _decided(candidates, table, np.concatenate(weights), n_neighbors, folds)


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
    """Moments without the held-out rows, and the new model's neighbors among these."""

    def __init__(self, moments: CrossMoments, sample: RowSample, rows: np.ndarray, n_neighbors: int):
        held = sample.take(rows)
        self.sample, self.rows, self.n_neighbors = sample, rows, n_neighbors
        self.old, self.new = held["left"], held["right"]
        weight = held.get("weight")
        self.weight = np.ones(len(rows)) if weight is None else weight
        part = CrossMoments().update(self.old, self.new, weight)
        self.moments = moments.without(part)
        self.truth = _nearest(unit_rows(self.new), unit_rows(self.new), n_neighbors)

    def training_rows(self, seed: int) -> AlignmentRows:
        """Return the rows of the sample that are not held out."""
        rest = self.sample.take(np.setdiff1d(np.arange(len(self.sample)), self.rows))
        return AlignmentRows(rest["left"], rest["right"], rest.get("weight"), seed)

    def recall(self, encode_old: AffineMap, encode_new: AffineMap) -> np.ndarray:
        """Return, for each held-out row, the share of the new model's neighbors that old vectors give."""
        old = unit_rows(encode_old(self.old, "choose"))
        new = unit_rows(encode_new(self.new, "choose"))
        found = _nearest(new, old, self.n_neighbors)
        both = (self.truth[:, :, None] == found[:, None, :]).any(axis=2)
        return both.mean(axis=1)


def _nearest(queries: np.ndarray, documents: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest documents of each query by inner product, without the one of its own row."""
    scores = queries @ documents.T
    np.fill_diagonal(scores, -np.inf)
    return np.argpartition(-scores, k - 1, axis=1)[:, :k]


def _decided(
    candidates: Sequence[AlignmentMethod],
    table: np.ndarray,
    weight: np.ndarray,
    n_neighbors: int,
    folds: Sequence[np.ndarray],
) -> tuple[AlignmentMethod, AlignmentChoice]:
    """Choose from the scores of candidates (rows) on held-out rows (columns)."""
    means, errors = _mean_and_error(table, weight)
    best = int(np.argmax(means))
    behind, behind_errors = _mean_and_error(table[best] - table, weight)
    level = [
        i
        for i, candidate in enumerate(candidates)
        if candidate.name == candidates[best].name and behind[i] <= SURE * behind_errors[i]
    ]
    chosen = max(level, key=lambda i: (*candidates[i].tie_break, means[i]))
    tried = [
        Trial(c.name, settings_of(c), float(means[i]), float(errors[i]), float(behind[i]), float(behind_errors[i]))
        for i, c in enumerate(candidates)
    ]
    winner = candidates[chosen]
    why = (
        ("best" if chosen == best else "within one standard error of the best")
        + f" of {len(candidates)} candidates on {table.shape[1]} held-out pairs"
        + ("" if chosen == best else ", and adapts less to the pairs")
    )
    chance = float(np.mean([n_neighbors / (len(rows) - 1) for rows in folds]))
    record = AlignmentChoice(
        winner.name, settings_of(winner), float(means[chosen]), float(errors[chosen]), chance, n_neighbors,
        table.shape[1], why, tuple(sorted(tried, key=lambda trial: -trial.score)),
    )  # fmt: skip
    return winner, record


def _mean_and_error(table: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted means of rows, and their standard errors."""
    share = weight / weight.sum()
    means = table @ share
    return means, np.sqrt(np.square(table - means[:, None]) @ np.square(share))
