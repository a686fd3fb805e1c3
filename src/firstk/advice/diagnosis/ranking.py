"""The ranking of objectives, as a record: held-out scores at a few lengths with intervals, and the one to fit next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firstk._base.json_records import check_fields
from firstk.quality.curve import PrefixCurve
from firstk.quality.paired import SAME, Difference


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
