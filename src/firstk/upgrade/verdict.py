"""What to do about an upgrade, from its record: stay, translate, embed some rows anew or all of them, or find out more.

The translation in question is the one that the report recommends, of all methods and forms. It is recommended over
staying if its gain is clear: staying costs nothing, so what cannot be told from it is not worth the move. Re-embedding
is recommended where a budget is given that pays for it and its gain over the best that costs nothing is clear. Where
the evidence leaves open whether either gains more than the tolerance, the verdict is "undecided", with how many more
rows or queries would decide it. Without judgements nothing is known of relevance, and nothing is recommended that only
relevance could decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from firstk._base.checks import check_count
from firstk.quality import ROUNDING, TOLERANCE, Difference
from firstk.upgrade.records import HELD_OUT, STAY, TRANSLATE, Option, ScoredOption, UpgradeReport

# What a verdict can say beside the kinds of options.
JUDGE, UNDECIDED = "judge", "undecided"
# Queries from which on the interval of a difference is believed: of fewer, resampling makes it too narrow.
FEWEST_QUERIES = 20


@dataclass(frozen=True)
class Terms:
    """What re-embedding may take, and whether staying is possible.

    Attributes
    ----------
    budget_rows : int, optional
        How many rows may be embedded anew.
    retired : bool
        The old model can no longer embed queries.
    rows : int, optional
        Rows of the whole store, where the evaluated file is a part of it.
    """

    budget_rows: int | None = None
    retired: bool = False
    rows: int | None = None

    def __post_init__(self) -> None:
        for name in ("budget_rows", "rows"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, "Terms")

    def embedded(self, option: Option, rows: int) -> int:
        """Return how many rows an option embeds anew."""
        return round(option.share * (self.rows or rows))

    def pays(self, option: Option, rows: int) -> bool:
        """Whether a budget was given that pays for an option."""
        return self.budget_rows is not None and self.embedded(option, rows) <= self.budget_rows


@dataclass(frozen=True)
class Verdict:
    """What to do, and why.

    Attributes
    ----------
    action : {"stay", "translate", "mix", "re-embed", "judge", "undecided"}
    option : Option or None
        The option that is recommended; staying, until more is known, where nothing is decided; None where it is to
        judge some queries first.
    reason : str
        "retired": the old model cannot embed queries. "no queries": staying has no score. "few": too few queries are
        judged. "gains", "loses": translating does so clearly. "unclear": it does neither. "budget": a budget pays for
        what clearly gains. "fidelity": only neighbors are known. "further": a translation is further from the new
        model than the old one is.
    report : UpgradeReport
    terms : Terms
    gain : Difference or None
        Of translating over staying.
    more_rows, more_queries : int or None
        How many more rows to embed, and queries to judge, would decide what is undecided.
    free : Verdict or None
        What to do if nothing is to be embedded, where a budget pays for more.
    """

    action: str
    option: Option | None
    reason: str
    report: UpgradeReport
    terms: Terms
    gain: Difference | None = None
    more_rows: int | None = None
    more_queries: int | None = None
    free: Verdict | None = None

    @property
    def stays(self) -> bool:
        """Whether, of what costs nothing, staying is recommended."""
        option = (self.free or self).option
        return option is not None and option.kind == STAY

    @property
    def complete(self) -> bool:
        """Whether both models have embedded all rows, and no larger store is known of."""
        return self.report.complete and (self.terms.rows or 0) <= self.report.rows

    def over(self, one: ScoredOption) -> Difference | None:
        """Return what an option gains over the recommended one of those that cost nothing."""
        return one.gain if self.stays else one.over_translating

    def __str__(self) -> str:
        from firstk.upgrade.words import answer

        return "\n".join(answer(self))

    def explain(self) -> str:
        """Return the rest of what there is to say, in words."""
        from firstk.upgrade.words import explanation

        return "\n".join(explanation(self))


def verdict_of(report: UpgradeReport, terms: Terms | None = None) -> Verdict:
    """Return the verdict on an upgrade.

    Parameters
    ----------
    report : UpgradeReport
    terms : Terms, optional
        Budgets; none, if not given.
    """
    free = _free(report, terms or Terms())
    paid = _affordable(free)
    return free if paid is None else replace(free, action=paid.kind, option=paid, reason="budget", free=free)


def _free(report: UpgradeReport, terms: Terms) -> Verdict:
    """Compare what costs nothing: staying with translating."""
    pool = report.pools[0]
    stay, translated = pool.find(STAY), pool.translation
    gain = report.cross_fitted_gain or translated.gain
    translate = Verdict(TRANSLATE, translated.option, "gains", report, terms, gain)
    if terms.retired or stay is None or gain is None:
        return replace(translate, reason="retired" if terms.retired else "no queries")
    staying = replace(translate, action=STAY, option=stay.option)
    if not report.judged:
        judge = replace(staying, action=JUDGE, option=None, reason="fidelity")
        return replace(staying, reason="further") if loses(gain) else judge
    if pool.queries < FEWEST_QUERIES:
        return replace(staying, action=UNDECIDED, reason="few", more_queries=FEWEST_QUERIES - pool.queries)
    if gain.clear:
        return translate
    staying = replace(staying, reason="loses" if loses(gain) else "unclear")
    return staying if clearly_better(report) is not None else _decided(staying)


def _decided(staying: Verdict) -> Verdict:
    """Return "undecided" in place of "stay" where the evidence leaves open whether something else gains.

    The half width of an interval falls with the root of the number of queries. It has to fall to the difference, or to
    the tolerance where that is smaller, for the interval to tell; held-out pairs answer the more queries the more there
    are of them.
    """
    report, gain = staying.report, staying.gain
    assert gain is not None
    pool, everything = report.pool(HELD_OUT), report.re_embedded
    more = None if everything is None else everything.gain
    rows = queries = None
    if is_open(gain):
        queries = ceil(report.pools[0].queries * (_times(gain) - 1))
    if report.re_embedding and more is None:
        rows = report.pairs  # as many again: none of those that were held out answers a query
    elif pool is not None and more is not None and (pool.queries < FEWEST_QUERIES or is_open(more)):
        rows = ceil(report.pairs * (max(_times(more), FEWEST_QUERIES / pool.queries) - 1))
    if rows is None and queries is None:
        return staying
    if rows is not None and report.pairs + rows > (staying.terms.rows or report.rows):  # more than there are
        most = report.pools[0].queries * rows / report.pairs
        rows, queries = None, max(queries or 0, ceil(most))
    return replace(staying, action=UNDECIDED, more_rows=rows, more_queries=queries)


def loses(gain: Difference) -> bool:
    """Tell whether a gain is below 0 beyond its noise."""
    return gain.high < -ROUNDING


def is_open(gain: Difference) -> bool:
    """Tell whether a gain is neither clear nor known to be no larger than the tolerance."""
    return not gain.clear and not loses(gain) and gain.high > TOLERANCE + ROUNDING


def _times(gain: Difference) -> float:
    """Return how many times as many queries would tell a difference from none."""
    return max(1.0, ((gain.high - gain.low) / 2 / max(abs(gain.value), TOLERANCE)) ** 2)


def clearly_better(report: UpgradeReport) -> ScoredOption | None:
    """Return re-embedding of all rows where judged queries show that it gains over staying; None elsewhere."""
    pool, everything = report.pool(HELD_OUT), report.re_embedded
    if pool is None or everything is None or everything.gain is None:
        return None
    told = report.judged and pool.queries >= FEWEST_QUERIES
    return everything if told and everything.gain.clear else None


def _affordable(free: Verdict) -> Option | None:
    """Return the cheapest that the budget pays for, that clearly gains and is level with the best of these."""
    report = free.report
    pool = report.pool(HELD_OUT)
    if pool is None or pool.queries < FEWEST_QUERIES or free.option is None:
        return None
    embedding = [one for one in pool.options if one.option.share]
    paid = [
        one
        for one in embedding
        if free.terms.pays(one.option, report.rows) and (gain := free.over(one)) is not None and gain.clear
    ]
    if not paid:
        return None
    best = embedding.index(max(paid, key=lambda one: one.score.value))
    cheaper = (
        one for one in paid if (place := embedding.index(one)) < best and one.over_larger[best - place - 1].level
    )
    return next(cheaper, embedding[best]).option
