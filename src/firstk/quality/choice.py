r"""One way to store a vector, and the choice among many: points, limits, offers, and the rule that chooses.

Shares are ratios of scores to that of the raw vectors on the same units. A point keeps a share if every longer prefix
in the same precision does so as well, up to the longest that is not clearly worse than the best. Choosing the cheapest
of many points on the units that score them flatters the one that is chosen: it is chosen again on each draw :math:`b`,
and the mean of :math:`s_b(c_b) - s(c_b)` is taken off its share (the bootstrap estimate of optimism: Efron and
Tibshirani, An Introduction to the Bootstrap, chapter 17).

What a choice says is in `words`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_int
from firstk._base.json_records import Allowed, Count, JsonRecord, Name, check_fields
from firstk.data.precision import PRECISIONS
from firstk.data.stores import FORMULAS
from firstk.exceptions import InvalidInputError
from firstk.quality.paired import DEVIATIONS, OF_MANY, ROUNDING, TOLERANCE, Difference
from firstk.words.text import EMBEDDED, PRODUCT_QUANTIZER, RAW

if TYPE_CHECKING:
    from firstk import PrefixEncoder
    from firstk._base.array_types import MatrixLike
    from firstk.metrics.threshold import Threshold
    from firstk.quality.evaluation import Evaluation

# What is kept where nothing is asked for, and shares for which the cheapest code is worth naming.
KEEP, SHARES = 0.99, (0.9, 0.95, 0.99)
# What a share may be of.
REFERENCES = ("auto", "input", "best", "full")
_ORDER = tuple(dict.fromkeys((*PRECISIONS, PRODUCT_QUANTIZER, *FORMULAS)))


@dataclass(frozen=True)
class Point:
    """A prefix length in a precision: what one vector costs, and what the stored codes are worth.

    Attributes
    ----------
    k : int
        The prefix length; of embedded bits, which have none, how many coordinates have bits.
    precision : str
        A name in `firstk.data.precision.PRECISIONS`; "product quantizer" for codes of faiss.
    bytes : int
        Of one stored vector; points are ranked by these.
    score : float
    code : str
        Whose code it is: "" for the encoder's own, else the name of a baseline, or "raw vectors".
    stored_once : int, optional
        Bytes that all stored vectors share: axes, centroids, cells.
    queries : {"float32", "int8", "binary"}
        How queries are held: as they are, or rounded like the stored codes.
    form : str
        What a vector store calls it, where the score is under that store's own comparison (`firstk.data.stores`).
    oversampling : int, optional
        How many times the results a shortlist has, which float32 codes rescore.
    """

    k: Count
    precision: str
    bytes: Count
    score: float
    code: str = ""
    queries: str = "float32"
    stored_once: Annotated[int, Allowed("an int of at least 0", lambda n: n >= 0)] | None = None
    form: str = ""
    oversampling: Count | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        check_choice(self.precision, _ORDER, "precision", "Point")
        check_choice(self.queries, ("float32", "int8", "binary"), "queries", "Point")

    def bytes_in_all(self, rows: int) -> float:
        """Return the bytes of each of so many vectors, with its share of what is stored once."""
        return self.bytes + (self.stored_once or 0) / rows

    @property
    def storage(self) -> dict[str, int | str]:
        """How :func:`firstk.transform_files` stores it: ``transform_files(encoder, source, target, **point.storage)``.

        Bytes of embedded bits, which have no k; else the prefix length and the precision.
        """
        return {"k": self.k, "precision": self.precision} if self.is_prefix else {"bytes_per_vector": self.bytes}

    @property
    def own(self) -> bool:
        """True for codes of the encoder itself, asked by float32 queries or as a store does."""
        return not self.code and self.asked

    @property
    def asked(self) -> bool:
        """True where queries are as a search would hold them: in float32, or as a store does."""
        return self.queries == "float32" or bool(self.form)

    @property
    def raw(self) -> bool:
        """True for the raw vectors as they came."""
        return self.code == RAW and self.precision == "float32" and not self.form

    @property
    def is_prefix(self) -> bool:
        """True for the first k coordinates of a code; embedded bits and product quantizers have no k to choose."""
        return self.precision not in (EMBEDDED, PRODUCT_QUANTIZER)

    @property
    def stored_as(self) -> str:
        """The precision, and that queries are rounded too where they are: the name of a row in a table."""
        if self.form:
            return self.form
        return self.precision if self.queries == "float32" else f"{self.precision}, {self.queries} queries"

    @property
    def key(self) -> tuple[str, bool, int, bool, str, int, int]:
        """By what points are ordered, the encoder's own first; no two points of an evaluation share it."""
        rounded = self.queries != "float32"
        return self.code, bool(self.form), _ORDER.index(self.precision), rounded, self.form, self.k, self.bytes

    def __str__(self) -> str:
        if self.precision == PRODUCT_QUANTIZER:
            return f"a product quantizer of the {RAW} ({self.code})"
        if self.code == RAW:
            return f"the {RAW} as {'embedded bits' if self.precision == EMBEDDED else self.stored_as}"
        if self.precision == EMBEDDED:  # the number of coordinates that have bits is nobody's choice
            return f"{self.code}, embedded bits" if self.code else "embedded bits"
        numbers = f"{self.k:,} {'coordinate' if self.k == 1 else 'coordinates'} as {self.stored_as}"
        return f"{self.code}, {numbers}" if self.code else numbers


@dataclass(frozen=True)
class Limits:
    """What a point is to be chosen by.

    Attributes
    ----------
    keep : float in (0, 1], optional
        The share that must be kept; 0.99 where nothing is asked for.
    relative_to : {"auto", "input", "best", "full"}
        Of which score, as in `PrefixCurve.smallest`.
    bytes_per_vector : int, optional
        The most that a stored vector may take.
    k : int, optional
        This prefix length.
    precisions : tuple of str
        Precisions to choose among.
    binary_queries : bool
        Queries are rounded to bits as well.
    """

    keep: float | None = None
    relative_to: str = "auto"
    bytes_per_vector: int | None = None
    k: int | None = None
    precisions: tuple[str, ...] = tuple(PRECISIONS)
    binary_queries: bool = False

    def __post_init__(self) -> None:
        if all(limit is None for limit in (self.keep, self.bytes_per_vector, self.k)):
            object.__setattr__(self, "keep", KEEP)
        if self.keep is not None:
            check_fraction(self.keep, "keep", "choose", open_left=True)
        check_choice(self.relative_to, REFERENCES, "relative_to", "choose")
        for name, value in (("bytes_per_vector", self.bytes_per_vector), ("k", self.k)):
            if value is not None and (not is_int(value) or value < 1):
                raise bad_parameter(name, "choose", "an int of at least 1", value)
        object.__setattr__(self, "precisions", tuple(self.precisions))
        for name in self.precisions:
            check_choice(name, PRECISIONS, "precision", "choose")

    @property
    def any_precision(self) -> bool:
        """Whether all precisions are allowed."""
        return set(self.precisions) >= set(PRECISIONS)


@dataclass(frozen=True)
class Offer:
    """A point, the share that it keeps, and why it is named.

    Attributes
    ----------
    point : Point
    reason : str
        "cheapest": of the encoder's own codes, the cheapest that keeps the share. "best": the best of them within the
        limits. "better": a baseline that does the same in fewer bytes, or more in the same. "simpler": a baseline that
        takes no more bytes and is level. "safe": the best in the fewest bytes whose whole interval keeps the share.
        "rounded": bits that are advised, with queries that are bits too.
        "ahead": a baseline that scored better, though not clearly; "behind": the best other code that did not.
        "most": the best of the encoder's own, whatever it takes. "share": the cheapest that keeps `asked`.
    share : float, optional
        What it keeps, less what choosing the best of many on the same units adds; None where a share means nothing.
    low, high : float, optional
        Ends of its interval; None where nothing was resampled.
    over_all : float, optional
        What it keeps over all queries, where the choice is made on searches for new documents.
    asked : float, optional
        The share that a "share" is for.
    """

    point: Point
    reason: str
    share: float | None = None
    low: float | None = None
    high: float | None = None
    over_all: float | None = None
    asked: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def noise(self) -> float:
        """Half the width of the interval; 0 where there is none."""
        return 0.0 if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True)
class Choice(JsonRecord):
    """What to store: ranked offers, with what their shares are of.

    Attributes
    ----------
    metric : str
    reference : str
        What shares are of: "raw vectors", or a prefix where the raw vectors have no such score.
    reference_score : float
    offers : tuple of Offer
        The first is what to store, where `advised` is not None.
    limits : Limits
    input_bytes : int, optional
        Of a raw vector.
    n_evaluated : int, optional
        How many units were evaluated.
    unit : str
        What they are: rows, pairs or queries.
    needed : int, optional
        How many would tell whether the share is kept, where those at hand do not.
    chance : float, optional
        The score of guessing, where neither the raw vectors nor the codes do better.
    n_known : int, optional
        How many of all queries ask for a document that the fit has learned from.
    on_new : bool
        Whether the choice is made on searches for new documents alone, and there were others.
    store : str
        The vector store whose forms the choice is among.

    Examples
    --------
    >>> point = Point(64, "int8", 64, 0.55)
    >>> choice = Choice("ndcg@10", RAW, 0.567, (Offer(point, "cheapest", 0.97, 0.95, 0.99),), Limits(0.95))
    >>> print(choice)
    Store 64 coordinates as int8: 64 bytes per vector.
    They keep 95 to 99 % of the raw vectors' ndcg@10: 0.550 of 0.567.
    The whole interval keeps 95 %.
    This holds for float32 queries. For a database add --store NAME.
    """

    FORMAT = "firstk.Choice/1"

    metric: Name
    reference: Name
    reference_score: float
    offers: tuple[Offer, ...]
    limits: Limits
    input_bytes: Count | None = None
    n_evaluated: Count | None = None
    unit: Name = "rows"
    needed: Count | None = None
    chance: float | None = None
    n_known: Count | None = None
    on_new: bool = False
    store: str = ""

    def __post_init__(self) -> None:
        check_fields(self)

    def get(self, *reasons: str) -> Offer | None:
        """Return the first offer with one of these reasons."""
        return next((offer for offer in self.offers if offer.reason in reasons), None)

    @property
    def own(self) -> Offer | None:
        """What to store of the encoder's own codes; None where none of them is within the limits."""
        return self.get("cheapest", "best")

    @property
    def advised(self) -> Offer | None:
        """What to do: a baseline that is better or simpler, where there is one, else `own`."""
        return self.get("better", "simpler") or self.own

    @property
    def point(self) -> Point:
        """The point of the encoder's own codes that is chosen; raises where there is none."""
        if self.own is None:
            from firstk.words.choice import out_of_reach

            raise InvalidInputError(out_of_reach(self))
        return self.own.point

    def threshold(
        self, cosine: float, encoder: PrefixEncoder, rows: MatrixLike, reference: MatrixLike | None = None
    ) -> Threshold:
        """Return the cut-off on what `point` stores that stands for a cosine of raw vectors, as `encoder.threshold`."""
        return encoder.threshold(cosine, self.point, rows, reference)

    @property
    def unsure(self) -> bool:
        """Whether the units cannot tell if the share is kept."""
        own, keep = self.own, self.limits.keep
        return own is not None and keep is not None and own.low is not None and own.low < keep - ROUNDING

    @property
    def n_new(self) -> int | None:
        """How many of the queries ask for new documents only; None where nothing was learned from judgements."""
        if self.n_known is None or self.n_evaluated is None:
            return None
        return self.n_evaluated if self.on_new else self.n_evaluated - self.n_known

    def __str__(self) -> str:
        from firstk.words.choice import answer

        return "\n".join(answer(self))

    def explain(self) -> str:
        """Return the rest of what there is to say, in words."""
        from firstk.words.choice import explanation

        return "\n".join(explanation(self))


# Objectives that are a baseline themselves, by the names that evaluations have, and which.
SOLVED = {"reconstruction": "PCA", "similarity, dot_products": "uncentred SVD"}
# Shown for comparison; never recommended.
CHANCE_CODE = "random dimensions"
# Draws on which the reference has less of its score than this say nothing about shares.
LEAST_REFERENCE = 0.1


def choose(table: Evaluation, limits: Limits) -> Choice:
    """Choose a point of an evaluation.

    Raises
    ------
    InvalidInputError
        If the evaluation has no point of the encoder's own within the limits, or if a share of its score means nothing.
        A share that no point keeps is no error: `Choice.own` is None then.
    """
    facts: dict[str, Any] = {
        "metric": table.metric,
        "limits": limits,
        "input_bytes": table.input_bytes,
        "n_evaluated": table.n_evaluated,
        "unit": table.unit,
        "n_known": table.n_known,
        "on_new": table.over_all is not None,
        "store": table.store,
    }
    if _no_better_than_chance(table):  # a share of such a score would be a share of luck
        return Choice(reference=RAW, reference_score=table.input_score or 0.0, offers=(), chance=table.chance, **facts)
    _check_within(table, limits)
    found, name, whole = evidence(table, limits.relative_to)
    if whole <= 0:
        if limits.keep is not None:
            way = "relative_to='best'" if name == RAW else "bytes_per_vector=..., which needs no share"
            raise InvalidInputError(
                f"A share of the {table.metric} of {name} means nothing here: it is {whole:.4g}, and not positive. "
                f"Use {way}."
            )
        found = replace(found, shares=np.array([point.score for point in table.points]), draws=found.draws[:0])
    # PCA and uncentred SVD are as simple as each other.
    as_simple = tuple(code for name, code in SOLVED.items() if table.label in SOLVED and name != table.label)
    rule = _Rule(found, limits, _shares_over_all(table, limits.relative_to), as_simple)
    own, others = (_allowed(table, limits, own=own) for own in (True, False))
    offers = rule.offers(own, others & (limits.k is None), simpler_codes(table.label))
    if whole <= 0:
        offers = [replace(offer, share=None, low=None, high=None) for offer in offers if offer.reason != "share"]
    chosen = next((offer for offer in offers if offer.reason in ("cheapest", "best")), None)
    return Choice(
        reference=name,
        reference_score=whole,
        offers=tuple(offers),
        needed=_needed(chosen, limits.keep, table.n_evaluated),
        **facts,
    )


# -- shares ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Evidence:
    """Shares of all points, as measured and on each draw.

    Attributes
    ----------
    points : tuple of Point
    shares : ndarray of shape (C,)
    draws : ndarray of shape (B, C)
        B = 0 where nothing was resampled.
    n : int, optional
        How many units were evaluated.
    whole : int, optional
        The point that shares are of, where it is one of them.
    most : float
        What no share exceeds: 1 where the raw vectors have the highest score there is, as about their own neighbors.
    reach : ndarray of shape (C,), optional
        How far above its share each point may be, where there are intervals and no draws.
    """

    points: tuple[Point, ...]
    shares: np.ndarray
    draws: np.ndarray
    n: int | None = None
    whole: int | None = None
    most: float = np.inf
    reach: np.ndarray | None = None

    @cached_property
    def noise(self) -> np.ndarray:
        """Standard deviation of each share over the draws.

        Units that all agree say no more than that fewer than three in n differ (the rule of three).
        """
        if not len(self.draws):
            return np.zeros(len(self.points))
        noise = np.maximum(self.draws.std(axis=0), 0.0 if self.n is None else 3 / self.n / DEVIATIONS)
        if self.whole is not None:
            noise[self.whole] = 0.0  # what shares are of
        return noise

    @cached_property
    def families(self) -> list[np.ndarray]:
        """Positions of each code in each precision, shortest first, up to the longest not clearly worse than the best.

        Beyond that one, coordinates do harm: they need not keep the share.
        """
        found: dict[tuple[str, str], list[int]] = {}
        for i, point in enumerate(self.points):
            found.setdefault((point.code, point.stored_as), []).append(i)
        families = []
        for places in found.values():
            family = np.array(sorted(places, key=lambda i: self.points[i].bytes))
            best = family[self.shares[family].argmax()]
            spread = np.zeros(len(family)) if self.reach is None else self.reach[family]
            if len(self.draws):
                spread = DEVIATIONS * (self.draws[:, [best]] - self.draws[:, family]).std(axis=0)
            behind = self.shares[best] - self.shares[family]
            families.append(family[: np.flatnonzero(behind <= spread + ROUNDING)[-1] + 1])
        return families

    def stable(self, shares: np.ndarray) -> np.ndarray:
        """Return the least share from each prefix on; `shares` has a last axis of length C."""
        least = shares.copy()
        for family in self.families:
            longest_first = family[::-1]
            least[..., longest_first] = np.minimum.accumulate(shares[..., longest_first], axis=-1)
        return least

    def ahead(self, one: int, other: int) -> Difference:
        """Return how far one point is ahead of another."""
        return Difference.of(self.shares[one] - self.shares[other], self.draws[:, one] - self.draws[:, other])


def evidence(table: Evaluation, relative_to: str = "auto") -> tuple[Evidence, str, float]:
    """Return the shares of an evaluation's points, what they are shares of, and its score."""
    points, scores = table.points, np.array([point.score for point in table.points])
    draws = np.empty((0, len(scores))) if table.draws is None else table.draws.array().T
    raw = next((i for i, point in enumerate(points) if point.raw), None)
    if relative_to == "auto":  # a share of nothing means nothing: raw vectors that score nothing are no reference
        relative_to = "best" if table.input_score is None or table.input_score <= 0 else "input"
    if relative_to == "input":
        if table.input_score is None:
            raise InvalidInputError(
                "This evaluation has no score of the raw vectors to take a share of. Use relative_to='best'."
            )
        whole, name = float(table.input_score), RAW
        wholes = np.full((len(draws), 1), whole) if raw is None else draws[:, [raw]]
    else:
        own = [
            i
            for i, point in enumerate(points)
            if point.own
            and point.precision == table.precisions[0]
            and (point.k in (table.supported or (point.k,)) or not point.is_prefix)
        ]
        place = max(own, key=lambda i: scores[i] if relative_to == "best" else points[i].bytes)
        name = f"{'the best prefix' if relative_to == 'best' else 'the full code'} ({points[place]})"
        whole, wholes, raw = float(scores[place]), draws[:, [place]], None
    # Draws on which the reference scores next to nothing have no shares; few units and a weak score make them.
    counted = wholes[:, 0] > LEAST_REFERENCE * whole
    draws, wholes = draws[counted], wholes[counted]
    perfect = name == RAW and whole == 1.0 and bool((wholes == 1.0).all()) and bool((scores <= 1.0).all())
    divisor = whole if whole > 0 else 1.0
    shares, drawn = scores / divisor, draws / np.where(wholes > 0, wholes, 1.0)
    return Evidence(points, shares, drawn, table.n_evaluated, raw, 1.0 if perfect else np.inf), name, whole


def _shares_over_all(table: Evaluation, relative_to: str) -> dict[int, float]:
    """Return the share of each point over all queries; nothing where the choice is on all of them already."""
    if table.over_all is None:
        return {}
    try:
        found, _, whole = evidence(table.over_all, relative_to)
    except InvalidInputError:
        return {}
    keys = [point.key for point in found.points] if whole > 0 else []
    shares = dict(zip(keys, found.shares.tolist(), strict=False))
    return {i: shares[point.key] for i, point in enumerate(table.points) if point.key in shares}


# -- the rule ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rule:
    """The choice among points, on the measured shares and on each draw."""

    found: Evidence
    limits: Limits
    # Shares over all queries, where the choice is on searches for new documents.
    over_all: Mapping[int, float] = field(default_factory=dict)
    # Codes that are no simpler than the encoder's own: worth a new fit only where they are clearly ahead.
    as_simple: tuple[str, ...] = ()

    @cached_property
    def _order(self) -> np.ndarray:
        """Positions from the cheapest on; of equally many bytes, the shortest first."""
        points = self.found.points
        return np.array(sorted(range(len(points)), key=lambda i: (points[i].bytes, points[i].k)))

    @cached_property
    def _size(self) -> np.ndarray:
        return np.array([point.bytes for point in self.found.points])

    def _chosen(self, shares: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Return the position that is chosen from each row of shares, shape (B, C); -1 where none is."""
        order = self._order[allowed[self._order]]
        if not len(order):
            return np.full(len(shares), -1)
        left, kept = shares[:, order], np.ones((len(shares), len(order)), dtype=bool)
        if self.limits.keep is not None:
            kept = self.found.stable(shares)[:, order] >= self.limits.keep - ROUNDING
            # Of those that take as many bytes as the cheapest, the best.
            size = self._size[order]
            left = np.where(kept & (size == size[kept.argmax(axis=1)][:, None]), left, -np.inf)
        # Equal up to rounding: the cheaper.
        place = order[(left >= left.max(axis=1, keepdims=True) - ROUNDING).argmax(axis=1)]
        return np.where(kept.any(axis=1), place, -1)

    def offers(self, own: np.ndarray, others: np.ndarray, simpler_codes: Sequence[str]) -> list[Offer]:
        """Return what is named, the advice first: of the encoder's `own` points, and of `others` within the limits."""
        found, points, limits = self.found, self.found.points, self.limits
        chosen, proven = self.choose(own), others
        if chosen is not None and limits.keep is None:
            # Codes as simple as the encoder's own are no advice unless they are clearly above the one chosen. Where a
            # share is to be kept, fewer bytes are what counts.
            proven = others & np.array(
                [point.code not in self.as_simple or found.ahead(i, chosen).clear for i, point in enumerate(points)]
            )
        better = self.choose(own | proven) if proven.any() else None
        if better is not None and not self.is_better(better, chosen, own, proven):
            better = None
        simpler = proven & np.isin([point.code for point in points], [RAW, *simpler_codes])
        level = None if chosen is None or better is not None else self.level(simpler, chosen)
        offers = [
            self.described(place, reason, own | proven)
            for reason, place in (("better", better), ("simpler", level))
            if place is not None
        ]
        if chosen is not None:
            offers.append(self.described(chosen, "best" if limits.keep is None else "cheapest", own))
            if offers[-1].low is not None and offers[-1].low < (limits.keep or 0.0) - ROUNDING:
                offers += self.safe(own, chosen)
            # The best of other codes within the limit of bytes, or in no more than the one chosen takes.
            most = None if limits.keep is not None else limits.bytes_per_vector
            within = np.flatnonzero(others & (self._size <= (most or self._size[chosen])))
            if not offers[0].point.code and len(within):
                ahead = found.ahead(rival := self.highest(within), chosen)
                reason = "ahead" if ahead.value > ROUNDING and not ahead.clear else "behind"
                offers.append(self.described(rival, reason))
        if offers and (bits := offers[0].point).precision == "binary" and not bits.form:
            alike = replace(bits, queries="binary").key  # the same bits, with queries that are bits as well
            offers += [self.described(i, "rounded") for i, point in enumerate(points) if point.key == alike]
        everything = own if own.any() else np.array([point.own for point in points])
        offers.append(self.described(self.highest(np.flatnonzero(everything)), "most"))
        for share in SHARES if limits.keep is not None else ():
            asked = replace(self, limits=Limits(share, precisions=limits.precisions))
            place = asked.choose(own)
            if place is not None and (offer := asked.described(place, "share", own)).noise <= 1 - share:
                offers.append(replace(offer, asked=share))
        return offers

    def choose(self, allowed: np.ndarray) -> int | None:
        """Return the position of the point that is chosen; None where none is."""
        place = int(self._chosen(self.found.shares[None], allowed)[0])
        return None if place < 0 else place

    def described(self, place: int, reason: str, allowed: np.ndarray | None = None) -> Offer:
        """Return a point with its share and interval; what was chosen among `allowed`, less what choosing adds."""
        found, optimism, noise = self.found, 0.0, float(self.found.noise[place])
        point, share, over_all = found.points[place], float(found.shares[place]), self.over_all.get(place)
        if not len(found.draws) or place == found.whole:
            return Offer(point, reason, share, over_all=over_all)
        again = np.empty(0, dtype=int) if allowed is None else self._chosen(found.draws, allowed)
        drawn = np.flatnonzero(again >= 0)
        if len(drawn):
            flattered = found.draws[drawn, again[drawn]] - found.shares[again[drawn]]
            optimism, noise = float(flattered.mean()), max(float(flattered.std()), noise)
        share = min(max(0.0, share - optimism), found.most)
        low, high = max(0.0, share - DEVIATIONS * noise), min(share + DEVIATIONS * noise, found.most)
        return Offer(point, reason, share, low, high, over_all)

    def highest(self, places: np.ndarray) -> int:
        """Return the first of the positions whose share is the highest, up to rounding."""
        shares = self.found.shares[places]
        return int(places[(shares >= shares.max() - ROUNDING).argmax()])

    def safe(self, allowed: np.ndarray, chosen: int) -> list[Offer]:
        """Return the best in the fewest bytes whose whole interval keeps the share; none if that is the one chosen.

        It is what these bytes alone would recommend, with the same interval.
        """
        if self.limits.keep is None or not len(self.found.draws):
            return []
        size, least = self._size, self.limits.keep - ROUNDING
        # Longer prefixes keep the share as well; that their intervals do, too, is not asked: coordinates may do harm.
        kept = self.found.stable(self.found.shares) >= least
        kept &= self.found.shares - DEVIATIONS * self.found.noise >= least
        within = replace(self, limits=replace(self.limits, keep=None, bytes_per_vector=int(size.max())))
        for most in np.unique(size[allowed & kept & (size >= size[chosen])]).tolist():
            among = allowed & (size <= most)
            place = within.choose(among)
            if place is None or not kept[place] or place == chosen:
                continue
            offer = within.described(place, "safe", among)
            if offer.low is None or offer.low >= least:
                return [offer]
        return []

    def is_better(self, other: int, chosen: int | None, own: np.ndarray, others: np.ndarray) -> bool:
        """Tell whether a point that is not the encoder's own is the better advice, luck of choosing taken off."""
        points, found = self.found.points, self.found
        if not points[other].code:
            return False
        if chosen is None:
            return True
        if self._behind_over_all(other, chosen):  # it has to be clearly ahead of our own best in no more bytes
            places = np.flatnonzero(own & (self._size <= self._size[other]))
            if len(places) and not found.ahead(other, self.highest(places)).clear:
                return False
        if self.limits.keep is not None:
            if points[other].bytes != points[chosen].bytes:
                return points[other].bytes < points[chosen].bytes
            # Both keep the share in as many bytes: another code is worth its trouble if it is clearly ahead.
            return found.ahead(other, chosen).clear
        others_share = self.described(other, "", own | others).share or 0.0
        return others_share > (self.described(chosen, "", own).share or 0.0) + ROUNDING

    def level(self, simpler: np.ndarray, chosen: int) -> int | None:
        """Return the best simpler code that takes no more bytes than the one chosen, and is level with it."""
        places = [
            i
            for i in np.flatnonzero(simpler & (self._size <= self._size[chosen])).tolist()
            if not self._behind_over_all(i, chosen) and self.found.ahead(i, chosen).level
        ]
        return self.highest(np.array(places)) if places else None

    def _behind_over_all(self, other: int, chosen: int) -> bool:
        """Tell whether a point keeps less than the chosen one over all queries, where that is not what was asked."""
        return {other, chosen} <= self.over_all.keys() and self.over_all[chosen] - self.over_all[other] > TOLERANCE


def simpler_codes(objective: str) -> tuple[str, ...]:
    """Return the baselines that are simpler than the code of an objective; a product quantizer is not.

    Examples
    --------
    >>> simpler_codes("fisher"), simpler_codes("similarity, dot_products")
    (('plain truncation', 'PCA', 'uncentred SVD'), ('plain truncation',))
    """
    return ("plain truncation",) if objective in SOLVED else ("plain truncation", *SOLVED.values())


def _allowed(table: Evaluation, limits: Limits, *, own: bool) -> np.ndarray:
    """Return which points are within the limits: the encoder's own, or those of baselines."""
    queries = "binary" if limits.binary_queries else "float32"

    def fits(point: Point) -> bool:
        # The order inside a block of a code does not matter to bits, which are given to all of it.
        free = table.supported is None or not point.is_prefix or limits.k is not None
        supported = point.code or free or point.k in (table.supported or ())
        return (
            bool(point.code) is not own
            and bool(supported)
            and bool(point.form) is bool(table.store)
            and (
                bool(point.form)
                or point.queries == queries
                or (own and limits.binary_queries and point.precision != "binary")
            )
            and point.code != CHANCE_CODE
            and (point.precision in limits.precisions or (point.precision not in PRECISIONS and limits.any_precision))
            and (limits.k is None or (point.is_prefix and point.k == limits.k))
            and (limits.bytes_per_vector is None or point.bytes <= limits.bytes_per_vector)
        )

    return np.array([fits(point) for point in table.points])


def _check_within(table: Evaluation, limits: Limits) -> None:
    """Raise InvalidInputError, with what there is, where no point of the encoder is within the limits' costs."""
    left = [
        o
        for o in table.own
        if (limits.k is None or (o.is_prefix and o.k == limits.k))
        and (o.precision in limits.precisions or (o.form and limits.any_precision))
        and bool(o.form) is bool(table.store)
    ]
    if not left:
        there = sorted({o.k for o in table.prefixes})
        raise InvalidInputError(
            f"The evaluation has no {'code' if limits.k is None else f'k = {limits.k}'} in "
            f"{' or '.join(limits.precisions)}: it has k = {', '.join(map(str, there))} in "
            f"{', '.join(table.precisions)}."
        )
    least, most = min(point.bytes for point in left), limits.bytes_per_vector
    if most is not None and least > most:
        raise InvalidInputError(f"No code fits in {most} bytes; the smallest takes {least} bytes. Allow more.")


def _needed(chosen: Offer | None, keep: float | None, n: int | None) -> int | None:
    """Return how many units would lift the lower end to the share; None where no number would, or it is there."""
    if chosen is None or chosen.share is None or keep is None or n is None:
        return None
    above = chosen.share - keep
    return int(np.ceil(n * (chosen.noise / max(above, 1e-3)) ** 2)) if 0 < above < chosen.noise < 1 else None


def _no_better_than_chance(table: Evaluation) -> bool:
    """Tell whether neither the raw vectors nor any code does better than guessing.

    Of many codes the luckiest is above chance, so all of them have to be so by more deviations than one alone.
    """
    if table.chance is None or table.chance >= 1 or table.draws is None:
        return False
    above = np.array([point.score for point in table.points]) - table.chance
    noise = table.draws.array().std(axis=1)
    raw = np.array([point.raw for point in table.points])
    return bool((above[raw] <= DEVIATIONS * noise[raw]).all() and (above <= OF_MANY * noise).all())
