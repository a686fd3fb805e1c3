"""What to store: the cheapest prefix length and precision that keep what is asked for, with how sure that is.

A record that is saved with a model and read anywhere. Every command, page and card shows the lines that are made here,
so that all of them say the same. The rule that makes it is in :mod:`firstk.evaluation.recommending`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from firstk._base.checks import check_choice
from firstk._base.json_records import Count, Name, NonNegative, Share, check_fields, from_json, from_plain, to_plain
from firstk.data.precision import PRECISIONS

FORMAT = "firstk.Recommendation/1"
RAW = "raw vectors"
# A choice is made on searches for new documents alone where there are so many: fewer cannot tell codes apart.
FEWEST_NEW = 30
# Shares that differ by no more are as good: the level of `diagnose`.
AS_GOOD = 0.005
# A share below this is a loss that few uses can bear: the advice says so.
HEAVY = 0.8
# Said once wherever embedded bits are recommended.
ABOUT_BITS = (
    "Embedded bits: each vector becomes a string of bytes, the most important bits first. It can be cut after any "
    "byte, and queries stay float32."
)
# Said once wherever a share above 100 % is printed.
ABOVE_RAW = "More than 100 % means better than the raw vectors: a fit can drop what misleads them."
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True)
class OperatingPoint:
    """A prefix length with a precision: what one vector costs, and what the stored codes are worth.

    Attributes
    ----------
    k : int
        The prefix length; of embedded bits, which have none, how many coordinates have bits.
    precision : str
        A name in `firstk.data.precision.PRECISIONS`; "product quantizer" for codes of faiss.
    bytes : int
        Of one stored vector.
    score : float
    seconds : float, optional
        Of one exact search, where that was measured.
    code : str
        Whose code it is: "" for the encoder's own, else the name of a baseline, or "raw vectors".
    queries : {"float32", "binary"}
        How queries are held: as they are, or as bits like the stored codes.
    """

    k: Count
    precision: str
    bytes: Count
    score: float
    seconds: NonNegative | None = None
    code: str = ""
    queries: str = "float32"

    def __post_init__(self) -> None:
        check_fields(self)
        check_choice(self.precision, (*PRECISIONS, PRODUCT_QUANTIZER), "precision", "OperatingPoint")
        check_choice(self.queries, ("float32", "binary"), "queries", "OperatingPoint")

    @property
    def own(self) -> bool:
        """True for codes of the encoder itself, asked by float32 queries."""
        return not self.code and self.queries == "float32"

    @property
    def is_prefix(self) -> bool:
        """True for the first k coordinates of a code; embedded bits and product quantizers have no k to choose."""
        return self.precision not in (EMBEDDED, PRODUCT_QUANTIZER)

    @property
    def stored_as(self) -> str:
        """The precision, and that queries are rounded too where they are: the name of a row in a table."""
        return self.precision if self.queries == "float32" else f"{self.precision}, binary queries"

    def __str__(self) -> str:
        if self.precision == PRODUCT_QUANTIZER:
            return f"a product quantizer of the {RAW} ({self.code})"
        if self.code == RAW:
            return f"the {RAW} as {'embedded bits' if self.precision == EMBEDDED else self.stored_as}"
        if self.precision == EMBEDDED:  # the number of coordinates that have bits is nobody's choice
            return f"{self.code}, embedded bits" if self.code else "embedded bits"
        numbers = f"{self.k:,} {'coordinate' if self.k == 1 else 'coordinates'} as {self.stored_as}"
        return f"{self.code}, {numbers}" if self.code else numbers


PRODUCT_QUANTIZER = "product quantizer"
EMBEDDED = "embedded"


@dataclass(frozen=True)
class Choice:
    """An operating point, with the share of the reference score that it keeps.

    Attributes
    ----------
    point : OperatingPoint
    kept : float
        The share, less what choosing the best of many on the same rows adds to it.
    low, high : float, optional
        Ends of its interval; None where nothing was resampled.
    """

    point: OperatingPoint
    kept: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def noise(self) -> float:
        """Half the width of the interval; 0 where there is none."""
        return 0.0 if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def share(self) -> str:
        """The share as text, with its interval, no finer than the noise."""
        digits = 0 if self.noise >= 0.004 else 1
        if self.low is None or self.high is None:
            return f"{_percent(self.kept, digits)} %"
        if self.noise < 5e-4:
            return f"{_percent(self.kept, digits)} %"
        return f"{_at_least(self.low, digits)} to {_percent(self.high, digits)} %"

    def __str__(self) -> str:
        return f"{self.point}: {_bytes(self.point.bytes)}, {self.share}"


@dataclass(frozen=True)
class Recommendation:
    """What to store, and how sure that is.

    Attributes
    ----------
    metric : str
    reference : str
        What shares are of: "raw vectors", or a prefix where the raw vectors have no such score.
    reference_score : float
    chosen : Choice or None
        Of the encoder's own codes, the cheapest that keeps the share, or the best within the bytes; None where none is.
    keep : float, optional
        The share to keep.
    bytes_per_vector : int, optional
        The most that a stored vector may take.
    safe : Choice or None
        The best in the fewest bytes whose whole interval keeps the share, which is what these bytes alone would
        recommend; None where that is `chosen`, or there is none.
    better : Choice or None
        A baseline that does the same in fewer bytes, or more in the same: the advice, where there is one.
    as_good : Choice or None
        A baseline that takes no more bytes than `chosen`, and is behind it neither clearly nor by more than half a
        percent: simpler, so that it is the advice.
    rival : Choice or None
        The best of what is not advised, its share as measured: of baselines within the limit of bytes, or in no more
        bytes than `chosen`; `chosen`, where a baseline is advised.
    best : Choice or None
        The encoder's own best, whatever it takes.
    thresholds : tuple of Choice
        The cheapest for each of `shares`.
    shares : tuple of float
        Shares that the rows can tell apart.
    input_bytes : int, optional
        Of a raw vector.
    n_evaluated : int, optional
        How many rows, pairs or queries were evaluated.
    unit : str
        What they are.
    needed : int, optional
        How many would tell whether the share is kept, where those at hand do not.
    chance : float, optional
        The score of guessing, where neither the raw vectors nor the codes do better.
    confidence : float
        Of the intervals.
    k : int, optional
        The prefix length asked for.
    precisions : tuple of str
        Those asked for; empty: all.
    seconds : float, optional
        The most that one exact search may take.
    n_known, n_new : int, optional
        Of all queries at hand, how many ask for a document that the fit has learned from, and how many for new ones
        only; None for none, and where nothing was learned from judgements. The choice is made on those for new
        documents, if there are enough: `n_evaluated` is `n_new` then.
    everything, known : Choice or None
        What `advised` keeps over all queries, and over those that ask for documents the fit has learned from, where
        the choice is made on the others.
    rival_everything : Choice or None
        What `rival` keeps over all queries.
    rival_ahead : bool
        Whether `rival` scored better than `advised`, though not clearly.

    Examples
    --------
    >>> chosen = Choice(OperatingPoint(64, "int8", 64, 0.55), 0.97, 0.95, 0.99)
    >>> advice = Recommendation("ndcg@10", "raw vectors", 0.567, chosen, keep=0.95, input_bytes=1536)
    >>> print(advice)
    Store 64 coordinates as int8: 64 bytes a vector instead of 1,536. They keep 95 to 99 % of the raw vectors' ndcg@10.
    Measured: ndcg@10 0.550, where the raw vectors have 0.567.
    """

    metric: Name
    reference: Name
    reference_score: float
    chosen: Choice | None = None
    keep: float | None = None
    bytes_per_vector: Count | None = None
    safe: Choice | None = None
    better: Choice | None = None
    as_good: Choice | None = None
    best: Choice | None = None
    thresholds: tuple[Choice, ...] = ()
    shares: tuple[float, ...] = ()
    input_bytes: Count | None = None
    n_evaluated: Count | None = None
    unit: Name = "rows"
    needed: Count | None = None
    chance: float | None = None
    confidence: Share = 0.95
    k: Count | None = None
    precisions: tuple[str, ...] = ()
    seconds: NonNegative | None = None
    n_known: Count | None = None
    n_new: Count | None = None
    everything: Choice | None = None
    known: Choice | None = None
    rival: Choice | None = None
    rival_everything: Choice | None = None
    rival_ahead: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def advised(self) -> Choice | None:
        """What to do: the baseline that is better, or as good, where there is one, else `chosen`."""
        return self.better or self.as_good or self.chosen

    def to_store(self) -> Iterator[tuple[OperatingPoint, str]]:
        """Yield what a command is worth for, each with a remark: the advice and, where it is not sure, the safe one."""
        if self.advised is None or self.chance is not None:
            return
        yield self.advised.point, ""
        if self._unsure and self.safe is not None:
            yield self.safe.point, "to be safe"

    @property
    def _unsure(self) -> bool:
        """Whether the rows cannot tell if the share is kept."""
        chosen = self.chosen
        return chosen is not None and self.keep is not None and chosen.low is not None and chosen.low < self.keep

    @property
    def on_new(self) -> bool:
        """Whether the choice is made on searches for new documents alone, and there were others."""
        return self.n_known is not None and self.n_new is not None and self.n_evaluated == self.n_new

    @property
    def _above(self) -> bool:
        """Whether a share above 100 % is shown."""
        choices = (self.better, self.chosen, self.safe, self.as_good, self.everything, self.known, *self._said_rival)
        ends = (choice.kept if choice.high is None else choice.high for choice in choices if choice is not None)
        return self.reference == RAW and any(end > 1.005 for end in ends)

    @property
    def _said_rival(self) -> tuple[Choice, ...]:
        """The rival, where the lines speak of it."""
        return (self.rival,) if self.rival is not None and self.rival_ahead else ()

    def headline(self, rows: int | None = None) -> str:
        """Return the first line: what to store, what it keeps, and bytes."""
        return next(self._lines(rows))

    def lines(self, rows: int | None = None) -> list[str]:
        """Return all there is to say, the advice first; with `rows`, the bytes of so many vectors."""
        return list(self._lines(rows))

    def _lines(self, rows: int | None) -> Iterator[str]:
        if self.chance is not None:
            yield (
                f"Check the inputs: neither the raw vectors ({self.metric} {self.reference_score:.4f}) nor the codes "
                f"do better than chance ({self.chance:.4f}). Most often labels, ids or row numbers do not belong to "
                "these vectors."
            )
            return
        advised = self.advised
        if advised is None:
            yield self.out_of_reach()
        else:
            yield self._advice(advised)
            yield from self._in_numbers(advised, rows)
            yield from self._about_limit(advised)
        yield from self._about_known(advised)
        if advised is not self.chosen:
            yield self._against_own()
        elif advised is not None:
            yield from self._against_rival()
        yield from self._how_sure()
        if self.thresholds:
            parts = (f"{100 * s:g} %: {c.point} ({_bytes(c.point.bytes)})" for s, c in self._by_share())
            yield f"Cheapest of this model that keep a share of {self._whose()}{self.where}: {'; '.join(parts)}."
        if any(point.precision == EMBEDDED for point in self._points()):
            yield ABOUT_BITS
        if self._above:
            yield ABOVE_RAW

    def _points(self) -> Iterator[OperatingPoint]:
        """Yield what the lines speak of, some of it more than once."""
        shown = (self.advised, self.chosen, self.safe if self._unsure else None, *self.thresholds, *self._said_rival)
        yield from (choice.point for choice in shown if choice is not None)
        if self.advised is None and self.best is not None:
            yield self.best.point

    def _by_share(self) -> Iterator[tuple[float, Choice]]:
        return zip(self.shares, self.thresholds, strict=True)

    def _about_known(self, advised: Choice | None) -> Iterator[str]:
        """Say what is kept beyond new documents; or that new ones may fare worse, where the choice is not by them."""
        if self.n_known is None:
            return
        if not self.on_new:
            told = f"{self.n_known:,} of the {self.unit} ask for documents that the fit has learned from, and "
            few = self.n_new is None or self.n_new < FEWEST_NEW
            told += f"{'none' if self.n_new is None else f'{self.n_new:,}'} for new ones only"
            told += f", too few to choose by ({FEWEST_NEW} are needed)" if few else ""
            yield f"{told}: new documents may fare worse."
            return
        told = "New documents: no judgement that the fit learned from names them, as will be so for any that are added."
        if advised is not None and self.everything is not None and self.known is not None:
            told += (
                f" For documents that the fit has learned from {_they(advised.point).lower()} "
                f"{_percent(self.known.kept, 0)} % ({self.n_known:,} {self.unit}), so that over all "
                f"{self.n_known + (self.n_new or 0):,} {self.unit} it is {_percent(self.everything.kept, 0)} %."
            )
        yield told

    @property
    def where(self) -> str:
        """On which searches shares are, where these are not all."""
        return " on new documents" if self.on_new else ""

    def _whose(self) -> str:
        return f"the {RAW}' {self.metric}" if self.reference == RAW else f"the {self.metric} of {self.reference}"

    def _advice(self, advised: Choice) -> str:
        point = advised.point
        less = self.input_bytes is not None and point.bytes < self.input_bytes
        instead = f" instead of {self.input_bytes:,}" if less else ""
        they = _they(point)
        kept = f"{they} {advised.share} of {self._whose()}."
        if self.on_new:
            kept = f"On new documents ({self.n_new:,} {self.unit}) {they.lower()} {advised.share} of {self._whose()}."
        return f"{self._lead(point.code)} {point}: {_bytes(point.bytes)} a vector{instead}. {kept}"

    def _lead(self, code: str) -> str:
        """Return how the advice to take a code begins."""
        if not code:
            return "Store"
        if self.better is not None:
            return "Do not cut: store" if code == RAW else "Use"
        if code == RAW:
            return "No encoder is needed here: store"
        name = code if code.startswith("plain") else f"plain {code}"
        return f"{name[0].upper()}{name[1:]} is as good here: use"

    def _against_own(self) -> str:
        if self.chosen is None:
            return self.out_of_reach()
        if self.better is None:
            return f"This model is not clearly better: {self.chosen}.{self._own_over_all()}"
        return f"This model needs more bytes for that, or keeps less in as many: {self.chosen}.{self._own_over_all()}"

    def _own_over_all(self) -> str:
        """Say what this model keeps over all queries, where that is more than what is advised for new documents."""
        own, advised = self.rival_everything, self.everything
        if own is None or advised is None or own.kept - advised.kept <= AS_GOOD:
            return ""
        return (
            f" Over all queries it keeps {_percent(own.kept, 0)} %, against {_percent(advised.kept, 0)} %: take it if "
            "few documents will be added."
        )

    def _against_rival(self) -> Iterator[str]:
        """Say why a baseline that scored better is not advised."""
        rival = self.rival
        if rival is None or not self.rival_ahead:
            return
        told = (
            f"Better in {_bytes(rival.point.bytes)}, but not clearly: {rival.point}, {_score(rival.point.score)} "
            f"({rival.share})."
        )
        own, other = self.everything, self.rival_everything
        if own is not None and other is not None and own.kept - other.kept > AS_GOOD:
            told += (
                f" Over all queries it keeps {_percent(other.kept, 0)} %, and this model {_percent(own.kept, 0)} %: "
                "that is why this model is advised."
            )
        yield told

    def out_of_reach(self) -> str:
        """Say that no code within the limits keeps the share, or that there is none, and the best that is reached."""
        best = "" if self.best is None else f" The best is {_about(self.best)}: {self.best.point}."
        if self.best is not None and self.keep is not None and self.best.kept >= self.keep:
            best += " Longer ones that may be as good do not, so that it may be luck."
        if self.keep is None:
            return f"No code of this model{self._limits()} was evaluated.{best}"
        whole = f"{self._whose()} ({self.reference_score:.4f})"
        return f"No code of this model{self._limits()} keeps {100 * self.keep:g} % of {whole}{self.where}.{best}"

    def _limits(self) -> str:
        """Return the limits on codes as text."""
        return "".join(
            (
                "" if self.k is None else f" with k = {self.k}",
                f" as {' or '.join(self.precisions)}" if self.precisions else "",
                "" if self.bytes_per_vector is None else f" in {_bytes(self.bytes_per_vector)}",
                "" if self.seconds is None else f" within {1e3 * self.seconds:.4g} ms a search",
            )
        )

    def _in_numbers(self, advised: Choice, rows: int | None) -> Iterator[str]:
        """Give the score that was measured beside the one it is a share of; with `rows`, what is saved."""
        whose = f"the {RAW} have" if self.reference == RAW else f"{self.reference} has"
        told = f"Measured: {self.metric} {_score(advised.point.score)}, where {whose} {_score(self.reference_score)}."
        if rows is not None:
            before = "" if self.input_bytes is None else f" instead of {bytes_text(rows * self.input_bytes)}"
            told += f" {rows:,} vectors take {bytes_text(rows * advised.point.bytes)}{before}."
        yield told

    def _about_limit(self, advised: Choice) -> Iterator[str]:
        """Say why bytes are left where they are, and that a limit costs much where it does."""
        most = self.bytes_per_vector
        others = (self.keep, self.k, self.seconds, self.as_good, self.precisions or None)
        if most is None or any(limit is not None for limit in others):
            return
        if advised.point.bytes < most:
            whose = {"": "this model", RAW: f"the {RAW}"}.get(advised.point.code, advised.point.code)
            yield f"Of {whose}, nothing that was evaluated in at most {_bytes(most)} scored better."
        if (advised.kept if advised.high is None else advised.high) < HEAVY:
            yield f"Less than {HEAVY:.0%} is a heavy loss. Allow more than {_bytes(most)}, or ask for a share to keep."

    def _how_sure(self) -> Iterator[str]:
        """Say so where the rows cannot tell whether the share is kept, with the safe choice and how many would tell."""
        chosen = self.chosen
        if not self._unsure or chosen is None or chosen.low is None or self.keep is None:
            return
        count = "The rows at hand" if self.n_evaluated is None else f"{self.n_evaluated:,} {self.unit}"
        count += " for new documents" if self.on_new else ""
        text = f"{count} cannot tell {100 * self.keep:g} % from {_at_least(chosen.low, 0)} %"
        if self.needed is not None:
            text += f"; about {_rounded(self.needed):,} would"
        yield f"{text}." if self.safe is None else f"{text}. To be safe: {self.safe}."

    def to_dict(self) -> dict[str, Any]:
        """Fields as plain Python objects, all of which JSON can hold."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    def to_json(self) -> str:
        """Write as JSON text, from which `from_json` makes an equal record."""
        return json.dumps({"format": FORMAT, **self.to_dict()}, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recommendation:
        """Make a recommendation from the fields that `to_dict` gives."""
        return from_plain(cls, values)

    @classmethod
    def from_json(cls, text: str) -> Recommendation:
        """Read what `to_json` wrote; anything else raises an error."""
        return from_json(cls, text, FORMAT)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def bytes_text(count: float) -> str:
    """Write bytes with three digits and a decimal unit.

    Examples
    --------
    >>> bytes_text(15_360_000_000), bytes_text(999), bytes_text(1000)
    ('15.4 GB', '999 bytes', '1.00 kB')
    """
    if count < 1000:
        return f"{count:g} bytes"
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    digits = 2 if count < 9.995 else 1 if count < 99.95 else 0
    return f"{count:.{digits}f} {_UNITS[power]}"


def _they(point: OperatingPoint) -> str:
    """Return the subject and verb of a sentence on what a point keeps."""
    one = point.precision == PRODUCT_QUANTIZER or (point.is_prefix and point.k == 1)
    return "It keeps" if one else "They keep"


def _bytes(count: int) -> str:
    return f"{count:,} byte{'' if count == 1 else 's'}"


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f}"


def _score(score: float) -> str:
    """Return a score with three digits, those of a small one as well."""
    return f"{score:.3f}" if 0.01 <= abs(score) < 1e4 or score == 0 else f"{score:.3g}"


def _about(choice: Choice) -> str:
    """Return what a choice keeps, with the number that its interval is of: one that is missed may lie within it."""
    estimate = f"{_percent(choice.kept, 1)} %"
    return estimate if choice.share == estimate else f"{estimate} ({choice.share})"


def _at_least(share: float, digits: int) -> str:
    """Return a lower end as text, rounded down: what is promised is not more than what is known."""
    return f"{math.floor(100 * share * 10**digits + 1e-6) / 10**digits:.{digits}f}"


def _rounded(count: int) -> int:
    """Return a count with two digits: an estimate that pretends no more."""
    size: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // size) * size
