"""Texts found by prefixes: the rows of the largest cosines, one prefix at a time."""

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.advice.report import Page, Section, curve_section, render_page
from firstk.advice.text_neighbors import neighbors_of_texts
from firstk.exceptions import InvalidInputError
from firstk.quality.curve import PrefixCurve


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(40, 6)), rng.normal(size=(3, 6))
    encoder = PrefixEncoder(4).fit(X).encoder_
    names = [f"text {i} <b>" for i in range(40)]
    labels = [f"class {i % 2}" for i in range(40)]
    given = {"texts": ["a", "b", "c"], "labels": ["class 0"] * 3, "stored_texts": names, "stored_labels": labels}
    return X, queries, encoder, neighbors_of_texts({"code": encoder}, queries, X, **given, n_neighbors=5), given


def by_cosine(query, stored, count):
    cosines = [query @ row / np.linalg.norm(query) / np.linalg.norm(row) for row in stored]
    return sorted(range(len(stored)), key=lambda i: -cosines[i])[:count]


def test_rows_are_those_of_the_largest_cosines(found):
    X, queries, encoder, texts, _ = found
    for i, query in enumerate(queries):
        assert list(texts.of_raw(i)) == by_cosine(query, X, 5)
        for k in range(1, 5):
            code, stored = encoder.encode(query[None], k)[0], encoder.encode(X, k)
            if k > 1:  # one coordinate: every cosine is 1 or -1, and the first rows come first
                assert list(texts.at("code", k, i)) == by_cosine(code, stored, 5)
    assert list(texts.at("code", 9, 0)) == list(texts.at("code", 4, 0))


def test_equal_cosines_keep_the_order_of_rows(found):
    _, queries, encoder, texts, _ = found
    same = np.flatnonzero((encoder.encode(found[0], 1)[:, 0] > 0) == (encoder.encode(queries[:1], 1)[0, 0] > 0))
    assert list(texts.at("code", 1, 0)) == list(same[:5])


def test_wrong_lengths_and_counts_are_refused(found):
    X, queries, encoder, _, given = found
    with pytest.raises(InvalidInputError, match="n_neighbors must be an int from 1 to 40"):
        neighbors_of_texts({"code": encoder}, queries, X, **given, n_neighbors=41)
    with pytest.raises(InvalidInputError, match="stored_texts"):
        neighbors_of_texts({"code": encoder}, queries, X, **(given | {"stored_texts": ["one"]}))


def test_a_page_marks_texts_of_other_classes_and_escapes_all(found):
    texts = found[3]
    curve = PrefixCurve(k=[1, 2, 4], score=[0.1, 0.2, 0.3], metric="accuracy", label="code")
    sections = (curve_section("A", "", [curve]), Section("B", "", (texts,)))
    page = render_page(Page("T", "S", sections, chosen_k=2)).split("<body>")[1]
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    others = sum(texts.stored_labels[row] != "class 0" for i in range(3) for row in texts.at("code", 2, i))
    others += sum(texts.stored_labels[row] != "class 0" for i in range(3) for row in texts.of_raw(i))
    assert page.count('class="other"') == others
