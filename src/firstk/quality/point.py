"""One way to store a vector: whose code, how many coordinates, in which precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from firstk._base.checks import check_choice
from firstk._base.json_records import Allowed, Count, NonNegative, check_fields
from firstk.data.precision import PRECISIONS
from firstk.data.stores import FORMULAS

# Codes that are not the encoder's own, beside baselines by name.
RAW = "raw vectors"
PRODUCT_QUANTIZER = "product quantizer"
# Bytes that can be cut anywhere: they have no prefix length.
EMBEDDED = "embedded"
_ORDER = (*dict.fromkeys((*PRECISIONS, PRODUCT_QUANTIZER, *FORMULAS)),)


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
    seconds : float, optional
        Of one exact search, where that was measured.
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
    seconds: NonNegative | None = None
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
