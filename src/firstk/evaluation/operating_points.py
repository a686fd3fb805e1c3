"""Operating points: scores and costs of prefix lengths in each precision, next to baselines in the same bytes.

The table is a record: it goes to JSON and back, and needs neither the encoder nor the data. It holds the scores of
resampled rows too, so that a choice can be made, with how sure it is, wherever the table is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from firstk._base.checks import bad_parameter
from firstk._base.json_records import Count, Lengths, Name, check_fields, from_json, from_plain, to_plain
from firstk.data.precision import PRECISIONS
from firstk.encoder.curve import PrefixCurve, slack
from firstk.encoder.recommendation import EMBEDDED, PRODUCT_QUANTIZER, RAW, OperatingPoint, Recommendation
from firstk.evaluation.packed import Packed
from firstk.evaluation.recommending import CONFIDENCE, Limits, recommend, within_limits
from firstk.exceptions import InvalidInputError

__all__ = ["Limits", "OperatingPoint", "PrecisionTable", "in_order"]

FORMAT = "firstk.PrecisionTable/1"
# Points of embedded bits in one line of text.
_CELLS = 6
_ORDER = (*PRECISIONS, PRODUCT_QUANTIZER)


@dataclass(frozen=True, repr=False)
class PrecisionTable:
    """Scores and costs of prefix lengths times precisions.

    Parameters
    ----------
    points : sequence of OperatingPoint
        At least one of the encoder's own; no k twice in one precision of one code.
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
    unit : str
        What is evaluated: rows, pairs or queries.
    chance : float, optional
        The score of guessing.
    supported : sequence of int, optional
        Prefix lengths at which the order of the code is fixed, as in `PrefixCurve`.
    resampled : Packed, optional
        Scores of resampled rows: one row for each point, in the order of `points`, one column for each draw.
    n_known : int, optional
        Of all queries at hand, how many ask for a document that the fit has learned from.
    everything, known : PrecisionTable, optional
        The same points over all queries, and over those alone, where this table is of searches for new documents.

    Examples
    --------
    >>> rows = [(8, "float32", 32, 0.80), (8, "int8", 8, 0.79), (16, "int8", 16, 0.90)]
    >>> points = [OperatingPoint(*row) for row in rows]
    >>> table = PrecisionTable(points, "accuracy", input_score=0.91, input_bytes=256)
    >>> chosen = table.choose(keep=0.95)
    >>> chosen.k, chosen.precision, chosen.bytes
    (16, 'int8', 16)
    >>> [(point.k, point.precision) for point in table.pareto_front]
    [(8, 'int8'), (16, 'int8')]
    >>> print(table)
    accuracy (bytes per vector)
       k      float32         int8
       8  0.8000 (32)   0.7900 (8)*
      16            -  0.9000 (16)*
    * best score for its size
    raw vectors: 0.9100 (256)
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
    unit: Name = "rows"
    chance: float | None = None
    supported: Lengths | None = None
    resampled: Packed | None = None
    n_known: Count | None = None
    everything: PrecisionTable | None = None
    known: PrecisionTable | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.own or len(set(map(in_order, self.points))) < len(self.points):
            allowed = "a sequence of OperatingPoint, at least one of the encoder's own, no k twice in one precision"
            raise bad_parameter("points", "PrecisionTable", allowed, f"{len(self.points)} of them")
        points = tuple(sorted(self.points, key=in_order))
        if self.resampled is not None and (points != self.points or self.resampled.shape[0] != len(points)):
            raise InvalidInputError(
                "PrecisionTable needs resampled scores for each of its points, and the points in order: the encoder's "
                "own first, finest precision first, then by k."
            )
        object.__setattr__(self, "points", points)

    @property
    def own(self) -> tuple[OperatingPoint, ...]:
        """The points of the encoder's own codes, asked by float32 queries."""
        return tuple(point for point in self.points if point.own)

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions of the encoder's own codes, finest first."""
        return tuple(name for name in PRECISIONS if any(point.precision == name for point in self.own))

    @property
    def pareto_front(self) -> tuple[OperatingPoint, ...]:
        """The encoder's own points that none of them beats: as few bytes and a better score, or as good in fewer."""
        return self.front_of("")

    @property
    def codes(self) -> tuple[str, ...]:
        """Whose codes are in the table, besides the encoder's own: baselines, faiss, the raw vectors."""
        return tuple(dict.fromkeys(point.code for point in self.points if point.code))

    def front_of(self, code: str) -> tuple[OperatingPoint, ...]:
        """Return the points of one code, asked by float32 queries, that none of them beats."""
        return tuple(self._front(point for point in self.points if point.code == code and point.queries == "float32"))

    def interval_of(self, point: OperatingPoint) -> tuple[float, float] | None:
        """Return the ends of a point's interval, from the draws; None where nothing was resampled."""
        if self._ends is None:
            return None
        low, high = self._ends[:, self.points.index(point)].tolist()
        return min(low, point.score), max(high, point.score)

    @cached_property
    def _ends(self) -> np.ndarray | None:
        """Ends of the interval of every point, shape (2, C)."""
        if self.resampled is None:
            return None
        outside = (1 - CONFIDENCE) / 2
        return np.quantile(self.resampled.array(), [outside, 1 - outside], axis=1)

    def _front(self, points: Iterable[OperatingPoint]) -> list[OperatingPoint]:
        best: list[OperatingPoint] = []
        for point in sorted(points, key=lambda o: (o.bytes, -self._merit(o), o.k)):
            if not best or self._merit(point) > self._merit(best[-1]) + slack(best[-1].score):
                best.append(point)
        return best

    @property
    def full(self) -> OperatingPoint:
        """The longest code in the finest precision: what "full" means."""
        return max(self.own, key=lambda o: (o.is_prefix, o.k, o.bytes))

    @property
    def prefixes(self) -> tuple[OperatingPoint, ...]:
        """The encoder's own points that have a k: all but embedded bits."""
        return tuple(point for point in self.own if point.is_prefix)

    @property
    def embedded(self) -> tuple[OperatingPoint, ...]:
        """The points of the encoder's own embedded bits, by bytes."""
        return tuple(point for point in self.own if point.precision == EMBEDDED)

    def curves(self) -> tuple[PrefixCurve, ...]:
        """Return the table as curves, one for each precision; embedded bits have none, as their length is in bytes."""
        return tuple(
            PrefixCurve(
                k=tuple(point.k for point in self.own if point.precision == name),
                score=tuple(point.score for point in self.own if point.precision == name),
                metric=self.metric,
                input_score=self.input_score,
                label=", ".join(part for part in (self.label, name) if part),
                higher_is_better=self.higher_is_better,
                n_evaluated=self.n_evaluated,
            )
            for name in self.precisions
            if name != EMBEDDED
        )

    def recommend(self, limits: Limits | None = None) -> Recommendation:
        """Recommend what to store; see :func:`firstk.evaluation.recommending.recommend`."""
        return recommend(self, limits)

    def choose(
        self,
        *,
        keep: float | None = None,
        relative_to: str = "auto",
        bytes_per_vector: int | None = None,
        seconds: float | None = None,
        k: int | None = None,
        precision: str | Collection[str] | None = None,
    ) -> OperatingPoint:
        """Choose one of the encoder's own points: the cheapest where a share is to be kept, else the best.

        Parameters
        ----------
        keep : float in (0, 1], optional
            The share of the score that must be kept.
        relative_to : {"auto", "input", "best", "full"}
            Of which score: as in `PrefixCurve.smallest`.
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
        names = PRECISIONS if precision is None else (precision,) if isinstance(precision, str) else precision
        limits = Limits(keep, relative_to, bytes_per_vector, seconds, k, tuple(names))
        self.check_within(limits)
        if keep is None:  # the best score needs no reference to take a share of
            left = within_limits(self, limits)
            if not left:
                raise InvalidInputError("No operating point is within all of these limits at once. Allow more.")
            most = max(map(self._merit, left))
            return min((o for o in left if self._merit(o) >= most - slack(most)), key=lambda o: (o.bytes, o.k))
        found = recommend(self, limits)
        if found.chosen is None:
            raise InvalidInputError(found.out_of_reach())
        return found.chosen.point

    def check_within(self, limits: Limits) -> None:
        """Raise InvalidInputError, with what there is, where no point of the encoder is within the limits' costs."""
        left = [
            o
            for o in self.own
            if (limits.k is None or (o.is_prefix and o.k == limits.k)) and o.precision in limits.precisions
        ]
        if not left:
            there = sorted({o.k for o in self.prefixes})
            raise InvalidInputError(
                f"The table has no {'code' if limits.k is None else f'k = {limits.k}'} in "
                f"{' or '.join(limits.precisions)}: it has k = {', '.join(map(str, there))} in "
                f"{', '.join(self.precisions)}."
            )
        for limit, cost in ((limits.bytes_per_vector, "bytes"), (limits.seconds, "seconds")):
            if limit is None:
                continue
            costs = [value for point in left if (value := getattr(point, cost)) is not None]
            if not costs:
                raise InvalidInputError(f"This table has no {cost}: they were not measured. Make it with latency=True.")
            if min(costs) > limit:
                asked, least = (
                    f"{1e3 * c:.4g} ms a search" if cost == "seconds" else f"{c:g} bytes" for c in (limit, min(costs))
                )
                raise InvalidInputError(f"No operating point is within {asked}; the least is {least}. Allow more.")

    def _merit(self, point: OperatingPoint) -> float:
        return point.score if self.higher_is_better else -point.score

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
        """Read what `to_json` wrote, in this version or an earlier one; anything else raises an error."""
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
        ours = [o for o in self.points if not o.code and o.is_prefix]
        title = ": ".join(part for part in (self.label, self.metric) if part)
        title += "" if self.everything is None else " on new documents"
        grid = self._grid(ours) if ours else []
        return "\n".join(
            [f"{title} (bytes per vector)", *grid, *self._bits(), "* best score for its size", *self._others()]
        )

    def _bits(self) -> Iterator[str]:
        """Describe the encoder's own embedded bits."""
        if self.embedded:
            front = set(self.pareto_front)
            cells = [f"{o.score:.4f} ({o.bytes}){'*' * (o in front)}" for o in self.embedded]
            for start in range(0, len(cells), _CELLS):
                lead = "embedded bits:" if not start else " " * 14
                yield f"{lead} {', '.join(cells[start : start + _CELLS])}"

    def _grid(self, ours: list[OperatingPoint]) -> list[str]:
        """Return a line for each prefix length, and a column for each precision."""
        names = list(dict.fromkeys(o.stored_as for o in ours))
        cells = {(o.k, o.stored_as): f"{o.score:.4f} ({o.bytes})" for o in ours}
        width = max(len(name) for name in (*cells.values(), *names))
        stars = {(o.k, o.stored_as): "*" for o in self.pareto_front}
        rows = [f"{'k':>4}" + "".join(f"  {name:>{width}}" for name in names)]
        for k in sorted({o.k for o in ours}):
            texts = (f" {cells.get((k, name), '-'):>{width}}{stars.get((k, name), ' ')}" for name in names)
            rows.append(f"{k:>4} {''.join(texts)}".rstrip())
        return rows

    def _others(self) -> Iterator[str]:
        """Describe the raw vectors and each baseline: what no other point of theirs beats."""
        codes = dict.fromkeys(point.code for point in self.points if point.code)
        for code in codes:
            points = [point for point in self.points if point.code == code]
            shown = self._front(points) if code != RAW else sorted(points, key=lambda o: -o.bytes)
            yield f"{code}: " + ", ".join(
                f"{o.stored_as} {'' if code == RAW or not o.is_prefix else f'k = {o.k} '}{o.score:.4f} ({o.bytes})"
                for o in shown
            )
        if RAW not in codes and self.input_score is not None:
            given = "" if self.input_bytes is None else f" ({self.input_bytes})"
            yield f"{RAW}: {self.input_score:.4f}{given}"


def in_order(point: OperatingPoint) -> tuple[str, int, bool, int, int]:
    """Return by what points are ordered, the encoder's own first; no two points of a table share it."""
    return point.code, _ORDER.index(point.precision), point.queries != "float32", point.k, point.bytes
