"""The verdict follows from intervals: of made-up records, and of whole evaluations."""

import re
from dataclasses import replace

import pytest

from firstk.quality.paired import Difference
from firstk.upgrade import Option, Pool, ScoredOption, Terms, UpgradeReport, verdict_of
from firstk.upgrade.records import HELD_OUT, MIX, QUERIES, RE_EMBED, STAY, STORE, TRANSLATE, PairsPoint
from firstk.exceptions import InvalidInputError


def estimate(value, room=0.01):
    return Difference(value, value - room, value + room)


def record(gain, *, room=0.01, everything=0.1, mix=0.05, judged=True, step=0.0):
    """An upgrade whose translation gains so much over staying, and re-embedding `everything`."""
    stay = ScoredOption(Option(STAY), estimate(0.5), None, estimate(-gain, room))
    translate = ScoredOption(Option(TRANSLATE, "cca", 64), estimate(0.5 + gain), estimate(gain, room), None)
    paid = [
        ScoredOption(option, estimate(0.5 + more), estimate(more), estimate(more - gain))
        for option, more in ((Option(MIX, "cca", share=0.2), mix), (Option(RE_EMBED, share=1.0), everything))
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
        (0.03, 0.05, STAY, r"Stay or re-embed: 200 queries show no clear difference .*\+0\.030, -0\.020 to"),
        (-0.03, 0.05, STAY, "Stay or re-embed: 200 queries show no clear difference"),
    ],
)
def test_staying_and_translating_are_compared_by_the_interval_of_their_difference(gain, room, action, words):
    verdict = verdict_of(record(gain, room=room))
    assert verdict.action == action
    assert re.search(words, verdict.lines[0])


@pytest.mark.parametrize(
    ("everything", "terms", "start", "told"),
    [
        (0.1, Terms(), "Stay or re-embed: ", "; re-embedding all gains 0.100 (0.090 to 0.110) over staying."),
        (0.1, Terms(budget_rows=10), "Stay with the old model: ", "over staying, and is beyond the budget."),
        (0.005, Terms(), "Stay with the old model: ", None),
        (-0.1, Terms(), "Stay with the old model: ", None),
    ],
)
def test_the_first_line_names_a_clear_gain_of_re_embedding(everything, terms, start, told):
    first = verdict_of(record(-0.05, everything=everything, mix=-0.1), terms).lines[0]
    assert first.startswith(start)
    assert first.endswith(told) if told else "re-embedding" not in first


def test_what_a_budget_pays_for_leads_and_staying_is_what_is_left_without_it():
    lines = verdict_of(record(-0.05), Terms(budget_rows=1000)).lines
    assert lines[0].startswith("Re-embed all: it gains 0.100")
    assert lines[1].startswith("Without re-embedding, stay with the old model: translating loses")


def test_too_few_held_out_queries_tell_nothing_of_re_embedding_in_the_first_line():
    report = record(-0.05)
    few = replace(report, pools=(report.pools[0], replace(report.pools[1], queries=19)))
    assert verdict_of(few).lines[0].startswith("Stay with the old model: ")


def test_a_mix_that_scores_less_than_translating_is_explained_by_what_it_translates():
    report = record(0.03, mix=0.01)
    into_new = ScoredOption(Option(TRANSLATE, "cca"), estimate(0.505), estimate(0.005), estimate(-0.025))
    held = replace(report.pools[1], options=(*report.pools[1].options, into_new))
    text = " ".join(verdict_of(replace(report, pools=(report.pools[0], held))).lines)
    assert "Re-embedding the best 20 % scores less than translating alone (cca, k = 64, 0.530)" in text
    assert "the rest is translated into the new space, which alone has 0.505" in text
    assert "scores less than translating alone" not in " ".join(verdict_of(record(0.03, mix=0.04)).lines)


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
    assert any(line.endswith(words) for line in verdict_of(report, Terms(rows=rows)).lines)


def test_a_translation_that_queries_chose_is_compared_by_its_cross_fitted_gain():
    report = replace(record(0.03), cross_fitted_gain=estimate(0.005))
    verdict = verdict_of(report)
    assert verdict.action == STAY
    assert "+0.005, -0.005 to +0.015" in verdict.lines[0]
    assert "one half of the queries chooses the translation" in verdict.lines[1]
    assert "+0.030" in verdict.lines[1]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (Option(TRANSLATE, "ridge"), r"Translate the store into the new space \(ridge\): it gains"),
        (Option(QUERIES, "ridge"), r"Translate new queries into the old space \(ridge\): it gains"),
    ],
)
def test_the_verdict_names_the_form_and_prices_re_embedding_against_it(form, words):
    report = record(0.03)
    pools = []
    for pool in report.pools:
        options = [replace(one, option=form) if one.option.translates else one for one in pool.options]
        pools.append(replace(pool, options=tuple(options)))
    verdict = verdict_of(replace(report, translation=form, pools=tuple(pools)), Terms(cost_per_million=20))
    assert re.match(words, verdict.lines[0])
    assert verdict.option == form
    assert f"gains 0.070 (0.060 to 0.080) over translating ({form.name[11:]})" in " ".join(verdict.lines)


def test_a_higher_score_that_is_not_clearly_higher_is_explained():
    report = record(0.03)
    better = ScoredOption(Option(TRANSLATE, "ridge"), estimate(0.535), estimate(0.035), estimate(0.005))
    first = replace(report.pools[0], options=(*report.pools[0].options, better))
    text = " ".join(verdict_of(replace(report, pools=(first, report.pools[1]))).lines)
    assert "Of the translations, ridge, into the new space scores highest, which is not clearly more (+0.005" in text
    assert "cca, k = 64 was chosen by cross-validation" in text


def test_few_queries_decide_nothing():
    report = record(0.1)
    few = replace(report, pools=tuple(replace(pool, queries=19) for pool in report.pools))
    verdict = verdict_of(few, Terms(budget_rows=1000))
    assert verdict.action == STAY
    assert "19 judged queries are too few to tell" in verdict.lines[0]


def test_a_retired_model_leaves_no_staying():
    verdict = verdict_of(record(-0.2), Terms(retired=True))
    assert verdict.action == TRANSLATE
    assert "staying is no option" in verdict.lines[0]
    assert "over translating" in " ".join(verdict.lines)
    paid = verdict_of(record(-0.2), Terms(retired=True, budget_rows=200))
    assert paid.action == MIX
    assert "over staying" not in " ".join(paid.lines)


@pytest.mark.parametrize(("budget", "action"), [(100, STAY), (200, MIX), (999, MIX), (1000, RE_EMBED), (None, STAY)])
def test_a_budget_pays_for_what_clearly_gains(budget, action):
    verdict = verdict_of(record(-0.05), Terms(budget_rows=budget))
    assert verdict.action == action
    assert any("counts -0.010 +1.100 s" in line for line in verdict.lines) == (action == MIX)


def test_of_options_that_score_alike_the_cheaper_is_taken():
    assert verdict_of(record(-0.05, mix=0.095), Terms(budget_rows=1000)).action == MIX


def test_a_budget_for_what_gains_nothing_is_not_spent():
    verdict = verdict_of(record(0.03, mix=0.03, everything=0.032), Terms(budget_rows=1000))
    assert verdict.action == TRANSLATE
    assert any("No part of the store" in line for line in verdict.lines)


def test_prices_are_told_by_what_they_buy():
    text = " ".join(verdict_of(record(-0.05), Terms(cost_per_million=20, rows=10_000_000)).lines)
    assert "takes 10,000,000 rows, a price of 200: 20 for each 0.01 of ndcg@10" in text


def test_without_judgements_nothing_is_said_on_relevance():
    verdict = verdict_of(record(0.2, judged=False))
    assert verdict.action == "judge"
    assert verdict.option is None
    assert any("fidelity to the new model, not relevance" in line for line in verdict.lines)
    assert verdict_of(record(-0.2, judged=False)).action == STAY


@pytest.mark.parametrize(
    ("step", "words"), [(0.05, "More pairs help"), (-0.02, "300 pairs are enough"), (0.005, "cannot be told")]
)
def test_the_learning_curve_tells_whether_more_pairs_help(step, words):
    assert any(words in line for line in verdict_of(record(-0.1, step=step)).lines)


def test_a_better_model_is_translated_to_and_a_worse_one_is_not(part, worse, unjudged):
    assert verdict_of(part[1].report).action == TRANSLATE
    assert verdict_of(worse[1].report).action == STAY
    assert verdict_of(unjudged[1].report).action == "judge"


def test_without_held_out_searches_nothing_is_said_on_re_embedding():
    report = record(-0.1)
    text = " ".join(verdict_of(replace(report, pools=report.pools[:1])).lines)
    assert "Re-embedding" not in text


@pytest.mark.parametrize("terms", [{"cost_per_million": -1}, {"budget_rows": 0}, {"rows": 1.5}])
def test_terms_are_checked(terms):
    with pytest.raises(InvalidInputError, match=next(iter(terms))):
        Terms(**terms)


def test_the_first_line_says_where_both_models_have_embedded_every_row():
    report = replace(record(0.03), pairs=1000)
    first = verdict_of(report).lines[0]
    assert first.startswith("Both models have embedded all 1,000 rows: if they are your whole store, search the new")
    assert "a sample: Translate the store" in first
    assert verdict_of(report, Terms(rows=5000)).lines[0].startswith("Translate the store")
