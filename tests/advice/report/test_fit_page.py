"""The page of a fit: which sections it has in which order, where it opens, and what its head says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advice.report.conftest import make_evaluation, make_report
from firstk.advice.records import ImageSamples
from firstk.advice.report import Page, render_page
from firstk.advice.report.page import BytesChart, Curves, Steps, Table
from firstk.advice.report.sections import page_of
from firstk.metrics.curve import METRICS as SCORED
from firstk.quality.evaluation import Evaluation
from firstk.words import page as words
from firstk.words.terms import METRICS


def searched(share: float = 1.0) -> Evaluation:
    """Make an evaluation of searches for new documents, which score `share` of what all do."""
    over_all = replace(make_evaluation("ndcg@10", n_known=150), unit="queries")
    points = tuple(replace(point, score=round(share * point.score, 4)) for point in over_all.points)
    return replace(over_all, points=points, input_score=0.92, n_evaluated=50, over_all=over_all, draws=None)


LEAD = make_evaluation()
CHOICES = {
    "own bits": LEAD.choose(keep=0.95),
    "own coordinates": LEAD.choose(keep=0.9, precision=["float32", "int8"]),
    "one k": LEAD.choose(k=4),
    "few bytes": LEAD.choose(bytes_per_vector=2),
    "out of reach": LEAD.choose(keep=1.0, precision="int8"),
    "nothing": None,
    "a baseline": make_evaluation(ahead="PCA").choose(keep=0.95, precision="int8"),
    "new documents": searched(0.5).choose(bytes_per_vector=8, precision=["float32", "int8"]),
    "chance": make_evaluation(chance=0.95).choose(keep=0.95),
}


def kinds_of(page: Page) -> list[type]:
    return [type(section.parts[0]) for section in page.sections]


def test_the_head_in_words(golden):
    lines = []
    for name, choice in CHOICES.items():
        metric = "1nn_accuracy" if choice is None else choice.metric
        lines += [f"== {name}", words.title_of(choice, "/folder/digits.npz", metric)]
        lines += [words.summary_of(choice, 1_000_000, -0.5)]
        lines += [f"[{big}] {small}" for big, small in words.figures_of(choice, 1_000_000)]
        lines += [f"{term}: {text}" for term, text in words.terms_of(choice, metric, 0.95)]
        lines += [str(words.asked_level(choice)), words.about_intervals(choice, 0.95), ""]
    golden("heads.txt", "\n".join(lines))


def test_the_cases_are_what_they_are_called():
    advised = {name: None if choice is None else choice.advised for name, choice in CHOICES.items()}
    assert [name for name, offer in advised.items() if offer is None] == ["out of reach", "nothing", "chance"]
    assert advised["a baseline"].point.code == "PCA"
    assert advised["own bits"].point.precision == "embedded"
    assert CHOICES["chance"].chance == 0.95
    assert CHOICES["new documents"].on_new


def test_bytes_stand_first_where_what_is_recommended_has_no_k():
    bits = page_of(make_report())
    assert kinds_of(bits) == [BytesChart, Curves, Table, Curves, Steps, ImageSamples]
    assert (bits.chosen_k, bits.start, bits.lead_number) == (None, 4, 1)  # the best prefix in as many bytes
    text = render_page(bits)
    assert text.index("How few bytes will do?") < text.index("If the first k coordinates are stored instead")
    assert "data-fit" not in text[: text.index('class="control"')].replace("<circle data-fit", "")
    coordinates = page_of(make_report(choice=CHOICES["own coordinates"]))
    assert kinds_of(coordinates)[:2] == [Curves, BytesChart]
    assert "Coordinates kept" in render_page(coordinates)
    assert '<tr class="now" data-fit' in render_page(coordinates)


@pytest.mark.parametrize(
    ("name", "k"),
    [("own bits", None), ("own coordinates", 8), ("one k", 4), ("few bytes", None), ("nothing", None), ("chance", None),
     ("a baseline", 8), ("new documents", 8)],
)  # fmt: skip
def test_the_k_that_is_marked_is_that_of_the_own_choice(name: str, k: int | None):
    choice = CHOICES[name]
    assert page_of(make_report(choice=choice)).chosen_k == k
    if k is not None:
        assert choice.own.point.k == k


def test_a_code_made_for_some_lengths_opens_at_one_of_them():
    page = page_of(make_report(make_evaluation(supported=(2, 8))))
    assert page.start == 2


def test_parts_that_are_missing_are_left_out():
    page = page_of(make_report(axes=None, images=None, evaluations=(LEAD,)))
    assert kinds_of(page) == [BytesChart, Curves, Table]
    useless = replace(make_report().axes, usefulness=(), measure="", chance=None, rank_correlation=None)
    text = render_page(page_of(make_report(axes=useless)))
    assert 'class="scatter"' not in text
    assert "Rank correlation" not in text


def test_a_curve_has_intervals_and_the_level_that_is_asked_for():
    (chart, *_), _ = page_of(make_report()).charts, None
    assert all(curve.low is not None for curve in chart.everything)
    assert chart.asked == ("95 % of raw", pytest.approx(0.95 * 0.92))
    low, high = chart.input_interval
    assert low <= chart.input_scores[0] <= high


def test_bytes_are_counted_for_the_users_rows():
    page = page_of(make_report(), rows=10_000_000)
    (table,) = page.sections[2].parts
    rows = {row.name: [cell.at(4) if isinstance(cell, Steps) else cell for cell in row.cells] for row in table.rows}
    assert rows["recommended: embedded bits"] == ["4", "40.0 MB", "96.9\u00a0%"]
    assert rows["first k coordinates, float32"] == ["16", "160 MB", "87.5\u00a0%"]
    assert rows["first k coordinates, int8"] == ["4", "40.0 MB", "96.9\u00a0%"]
    assert rows["raw vectors, 32 numbers"] == ["128", "1.28 GB", ""]
    assert next(iter(rows)) == "recommended: embedded bits"
    other = page_of(make_report(choice=CHOICES["own coordinates"]), rows=1)
    names = [row.name for row in other.sections[2].parts[0].rows]
    assert names[:2] == ["recommended: 8 coordinates as int8", "embedded bits"]


def test_searches_for_new_documents_are_told_apart():
    found = searched()
    page = page_of(make_report(found, choice=found.choose(keep=0.9)))
    assert page.title.endswith("kept on new documents")
    assert all(words.NEW_TEXT in section.text for section in page.sections[:2])
    assert words.NEW_TEXT not in "".join(section.text for section in page_of(make_report()).sections)


def test_every_metric_has_a_name_a_question_and_a_line():
    assert set(METRICS) == set(SCORED)
    for term in METRICS.values():
        assert term.heading.endswith("?")
        assert term.text.endswith(".")
