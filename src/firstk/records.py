"""Records of results: frozen dataclasses that read and write JSON.

A curve that was computed once can be plotted, compared and searched anywhere, without the encoder, the
data, torch or scikit-learn. What cannot be read back exactly is refused when it is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from firstk._checks import (
    InvalidInput,
    bad_parameter,
    check_choice,
    check_fraction,
    is_int,
    is_real,
    require,
)

FORMAT = "firstk.PrefixCurve/1"


@dataclass(frozen=True, repr=False)
class PrefixCurve:
    """Quality of a code against the number of coordinates that are kept.

    Parameters
    ----------
    k : sequence of int
        Prefix lengths, strictly increasing. The largest is the full width.
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

    k: tuple[int, ...]
    score: tuple[float, ...]
    metric: str
    input_score: float | None = None
    label: str = ""
    higher_is_better: bool = True
    n_evaluated: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        checked = {
            "k": _lengths(self.k),
            "score": _numbers(self.score),
            "metric": _text(self.metric, "metric"),
            "input_score": None if self.input_score is None else _number(self.input_score, "input_score"),
            "label": _text(self.label, "label"),
            "higher_is_better": _flag(self.higher_is_better, "higher_is_better"),
            "n_evaluated": _count(self.n_evaluated, "n_evaluated"),
            "details": _frozen(_mapping(self.details), "details"),
        }
        if len(checked["k"]) != len(checked["score"]):
            raise InvalidInput(
                f"PrefixCurve needs one score for each k. Got {len(checked['k'])} prefix lengths and "
                f"{len(checked['score'])} scores."
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def full(self) -> float:
        """Score at the full width, the largest k."""
        return self.score[-1]

    def at(self, k: int) -> float:
        """Score at prefix length `k`, which must be one of those that were evaluated."""
        if not is_int(k) or k not in self.k:
            allowed = f"one of the evaluated prefix lengths {_shortened(self.k)}"
            raise bad_parameter("k", "PrefixCurve.at", allowed, k)
        return self.score[self.k.index(k)]

    def smallest(self, keep: float = 0.99, relative_to: str = "full") -> int:
        """Smallest k whose score keeps a share of the full score, or of the score of the raw vectors.

        Parameters
        ----------
        keep : float in (0, 1]
            The share to keep. Of a loss (lower is better) the score may be 1 / keep times as large.
        relative_to : {"full", "input"}
            "full": the score at the largest k. "input": `input_score`, that of the raw vectors.

        Returns
        -------
        k : int
            The first k that reaches the target. A curve that is not monotone may fall below it again later.

        Raises
        ------
        InvalidInput
            If a share means nothing, because the score to keep is not positive; or if no k reaches the
            target, with the best that is reached.
        """
        owner = "PrefixCurve.smallest"
        keep = check_fraction(keep, "keep", owner, open_left=True)
        check_choice(relative_to, ("full", "input"), "relative_to", owner)
        whole = self.full if relative_to == "full" else self._input()
        if whole <= 0:
            raise InvalidInput(
                f"{owner} keeps a share of a positive score. The {relative_to} {self.metric} is {whole:g}, "
                "of which a share means nothing; read the scores off the curve instead: list(curve)."
            )
        target = keep * whole if self.higher_is_better else whole / keep
        for k, score in self:
            if score >= target if self.higher_is_better else score <= target:
                return k
        raise self._out_of_reach(keep, whole)

    def _input(self) -> float:
        if self.input_score is None:
            raise InvalidInput(
                "PrefixCurve.smallest with relative_to='input' needs the score of the raw vectors, and this "
                "curve has no input_score. Use relative_to='full', or evaluate the raw vectors too."
            )
        return self.input_score

    def _out_of_reach(self, keep: float, whole: float) -> InvalidInput:
        best = max(self.score) if self.higher_is_better else min(self.score)
        k = self.k[self.score.index(best)]
        share = best / whole if self.higher_is_better else whole / best
        return InvalidInput(
            f"No prefix keeps {keep:g} of the input {self.metric} {whole:g}. Best is {best:g} at k = {k}: "
            f"it keeps {share:.4g}. Lower 'keep', use relative_to='full', or fit more components."
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the curve, and the score of the raw vectors as a dashed line.

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
        if self.input_score is not None:
            ax.axhline(self.input_score, linestyle="--", linewidth=1, color=line.get_color())
        if self.k[-1] > 16:
            # Codes are cut at powers of two far more often than at equal steps.
            ax.set_xscale("log", base=2)
        ax.set_xlabel("k, coordinates kept")
        ax.set_ylabel(self.metric)
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Fields as plain Python objects, all of which JSON can hold."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    def to_json(self) -> str:
        """Write as JSON text, from which `from_json` makes an equal curve."""
        return json.dumps({"format": FORMAT, **self.to_dict()}, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrefixCurve:
        """Make a curve from the fields that `to_dict` gives: all of them, and no others."""
        names = [f.name for f in fields(cls)]
        missing = [name for name in names if name not in values]
        unknown = [str(name) for name in values if name not in names]
        if missing or unknown:
            raise InvalidInput(
                f"A PrefixCurve has the fields {', '.join(names)}. Missing: {', '.join(missing) or 'none'}; "
                f"unknown: {', '.join(unknown) or 'none'}. Write it with PrefixCurve.to_json."
            )
        return cls(**values)

    @classmethod
    def from_json(cls, text: str) -> PrefixCurve:
        """Read what `to_json` wrote; anything else is refused with a sentence."""
        try:
            values = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repetition)
        except json.JSONDecodeError as error:
            raise InvalidInput(
                f"PrefixCurve.from_json takes JSON text; this is none ({error}). Read a file with "
                "path.read_text() first."
            ) from None
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise InvalidInput(
                f"PrefixCurve.from_json takes an object of format '{FORMAT}'. This is another record, "
                "or of another version of firstk: write it again with PrefixCurve.to_json."
            )
        return cls.from_dict(values)

    def __len__(self) -> int:
        return len(self.k)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return iter(zip(self.k, self.score, strict=True))

    def __reduce__(self) -> Any:
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
        title = ": ".join(part for part in (self.label, self.metric) if part)
        width = max(3, len(str(self.k[-1])))
        rows = [f"{'k':>{width}}   score"]
        rows += [f"{k:>{width}}  {score:.4f}" for k, score in self if k in shown_lengths(self.k)]
        given = [] if self.input_score is None else [f"input: {self.input_score:.4f}"]
        return "\n".join([title, *rows, *given])


def shown_lengths(ks: tuple[int, ...]) -> set[int]:
    """Pick the rows of a short table: all if they are few, else powers of two and the ends."""
    if len(ks) <= 12:
        return set(ks)
    return {k for k in ks if k & (k - 1) == 0} | {ks[0], ks[-1]}


def _shortened(ks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ks)) if len(ks) <= 12 else f"{', '.join(map(str, ks[:10]))}, ..., {ks[-1]}"


def _wrong(name: str, allowed: str, got: Any) -> InvalidInput:
    return bad_parameter(name, "PrefixCurve", allowed, got)


def _items(values: Any, name: str, allowed: str) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise _wrong(name, allowed, values)
    return list(values)


def _lengths(values: Any) -> tuple[int, ...]:
    allowed = "strictly increasing ints from 1 on, at least one"
    ks = _items(values, "k", allowed)
    if not ks or not all(is_int(k) for k in ks) or ks[0] < 1:
        raise _wrong("k", allowed, values)
    if any(b <= a for a, b in pairwise(ks)):
        raise _wrong("k", allowed, values)
    return tuple(int(k) for k in ks)


def _numbers(values: Any) -> tuple[float, ...]:
    scores = _items(values, "score", "finite numbers, one for each k")
    return tuple(_number(value, "score") for value in scores)


def _number(value: Any, name: str) -> float:
    # An int beyond the range of floats is finite to Python and is no score.
    if not is_real(value if not is_int(value) or abs(value) < 2**1023 else float("inf")):
        raise _wrong(name, "finite numbers" if name == "score" else "a finite number or None", value)
    return float(value)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or (name == "metric" and not value):
        raise _wrong(name, "a str" if name == "label" else "a str that is not empty", value)
    return value


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, "True or False", value)
    return value


def _count(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if not is_int(value) or value < 1:
        raise _wrong(name, "an int of at least 1, or None", value)
    return int(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong("details", "a mapping from names to what JSON can hold", value)
    return value


def _frozen(value: Any, where: str) -> Any:
    """Copy a JSON value into read-only form, with Python's own numbers."""
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise _wrong(where, "a mapping whose names are str", value)
        return MappingProxyType({name: _frozen(item, f"{where}[{name!r}]") for name, item in value.items()})
    if hasattr(value, "tolist"):
        value = value.tolist()  # numpy arrays and scalars
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item, f"{where}[{i}]") for i, item in enumerate(value))
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and is_real(value)):
        return value
    raise _wrong(where, "str, bool, int, finite float, None, or lists and mappings of them", value)


def _plain(value: Any) -> Any:
    """Copy what `_frozen` made into lists and dicts."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _no_constant(name: str) -> Any:
    raise InvalidInput(f"A PrefixCurve holds finite numbers only; this JSON text has {name}. Drop that prefix length.")


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"PrefixCurve.from_json takes every field once; {', '.join(twice)} is repeated.")
    return dict(pairs)
