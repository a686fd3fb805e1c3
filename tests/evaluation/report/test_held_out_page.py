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
from firstk import PrefixEncoder
from firstk.data import load_digits
from firstk.estimator.fit_files import draw, fit_stream
from firstk.evaluation.held_out import Provenance, evaluate_fit
from firstk.evaluation.report import render_page
from firstk.evaluation.report.held_out_page import METRICS, page_of
from firstk.evaluation.report.images import png
from firstk.evaluation.report.parts import StorageSection
from firstk.evaluation.report.storage import bytes_text
from firstk.exceptions import InvalidInputError


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
    assert {METRICS["1nn_accuracy"][1], "What is saved?", "What do fewer bits cost?"} <= heads
    assert {"What is each coordinate worth?", "What do k coordinates see?", "What was fitted", "Notes"} <= heads
    ids = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_only_pictures_in_the_page_itself_have_a_source(found):
    outline = Outline(render_page(page_of(found)))
    sources = [attrs["src"] for _, attrs in outline.elements if "src" in attrs]
    assert len(sources) == 2 * len(found.images.names)
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert all(attrs["alt"] for attrs in outline.all("img"))


def test_the_chosen_k_is_the_smallest_that_keeps_99_percent(found):
    page = page_of(found)
    assert page.chosen_k == found.lead.ours.smallest(0.99)
    assert page_of(found, keep=0.9).chosen_k == found.lead.ours.smallest(0.9)
    assert page_of(found, k=3).chosen_k == 3
    assert page_of(found, k=3).keep is None


def test_bytes_are_counted_for_the_users_rows(found):
    page = page_of(found, rows=10_000_000, k=8)
    assert page.storage.bytes_at() == 10_000_000 * 64 * 4
    assert page.storage.bytes_at(8) == 10_000_000 * 8 * 4
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
    lead = replace(found.lead, ours=replace(found.lead.ours, score=[-1.0] * 16, low=None, high=None, confidence=None))
    page = page_of(replace(found, comparisons=(lead,), precisions=None))
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
