"""An upgrade in words: what to do in four lines, and the rest for those who ask."""

from __future__ import annotations

from collections.abc import Iterator

from firstk.quality import CONFIDENCE, TOLERANCE, Difference
from firstk.upgrade.records import HELD_OUT, MIX, QUERIES, RE_EMBED, STAY, STORE, TRANSLATE, Option, Pool, UpgradeReport
from firstk.upgrade.verdict import FEWEST_QUERIES, JUDGE, UNDECIDED, Verdict, clearly_better, is_open, loses
from firstk.words import number_of, rounded_up

INTERVAL = f"{100 * CONFIDENCE:g} % interval"


def heading(verdict: Verdict) -> str:
    """Return what to do as a title."""
    if verdict.action == STAY and verdict.terms.budget_rows is None and clearly_better(verdict.report) is not None:
        return "Stay with the old model, or re-embed everything"
    if verdict.option is not None and verdict.option.kind == QUERIES:
        return "Translate new queries"
    return {
        STAY: "Stay with the old model",
        TRANSLATE: "Translate the store",
        MIX: "Re-embed a part, translate the rest",
        RE_EMBED: "Re-embed everything",
        JUDGE: "Find out what is relevant first",
        UNDECIDED: "Undecided",
    }[verdict.action]


def answer(verdict: Verdict) -> list[str]:
    """Return what to do and why, and what re-embedding gains: three lines at most."""
    lines = [_what(verdict)]
    if verdict.free is not None:
        lines.append(_what(verdict.free))
    if not verdict.complete:
        return [*lines, *([] if verdict.free is not None else _about_re_embedding(verdict))]
    # Both models have embedded the file. If it is the whole store, re-embedding is done.
    report, everything = verdict.report, verdict.report.re_embedded
    gain = None if everything is None else everything.gain
    if gain is None or not report.judged:
        whole = "search the new vectors: nothing has to be translated."
    elif gain.clear:
        whole = f"search the new vectors: they gain {_size(gain)} of {report.metric} over staying."
    elif loses(gain):
        whole = f"stay with the old vectors: the new ones lose {_size(gain)} of {report.metric}."
    else:
        whole = f"search either: their {report.metric} shows no clear difference ({_signed(gain)})."
    start = f"Both models have embedded all {report.rows:,} rows. If they are your whole store,"
    return [f"{start} {whole}", f"If they are a sample of a larger store: {lines[0]}", *lines[1:]]


def explanation(verdict: Verdict) -> Iterator[str]:
    """Yield what else there is to say: other options, how scores were measured, what more pairs would bring."""
    report, terms = verdict.report, verdict.terms
    first, held = report.pools[0], report.pool(HELD_OUT)
    if verdict.free is not None or verdict.complete:
        yield from _about_re_embedding(verdict)
    # Budgets.
    if verdict.action == MIX and report.calibration is not None:
        offset, scale = report.calibration
        yield (
            f"In one search, a cosine s with a row that was translated into the new space counts {offset:+.3f} "
            f"{scale:+.3f} s, one with a new row as it is."
        )
    if terms.budget_rows is not None and verdict.free is None and report.judged and report.re_embedded is not None:
        yield f"No part of the store that {terms.budget_rows:,} rows pay for clearly gains over {_free(verdict)}."
    # Other translations: a gain that is not that of the table, and a score that is higher.
    if report.cross_fitted_gain is not None and first.translation.gain is not None:
        yield (
            "That gain is measured by halves: one half of the queries chooses the translation, the other half scores "
            f"it. On the queries that chose it, the translation has {_signed(first.translation.gain)}."
        )
    best, taken = first.best_translation, first.translation
    if best.over_translating is not None and best.over_translating.value > 0:
        why = "which is not clearly more" if report.judged else "but neighbors do not say what is relevant"
        yield (
            f"Of the translations, {best.option.form} scores highest, {why} ({_signed(best.over_translating)}): "
            f"{taken.option.form} was chosen by cross-validation."
        )
    # Why a store of which a part is embedded anew scores less than one that is only translated.
    alone = None if held is None else held.translation
    mixes = () if held is None else (one for one in held.options if one.option.kind == MIX)
    if alone is not None and (less := [one for one in mixes if one.score.value < alone.score.value]):
        *some, last = (f"{100 * one.option.share:.3g}" for one in less)
        shares = f"{', '.join(some)} or {last} %" if some else f"{last} %"
        wanted = Option(TRANSLATE, less[0].option.method)
        base = next((one for one in held.options if one.option == wanted and one is not alone), None)  # type: ignore[union-attr]
        why = "scores of new and of translated rows are comparable in one search only roughly"
        if base is not None:
            why = (
                "a search cannot mix spaces, so the remaining rows are translated into the new space, which alone has "
                f"{base.score.value:.3f}"
            )
        yield (
            f"Re-embedding the best {shares} scores less than translating alone ({alone.option.form}, "
            f"{alone.score.value:.3f}): {why}."
        )
    # Whether more pairs would help the translation.
    if len(report.learning) > 1:
        before, point = report.learning[-2:]
        assert point.step is not None
        if point.step.clear:
            most = min(2 * point.pairs, terms.rows or report.rows)
            more = f"try {most:,}"
            if most <= report.pairs:  # some were held out, to score the others
                more = f"the one that is saved is fitted on all {report.pairs:,} pairs"
            step = f"from {before.pairs:,} to {point.pairs:,} the translation gained {_size(point.step)}"
            yield f"More pairs help: {step}; {more}."
        elif point.step.high < TOLERANCE:
            yield f"{point.pairs:,} pairs are enough: the last doubling gained {_signed(point.step)}."
        else:
            told = "are enough cannot be told: the last doubling gained"
            yield f"Whether {point.pairs:,} pairs {told} {_signed(point.step)}."
    if verdict.action in (TRANSLATE, MIX, RE_EMBED):
        yield "To roll back, translate the rows that the new model alone has embedded into the old space."
    yield from notes(report)


# -- what to do ------------------------------------------------------------------------------------------------


def _what(verdict: Verdict) -> str:
    report, gain = verdict.report, verdict.gain
    pool, held, all_anew = report.pools[0], report.pool(HELD_OUT), report.re_embedded
    stay, translated, option = pool.find(STAY), pool.translation, report.translation
    translating = f"Translate the store into a shared code ({option.method}, k = {option.k})"
    if option.kind == QUERIES:
        translating = f"Translate new queries into the old space ({option.method})"
    elif option.k is None:
        translating = f"Translate the store into the new space ({option.method})"
    score = f"new queries find {_score(report, translated.score)}"
    if verdict.reason == "retired":
        lost = "" if stay is None else f"; the old model's own queries had {_score(report, stay.score)}"
        return f"{translating}: the old model is retired, and {score}{lost}."
    if verdict.reason == "no queries":
        return f"{translating}: the old model's queries were not given, so staying has no score; {score}."
    if verdict.reason == "budget":
        assert verdict.option is not None
        assert held is not None
        ahead = verdict.over(next(one for one in held.options if one.option == verdict.option))
        assert ahead is not None
        return (
            f"{_first_up(verdict.option.name)}: it gains {_size(ahead)} of {report.metric} over {_free(verdict)} among "
            f"held-out pairs, and takes {_cost(verdict, verdict.option)}."
        )
    assert stay is not None
    assert gain is not None
    if not report.judged:
        found = (
            f"the translation finds {100 * translated.score.value:.0f} % of the new model's ten nearest, the old model "
            f"{100 * stay.score.value:.0f} %: fidelity to the new model, not relevance"
        )
        if verdict.action == JUDGE:
            return f"Stay until some queries are judged (--relevance), or rows are labelled (--label); {found}."
        return f"Stay with the old model: a translation is further from the new model than the old one is; {found}."
    figures = f"translating has {translated.score.value:.3f}, staying {stay.score.value:.3f}; {_queries(pool)}"
    if verdict.action == UNDECIDED:
        # What would decide, and what is open.
        wanted = []
        if verdict.more_rows is not None:
            wanted.append(f"embed {number_of(rounded_up(verdict.more_rows), 'more row')}")
        if verdict.more_queries is not None:
            wanted.append(f"judge {number_of(rounded_up(verdict.more_queries), 'more query', 'more queries')}")
        what = f"Undecided: {' and '.join(wanted)}, and stay until then."
        if verdict.reason == "few":
            return f"{what} {_too_few(pool)} to tell ({figures})."
        said = [f"translating gains nothing ({_signed(gain)}; {figures})"]
        if loses(gain):
            said = [f"translating loses {_size(gain)} of {report.metric} ({figures})"]
        elif is_open(gain):
            said = [f"whether translating gains is open: {_signed(gain)} of {report.metric} ({figures})"]
        anew = None if all_anew is None else all_anew.gain
        if report.re_embedding and anew is None:
            said.append("re-embedding has no score, because no held-out row answers a query")
        elif held is not None and anew is not None and (held.queries < FEWEST_QUERIES or is_open(anew)):
            said.append(f"whether re-embedding gains is open: {_signed(anew)} ({_queries(held)})")
        return f"{what} {_first_up('; '.join(said))}."
    if verdict.action == TRANSLATE:
        return f"{translating}: it gains {_size(gain)} of {report.metric} over staying ({figures})."
    why = f"translating shows no clear gain in {report.metric} ({_signed(gain)}; {figures})"
    if verdict.reason == "loses":
        why = f"translating loses {_size(gain)} of {report.metric} ({figures})"
    better = clearly_better(report)
    if better is None or better.gain is None:
        return f"Stay with the old model: {why}."
    more = f"re-embedding all gains {_size(better.gain)} over staying"
    if verdict.terms.budget_rows is None:
        return f"Stay or re-embed: {why}; {more}."
    if not verdict.terms.pays(better.option, report.rows):
        return f"Stay with the old model: {why}; {more}, and is beyond the budget."
    return f"Without re-embedding, stay with the old model: {why}."


def _free(verdict: Verdict) -> str:
    return "staying" if verdict.stays else "translating"


def _about_re_embedding(verdict: Verdict) -> Iterator[str]:
    """Say what re-embedding gains, and what it takes."""
    report, everything = verdict.report, verdict.report.re_embedded
    pool = report.pool(HELD_OUT)
    if pool is None or everything is None:
        return
    cost = _cost(verdict, everything.option)
    if not report.judged:
        yield f"Re-embedding all takes {cost}, and finds the new model's neighbors by definition."
        return
    stays = everything.gain is not None and (verdict.free or verdict).action != TRANSLATE
    than = "staying" if stays else f"translating ({pool.translation.option.form})"
    gain = everything.gain if stays else everything.over_translating
    assert gain is not None
    said = f"shows no clear gain over {than} ({_signed(gain)})"
    if gain.clear:
        said = f"gains {_size(gain)} over {than}"
    elif loses(gain):
        said = f"loses {_size(gain)} against {than}"
    yield f"Re-embedding all {said}, and takes {cost} ({_queries(pool)} among {pool.rows:,} held-out pairs)."


def _cost(verdict: Verdict, option: Option) -> str:
    return number_of(verdict.terms.embedded(option, verdict.report.rows), "row")


def notes(report: UpgradeReport) -> Iterator[str]:
    """Yield what is to be known of how scores came about."""
    if report.complete:
        yield (
            f"Both models have embedded all {report.rows:,} rows, so they are taken for a sample of a store: "
            "alignments are fitted on two thirds of them, and everything is scored among the others."
        )
    if report.re_embedding and report.re_embedded is None:
        yield (
            "No held-out pair is relevant to a query, so re-embedding could not be scored: embed the rows that are "
            "judged with the new model, too."
        )
    for pool in report.pools:
        if pool.queries < FEWEST_QUERIES:
            among = f"among {pool.rows:,} rows ({pool.name})"
            yield f"{_too_few(pool, among)} for a verdict, which takes {FEWEST_QUERIES}."
    if not report.judged:
        yield (
            "This is fidelity to the new model, not relevance: translations that keep most neighbors have lost to "
            "staying. With --relevance the options are compared by your own judgements, with --label by labels."
        )
    order = report.order_gain
    if order is not None:
        said = "is better than a random one" if order.clear else "is not clearly better than a random one"
        if loses(order):
            said = "is worse than a random one, so choose rows at random"
        yield f"The order of re-embedding {said}: {_signed(order)}."


# -- tables ----------------------------------------------------------------------------------------------------


def tables(verdict: Verdict) -> Iterator[str]:
    """Yield the options of each pool as lines of a table, what is recommended of the translations with a mark."""
    report = verdict.report
    for pool in report.pools:
        whole = pool.name == STORE
        where = "rows of the store" if whole else "pairs that were held out"
        fitted = "" if whole else f"; alignments are fitted on the other {pool.pairs:,}"
        shown = [one for one in pool.options if one.option.method == pool.translation.option.method]
        shown = sorted({*shown, *pool.methods}, key=pool.options.index)
        wide = max(len(one.option.name) for one in shown) + 4
        yield ""
        yield f"{report.metric}, {_queries(pool)} among {'all ' if whole else ''}{pool.rows:,} {where}{fitted}:"
        yield f"{'':<{wide}}{'score':>7}  {INTERVAL:<16}{'gain':>7}  {INTERVAL:<18}{'rows embedded':>13}"
        for one in shown:
            mark, score, gain = "* " if one is pool.translation else "  ", one.score, one.gain
            ends = f"{score.low:.3f} to {score.high:.3f}"
            more, within = ("", "") if gain is None else (f"{gain.value:+.3f}", f"{gain.low:+.3f} to {gain.high:+.3f}")
            yield (
                f"{mark}{one.option.name:<{wide - 2}}{score.value:>7.3f}  {ends:<16}{more:>7}  {within:<18}"
                f"{verdict.terms.embedded(one.option, report.rows):>13,}"
            )
    yield ""
    yield "* the translation that is saved. Of other methods the form that scores highest is shown."
    if len(report.learning) > 1:
        points = ", ".join(f"{point.pairs:,}: {point.score.value:.3f}" for point in report.learning)
        yield f"The translation by number of pairs: {points}."
    old, new = report.widths
    chosen = f" ({report.reason})" if report.reason else ""
    yield f"Old vectors have {old} numbers, new ones {new}. Translated by {report.method}{chosen}."


# -- numbers ---------------------------------------------------------------------------------------------------


def _queries(pool: Pool) -> str:
    return number_of(pool.queries, "query", "queries")


def _too_few(pool: Pool, among: str = "") -> str:
    return f"{_queries(pool)} {among}{' ' * bool(among)}{'is' if pool.queries == 1 else 'are'} too few"


def _score(report: UpgradeReport, score: Difference) -> str:
    return f"{score.value:.3f} of {report.metric} ({score.low:.3f} to {score.high:.3f})"


def _size(gain: Difference) -> str:
    """Return the size of a gain or loss with the ends of its interval, the smaller one first."""
    ends = sorted((abs(gain.low), abs(gain.high)))
    return f"{abs(gain.value):.3f} ({ends[0]:.3f} to {ends[1]:.3f})"


def _signed(gain: Difference) -> str:
    return f"{gain.value:+.3f}, {gain.low:+.3f} to {gain.high:+.3f}"


def _first_up(text: str) -> str:
    return text[0].upper() + text[1:]
