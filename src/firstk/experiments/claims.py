"""A claim: a sentence of a paper, or ours, as a measure with a threshold; and its judgement: held or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from firstk._checks import InvalidInput, is_real

SOURCES = {"paper": "the paper", "ours": "ours", "acceptance": "asked of this reproduction"}
_RULES: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "at_least": ("at least {0:g}", lambda value, bound: value >= bound),
    "at_most": ("at most {0:g}", lambda value, bound: value <= bound),
    "above": ("above {0:g}", lambda value, bound: value > bound),
    "below": ("below {0:g}", lambda value, bound: value < bound),
    "between": ("from {0[0]:g} to {0[1]:g}", lambda value, ends: ends[0] <= value <= ends[1]),
    "is": ("{0}", lambda value, wanted: value is wanted),
}


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
    expect : dict of str to bool
        The outcome that was seen, by tier; a tier that is not named was not judged.
    reading : str
        Our own sentence about it.
    """

    id: str
    where: str
    statement: str
    measure: str
    threshold: dict[str, Any]
    says: str = "paper"
    expect: dict[str, bool] | None = None
    reading: str = ""

    def __post_init__(self) -> None:
        if len(self.threshold) != 1 or next(iter(self.threshold)) not in _RULES:
            raise InvalidInput(f"Claim '{self.id}': a threshold is one of {', '.join(_RULES)}. Got {self.threshold!r}.")
        if self.says not in SOURCES:
            raise InvalidInput(f"Claim '{self.id}': 'says' is one of {', '.join(SOURCES)}. Got {self.says!r}.")

    @property
    def threshold_text(self) -> str:
        """The threshold in words."""
        ((rule, bound),) = self.threshold.items()
        return _RULES[rule][0].format(bound if not isinstance(bound, bool) else str(bound).lower())

    def judge(self, measures: Mapping[str, Any]) -> tuple[Any, bool | None]:
        """Return what was measured and whether the claim held; None where this tier does not measure it."""
        if self.measure not in measures:
            raise InvalidInput(
                f"Claim '{self.id}' asks for the measure '{self.measure}', which its study does not give. It gives: "
                f"{', '.join(measures)}."
            )
        value = measures[self.measure]
        if value is None:
            return None, None
        ((rule, bound),) = self.threshold.items()
        if not isinstance(value, bool) and not is_real(value):
            raise InvalidInput(f"Claim '{self.id}': a measure is a finite number, a truth or None. Got {value!r}.")
        return value, bool(_RULES[rule][1](value, bound))


@dataclass(frozen=True)
class Verdict:
    """A claim with what was measured; `held` is None where the tier does not judge it."""

    id: str
    paper: str
    where: str
    statement: str
    threshold: str
    measured: float | int | bool | None
    held: bool | None
    says: str
    reading: str


def judged(claim: Claim, paper: str, measures: Mapping[str, Any]) -> Verdict:
    """Judge a claim by the measures of a study."""
    value, held = claim.judge(measures)
    return Verdict(
        claim.id, paper, claim.where, claim.statement, claim.threshold_text, value, held, claim.says, claim.reading
    )
