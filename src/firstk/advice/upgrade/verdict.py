"""What to do about an upgrade, from its record: stay, translate, embed some rows anew, or all of them.

The translation in question is the one that the report recommends, of all methods and forms (`choosing`). It is
recommended over staying if the interval of its gain lies above zero: staying costs nothing, so what cannot be told from
it is not worth the move. Re-embedding is recommended where a budget is given that pays for it and
its gain over the best that costs nothing is clear; otherwise its gain and price are told, and where it clearly gains
over staying, the first line says so. Without judgements nothing is known of relevance, and nothing is recommended that
only relevance could decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from firstk._base.checks import bad_parameter, check_count, is_real
from firstk.advice.upgrade.records import (
    HELD_OUT,
    MIX,
    QUERIES,
    RE_EMBED,
    STAY,
    TRANSLATE,
    Estimate,
    Option,
    ScoredOption,
    UpgradeReport,
)

# What a verdict can say beside the kinds of options.
JUDGE = "judge"
# Queries from which on the interval of a difference is believed: of fewer, resampling makes it too narrow.
FEWEST_QUERIES = 20
# Gain by which prices are compared.
_POINT = 0.01
# Options that score so much less than the best are level with it: the cheapest is taken.
_LEVEL = 0.01


@dataclass(frozen=True)
class Terms:
    """What re-embedding may take, and whether staying is possible.

    Attributes
    ----------
    cost_per_million : float, optional
        Price of embedding a million rows with the new model, in any currency.
    budget_rows : int, optional
        How many rows may be embedded anew.
    retired : bool
        The old model can no longer embed queries.
    rows : int, optional
        Rows of the whole store, where the evaluated file is a part of it.
    """

    cost_per_million: float | None = None
    budget_rows: int | None = None
    retired: bool = False
    rows: int | None = None

    def __post_init__(self) -> None:
        price = self.cost_per_million
        if price is not None and (not is_real(price) or price < 0):
            raise bad_parameter("cost_per_million", "Terms", "a number that is not negative", price)
        for name in ("budget_rows", "rows"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, "Terms")

    def embedded(self, option: Option, rows: int) -> int:
        """Return how many rows an option embeds anew."""
        return round(option.share * (self.rows or rows))

    def price(self, option: Option, rows: int) -> float | None:
        """Return what an option costs; None where no price is known."""
        return None if self.cost_per_million is None else self.cost_per_million * self.embedded(option, rows) / 1e6


@dataclass(frozen=True)
class Verdict:
    """What to do, and why.

    Attributes
    ----------
    action : {"stay", "translate", "mix", "re-embed", "judge"}
    option : Option or None
        The option that is recommended; None where it is to judge some queries first.
    lines : tuple of str
        The first says what to do.
    """

    action: str
    option: Option | None
    lines: tuple[str, ...]


def verdict_of(report: UpgradeReport, terms: Terms | None = None) -> Verdict:
    """Return the verdict on an upgrade.

    Parameters
    ----------
    report : UpgradeReport
    terms : Terms, optional
        Prices and budgets; none, if not given.
    """
    terms = terms or Terms()
    free = _free(report, terms)
    paid = _affordable(report, terms, free)
    if paid is not None:
        free = _paid_verdict(report, terms, paid, free)
    first, *rest = free.lines
    if report.pairs == report.rows and (terms.rows or 0) <= report.rows:
        first = (
            f"Both models have embedded all {report.rows:,} rows: if they are your whole store, search the new "
            f"vectors. For a larger store of which they are a sample: {first}"
        )
    lines = (
        first,
        *rest,
        *_about_other_translations(report),
        *_about_re_embedding(report, terms, free),
        *_about_mixes(report),
        *_about_pairs(report, terms),
    )
    return Verdict(free.action, free.option, (*lines, *_about_rolling_back(free)))


# -- what costs nothing ----------------------------------------------------------------------------------------


def _free(report: UpgradeReport, terms: Terms) -> Verdict:
    """Compare staying with translating."""
    pool = report.pools[0]
    stay, translated = pool.find(STAY), pool.translation
    name = translating(report)
    finds = f"new queries find {_score(report, translated.score)}"
    if terms.retired:
        lost = "" if stay is None else f"; the old model's own queries had {_score(report, stay.score)}"
        line = f"{name}: the old model is retired, so staying is no option for queries. {_first_up(finds)}{lost}."
        return Verdict(TRANSLATE, translated.option, (line, *_fidelity_note(report)))
    if stay is None or translated.gain is None:
        line = f"{name}: the old model's queries were not given, so staying has no score. {_first_up(finds)}."
        return Verdict(TRANSLATE, translated.option, (line, *_fidelity_note(report)))
    if not report.judged:
        return _by_fidelity(report, stay, translated)
    gain = report.cross_fitted_gain or translated.gain
    figures = f"translating has {translated.score.value:.3f}, staying {stay.score.value:.3f}"
    if pool.queries < FEWEST_QUERIES:
        line = _staying(report, terms, f"{pool.queries} judged queries are too few to tell ({figures})")
        return Verdict(STAY, stay.option, (line,))
    honest = _cross_fitted_note(report, translated.gain)
    if gain.low > 0:
        line = f"{name}: it gains {_size(gain)} of {report.metric} over staying ({figures})."
        return Verdict(TRANSLATE, translated.option, (line, *honest))
    if gain.high < 0:
        line = _staying(report, terms, f"translating loses {_size(gain)} of {report.metric} ({figures})")
        return Verdict(STAY, stay.option, (line, *honest))
    why = (
        f"{pool.queries:,} queries show no clear difference in {report.metric} between translating and staying "
        f"({figures}; {_signed(gain)}), so translating is not worth the move"
    )
    return Verdict(STAY, stay.option, (_staying(report, terms, why), *honest))


def _staying(report: UpgradeReport, terms: Terms, why: str) -> str:
    """Return the first line where translating is not worth it: what re-embedding gains over staying belongs there."""
    everything = clearly_better(report)
    if everything is None or everything.gain is None:
        return f"Stay with the old model: {why}."
    gain = f"re-embedding all gains {_size(everything.gain)} over staying"
    if terms.budget_rows is None:
        return f"Stay or re-embed: {why}; {gain}."
    if terms.embedded(everything.option, report.rows) > terms.budget_rows:
        return f"Stay with the old model: {why}; {gain}, and is beyond the budget."
    return f"Without re-embedding, stay with the old model: {why}."


def clearly_better(report: UpgradeReport) -> ScoredOption | None:
    """Return re-embedding of all rows where judged queries show that it gains over staying; None elsewhere."""
    pool = report.pool(HELD_OUT)
    everything = None if pool is None else pool.find(RE_EMBED)
    if pool is None or everything is None or everything.gain is None:
        return None
    told = report.judged and pool.queries >= FEWEST_QUERIES
    return everything if told and everything.gain.low > 0 else None


def translating(report: UpgradeReport) -> str:
    """Return the recommended translation as something to do."""
    option = report.translation
    if option.kind == QUERIES:
        return f"Translate new queries into the old space ({option.method})"
    if option.k is None:
        return f"Translate the store into the new space ({option.method})"
    return f"Translate the store into a shared code ({option.method}, k = {option.k})"


def _cross_fitted_note(report: UpgradeReport, table: Estimate) -> tuple[str, ...]:
    """Say why a gain is not that of the table: nothing where it is."""
    if report.cross_fitted_gain is None:
        return ()
    return (
        "That gain is measured by halves: one half of the queries chooses the translation, the other half scores it. "
        f"On the queries that chose it, the translation has {_signed(table)}.",
    )


def _about_other_translations(report: UpgradeReport) -> tuple[str, ...]:
    """Say why the translation of the highest score is not the one that is recommended: nothing where it is."""
    best, taken = report.pools[0].best_translation, report.pools[0].translation
    if best is taken or best.over_translating is None or not best.over_translating.value > 0:
        return ()
    why = "which is not clearly more" if report.judged else "but neighbors do not say what is relevant"
    return (
        f"Of the translations, {best.option.form} scores highest, {why} ({_signed(best.over_translating)}): "
        f"{taken.option.form} was chosen by cross-validation.",
    )


def _by_fidelity(report: UpgradeReport, stay: ScoredOption, translated: ScoredOption) -> Verdict:
    """Say what neighbors tell: nothing on relevance, but whether a translation is further off than the old model."""
    assert translated.gain is not None
    figures = (
        f"the translation finds {100 * translated.score.value:.0f} % of the new model's ten nearest, the old model "
        f"{100 * stay.score.value:.0f} %"
    )
    if translated.gain.high < 0:
        line = f"Stay with the old model: a translation is further from the new model than the old one is; {figures}."
        return Verdict(STAY, stay.option, (line, *_fidelity_note(report)))
    line = f"Stay until some queries are judged: {figures}, and which of them finds what is relevant is not known."
    return Verdict(JUDGE, None, (line, *_fidelity_note(report)))


def _fidelity_note(report: UpgradeReport) -> tuple[str, ...]:
    if report.judged:
        return ()
    return (
        "This is fidelity to the new model, not relevance: translations that keep most neighbors have lost to staying. "
        "With --relevance the options are compared by your own judgements, with --label by labels of the rows.",
    )


# -- what costs something --------------------------------------------------------------------------------------


def _affordable(report: UpgradeReport, terms: Terms, free: Verdict) -> ScoredOption | None:
    """Return the cheapest that the budget pays for, that clearly gains and is level with the best of these."""
    pool = report.pool(HELD_OUT)
    if pool is None or pool.queries < FEWEST_QUERIES or terms.budget_rows is None or free.option is None:
        return None
    options = [
        one
        for one in pool.options
        if one.option.kind in (MIX, RE_EMBED)
        and terms.embedded(one.option, report.rows) <= terms.budget_rows
        and (gain := _gain_over(one, free)) is not None
        and gain.low > 0
    ]
    if not options:
        return None
    best = max(one.score.value for one in options)
    return min((one for one in options if best - one.score.value <= _LEVEL), key=lambda one: one.option.share)


def _gain_over(one: ScoredOption, free: Verdict) -> Estimate | None:
    return one.gain if free.action == STAY else one.over_translating


def _paid_verdict(report: UpgradeReport, terms: Terms, paid: ScoredOption, free: Verdict) -> Verdict:
    gain = _gain_over(paid, free)
    assert gain is not None
    than = "staying" if free.action == STAY else "translating"
    line = (
        f"{_first_up(paid.option.name)}: it gains {_size(gain)} of {report.metric} over {than} among held-out pairs, "
        f"and takes {_cost(report, terms, paid.option)}."
    )
    calibrated: tuple[str, ...] = ()
    if paid.option.kind == MIX and report.calibration is not None:
        offset, scale = report.calibration
        calibrated = (
            f"In one search, a cosine s with a row that was translated into the new space counts {offset:+.3f} "
            f"{scale:+.3f} s, one with a new row as it is.",
        )
    return Verdict(paid.option.kind, paid.option, (line, *calibrated, *free.lines))


def _about_re_embedding(report: UpgradeReport, terms: Terms, free: Verdict) -> tuple[str, ...]:
    """Say what re-embedding gains, and what it costs."""
    pool = report.pool(HELD_OUT)
    everything = None if pool is None else pool.find(RE_EMBED)
    if pool is None or everything is None:
        return ()
    stays = everything.gain is not None and free.action != TRANSLATE and not terms.retired
    named = f"translating ({pool.translation.option.form})"
    gain, than = (everything.gain, "staying") if stays else (everything.over_translating, named)
    assert gain is not None
    cost = _cost(report, terms, everything.option)
    if not report.judged:
        return (f"Re-embedding all takes {cost}, and finds the new model's neighbors by definition.",)
    if gain.low > 0 or gain.high < 0:
        said = f"{f'gains {_size(gain)} over' if gain.low > 0 else f'loses {_size(gain)} against'} {than}"
    else:
        said = f"shows no clear gain over {than} ({_signed(gain)})"
    lines = [
        f"Re-embedding all {said}, and takes {cost}{_price_of_point(report, terms, everything.option, gain)}. "
        f"(Measured among {pool.rows:,} pairs that were held out, by {pool.queries:,} queries: nobody has the whole "
        "new store yet.)"
    ]
    if terms.budget_rows is not None and free.action not in (MIX, RE_EMBED):
        lines.append(
            f"No part of the store that {terms.budget_rows:,} rows pay for clearly gains over "
            f"{'staying' if free.action == STAY else 'translating'}."
        )
    return tuple(lines)


def _about_mixes(report: UpgradeReport) -> tuple[str, ...]:
    """Say why a store of which a part is embedded anew scores less than one that is only translated."""
    pool = report.pool(HELD_OUT)
    if pool is None:
        return ()
    taken = pool.translation
    less = [one for one in pool.options if one.option.kind == MIX and one.score.value < taken.score.value]
    if not less:
        return ()
    *some, last = (f"{100 * one.option.share:.3g}" for one in less)
    shares = f"{', '.join(some)} or {last} %" if some else f"{last} %"
    base = pool.scored(Option(TRANSLATE, less[0].option.method))
    why = "scores of new and of translated rows are comparable in one search only roughly"
    if base is not None and base is not taken:
        why = (
            "one search needs all rows in one space, so the rest is translated into the new space, which alone has "
            f"{base.score.value:.3f}"
        )
    return (
        f"Re-embedding the best {shares} scores less than translating alone ({taken.option.form}, "
        f"{taken.score.value:.3f}): {why}.",
    )


def _cost(report: UpgradeReport, terms: Terms, option: Option) -> str:
    price = terms.price(option, report.rows)
    rows = f"{terms.embedded(option, report.rows):,} rows"
    return rows if price is None else f"{rows}, a price of {money(price)}"


def _price_of_point(report: UpgradeReport, terms: Terms, option: Option, gain: Estimate) -> str:
    price = terms.price(option, report.rows)
    if price is None or gain.low <= 0:
        return ""
    return f": {money(price * _POINT / gain.value)} for each {_POINT:g} of {report.metric}"


# -- how sure, and how back ------------------------------------------------------------------------------------


def _about_pairs(report: UpgradeReport, terms: Terms) -> tuple[str, ...]:
    """Say whether more pairs would help the translation."""
    if len(report.learning) < 2:
        return ()
    before, last = report.learning[-2:]
    assert last.step is not None
    if last.step.low > 0:
        wanted = min(2 * last.pairs, terms.rows or report.rows)
        more = f"try {wanted:,}"
        if wanted <= report.pairs:  # some were held out, to score the others
            more = f"the one that is saved is fitted on all {report.pairs:,} pairs"
        text = (
            f"More pairs help: from {before.pairs:,} to {last.pairs:,} the translation gained {_size(last.step)}; "
            f"{more}."
        )
    elif last.step.high < _POINT:
        text = f"{last.pairs:,} pairs are enough: the last doubling gained {_signed(last.step)}."
    else:
        text = f"Whether {last.pairs:,} pairs are enough cannot be told: the last doubling gained {_signed(last.step)}."
    return (text,)


def _about_rolling_back(free: Verdict) -> tuple[str, ...]:
    if free.action not in (TRANSLATE, MIX, RE_EMBED):
        return ()
    return ("To roll back, rows that were embedded by the new model alone are translated into the old space.",)


# -- words -----------------------------------------------------------------------------------------------------


def money(amount: float) -> str:
    """Return an amount as text, without a currency.

    Examples
    --------
    >>> money(1234.5), money(50.0), money(0.123)
    ('1,234', '50', '0.12')
    """
    return f"{amount:,.0f}" if amount >= 100 or amount == round(amount) else f"{amount:,.2f}"


def _score(report: UpgradeReport, score: Estimate) -> str:
    return f"{score.value:.3f} of {report.metric} ({score.low:.3f} to {score.high:.3f})"


def _size(gain: Estimate) -> str:
    """Return the size of a gain or loss with the ends of its interval, the smaller one first."""
    ends = sorted((abs(gain.low), abs(gain.high)))
    return f"{abs(gain.value):.3f} ({ends[0]:.3f} to {ends[1]:.3f})"


def _signed(gain: Estimate) -> str:
    return f"{gain.value:+.3f}, {gain.low:+.3f} to {gain.high:+.3f}"


def _first_up(text: str) -> str:
    return text[0].upper() + text[1:]
