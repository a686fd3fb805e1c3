"""A study as a page: what it says, what it counts, and what it leaves out."""

from __future__ import annotations

import json
import re
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from evaluation.report.test_html import Outline
from firstk.advice.held_out import Provenance, evaluate_fit
from firstk.advice.operating_points import Limits, PrecisionTable
from firstk.encoder.recommendation import OperatingPoint

from firstk import PrefixEncoder
from firstk.advice.report import render_page
from firstk.advice.report.held_out_page import page_of
from firstk.advice.report.images import png
from firstk.advice.report.parts import StorageSection
from firstk.advice.report.reading import share_text
from firstk.advice.report.storage import bytes_text
from firstk.advice.report.terms import METRICS
from firstk.data import load_digits
from firstk.estimator.fit_files import draw, fit_stream
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import METRICS as SCORED


@pytest.fixture(scope="module")
def found():
    digits = load_digits()
    done = fit_stream(PrefixEncoder(16, objective="fisher"), [{"X": digits.X, "y": digits.y}], draw(1797, 0.2))
    return evaluate_fit(
        done, Provenance({"file": "digits.npz", "objective": "fisher"}, 1797, 4, "Evaluated on 359 rows.", (8, 8))
    )


def data_of(text: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_has_every_part(found):
    outline = Outline(render_page(page_of(found)))
    assert outline.stack == []
    heads = set(outline.text_in("h2"))
    assert {METRICS["1nn_accuracy"][1], "What is saved?", "How few bytes will do?"} <= heads
    assert {"What is each coordinate worth?", "What do k coordinates see?", "What was fitted", "Notes"} <= heads
    ids = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_only_pictures_in_the_page_itself_have_a_source(found):
    outline = Outline(render_page(page_of(found)))
    sources = [attrs["src"] for _, attrs in outline.elements if "src" in attrs]
    assert len(sources) == 2 * len(found.images.names)
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert all(attrs["alt"] for attrs in outline.all("img"))


def without_bits(table):
    return replace(table, points=[point for point in table.points if point.precision != "embedded"], resampled=None)


def test_the_page_begins_with_what_the_evaluation_recommends(found):
    page, advice = page_of(found), found.recommendation
    assert page.summary.split("\n\n") == advice.lines(1797)
    assert Outline(render_page(page)).text_in("header")[1] == advice.headline()
    assert f"{advice.advised.point.bytes:,} bytes a vector instead of 256" in page.title
    assert "of the accuracy kept" in page.title


def test_the_share_that_the_evaluation_asked_for_gives_the_same_page(found):
    assert page_of(found, keep=found.recommendation.keep) == page_of(found)


def test_another_share_is_recommended_from_the_saved_table(found):
    page, advice = page_of(found, keep=0.9), found.precisions.recommend(Limits(keep=0.9))
    assert page.summary.split("\n\n")[0] == advice.headline() != page_of(found).summary.split("\n\n")[0]
    assert not advice.chosen.point.is_prefix  # bits have no k to mark
    assert page.chosen_k is None
    assert page_of(replace(found, precisions=without_bits(found.precisions)), keep=0.9).chosen_k == 16
    assert page.sections[0].asked == ("90 % of raw", pytest.approx(0.9 * found.precisions.input_score))


def test_a_k_of_ones_own_is_shown_as_float32(found):
    page = page_of(found, k=3)
    assert page.chosen_k == 3
    assert page.keep is None
    assert "3 coordinates as float32: 12 bytes a vector instead of 256" in page.summary


@pytest.mark.parametrize("k", [5, 7])
def test_a_k_between_those_of_the_table_is_read_off_the_curve(found, k):
    assert k not in {point.k for point in found.precisions.own}
    share = found.lead.ours.at(k) / found.lead.ours.input_score
    assert f"They keep {100 * share:.1f} % of the raw vectors'" in page_of(found, k=k).summary


def test_a_baseline_that_is_better_is_said_first(found):
    ours, pca = OperatingPoint(8, "int8", 8, 0.9), OperatingPoint(4, "int8", 4, 0.95, code="PCA")
    table = PrecisionTable((ours, pca), "1nn_accuracy", input_score=0.95, input_bytes=256)
    page = page_of(replace(found, precisions=table, recommendation=None), keep=0.9)
    assert page.title == "digits.npz: 4 bytes a vector instead of 256 with PCA, 100.0 % of the accuracy kept"
    first, *others = page.summary.split("\n\n")
    assert first.startswith("Use PCA, 4 coordinates as int8: 4 bytes a vector")
    assert any("This model needs more bytes" in line for line in others)
    assert page.chosen_k == 8  # the slider is that of this model


def test_a_share_that_is_out_of_reach_is_not_said_to_be_kept(found):
    page = page_of(found, k=1, keep=0.99)
    assert page.title.startswith("digits.npz: at most ")
    assert page.title.endswith(" of the accuracy kept, where 99 % was asked for")
    assert page.summary.startswith("No code of this model with k = 1 keeps 99 % of the raw vectors'")
    assert (page.keep, page.commands) == (None, ())
    assert [small for _, small in page.figures] == [
        f"of the raw vectors' 1-NN accuracy at most: {point}, {point.bytes:,} bytes"
        for point in [found.precisions.recommend(Limits(keep=0.99, k=1)).best.point]
    ]
    assert "fewest that keep" not in render_page(page)


def test_records_without_a_recommendation_give_a_page(found):
    own = tuple(replace(point, seconds=None) for point in found.precisions.own if point.precision != "int4")
    table = PrecisionTable(own, "1nn_accuracy", found.precisions.input_score, 256)
    for precisions in (table, None):
        page = page_of(replace(found, precisions=precisions, recommendation=None), keep=0.9)
        assert "of the raw vectors' 1nn_accuracy" in page.summary
        assert Outline(render_page(page)).stack == []


def test_scores_at_chance_are_called_so(found):
    advice = replace(found.recommendation, chance=0.99, chosen=None, better=None)
    page = page_of(replace(found, recommendation=advice))
    assert "check the inputs" in page.title
    assert page.summary.startswith("Check the inputs")
    assert (page.commands, page.figures, page.chosen_k) == ((), (), None)


def test_the_commands_are_those_of_what_is_advised(found):
    page = page_of(found, commands=lambda point: [f"store {point} <here>"])
    text = render_page(page)
    assert f'<pre tabindex="0"><code>store {found.recommendation.advised.point} &lt;here&gt;</code></pre>' in text
    assert "<pre" not in render_page(page_of(found))


def test_terms_are_explained_where_they_appear(found):
    outline = Outline(render_page(page_of(found)))
    terms = [text for stack, text in outline.texts if stack[-1] == "dt"]
    assert {"1nn_accuracy", "PCA", "uncentred SVD", "plain truncation", "random dimensions"} <= set(terms)
    assert {"float32", "float16", "int8", "int4", "binary", "binary, binary queries", "95 % interval"} <= set(terms)
    assert {"spectrum", "mean |z|", "variance of z", found.axes.measure} <= set(terms)


def test_every_metric_has_a_name_a_question_and_a_line():
    assert set(METRICS) == set(SCORED)
    for term in METRICS.values():
        assert term.heading.endswith("?")
        assert term.text.endswith(".")


def test_every_line_has_an_interval(found):
    page = page_of(found)
    lead = page.sections[page.lead_number]
    assert all(curve.low is not None for curve in lead.everything)
    low, high = lead.input_interval
    assert low <= lead.input_scores[0] <= high


def test_bytes_are_counted_for_the_users_rows(found):
    page = page_of(found, rows=10_000_000, k=8)
    assert page.storage.bytes_at() == 10_000_000 * 64 * 4
    assert page.storage.bytes_at(8) == 10_000_000 * 8 * 4
    assert [page.storage.each(12, name) for name in page.storage.precisions] == [48, 24, 12, 6, 2]
    text = render_page(page)
    assert "2.24 GB" in text  # saved
    assert "320 MB instead of 2.56 GB" in text
    assert page_of(found).storage.rows == 1797


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "1 bytes"),
        (999, "999 bytes"),
        (1000, "1.00 kB"),
        (999_950, "1.00 MB"),
        (99_960, "100 kB"),
        (2.56e9, "2.56 GB"),
    ],
)
def test_bytes_as_text(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize("k", [0, 17, 99])
def test_a_k_that_was_not_evaluated_raises(found, k):
    with pytest.raises(InvalidInputError, match="a prefix length of this evaluation"):
        page_of(found, k=k)


@pytest.mark.parametrize("keep", [0.0, 1.5, -1])
def test_a_wrong_share_is_a_sentence(found, keep):
    with pytest.raises(InvalidInputError, match="keep"):
        page_of(found, keep=keep)


def test_a_score_that_is_not_positive_recommends_nothing(found):
    ours = replace(found.lead.ours, score=[-1.0] * 16, input_score=-1.0, low=None, high=None, confidence=None)
    lead = replace(found.lead, ours=ours)
    page = page_of(replace(found, comparisons=(lead,), precisions=None, recommendation=None))
    assert page.chosen_k is None
    assert "not positive" in page.summary
    assert "</html>" in render_page(page)


def test_parts_that_are_missing_are_left_out(found):
    page = page_of(replace(found, axes=None, images=None, precisions=None, notes=("There were no labels.",)))
    assert "What is each coordinate worth?" not in render_page(page)
    assert "There were no labels." in page.notes


def test_without_usefulness_there_is_no_scatter(found):
    axes = replace(found.axes, usefulness=(), measure="", chance=None, rank_correlation=None)
    text = render_page(page_of(replace(found, axes=axes)))
    assert "Rank correlation" not in text
    assert 'class="scatter"' not in text


def test_every_coordinate_is_in_a_table(found):
    cells = Outline(render_page(page_of(found))).text_in("details")
    for value in (found.axes.spectrum[0], found.axes.usefulness[5]):
        assert f"{value:.4f}" in cells


def test_the_rank_correlation_is_shown(found):
    assert f"{found.axes.rank_correlation:.3f}" in render_page(page_of(found))


def test_the_script_has_sentences_cells_and_shares_for_every_stop(found):
    page = page_of(found)
    for section in data_of(render_page(page))["sections"]:
        if isinstance(section, dict):
            lists = [section[name] for name in ("sentences", "cells", "rows", "shares") if name in section]
            assert [len(one) for one in lists] == [len(page.stops)]


def test_the_page_stays_small(found):
    assert len(render_page(page_of(found))) < 250_000


def test_names_are_escaped(found):
    nasty = "</script><b>"
    images = replace(found.images, names=(nasty, *found.images.names[1:]))
    text = render_page(page_of(replace(found, facts={"file": nasty}, images=images)))
    assert "</script><b>" not in text


def test_a_png_reads_back():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    written = png(pixels)
    assert written[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(written):
        (size,) = struct.unpack(">I", written[at : at + 4])
        kind, body = written[at + 4 : at + 8], written[at + 8 : at + 8 + size]
        assert struct.unpack(">I", written[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + size
    assert struct.unpack(">IIBB", chunks[b"IHDR"][:10]) == (4, 2, 8, 2)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(2, 13)
    np.testing.assert_array_equal(rows[:, 1:].reshape(2, 4, 3), pixels)


def test_a_storage_section_counts_positive_numbers():
    with pytest.raises(InvalidInputError, match="rows"):
        StorageSection("h", "", 0, 1, 1)


def test_the_title_is_of_new_documents_where_they_are_told_apart(found):
    points = [OperatingPoint(k, "int8", k, score) for k, score in ((4, 0.5), (8, 0.6), (16, 0.7))]
    table = PrecisionTable(points, "ndcg@10", input_score=0.6, input_bytes=256, n_evaluated=50, unit="queries")
    half = tuple(replace(point, score=point.score / 2) for point in points)
    new = replace(
        table, points=half, n_evaluated=40, n_known=10, everything=table, known=replace(table, n_evaluated=10)
    )
    curve = replace(found.lead.ours, metric="ndcg@10")
    report = replace(
        found, comparisons=(replace(found.lead, ours=curve, baselines=()),), precisions=table, recommendation=None
    )
    page = page_of(replace(report, precisions=new), bytes_per_vector=8)
    assert page.title == (
        "digits.npz: 8 bytes a vector instead of 256, 50.0 % of the search quality kept on new documents"
    )
    assert page.summary.startswith(
        "Store 8 coordinates as int8: 8 bytes a vector instead of 256. On new documents (40 queries) they keep 50.0 % "
        "of the raw vectors' ndcg@10."
    )
    beside = (
        "For documents that the fit has learned from they keep 100 % (10 queries), so that over all 50 queries it is "
        "100 %."
    )
    assert beside in page.summary
    assert ("50.0 %", "of the raw vectors' nDCG@10 of 0.6000, kept on new documents, 40 queries") in page.figures
    assert "of searches for new documents" in page.sections[0].text
    known = page_of(report, bytes_per_vector=8)
    assert known.title.endswith("100.0 % of the search quality kept")
    assert ("100.0 %", "of the raw vectors' nDCG@10 of 0.6000, kept") in known.figures
    assert "new documents" not in known.sections[0].text


def test_what_is_saved_has_a_row_of_what_is_recommended_and_one_of_bits(found):
    bits = [OperatingPoint(8, "embedded", size, 0.5 + size / 100) for size in (8, 12, 16)]
    points = [OperatingPoint(16, "int8", 16, 0.7), *bits]
    table = PrecisionTable(points, "ndcg@10", input_score=0.6, input_bytes=256, n_evaluated=50, unit="queries")
    report = replace(found, precisions=table, recommendation=None, itemsize=4)
    for size, whole in (
        (16, (("recommended: 16 coordinates as int8", 16), ("embedded bits", 16))),
        (12, (("recommended: embedded bits", 12),)),
    ):
        page = page_of(report, bytes_per_vector=size)
        assert page.storage.whole == whole
        text = render_page(page)
        each, rows, raw = whole[0][1], page.storage.rows, page.storage.each()
        cells = (f"{each:,}", bytes_text(rows * each), share_text(1 - each / raw))
        shown = "".join(f'<td><span class="value">{cell}</span></td>' for cell in cells)
        assert f'<tr class="ours"><th scope="row">{whole[0][0]}</th>{shown}</tr>' in text


def test_bytes_that_nothing_fits_into_are_refused(found):
    with pytest.raises(InvalidInputError, match="must be a number of at least 1"):
        page_of(found, bytes_per_vector=0.5)


def test_tables_say_that_scores_are_of_float32(found):
    captions = Outline(render_page(page_of(found))).text_in("caption")
    assert any(text.startswith("1-NN accuracy at") and text.endswith("as float32") for text in captions)


def test_bytes_stand_first_where_what_is_recommended_has_no_k(found):
    bits = replace(found.precisions.embedded[0], bytes=12, score=0.9)
    coarse, fine = (OperatingPoint(k, "int4", size, score) for k, size, score in ((8, 4, 0.5), (16, 8, 0.7)))
    table = replace(found.precisions, points=(bits, coarse, fine), resampled=None)
    page = page_of(replace(found, precisions=table, recommendation=None), bytes_per_vector=12)
    assert page.sections[0].chosen == bits
    assert (page.chosen_k, page.start) == (None, 16)  # the best prefix in as many bytes
    text = render_page(page)
    assert text.index("How few bytes will do?") < text.index("If the first k coordinates are stored instead")
    data = data_of(text)
    assert data["lead"] == 1
    assert set(data["sections"][0]["rows"]) == {None}  # what stands above the slider does not follow it
    short = page_of(found, k=8)
    assert short.lead_number == 0
    assert "Coordinates kept" in render_page(short)
