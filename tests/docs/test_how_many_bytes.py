"""The benchmark of bytes: bytes are counted as libraries count them, choices are fair, the page is its record."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("faiss")

import faiss
from benchmarks.bytes import faiss_peers, ours, tables
from benchmarks.bytes.cases import Axes, Case
from benchmarks.bytes.claims import checked
from benchmarks.bytes.other_peers import normal_levels
from benchmarks.bytes.page import PAGES, rewritten
from benchmarks.bytes.results import Line, Scores, earlier_lines, interval, line, scored
from benchmarks.bytes.settings import BYTES, Rebuilt, Setting
from benchmarks.bytes.tables import RECORD


def unit(X):
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    scales = np.arange(1, 33) ** -0.7
    X = unit(rng.normal(size=(660, 32)) * scales + 0.1)
    labels = rng.integers(0, 3, 660)
    return Case("made", "up", X[:600], X[600:], labels=(labels[:600], labels[600:]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_is_its_record(page):
    text = page.read_text("utf-8")
    assert "<!-- table: " in text
    assert rewritten(text, json.loads(RECORD.read_text("utf-8"))) == text


def test_bytes_of_faiss_codes_are_those_faiss_counts():
    for bits, factors in faiss_peers.RABITQ_FACTORS.items():
        assert faiss.IndexRaBitQ(64, faiss.METRIC_L2, bits).code_size == 8 * bits + factors
        assert faiss.IndexEDEN(64, faiss.METRIC_L2, bits).code_size == 8 * bits + faiss_peers.EDEN_FACTORS
        kind = getattr(faiss.ScalarQuantizer, f"QT_{bits}bit_tqmse")
        assert faiss.ScalarQuantizer(64, kind).code_size == 8 * bits


def test_settings_stay_in_their_bytes(case):
    for setting in faiss_peers.settings(case):
        assert setting.bytes <= max(BYTES)
        if "rabitq" in setting.name:
            width, bits = setting.name.replace("PCA", "").replace("RR", "").split(",rabitq")
            assert faiss.IndexRaBitQ(int(width), faiss.METRIC_L2, int(bits)).code_size <= setting.bytes


def test_normalized_rows_are_rebuilt_vectors_over_their_norms(case):
    axes = case.pca.first(5)
    Z = np.round(4 * axes.of(case.store)) / 4
    vectors = Z @ axes.rows + axes.mean
    found = Rebuilt(Z, axes).found(case.queries)
    for name, stored in (("as it is", vectors), ("normalized", vectors / np.linalg.norm(vectors, axis=1)[:, None])):
        products = case.queries @ stored.T
        least = np.take_along_axis(products, found[name], axis=1).min(axis=1)
        # Ties make the rows ambiguous, not their products.
        assert np.allclose(least, np.sort(products, axis=1)[:, -10], atol=1e-5)


def test_turned_axes_span_the_same_space(case):
    axes = case.pca.first(6)
    turned = axes.turned()
    assert np.allclose(turned.rows.T @ turned.rows, axes.rows.T @ axes.rows, atol=1e-5)
    assert isinstance(turned, Axes)
    assert not np.allclose(turned.rows, axes.rows)


def test_exact_neighbors_have_recall_one_and_their_labels(case):
    recall, accuracy = case.measures(case.exact)
    assert recall.min() == 1
    nearest = (case.queries @ case.store.T).argmax(axis=1)
    assert np.array_equal(accuracy, case.labels[0][nearest] == case.labels[1])


def test_ndcg_is_that_of_the_library():
    from firstk.metrics import ndcg

    rng = np.random.default_rng(1)
    D, Q = unit(rng.normal(size=(50, 8))), unit(rng.normal(size=(7, 8)))
    judged = [{int(i): 1.0 for i in rng.choice(50, 3, replace=False)} for _ in Q]
    made = Case("made", "up", D, Q, relevant=judged)
    triples = [(q, d, int(r)) for q, one in enumerate(judged) for d, r in one.items()]
    assert made.measures(made.exact)[1].mean() == pytest.approx(ndcg(D, Q, triples, ks=[8])[-1], abs=1e-6)


def test_settings_are_chosen_on_the_other_half(case):
    """A setting that is best on one half alone must not be scored on that half."""
    half = case.folds == 0
    lucky = Setting("a", "lucky on the first half", 8, lambda c: None)
    steady = Setting("a", "steady", 8, lambda c: None)
    scores = [
        Scores(lucky, ("x",), np.where(half, 1.0, 0.0)[:, None], None, 0, {}),
        Scores(steady, ("x",), np.full((len(half), 1), 0.5), None, 0, {}),
    ]
    found = line(case, scores, "a", 16)
    assert np.array_equal(found.values, np.where(half, 0.5, 0.0))
    assert line(case, scores, "a", 4) is None


def test_interval_covers_the_mean_and_shrinks():
    rng = np.random.default_rng(0)
    few, many = rng.normal(0.2, 1, 100), rng.normal(0.2, 1, 10_000)
    for values in (few, many):
        low, high = interval(values)
        assert low < values.mean() < high
    assert np.diff(interval(many)) < np.diff(interval(few)) / 5


def test_levels_of_a_normal_variable():
    """Max (1960), table I."""
    assert np.allclose(normal_levels(2), [-1.510, -0.4528, 0.4528, 1.510], atol=1e-3)


def test_ours_is_one_string_that_is_cut(case):
    shorter, longer = (ours.embedded(case, "reconstruction", size) for size in (8, 24))
    first, second = (case.measures(e.found(case.queries)["cosine"])[0].mean() for e in (shorter, longer))
    assert first < second
    assert second > 0.8


def test_scores_are_read_from_the_cache(case, tmp_path):
    setting = next(s for s in faiss_peers.settings(case) if s.family == "faiss SQ4/SQ8")
    made = scored(case, setting, tmp_path)
    broken = Setting(setting.family, setting.name, setting.bytes, lambda c: 1 / 0)
    again = scored(case, broken, tmp_path)
    assert np.array_equal(made.recall, again.recall)
    assert np.array_equal(made.other, again.other)
    assert made.ways == again.ways


def test_claims_are_missed_where_others_are_ahead():
    def lines(score):
        return {b: Line("x", b, np.full(20, score), (), 0) for b in BYTES}

    recall = {"banking77-minilm": {ours.HEADLINE: lines(0.86), "faiss OPQ+PQ": lines(0.87), "turbovec": lines(0.7)}}
    found = {claim.claim: claim.held for claim in checked(recall, {})}
    assert found["banking77-minilm, 32 bytes: recall@10 at least 0.855"] is True
    assert found["banking77-minilm, 32 to 96 bytes: ahead of OPQ"] is False
    assert found["banking77-minilm, 8 to 16 bytes: within 0.02 of OPQ"] is True
    assert found["banking77-minilm, 16 to 96 bytes: level with TurboQuant"] is True
    assert found["banking77-minilm, 16 to 96 bytes: level with RaBitQ"] is None


def test_others_of_an_earlier_run_are_compared_without_intervals(case):
    rows = [{"bytes": 32, "score": 0.9, "chosen": ["x"], "codebook_bytes": 7}]
    held = {"families": {"faiss OPQ+PQ": rows, ours.HEADLINE: rows}}
    (kept,) = earlier_lines(len(case.queries), held)  # ours are made anew
    assert (kept.family, kept.bytes, kept.codebook_bytes, kept.earlier) == ("faiss OPQ+PQ", 32, 7, True)
    assert kept.mean == pytest.approx(0.9)
    mine = Line(ours.HEADLINE, 32, np.linspace(0.5, 1, len(case.queries)), (), 0)
    made = tables.record(case, "recall@10", {ours.HEADLINE: {32: mine}, "faiss OPQ+PQ": {32: kept}})
    (row,) = made["families"]["faiss OPQ+PQ"]
    assert (row["ours_minus"], row["earlier"]) == ([-0.15], True)
    assert made["others_ahead"][0]["between"] == []
    (found,) = [c for c in checked({"banking77-minilm": {ours.HEADLINE: {32: mine}, "faiss OPQ+PQ": {32: kept}}}, {})
                if c.claim.endswith("ahead of OPQ") and c.held is not None]  # fmt: skip
    assert (found.held, found.found) == (False, "32: -0.150 (an earlier run)")


def test_contenders_are_fitted_on_other_rows_where_there_are_any(case):
    """Stored rows that lie elsewhere must not move the axes, nor change what the codes of the fit can hold."""
    rows, labels = case.store[:300], case.labels[0]
    split = Case(
        "made", "up2", case.store[300:], case.queries, (labels[300:], case.labels[1]), other_rows=(rows, labels[:300])
    )
    assert np.allclose(split.pca.mean, rows.mean(axis=0), atol=1e-6)
    assert np.array_equal(split.training_labels, labels[:300])
    ours.embedded(split, "reconstruction", 8)
    (string,), _ = ours._strings["made-up2", "reconstruction"]
    assert np.allclose(string.quantizer.encoder.mean, rows.mean(axis=0), atol=1e-5)
    assert len(string.codes) == 300


def test_a_page_keeps_its_text_between_empty_tables():
    record = {"claims": {"a": {"claim": "a", "held": True, "found": "1"}}}
    text = "x\n<!-- table: claims -->\n<!-- end -->\ny\n<!-- table: claims -->\n<!-- end -->\nz\n"
    made = rewritten(text, record)
    assert [part.strip() for part in made.split("<!-- end -->")][-1] == "z"
    assert "\ny\n" in made
    assert made.count("| a | held | 1 |") == 2
    assert rewritten(made, record) == made
