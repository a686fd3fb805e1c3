r"""Profile of the rows of a fit, as rows would have it that the fit has not seen.

A code is too good on its own rows, by as much as it is too bad on others, to first order in 1 / n (Efron 1986, "How
biased is the apparent error rate of a prediction rule?"): a score is :math:`s + a/n` on the n rows of the fit, and
:math:`s - a/n` on new ones. Encoders refitted without a quarter of the sampled rows, and scored on that quarter, show
:math:`s - a/m` with m the rows that they saw. So the difference :math:`\Delta` of the first and the last is
:math:`a (1/n + 1/m)`, and new rows would score

.. math:: s - a/n = (s + a/n) - 2 \Delta\, m / (n + m).

A fit of a few rows in many columns is corrected by several percent, one of a million rows by nothing. Of the documents
of a store, the fit has seen a share f in pairs, and the others not: they score :math:`s - a/n + 2 f a/n`, and the
correction is f times as large.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from firstk._base.rows import as_dense
from firstk.contracts import Objective
from firstk.data.task import of_columns
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.profile import SIZES, RowProfile, ScoreTable
from firstk.estimator.problem import Problem
from firstk.exceptions import FirstkError, FirstkWarning
from firstk.metrics.profile import measure_profile, own_metric
from firstk.moments.fingerprint import row_priorities
from firstk.moments.statistics import Statistics

# Rows of the sample that are looked at.
_ROWS = 8192
# Parts of these rows, and how many of them are left out in turn: docs/decisions/estimator.md says why not all.
_PARTS, _REFITS = 4, 2
# Share of the difference below which it is not worth finding.
_LEAST = 0.1
# How unsure the difference is, as a share of itself.
_DOUBT = 0.5
# Rows that a profile needs, of the fit or held out. Of fewer rows of a fit too little can be left out: uncorrected,
# their scores called for a refit on fresh rows of the same kind.
ENOUGH = 256


def profile_of_fit(
    encoder: FittedEncoder, problem: Problem, objective: Objective, statistics: Statistics
) -> RowProfile | None:
    """Return the profile of the rows that an encoder was fitted on, corrected for having been fitted on them.

    Of pairs it is that of the documents of the store, where these are known, or else of their right sides.

    Parameters
    ----------
    encoder : FittedEncoder
    problem : Problem
        That it is the solution of.
    objective : Objective
        With everything "auto" settled.
    statistics : Statistics
        Of the fit.

    Returns
    -------
    profile : RowProfile or None
        None of fewer than 256 rows, or of as few pairs where a correction is needed. Its `held_out` is False where the
        encoder was trained by gradient, which is not done again for a correction, or where parts of the rows cannot be
        fitted.
    """
    full = statistics.in_full_coordinates()
    sample = full.sample.first(_ROWS)
    y = sample.columns.get("y")
    documents, name = full.to_encode
    documents = documents.first(_ROWS)
    if len(documents) < ENOUGH:
        return None
    X = as_dense(documents[name])
    y = None if own_metric(encoder, y) is None else y
    profile = measure_profile(encoder, X, y)
    if profile is None or problem.solver.trains:
        return profile
    n, m = statistics.moments.rows, len(sample) * (_PARTS - 1) // _PARTS
    seen = 1.0
    if full.documents is not None and full.learned is not None:  # of a store, the documents that are in pairs
        seen = float(np.isin(row_priorities({"X": X}), full.learned).mean())
    factor = seen * 2 * m / (n + m)
    if factor < _LEAST:
        return replace(profile, held_out=True)
    if len(sample) < ENOUGH:
        return None  # a store of enough documents, but too few pairs to leave some out
    # Profiles of a part of the rows: under the encoder, and under one that has not seen the part.
    X, number, pairs = as_dense(sample["right" if "right" in sample else "X"]), np.arange(len(sample)) % _PARTS, []
    # Differences are paired, so that one small group of each part does; more would take longer than the fit.
    size = max(size for size in SIZES[:2] if size * _PARTS <= len(sample))
    for part in range(_REFITS):
        held, kept = np.flatnonzero(number == part)[:size], np.flatnonzero(number != part)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FirstkWarning)  # what there is to say was said of the fit itself
                settled = replace(problem, objective=objective, n_components="rank")
                other = replace(settled.fit(of_columns(sample.take(kept)))[0], record=encoder.record)
            labels = None if y is None else y[held]
            before, after = (measure_profile(one, X[held], labels, sizes=(size,)) for one in (encoder, other))
        except FirstkError:
            return profile
        if before is not None and after is not None:
            pairs.append((before, after))
    return _corrected(profile, pairs, factor) if pairs else profile


def _corrected(profile: RowProfile, pairs: list[tuple[RowProfile, RowProfile]], factor: float) -> RowProfile:
    """Move each number of a profile by `factor` times the share that not having seen the rows makes."""

    def moved(values: np.ndarray, seen: list[np.ndarray], unseen: list[np.ndarray]) -> np.ndarray:
        before, after = np.mean(seen, axis=0), np.mean(unseen, axis=0)
        ratio = np.divide(after, before, out=np.ones_like(after), where=before > 0)
        made: np.ndarray = values * (1 - factor * (1 - ratio))
        return made

    def by_length(name: str, table: ScoreTable) -> ScoreTable:
        scored = [[_at(one.scores[name], table.k) for one in side] for side in zip(*pairs, strict=True)]
        score = moved(table.score, scored[0], scored[1])
        # A correction of first order is sure to about half of itself.
        return replace(table, score=score, error=np.hypot(table.error, _DOUBT * (score - table.score)))

    share = profile.share
    if share is not None:
        shares = [[_filled(one.share, len(share)) for one in side] for side in zip(*pairs, strict=True)]
        share = moved(share, shares[0], shares[1])
    return replace(
        profile,
        held_out=True,
        share=share,
        scores={name: by_length(name, table) for name, table in profile.scores.items()},
    )


def _filled(values: np.ndarray, d: int) -> np.ndarray:
    """Return the first d numbers; the last again where a part of the rows has fewer coordinates."""
    return np.append(values, np.full(max(0, d - len(values)), values[-1]))[:d]


def _at(table: ScoreTable, k: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.interp(np.log2(k), np.log2(table.k), table.score[-1])
    return found
