"""Operating points: scores and costs of prefix lengths in each precision, and the rule that chooses one.

The table is a record: it goes to JSON and back, and needs neither the encoder nor the data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_real
from firstk._base.json_records import Count, Name, NonNegative, check_fields, from_json, from_plain, to_plain
from firstk.data.precision import PRECISIONS
from firstk.encoder.curve import PrefixCurve, keeps, slack
from firstk.exceptions import InvalidInputError

FORMAT = "firstk.PrecisionTable/1"


@dataclass(frozen=True)
class OperatingPoint:
    """A prefix length with a precision: what one vector costs, and what the stored codes are worth.

    Attributes
    ----------
    k : int
    precision : str
        A name in `firstk.data.precision.PRECISIONS`.
    bytes : int
        Of one stored vector.
    score : float
    seconds : float, optional
        Of one exact search, where that was measured.
    """

    k: Count
    precision: str
    bytes: Count
    score: float
    seconds: NonNegative | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        check_choice(self.precision, PRECISIONS, "precision", "OperatingPoint")


@dataclass(frozen=True, repr=False)
class PrecisionTable:
    """Scores and costs of prefix lengths times precisions.

    Parameters
    ----------
    points : sequence of OperatingPoint
        At least one, no k twice in one precision.
    metric : str
        What the scores are.
    input_score : float, optional
        The same metric of the raw vectors.
    input_bytes : int, optional
        Bytes of a raw vector.
    label : str
        The name of the code.
    higher_is_better : bool
        False for losses.
    n_evaluated : int, optional
        How many rows, queries or pairs a score is a mean of.
    n_searched : int, optional
        How many stored rows an exact search goes through, where its time was measured.
    details : mapping
        Anything else that JSON can hold.

    Examples
    --------
    >>> rows = [(8, "float32", 32, 0.80), (8, "int8", 8, 0.79), (16, "int8", 16, 0.90)]
    >>> points = [OperatingPoint(*row) for row in rows]
    >>> table = PrecisionTable(points, "accuracy", input_score=0.91, input_bytes=256)
    >>> table.choose(keep=0.95, relative_to="input")
    OperatingPoint(k=16, precision='int8', bytes=16, score=0.9, seconds=None)
    >>> [(point.k, point.precision) for point in table.pareto_front]
    [(8, 'int8'), (16, 'int8')]
    >>> print(table)
    accuracy (bytes per vector)
       k      float32         int8
       8  0.8000 (32)   0.7900 (8)*
      16            -  0.9000 (16)*
    * no other is better for as few bytes
    input: 0.9100 (256)
    """

    points: tuple[OperatingPoint, ...] = field(metadata={"stored_as": "offers"})
    metric: Name
    input_score: float | None = None
    input_bytes: Count | None = None
    label: str = ""
    higher_is_better: bool = True
    n_evaluated: Count | None = None
    n_searched: Count | None = None
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.points or len({(point.k, point.precision) for point in self.points}) < len(self.points):
            allowed = "a sequence of OperatingPoint, at least one, no k twice in one precision"
            raise bad_parameter("points", "PrecisionTable", allowed, f"{len(self.points)} of them")
        order = list(PRECISIONS)
        points = sorted(self.points, key=lambda o: (order.index(o.precision), o.k))
        object.__setattr__(self, "points", tuple(points))

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions of the table, finest first."""
        return tuple(name for name in PRECISIONS if any(point.precision == name for point in self.points))

    @property
    def pareto_front(self) -> tuple[OperatingPoint, ...]:
        """The points that no other beats: as few bytes and a better score, or fewer bytes and as good a score."""
        best: list[OperatingPoint] = []
        for point in sorted(self.points, key=lambda o: (o.bytes, -self._merit(o), o.k)):
            if not best or self._merit(point) > self._merit(best[-1]) + slack(best[-1].score):
                best.append(point)
        return tuple(best)

    @property
    def full(self) -> OperatingPoint:
        """The longest code in the finest precision: what "full" in `choose` means."""
        return max(self.points, key=lambda o: (o.k, o.bytes))

    def curves(self) -> tuple[PrefixCurve, ...]:
        """Return the table as curves, one for each precision."""
        return tuple(
            PrefixCurve(
                k=tuple(point.k for point in self.points if point.precision == name),
                score=tuple(point.score for point in self.points if point.precision == name),
                metric=self.metric,
                input_score=self.input_score,
                label=", ".join(part for part in (self.label, name) if part),
                higher_is_better=self.higher_is_better,
                n_evaluated=self.n_evaluated,
            )
            for name in self.precisions
        )

    def choose(
        self,
        *,
        keep: float | None = None,
        relative_to: str = "full",
        bytes_per_vector: int | None = None,
        seconds: float | None = None,
        k: int | None = None,
        precision: str | Collection[str] | None = None,
    ) -> OperatingPoint:
        """Pick an point: of those within all limits, the cheapest where a share is to be kept, else the best.

        Parameters
        ----------
        keep : float in (0, 1], optional
            The share of the full score, or of that of the raw vectors, that must be kept.
        relative_to : {"full", "input"}
            Of which: as in `PrefixCurve.smallest`.
        bytes_per_vector : int, optional
            The most that a stored vector may take.
        seconds : float, optional
            The most that one exact search may take.
        k : int, optional
            This prefix length.
        precision : str or collection of str, optional
            This precision, or these.

        Raises
        ------
        InvalidInputError
            If no point is within the limits, with the nearest that there is.
        """
        owner = "PrecisionTable.choose"
        left = self._of(k, precision)
        for name, limit, cost in (("bytes_per_vector", bytes_per_vector, "bytes"), ("seconds", seconds, "seconds")):
            if limit is not None:
                left = self._within(left, name, limit, cost)
        if keep is None:
            most = max(self._merit(point) for point in left)
            return min((o for o in left if self._merit(o) >= most - slack(most)), key=lambda o: (o.bytes, o.k))
        keep = check_fraction(keep, "keep", owner, open_left=True)
        whole = self._whole(check_choice(relative_to, ("full", "input"), "relative_to", owner))
        good = [o for o in left if keeps(o.score, keep, whole, self.higher_is_better)]
        if not good:
            best = max(left, key=self._merit)
            raise InvalidInputError(
                f"No operating point within the limits keeps {keep:g} of the {relative_to} {self.metric} {whole:.4g}. "
                f"The best is {best.score:.4g}, k = {best.k} in {best.precision}. Lower 'keep', or allow more."
            )
        return min(good, key=lambda o: (o.bytes, -self._merit(o), o.k))

    def _merit(self, point: OperatingPoint) -> float:
        return point.score if self.higher_is_better else -point.score

    def _of(self, k: int | None, precision: str | Collection[str] | None) -> list[OperatingPoint]:
        names = PRECISIONS if precision is None else (precision,) if isinstance(precision, str) else precision
        left = [o for o in self.points if k in (None, o.k) and o.precision in names]
        if not left:
            there = sorted({o.k for o in self.points})
            raise InvalidInputError(
                f"The table has no {'code' if k is None else f'k = {k}'} in {' or '.join(names)}: it has k = "
                f"{', '.join(map(str, there))} in {', '.join(self.precisions)}."
            )
        return left

    def _within(self, points: list[OperatingPoint], name: str, limit: float, cost: str) -> list[OperatingPoint]:
        if not is_real(limit) or limit <= 0:
            raise bad_parameter(name, "PrecisionTable.choose", "a positive number", limit)
        costs = [getattr(point, cost) for point in points]
        if any(value is None for value in costs):
            raise InvalidInputError(f"This table has no {cost}: they were not measured. Make it with latency=True.")
        left = [point for point, value in zip(points, costs, strict=True) if value <= limit]
        if not left:
            asked, least = (
                f"{1e3 * c:.4g} ms a search" if cost == "seconds" else f"{c:g} bytes" for c in (limit, min(costs))
            )
            raise InvalidInputError(f"No operating point is within {asked}; the least is {least}. Allow more.")
        return left

    def _whole(self, relative_to: str) -> float:
        whole = self.full.score if relative_to == "full" else self.input_score
        if whole is None or whole <= 0:
            raise InvalidInputError(
                f"A share of the {relative_to} {self.metric} means nothing here: it is {whole}. "
                "Choose by 'bytes_per_vector' or 'seconds', or take a 'k'."
            )
        return whole

    def to_dict(self) -> dict[str, Any]:
        """Fields as plain Python objects, all of which JSON can hold."""
        return to_plain(self)

    def to_json(self) -> str:
        """Write as JSON text, from which `from_json` makes an equal table."""
        return json.dumps({"format": FORMAT, **self.to_dict()}, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrecisionTable:
        """Make a table from the fields that `to_dict` gives: all of them, and no others."""
        return from_plain(cls, values)

    @classmethod
    def from_json(cls, text: str) -> PrecisionTable:
        """Read what `to_json` wrote; anything else raises an error."""
        return from_json(cls, text, FORMAT)

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[OperatingPoint]:
        return iter(self.points)

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Any]], PrecisionTable], tuple[dict[str, Any]]]:
        # The read-only view of details cannot be pickled; the plain fields can.
        return type(self).from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        return f"PrecisionTable({self.metric}, {len(self)} points in {', '.join(self.precisions)})"

    def __str__(self) -> str:
        cells = {(o.k, o.precision): f"{o.score:.4f} ({o.bytes})" for o in self.points}
        width = max(len(name) for name in (*cells.values(), *self.precisions))
        stars = {(o.k, o.precision): "*" for o in self.pareto_front}
        places = [[(k, name) for name in self.precisions] for k in sorted({o.k for o in self.points})]
        rows = [f"{'k':>4}" + "".join(f"  {name:>{width}}" for name in self.precisions)]
        for row in places:
            texts = (f" {cells.get(place, '-'):>{width}}{stars.get(place, ' ')}" for place in row)
            rows.append(f"{row[0][0]:>4} {''.join(texts)}".rstrip())
        given = "" if self.input_bytes is None else f" ({self.input_bytes})"
        raw = [] if self.input_score is None else [f"input: {self.input_score:.4f}{given}"]
        title = ": ".join(part for part in (self.label, self.metric) if part)
        return "\n".join([f"{title} (bytes per vector)", *rows, "* no other is better for as few bytes", *raw])


@dataclass(frozen=True)
class Limits:
    """What an operating point is to be chosen by; nothing is chosen where all limits are None.

    Attributes
    ----------
    keep, relative_to, bytes_per_vector, seconds, k
        As in `PrecisionTable.choose`.
    precisions : tuple of str
        Precisions to choose among.
    """

    keep: float | None = None
    relative_to: str = "full"
    bytes_per_vector: int | None = None
    seconds: float | None = None
    k: int | None = None
    precisions: tuple[str, ...] = ("float32",)

    @property
    def chooses(self) -> bool:
        """True where a choice was asked for."""
        return any(limit is not None for limit in (self.keep, self.bytes_per_vector, self.seconds, self.k))

    @property
    def tabulates(self) -> bool:
        """True where the curve alone does not answer."""
        return self.seconds is not None or set(self.precisions) != {"float32"}


def choose_point(curve: PrefixCurve, table: PrecisionTable | None, limits: Limits) -> OperatingPoint:
    """Choose over every k in float32, and over the k of the table in other precisions and by time.

    A k that is asked for may be any; one that is chosen is one that the curve may recommend.
    """
    points = list(table or ())
    if limits.seconds is None:
        allowed = set(curve.recommendable if limits.k is None else curve.k)
        allowed -= {point.k for point in points}
        points += [OperatingPoint(k, "float32", 4 * k, score) for k, score in curve if k in allowed]
    candidates = PrecisionTable(tuple(points), curve.metric, input_score=curve.input_score)
    return candidates.choose(
        keep=limits.keep,
        relative_to=limits.relative_to,
        bytes_per_vector=limits.bytes_per_vector,
        seconds=limits.seconds,
        k=limits.k,
        precision=limits.precisions,
    )
