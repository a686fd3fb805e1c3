"""Comparison of objectives: each is fitted on the folds of a sample, and evaluated on what they hold out.

All objectives see the same folds, and the same draws of held-out rows give their intervals: differences are paired.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from firstk.advice.diagnosis.candidates import Candidate, balanced_weight, candidates_for
from firstk.advice.diagnosis.folds import Fold, Trials, lengths_for
from firstk.advice.diagnosis.ranking import Margin, Ranking, Trial
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.problem import pose
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.metrics.bootstrap import MeanScore, PerRowScores, resampled_scores
from firstk.metrics.curve import METRICS, per_row_scores
from firstk.metrics.scorers import full_width_neighbors
from firstk.moments.moments import Moments
from firstk.objectives._common import one_hot_cross
from firstk.quality.curve import PrefixCurve
from firstk.quality.paired import CONFIDENCE, DRAWS, TOLERANCE, Selection, interval, select

# What searches for new documents may lose for the sake of known ones: what a choice may lose at all.
NEW_LOSS = 0.01


@dataclass(frozen=True, eq=False)
class _Scored:
    """A candidate with its held-out scores: at each length, and in each draw of the held-out rows.

    Where these are of searches for new documents, `everything` are those of queries like the ones given, known
    documents among what they ask for; None otherwise.
    """

    candidate: Candidate
    score: np.ndarray  # (K,)
    draws: np.ndarray  # (B, K)
    components: int | None
    seconds: float
    everything: _Scored | None = None


def compare_objectives(trials: Trials, progress: Callable[[str], object] = lambda name: None) -> Ranking:
    """Fit every objective that the data allow on each fold, and rank them by their mean score over the lengths.

    Parameters
    ----------
    trials : Trials
    progress : callable (str) -> None
        Called with the name of each objective before it is tried.
    """
    ks = np.array(lengths_for(trials.width))
    folds = [_prepared(fold, trials.metric) for fold in trials.folds]
    scored: list[_Scored] = []
    left_out: dict[str, str] = {}
    for candidate in candidates_for(trials.task, _balance(trials)):
        progress(f"objective {candidate.name}")
        try:
            scored.append(_tried(candidate, trials, folds, ks))
        except FirstkError as error:
            left_out[candidate.name] = str(error)
    if not scored:
        raise InvalidInputError("no objective could be fitted: " + "; ".join(left_out.values()))
    return _ranked(scored, left_out, trials, ks, _raw_scores(trials, folds))


def _balance(trials: Trials) -> float | None:
    """Return the weight at which both terms of a mixture are equal."""
    rows = trials.folds[0].rows
    if "y" not in rows:
        return None
    named = {"y": rows["y"]} if trials.task == "labels" else {"targets": rows["y"]}
    moments = Moments(precision="float64").update(rows["X"], **named)
    return balanced_weight(one_hot_cross(moments) if trials.task == "labels" else moments.Sxy, moments.St)


def _prepared(fold: Fold, metric: str) -> Fold:
    """Add what depends on the data alone, such as the neighbors at full width, once for all objectives."""
    if metric != "recall@10":
        return fold
    encoder = pose("reconstruction", "full_prefix", "auto", 1).fit(fold.rows)[0]
    full_width_neighbors(encoder, fold.data)  # type: ignore[arg-type]
    return fold


def _tried(candidate: Candidate, trials: Trials, folds: Sequence[Fold], ks: np.ndarray) -> _Scored:
    began = time.process_time()
    parts: list[PerRowScores] = []
    known: list[PerRowScores] = []
    chosen = []
    for fold in folds:
        encoder = _fitted(candidate, fold, int(ks[-1]))
        chosen.append(encoder.record.settings)
        # A code shorter than k is scored at its full width.
        lengths = np.unique(np.minimum(ks, encoder.d))
        scores = per_row_scores(encoder, fold.data, trials.metric, lengths)
        parts += _ranked_on(scores, fold, trials)
        known += _ranked_on(scores, fold, trials, known=True) if trials.on_new else []
    width, candidate = _components(candidate, folds[0], ks), candidate.settled(chosen)
    found = _Scored(candidate, _mean(parts, ks), _drawn(parts, ks), width, 0.0)
    if known:
        mixed = _mixed(found, _Scored(candidate, _mean(known, ks), _drawn(known, ks), width, 0.0), trials.known_share)
        found = replace(found, everything=mixed)
    return replace(found, seconds=time.process_time() - began)


def _mixed(new: _Scored, known: _Scored, share: float) -> _Scored:
    """Return scores of queries like those given: a share for known documents, the others for new ones."""
    score, draws = ((1 - share) * a + share * b for a, b in ((new.score, known.score), (new.draws, known.draws)))
    return replace(new, score=score, draws=draws)


def _ranked_on(scores: PerRowScores, fold: Fold, trials: Trials, *, known: bool = False) -> list[PerRowScores]:
    """Return the scores that a fold gives to the ranking: of searches for new documents where that is the question.

    With `known`, those of the other searches.
    """
    if not trials.on_new or not isinstance(scores, MeanScore):
        return [scores]
    seen = np.asarray(fold.data.seen)  # type: ignore[union-attr]
    part = scores.part(seen if known else ~seen)
    return [part] if part.n else []


def _shares(parts: Sequence[PerRowScores]) -> np.ndarray:
    """Return what each fold counts: as much as it holds out."""
    return np.array([part.n for part in parts]) / sum(part.n for part in parts)


def _drawn(parts: Sequence[PerRowScores], ks: np.ndarray) -> np.ndarray:
    """Return the scores over all folds in each draw, (B, K)."""
    draws = [_padded(resampled_scores(part, resamples=DRAWS, random_state=i), len(ks)) for i, part in enumerate(parts)]
    return np.tensordot(_shares(parts), np.array(draws), axes=1)


def _mean(parts: Sequence[PerRowScores], ks: np.ndarray) -> np.ndarray:
    """Return the scores over all folds, (K,)."""
    return _shares(parts) @ np.array([_padded(part.score(), len(ks)) for part in parts])


def _fitted(candidate: Candidate, fold: Fold, width: int) -> FittedEncoder:
    rows = fold.pairs if candidate.pairs else fold.rows
    count = len(next(iter(rows.values())))
    problem = pose(candidate.objective, "full_prefix", candidate.solver_for(count), width, pairs=candidate.pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer axes than requested are expected here
        return problem.fit(rows, queries=fold.queries)[0]


def _components(candidate: Candidate, fold: Fold, ks: np.ndarray) -> int | None:
    """Return the width to ask for, where the default one ends before the longest k: discriminants of few classes."""
    if candidate.objective.supervision != "labels":
        return None
    return int(ks[-1]) if len(np.unique(fold.rows["y"])) - 1 < ks[-1] else None


def _padded(scores: np.ndarray, count: int) -> np.ndarray:
    """Repeat the last column until there are `count`."""
    scores = np.asarray(scores, dtype=float)
    return np.concatenate([scores, np.repeat(scores[..., -1:], count - scores.shape[-1], axis=-1)], axis=-1)


def _raw_scores(trials: Trials, folds: Sequence[Fold]) -> tuple[float | None, float | None]:
    """Return the score of the vectors as they are, which no objective changes: as ranked, and on queries of all kinds.

    None where they have none.
    """
    metric = METRICS[trials.metric]
    encoder = pose("reconstruction", "full_prefix", "auto", 1).fit(folds[0].rows)[0]
    rows = [metric.raw_rows(encoder, fold.data) for fold in folds]
    if any(scores is None for scores in rows):
        return metric.raw_constant, metric.raw_constant
    whole = [scores for scores in rows if scores is not None]

    def mean(known: bool) -> float:
        parts = [
            part
            for scores, fold in zip(whole, folds, strict=True)
            for part in _ranked_on(scores, fold, trials, known=known)
        ]
        return float(_mean(parts, np.ones(1))[0]) if parts else 0.0

    new = mean(known=False)
    if not trials.on_new:
        return new, new
    return new, (1 - trials.known_share) * new + trials.known_share * mean(known=True)


def _ranked(
    scored: Sequence[_Scored],
    left_out: dict[str, str],
    trials: Trials,
    ks: np.ndarray,
    raw: tuple[float | None, float | None],
) -> Ranking:
    """Rank the objectives that were tried, and choose the one to fit."""
    found = _selected(scored)
    chosen, reason = scored[found.chosen], "best" if found.level.sum() == 1 else "simpler"
    if trials.on_new:  # what loses little on new documents, and of it what is better over queries like those given
        near = [one for one, ahead in zip(scored, found.ahead, strict=True) if ahead.within(NEW_LOSS)]
        whole = [one.everything for one in near if one.everything is not None]
        chosen = near[_selected(whole).chosen]
        mean = float(whole[near.index(chosen)].score.mean())
        others = [one.everything for one, level in zip(scored, found.level, strict=True) if level and one is not chosen]
        if not found.level[scored.index(chosen)] or any(
            other is not None and mean > float(other.score.mean()) + TOLERANCE for other in others
        ):
            reason = "known"
    order = sorted(range(len(scored)), key=lambda i: -float(scored[i].score.mean()))  # stable: the simpler first
    n = trials.n - (trials.known if trials.on_new else 0)
    everything = [scored[i].everything for i in order]
    return Ranking(
        curves=tuple(_curve(scored[i], trials, ks, raw[0], n) for i in order),
        trials=tuple(_trial(scored[i]) for i in order),
        margins=tuple(
            Margin(scored[i].candidate.name, -ahead.value, -ahead.high, -ahead.low)
            for i, ahead in ((i, found.ahead[i]) for i in order[1:])
        ),
        choice=chosen.candidate.name,
        reason=reason,
        left_out=left_out,
        task=trials.task,
        folds=len(trials.folds),
        known=trials.known,
        known_share=trials.known_share,
        everything=tuple(_curve(one, trials, ks, raw[1], trials.n) for one in everything if one is not None),
    )


def _selected(scored: Sequence[_Scored]) -> Selection:
    """Compare means over the lengths; candidates are given the simplest first."""
    return select([one.score.mean() for one in scored], [one.draws.mean(axis=1) for one in scored])


def _curve(one: _Scored, trials: Trials, ks: np.ndarray, raw: float | None, n: int) -> PrefixCurve:
    low, high = interval(one.draws)
    return PrefixCurve(
        k=tuple(ks.tolist()),
        score=tuple(one.score.tolist()),
        metric=trials.metric,
        input_score=raw,
        label=one.candidate.name,
        n_evaluated=n,
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        confidence=CONFIDENCE,
    )


def _trial(one: _Scored) -> Trial:
    candidate = one.candidate
    low, high = map(float, interval(one.draws.mean(axis=1)))
    return Trial(
        name=candidate.name,
        objective=candidate.objective.name,
        settings=dict(candidate.settings),
        solver=candidate.solver,
        components=one.components,
        pairs=candidate.pairs,
        mean=float(one.score.mean()),
        low=low,
        high=high,
        seconds=round(one.seconds, 1),
    )
