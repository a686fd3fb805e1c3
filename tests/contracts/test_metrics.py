"""The contract of metrics and precisions: every registered one goes through all of it."""

from __future__ import annotations

import copy
from dataclasses import fields, replace

import numpy as np
import pytest

from firstk import Pairs, PrefixEncoder, Rows, Search, Similarity, evaluate, prefix_curve, transform_files
from firstk.advice.baselines import plain_truncation
from firstk.data.precision import PRECISIONS, read_precision
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics import METRICS
from firstk.metrics.curve import SEARCH as SEARCH_METRICS
from firstk.metrics.curve import per_row_scores

N, P, D = 60, 7, 5
RNG = np.random.default_rng(0)
LABELS = np.arange(2 * N) % 4
X = RNG.standard_normal((2 * N, P)) * np.arange(P, 0, -1) + 2 * RNG.standard_normal((4, P))[LABELS]
TARGETS = X @ RNG.standard_normal((P, 2)) + RNG.standard_normal((2 * N, 2))
RIGHT = X + 0.5 * RNG.standard_normal((2 * N, P))
SCORES = np.sum(X * RIGHT, axis=1)
NEW, OLD = slice(N), slice(N, None)
JUDGEMENTS = np.array([(q, d, 1 + (d == q)) for q in range(N) for d in range(N) if LABELS[q] == LABELS[d]])

ROWS = Rows(X[NEW], LABELS[NEW], reference=Rows(X[OLD], LABELS[OLD]))
PAIRS = Pairs(X[NEW], RIGHT[NEW], scores=SCORES[NEW])
# More documents than any metric looks at.
OTHERS = np.random.default_rng(1).standard_normal((5 * N, P)) * np.arange(P, 0, -1)
STORE = np.concatenate([OTHERS, RIGHT[NEW]])  # ties go to the first, so that those are not the relevant ones
SEARCH = Search(queries=X[NEW], documents=STORE, relevance=np.add(JUDGEMENTS, [0, len(OTHERS), 0]))
# What each metric is scored on, and the objective whose encoder it is scored for.
CASES: dict[str, tuple[str, Rows | Pairs | Search]] = {
    "explained_variance": ("reconstruction", Rows(X[NEW])),
    "readback_variance": ("fisher", Rows(X[NEW], reference=Rows(X[OLD]))),
    "r2": ("regression", Rows(X[NEW], TARGETS[NEW], reference=Rows(X[OLD], TARGETS[OLD]))),
    "1nn_accuracy": ("fisher", ROWS),
    "probe_accuracy": ("fisher", ROWS),
    "head_accuracy": ("fisher", Rows(X[NEW], LABELS[NEW])),
    "recall@10": ("similarity", Rows(X[NEW])),
    "mixture": ("mixture", Rows(X[NEW], LABELS[NEW])),
    "spearman": ("similarity", PAIRS),
    "positive_recall@10": ("similarity", PAIRS),
    "ndcg@10": ("similarity", SEARCH),
    "mrr@10": ("similarity", SEARCH),
    "relevant_recall@100": ("similarity", SEARCH),
}
# Metrics of an encoder's own head or weights, which no other encoder has.
OWN = ("head_accuracy", "mixture")
SHARES_OF_VARIANCE = ("explained_variance", "readback_variance", "r2", "mixture")
metrics = pytest.mark.parametrize("name", METRICS)
precisions = pytest.mark.parametrize("name", PRECISIONS)


@pytest.fixture(scope="module")
def encoders() -> dict[str, FittedEncoder]:
    y = {"fisher": LABELS, "mixture": LABELS, "regression": TARGETS}
    made = {"similarity": Similarity(keep="dot_products")}
    return {
        name: PrefixEncoder(D, objective=made.get(name, name)).fit(X[OLD], y[name][OLD] if name in y else None).encoder_
        for name in {objective for objective, _ in CASES.values()}
    }


@pytest.fixture
def case(name, encoders) -> tuple[FittedEncoder, Rows | Pairs | Search]:
    objective, data = CASES[name]
    return encoders[objective], data


def arrays_of(data: Rows | Pairs | Search) -> dict[str, np.ndarray]:
    return {f.name: value for f in fields(data) if isinstance(value := getattr(data, f.name), np.ndarray)}


def test_no_metric_is_left_out():
    assert list(CASES) == list(METRICS)
    assert all(metric.takes in (Rows, Pairs, Search, Rows | Search) for metric in METRICS.values())


@metrics
def test_there_is_a_score_in_range_at_every_k(name, case):
    encoder, data = case
    curve = prefix_curve(encoder, data, name, confidence=0.9)
    assert curve.k == tuple(range(1, encoder.d + 1))
    assert (curve.metric, curve.n_evaluated) == (name, N)
    assert all(low <= high for low, high in zip(curve.low, curve.high, strict=True))
    least = -1.0 if name == "spearman" else -np.inf if name in SHARES_OF_VARIANCE else 0.0
    assert all(least <= score <= 1 for score in curve.score)
    assert curve.score[-1] > 0.2  # the encoder has learned something


@metrics
def test_a_score_depends_on_no_other_prefix_length(name, case):
    encoder, data = case
    curve = prefix_curve(encoder, data, name)
    for k, score in curve:
        assert prefix_curve(encoder, data, name, ks=[k]).score == pytest.approx((score,), rel=1e-12)
        if name != "mixture":  # its head is that of the full code
            assert prefix_curve(encoder[:k], data, name).at(k) == pytest.approx(score, rel=1e-9)


@metrics
def test_rows_give_the_score_and_its_resamples(name, case):
    encoder, data = case
    ks = np.array([1, encoder.d])
    rows = per_row_scores(encoder, data, name, ks)
    assert rows.n == N
    assert rows.score().shape == (2,)
    np.testing.assert_allclose(rows.resampled(np.ones((rows.n, 3))), np.tile(rows.score(), (3, 1)), rtol=1e-9)


@metrics
def test_the_raw_score_is_that_of_the_vectors_as_they_are(name, case):
    encoder, data = case
    raw = METRICS[name].raw(encoder, data)
    if name in OWN:
        assert raw is None
        return
    assert isinstance(raw, float)
    assert prefix_curve(encoder, data, name).input_score == raw
    rows = data.stored
    identity = plain_truncation(rows)
    if name == "explained_variance":
        identity = replace(identity, mean=encoder.mean)
    assert prefix_curve(identity, data, name).full == pytest.approx(raw, abs=1e-9)


@metrics
def test_the_raw_score_is_paired_with_the_code_by_row(name, case):
    encoder, data = case
    rows = METRICS[name].raw_rows(encoder, data)
    if rows is None:
        assert METRICS[name].raw_constant == METRICS[name].raw(encoder, data)
        return
    assert rows.n == per_row_scores(encoder, data, name, np.array([encoder.d])).n
    assert rows.score().tolist() == [METRICS[name].raw(encoder, data)]
    identity = plain_truncation(data.stored)
    own = per_row_scores(identity, data, name, np.array([P]))
    counts = np.random.default_rng(1).multinomial(N, np.full(N, 1 / N), size=8).T.astype(float)
    np.testing.assert_allclose(rows.resampled(counts), own.resampled(counts), atol=1e-9)


RESTRICTED = {
    "weights": {"weight": np.arange(N) % 3},
    "fields": {"query_field": LABELS[NEW] % 2, "document_field": np.arange(len(STORE)) % 2},
    "own rows": {"query_rows": np.where(np.arange(N) % 4, -1, np.arange(N))},
}


@pytest.mark.parametrize("name", SEARCH_METRICS)
@pytest.mark.parametrize("restriction", RESTRICTED)
def test_restricted_searches_leave_the_same_queries_to_every_code(name, restriction, encoders):
    data, ks = replace(SEARCH, **RESTRICTED[restriction]), np.array([2, D])
    rows = per_row_scores(encoders["similarity"], data, name, ks)
    raw = METRICS[name].raw_rows(encoders["similarity"], data)
    assert rows.n == raw.n == per_row_scores(plain_truncation(data.documents), data, name, ks).n
    if restriction != "own rows":  # that leaves out a document for a few queries only
        assert not np.allclose(rows.score(), per_row_scores(encoders["similarity"], SEARCH, name, ks).score())


@metrics
def test_what_rows_remember_changes_no_score(name, case):
    encoder, data = case
    first = prefix_curve(encoder, data, name)
    assert prefix_curve(encoder, data, name) == first
    assert prefix_curve(encoder, replace(data), name) == first  # a copy remembers nothing


@metrics
def test_ties_are_broken_the_same_way_every_time(name, case):
    encoder, data = case
    blind = replace(encoder, components=np.concatenate([np.zeros((1, P)), encoder.components[1:]]))
    first, again = (prefix_curve(blind, data, name, ks=[1]).score for _ in range(2))  # every code is 0, all tie
    assert first == again
    assert np.isfinite(first).all()
    assert first[0] <= prefix_curve(encoder, data, name).full


@metrics
def test_what_is_missing_raises_with_the_name_of_the_metric(name, case):
    encoder, data = case
    for need in METRICS[name].needs:
        with pytest.raises(InvalidInputError, match=f"The metric '{name}' needs"):
            prefix_curve(encoder, replace(data, **{need: None}), name)


CONSTANT = {
    "explained_variance": ("X", lambda encoder: np.tile(encoder.mean, (N, 1))),
    "readback_variance": ("X", lambda encoder: np.ones((N, P))),
    "r2": ("y", lambda encoder: np.ones((N, 2))),
    "spearman": ("scores", lambda encoder: np.ones(N)),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_input_raises(name, case):
    encoder, data = case
    field, make = CONSTANT[name]
    with pytest.raises(InvalidInputError, match=r"vary|differ"):
        prefix_curve(encoder, replace(data, **{field: make(encoder)}), name)


@metrics
def test_nothing_is_written_into(name, case):
    encoder, data = case
    before, record = copy.deepcopy(arrays_of(data)), copy.deepcopy(encoder.record)
    components = encoder.components.copy()
    prefix_curve(encoder, data, name, confidence=0.9)
    evaluate(encoder, data, metric=name, ks=[2], precisions=["int8"])
    for field, array in before.items():
        np.testing.assert_array_equal(getattr(data, field), array)
    np.testing.assert_array_equal(encoder.components, components)
    assert encoder.record == record


def test_what_is_no_encoder_is_named():
    data = CASES["explained_variance"][1]
    for call in (prefix_curve, evaluate, lambda *_: transform_files("pca", "in.npy", "out.npy")):
        with pytest.raises(InvalidInputError, match="a FittedEncoder or a fitted PrefixEncoder"):
            call("pca", data)


# -- precisions ------------------------------------------------------------------------------------------------


@precisions
def test_stored_codes_have_the_bytes_that_are_promised_and_come_back(name):
    Z = RNG.standard_normal((30, 16)).astype(np.float32)
    before = Z.copy()
    fitted = PRECISIONS[name].fit(Z)
    stored = fitted.quantise(Z)
    assert fitted.name == name
    assert fitted.bytes_per_vector(16) == stored.nbytes / len(Z)
    back = fitted.restore(stored)
    assert (back.shape, back.dtype.kind) == (Z.shape, "f")
    assert fitted.clipped(Z) == 0
    # What comes back is stored as it was: rounding twice is rounding once.
    np.testing.assert_array_equal(fitted.restore(fitted.quantise(back)), back)
    np.testing.assert_array_equal(Z, before)


@precisions
def test_a_precision_is_read_back_from_its_record(name):
    Z = RNG.standard_normal((30, 16)).astype(np.float32)
    fitted = PRECISIONS[name].fit(Z)
    again = read_precision(fitted.record())
    np.testing.assert_array_equal(again.quantise(Z), fitted.quantise(Z))
    np.testing.assert_array_equal(again.restore(fitted.quantise(Z)), fitted.restore(fitted.quantise(Z)))


@metrics
def test_every_metric_scores_every_precision(name, case):
    encoder, data = case
    table = evaluate(encoder, data, metric=name, ks=[2, encoder.d], sizes=[2], baselines=False, draws=20)
    assert table.precisions == tuple(PRECISIONS)
    assert len(table.prefixes) == 2 * (len(PRECISIONS) - 1)
    full = table.choose(k=encoder.d, precision="float32", relative_to="best").point
    assert full.score == pytest.approx(prefix_curve(encoder, data, name).full, abs=2e-2)
    finest = {point.precision: abs(point.score - full.score) for point in table.prefixes if point.k == encoder.d}
    assert finest["float16"] <= 0.02
    assert all(np.isfinite(point.score) and point.bytes >= 1 for point in table)
