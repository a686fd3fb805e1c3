"""The ranking of objectives, as a record: held-out scores at a few lengths with intervals, and the one to fit next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firstk._base.json_records import check_fields
from firstk.quality.curve import PrefixCurve
from firstk.quality.paired import SAME, Difference


@dataclass(frozen=True)
class Margin:
    """How far an objective is behind the best one: mean over prefixes, paired by rows.

    Attributes
    ----------
    objective : str
    behind, low, high : float
        The difference, and its interval.
    """

    objective: str
    behind: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the difference exceeds its noise."""
        return Difference(self.behind, self.low, self.high).clear

    @property
    def level(self) -> bool:
        """Whether the objective may be taken instead of the best one."""
        return self.behind <= SAME or Difference(-self.behind, -self.high, -self.low).level


@dataclass(frozen=True)
class Trial:
    """How an objective of the ranking is asked for, and what trying it took.

    Attributes
    ----------
    name : str
        The label of its curve.
    objective : str
        Public name of the objective.
    settings : mapping
        Its settings that are not the defaults.
    solver : str
    components : int or None
        Width to ask for, where the default would be shorter than the lengths compared.
    pairs : bool
        Whether it learns from pairs.
    mean, low, high : float
        Mean score over the lengths compared, and its interval.
    seconds : float
        Processor time of fitting and evaluating it.
    """

    name: str
    objective: str
    settings: Mapping[str, Any]
    solver: str
    components: int | None
    pairs: bool
    mean: float
    low: float
    high: float
    seconds: float = field(compare=False)

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
    curves : tuple of PrefixCurve
        One per objective, best mean first, with intervals.
    trials : tuple of Trial
        In the order of `curves`.
    margins : tuple of Margin
        Of all but the best, in the order of `curves`.
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
    everything : tuple of PrefixCurve
        Scores of queries like those given, in the order of `curves`, where these are of searches for new documents:
        queries of which no relevant document was learned from.
    """

    curves: tuple[PrefixCurve, ...]
    trials: tuple[Trial, ...]
    margins: tuple[Margin, ...]
    choice: str
    reason: str
    left_out: dict[str, str]
    task: str
    folds: int
    known: int = 0
    known_share: float = 0.0
    everything: tuple[PrefixCurve, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

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
        names = [self.leader, *(margin.objective for margin in self.margins if margin.level)]
        return tuple(name for name in names if name != self.choice)
