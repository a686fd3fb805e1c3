"""Quality of a code against the number of coordinates kept, as a record that reads and writes JSON.

A curve that was computed once can be plotted, compared and searched anywhere, without the encoder, the data, torch or
scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_int, require
from firstk._base.json_records import Count, JsonRecord, Lengths, Name, check_fields
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import REFERENCES, SHARES, Point
from firstk.quality.choose import Evidence
from firstk.quality.paired import ROUNDING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        _check_intervals(self.low, self.high, self.confidence, len(self.k))

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
        whole, name = self._whole(relative_to)
        if whole <= 0:
            raise InvalidInputError(
                f"{owner} keeps a share of a positive score. The {self.metric} of {name} is {whole:g}, "
                "of which a share means nothing; read the scores off the curve instead: list(curve)."
            )
        found = self._evidence(whole)
        kept = np.flatnonzero(found.stable(found.shares) >= keep - ROUNDING)
        if not len(kept):
            raise self._out_of_reach(keep, whole, name)
        return self.recommendable[kept[0]]

    def _evidence(self, whole: float) -> Evidence:
        """Return the shares of a score that the recommendable lengths keep; of a loss, the share is turned over."""
        ks = self.recommendable
        scores = np.array([self.at(k) for k in ks])
        points = tuple(Point(k, "float32", 4 * k, score) for k, score in zip(ks, scores.tolist(), strict=True))
        ends = self.high if self.higher_is_better else self.low
        best = scores if ends is None else np.array([ends[self.k.index(k)] for k in ks])

        def share(values: np.ndarray) -> np.ndarray:
            return values / whole if self.higher_is_better else whole / np.maximum(values, ROUNDING * whole)

        shares = share(scores)
        return Evidence(points, shares, np.empty((0, len(ks))), reach=share(best) - shares)

    def smallest_lengths(self, relative_to: str = "auto") -> dict[float, int | None]:
        """Smallest k for each of the shares 0.9, 0.95 and 0.99; None where none reaches it, or it means nothing."""
        return {share: self._smallest_or_none(share, relative_to) for share in SHARES}

    def _smallest_or_none(self, keep: float, relative_to: str) -> int | None:
        try:
            return self.smallest(keep, relative_to)
        except InvalidInputError:  # out of reach, or a share of nothing
            return None

    def _whole(self, relative_to: str) -> tuple[float, str]:
        """Return the score of which shares are taken, and whose score it is."""
        if relative_to == "auto":  # a share of nothing means nothing
            relative_to = "best" if self.input_score is None or self.input_score <= 0 else "input"
        if relative_to == "best":
            return self.at(self.best_k), f"the best prefix (k = {self.best_k})"
        if relative_to == "full":
            return self.full, full_name(self)
        if self.input_score is None:
            raise InvalidInputError(
                "PrefixCurve.smallest with relative_to='input' needs the score of the raw vectors, and this "
                "curve has no input_score. Use relative_to='best', or evaluate the raw vectors too."
            )
        return self.input_score, "the raw vectors"

    def _out_of_reach(self, keep: float, whole: float, name: str) -> InvalidInputError:
        best = self.at(self.best_k)
        share = best / whole if self.higher_is_better else whole / best
        return InvalidInputError(
            f"No prefix keeps {keep:g} of the {self.metric} of {name}, {whole:g}. The best is {best:g} at k = "
            f"{self.best_k}: it keeps {share:.4g}. Lower 'keep', or fit more components."
        )

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

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Axes:
        """Draw the curve, its interval as a band, and the score of the raw vectors as a dashed line.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure if not given.
        **kwargs
            Passed on to ``ax.plot``.

        Returns
        -------
        ax : matplotlib axes
        """
        if ax is None:
            pyplot = require("matplotlib.pyplot", "report", "PrefixCurve.plot")
            ax = pyplot.subplots()[1]
        kwargs.setdefault("label", self.label or self.metric)
        (line,) = ax.plot(self.k, self.score, **kwargs)
        if self.low is not None and self.high is not None:
            ax.fill_between(self.k, self.low, self.high, color=line.get_color(), alpha=0.15, linewidth=0)
        if self.input_score is not None:
            name = f"{kwargs['label']}, raw vectors"
            ax.axhline(self.input_score, linestyle="--", linewidth=1, color=line.get_color(), label=name)
        if self.k[-1] > 16:
            # Codes are cut at powers of two far more often than at equal steps.
            ax.set_xscale("log", base=2)
        ax.set_xlabel("k, coordinates kept")
        ax.set_ylabel(self.metric)
        return ax

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

    def _interval(self, i: int) -> str:
        return "" if self.low is None or self.high is None else f"  {self.low[i]:.4f} to {self.high[i]:.4f}"

    def __str__(self) -> str:
        title = ": ".join(part for part in (self.label, self.metric) if part)
        width = max(3, len(str(self.k[-1])))
        heading = "" if self.confidence is None else f"   {self.confidence:.3g} interval"
        rows = [f"{'k':>{width}}   score{heading}"]
        shown = shown_lengths(self.k)
        rows += [f"{k:>{width}}  {score:.4f}{self._interval(i)}" for i, (k, score) in enumerate(self) if k in shown]
        given = [] if self.input_score is None else [f"input: {self.input_score:.4f}"]
        return "\n".join([title, *rows, *given])


def _check_intervals(
    low: tuple[float, ...] | None, high: tuple[float, ...] | None, confidence: float | None, n: int
) -> None:
    """Check the ends of intervals: all three fields, or none."""
    if low is None and high is None and confidence is None:
        return
    if low is None or high is None or confidence is None:
        raise InvalidInputError("PrefixCurve takes 'low', 'high' and 'confidence' together, or none of them.")
    if len(low) != n or len(high) != n or any(a > b for a, b in zip(low, high, strict=True)):
        raise InvalidInputError(
            f"PrefixCurve needs an interval for each of {n} prefix lengths, with 'low' up to 'high'."
        )
    if not 0 < confidence < 1:
        raise bad_parameter("confidence", "PrefixCurve", "a number between 0 and 1", confidence)


def full_name(curve: PrefixCurve) -> str:
    """Name the code whose score is shared out: all coordinates, or as many as the ordering's list covers."""
    d, longest = curve.k[-1], curve.full_k
    return f"all {d} coordinates" if longest == d else f"the first {longest} of {d} coordinates"


def shown_lengths(ks: tuple[int, ...]) -> set[int]:
    """Pick the rows of a short table: all if they are few, else powers of two and the ends."""
    if len(ks) <= 12:
        return set(ks)
    return {k for k in ks if k & (k - 1) == 0} | {ks[0], ks[-1]}


def _shortened(ks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ks)) if len(ks) <= 12 else f"{', '.join(map(str, ks[:10]))}, ..., {ks[-1]}"
