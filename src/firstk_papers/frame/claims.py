"""A claim: a statement of a paper, or ours, as a measure with a threshold; and its outcome, held or not.

Some outcomes depend on the run: the value lies so near to the threshold that another seed, or another processor's
last bits, decides. Such a claim is recorded with the spread that was seen over named runs instead of an outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from firstk.exceptions import InvalidInputError
from firstk_papers.frame.checks import is_number
from firstk_papers.frame.types import JsonDict

Measure: TypeAlias = float | int | bool | None
SOURCES = {"paper": "the paper", "ours": "ours", "acceptance": "asked of this reproduction"}
# Each rule in words, and as a function of the measured value and its bounds.
_RULES: dict[str, tuple[str, Callable[[float, Sequence[float]], bool]]] = {
    "at_least": ("at least {:g}", lambda value, bounds: value >= bounds[0]),
    "at_most": ("at most {:g}", lambda value, bounds: value <= bounds[0]),
    "above": ("above {:g}", lambda value, bounds: value > bounds[0]),
    "below": ("below {:g}", lambda value, bounds: value < bounds[0]),
    "between": ("from {:g} to {:g}", lambda value, bounds: bounds[0] <= value <= bounds[1]),
    "is": ("{}", lambda value, bounds: value is bounds[0]),
}
WIDENED = 0.5  # of a recorded spread, on each side: how far another run may lie outside before it counts as a change
WORDS = {True: "held", False: "did not hold", None: "not measured"}


@dataclass(frozen=True)
class Claim:
    """One line of an expected file.

    Attributes
    ----------
    id : str
        Unique in its experiment.
    where : str
        Where the paper states it.
    statement : str
    measure : str
        Name of the number among the findings.
    threshold : dict
        One rule: at_least, at_most, above, below (a number), between (two numbers) or is (a truth).
    says : {"paper", "ours", "acceptance"}
        Whose claim it is.
    expect : dict
        The outcome that was seen, by tier: True, False, or where it depends on the run
        ``{"depends": [lowest, highest], "runs": "3 kernels x 3 seeds"}``; a tier that is not named was not measured.
    reading : str
        Our own comment on it.
    """

    id: str
    where: str
    statement: str
    measure: str
    threshold: JsonDict
    says: str = "paper"
    expect: JsonDict | None = None
    reading: str = ""

    def __post_init__(self) -> None:
        if len(self.threshold) != 1 or next(iter(self.threshold)) not in _RULES:
            raise InvalidInputError(
                f"Claim '{self.id}': a threshold is one of {', '.join(_RULES)}. Got {self.threshold!r}."
            )
        if self.says not in SOURCES:
            raise InvalidInputError(f"Claim '{self.id}': 'says' is one of {', '.join(SOURCES)}. Got {self.says!r}.")
        for recorded in (self.expect or {}).values():
            if recorded is not None and not isinstance(recorded, bool):
                self._check_spread(recorded)

    @property
    def _rule(self) -> tuple[str, list[float]]:
        """The name of the threshold's rule, and its bounds."""
        ((rule, bounds),) = self.threshold.items()
        return rule, bounds if isinstance(bounds, list) else [bounds]

    def _check_spread(self, recorded: object) -> None:
        """Check a recorded spread; one that lies on one side of the threshold has an outcome, and is an error."""
        rule, bounds = self._rule
        if not isinstance(recorded, dict) or set(recorded) != {"depends", "runs"} or not recorded["runs"]:
            wanted = "true, false or {depends: [lowest, highest], runs: ...}, which says over which runs"
            raise InvalidInputError(f"Claim '{self.id}': an outcome is {wanted}. Got {recorded!r}.")
        if rule == "is":
            raise InvalidInputError(f"Claim '{self.id}': a truth has no spread; measure a number. Got {recorded!r}.")
        ends = recorded["depends"]
        if not isinstance(ends, list) or len(ends) != 2 or not all(map(is_number, ends)) or ends[0] >= ends[1]:
            raise InvalidInputError(f"Claim '{self.id}': a spread is two numbers, the lower first. Got {ends!r}.")
        low, high = widened(ends)
        if not any(low <= end <= high for end in bounds):
            raise InvalidInputError(
                f"Claim '{self.id}': the spread {ends[0]:g} to {ends[1]:g} never crosses the threshold "
                f"({self.threshold_text}), even widened: record true or false."
            )

    @property
    def threshold_text(self) -> str:
        """The threshold in words."""
        rule, bounds = self._rule
        return _RULES[rule][0].format(*(str(b).lower() if isinstance(b, bool) else b for b in bounds))

    def evaluate(self, measures: Mapping[str, Measure]) -> tuple[Measure, bool | None]:
        """Return what was measured and whether the claim held; None where this tier does not measure it."""
        if self.measure not in measures:
            raise InvalidInputError(
                f"Claim '{self.id}' asks for the measure '{self.measure}', which its study does not give. It gives: "
                f"{', '.join(measures)}."
            )
        value = measures[self.measure]
        if value is None:
            return None, None
        rule, bounds = self._rule
        if not isinstance(value, bool) and not is_number(value):
            raise InvalidInputError(f"Claim '{self.id}': a measure is a finite number, a truth or None. Got {value!r}.")
        return value, bool(_RULES[rule][1](value, bounds))

    def result(self, paper: str, measures: Mapping[str, Measure], tier: str) -> ClaimResult:
        """Evaluate the claim by the measures of a study in a tier."""
        measured, held = self.evaluate(measures)
        return ClaimResult(
            id=self.id,
            paper=paper,
            where=self.where,
            statement=self.statement,
            threshold=self.threshold_text,
            measured=measured,
            held=held,
            says=self.says,
            reading=self.reading,
            depends=self.depends(tier),
        )

    def depends(self, tier: str) -> str:
        """Return the recorded spread in words; empty where the outcome does not depend on the run."""
        recorded = (self.expect or {}).get(tier)
        if not isinstance(recorded, dict):
            return ""
        low, high = recorded["depends"]
        return f"{low:g} to {high:g} over {recorded['runs']}"

    def as_recorded(self, value: Measure, tier: str) -> str:
        """Compare a measured value with what is recorded for a tier.

        Returns
        -------
        str
            Empty where they agree, otherwise what is wrong. Where the outcome depends on the run, the value must lie
            in the recorded spread, widened by half of it on each side.
        """
        recorded, (_, held) = (self.expect or {}).get(tier), self.evaluate({self.measure: value})
        if not isinstance(recorded, dict):
            wrong = f"recorded as {WORDS[recorded]}, came out as {WORDS[held]} ({self.threshold_text})"
            return "" if held is recorded else f"'{self.id}' measured {value}: {wrong}."
        low, high = widened(recorded["depends"])
        if value is not None and low <= value <= high:
            return ""
        return (
            f"'{self.id}' measured {value}: recorded as {self.depends(tier)}, so from {low:g} to {high:g} is allowed."
        )


def widened(spread: list[float]) -> tuple[float, float]:
    """Return a spread with the margin that another run is allowed.

    Examples
    --------
    >>> widened([1.0, 2.0])
    (0.5, 2.5)
    """
    margin = WIDENED * (spread[1] - spread[0])
    return spread[0] - margin, spread[1] + margin


@dataclass(frozen=True)
class ClaimResult:
    """A claim with what was measured.

    `held` is the outcome of this run, None where the tier does not measure it; `depends` has the recorded spread in
    words where that outcome may be another one in the next run, and is empty otherwise.
    """

    id: str
    paper: str
    where: str
    statement: str
    threshold: str
    measured: Measure
    held: bool | None
    says: str
    reading: str
    depends: str = ""

    @property
    def outcome(self) -> bool | Literal["depends"] | None:
        """The outcome of the claim: held, not held, not measured, or that it depends on the run."""
        return "depends" if self.depends and self.held is not None else self.held
