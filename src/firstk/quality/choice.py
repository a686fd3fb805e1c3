"""One way to store a vector, and the choice among many: records of points, limits, offers and a choice.

How a choice is made is in `choose`; what it says in `words`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_int
from firstk._base.json_records import Allowed, Count, JsonRecord, Name, check_fields
from firstk.data.precision import PRECISIONS
from firstk.data.stores import FORMULAS
from firstk.exceptions import InvalidInputError
from firstk.quality.paired import ROUNDING
from firstk.words.text import EMBEDDED, PRODUCT_QUANTIZER, RAW

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
