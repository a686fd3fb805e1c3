"""Quality of a code against the number of coordinates kept, as a record that reads and writes JSON.

A curve that was computed once can be compared and searched anywhere, without the encoder, the data, torch or
scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_int
from firstk._base.json_records import Count, JsonRecord, Lengths, Name, check_fields
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import REFERENCES, SHARES, Evidence, Point
from firstk.quality.paired import ROUNDING


def slack(score: float) -> float:
    """Return the difference to a score that rounding may make; a target is reached, and a tie a tie, up to this."""
    return ROUNDING * abs(score)


@dataclass(frozen=True, repr=False)
class PrefixCurve(JsonRecord):
    """Quality of a code against the number of coordinates that are kept.

    Parameters
    ----------
    k : sequence of int
        Prefix lengths, strictly increasing.
    score : sequence of float
        The score at each of them.
    metric : str
        What the score is, for example "explained variance".
    input_score : float, optional
        The same metric of the raw vectors, which the code was made from.
    label : str
        The name of the curve in a table or plot.
    higher_is_better : bool
        False for losses.
    n_evaluated : int, optional
        How many rows, queries or pairs the score is a mean of.
    details : mapping
        Anything else that JSON can hold: how the score was taken, and on what.
    low, high : sequence of float, optional
        Ends of the interval of each score, where intervals were asked for.
    confidence : float in (0, 1), optional
        Of these intervals.
    supported : sequence of int, optional
        Prefix lengths at which the order of the coordinates is fixed, of which alone `smallest` recommends one. Between
        them coordinates may mix, and past the last of them nothing was trained. None: every length.

    Examples
    --------
    >>> curve = PrefixCurve(k=[1, 2, 4, 8], score=[0.4, 0.7, 0.89, 0.9], metric="accuracy", input_score=0.92)
    >>> curve.smallest(keep=0.95)
    4
    >>> curve.at(2)
    0.7
    >>> curve
    PrefixCurve(accuracy at 4 prefixes, k = 1 to 8: 0.4 to 0.9, input 0.92)
    >>> print(curve)
    accuracy
      k   score
      1  0.4000
      2  0.7000
      4  0.8900
      8  0.9000
    input: 0.9200
    """

    FORMAT = "firstk.PrefixCurve/1"

    k: Lengths
    score: tuple[float, ...]
    metric: Name
    input_score: float | None = None
    label: str = ""
    higher_is_better: bool = True
    n_evaluated: Count | None = None
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    confidence: float | None = None
    supported: Lengths | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.k) != len(self.score):
            raise InvalidInputError(
                f"PrefixCurve needs one score for each k. Got {len(self.k)} prefix lengths and {len(self.score)} "
                "scores."
            )
        ends = (self.low, self.high, self.confidence)
        if ends == (None, None, None):
            return
        if self.low is None or self.high is None or self.confidence is None:
            raise InvalidInputError("PrefixCurve takes 'low', 'high' and 'confidence' together, or none of them.")
        paired = len(self.low) == len(self.high) == len(self.k)
        if not paired or any(low > high for low, high in zip(self.low, self.high, strict=True)):
            raise InvalidInputError(
                f"PrefixCurve needs an interval for each of {len(self.k)} prefix lengths, with 'low' up to 'high'."
            )
        if not 0 < self.confidence < 1:
            raise bad_parameter("confidence", "PrefixCurve", "a number between 0 and 1", self.confidence)

    @property
    def recommendable(self) -> tuple[int, ...]:
        """Evaluated prefix lengths that `smallest` may return: those that are supported."""
        return self.k if self.supported is None else tuple(sorted(set(self.k) & set(self.supported)))

    @property
    def full_k(self) -> int:
        """Full length: the longest that is supported; the largest k where none of those evaluated is."""
        return self.recommendable[-1] if self.recommendable else self.k[-1]

    @property
    def full(self) -> float:
        """Score at the full length, `full_k`."""
        return self.at(self.full_k)

    def at(self, k: int) -> float:
        """Score at prefix length `k`, which must be one of those that were evaluated."""
        if not is_int(k) or k not in self.k:
            allowed = f"one of the evaluated prefix lengths {_shortened(self.k)}"
            raise bad_parameter("k", "PrefixCurve.at", allowed, k)
        return self.score[self.k.index(k)]

    @property
    def best_k(self) -> int:
        """The recommendable prefix length with the best score; the shortest of those that tie."""
        sign = 1 if self.higher_is_better else -1
        ks = self.recommendable or self.k
        most = max(sign * self.at(k) for k in ks)
        return next(k for k in ks if sign * self.at(k) >= most - slack(most))

    def smallest(self, keep: float = 0.99, relative_to: str = "auto") -> int:
        """Smallest supported k from which on the score keeps a share: of the raw vectors' score where it is known.

        This is the rule of `Evaluation.choose`, in one precision: every longer prefix has to keep the share as well, up
        to the longest that is not clearly worse than the best one (its interval reaches the best score; without
        intervals, the best one itself). So one lucky score of a noisy curve is not recommended, and coordinates that do
        harm at the end do not hide a good prefix.

        Parameters
        ----------
        keep : float in (0, 1]
            The share to keep. Of a loss (lower is better) the score may be 1 / keep times as large.
        relative_to : {"auto", "input", "best", "full"}
            "input": `input_score`, that of the raw vectors. "best": the score at `best_k`. "full": that at `full_k`.
            "auto": "input" where it is known and positive, otherwise "best".

        Returns
        -------
        k : int
            One of `recommendable`.

        Raises
        ------
        InvalidInputError
            If a share means nothing, because the score to keep is not positive; if no supported length was evaluated;
            or if no k reaches the target, with the best that is reached.
        """
        owner = "PrefixCurve.smallest"
        keep = check_fraction(keep, "keep", owner, open_left=True)
        check_choice(relative_to, REFERENCES, "relative_to", owner)
        if not self.recommendable:
            raise InvalidInputError(
                f"{owner} recommends lengths at which the order of this code is fixed: "
                f"{_shortened(self.supported or ())}. The curve has k = {_shortened(self.k)}; evaluate some of those."
            )
        if relative_to == "auto":  # a share of nothing means nothing
            relative_to = "best" if self.input_score is None or self.input_score <= 0 else "input"
        if relative_to == "input" and self.input_score is None:
            raise InvalidInputError(
                f"{owner} with relative_to='input' needs the score of the raw vectors, and this curve has no "
                "input_score. Use relative_to='best', or evaluate the raw vectors too."
            )
        d, longest, best = self.k[-1], self.full_k, self.at(self.best_k)
        whole, name = {
            "input": (self.input_score or 0.0, "the raw vectors"),
            "best": (best, f"the best prefix (k = {self.best_k})"),
            "full": (self.full, f"all {d} coordinates" if longest == d else f"the first {longest} of {d} coordinates"),
        }[relative_to]
        if whole <= 0:
            raise InvalidInputError(
                f"{owner} keeps a share of a positive score. The {self.metric} of {name} is {whole:g}, "
                "of which a share means nothing; read the scores off the curve instead: list(curve)."
            )

        def share(score: Any) -> Any:  # of a loss, the share is turned over
            return score / whole if self.higher_is_better else whole / np.maximum(score, ROUNDING * whole)

        ks, ends = self.recommendable, self.high if self.higher_is_better else self.low
        points = tuple(Point(k, "float32", 4 * k, self.at(k)) for k in ks)
        shares = share(np.array([point.score for point in points]))
        reach = shares if ends is None else share(np.array([ends[self.k.index(k)] for k in ks]))
        found = Evidence(points, shares, np.empty((0, len(ks))), reach=reach - shares)
        kept = np.flatnonzero(found.stable(shares) >= keep - ROUNDING)
        if not len(kept):
            raise InvalidInputError(
                f"No prefix keeps {keep:g} of the {self.metric} of {name}, {whole:g}. The best is {best:g} at k = "
                f"{self.best_k}: it keeps {share(best):.4g}. Lower 'keep', or fit more components."
            )
        return ks[kept[0]]

    def smallest_lengths(self, relative_to: str = "auto") -> dict[float, int | None]:
        """Smallest k for each of the shares 0.9, 0.95 and 0.99; None where none reaches it, or it means nothing."""
        found: dict[float, int | None] = {}
        for keep in SHARES:
            try:
                found[keep] = self.smallest(keep, relative_to)
            except InvalidInputError:  # out of reach, or a share of nothing
                found[keep] = None
        return found

    def cut(self, d: int) -> PrefixCurve | None:
        """Return the curve up to prefix length `d`: that of an encoder that was cut there; None if it begins later.

        Of a code that is cut before its first supported length, only the full width is supported.
        """
        n = sum(k <= d for k in self.k)
        if not n:
            return None
        parts = {"k": self.k, "score": self.score, "low": self.low, "high": self.high}
        kept = {name: None if part is None else part[:n] for name, part in parts.items()}
        supported = None if self.supported is None else tuple(k for k in self.supported if k <= d) or (d,)
        return replace(self, **kept, supported=supported)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.k)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return iter(zip(self.k, self.score, strict=True))

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Any]], PrefixCurve], tuple[dict[str, Any]]]:
        # The read-only view of details cannot be pickled; the plain fields can.
        return type(self).from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        name = f"{self.label!r}, " if self.label else ""
        given = "" if self.input_score is None else f", input {self.input_score:.4g}"
        return (
            f"PrefixCurve({name}{self.metric} at {len(self)} prefixes, k = {self.k[0]} to {self.k[-1]}: "
            f"{self.score[0]:.4g} to {self.score[-1]:.4g}{given})"
        )

    def __str__(self) -> str:
        width, ends = max(3, len(str(self.k[-1]))), [""] * len(self)
        if self.low is not None and self.high is not None:
            ends = [f"  {low:.4f} to {high:.4f}" for low, high in zip(self.low, self.high, strict=True)]
        heading = "" if self.confidence is None else f"   {self.confidence:.3g} interval"
        rows = [": ".join(part for part in (self.label, self.metric) if part), f"{'k':>{width}}   score{heading}"]
        shown = shown_lengths(self.k)
        rows += [f"{k:>{width}}  {score:.4f}{end}" for (k, score), end in zip(self, ends, strict=True) if k in shown]
        return "\n".join(rows if self.input_score is None else [*rows, f"input: {self.input_score:.4f}"])


def shown_lengths(ks: tuple[int, ...]) -> set[int]:
    """Pick the rows of a short table: all if they are few, else powers of two and the ends."""
    if len(ks) <= 12:
        return set(ks)
    return {k for k in ks if k & (k - 1) == 0} | {ks[0], ks[-1]}


def _shortened(ks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ks)) if len(ks) <= 12 else f"{', '.join(map(str, ks[:10]))}, ..., {ks[-1]}"
