"""Curves: every prefix of every metric against the slow loop that refits or recounts at each k."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier

from firstk import PrefixEncoder, Rows, Search, Similarity
from firstk.exceptions import InvalidInputError
from firstk.metrics import prefix_curve
from firstk.metrics.curve import per_row_scores
from firstk.quality.paired import DRAWS
from slow_reference import classes_of, correlated, residual

N, P = 120, 6


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = classes_of(rng, 2 * N, 4)
    X = correlated(rng, 2 * N, P) + rng.standard_normal((4, P))[y] * 0.7 + 1.0
    T = X @ rng.standard_normal((P, 3)) + rng.standard_normal((2 * N, 3))
    R = 0.6 * X + 0.5 * correlated(rng, 2 * N, P)
    return {"X": X, "y": y, "T": T, "R": R, "s": np.sum(X * R, axis=1) + rng.standard_normal(2 * N)}


def halves(data, *names):
    return [data[name][half] for half in (slice(N), slice(N, None)) for name in names]


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def test_explained_variance_on_new_rows(data):
    X, new = halves(data, "X")
    enc = PrefixEncoder().fit(X)
    curve = enc.curve(new)
    whole = np.sum((new - X.mean(axis=0)) ** 2)
    for k, score in curve:
        left = np.sum((new - enc.inverse_transform(enc.transform(new, k))) ** 2)
        assert score == pytest.approx(1 - left / whole, abs=1e-10)
    assert (curve.metric, curve.input_score, curve.n_evaluated) == ("explained_variance", 1.0, N)


def test_readback_variance_needs_no_decoder(data):
    X, y, new, _ = halves(data, "X", "y")
    enc = PrefixEncoder(4, objective="fisher").fit(X, y)
    centred = X - X.mean(axis=0)
    for k, score in enc.curve(X, metric="readback_variance"):
        expected = 1 - residual(centred, enc.transform(X, k)) * N / np.sum(centred**2)
        assert score == pytest.approx(expected, abs=1e-10)
    held_out = enc.curve(new, reference=X, metric="readback_variance")
    readout = LinearRegression().fit(enc.transform(X, 2), X)
    left = np.sum((new - readout.predict(enc.transform(new, 2))) ** 2)
    assert held_out.at(2) == pytest.approx(1 - left / np.sum((new - new.mean(axis=0)) ** 2), abs=0.02)


def test_nearest_neighbor_accuracy(data):
    X, y, new, truth = halves(data, "X", "y")
    enc = PrefixEncoder(5, objective="fisher").fit(X, y)
    curve = enc.curve(new, truth, reference=(X, y))
    for k, score in curve:
        if k == 1:  # the cosine of one coordinate is a sign: all neighbors tie
            continue
        slow = KNeighborsClassifier(1).fit(unit(enc.transform(X, k)), y).score(unit(enc.transform(new, k)), truth)
        assert score == pytest.approx(slow, abs=1e-12)
    raw = KNeighborsClassifier(1).fit(unit(X), y).score(unit(new), truth)
    assert curve.input_score == pytest.approx(raw, abs=1e-12)


def test_head_accuracy_and_score(data):
    X, y, new, truth = halves(data, "X", "y")
    enc = PrefixEncoder(5, objective="fisher").fit(X, y)
    for k, score in enc.curve(new, truth, metric="head_accuracy"):
        assert score == np.mean(enc.predict(new, k=k) == truth)
    assert enc.score(new, truth, metric="head_accuracy") == np.mean(enc.predict(new) == truth)


def test_labels_of_which_the_head_knows_none_are_refused(data):
    X, y, new, truth = halves(data, "X", "y")
    enc = PrefixEncoder(2, objective="fisher").fit(X, y)
    foreign = np.char.add("class ", truth.astype(str))
    with pytest.raises(InvalidInputError, match=r"no label of 'y' was: it has 'class .*the classes are .*same type"):
        enc.curve(new, foreign, metric="head_accuracy")
    with pytest.raises(InvalidInputError, match="no label of 'y' was"):
        enc.score(new, foreign, metric="head_accuracy")
    foreign = truth.astype(object)
    foreign[0] = "unheard of"  # one that is known suffices: the others count as misses
    known, fewer = (enc.score(new, y, metric="head_accuracy") for y in (truth, foreign))
    assert fewer <= known


def test_r2_of_the_best_readout(data):
    X, T, new, truth = halves(data, "X", "T")
    enc = PrefixEncoder(5, objective="regression").fit(X, T)
    curve = enc.curve(new, truth, reference=(X, T))
    for k, score in curve:
        predicted = LinearRegression().fit(enc.transform(X, k), T).predict(enc.transform(new, k))
        left, whole = np.sum((truth - predicted) ** 2), np.sum((truth - truth.mean(axis=0)) ** 2)
        assert score == pytest.approx(1 - left / whole, abs=0.01)
    inside = enc.curve(X, T)
    centred = T - T.mean(axis=0)
    assert inside.at(2) == pytest.approx(1 - residual(centred, enc.transform(X, 2)) * N / np.sum(centred**2), abs=1e-10)


@pytest.mark.parametrize("keep", ["neighbors", "dot_products"])
def test_recall_of_full_width_neighbors(data, keep):
    X, new = halves(data, "X")
    enc = PrefixEncoder(objective=Similarity(keep=keep)).fit(X)
    curve = enc.curve(new, reference=X)

    def ten(rows, queries):
        return np.argsort(-(unit(queries) @ unit(rows).T), axis=1, kind="stable")[:, :10]

    truth = ten(X, new)
    for k, score in curve:
        if k == 1:
            continue
        found = ten(enc.transform(X, k), enc.transform(new, k))
        overlap = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, truth, strict=True)])
        assert score == pytest.approx(overlap, abs=1e-12)
    assert curve.input_score == 1.0


def test_spearman_of_scored_pairs(data):
    left, right, s, new_left, new_right, new_s = halves(data, "X", "R", "s")
    enc = PrefixEncoder(objective=Similarity(shrinkage=0.3, neighbor_weight=0.0)).fit_pairs(left, right, s)
    for k, score in enc.curve_pairs(new_left, new_right, new_s):
        if k == 1:
            continue
        cosine = np.sum(enc.encode_query(new_left, k) * enc.encode_document(new_right, k), axis=1)
        assert score == pytest.approx(spearmanr(cosine, new_s).statistic, abs=1e-6)


def test_recall_of_partners(data):
    left, right, new_left, new_right = halves(data, "X", "R")
    enc = PrefixEncoder(objective=Similarity(shrinkage=0.3, neighbor_weight=0.0)).fit_pairs(left, right)
    curve = enc.curve_pairs(new_left, new_right)
    for k, score in curve:
        if k == 1:
            continue
        cosine = enc.encode_query(new_left, k) @ enc.encode_document(new_right, k).T
        rank = np.sum(cosine > np.diag(cosine)[:, None], axis=1)
        assert score == pytest.approx(np.mean(rank < 10), abs=1e-12)
    assert curve.metric == "positive_recall@10"


def test_some_prefixes_only(data):
    X, _ = halves(data, "X")
    enc = PrefixEncoder().fit(X)
    some = enc.curve(X, ks=[4, 1, 4])
    assert some.k == (1, 4)
    assert some.score == (enc.curve(X).at(1), enc.curve(X).at(4))


def test_the_curve_of_a_cut_encoder_is_the_start_of_the_curve(data):
    X, _ = halves(data, "X")
    enc = PrefixEncoder().fit(X)
    np.testing.assert_allclose(enc[:3].curve(X).score, enc.curve(X).score[:3], atol=1e-13)


def test_columns_of_a_table_must_stand_in_the_order_of_the_fit():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    y = np.arange(60) % 3
    enc = PrefixEncoder(objective="fisher").fit(table, y)
    turned = table[list("dcba")]
    assert enc.curve(table, y, reference=(table, y)).full == 1.0
    for X, reference in ((turned, (table, y)), (table, (turned, y))):
        with pytest.raises(ValueError, match="same order"):
            enc.curve(X, y, reference=reference)
    with pytest.raises(ValueError, match="same order"):
        PrefixEncoder(objective="similarity").fit_pairs(table, turned)
    with pytest.raises(InvalidInputError, match="column names differ"):
        enc.merge(PrefixEncoder(objective="fisher").fit(turned, y))


def test_ndcg_of_judged_documents(data):
    X, left, _, _ = halves(data, "R", "X")
    rng = np.random.default_rng(1)
    relevance = np.array([(q, d, rng.integers(0, 4)) for q in range(0, N, 2) for d in rng.choice(N, 3, replace=False)])
    enc = PrefixEncoder(objective="similarity").fit_pairs(left, X)
    curve = enc.curve_search(left, X, relevance, confidence=0.9)
    assert (curve.metric, curve.n_evaluated) == ("ndcg@10", N // 2)

    def slow(queries, documents):
        values = []
        for q in range(0, N, 2):
            grades = {d: g for query, d, g in relevance if query == q}
            order = np.argsort(-(unit(documents) @ unit(queries)[q]), kind="stable")[:10]
            gain = sum(grades.get(d, 0) / np.log2(r + 2) for r, d in enumerate(order))
            best = sum(g / np.log2(r + 2) for r, g in enumerate(sorted(grades.values(), reverse=True)))
            values.append(gain / best if best else 0.0)
        return np.mean(values)

    for k, score in curve:
        if k > 1:  # the cosine of one coordinate is a sign: all documents tie
            assert score == pytest.approx(slow(enc.encode_query(left, k), enc.encode_document(X, k)), abs=1e-12)
    assert curve.input_score == pytest.approx(slow(left, X), abs=1e-12)
    assert all(low <= score <= high for low, score, high in zip(curve.low, curve.score, curve.high, strict=True))


def test_intervals_of_curves_are_those_of_redrawn_rows(data):
    """Evaluate the metric itself on every draw: nothing but the rows that are judged is drawn."""
    X, y, new, truth = halves(data, "X", "y")
    enc = PrefixEncoder(4, objective="fisher").fit(X, y)
    for metric in ("1nn_accuracy", "probe_accuracy", "head_accuracy", "readback_variance"):
        reference = (X, y)
        curve = enc.curve(new, truth, reference=reference, metric=metric, confidence=0.8)
        rng = np.random.default_rng(0)
        rows = [rng.integers(N, size=N) for _ in range(DRAWS)]
        slow = [enc.curve(new[part], truth[part], reference=reference, metric=metric).score for part in rows[:60]]
        few = np.quantile(slow, [0.1, 0.9], axis=0)
        # 60 of the same 1000 draws: the same ends, but for the noise of fewer draws.
        np.testing.assert_allclose([curve.low, curve.high], few, atol=0.04)
        assert curve.score == enc.curve(new, truth, reference=reference, metric=metric).score
    assert curve.confidence == 0.8


def test_intervals_of_pairs(data):
    left, right, s, _, _, _ = halves(data, "X", "R", "s")
    enc = PrefixEncoder(objective="similarity").fit_pairs(left, right, s)
    curve = enc.curve_pairs(left, right, s, confidence=0.95)
    assert curve.metric == "spearman"
    rng = np.random.default_rng(0)
    rows = [rng.integers(N, size=N) for _ in range(DRAWS)]
    k = enc.n_components_
    cosines = np.sum(unit(enc.encode_query(left)) * unit(enc.encode_document(right)), axis=1)
    slow = [spearmanr(cosines[part], s[part])[0] for part in rows]
    np.testing.assert_allclose([curve.low[k - 1], curve.high[k - 1]], np.quantile(slow, [0.025, 0.975]), atol=1e-10)


def test_bad_confidence_is_refused_before_any_work(data):
    enc = PrefixEncoder(2).fit(data["X"])
    with pytest.raises(InvalidInputError, match="'confidence' parameter of curve"):
        enc.curve(data["X"], confidence=95)


def test_judged_documents_are_named_when_missing(data):
    enc = PrefixEncoder(2).fit(data["X"])
    with pytest.raises(InvalidInputError, match="'ndcg@10' needs judged documents: use curve_search"):
        enc.curve(data["X"], metric="ndcg@10")


def test_an_estimator_serves_as_its_encoder_and_an_array_is_no_data():
    X = np.random.default_rng(0).normal(size=(60, 5))
    enc = PrefixEncoder(3).fit(X)
    data = Rows(X)
    assert prefix_curve(enc, data, "explained_variance") == prefix_curve(enc.encoder_, data, "explained_variance")
    with pytest.raises(
        InvalidInputError, match=r"'data' parameter of prefix_curve must be Rows, Pairs or Search.*ndarray"
    ):
        prefix_curve(enc, X)
    with pytest.raises(InvalidInputError, match="'encoder' parameter of prefix_curve must be a FittedEncoder or"):
        prefix_curve("fisher", data)


def test_scores_of_the_same_rows_share_what_they_explain():
    rng = np.random.default_rng(0)
    X = correlated(rng, 60, 6)
    encoder = PrefixEncoder(3).fit(X[:40]).encoder_
    ks, data = np.array([2, 3]), Rows(X[40:], reference=Rows(X[:40]))
    first, second = (per_row_scores(encoder, data, "readback_variance", ks) for _ in range(2))
    other = per_row_scores(encoder, Rows(X[30:50], reference=Rows(X[:30])), "readback_variance", ks)
    assert first.targets is second.targets
    assert other.targets is not first.targets
    np.testing.assert_allclose(other.targets, X[30:50] - X[30:50].mean(axis=0), atol=1e-12)


def test_queries_without_judgements_are_scored_by_the_neighbors_that_they_find_at_full_width(data):
    X, new = halves(data, "X")
    queries, weight = new[:40] + 0.5, np.arange(40) % 3
    enc = PrefixEncoder(objective=Similarity()).fit(X)
    encoder = enc.encoder_
    scored = Search(queries, X, weight=weight)
    curve = prefix_curve(encoder, scored)
    assert (curve.metric, curve.input_score, curve.n_evaluated) == ("recall@10", 1.0, int(np.sum(weight > 0)))
    true = np.argsort(-(unit(queries) @ unit(X).T), axis=1)[:, :10]
    for k, score in curve:
        found = np.argsort(-(enc.encode_query(queries, k) @ enc.transform(X, k).T), axis=1, kind="stable")[:, :10]
        hits = [len(np.intersect1d(*both)) / 10 for both in zip(found, true, strict=True)]
        assert score == pytest.approx(np.average(hits, weights=weight), abs=1e-12)
    asked = np.flatnonzero(weight)
    assert enc.curve_search(queries[asked], X, query_weight=weight[asked]).score == curve.score
    assert prefix_curve(encoder, scored.subset(asked)).score == curve.score
    with pytest.raises(InvalidInputError, match="needs judged documents, and these queries have none"):
        prefix_curve(encoder, scored, "ndcg@10")
    with pytest.raises(InvalidInputError, match="looks among all documents"):
        enc.curve_search(queries, X, query_field=np.zeros(40), document_field=np.zeros(len(X)))
