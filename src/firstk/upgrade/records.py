"""What is known of an upgrade: each option with its score, its gain and what it takes. Frozen records of plain values.

They are saved with the alignment as upgrade.json, and read anywhere, without the vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from firstk._base.json_records import Allowed, Count, JsonRecord, Name, Share, check_fields
from firstk.quality import Difference

FILE = "upgrade.json"
# What can be done, in the order in which tables show it.
STAY, TRANSLATE, QUERIES, MIX, RE_EMBED = "stay", "translate", "translate queries", "mix", "re-embed"
# The rows that are searched: all of the store, or pairs that no alignment was fitted on.
STORE, HELD_OUT = "store", "held out"

Kind = Annotated[
    str,
    Allowed(
        "stay, translate, translate queries, mix or re-embed",
        lambda kind: kind in (STAY, TRANSLATE, QUERIES, MIX, RE_EMBED),
    ),
]
Where = Annotated[str, Allowed("'store' or 'held out'", lambda name: name in (STORE, HELD_OUT))]


@dataclass(frozen=True)
class Option:
    """Something that can be done.

    Attributes
    ----------
    kind : {"stay", "translate", "translate queries", "mix", "re-embed"}
        Search the old store by the old model; the translated store by the new model; the old store by translated
        queries; a store of which `share` is embedded anew and the rest translated; a store embedded anew.
    method : str
        The method of the alignment; "" where there is none.
    k : int or None
        Coordinates of the shared code; None where the store is translated into the new model's space.
    share : float
        Share of the rows that are embedded anew.
    """

    kind: Kind
    method: str = ""
    k: int | None = None
    share: Share = 0.0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def translates(self) -> bool:
        """Whether it translates the store or the queries, and embeds nothing."""
        return self.kind in (TRANSLATE, QUERIES)

    @property
    def form(self) -> str:
        """The method of a translation, and what it translates into."""
        if self.kind == QUERIES:
            return f"{self.method}, queries into the old space"
        return f"{self.method}, into the new space" if self.k is None else f"{self.method}, k = {self.k}"

    @property
    def name(self) -> str:
        """What a table calls it."""
        if self.kind == MIX:
            return f"re-embed the best {100 * self.share:.3g} %, translate the rest"
        whole = {STAY: "stay with the old model", RE_EMBED: "re-embed all"}
        return whole.get(self.kind, f"translate, {self.form}")


@dataclass(frozen=True)
class ScoredOption:
    """An option and its score over the searches of a pool.

    Attributes
    ----------
    option : Option
    score : Difference
        From a score of nothing.
    gain : Difference or None
        What it scores more than staying, query by query; None for staying, and where staying has no score.
    over_translating : Difference or None
        What it scores more than the recommended translation; None for that one.
    over_larger : tuple of Difference
        Of an option that embeds rows anew: what it scores more than each that embeds more of them, in their order.
    """

    option: Option
    score: Difference
    gain: Difference | None = None
    over_translating: Difference | None = None
    over_larger: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Pool:
    """Rows that are searched, by the same queries for every option.

    Attributes
    ----------
    name : {"store", "held out"}
    rows, queries : int
    pairs : int
        How many pairs the alignments were fitted on.
    options : tuple of ScoredOption
    """

    name: Where
    rows: Count
    queries: Count
    pairs: Count
    options: tuple[ScoredOption, ...]

    def __post_init__(self) -> None:
        check_fields(self)

    def find(self, kind: str) -> ScoredOption | None:
        """Return the first option of a kind."""
        return next((one for one in self.options if one.option.kind == kind), None)

    @property
    def translation(self) -> ScoredOption:
        """The recommended translation: the one that others are compared with."""
        return next(one for one in self.options if one.option.translates and one.over_translating is None)

    @property
    def best_translation(self) -> ScoredOption:
        """The translation of the highest score."""
        return max((one for one in self.options if one.option.translates), key=lambda one: one.score.value)

    @property
    def methods(self) -> list[ScoredOption]:
        """Staying, one translation of each method, the recommended one first, and all that embeds rows anew.

        Of other methods than the recommended one, it is the form that scores highest.
        """
        best = {self.translation.option.method: self.translation}
        for one in sorted(self.options, key=lambda one: -one.score.value):
            if one.option.translates:
                best.setdefault(one.option.method, one)
        first = [one for one in self.options if one.option.kind == STAY]
        return [*first, *best.values(), *(one for one in self.options if one.option.share)]


@dataclass(frozen=True)
class PairsPoint:
    """What the translation scores when it is fitted on fewer pairs; `step` is its gain over the point before."""

    pairs: Count
    score: Difference
    step: Difference | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class UpgradeReport(JsonRecord):
    """All that is known of an upgrade.

    Attributes
    ----------
    metric : str
        What scores are.
    judged : bool
        They are of relevance that a user has judged; otherwise of fidelity: how many of the new model's neighbors are
        found.
    rows, pairs : int
        Rows of the store, and how many of them both models have embedded.
    widths : (int, int)
        Numbers of an old and of a new vector.
    method, reason : str
        The method of the recommended translation, and why it is recommended.
    translation : Option
        The recommended translation, method and form.
    cross_fitted_gain : Difference or None
        What translating gains over staying, each half of the queries scored by the translation that the other half
        prefers; None where both halves prefer the recommended one, whose own gain counts, or nothing was judged.
    pools : tuple of Pool
        The first is the one by which staying and translating are compared.
    learning : tuple of PairsPoint
        The translation over the number of pairs, on the first pool.
    re_embedding : bool
        Whether re-embedding was to be scored; it has no pool where no held-out pair answers a query.
    calibration : (float, float) or None
        Offset and scale by which scores of rows that are translated into the new space become comparable with those
        of rows embedded anew; None where there was no mix.
    order_gain : Difference or None
        What the order of re-embedding gains over a random one, on average over the shares.
    """

    FORMAT: ClassVar[str] = "firstk.Upgrade/1"
    AGAIN: ClassVar[str] = "run 'firstk align' again"

    metric: Name
    judged: bool
    rows: Count
    pairs: Count
    widths: tuple[int, int]
    method: Name
    reason: str
    translation: Option
    cross_fitted_gain: Difference | None
    pools: tuple[Pool, ...]
    learning: tuple[PairsPoint, ...] = ()
    re_embedding: bool = True
    calibration: tuple[float, float] | None = None
    order_gain: Difference | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def complete(self) -> bool:
        """Whether both models have embedded every row of the file."""
        return self.pairs == self.rows

    def pool(self, name: str) -> Pool | None:
        """Return the pool of that name."""
        return next((pool for pool in self.pools if pool.name == name), None)

    @property
    def re_embedded(self) -> ScoredOption | None:
        """Re-embedding of all rows, among held-out pairs; None where it has no score."""
        pool = self.pool(HELD_OUT)
        return None if pool is None else pool.find(RE_EMBED)
