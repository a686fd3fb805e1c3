"""The verdict follows from intervals: of made-up records, and of whole evaluations."""

import re
from dataclasses import replace

import pytest

from firstk.exceptions import InvalidInputError
from firstk.quality.paired import Difference
from firstk.upgrade import Option, Pool, ScoredOption, Terms, UpgradeReport, verdict_of
from firstk.upgrade.records import HELD_OUT, MIX, QUERIES, RE_EMBED, STAY, STORE, TRANSLATE, PairsPoint
from firstk.upgrade.verdict import UNDECIDED


def lines(verdict):
    """Return all that is said of a verdict, the answer first."""
    return [*str(verdict).splitlines(), *verdict.explain().splitlines()]


def estimate(value, room=0.01):
    return Difference(value, value - room, value + room)


def record(gain, *, room=0.01, everything=0.1, mix=0.05, judged=True, step=0.0):
    """An upgrade whose translation gains so much over staying, and re-embedding `everything`."""
    stay = ScoredOption(Option(STAY), estimate(0.5), None, estimate(-gain, room))
    translate = ScoredOption(Option(TRANSLATE, "cca", 64), estimate(0.5 + gain), estimate(gain, room), None)
    paid = [
        ScoredOption(option, estimate(0.5 + more), estimate(more), estimate(more - gain), over_larger)
        for option, more, over_larger in (
            (Option(MIX, "cca", share=0.2), mix, (estimate(mix - everything),)),
            (Option(RE_EMBED, share=1.0), everything, ()),
        )
    ]
    pools = (
        Pool(STORE, 1000, 200, 300, (stay, translate)),
        Pool(HELD_OUT, 100, 80, 200, (stay, translate, *paid)),
    )
    learning = (PairsPoint(150, estimate(0.4)), PairsPoint(300, estimate(0.4 + step), estimate(step)))
    metric = "ndcg@10" if judged else "neighbor_recall@10"
    chosen = translate.option
    return UpgradeReport(
        metric, judged, 1000, 300, (16, 24), "cca", "", chosen, None, pools, learning, True, (-0.01, 1.1)
    )


@pytest.mark.parametrize(
    ("gain", "room", "action", "words"),
    [
        (
            0.03,
            0.01,
            TRANSLATE,
            r"Translate the store into a shared code \(cca, k = 64\): it gains 0\.030 \(0\.020 to 0\.040\) of ndcg@10",
        ),
        (-0.03, 0.01, STAY, r"Stay or re-embed: translating loses 0\.030 \(0\.020 to 0\.040\)"),
        (0.03, 0.05, STAY, r"Stay or re-embed: translating shows no clear gain .*\+0\.030, -0\.020 to .*200 queries"),
        (-0.03, 0.05, STAY, "Stay or re-embed: translating shows no clear gain in ndcg@10"),
    ],
)
def test_staying_and_translating_are_compared_by_the_interval_of_their_difference(gain, room, action, words):
    verdict = verdict_of(record(gain, room=room))
    assert verdict.action == action
    assert re.search(words, lines(verdict)[0])


@pytest.mark.parametrize(
    ("everything", "terms", "start", "told"),
    [
        (0.1, Terms(), "Stay or re-embed: ", "; re-embedding all gains 0.100 (0.090 to 0.110) over staying."),
        (0.1, Terms(budget_rows=10), "Stay with the old model: ", "over staying, and is beyond the budget."),
        (-0.02, Terms(), "Stay with the old model: ", None),
        (-0.1, Terms(), "Stay with the old model: ", None),
    ],
)
def test_the_first_line_names_a_clear_gain_of_re_embedding(everything, terms, start, told):
    first = lines(verdict_of(record(-0.05, everything=everything, mix=-0.1), terms))[0]
    assert first.startswith(start)
    assert first.endswith(told) if told else "re-embedding" not in first


def test_what_a_budget_pays_for_leads_and_staying_is_what_is_left_without_it():
    found = lines(verdict_of(record(-0.05), Terms(budget_rows=1000)))
    assert found[0].startswith("Re-embed all: it gains 0.100")
    assert found[1].startswith("Without re-embedding, stay with the old model: translating loses")


def test_too_few_held_out_queries_tell_nothing_of_re_embedding_in_the_first_line():
    report = record(-0.05)
    few = replace(report, pools=(report.pools[0], replace(report.pools[1], queries=15)))
    verdict = verdict_of(few)
    assert (verdict.action, verdict.more_rows, verdict.more_queries) == (UNDECIDED, 100, None)
    assert lines(verdict)[0].startswith("Undecided: embed 100 more rows, and stay until then. Translating loses 0.050")


def test_a_mix_that_scores_less_than_translating_is_explained_by_what_it_translates():
    report = record(0.03, mix=0.01)
    into_new = ScoredOption(Option(TRANSLATE, "cca"), estimate(0.505), estimate(0.005), estimate(-0.025))
    held = replace(report.pools[1], options=(*report.pools[1].options, into_new))
    text = " ".join(lines(verdict_of(replace(report, pools=(report.pools[0], held)))))
    assert "Re-embedding the best 20 % scores less than translating alone (cca, k = 64, 0.530)" in text
    assert "the remaining rows are translated into the new space, which alone has 0.505" in text
    assert "scores less than translating alone" not in " ".join(lines(verdict_of(record(0.03, mix=0.04))))


@pytest.mark.parametrize(
    ("pairs", "rows", "words"),
    [
        (300, None, "; try 600."),
        (300, 500, "; try 500."),
        (450, 450, "; the one that is saved is fitted on all 450 pairs."),
    ],
)
def test_no_more_pairs_are_asked_for_than_there_are_rows(pairs, rows, words):
    report = replace(record(-0.1, step=0.05), pairs=pairs)
    assert any(line.endswith(words) for line in lines(verdict_of(report, Terms(rows=rows))))


def test_a_translation_that_queries_chose_is_compared_by_its_cross_fitted_gain():
    report = replace(record(0.03), cross_fitted_gain=estimate(0.005))
    verdict = verdict_of(report)
    assert verdict.action == STAY
    assert "+0.005, -0.005 to +0.015" in lines(verdict)[0]
    told = next(line for line in lines(verdict) if "one half of the queries chooses the translation" in line)
    assert "+0.030" in told


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (Option(TRANSLATE, "ridge"), r"Translate the store into the new space \(ridge\): it gains"),
        (Option(QUERIES, "ridge"), r"Translate new queries into the old space \(ridge\): it gains"),
    ],
)
def test_the_verdict_names_the_form_and_compares_re_embedding_with_it(form, words):
    report = record(0.03)
    pools = []
    for pool in report.pools:
        options = [replace(one, option=form) if one.option.translates else one for one in pool.options]
        pools.append(replace(pool, options=tuple(options)))
    verdict = verdict_of(replace(report, translation=form, pools=tuple(pools)))
    assert re.match(words, lines(verdict)[0])
    assert verdict.option == form
    assert f"gains 0.070 (0.060 to 0.080) over translating ({form.name[11:]})" in " ".join(lines(verdict))


def test_a_higher_score_that_is_not_clearly_higher_is_explained():
    report = record(0.03)
    better = ScoredOption(Option(TRANSLATE, "ridge"), estimate(0.535), estimate(0.035), estimate(0.005))
    first = replace(report.pools[0], options=(*report.pools[0].options, better))
    text = " ".join(lines(verdict_of(replace(report, pools=(first, report.pools[1])))))
    assert "Of the translations, ridge, into the new space scores highest, which is not clearly more (+0.005" in text
    assert "cca, k = 64 was chosen by cross-validation" in text


def test_few_queries_decide_nothing():
    report = record(0.1)
    few = replace(report, pools=tuple(replace(pool, queries=19) for pool in report.pools))
    verdict = verdict_of(few, Terms(budget_rows=1000))
    assert (verdict.action, verdict.option, verdict.reason) == (UNDECIDED, Option(STAY), "few")
    first = lines(verdict)[0]
    assert first.startswith("Undecided: judge 1 more query, and stay until then. 19 queries are too few to tell")


def test_a_retired_model_leaves_no_staying():
    verdict = verdict_of(record(-0.2), Terms(retired=True))
    assert verdict.action == TRANSLATE
    assert "the old model is retired" in lines(verdict)[0]
    assert "over translating" in " ".join(lines(verdict))
    paid = verdict_of(record(-0.2), Terms(retired=True, budget_rows=200))
    assert paid.action == MIX
    assert "over staying" not in " ".join(lines(paid))


@pytest.mark.parametrize(("budget", "action"), [(100, STAY), (200, MIX), (999, MIX), (1000, RE_EMBED), (None, STAY)])
def test_a_budget_pays_for_what_clearly_gains(budget, action):
    verdict = verdict_of(record(-0.05), Terms(budget_rows=budget))
    assert verdict.action == action
    assert any("counts -0.010 +1.100 s" in line for line in lines(verdict)) == (action == MIX)


def test_of_options_that_score_alike_the_cheaper_is_taken():
    assert verdict_of(record(-0.05, mix=0.095), Terms(budget_rows=1000)).action == MIX


def test_a_budget_for_what_gains_nothing_is_not_spent():
    verdict = verdict_of(record(0.03, mix=0.03, everything=0.032), Terms(budget_rows=1000))
    assert verdict.action == TRANSLATE
    assert any("No part of the store" in line for line in lines(verdict))


def test_without_judgements_nothing_is_said_on_relevance():
    verdict = verdict_of(record(0.2, judged=False))
    assert verdict.action == "judge"
    assert verdict.option is None
    assert any("fidelity to the new model, not relevance" in line for line in lines(verdict))
    assert verdict_of(record(-0.2, judged=False)).action == STAY


@pytest.mark.parametrize(
    ("step", "words"), [(0.05, "More pairs help"), (-0.02, "300 pairs are enough"), (0.005, "cannot be told")]
)
def test_the_learning_curve_tells_whether_more_pairs_help(step, words):
    assert any(words in line for line in lines(verdict_of(record(-0.1, step=step))))


def test_a_better_model_is_translated_to_and_a_worse_one_is_not(part, worse, unjudged):
    assert verdict_of(part[1].report).action == TRANSLATE
    assert verdict_of(worse[1].report).action == STAY
    assert verdict_of(unjudged[1].report).action == "judge"


def test_without_held_out_searches_nothing_is_said_on_re_embedding():
    report = record(-0.1)
    text = " ".join(lines(verdict_of(replace(report, pools=report.pools[:1], re_embedding=False))))
    assert "Re-embedding" not in text


@pytest.mark.parametrize("terms", [{"budget_rows": 0}, {"rows": 1.5}])
def test_terms_are_checked(terms):
    with pytest.raises(InvalidInputError, match=next(iter(terms))):
        Terms(**terms)


@pytest.mark.parametrize(
    ("everything", "words"),
    [
        (0.1, "search the new vectors: they gain 0.100 (0.090 to 0.110) of ndcg@10 over staying."),
        (-0.1, "stay with the old vectors: the new ones lose 0.100 (0.090 to 0.110) of ndcg@10."),
        (0.0, "search either: their ndcg@10 shows no clear difference (+0.000, -0.010 to +0.010)."),
    ],
)
def test_the_first_line_says_where_both_models_have_embedded_every_row(everything, words):
    report = replace(record(0.03, everything=everything), pairs=1000)
    first, second = lines(verdict_of(report))[:2]
    assert first == f"Both models have embedded all 1,000 rows. If they are your whole store, {words}"
    assert second.startswith("If they are a sample of a larger store: Translate the store")
    assert lines(verdict_of(report, Terms(rows=5000)))[0].startswith("Translate the store")


def test_little_evidence_is_undecided_and_says_what_would_decide():
    """Translating loses; 24 queries among held-out pairs leave open whether re-embedding gains 0.075."""
    report = record(-0.05, everything=0.075, mix=0.0)
    held = report.pools[1]
    wide = [
        replace(one, gain=Difference(0.075, -0.075, 0.225)) if one.option.kind == RE_EMBED else one
        for one in held.options
    ]
    report = replace(report, pools=(report.pools[0], replace(held, queries=24, options=tuple(wide))))
    verdict = verdict_of(report, Terms(rows=10_000))
    # Twice as narrow by four times the queries, which four times the pairs answer.
    assert (verdict.action, verdict.more_rows, verdict.more_queries) == (UNDECIDED, 900, None)
    assert verdict.option == Option(STAY)
    first = lines(verdict)[0]
    assert first.startswith("Undecided: embed 900 more rows, and stay until then. Translating loses 0.050")
    assert first.endswith("whether re-embedding gains is open: +0.075, -0.075 to +0.225 (24 queries).")
    # A store of 1,000 rows has no 900 beside the 300 pairs: three times as many queries more do the same.
    verdict = verdict_of(report)
    assert (verdict.action, verdict.more_rows, verdict.more_queries) == (UNDECIDED, None, 600)
    assert lines(verdict)[0].startswith("Undecided: judge 600 more queries, and stay until then.")


def test_an_open_gain_of_translating_is_undecided_where_re_embedding_is_known_not_to_gain():
    report = record(0.02, room=0.04, everything=-0.1, mix=-0.1)
    verdict = verdict_of(report)
    assert (verdict.action, verdict.more_rows, verdict.more_queries) == (UNDECIDED, None, 600)  # 200 * (0.04 / 0.02)^2
    assert "whether translating gains is open: +0.020, -0.020 to +0.060" in lines(verdict)[0].lower()


def test_what_is_level_within_the_tolerance_is_decided():
    verdict = verdict_of(record(0.0, room=0.004, everything=-0.1, mix=-0.1))
    assert (verdict.action, verdict.reason) == (STAY, "unclear")
    assert lines(verdict)[0].startswith("Stay with the old model: translating shows no clear gain in ndcg@10")


def test_re_embedding_that_no_held_out_row_can_score_is_undecided():
    report = record(-0.05)
    verdict = verdict_of(replace(report, pools=report.pools[:1]))
    assert (verdict.action, verdict.more_rows) == (UNDECIDED, 300)
    assert "no held-out row answers a query" in lines(verdict)[0]
    assert verdict_of(replace(report, pools=report.pools[:1], re_embedding=False)).action == STAY


@pytest.mark.parametrize("terms", [Terms(), Terms(budget_rows=1000), Terms(retired=True)])
@pytest.mark.parametrize("gain", [-0.05, 0.0, 0.05])
@pytest.mark.parametrize("pairs", [300, 1000])
def test_the_answer_has_at_most_three_lines(terms, gain, pairs):
    assert len(str(verdict_of(replace(record(gain), pairs=pairs), terms)).splitlines()) <= 3
