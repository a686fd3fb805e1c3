"""Funnel search against brute force: exact where it says so, as good as asked for where it does not."""

import importlib.util
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk import FunnelIndex, PrefixEncoder, Similarity
from firstk.data import load_digits
from firstk.search import OrderWarning
from firstk.search.funnel import index as funnel_index
from firstk.search.funnel import schedule_choice
from firstk_papers.datasets import load_fashion_mnist, load_mnist
from search.slow_search import brute_force, costs_of, stored

METRICS = ["l2", "inner_product", "cosine"]
ENGINES = ["numpy", *(["faiss"] if importlib.util.find_spec("faiss") else [])]


def ordered(n, d, seed=0, decay=0.8):
    return (np.random.default_rng(seed).normal(size=(n, d)) * decay ** np.arange(d)).astype(np.float32)


def recall_of(found, truth):
    return np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)])


@st.composite
def stores(draw):
    """Rows with ties and duplicates: few different values, large offsets, tiny and large scales."""
    n, d = draw(st.integers(1, 90)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):
        Z = rng.integers(-2, 3, size=(n, d)).astype(np.float64)  # sums are exact, so ties are ties
    else:
        Z = rng.normal(size=(n, d)) * 0.9 ** np.arange(d)
        Z *= 10.0 ** draw(st.sampled_from([-12, 0, 6]))
        Z += draw(st.sampled_from([0, 0, 1000])) * np.abs(Z).max()
    Z[rng.integers(0, n, n // 3)] = Z[rng.integers(0, n, n // 3)]
    Q = np.concatenate([Z[: 1 + n // 4], rng.permuted(Z, axis=0)[:5]])
    k = draw(st.integers(1, d))
    return Z.astype(np.float32), Q.astype(np.float32), [(k, draw(st.integers(1, n)))]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS)
@given(store=stores(), data=st.data())
@settings(max_examples=30, deadline=None)
def test_exact_search_is_brute_force_with_ties_and_duplicates(metric, engine, store, data):
    Z, Q, schedule = store
    if metric == "cosine":
        Z, Q = (np.where(np.abs(A).sum(axis=1, keepdims=True) == 0, 1, A).astype(np.float32) for A in (Z, Q))
    n = data.draw(st.integers(1, len(Z)))
    index = FunnelIndex.fit(Z, schedule=schedule, n_neighbors=1, metric=metric, engine=engine)
    found = index.search(Q, n, exact=True, threads=1)
    rows, scores = brute_force(Z, Q, n, metric)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-5, atol=1e-6 * max(1, np.abs(scores).max()))
    # Sums of integers are exact. Others differ in the last digits of float64 with the order in which they are taken,
    # so two rows may change places only where their scores are equal to those digits.
    differ = found.ids != rows
    if np.array_equal(Z, np.round(Z)) and metric != "cosine":
        assert not differ.any()
    own = np.array([[score_of(Z[i], q, metric) for i in ids] for ids, q in zip(found.ids, Q, strict=True)])
    size = (
        np.linalg.norm(Q.astype(np.float64), axis=1, keepdims=True) * np.linalg.norm(Z.astype(np.float64), axis=1).max()
    )
    scale = {"l2": scores, "inner_product": np.broadcast_to(size, scores.shape), "cosine": np.ones(scores.shape)}[
        metric
    ]
    assert (np.abs(own - scores) <= 1e-12 * scale)[differ].all()


def score_of(x, q, metric):
    return brute_force(x[None], q[None], 1, metric)[1][0, 0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS)
def test_the_recall_asked_for_is_reached_on_queries_it_has_not_seen(metric, engine):
    Z, Q = ordered(3000, 40), ordered(300, 40, seed=1)
    index = FunnelIndex.fit(Z, recall=0.95, metric=metric, engine=engine)
    found = index.search(Q)
    assert found.fraction < 0.4
    assert recall_of(found.ids, brute_force(Z, Q, 10, metric)[0]) >= 0.94


@pytest.mark.skipif("faiss" not in ENGINES, reason="needs faiss, of the extra 'search'")
@pytest.mark.parametrize("metric", METRICS)
def test_cells_keep_the_recall_while_rows_come_and_go(metric, monkeypatch, tmp_path):
    monkeypatch.setattr(schedule_choice, "_CELLS", 1000)
    Z, Q = ordered(4000, 40, decay=0.9), ordered(200, 40, seed=1, decay=0.9)
    index = FunnelIndex.fit(Z[:3000], recall=0.95, metric=metric, engine="faiss")
    assert index._state.centroids is not None
    index.add(Z[3000:])
    index.remove(np.arange(0, 4000, 3))
    left = np.setdiff1d(np.arange(4000), np.arange(0, 4000, 3))
    found, again = index.search(Q), FunnelIndex.load(index.save(tmp_path / "index")).search(Q)
    assert found.fraction < 0.35
    assert recall_of(found.ids, left[brute_force(Z[left], Q, 10, metric)[0]]) >= 0.94
    assert np.array_equal(again.ids, found.ids)
    assert np.array_equal(pickle.loads(pickle.dumps(index)).search(Q, threads=2).ids, found.ids)
    # Without faiss the same file is searched row by row.
    monkeypatch.setattr(funnel_index, "_takes_faiss", lambda engine, rows: False)
    assert recall_of(FunnelIndex.load(tmp_path / "index").search(Q).ids, found.ids) >= 0.94
    assert np.array_equal(index.search(Q, exact=True).ids, left[brute_force(Z[left], Q, 10, metric)[0]])


@pytest.mark.skipif("faiss" not in ENGINES, reason="needs faiss, of the extra 'search'")
def test_cells_with_too_few_rows_are_made_up_for(monkeypatch):
    """Most rows of the probed cells were removed: the others are found all the same."""
    monkeypatch.setattr(schedule_choice, "_CELLS", 1000)
    Z = np.concatenate([ordered(2000, 20), ordered(2000, 20, seed=1) + 40])
    index = FunnelIndex.fit(Z, recall=0.95, engine="faiss")
    index.remove(np.arange(1995))
    found = index.search(Z[:50]).ids
    assert found.min() >= 1995
    assert all(len(set(ids)) == 10 for ids in found.tolist())


@pytest.mark.parametrize("metric", METRICS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_a_schedule_finds_what_a_slow_walk_finds_for_as_much_work(metric, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 60)), int(rng.integers(4, 30))
    Z, Q = ordered(n, d, seed), ordered(4, d, seed + 1)
    ks = np.sort(rng.choice(np.arange(1, d), 2, replace=False))
    sizes = np.sort(rng.integers(3, n, 2))[::-1]
    schedule = [(int(k), int(size)) for k, size in zip(ks, sizes, strict=True)]
    found = FunnelIndex.fit(Z, schedule=schedule, n_neighbors=3, metric=metric, engine="numpy").search(Q)
    X, asked = (stored(A, metric) for A in (Z, Q))
    for i, q in enumerate(asked):
        left = np.arange(n)
        for k, size in schedule:
            left = left[np.argsort(costs_of(q[:k], X[left, :k], metric), kind="stable")[:size]]
        expected = left[np.argsort(costs_of(q, X[left], metric), kind="stable")[:3]]
        assert found.ids[i].tolist() == expected.tolist()
    (k, size), (k2, size2) = schedule
    assert (found.multiply_adds == n * (k + 1) + size * k2 + size2 * d + d).all()


def test_duplicates_of_one_row_fill_no_list_twice():
    """Thousands of equal rows: thresholds that nothing exceeds, and ties that all go to the first rows."""
    Z = np.concatenate([np.zeros((20_000, 6)), np.ones((50, 6))]).astype(np.float32)
    for engine in ENGINES:
        index = FunnelIndex.fit(Z, schedule=[(3, 100)], engine=engine)
        for exact in (False, True):
            found = index.search(np.zeros((3, 6)), exact=exact)
            assert (found.scores == 0).all()
            assert all(len(set(ids)) == 10 for ids in found.ids.tolist())
        assert (found.ids == np.arange(10)).all()  # of the exact search


@pytest.mark.parametrize("exact", [False, True])
def test_threads_and_blocks_change_nothing(exact):
    Z, Q = ordered(2000, 30), ordered(333, 30, seed=1)
    index = FunnelIndex.fit(Z)
    alone = index.search(Q, exact=exact, threads=1)
    many = index.search(Q, exact=exact, threads=3)
    one_by_one = [index.search(q[None], exact=exact).ids[0] for q in Q[:20]]
    assert np.array_equal(alone.ids, many.ids)
    assert np.array_equal(alone.multiply_adds, many.multiply_adds)
    assert np.array_equal(alone.ids[:20], one_by_one)


def test_inputs_stay_as_they_are_and_the_index_keeps_its_own_copy():
    Z = ordered(500, 20)
    before, index = Z.copy(), FunnelIndex.fit(Z)
    found = index.search(Z[:5])
    assert np.array_equal(Z, before)
    Z[:] = 0
    assert np.array_equal(index.search(before[:5]).ids, found.ids)


def test_coordinates_without_order_are_called_so():
    Z = ordered(4000, 64, decay=0.9)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(64, 64)))[0]
    index = FunnelIndex.fit(Z)
    with pytest.warns(OrderWarning, match=r"order of these coordinates does not help a search.*Fit a PrefixEncoder"):
        turned = FunnelIndex.fit(Z @ turn)
    Q = ordered(200, 64, seed=2, decay=0.9)
    assert recall_of(turned.search(Q @ turn).ids, index.search(Q, exact=True).ids) >= 0.98
    assert index.search(Q).fraction < 0.7 * turned.search(Q @ turn).fraction


def test_an_encoder_makes_it_an_index_of_vectors():
    digits = load_digits()
    enc = PrefixEncoder(objective=Similarity(keep="dot_products")).fit(digits.X_train)
    index = FunnelIndex.fit(digits.X_train, encoder=enc, metric="inner_product")
    codes = FunnelIndex.fit(enc.transform(digits.X_train), metric="inner_product")
    found = index.search(digits.X_test)
    assert np.array_equal(found.ids, codes.search(enc.encode_query(digits.X_test)).ids)
    assert found.encoding == enc.encoder_.p * enc.encoder_.d
    truth = np.argsort(-(digits.X_test @ digits.X_train.T), axis=1, kind="stable")[:, :10]
    assert recall_of(found.ids, truth) > 0.98


def test_99_percent_of_the_neighbors_of_real_images_for_a_tenth_of_the_work(data_folder):
    """The promise of the benchmark, on every sixth image."""
    sets = load_mnist(data_folder), load_fashion_mnist(data_folder)
    X = np.concatenate([part.X_train for part in sets])[::6]
    Q = np.concatenate([part.X_test for part in sets])[::40]
    enc = PrefixEncoder(objective="reconstruction").fit(X)
    index = FunnelIndex.fit(enc.transform(X), recall=0.99)
    found, exact = index.search(enc.transform(Q)), index.search(enc.transform(Q), exact=True)
    distances = (X**2).sum(axis=1) - 2 * Q @ X.T
    truth = np.argpartition(distances, 10, axis=1)[:, :10]
    assert recall_of(exact.ids, truth) > 0.999
    assert recall_of(found.ids, truth) >= 0.985
    assert found.fraction < 0.1
