"""The ranking of objectives: held-out scores at a few lengths with intervals, and the one to fit next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firstk.data.task import FEWEST_NEW
from firstk.quality.curve import PrefixCurve
from firstk.quality.paired import TOLERANCE
from firstk.words.choice import ABOVE_RAW

# In records without intervals: number of standard errors for a clear difference.
CLEAR = 2.0
# Share of the vectors with which codes of an objective hold on classes without labels (docs/objectives/fisher.md and
# classification.md, "Beyond the labels"); the others hold there as they are.
BEYOND_LABELS = {"fisher": 0.5, "classification": 0.3}
# What a name of the table, or its last word, means.
_GLOSSES = {
    "reconstruction": "is PCA",
    "similarity, dot_products": "is uncentred SVD",
    "gradient": "is trained by gradient descent",
}
# What is evaluated, by metric: what a score is of, and in what units it is held out.
_UNITS = {"ndcg@10": "queries", "spearman": "pairs", "positive_recall@10": "pairs"}


@dataclass(frozen=True)
class Margin:
    """Difference of an objective to the best one: mean over prefixes, paired by rows.

    Attributes
    ----------
    objective : str
    behind, error : float
        The difference, and its standard error.
    low, high : float or None
        Its interval, from the same draws of rows for both; None in records without intervals.
    """

    objective: str
    behind: float
    error: float
    low: float | None = None
    high: float | None = None

    @property
    def clear(self) -> bool:
        """Whether the difference exceeds its noise."""
        return self.behind > CLEAR * self.error if self.low is None else self.low > 0

    @property
    def as_good(self) -> bool:
        """Whether the objective may be taken instead of the best one."""
        return self.near(TOLERANCE)

    def near(self, most: float) -> bool:
        """Whether it is behind by at most so much, and not clearly."""
        return not self.clear and self.behind <= most


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
    leader : str
        The one with the best mean.
    margins : tuple of Margin
        Margins of the others, smallest first.
    trials : tuple of Trial
        In the order of `curves`; empty in records that were written before trials were kept.
    choice : str or None
        The objective to fit: the simplest of those that are as good as the leader.
    left_out : dict
        Objectives that could not be tried, each with the reason.
    task : str
        "labels", "targets", "pairs", "judgements" or "none".
    folds : int
        How many parts were held out in turn; 0 in records that do not say.
    known : int
        Number of held-out queries of which a relevant document was learned from with another query.
    known_share : float
        Of queries like those given, how many are such.
    everything : tuple of PrefixCurve
        Scores of queries like those given, in the order of `curves`, where these are of searches for new documents:
        queries of which no relevant document was learned from.
    """

    curves: tuple[PrefixCurve, ...]
    leader: str
    margins: tuple[Margin, ...]
    trials: tuple[Trial, ...] = ()
    choice: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    task: str = ""
    folds: int = 0
    known: int = 0
    known_share: float = 0.0
    everything: tuple[PrefixCurve, ...] = ()

    @property
    def chosen(self) -> Trial | None:
        """The trial of the objective to fit; None in records without trials."""
        return next((trial for trial in self.trials if trial.name == self.choice), None)

    @property
    def scope(self) -> str:
        """What the scores are."""
        first = self.curves[0]
        rows = "" if first.n_evaluated is None else f" on {first.n_evaluated:,} {self._held_out}"
        return f"mean {first.metric} over k = {_listed([str(k) for k in first.k])}{rows}"

    @property
    def _held_out(self) -> str:
        """What is evaluated: held out at once, or in turn."""
        units = f"{self._units} for new documents" if self.everything else self._units
        if self.folds < 2:
            return f"held-out {units}"
        return f"{units}, cross-validated: each was held out of one of {self.folds} fits"

    @property
    def _units(self) -> str:
        return _UNITS.get(self.curves[0].metric, "rows")

    def why(self) -> str:
        """Say in one line why the objective was chosen."""
        trial = self.chosen
        if trial is None:
            return ""
        tied = [margin.objective for margin in self.margins if margin.as_good and margin.objective != self.choice]
        tied = [self.leader, *tied] if self.choice != self.leader else tied
        score = f"{trial.mean:.3f} ({self.scope})"
        if not tied:
            return f"Objective {trial.name} is best: {score}."
        if self._better_over_all(tied):
            own = next((margin for margin in self.margins if margin.objective == self.choice), None)
            if own is not None and not own.as_good:
                return (
                    f"Objective {trial.name} is not clearly behind {self.leader} on new documents ({own.behind:.3f}), "
                    f"and better over queries like those given: {score}."
                )
            return (
                f"Objective {trial.name} is as good on new documents as {_listed(tied)}, and better over queries like "
                f"those given: {score}."
            )
        return f"Objective {trial.name} is as good as {_listed(tied)}, and simpler or faster: {score}."

    def _better_over_all(self, tied: list[str]) -> bool:
        """Whether the choice is ahead of one that is as good on new documents, by its mean over all queries."""
        means = {curve.label: _mean(curve) for curve in self.everything}
        return any(means[str(self.choice)] > means[name] + TOLERANCE for name in tied if name in means)

    def sentences(self) -> list[str]:
        """Return the recommended objective, what each length keeps, then how sure that is, and what was not tried."""
        trial = self.chosen
        if trial is None:
            return [self._without_trials()]
        behind = [margin for margin in self.margins if not margin.as_good]
        found = [self.why(), self._lost(), self._about_new(), *self._about_question(), self._beyond(trial)]
        sure = f"How sure: the mean of {trial.name} is {trial.low:.3f} to {trial.high:.3f}"
        if behind:
            rest = "; ".join(f"{margin.objective} by {_difference(margin)}" for margin in behind)
            sure += f". Behind {self.leader} are {rest}"
        found.append(f"{sure} (95 % intervals).")
        found += [f"Not tried: {name} ({reason.rstrip('.')})." for name, reason in self.left_out.items()]
        return [sentence for sentence in found if sentence]

    def _beyond(self, trial: Trial) -> str:
        """Name the setting for codes that will meet classes, or kinds of vectors, that are not among these."""
        if trial.name == "similarity, neighbors":
            return (
                "These axes, their means and variances are those of these vectors. If the codes will also be used for "
                "other kinds of vectors, fit on some of them too; where there are none yet, keep='projections' "
                "(--set objective.keep=projections) loses less there."
            )
        share = BEYOND_LABELS.get(trial.objective) if self.task == "labels" else None
        if share is None:
            return ""
        return (
            f"{trial.objective} keeps what these labels need. If the codes will also be used for classes that have no "
            f"labels yet, give the vectors a share of the objective: reconstruction={share:g} "
            f"(--set objective.reconstruction={share:g})."
        )

    def _about_new(self) -> str:
        """Say what new documents are, and how the choice fares on all queries; or that too few ask for new ones."""
        if not self.known:
            return ""
        if not self.everything:
            return (
                f"{self.known:,} of the queries ask for documents that a fit has learned from with other queries: "
                "objectives that learn from pairs know these by heart, and new documents will fare worse. The other "
                f"queries are too few to rank by: {FEWEST_NEW} are needed."
            )
        own = next(curve for curve in self.everything if curve.label == self.choice)
        best = max(self.everything, key=_mean)
        trial = next(trial for trial in self.trials if trial.name == best.label)
        how = "" if trial.solver == "auto" else f" (--set solver={trial.solver})"
        memory = (
            f"; {best.label} reaches {_mean(best):.3f} there, by what it remembers of known documents: fit that "
            f"one{how} if few documents will be added"
        )
        return (
            "The question is: which objective finds documents that are new, as those that are added to a store? "
            "Queries that share relevant documents were held out together. Over queries like those given, "
            f"{self.known_share:.0%} of which ask for documents that other queries taught, {own.label} reaches "
            f"{_mean(own):.3f}{memory if best.label != own.label else ''}."
        )

    def _without_trials(self) -> str:
        behind = [margin for margin in self.margins if margin.clear]
        if not behind:
            return f"No difference between objectives beyond noise ({self.scope}): take reconstruction, it is simplest."
        rest = ", ".join(f"{margin.objective} by {_difference(margin)}" for margin in behind)
        return f"Objective {self.leader} is best; it leads {rest} ({self.scope})."

    def _lost(self) -> str:
        """Say what share of the raw vectors' score each length keeps."""
        curve = next(curve for curve in self.curves if curve.label == self.choice)
        if not curve.input_score or curve.input_score <= 0:
            return ""
        kept = ", ".join(
            f"{score / curve.input_score:.0%} at k = {k}" for k, score in zip(curve.k, curve.score, strict=True)
        )
        of = (
            "ten nearest neighbors" if self.task == "none" else f"raw vectors' {curve.metric} ({curve.input_score:.3f})"
        )
        above = f" {ABOVE_RAW}" if max(curve.score) > 1.005 * curve.input_score else ""
        return f"Of the {of} {self.choice} keeps {kept}.{above}"

    def _about_question(self) -> list[str]:
        if self.task != "none":
            return []
        return [
            "This is fidelity: which of each vector's ten nearest neighbors at full width a short code finds. Whether "
            "short codes find what is relevant is another question: give judgements with --relevance, or labels."
        ]

    def table(self) -> list[tuple[str, str]]:
        """Return the curves as lines of a table, with intervals where there are any."""
        first = self.curves[0]
        seconds = {trial.name: trial for trial in self.trials}
        wide = 22 if first.low is not None else 6
        head = "  ".join(f"{f'k = {k}':<{wide}}" for k in first.k)
        whole = {curve.label: curve for curve in self.everything}
        head += "  mean" + ("     all" if whole else "") + "   seconds" if seconds else ""
        lines = [(f"{first.metric}", head)]
        for curve in self.curves:
            cells = "  ".join(f"{cell:<{wide}}" for cell in _cells(curve))
            if trial := seconds.get(curve.label):
                mean = f"  {_mean(whole[curve.label]):6.3f}" if whole else ""
                cells += f"  {trial.mean:.3f}{mean}  {trial.seconds:7.1f}"
            lines.append((curve.label, cells))
        if first.input_score is not None and seconds:
            lines.append(("raw vectors", f"{first.input_score:.3f} at full width"))
        return lines + self._glosses()

    def _glosses(self) -> list[tuple[str, str]]:
        """Explain names of the table, once."""
        names = [curve.label for curve in self.curves]
        glosses = [
            f"{start} {what}"
            for start, what in _GLOSSES.items()
            if any(start in (name, name.rpartition(", ")[2]) for name in names)
        ]
        found = [("", f"({'; '.join(glosses)})")] if glosses else []
        if self.everything:
            kinds = f"{self.known_share:.0%} for known documents, the others for new ones"
            found.append(("", f"(all: the mean over queries like those given, {kinds})"))
        return found


def _cells(curve: PrefixCurve) -> list[str]:
    if curve.low is None or curve.high is None:
        return [f"{score:.3f}" for score in curve.score]
    ends = zip(curve.score, curve.low, curve.high, strict=True)
    return [f"{score:.3f} ({low:.3f}-{high:.3f})" for score, low, high in ends]


def _difference(margin: Margin) -> str:
    if margin.low is None or margin.high is None:
        return f"{margin.behind:.3f} +- {margin.error:.3f}"
    return f"{margin.behind:.3f} ({margin.low:.3f} to {margin.high:.3f})"


def _mean(curve: PrefixCurve) -> float:
    return sum(curve.score) / len(curve.score)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
