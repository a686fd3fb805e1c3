"""Comparison of objectives: those that the data allow, fitted on folds of a sample and ranked by held-out scores.

All objectives see the same folds, and the same draws of held-out rows give their intervals: differences are paired. A
candidate is named by the words of ``firstk fit`` that ask for it: the objective, then what it keeps or learns from,
then settings that are not the defaults.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import median_low
from typing import Any

import numpy as np

from firstk._base.checks import require
from firstk._base.json_records import check_fields
from firstk.advice.diagnosis.folds import Fold, Purpose, Trials, lengths_for
from firstk.contracts import Objective
from firstk.estimator.problem import pose
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.metrics.bootstrap import MeanScore, PerRowScores, resampled_scores
from firstk.metrics.curve import METRICS, full_width_neighbors, per_row_scores
from firstk.moments.moments import Moments
from firstk.objectives import Classification, ErrorBound, Fisher, Mixture, Reconstruction, Regression, Similarity
from firstk.objectives._common import one_hot_cross
from firstk.quality.curve import PrefixCurve
from firstk.quality.paired import CONFIDENCE, DRAWS, SAME, TOLERANCE, Difference, Selection, interval, select
from firstk.solvers import Gradient

# Weights of the mixture, relative to the one at which both of its terms are equal along their first axis.
MIXTURE_WEIGHTS = (0.1, 1.0, 10.0)
# Share of a fit's passes over the rows that training makes here: enough to rank objectives.
PASSES = 0.4


@dataclass(frozen=True)
class Candidate:
    """An objective to try.

    Attributes
    ----------
    name : str
        Its name in a table.
    objective : Objective
    pairs : bool
        Whether it is fitted on pairs; otherwise on rows, with labels or targets where it takes them.
    solver : str
        The solver to ask for, where it is not "auto".
    trained : bool
        Whether gradient descent finds it, which needs torch.
    explicit : tuple of str
        Settings that have to be given even at their defaults.
    settles : tuple of str
        Settings left to "auto" that become what the folds chose, as another candidate is the same with one of the
        values: a fit of all rows could choose that one, which was ranked by itself.
    """

    name: str
    objective: Objective
    pairs: bool = False
    solver: str = "auto"
    trained: bool = False
    explicit: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the objective that are not its defaults, or have to be given in any case."""
        own = {part.name: (getattr(self.objective, part.name), part.default) for part in fields(self.objective)}  # type: ignore[arg-type]
        return {name: value for name, (value, default) in own.items() if value != default or name in self.explicit}

    def settled(self, chosen: Sequence[Mapping[str, Any]]) -> Candidate:
        """Return the candidate with settings of its own choice, from those of each fold: the lower median."""
        own: Any = self.objective
        values = {name: median_low([settings[name] for settings in chosen]) for name in self.settles}
        return replace(self, objective=replace(own, **values))

    def solver_for(self, rows: int) -> str | Gradient:
        """Return the solver of a small fit: the one to ask for, with fewer passes over rows where it trains on them."""
        if not self.trained or self.pairs:  # pairs are few, and their runs short
            return self.solver
        require("torch", "torch", f"Objective '{self.objective.name}'")
        from firstk.solvers.gradient.losses import training_loss_of

        loss = training_loss_of(self.objective)
        whole = max(loss.epochs, loss.steps // max(1, rows // loss.batch_size))  # of a fit of these rows by default
        return Gradient(epochs=max(1, round(PASSES * whole)))


def candidates_for(task: Purpose, balance: float | None = None) -> tuple[Candidate, ...]:
    """Return the objectives for a task, the simplest first: of those that are as good, the first is recommended.

    Parameters
    ----------
    task : {"labels", "targets", "pairs", "judgements", "none"}
    balance : float, optional
        For labels and targets: the weight at which both terms of a mixture are equal; see `balanced_weight`.
    """
    plain = (
        Candidate("reconstruction", Reconstruction()),
        Candidate("similarity, dot_products", Similarity(keep="dot_products")),
    )
    # Beside judgements, similarity learns from them unless it is told what to keep of the vectors.
    neighbors = Candidate("similarity, neighbors", Similarity(), explicit=("keep",))
    half = Candidate("similarity, variance", Similarity(keep="variance"))
    if task == "none":
        return (*plain, half, neighbors)
    if task in ("pairs", "judgements"):
        return (
            *plain,
            half,
            neighbors,
            Candidate("similarity, pairs, neighbor_weight 0", Similarity(neighbor_weight=0.0), pairs=True),
            Candidate("similarity, pairs", Similarity(), pairs=True, settles=("neighbor_weight",)),
            Candidate("similarity, pairs, gradient", Similarity(), pairs=True, solver="gradient", trained=True),
        )
    # Weights of two digits, so that a command shows what was tried.
    weights = [float(f"{balance * share:.1e}") for share in MIXTURE_WEIGHTS] if balance else []
    mixtures = tuple(Candidate(f"mixture, lam {lam:g}", Mixture(lam=lam)) for lam in weights)
    if task == "targets":
        supervised = (
            Candidate("regression", Regression()),
            Candidate("regression, shrinkage auto", Regression(shrinkage="auto")),
        )
        return (*plain, *supervised, *mixtures, neighbors)
    return (
        *plain,
        Candidate("fisher", Fisher()),
        Candidate("error_bound", ErrorBound()),
        *mixtures,
        neighbors,
        Candidate("classification", Classification(), trained=True),
    )


def balanced_weight(cross: np.ndarray, St: np.ndarray) -> float:
    """Return the weight at which both terms of a mixture are equal along their first axis.

    Parameters
    ----------
    cross : ndarray of shape (p, q)
        Cross scatter of rows and targets (one-hot labels).
    St : ndarray of shape (p, p)
        Scatter of the rows.
    """
    values, P = np.linalg.eigh(St)
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    gains = (P[:, kept].T @ cross) / np.sqrt(values[kept])[:, None]
    return float(np.linalg.norm(gains, 2) ** 2 / values[-1]) if kept.any() and values[-1] > 0 else 0.0


@dataclass(frozen=True)
class Trial:
    """How an objective of the ranking is asked for, what it scored, and what trying it took.

    Attributes
    ----------
    name : str
    objective : str
        Public name of the objective.
    settings : mapping
        Its settings that are not the defaults.
    solver : str
    components : int or None
        Width to ask for, where the default would be shorter than the lengths compared.
    pairs : bool
        Whether it learns from pairs.
    curve : PrefixCurve
        Held-out scores at a few lengths, with intervals.
    everything : PrefixCurve or None
        Scores of queries like those given, where `curve` is of searches for new documents: queries of which no relevant
        document was learned from.
    mean, low, high : float
        Mean score over the lengths compared, and its interval.
    ahead : Difference
        How far it is ahead of the best, at most 0: means over the lengths, paired by rows.
    seconds : float
        Processor time of fitting and evaluating it.
    """

    name: str
    objective: str
    settings: Mapping[str, Any]
    solver: str
    components: int | None
    pairs: bool
    curve: PrefixCurve
    everything: PrefixCurve | None
    mean: float
    low: float
    high: float
    ahead: Difference
    seconds: float = field(compare=False)

    @property
    def level(self) -> bool:
        """Whether the objective may be taken instead of the best one."""
        return self.ahead.value >= -SAME or self.ahead.level

    @property
    def python(self) -> str:
        """The call that fits it."""
        from firstk import objectives

        own = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        kind = objectives.PUBLIC[self.objective].__name__
        given = [] if self.components is None else [str(self.components)]
        given.append(f"objective={kind}({own})" if own else f"objective={self.objective!r}")
        given += [] if self.solver == "auto" else [f"solver={self.solver!r}"]
        supervised = self.objective not in ("reconstruction", "similarity")
        fit = "fit_pairs(left, right, scores)" if self.pairs else "fit(X, y)" if supervised else "fit(X)"
        return f"PrefixEncoder({', '.join(given)}).{fit}"


@dataclass(frozen=True)
class Ranking:
    """Held-out curves of the objectives that were tried, and the one to fit.

    Attributes
    ----------
    trials : tuple of Trial
        The best mean first.
    choice : str
        The objective to fit.
    reason : {"best", "simpler", "known"}
        Why: nothing is level with it; it is level with the best, and simpler or faster; or it is level with the best on
        new documents, and better where documents are known.
    left_out : dict
        Objectives that could not be tried, each with the reason.
    task : str
        "labels", "targets", "pairs", "judgements" or "none".
    folds : int
        How many parts were held out in turn.
    known : int
        Number of held-out queries of which a relevant document was learned from with another query.
    known_share : float
        Of queries like those given, how many are such.
    """

    trials: tuple[Trial, ...]
    choice: str
    reason: str
    left_out: dict[str, str]
    task: str
    folds: int
    known: int = 0
    known_share: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def curves(self) -> tuple[PrefixCurve, ...]:
        """The curves of all trials."""
        return tuple(trial.curve for trial in self.trials)

    @property
    def everything(self) -> tuple[PrefixCurve, ...]:
        """Their curves over queries like those given, where they have any."""
        return tuple(trial.everything for trial in self.trials if trial.everything is not None)

    @property
    def leader(self) -> str:
        """The objective with the best mean."""
        return self.trials[0].name

    @property
    def chosen(self) -> Trial:
        """The trial of the objective to fit."""
        return next(trial for trial in self.trials if trial.name == self.choice)

    @property
    def level(self) -> tuple[str, ...]:
        """The objectives that are level with the best, itself among them, but for the one to fit."""
        return tuple(trial.name for trial in self.trials if trial.level and trial.name != self.choice)


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
    if first.y is not None:  # the weight at which both terms of a mixture are equal
        given = first.columns
        named = {"y" if trials.task == "labels" else "targets": given["y"]}
        moments = Moments(precision="float64").update(given["X"], **named)
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
        rows = fold.pairs if candidate.pairs and fold.pairs is not None else fold.rows
        solver = candidate.solver_for(rows.n)
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
    few = candidate.objective.supervision == "labels" and len(np.unique(np.asarray(trials.folds[0].rows.y))) - 1 < width
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
