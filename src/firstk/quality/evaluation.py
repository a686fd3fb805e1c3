"""The record of an evaluation: scores and costs of each length in each precision, of codes and of the raw vectors.

An evaluation is a record: it goes to JSON and back, and needs neither the encoder nor the data. It holds the scores of
resampled units too, so that a choice can be made, with how sure it is, wherever the record is read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter
from firstk._base.json_records import Count, JsonRecord, Lengths, Name, check_fields
from firstk.data.precision import PRECISIONS
from firstk.data.stores import find_store
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import EMBEDDED, RAW, Choice, Limits, Point, choose
from firstk.quality.curve import PrefixCurve, slack
from firstk.quality.paired import CONFIDENCE, interval


@dataclass(frozen=True, repr=False)
class Evaluation(JsonRecord):
    """Scores and costs of codes, each with its scores on the same resampled units.

    Parameters
    ----------
    points : sequence of Point
        At least one of the encoder's own; no k twice in one precision of one code.
    metric : str
        What the scores are.
    input_score : float, optional
        The same metric of the raw vectors.
    input_bytes : int, optional
        Bytes of a raw vector.
    label : str
        The name of the code.
    n_evaluated : int, optional
        How many rows, queries or pairs a score is a mean of.
    unit : str
        What is evaluated: rows, pairs or queries.
    chance : float, optional
        The score of guessing.
    supported : sequence of int, optional
        Prefix lengths at which the order of the code is fixed, as in `PrefixCurve`.
    draws : Packed, optional
        Scores of resampled units: one row for each point, in the order of `points`, one column for each draw.
    n_known : int, optional
        Of all queries at hand, how many ask for a document that the fit has learned from.
    over_all : Evaluation, optional
        The same points over all queries, where this evaluation is of searches for new documents.
    store : str
        The vector store whose forms were scored; choices are among these.

    Examples
    --------
    >>> rows = [(8, "float32", 32, 0.80), (8, "int8", 8, 0.79), (16, "int8", 16, 0.90)]
    >>> found = Evaluation([Point(*row) for row in rows], "accuracy", input_score=0.91, input_bytes=256)
    >>> chosen = found.choose(keep=0.95).point
    >>> chosen.k, chosen.precision, chosen.bytes
    (16, 'int8', 16)
    >>> [(point.k, point.precision) for point in found.pareto_front]
    [(8, 'int8'), (16, 'int8')]
    >>> print(found)
    accuracy (bytes per vector)
       k      float32         int8
       8  0.8000 (32)   0.7900 (8)*
      16            -  0.9000 (16)*
    * best score for its size
    raw vectors: 0.9100 (256)
    """

    FORMAT = "firstk.Evaluation/1"

    points: tuple[Point, ...]
    metric: Name
    input_score: float | None = None
    input_bytes: Count | None = None
    label: str = ""
    n_evaluated: Count | None = None
    unit: Name = "rows"
    chance: float | None = None
    supported: Lengths | None = None
    draws: Packed | None = None
    n_known: Count | None = None
    over_all: Evaluation | None = None
    store: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.own or len({point.key for point in self.points}) < len(self.points):
            allowed = "a sequence of Point, at least one of the encoder's own, no k twice in one precision"
            raise bad_parameter("points", "Evaluation", allowed, f"{len(self.points)} of them")
        points = tuple(sorted(self.points, key=lambda point: point.key))
        if self.draws is not None and (points != self.points or self.draws.shape[0] != len(points)):
            raise InvalidInputError(
                "Evaluation needs draws for each of its points, and the points in order: the encoder's own first, "
                "finest precision first, then by k."
            )
        object.__setattr__(self, "points", points)

    # -- parts -----------------------------------------------------------------------------------------------

    @property
    def own(self) -> tuple[Point, ...]:
        """The points of the encoder's own codes, asked by float32 queries."""
        return tuple(point for point in self.points if point.own)

    @property
    def prefixes(self) -> tuple[Point, ...]:
        """The encoder's own points that have a k: all but embedded bits."""
        return tuple(point for point in self.own if point.is_prefix)

    @property
    def embedded(self) -> tuple[Point, ...]:
        """The points of the encoder's own embedded bits, by bytes."""
        return tuple(point for point in self.own if point.precision == EMBEDDED)

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions of the encoder's own codes, finest first."""
        return tuple(name for name in PRECISIONS if any(point.precision == name for point in self.own))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Prefix lengths that are worth a row in a table of precisions: those of the second finest, or all."""
        rounded = [name for name in self.precisions if name not in ("float32", EMBEDDED)]
        name = rounded[0] if rounded else "float32"
        return tuple(sorted({point.k for point in self.prefixes if point.precision == name}))

    @property
    def codes(self) -> tuple[str, ...]:
        """Whose codes are there, besides the encoder's own: baselines, faiss, the raw vectors."""
        return tuple(dict.fromkeys(point.code for point in self.points if point.code))

    @property
    def pareto_front(self) -> tuple[Point, ...]:
        """The encoder's own points that none of them beats: as few bytes and a better score, or as good in fewer."""
        return self.front_of("")

    def front_of(self, code: str) -> tuple[Point, ...]:
        """Return the points of one code that none of them beats: asked by float32 queries, or forms of the store."""
        best: list[Point] = []
        asked = (o for o in self.points if o.code == code and o.asked and bool(o.form) is bool(self.store))
        for point in sorted(asked, key=lambda o: (o.bytes, -o.score, o.k)):
            if not best or point.score > best[-1].score + slack(best[-1].score):
                best.append(point)
        return tuple(best)

    def interval_of(self, point: Point) -> tuple[float, float] | None:
        """Return the ends of a point's interval, from the draws; None where nothing was resampled."""
        if self._ends is None:
            return None
        low, high = self._ends[:, self.points.index(point)].tolist()
        return min(low, point.score), max(high, point.score)

    @cached_property
    def _ends(self) -> np.ndarray | None:
        """Ends of the interval of every point, shape (2, C)."""
        return None if self.draws is None else np.stack(interval(self.draws.array().T))

    def curve(self, code: str = "", precision: str = "float32") -> PrefixCurve:
        """Return the scores of one code in one precision against k."""
        points = [o for o in self.points if (o.code, o.stored_as) == (code, precision) and o.is_prefix]
        if not points:
            raise InvalidInputError(f"This evaluation has no {code or 'code of its own'} in {precision}.")
        ends = [self.interval_of(point) for point in points]
        low, high = (None, None) if None in ends else zip(*ends, strict=True)
        return PrefixCurve(
            k=tuple(point.k for point in points),
            score=tuple(point.score for point in points),
            metric=self.metric,
            input_score=self.input_score,
            label=code or ", ".join(part for part in (self.label, precision) if part and part != "float32"),
            n_evaluated=self.n_evaluated,
            low=low,
            high=high,
            confidence=None if low is None else CONFIDENCE,
            supported=None if code else self.supported,
        )

    @property
    def baselines(self) -> tuple[PrefixCurve, ...]:
        """The curves of the baselines, as float32."""
        return tuple(
            self.curve(code)
            for code in self.codes
            if code != RAW and any(o.code == code and o.stored_as == "float32" for o in self.points)
        )

    # -- the choice ------------------------------------------------------------------------------------------

    def choose(
        self,
        *,
        keep: float | None = None,
        bytes_per_vector: int | None = None,
        k: int | None = None,
        precision: str | Collection[str] | None = None,
        relative_to: str = "auto",
        binary_queries: bool = False,
        store: str | None = None,
    ) -> Choice:
        """Choose what to store: the cheapest that keeps a share, or the best within limits.

        Parameters
        ----------
        keep : float in (0, 1], optional
            The share of the score that must be kept; 0.99 where nothing is asked for.
        bytes_per_vector : int, optional
            The most that a stored vector may take.
        k : int, optional
            This prefix length; as float32, unless a precision or a share is asked for too.
        precision : str or collection of str, optional
            This precision, or these.
        relative_to : {"auto", "input", "best", "full"}
            What `keep` is a share of, as in `PrefixCurve.smallest`.
        binary_queries : bool
            Queries are rounded to bits as well.
        store : str, optional
            A vector store, such as "pgvector": choose among what it holds, in its bytes. What rescores a shortlist is
            scored by ``evaluate(..., store=...)`` alone.

        Returns
        -------
        choice : Choice
            Ranked points, each with its share, interval and reason; ``print(choice)`` says it in words.
        """
        names = (precision,) if isinstance(precision, str) else precision
        if names is None:
            alone = k is not None and keep is None and bytes_per_vector is None
            names = ("float32",) if alone else PRECISIONS
        limits = Limits(keep, relative_to, bytes_per_vector, k, tuple(names), binary_queries)
        return choose(self if store is None else self.at(store), limits)

    def at(self, store: str) -> Evaluation:
        """Return the evaluation of what a vector store holds, by its bytes and how it compares.

        Parameters
        ----------
        store : str
            A name in `firstk.data.STORES`, or a relative of one.
        """
        held = find_store(store, "Evaluation.choose")
        if self.store == held.name or not held.forms:
            return self
        if self.store:
            raise InvalidInputError(
                f"This evaluation is of {self.store} and does not say what {held.name} would do. Evaluate again with "
                f"store='{held.name}', or without a store."
            )
        draws = np.empty((len(self.points), 0)) if self.draws is None else self.draws.array()
        found = list(zip(self.points, draws, strict=True))
        for form in held.forms:
            for point, drawn in found[: len(self.points)]:
                alike = (point.precision, point.queries) == (form.precision, form.queries)
                if alike and not form.rescored and form.fits(point.k):
                    held_so = replace(point, form=form.name, bytes=form.bytes(point.k))
                    found.append((held_so, drawn))
        found.sort(key=lambda one: one[0].key)
        return replace(
            self,
            points=tuple(point for point, _ in found),
            draws=None if self.draws is None else Packed.of([drawn for _, drawn in found]),
            over_all=None if self.over_all is None else self.over_all.at(store),
            store=held.name,
        )

    # -- as a record -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Any]], Evaluation], tuple[dict[str, Any]]]:
        return type(self).from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        return f"Evaluation({self.metric}, {len(self)} points in {', '.join(self.precisions)})"

    def __str__(self) -> str:
        from firstk.words.choice import precision_lines

        return "\n".join(precision_lines(self))


# Sixteen bits a number: far finer than the 256 greys that are drawn from it, or the noise of a score.
_STEPS = 32767


@dataclass(frozen=True)
class Packed:
    """A matrix of finite numbers in sixteen bits each, as text: small enough for a page, exact enough for a picture.

    Attributes
    ----------
    shape : (int, int)
    scales : tuple of float
        Row i is `scales[i]` times its integers.
    data : str
        The integers, little-endian, row after row, in base64.

    Examples
    --------
    >>> Packed.of([[1.0, -2.0], [0.0, 0.0]]).array().round(3)
    array([[ 1., -2.],
           [ 0.,  0.]])
    """

    shape: tuple[int, ...]
    scales: tuple[float, ...]
    data: str

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.shape) != 2 or min(self.shape) < 1 or len(self.scales) != self.shape[0]:
            raise damaged("a packed matrix has two positive sizes, and one scale for each row")
        try:
            size = len(base64.b64decode(self.data, validate=True))
        except (ValueError, binascii.Error):
            raise damaged("a packed matrix is not base64") from None
        if size != 2 * self.shape[0] * self.shape[1]:
            raise damaged(f"a packed matrix of shape {self.shape} holds {size} bytes")

    @classmethod
    def of(cls, matrix: ArrayLike) -> Packed:
        """Pack a matrix."""
        M = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
        scales = np.abs(M).max(axis=1) / _STEPS
        steps = np.rint(M / np.where(scales > 0, scales, 1.0)[:, None]).astype("<i2")
        return cls(M.shape, tuple(scales.tolist()), base64.b64encode(steps.tobytes()).decode())

    def array(self) -> np.ndarray:
        """Unpack."""
        steps = np.frombuffer(base64.b64decode(self.data), dtype="<i2").reshape(self.shape)
        return steps * np.asarray(self.scales)[:, None]


def damaged(reason: str) -> InvalidInputError:
    """Build the error for an evaluation whose parts do not fit together."""
    return InvalidInputError(f"This evaluation cannot be read: {reason}. Fit the model again with 'firstk fit'.")
