"""A claim: a statement of a paper, or ours, as a measure with a threshold; and its outcome: held or not.

Some outcomes depend on the run: the value lies so near to the threshold that another seed, or another processor's
last bits, decides. Such a claim is recorded with the spread that was seen over named runs instead of an outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from firstk._base.checks import is_real
from firstk.exceptions import InvalidInputError

SOURCES = {"paper": "the paper", "ours": "ours", "acceptance": "asked of this reproduction"}
_RULES: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "at_least": ("at least {0:g}", lambda value, bound: value >= bound),
    "at_most": ("at most {0:g}", lambda value, bound: value <= bound),
    "above": ("above {0:g}", lambda value, bound: value > bound),
    "below": ("below {0:g}", lambda value, bound: value < bound),
    "between": ("from {0[0]:g} to {0[1]:g}", lambda value, ends: ends[0] <= value <= ends[1]),
    "is": ("{0}", lambda value, wanted: value is wanted),
}
WIDENED = 0.5  # of a recorded spread, on each side: how far another run may lie outside before it counts as a change
WORDS = {True: "held", False: "did not hold", None: "not judged"}


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
        ``{"depends": [lowest, highest], "runs": "3 kernels x 3 seeds"}``; a tier that is not named was not judged.
    reading : str
        Our own sentence about it.
    """

    id: str
    where: str
    statement: str
    measure: str
    threshold: dict[str, Any]
    says: str = "paper"
    expect: dict[str, Any] | None = None
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

    def _check_spread(self, recorded: Any) -> None:
        """Refuse a spread that could not be checked, or that lies on one side of the threshold: that has an outcome."""
        ((rule, bound),) = self.threshold.items()
        if not isinstance(recorded, dict) or set(recorded) != {"depends", "runs"} or not recorded["runs"]:
            wanted = "true, false or {depends: [lowest, highest], runs: ...}, which says over which runs"
            raise InvalidInputError(f"Claim '{self.id}': an outcome is {wanted}. Got {recorded!r}.")
        if rule == "is":
            raise InvalidInputError(f"Claim '{self.id}': a truth has no spread; measure a number. Got {recorded!r}.")
        ends = recorded["depends"]
        if not isinstance(ends, list) or len(ends) != 2 or not all(map(is_real, ends)) or ends[0] >= ends[1]:
            raise InvalidInputError(f"Claim '{self.id}': a spread is two numbers, the lower first. Got {ends!r}.")
        low, high = widened(ends)
        if not any(low <= end <= high for end in (bound if rule == "between" else [bound])):
            raise InvalidInputError(
                f"Claim '{self.id}': the spread {ends[0]:g} to {ends[1]:g} never crosses the threshold "
                f"({self.threshold_text}), even widened: record true or false."
            )

    @property
    def threshold_text(self) -> str:
        """The threshold in words."""
        ((rule, bound),) = self.threshold.items()
        return _RULES[rule][0].format(bound if not isinstance(bound, bool) else str(bound).lower())

    def judge(self, measures: Mapping[str, Any]) -> tuple[Any, bool | None]:
        """Return what was measured and whether the claim held; None where this tier does not measure it."""
        if self.measure not in measures:
            raise InvalidInputError(
                f"Claim '{self.id}' asks for the measure '{self.measure}', which its study does not give. It gives: "
                f"{', '.join(measures)}."
            )
        value = measures[self.measure]
        if value is None:
            return None, None
        ((rule, bound),) = self.threshold.items()
        if not isinstance(value, bool) and not is_real(value):
            raise InvalidInputError(f"Claim '{self.id}': a measure is a finite number, a truth or None. Got {value!r}.")
        return value, bool(_RULES[rule][1](value, bound))

    def depends(self, tier: str) -> str:
        """Return the recorded spread in words; empty where the outcome does not depend on the run."""
        recorded = (self.expect or {}).get(tier)
        if not isinstance(recorded, dict):
            return ""
        low, high = recorded["depends"]
        return f"{low:g} to {high:g} over {recorded['runs']}"

    def as_recorded(self, value: Any, tier: str) -> str:
        """Compare a measured value with what is recorded for a tier.

        Returns
        -------
        str
            Empty where they agree, otherwise what is wrong. Where the outcome depends on the run, the value must lie
            in the recorded spread, widened by half of it on each side.
        """
        recorded, (_, held) = (self.expect or {}).get(tier), self.judge({self.measure: value})
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
    """Return a spread with the room that another run is given.

    Examples
    --------
    >>> widened([1.0, 2.0])
    (0.5, 2.5)
    """
    room = WIDENED * (spread[1] - spread[0])
    return spread[0] - room, spread[1] + room


@dataclass(frozen=True)
class Verdict:
    """A claim with what was measured.

    `held` is the outcome of this run, None where the tier does not judge it; `depends` has the recorded spread in
    words where that outcome may be another one in the next run, and is empty otherwise.
    """

    id: str
    paper: str
    where: str
    statement: str
    threshold: str
    measured: float | int | bool | None
    held: bool | None
    says: str
    reading: str
    depends: str = ""

    @property
    def outcome(self) -> bool | Literal["depends"] | None:
        """What may be said of the claim: held, not held, not measured, or that it depends on the run."""
        return "depends" if self.depends and self.held is not None else self.held


def judged(claim: Claim, paper: str, measures: Mapping[str, Any], tier: str) -> Verdict:
    """Evaluate a claim by the measures of a study in a tier."""
    value, held = claim.judge(measures)
    return Verdict(
        id=claim.id,
        paper=paper,
        where=claim.where,
        statement=claim.statement,
        threshold=claim.threshold_text,
        measured=value,
        held=held,
        says=claim.says,
        reading=claim.reading,
        depends=claim.depends(tier),
    )
