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
from firstk.advice.diagnosis.ranking import Ranking, Trial
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
    first, metric = trials.folds[0].rows, METRICS[trials.metric]
    anything = pose("reconstruction", "full_prefix", "auto", 1).fit(first)[0]  # for what depends on the data alone
    if trials.metric == "recall@10":
        for fold in trials.folds:
            full_width_neighbors(anything, fold.data)  # type: ignore[arg-type]  # found once for all objectives
    balance = None
    if "y" in first:  # the weight at which both terms of a mixture are equal
        named = {"y": first["y"]} if trials.task == "labels" else {"targets": first["y"]}
        moments = Moments(precision="float64").update(first["X"], **named)
        balance = balanced_weight(one_hot_cross(moments) if trials.task == "labels" else moments.Sxy, moments.St)
    scored: list[_Scored] = []
    left_out: dict[str, str] = {}
    for candidate in candidates_for(trials.task, balance):
        progress(f"objective {candidate.name}")
        try:
            scored.append(_tried(candidate, trials, ks))
        except FirstkError as error:
            left_out[candidate.name] = str(error)
    if not scored:
        raise InvalidInputError("no objective could be fitted: " + "; ".join(left_out.values()))
    # The score of the vectors as they are, which no objective changes: as ranked, and on queries of all kinds.
    new = whole = metric.raw_constant
    rows = [(fold, metric.raw_rows(anything, fold.data)) for fold in trials.folds]
    if all(scores is not None for _, scores in rows):
        of_new, of_known = (
            [part for fold, scores in rows if scores is not None for part in _ranked_on(scores, fold, trials, known)]
            for known in (False, True)
        )
        new = whole = float(_over_folds(of_new, 1)[0][0]) if of_new else 0.0
        if trials.on_new:
            known_score = float(_over_folds(of_known, 1)[0][0]) if of_known else 0.0
            whole = (1 - trials.known_share) * new + trials.known_share * known_score
    return _ranked(scored, left_out, trials, ks, (new, whole))


def _tried(candidate: Candidate, trials: Trials, ks: np.ndarray) -> _Scored:
    """Fit a candidate on each fold, and score what the fold holds out."""
    began = time.process_time()
    new: list[PerRowScores] = []
    known: list[PerRowScores] = []
    chosen, width = [], int(ks[-1])
    for fold in trials.folds:
        rows = fold.pairs if candidate.pairs else fold.rows
        solver = candidate.solver_for(len(next(iter(rows.values()))))
        problem = pose(candidate.objective, "full_prefix", solver, width, pairs=candidate.pairs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer axes than requested are expected here
            encoder = problem.fit(rows, queries=fold.queries)[0]
        chosen.append(encoder.record.settings)
        # A code shorter than k is scored at its full width.
        scores = per_row_scores(encoder, fold.data, trials.metric, np.unique(np.minimum(ks, encoder.d)))
        new += _ranked_on(scores, fold, trials)
        known += _ranked_on(scores, fold, trials, known=True) if trials.on_new else []
    # The width to ask for, where the default one ends before the longest k: discriminants of few classes.
    few = candidate.objective.supervision == "labels" and len(np.unique(trials.folds[0].rows["y"])) - 1 < width
    found = _Scored(candidate.settled(chosen), *_over_folds(new, len(ks)), width if few else None, 0.0)
    if known:  # queries like those given: a share for known documents, the others for new ones
        share, parts = trials.known_share, zip((found.score, found.draws), _over_folds(known, len(ks)), strict=True)
        score, draws = ((1 - share) * a + share * b for a, b in parts)
        found = replace(found, everything=replace(found, score=score, draws=draws))
    return replace(found, seconds=time.process_time() - began)


def _ranked_on(scores: PerRowScores, fold: Fold, trials: Trials, known: bool = False) -> list[PerRowScores]:
    """Return the scores that a fold gives to the ranking: of searches for new documents where that is the question.

    With `known`, those of the other searches.
    """
    if not trials.on_new or not isinstance(scores, MeanScore):
        return [scores]
    seen = np.asarray(fold.data.seen)  # type: ignore[union-attr]
    part = scores.part(seen if known else ~seen)
    return [part] if part.n else []


def _over_folds(parts: Sequence[PerRowScores], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores over all folds, (K,), and in each draw, (B, K); a fold counts as much as it holds out.

    The last column is repeated until there are K.
    """
    shares = np.array([part.n for part in parts]) / sum(part.n for part in parts)

    def padded(scores: np.ndarray) -> np.ndarray:
        scores = np.asarray(scores, dtype=float)
        return np.concatenate([scores, np.repeat(scores[..., -1:], count - scores.shape[-1], axis=-1)], axis=-1)

    draws = [padded(resampled_scores(part, resamples=DRAWS, random_state=i)) for i, part in enumerate(parts)]
    return shares @ np.array([padded(part.score()) for part in parts]), np.tensordot(shares, np.array(draws), axes=1)


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

    def curve(one: _Scored, raw: float | None, n: int) -> PrefixCurve:
        low, high = interval(one.draws)
        return PrefixCurve(
            ks.tolist(), one.score.tolist(), trials.metric, raw, one.candidate.name, n_evaluated=n,
            low=low.tolist(), high=high.tolist(), confidence=CONFIDENCE,
        )  # fmt: skip

    tried = []
    for one, ahead in zip(scored, found.ahead, strict=True):
        own, everything = one.candidate, one.everything
        low, high = map(float, interval(one.draws.mean(axis=1)))
        tried.append(
            Trial(
                own.name, own.objective.name, dict(own.settings), own.solver, one.components, own.pairs,
                curve(one, raw[0], trials.n - (trials.known if trials.on_new else 0)),
                None if everything is None else curve(everything, raw[1], trials.n),
                float(one.score.mean()), low, high, ahead, round(one.seconds, 1),
            )
        )  # fmt: skip
    return Ranking(
        trials=tuple(sorted(tried, key=lambda trial: -trial.mean)),  # stable: the simpler first
        choice=chosen.candidate.name,
        reason=reason,
        left_out=left_out,
        task=trials.task,
        folds=len(trials.folds),
        known=trials.known,
        known_share=trials.known_share,
    )


def _selected(scored: Sequence[_Scored]) -> Selection:
    """Compare means over the lengths; candidates are given the simplest first."""
    return select([one.score.mean() for one in scored], [one.draws.mean(axis=1) for one in scored])
